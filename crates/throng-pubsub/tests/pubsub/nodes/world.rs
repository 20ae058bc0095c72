//! Nodes with a bus between them. The bus keeps the order of one publisher under one subject, as
//! core NATS does, and loses what it is told to lose.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use throng_base::Instant;
use throng_pubsub::nodes::{NodeAction, NodeId, NodeProtocol, NodeSubjects};
use throng_pubsub::presence::Presence;

/// A member as a node's clients know it: topic, key and ref.
pub(crate) type Seen = (String, String, String);

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) nodes: BTreeMap<usize, TestNode>,
    /// Messages on their way: from, to, and the payload with its subject.
    links: BTreeMap<(usize, usize), VecDeque<Message>>,
    /// The side of a split bus that each node is on.
    pub(crate) sides: BTreeMap<usize, u8>,
    /// Of so many messages, the bus loses one; 0: none.
    pub(crate) loses_each: u64,
    sent: u64,
    epoch: u64,
}

/// A subject and a payload.
type Message = (String, Vec<u8>);

/// A server of one core.
pub(crate) struct TestNode {
    pub(crate) protocol: NodeProtocol,
    pub(crate) presence: Presence<u32>,
    /// The members of other nodes, as the diffs tell.
    pub(crate) view: BTreeSet<Seen>,
    pub(crate) news: Vec<String>,
}

impl World {
    pub(crate) fn new(nodes: usize) -> Self {
        let mut world = Self {
            now: Instant::ZERO + Duration::from_secs(1),
            nodes: BTreeMap::new(),
            links: BTreeMap::new(),
            sides: BTreeMap::new(),
            loses_each: 0,
            sent: 0,
            epoch: 0,
        };
        (0..nodes).for_each(|node| world.start(node));
        world
    }

    /// Starts a node, or starts it again.
    pub(crate) fn start(&mut self, number: usize) {
        self.crash(number);
        self.epoch += 1;
        let id = NodeId::new(format!("node-{number}"), self.epoch);
        let mut presence = Presence::new(0, 1_000);
        presence.set_node(id.number());
        let address = Some(format!("10.0.0.{number}:4000").into());
        let protocol = NodeProtocol::new(id, NodeSubjects::new("test"), address);
        let node = TestNode { protocol, presence, view: BTreeSet::new(), news: Vec::new() };
        self.nodes.insert(number, node);
    }

    /// Ends a node without a word. What is on its way to it is lost.
    pub(crate) fn crash(&mut self, number: usize) {
        self.nodes.remove(&number);
        self.links.retain(|(_, to), _| *to != number);
    }

    pub(crate) fn node(&mut self, number: usize) -> &mut TestNode {
        self.nodes.get_mut(&number).expect("a node that runs")
    }

    /// Tracks a member, and tells the node's protocol.
    pub(crate) fn track(&mut self, number: usize, topic: &str, key: &str) {
        let now = self.now;
        let node = self.node(number);
        _ = node.presence.track(now, 0, topic, key, "{}");
        node.share();
    }

    pub(crate) fn untrack(&mut self, number: usize, topic: &str, key: &str) {
        let node = self.node(number);
        _ = node.presence.untrack(0, topic, key);
        node.share();
    }

    /// Lets time pass in steps of 100 ms. Messages arrive within one.
    pub(crate) fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.now += Duration::from_millis(100);
            // Requests and answers of one step follow each other at once.
            for _ in 0..4 {
                let now = self.now;
                for number in self.nodes.keys().copied().collect::<Vec<_>>() {
                    self.node(number).protocol.tick(now);
                    self.take_actions(number);
                }
                self.deliver_all();
            }
        }
    }

    /// Executes what a node requests.
    pub(crate) fn take_actions(&mut self, number: usize) {
        while let Some(action) = self.node(number).protocol.next_action() {
            match action {
                NodeAction::Publish { subject, payload } => {
                    self.publish(number, &subject, &payload)
                }
                other => self.node(number).take(other),
            }
        }
    }

    fn publish(&mut self, from: usize, subject: &str, payload: &[u8]) {
        let side = self.sides.get(&from).copied().unwrap_or_default();
        for (to, node) in &self.nodes {
            let is_reached = self.sides.get(to).copied().unwrap_or_default() == side;
            if is_reached && node.protocol.subscriptions().iter().any(|own| own == subject) {
                self.sent += 1;
                if self.loses_each > 0 && self.sent.is_multiple_of(self.loses_each) {
                    continue;
                }
                let message = (subject.to_owned(), payload.to_owned());
                self.links.entry((from, *to)).or_default().push_back(message);
            }
        }
    }

    fn deliver_all(&mut self) {
        for ((_, to), messages) in std::mem::take(&mut self.links) {
            for (_, payload) in messages {
                let now = self.now;
                if let Some(node) = self.nodes.get_mut(&to) {
                    assert!(node.protocol.receive(now, &payload));
                    self.take_actions(to);
                }
            }
        }
    }

    /// Checks that each node knows the members of all others that it reaches, and no other.
    pub(crate) fn assert_agreement(&self) {
        for (number, node) in &self.nodes {
            let side = |number| self.sides.get(number).copied().unwrap_or_default();
            let others = self
                .nodes
                .iter()
                .filter(|(other, _)| *other != number && side(other) == side(number));
            let truth: BTreeSet<Seen> =
                others.flat_map(|(_, other)| seen(&other.presence)).collect();
            assert_eq!(node.view, truth, "the view of node {number} at {:?}", self.now);
        }
    }
}

impl TestNode {
    fn share(&mut self) {
        for diff in self.presence.drain() {
            self.protocol.share(&diff);
        }
    }

    fn take(&mut self, action: NodeAction) {
        match action {
            NodeAction::Presence(diff) => {
                for member in diff.joins() {
                    let seen =
                        (member.topic().into(), member.key().into(), member.r#ref().to_string());
                    assert!(self.view.insert(seen), "a member joins twice: {member:?}");
                }
                for member in diff.leaves() {
                    let seen =
                        (member.topic().into(), member.key().into(), member.r#ref().to_string());
                    assert!(self.view.remove(&seen), "no such member leaves: {member:?}");
                }
            }
            NodeAction::Found(id) => self.news.push(format!("found {id}")),
            NodeAction::Ended(id) => self.news.push(format!("ended {id}")),
            NodeAction::Lost(id) => self.news.push(format!("lost {id}")),
            NodeAction::NameTaken => self.news.push("name taken".to_owned()),
            NodeAction::Publish { .. } => unreachable!("the bus has it"),
        }
    }
}

/// Returns the members that a node tracks.
fn seen(presence: &Presence<u32>) -> Vec<Seen> {
    TOPICS
        .iter()
        .flat_map(|topic| presence.members(topic))
        .map(|member| (member.topic().into(), member.key().into(), member.r#ref().to_string()))
        .collect()
}

pub(crate) const TOPICS: [&str; 3] = ["rooms:1", "rooms:2", "rooms:3"];
