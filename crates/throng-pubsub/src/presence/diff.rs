//! The changes of one topic's members: joins and leaves.

use std::sync::{Arc, OnceLock};

use super::member::{PresenceMember, write_groups};

/// The changes of one topic that one core made between two drains, or that another node has made.
///
/// A member that joined and left in between is in both lists: apply the joins first.
#[derive(Debug)]
pub struct Diff {
    topic: Arc<str>,
    joins: Vec<Arc<PresenceMember>>,
    leaves: Vec<Arc<PresenceMember>>,
    payload: OnceLock<String>,
}

/// A diff that is being collected.
#[derive(Debug, Default)]
pub(super) struct DiffBuilder {
    pub(super) joins: Vec<Arc<PresenceMember>>,
    pub(super) leaves: Vec<Arc<PresenceMember>>,
}

impl Diff {
    /// Makes a diff of one topic's members.
    pub(crate) fn new(
        topic: Arc<str>,
        joins: Vec<Arc<PresenceMember>>,
        leaves: Vec<Arc<PresenceMember>>,
    ) -> Self {
        DiffBuilder { joins, leaves }.finish(topic)
    }

    /// Returns the topic.
    pub const fn topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// Returns the members that joined, by key.
    pub fn joins(&self) -> &[Arc<PresenceMember>] {
        &self.joins
    }

    /// Returns the members that left, by key.
    pub fn leaves(&self) -> &[Arc<PresenceMember>] {
        &self.leaves
    }

    /// Returns the payload of `presence_diff`, encoded once for all cores.
    pub fn payload(&self) -> &str {
        self.payload.get_or_init(|| {
            let mut out = b"{\"joins\":".to_vec();
            write_groups(&self.joins, &mut out);
            out.extend_from_slice(b",\"leaves\":");
            write_groups(&self.leaves, &mut out);
            out.push(b'}');
            String::from_utf8(out).unwrap_or_default()
        })
    }
}

impl DiffBuilder {
    pub(super) fn finish(mut self, topic: Arc<str>) -> Diff {
        for members in [&mut self.joins, &mut self.leaves] {
            members.sort_unstable_by(|a, b| a.place().cmp(&b.place()));
        }
        Diff { topic, joins: self.joins, leaves: self.leaves, payload: OnceLock::new() }
    }
}
