//! The bytes of a stream that an `expect` waits for, and what its user keeps of them.

use std::borrow::Cow;

use super::{Capture, IncomingMessage, Matcher};

/// A rule for an answer on a plain stream.
#[derive(Clone, Debug)]
pub struct BytesPattern {
    /// Rule for the end of the answer, and for its bytes.
    pub matcher: Matcher,
    captures: Vec<Capture>,
}

impl BytesPattern {
    /// Creates a rule. An answer that lacks a capture does not match.
    pub fn new(matcher: Matcher, captures: Vec<Capture>) -> Self {
        Self { matcher, captures }
    }

    /// Reports whether a user keeps a part of the answer. Then it needs the whole of it.
    pub(crate) fn has_captures(&self) -> bool {
        !self.captures.is_empty()
    }

    /// Passes the captures of a whole answer to `store`, each with its place among the user's
    /// values. Returns false if the answer lacks one.
    pub(crate) fn store_captures(&self, answer: &[u8], mut store: impl FnMut(u16, &[u8])) -> bool {
        let text = text(answer);
        let found = self.captures.iter().map(|capture| {
            capture.find(IncomingMessage::Text(&text)).map(|value| (capture.slot, value))
        });
        let Some(found) = found.collect::<Option<Vec<_>>>() else { return false };
        found.iter().for_each(|(slot, value)| store(*slot, value.as_bytes()));
        true
    }

    /// Describes the first capture that an answer lacks.
    pub(crate) fn missing_capture(&self, answer: &[u8]) -> Option<String> {
        let text = text(answer);
        let lacks = |capture: &&Capture| capture.find(IncomingMessage::Text(&text)).is_none();
        self.captures.iter().find(lacks).map(Capture::describe_missing)
    }
}

/// Returns an answer as a text; what is not UTF-8 in it is replaced.
fn text(answer: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(answer)
}
