//! Presence over nodes: after any losses, all nodes agree within a bounded time.

use std::time::Duration;

use proptest::prelude::*;
use throng_pubsub::nodes::{HEARTBEAT_EVERY, LOST_AFTER};

use super::world::{TOPICS, World};

const NODES: usize = 4;

#[test]
fn a_node_that_joins_learns_of_all_members_at_once() {
    let mut world = World::new(2);
    (0..2_000).for_each(|n| world.track(0, TOPICS[n % 3], &format!("user {n}")));
    world.pass(Duration::from_millis(200));
    world.assert_agreement();
    world.start(7);
    world.pass(Duration::from_millis(200));
    assert_eq!(world.node(7).view.len(), 2_000);
    world.assert_agreement();
}

#[test]
fn the_members_of_a_lost_node_leave_within_a_bounded_time() {
    let mut world = World::new(3);
    world.track(0, TOPICS[0], "ann");
    world.pass(Duration::from_millis(200));
    world.crash(0);
    world.pass(LOST_AFTER - HEARTBEAT_EVERY - Duration::from_millis(200));
    assert_eq!(world.node(1).view.len(), 1, "a node may be silent for a while");
    world.pass(HEARTBEAT_EVERY + Duration::from_millis(300));
    world.assert_agreement();
    assert_eq!(world.node(1).news.last().unwrap(), "lost node-0");
}

#[test]
fn a_node_that_ends_in_order_is_gone_at_once() {
    let mut world = World::new(2);
    world.track(0, TOPICS[0], "ann");
    world.pass(Duration::from_millis(200));
    world.node(0).protocol.leave();
    world.take_actions(0);
    world.pass(Duration::from_millis(100));
    assert!(world.node(1).view.is_empty());
    assert_eq!(world.node(1).news.last().unwrap(), "ended node-0");
    assert_eq!(world.node(1).protocol.others().count(), 0);
}

#[test]
fn a_node_that_starts_again_replaces_the_one_before_it() {
    let mut world = World::new(2);
    world.track(0, TOPICS[0], "before");
    world.pass(Duration::from_millis(200));
    world.start(0);
    world.track(0, TOPICS[0], "after");
    world.pass(Duration::from_millis(200));
    world.assert_agreement();
    assert_eq!(world.node(1).protocol.others().count(), 1);
}

#[test]
fn two_halves_of_a_split_bus_lose_each_other_and_find_each_other_again() {
    let mut world = World::new(4);
    (0..4).for_each(|node| world.track(node, TOPICS[0], &format!("of {node}")));
    world.pass(Duration::from_millis(200));
    world.sides = [(0, 0), (1, 0), (2, 1), (3, 1)].into();
    world.pass(LOST_AFTER + Duration::from_millis(200));
    world.assert_agreement();
    assert_eq!(world.node(0).view.len(), 1);
    world.track(3, TOPICS[1], "meanwhile");
    world.sides.clear();
    world.pass(2 * HEARTBEAT_EVERY);
    world.assert_agreement();
}

#[test]
fn a_node_that_did_not_run_itself_loses_no_other() {
    let mut world = World::new(2);
    world.track(1, TOPICS[0], "ann");
    world.pass(Duration::from_secs(2));
    let later = world.now + 4 * LOST_AFTER;
    let node = world.node(0);
    node.protocol.tick(later);
    assert_eq!((node.view.len(), node.protocol.others().count()), (1, 1));
    // From then on it counts again.
    for step in 1..=60 {
        node.protocol.tick(later + Duration::from_millis(100) * step);
    }
    assert_eq!(node.protocol.others().count(), 0);
}

#[test]
fn a_draining_node_is_no_place_to_go() {
    let mut world = World::new(3);
    world.pass(Duration::from_millis(200));
    world.node(2).protocol.set_draining(true);
    world.pass(Duration::from_millis(200));
    let addresses: Vec<_> = world.node(0).protocol.addresses().collect();
    assert_eq!(addresses, ["10.0.0.1:4000".into()]);
}

#[test]
fn a_name_that_a_later_node_takes_is_reported_once() {
    let mut world = World::new(2);
    world.pass(Duration::from_millis(200));
    let mut other = World::new(2);
    other.start(0);
    other.pass(Duration::from_millis(200));
    other.node(0).protocol.set_draining(false);
    let now = other.now + Duration::from_secs(1);
    let theirs = other.node(0);
    theirs.protocol.tick(now);
    let mut heard = 0;
    while let Some(action) = theirs.protocol.next_action() {
        if let throng_pubsub::nodes::NodeAction::Publish { payload, .. } = action {
            heard += 1;
            world.node(0).protocol.receive(now, &payload);
            world.node(0).protocol.receive(now, &payload);
        }
    }
    world.take_actions(0);
    assert!(heard > 0);
    let taken = world.node(0).news.iter().filter(|news| *news == "name taken").count();
    assert_eq!(taken, 1);
}

#[derive(Clone, Debug)]
enum Step {
    Track(usize, usize, u8),
    Untrack(usize, usize, u8),
    Start(usize),
    Crash(usize),
    Split(u8),
    Heal,
    Lose(u64),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..NODES, 0..3_usize, 0..6_u8)
            .prop_map(|(node, topic, key)| Step::Track(node, topic, key)),
        3 => (0..NODES, 0..3_usize, 0..6_u8)
            .prop_map(|(node, topic, key)| Step::Untrack(node, topic, key)),
        1 => (0..NODES).prop_map(Step::Start),
        1 => (0..NODES).prop_map(Step::Crash),
        1 => (0..16_u8).prop_map(Step::Split),
        1 => Just(Step::Heal),
        1 => (2..9_u64).prop_map(Step::Lose),
        6 => (1..30_u64).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Losses, splits, crashes and starts. After a calm time, every node knows all members of the
    /// others; at no time does a member join twice or leave without having joined.
    #[test]
    fn all_nodes_agree_in_the_end(steps in prop::collection::vec(step(), 0..80)) {
        let mut world = World::new(NODES);
        for step in steps {
            let runs = |world: &World, node| world.nodes.contains_key(&node);
            match step {
                Step::Track(node, topic, key) if runs(&world, node) => {
                    world.track(node, TOPICS[topic], &key.to_string());
                }
                Step::Untrack(node, topic, key) if runs(&world, node) => {
                    world.untrack(node, TOPICS[topic], &key.to_string());
                }
                Step::Start(node) => world.start(node),
                Step::Crash(node) => world.crash(node),
                Step::Split(mask) => {
                    world.sides = (0..NODES).map(|node| (node, mask >> node & 1)).collect();
                }
                Step::Heal => (world.sides.clear(), world.loses_each = 0).1,
                Step::Lose(each) => world.loses_each = each,
                Step::Pass(tenths) => world.pass(Duration::from_millis(100 * tenths)),
                Step::Track(..) | Step::Untrack(..) => {}
            }
        }
        world.loses_each = 0;
        world.sides.clear();
        // A lost node, a request that was lost and its repetition, and two heartbeats.
        world.pass(LOST_AFTER + Duration::from_secs(5));
        world.assert_agreement();
    }
}
