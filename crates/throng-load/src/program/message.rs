//! Matching whole WebSocket messages.

use std::fmt;

use memchr::memmem::{self, Finder};
use regex::Regex;

use super::{Capture, JsonPattern, Template, Variable, VariableScope};
use crate::protocols::phoenix::event_pattern::{self, EventPattern};

/// A WebSocket message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncomingMessage<'a> {
    /// A text message.
    Text(&'a str),
    /// A binary message.
    Binary(&'a [u8]),
}

impl<'a> IncomingMessage<'a> {
    /// Returns the message's bytes.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }
}

/// Pattern of a whole message.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// Exactly this text message.
    Text(Template),
    /// Exactly this binary message.
    Binary(Template),
    /// A text message of JSON that contains at least this.
    Json(JsonPattern),
    /// A message of this many bytes.
    Bytes(u32),
    /// A message that contains this.
    Contains(Box<MessagePart>),
    /// A text message in which the expression matches.
    Regex(Regex),
    /// A message that one of these matches.
    OneOf(Vec<Self>),
    /// Any message.
    Any,
    /// An event of a channel.
    Event(Box<EventPattern>),
}

/// A part of a message.
#[derive(Clone, Debug)]
pub struct MessagePart {
    template: Template,
    /// Finder of a part without variables.
    finder: Option<Finder<'static>>,
}

impl MessagePart {
    /// Creates a part that renders from `template`.
    pub fn new(template: Template) -> Self {
        let finder = template.as_literal().map(|part| Finder::new(part).into_owned());
        Self { template, finder }
    }

    fn is_in(&self, bytes: &[u8], scope: VariableScope<'_>, scratch: &mut Vec<u8>) -> bool {
        if let Some(finder) = &self.finder {
            return finder.find(bytes).is_some();
        }
        scratch.clear();
        self.template.render(&mut { scope }, scratch);
        memmem::find(bytes, scratch).is_some()
    }
}

impl fmt::Display for MessagePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.template.fmt(f)
    }
}

impl Pattern {
    /// Reports whether `message` matches. Uses `scratch` to write variables out.
    pub fn matches(
        &self,
        message: IncomingMessage<'_>,
        scope: VariableScope<'_>,
        scratch: &mut Vec<u8>,
    ) -> bool {
        match (self, message) {
            (Self::Text(expected), IncomingMessage::Text(text)) => {
                expected.is_rendered(text.as_bytes(), scope, scratch)
            }
            (Self::Binary(expected), IncomingMessage::Binary(bytes)) => {
                expected.is_rendered(bytes, scope, scratch)
            }
            (Self::Json(expected), IncomingMessage::Text(text)) => {
                expected.is_in(text, scope, scratch)
            }
            (Self::Bytes(count), message) => message.bytes().len() == *count as usize,
            (Self::Contains(part), message) => part.is_in(message.bytes(), scope, scratch),
            (Self::Regex(regex), IncomingMessage::Text(text)) => regex.is_match(text),
            (Self::OneOf(patterns), message) => {
                patterns.iter().any(|pattern| pattern.matches(message, scope, scratch))
            }
            (Self::Any, _) => true,
            (Self::Event(event), message) => event.payload_of(message, scope, scratch).is_some(),
            (Self::Text(_) | Self::Json(_) | Self::Regex(_), IncomingMessage::Binary(_))
            | (Self::Binary(_), IncomingMessage::Text(_)) => false,
        }
    }

    /// Reports whether the content of a message decides, and not only its presence or its length.
    pub(crate) fn is_of_content(&self) -> bool {
        match self {
            Self::Any | Self::Bytes(_) => false,
            Self::OneOf(patterns) => patterns.iter().all(Self::is_of_content),
            Self::Text(_)
            | Self::Binary(_)
            | Self::Json(_)
            | Self::Contains(_)
            | Self::Regex(_)
            | Self::Event(_) => true,
        }
    }

    /// Reports whether a part of one of its variables fits.
    pub(crate) fn uses(&self, is: &impl Fn(&Variable) -> bool) -> bool {
        match self {
            Self::Text(template) | Self::Binary(template) => template.uses(is),
            Self::Json(pattern) => pattern.uses(is),
            Self::Contains(part) => part.template.uses(is),
            Self::OneOf(patterns) => patterns.iter().any(|pattern| pattern.uses(is)),
            Self::Event(event) => event.uses(is),
            Self::Bytes(_) | Self::Regex(_) | Self::Any => false,
        }
    }

    /// Describes the message for people; `shown` formats bytes.
    pub fn describe(&self, shown: &impl Fn(&[u8]) -> String) -> String {
        let shown_text = |template: &Template| shown(template.to_string().as_bytes());
        let shown_hex = |template: &Template| shown(template.in_hexadecimal().as_bytes());
        match self {
            Self::Text(template) => shown_text(template),
            Self::Binary(template) => match template.as_literal() {
                Some(bytes) => format!("the binary message {}", shown(bytes)),
                None => format!("the binary message {}", shown_hex(template)),
            },
            Self::Json(pattern) => format!("JSON with {}", shown(pattern.to_string().as_bytes())),
            Self::Bytes(count) => format!("a message of {count} bytes"),
            Self::Contains(part) => {
                format!("a message that contains {}", shown_text(&part.template))
            }
            Self::Regex(regex) => {
                format!("a message that matches {}", shown(regex.as_str().as_bytes()))
            }
            Self::Any => "any message".to_owned(),
            Self::OneOf(patterns) => {
                let each: Vec<_> = patterns.iter().map(|pattern| pattern.describe(shown)).collect();
                each.join(", or ")
            }
            Self::Event(event) => event.describe(shown),
        }
    }
}

