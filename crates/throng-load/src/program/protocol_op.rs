//! An op that only its protocol understands, as the program knows it.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use super::message::MessagePattern;

/// An op of one protocol, as far as it is described. What a user does in it is a
/// `UserOp`, which only users know.
pub(crate) trait ProtocolOp: Any + Debug + Send + Sync {
    /// Describes what it expects of the server; `shown` formats bytes.
    fn describe(&self, shown: &dyn Fn(&[u8]) -> String) -> String;

    /// Returns the time-out of its answer; `None` if it waits for none.
    fn timeout(&self) -> Option<Duration>;

    /// Returns what its answer must be, if that is described by a pattern.
    fn response(&self) -> Option<&MessagePattern> {
        None
    }
}

/// The two sides of an op of one protocol.
#[derive(Clone, Debug)]
pub(crate) struct ProtocolOpEntry {
    pub(crate) described: Arc<dyn ProtocolOp>,
    /// What a user does in it: an `Arc` of a `UserOp`.
    pub(crate) done_by_user: Arc<dyn Any + Send + Sync>,
}
