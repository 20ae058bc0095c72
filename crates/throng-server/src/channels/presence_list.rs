//! `presence_state`: the list of a topic's members, as one client receives it.
//!
//! Each join changes the list. If N clients join and do not read, N different lists of up to N
//! members would wait for them. So a long list never waits as text: it is written while its client
//! reads it, from the members at that time. Diffs are sent after it.

use std::sync::Arc;

use throng_engine::ByteSource;
use throng_proto::phoenix::{self, PhoenixPayload, Vsn, json, names};
use throng_proto::websocket::{Opcode, encode_fragment};
use throng_pubsub::presence::Listing;

use super::refs::Ref;

/// The length in bytes above which a list is written while the client reads it.
pub(crate) const WHOLE_BYTES_MAX: usize = 16 << 10;

/// A `presence_state` for a WebSocket: one message, with a fragment for each time the client reads.
pub(crate) struct Fragments {
    listing: Listing,
    before: Vec<u8>,
    after: Vec<u8>,
    has_begun: bool,
}

impl Fragments {
    pub(crate) fn new(vsn: Vsn, join_ref: Option<&str>, topic: &str, listing: Listing) -> Self {
        let mut before = Vec::new();
        let place =
            phoenix::push_without_payload(vsn, join_ref, topic, names::PRESENCE_STATE, &mut before);
        let after = before.split_off(place);
        Self { listing, before, after, has_begun: false }
    }
}

impl ByteSource for Fragments {
    fn fill(&mut self, bytes: usize, out: &mut Vec<u8>) -> bool {
        let mut payload = std::mem::take(&mut self.before);
        let is_more = self.listing.part(bytes, &mut payload);
        if !is_more {
            payload.extend_from_slice(&self.after);
        }
        let opcode = (!self.has_begun).then_some(Opcode::Text);
        self.has_begun = true;
        encode_fragment(opcode, !is_more, &payload, out);
        is_more
    }
}

/// A `presence_state` for a long-poll session. An HTTP answer states its length first, so the list
/// is sent in pieces: one `presence_state`, and then a `presence_diff` of joins with each later
/// answer.
pub(crate) struct Pieces {
    listing: Listing,
    vsn: Vsn,
    join_ref: Ref,
    topic: Arc<str>,
    has_begun: bool,
}

impl Pieces {
    pub(crate) fn new(vsn: Vsn, join_ref: &Ref, topic: &Arc<str>, listing: Listing) -> Self {
        let (join_ref, topic) = (join_ref.clone(), Arc::clone(topic));
        Self { listing, vsn, join_ref, topic, has_begun: false }
    }

    /// Returns about how much memory it needs while it waits.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.topic.len() + self.join_ref.as_deref().map_or(0, str::len)
    }

    /// Returns the next message as a JSON string, with members of about `bytes` bytes, and whether
    /// there is another.
    pub(crate) fn next(&mut self, bytes: usize) -> (Box<[u8]>, bool) {
        let mut list = Vec::new();
        let has_begun = std::mem::replace(&mut self.has_begun, true);
        if has_begun {
            list.extend_from_slice(b"{\"joins\":");
        }
        let is_more = self.listing.object(bytes, &mut list);
        if has_begun {
            list.extend_from_slice(b",\"leaves\":{}}");
        }
        let payload = PhoenixPayload::Json(str::from_utf8(&list).unwrap_or_default());
        let (join_ref, event) = if has_begun {
            (None, names::PRESENCE_DIFF)
        } else {
            (self.join_ref.as_deref(), names::PRESENCE_STATE)
        };
        let mut text = Vec::new();
        // JSON can be written in every version.
        let _ = phoenix::push(self.vsn, join_ref, &self.topic, event, payload, &mut text);
        let mut string = Vec::new();
        json::write_string(str::from_utf8(&text).unwrap_or_default(), &mut string);
        (string.into(), is_more)
    }
}
