//! Messages of the bus between servers that share topics.

use std::collections::BTreeSet;
use std::time::Duration;

use throng_base::Instant;
use throng_pubsub::nodes::{
    BatchFilter, BatchRefusal, NodeAction, NodeId, NodeProtocol, NodeSubjects,
};

/// Checks that a node reads or refuses a packet, whose members join once and leave when their node
/// is lost, and that a batch is read once at most.
pub fn check(bytes: &[u8]) {
    let own = NodeId::new("own", 5);
    let mut node = NodeProtocol::new(own.clone(), NodeSubjects::new("g"), None);
    let mut members = BTreeSet::new();
    let mut now = Instant::ZERO + Duration::from_secs(1);
    node.tick(now);
    for _ in 0..2 {
        node.receive(now, bytes);
        act(&mut node, &mut members);
    }
    for _ in 0..10 {
        now += Duration::from_secs(1);
        node.tick(now);
        act(&mut node, &mut members);
    }
    assert!(members.is_empty(), "members of a lost node are left");
    assert_eq!(node.others().count(), 0);

    let mut filter = BatchFilter::new(own);
    if filter.read(now, bytes).is_ok() {
        assert_eq!(filter.read(now, bytes), Err(BatchRefusal::Duplicate));
    }
}

fn act(node: &mut NodeProtocol, members: &mut BTreeSet<String>) {
    while let Some(action) = node.next_action() {
        if let NodeAction::Presence(diff) = action {
            let name =
                |member: &throng_pubsub::presence::PresenceMember| member.r#ref().to_string();
            diff.joins().iter().for_each(|member| assert!(members.insert(name(member))));
            diff.leaves().iter().for_each(|member| assert!(members.remove(&name(member))));
        }
    }
}
