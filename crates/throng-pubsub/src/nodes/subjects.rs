//! The subjects on the bus under which nodes speak.

use std::fmt::Write;

/// The subjects of a group of nodes. Groups on one bus do not hear each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSubjects {
    group: String,
}

/// A subject of publications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TopicSubject {
    /// The publications of one topic, by the hash of its name. Topics of one hash share it.
    Topic(u64),
    /// The publications of all topics of a shard.
    Shard(u16),
}

impl NodeSubjects {
    /// Makes the subjects of a group, whose name has letters, digits, `-` and `_` only.
    pub fn new(group: &str) -> Self {
        Self { group: group.to_owned() }
    }

    /// Returns the subject of what nodes say to all others.
    pub fn nodes(&self) -> String {
        format!("throng.{}.nodes", self.group)
    }

    /// Returns the subject of what other nodes say to one node.
    pub fn node(&self, name: &str) -> String {
        format!("throng.{}.node.{name}", self.group)
    }

    /// Returns the subject of a topic's publications.
    pub fn topic(&self, topic: &str) -> String {
        self.pattern(TopicSubject::Topic(hash(topic)))
    }

    /// Returns the pattern that a node subscribes to for a topic or a shard. Publishers need not
    /// know which of the two a node has chosen: a topic's subject has its shard in it.
    pub fn pattern(&self, subject: TopicSubject) -> String {
        let mut pattern = format!("throng.{}.topics.", self.group);
        let written = match subject {
            TopicSubject::Topic(hash) => write!(pattern, "{}.{hash:016x}", shard(hash)),
            TopicSubject::Shard(shard) => write!(pattern, "{shard}.*"),
        };
        debug_assert!(written.is_ok(), "a string takes any text");
        pattern
    }
}

/// Returns the shard of a topic's hash.
pub(super) const fn shard(hash: u64) -> u16 {
    // The low bits of this hash depend on the last byte alone.
    ((hash >> 32 ^ hash >> 11) % SHARDS as u64) as u16
}

/// Returns the hash of a name, the same in every process: FNV-1a.
pub(super) fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The number of shards.
pub const SHARDS: u16 = 1_024;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_topic_has_a_subject_below_that_of_its_shard() {
        let subjects = NodeSubjects::new("default");
        for topic in ["rooms:lobby", "a b.c*>\n", ""] {
            let subject = subjects.topic(topic);
            let shard = subjects.pattern(TopicSubject::Shard(shard(hash(topic))));
            assert!(subject.starts_with(shard.strip_suffix('*').unwrap()), "{subject} {shard}");
            assert!(subject.is_ascii() && subject.split('.').count() == 5, "{subject}");
        }
        assert_ne!(subjects.topic("a"), subjects.topic("b"));
        assert_ne!(subjects.topic("a"), NodeSubjects::new("other").topic("a"));
    }

    #[test]
    fn the_hash_is_that_of_its_definition() {
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn numbered_topics_spread_over_the_shards() {
        let mut counts = BTreeMap::<u16, u32>::new();
        (0..102_400)
            .for_each(|n| *counts.entry(shard(hash(&format!("rooms:{n}")))).or_default() += 1);
        assert_eq!(counts.len(), usize::from(SHARDS));
        assert!(*counts.values().max().unwrap() < 200, "{:?}", counts.values().max());
    }
}
