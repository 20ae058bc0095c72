//! Captures: parts of a message that a user keeps.

use std::borrow::Cow;

use regex::Regex;

use super::IncomingMessage;
use super::json_place::JsonPlace;

/// A part of an answer that is stored.
#[derive(Clone, Debug)]
pub struct Capture {
    /// Its place among the user's values.
    pub slot: u16,
    /// Its name.
    pub name: String,
    /// Where it stands in the message.
    pub place: CapturePlace,
}

/// A place in a message.
#[derive(Clone, Debug)]
pub enum CapturePlace {
    /// The value at this place of a JSON message.
    Json(JsonPlace),
    /// What the first group of an expression matches; all that it matches if it has no group.
    Regex(Regex),
}

impl Capture {
    /// Finds the part; `None` if the message has none.
    pub(crate) fn find<'m>(&self, message: IncomingMessage<'m>) -> Option<Cow<'m, str>> {
        let IncomingMessage::Text(text) = message else { return None };
        match &self.place {
            CapturePlace::Json(place) => place.find(text).map(Cow::Owned),
            CapturePlace::Regex(regex) => {
                let groups = regex.captures(text)?;
                let found = groups.get(1).or_else(|| groups.get(0))?;
                Some(Cow::Borrowed(found.as_str()))
            }
        }
    }

    /// Describes what the message must have.
    pub(crate) fn describe(&self) -> String {
        format!("a {}", self.part())
    }

    /// Says that a message has no such part.
    pub(crate) fn describe_missing(&self) -> String {
        format!("it has no {}", self.part())
    }

    fn part(&self) -> String {
        let name = &self.name;
        match &self.place {
            CapturePlace::Json(place) => format!("value at {place} for `{name}`"),
            CapturePlace::Regex(regex) => format!("match of {} for `{name}`", regex.as_str()),
        }
    }
}

/// A part of a sent message that its user keeps for `${sent}` or `${sent.body}`.
#[derive(Clone, Debug)]
pub struct SentPart {
    slot: u16,
    /// `None` for the whole message.
    place: Option<JsonPlace>,
}

impl SentPart {
    /// Creates the part that the variable `name` stands for; `None` for other names.
    pub(crate) fn of_variable(name: &str, slot: u16) -> Option<Self> {
        let rest = name.strip_prefix("sent")?;
        match rest.strip_prefix('.') {
            Some(dots) => Some(Self { slot, place: Some(JsonPlace::parse_dots(dots)) }),
            None => rest.is_empty().then_some(Self { slot, place: None }),
        }
    }

    /// Passes the part of a message to `store`, with its place among the user's values. If the
    /// message has no such part, the value is empty.
    pub(crate) fn store(&self, message: &[u8], store: impl FnOnce(u16, &[u8])) {
        let found = match &self.place {
            None => Some(Cow::Borrowed(message)),
            Some(place) => {
                let text = std::str::from_utf8(message).ok();
                text.and_then(|text| place.find(text)).map(|found| Cow::Owned(found.into_bytes()))
            }
        };
        store(self.slot, found.as_deref().unwrap_or_default());
    }
}
