//! Members of presence on the wire, and the changes that a node makes to its own.

use std::sync::Arc;

use throng_proto::phoenix::json;

use super::wire::{Decoder, Encode};
use crate::presence::{PresenceMember, PresenceRef};

/// Changes of presence: members that joined, and refs of members that left. A member may be in
/// both: the joins come first.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    pub(super) joins: Vec<Arc<PresenceMember>>,
    pub(super) leaves: Vec<PresenceRef>,
}

impl Changes {
    pub(super) const fn is_empty(&self) -> bool {
        self.joins.is_empty() && self.leaves.is_empty()
    }
}

/// Returns about how many bytes a member has on the wire.
pub(super) fn wire_bytes(member: &PresenceMember) -> usize {
    member.topic().len() + member.key().len() + member.meta().len() + AROUND_BYTES
}

/// Appends members. A topic that several of them in a row have is written once.
pub(super) fn encode(members: &[Arc<PresenceMember>], out: &mut Vec<u8>) {
    out.put_u32(members.len() as u32);
    let mut topic = None;
    for member in members {
        let is_same = topic == Some(member.topic());
        out.put_u8(u8::from(is_same));
        if !is_same {
            out.put_bytes(member.topic().as_bytes());
            topic = Some(member.topic());
        }
        out.put_bytes(member.key().as_bytes());
        encode_ref(member.r#ref(), out);
        out.put_bytes(member.meta().as_bytes());
    }
}

/// Reads members. Those of one topic share its name.
pub(super) fn decode(rest: &mut Decoder<'_>) -> Option<Vec<Arc<PresenceMember>>> {
    let count = rest.u32()?;
    let mut members = Vec::new();
    let mut topic: Option<Arc<str>> = None;
    for _ in 0..count {
        let name = match (rest.u8()?, topic) {
            (0, _) => rest.shared_text()?,
            (1, Some(topic)) => topic,
            _ => return None,
        };
        let (key, r#ref, meta) = (rest.text()?, decode_ref(rest)?, rest.text()?);
        // It becomes a part of the payloads of this node, whose clients must be able to read them.
        if !json::is_object(meta) {
            return None;
        }
        members.push(Arc::new(PresenceMember::of_other_node(Arc::clone(&name), key, r#ref, meta)));
        topic = Some(name);
    }
    Some(members)
}

pub(super) fn encode_ref(r#ref: PresenceRef, out: &mut Vec<u8>) {
    out.extend_from_slice(&r#ref.to_bytes());
}

pub(super) fn decode_ref(rest: &mut Decoder<'_>) -> Option<PresenceRef> {
    rest.array().map(PresenceRef::from_bytes)
}

/// Bytes around the texts of a member: their lengths and its ref.
const AROUND_BYTES: usize = 25;
