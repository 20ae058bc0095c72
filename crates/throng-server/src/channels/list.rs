//! `presence_state`: the list of a topic's members, as it is sent to one client.
//!
//! Each join changes the list. If N clients join and do not read, N different lists of up to N
//! members would wait for them. So a long list never waits as text: it is written while its client
//! reads it, from the members of that moment. Diffs are sent behind it.

use std::sync::Arc;

use throng_engine::ByteSource;
use throng_proto::phoenix::{self, PhoenixPayload, Vsn, json, names};
use throng_proto::websocket::{Opcode, encode_fragment};
use throng_pubsub::presence::Listing;

use super::refs::Ref;

/// A list that is longer than this is written while it is read.
pub(crate) const WHOLE_BYTES_MAX: usize = 16 << 10;

/// A `presence_state` for a WebSocket: one message, in as many fragments as it is taken in.
pub(crate) struct Fragments {
    listing: Listing,
    before: Vec<u8>,
    after: Vec<u8>,
    is_begun: bool,
}

impl Fragments {
    pub(crate) fn new(vsn: Vsn, join_ref: Option<&str>, topic: &str, listing: Listing) -> Self {
        let mut before = Vec::new();
        let place =
            phoenix::push_without_payload(vsn, join_ref, topic, names::PRESENCE_STATE, &mut before);
        let after = before.split_off(place);
        Self { listing, before, after, is_begun: false }
    }
}

impl ByteSource for Fragments {
    fn fill(&mut self, bytes: usize, out: &mut Vec<u8>) -> bool {
        let mut payload = std::mem::take(&mut self.before);
        let is_more = self.listing.part(bytes, &mut payload);
        if !is_more {
            payload.extend_from_slice(&self.after);
        }
        let opcode = (!self.is_begun).then_some(Opcode::Text);
        self.is_begun = true;
        encode_fragment(opcode, !is_more, &payload, out);
        is_more
    }
}

/// The same for a long-poll session. An HTTP answer states its length first, so the list is sent in
/// pieces: one `presence_state`, and then a `presence_diff` of joins with each later answer.
pub(crate) struct Pieces {
    listing: Listing,
    vsn: Vsn,
    join_ref: Ref,
    topic: Arc<str>,
    is_begun: bool,
}

impl Pieces {
    pub(crate) fn new(vsn: Vsn, join_ref: &Ref, topic: &Arc<str>, listing: Listing) -> Self {
        let (join_ref, topic) = (join_ref.clone(), Arc::clone(topic));
        Self { listing, vsn, join_ref, topic, is_begun: false }
    }

    /// Returns about how much memory it takes while it waits.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.topic.len() + self.join_ref.as_deref().map_or(0, str::len)
    }

    /// Returns the next message as a JSON string, with members of about `bytes` bytes, and whether
    /// there is another.
    pub(crate) fn next(&mut self, bytes: usize) -> (Box<[u8]>, bool) {
        let mut list = Vec::new();
        let is_begun = std::mem::replace(&mut self.is_begun, true);
        if is_begun {
            list.extend_from_slice(b"{\"joins\":");
        }
        let is_more = self.listing.object(bytes, &mut list);
        if is_begun {
            list.extend_from_slice(b",\"leaves\":{}}");
        }
        let payload = PhoenixPayload::Json(str::from_utf8(&list).unwrap_or_default());
        let (join_ref, event) = match is_begun {
            true => (None, names::PRESENCE_DIFF),
            false => (self.join_ref.as_deref(), names::PRESENCE_STATE),
        };
        let mut text = Vec::new();
        // What is JSON can be written in every version.
        let _ = phoenix::push(self.vsn, join_ref, &self.topic, event, payload, &mut text);
        let mut string = Vec::new();
        json::write_string(str::from_utf8(&text).unwrap_or_default(), &mut string);
        (string.into(), is_more)
    }
}
