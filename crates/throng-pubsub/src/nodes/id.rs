//! The identity of a node.

use std::fmt;
use std::sync::Arc;

/// A node's name, and the run of the server that has it now.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId {
    /// The name: letters, digits, `-` and `_`. No two running nodes of a group have the same.
    pub name: Arc<str>,
    /// A number that grows with each start of the node: the wall clock's time in nanoseconds, say.
    /// Of two epochs of a name, the larger one lives.
    pub epoch: u64,
}

impl NodeId {
    /// Makes the identity of a node that starts now.
    pub fn new(name: impl Into<Arc<str>>, epoch: u64) -> Self {
        Self { name: name.into(), epoch }
    }

    /// Returns a number that differs from node to node almost always, for
    /// [`Presence::set_node`](crate::presence::Presence::set_node).
    pub fn number(&self) -> u16 {
        let hash =
            super::subjects::hash(&self.name) ^ self.epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48) as u16
    }
}

/// Reports whether a text can be the name of a node: 1 to 64 letters, digits, `-` and `_`.
pub(super) fn is_name(text: &str) -> bool {
    let is_good = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_good)
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The longest name.
const NAME_BYTES_MAX: usize = 64;
