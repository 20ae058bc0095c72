//! What a user does after an error.

use super::node::Node;
use super::reader::Reader;

/// Policy of a user after an error. The error is counted by kind in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// Closes the connection and begins another iteration.
    #[default]
    Restart,
    /// Closes the connection and stops.
    Stop,
    /// Continues with the next step.
    Continue,
}

/// Reads a policy.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node) -> Option<OnError> {
    let known =
        [("restart", OnError::Restart), ("stop", OnError::Stop), ("continue", OnError::Continue)];
    reader.one_of(node, "`on_error`", &known)
}
