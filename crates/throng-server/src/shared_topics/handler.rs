//! What a handler adds, so that its topics can be shared.

use std::sync::Arc;

use throng_pubsub::Publication;
use throng_pubsub::presence::Diff;

use crate::Handler;

/// A handler whose publications have a byte form, in which they reach other nodes.
pub trait SharedHandler: Handler {
    /// Appends the byte form of a publication. Returns false if it has none: then it stays on this
    /// node.
    fn encode(publication: &Publication, out: &mut Vec<u8>) -> bool;

    /// Reads a publication of another node. `None` if the bytes are none.
    fn decode(topic: &str, body: &[u8]) -> Option<Publication>;

    /// Makes the messages that tell each of the `cores` of changes of another node's members.
    /// Default: none, for a handler without presence.
    fn presence_messages(_diff: &Arc<Diff>, _cores: usize) -> Vec<Self::Message> {
        Vec::new()
    }
}
