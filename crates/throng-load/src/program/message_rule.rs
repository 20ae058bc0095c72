//! A rule of `on_message`, compiled.

use super::message::MessagePattern;

/// The messages that a rule takes, and the ops that follow each of them.
#[derive(Clone, Debug)]
pub(crate) struct MessageRule {
    pub(crate) pattern: MessagePattern,
    /// Index of its first op; [`Op::End`](super::Op::End) ends them.
    pub(crate) entry: u32,
}