/// A rule for a message, and whether other messages may come before it.
#[derive(Clone, Debug)]
pub struct MessagePattern {
    /// What the message is.
    pub pattern: Pattern,
    /// Parts of it that the user keeps. A message without one of them does not match.
    pub captures: Vec<Capture>,
    /// True if other messages may come before a match; otherwise they are a mismatch.
    pub skips_others: bool,
    /// True if each message that is sent has another answer, by which the pattern knows it.
    pub identifies: bool,
}

impl MessagePattern {
    /// Creates a rule.
    pub fn new(pattern: Pattern, captures: Vec<Capture>, skips_others: bool) -> Self {
        Self { pattern, captures, skips_others, identifies: false }
    }

    /// Reports whether other messages may come before a match.
    pub fn skips_others(&self) -> bool {
        self.skips_others
    }

    /// Describes the message for people; `shown` formats bytes.
    pub fn describe(&self, shown: impl Fn(&[u8]) -> String) -> String {
        let captures = self.captures.iter().map(|capture| format!(" and {}", capture.describe()));
        self.pattern.describe(&shown) + &captures.collect::<String>()
    }

    /// Reports whether `message` matches. Uses `scratch` to write variables out.
    pub fn matches(
        &self,
        message: IncomingMessage<'_>,
        scope: VariableScope<'_>,
        scratch: &mut Vec<u8>,
    ) -> bool {
        // An event is decoded once for both.
        let body = match &self.pattern {
            Pattern::Event(event) => event.payload_of(message, scope, scratch),
            pattern => pattern.matches(message, scope, scratch).then_some(message),
        };
        body.is_some_and(|body| self.captures.iter().all(|capture| capture.find(body).is_some()))
    }

    /// Returns the first capture that a message lacks.
    pub(super) fn missing_capture(&self, message: IncomingMessage<'_>) -> Option<&Capture> {
        let mut captures = self.captures.iter();
        match self.body(message) {
            Some(body) => captures.find(|capture| capture.find(body).is_none()),
            None => captures.next(),
        }
    }

    /// Returns the part of a message that captures refer to.
    fn body<'m>(&self, message: IncomingMessage<'m>) -> Option<IncomingMessage<'m>> {
        match &self.pattern {
            Pattern::Event(_) => event_pattern::payload(message),
            _ => Some(message),
        }
    }

    /// Passes the captures of a message that matches to `store`, each with its place among the
    /// user's values.
    pub(crate) fn store_captures(
        &self,
        message: IncomingMessage<'_>,
        mut store: impl FnMut(u16, &[u8]),
    ) {
        if self.captures.is_empty() {
            return;
        }
        let Some(body) = self.body(message) else { return };
        for capture in &self.captures {
            let found = capture.find(body).unwrap_or_default();
            store(capture.slot, found.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use throng_base::Prng;

    use super::*;

    fn text(text: &str) -> Template {
        Template::parse(text).unwrap()
    }

    #[test]
    fn each_pattern_takes_its_messages_and_no_others() {
        let (of_text, of_binary) =
            (IncomingMessage::Text("hello 7"), IncomingMessage::Binary(b"hello 7"));
        let part = |part| Pattern::Contains(Box::new(MessagePart::new(text(part))));
        for (pattern, takes_text, takes_binary) in [
            (Pattern::Text(text("hello 7")), true, false),
            (Pattern::Text(text("hello ${user.id}")), true, false),
            (Pattern::Text(text("${user.id}")), false, false),
            (Pattern::Text(text("hell")), false, false),
            (Pattern::Binary(Template::parse("hello ${user.id}").unwrap()), false, true),
            (Pattern::Bytes(7), true, true),
            (Pattern::Bytes(4), false, false),
            (part("ell"), true, true),
            (part("o ${user.id}"), true, true),
            (part("elo"), false, false),
            (part("x${user.id}"), false, false),
            (Pattern::Json(json!("hello").into()), false, false),
            (Pattern::Regex(Regex::new("^h.* [0-9]$").unwrap()), true, false),
            (Pattern::Regex(Regex::new("^[0-9]$").unwrap()), false, false),
            (Pattern::OneOf(vec![Pattern::Bytes(4), part("7")]), true, true),
        ] {
            let rule = MessagePattern::new(pattern, Vec::new(), false);
            let matches = |message| {
                let scope = VariableScope::new(7, Prng::new(1));
                rule.matches(message, scope, &mut Vec::new())
            };
            let taken = (matches(of_text), matches(of_binary));
            assert_eq!(taken, (takes_text, takes_binary), "{rule:?}");
        }
    }
}
