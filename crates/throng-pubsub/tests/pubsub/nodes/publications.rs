//! Publications between nodes: each once and in order, whatever the subscriptions pass through.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use throng_base::Instant;
use throng_pubsub::nodes::{
    BatchFilter, BatchRefusal, NodeId, NodeSubjects, PublicationBatches, TopicInterest,
};

/// A node that publishes and receives. Its subscriptions deliver each message that matches once
/// for each of them, as those of a bus do.
struct Node {
    interest: TopicInterest,
    filter: BatchFilter,
    batches: PublicationBatches,
    patterns: BTreeSet<String>,
    members: BTreeSet<u8>,
    /// What arrived for topics with members: the publishing node and the number, by topic.
    received: BTreeMap<u8, Vec<(usize, u32)>>,
    duplicates: u32,
}

fn subjects() -> NodeSubjects {
    NodeSubjects::new("test")
}

impl Node {
    fn new(number: usize) -> Self {
        let id = NodeId::new(format!("node-{number}"), 1);
        Self {
            // It passes from topics to shards at four topics.
            interest: TopicInterest::new(3),
            filter: BatchFilter::new(id.clone()),
            batches: PublicationBatches::new(id, subjects()),
            patterns: BTreeSet::new(),
            members: BTreeSet::new(),
            received: BTreeMap::new(),
            duplicates: 0,
        }
    }

    fn matching(&self, subject: &str) -> usize {
        let matches = |pattern: &&String| {
            let prefix = pattern.strip_suffix('*').unwrap_or(pattern);
            subject.starts_with(prefix) && (pattern.ends_with('*') || subject == **pattern)
        };
        self.patterns.iter().filter(matches).count()
    }

    fn receive(&mut self, payload: &[u8]) {
        match self.filter.read(Instant::ZERO, payload) {
            Ok(publications) => {
                for publication in publications {
                    let topic: u8 = publication.topic.parse().unwrap();
                    let [from, number @ ..] = publication.body else { panic!() };
                    let number = u32::from_le_bytes(number.try_into().unwrap());
                    if self.members.contains(&topic) {
                        self.received.entry(topic).or_default().push((usize::from(*from), number));
                    }
                }
            }
            Err(BatchRefusal::Duplicate) => self.duplicates += 1,
            Err(refusal) => assert_eq!(refusal, BatchRefusal::Own),
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Join(usize, u8),
    Leave(usize, u8),
    Publish(usize, u8),
    /// A node's batches go to the bus.
    Flush(usize),
    /// A node begins its new subscriptions, and does not end the old ones yet.
    Begin(usize),
    /// A node ends the old ones.
    Settle(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let topic = 0..8_u8;
    prop_oneof![
        3 => (0..2_usize, topic.clone()).prop_map(|(node, topic)| Step::Join(node, topic)),
        2 => (0..2_usize, topic.clone()).prop_map(|(node, topic)| Step::Leave(node, topic)),
        8 => (0..2_usize, topic).prop_map(|(node, topic)| Step::Publish(node, topic)),
        3 => (0..2_usize).prop_map(Step::Flush),
        3 => (0..2_usize).prop_map(Step::Begin),
        2 => (0..2_usize).prop_map(Step::Settle),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn each_publication_arrives_once_and_in_order(steps in prop::collection::vec(step(), 0..150)) {
        let mut nodes = [Node::new(0), Node::new(1)];
        let mut ends: [Vec<String>; 2] = Default::default();
        let mut now = Instant::ZERO;
        let mut number = 0_u32;
        // What must arrive: published while the other node had members and the subscription.
        let mut expected: [BTreeMap<u8, Vec<(usize, u32)>>; 2] = Default::default();
        let mut unflushed: [Vec<(u8, u32)>; 2] = Default::default();
        for step in steps {
            now += Duration::from_secs(1);
            match step {
                Step::Join(node, topic) => {
                    if nodes[node].members.insert(topic) {
                        nodes[node].interest.add(&topic.to_string());
                    }
                }
                Step::Leave(node, topic) => {
                    if nodes[node].members.remove(&topic) {
                        nodes[node].interest.remove(now, &topic.to_string());
                    }
                }
                Step::Publish(node, topic) => {
                    number += 1;
                    nodes[node].batches.add(&topic.to_string(), |out| {
                        out.push(node as u8);
                        out.extend_from_slice(&number.to_le_bytes());
                    });
                    unflushed[node].push((topic, number));
                }
                Step::Flush(from) => {
                    let to = 1 - from;
                    for (topic, number) in unflushed[from].drain(..) {
                        let subject = subjects().topic(&topic.to_string());
                        let is_heard = nodes[to].matching(&subject) > 0;
                        if is_heard && nodes[to].members.contains(&topic) {
                            expected[to].entry(topic).or_default().push((from, number));
                        }
                    }
                    for batch in nodes[from].batches.take().collect::<Vec<_>>() {
                        for node in &mut nodes {
                            for _ in 0..node.matching(&batch.subject) {
                                node.receive(&batch.payload);
                            }
                        }
                    }
                }
                Step::Begin(node) => {
                    let changes = nodes[node].interest.changes(now);
                    let [begin, end] = changes.patterns(&subjects());
                    // A subscription that is wanted again does not end.
                    ends[node].retain(|pattern| !begin.contains(pattern));
                    nodes[node].patterns.extend(begin);
                    ends[node].extend(end);
                }
                Step::Settle(node) => {
                    for pattern in ends[node].drain(..) {
                        nodes[node].patterns.remove(&pattern);
                    }
                }
            }
        }
        for node in 0..2 {
            prop_assert_eq!(&nodes[node].received, &expected[node]);
        }
    }
}

#[test]
fn a_message_of_two_subscriptions_counts_once() {
    let mut node = Node::new(0);
    node.members.insert(1);
    node.patterns.extend([subjects().topic("1")]);
    let mut other = Node::new(1);
    other.batches.add("1", |out| out.extend_from_slice(&[1, 7, 0, 0, 0]));
    let batch = other.batches.take().next().unwrap();
    (0..2).for_each(|_| node.receive(&batch.payload));
    assert_eq!((node.received[&1].len(), node.duplicates), (1, 1));
}
