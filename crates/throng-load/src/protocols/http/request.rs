//! HTTP requests, and what their answers must be.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use regex::Regex;
use throng_proto::http::{HttpResponse, JAR_BYTES_MAX};

use crate::program::{IncomingMessage, MessagePattern, Pattern, Template, Variable, VariableScope};
use crate::scenario::{Credentials, Segment};

/// A request, ready to be rendered for a user.
#[derive(Clone, Debug)]
pub(crate) struct HttpRequest {
    /// `GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE` or `OPTIONS`.
    pub(crate) method: &'static str,
    /// Value of the `host` header, if the request has no field `host` of its own.
    pub(crate) host: String,
    /// Path and query.
    pub(crate) path: Template,
    /// Further header fields. A `host` is the first.
    pub(crate) headers: Vec<(String, Template)>,
    /// Body, if it has one.
    pub(crate) body: Option<Template>,
    /// What the answer must be.
    pub(crate) expected: HttpExpectation,
    /// Time-out of the answer, and of the connect before it.
    pub(crate) timeout: Duration,
    /// What follows from these.
    pub(crate) traits: RequestTraits,
}

/// Traits of a request that would take a search of its parts each time it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestTraits {
    /// Rendering it again gives another request.
    pub(crate) draws: bool,
    /// A value stands in its path or in a field as it is, and may break it.
    pub(crate) has_raw: bool,
    /// Its first field is a `host` of its own, in place of the target's.
    pub(crate) has_host: bool,
    /// It has a field `cookie` of its own, in place of the jar's.
    pub(crate) has_cookie: bool,
    /// It has a field `user-agent` of its own.
    pub(crate) has_user_agent: bool,
    /// It asks the server to close the connection after it.
    pub(crate) closes: bool,
}

/// What an answer must be.
#[derive(Clone, Debug)]
pub(crate) struct HttpExpectation {
    /// The statuses that are expected.
    pub(crate) statuses: Statuses,
    /// The body, and the parts of it that the user keeps.
    pub(crate) body: Option<MessagePattern>,
    /// Header fields that the user keeps. An answer without one of them is not expected.
    pub(crate) fields: Vec<FieldCapture>,
    /// Where the user keeps the status, of an answer that is not expected too.
    pub(crate) status_captures: StatusCaptures,
}

/// Places of the status among a user's values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatusCaptures(pub(crate) Vec<u16>);

/// Ranges of statuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statuses(pub(crate) Vec<RangeInclusive<u16>>);

/// A header field that a user keeps, or a part of it.
#[derive(Clone, Debug)]
pub(crate) struct FieldCapture {
    /// Its place among the user's values.
    pub(crate) slot: u16,
    /// Name of the field.
    pub(crate) field: String,
    /// Part of its value: the first group, or all that matches; `None` for the whole value.
    pub(crate) part: Option<Regex>,
}

/// The first thing in an answer that is not as expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpDifference {
    /// The status.
    Status,
    /// The body.
    Body,
    /// The header field that this [`FieldCapture`] keeps.
    Field(usize),
}

impl HttpRequest {
    /// Reports whether a connection on which the server gave no answer may carry the request again
    /// (RFC 9110 section 9.2.2).
    pub(crate) fn is_idempotent(&self) -> bool {
        !matches!(self.method, "POST" | "PATCH")
    }

    /// Reports whether the request has a `content-length` without a body too: its method gives a
    /// body a meaning (RFC 9110 section 8.6).
    pub(crate) fn needs_length(&self) -> bool {
        matches!(self.method, "POST" | "PUT" | "PATCH") || self.body.is_some()
    }

    /// Returns the path that cookies of the answer belong to if they name none: that of the request
    /// up to its first variable.
    pub(crate) fn cookie_path(&self) -> &str {
        match self.path.segments().first() {
            Some(Segment::Literal(bytes)) => str::from_utf8(bytes).unwrap_or("/"),
            _ => "/",
        }
    }

    /// Adds the user and password of the target, unless the request has a field `authorization` of
    /// its own.
    pub(crate) fn add_credentials(&mut self, credentials: Option<&Credentials>) {
        self.headers.extend(authorization(credentials, &self.headers));
    }

    /// Returns an upper bound of its bytes.
    pub(crate) fn bytes_max(&self) -> usize {
        let names: usize = self.headers.iter().map(|(name, _)| name.len() + 4).sum();
        let templates: usize = self.templates().map(Template::bytes_max).sum();
        names + templates + self.host.len() + FIXED_BYTES_MAX
    }

    fn templates(&self) -> impl Iterator<Item = &Template> {
        let headers = self.headers.iter().map(|(_, value)| value);
        headers.chain([&self.path]).chain(&self.body)
    }
}

/// Returns the field with user and password of the target, which a request or an upgrade with these
/// fields needs; `None` if it has its own.
pub(crate) fn authorization(
    credentials: Option<&Credentials>,
    headers: &[(String, Template)],
) -> Option<(String, Template)> {
    let is_own = |(name, _): &(String, Template)| name.eq_ignore_ascii_case(AUTHORIZATION);
    let value = credentials.filter(|_| !headers.iter().any(is_own))?.authorization();
    Some((AUTHORIZATION.to_owned(), Template::from_bytes(value.into_bytes())))
}

impl RequestTraits {
    /// Returns the traits of a request with these parts.
    pub(crate) fn of(
        path: &Template,
        headers: &[(String, Template)],
        body: Option<&Template>,
    ) -> Self {
        let changes = |part: &Variable| *part == Variable::Counter || part.drawn().is_some();
        let values = || headers.iter().map(|(_, value)| value);
        let has = |field: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(field));
        let is_close = |(name, value): &(String, Template)| {
            let is_close = |value: &[u8]| value.eq_ignore_ascii_case(b"close");
            name.eq_ignore_ascii_case("connection") && value.as_literal().is_some_and(is_close)
        };
        Self {
            has_raw: values().chain([path]).any(Template::has_raw),
            draws: values().chain([path]).chain(body).any(|template| template.uses(changes)),
            has_host: has("host"),
            has_cookie: has("cookie"),
            has_user_agent: has("user-agent"),
            closes: headers.iter().any(is_close),
        }
    }
}

impl HttpExpectation {
    /// Returns what is expected unless a step says otherwise: a status of success.
    pub(crate) fn success() -> Self {
        let (fields, status_captures) = (Vec::new(), StatusCaptures::default());
        Self { statuses: Statuses::success(), body: None, fields, status_captures }
    }

    /// Reports whether the whole body is needed.
    pub(crate) fn needs_body(&self) -> bool {
        self.body.is_some()
    }

    /// Compares an answer with what is expected. Uses `scratch` to write variables out.
    pub(crate) fn difference(
        &self,
        answer: &HttpResponse<'_>,
        scope: VariableScope<'_>,
        scratch: &mut Vec<u8>,
    ) -> Option<HttpDifference> {
        if !self.statuses.contain(answer.head.status) {
            return Some(HttpDifference::Status);
        }
        let is_body = |rule: &MessagePattern| rule.matches(message_of(answer.body), scope, scratch);
        if !self.body.as_ref().is_none_or(is_body) {
            return Some(HttpDifference::Body);
        }
        let is_missing = |field: &FieldCapture| field.find(answer).is_none();
        self.fields.iter().position(is_missing).map(HttpDifference::Field)
    }

    /// Passes the captures of an answer that is as expected to `store`, each with its place among
    /// the user's values.
    pub(crate) fn store_captures(
        &self,
        answer: &HttpResponse<'_>,
        mut store: impl FnMut(u16, &[u8]),
    ) {
        if let Some(rule) = &self.body {
            rule.store_captures(message_of(answer.body), &mut store);
        }
        for field in &self.fields {
            store(field.slot, field.find(answer).unwrap_or_default().as_bytes());
        }
    }

    /// Describes the answer for people; `shown` formats bytes.
    pub(crate) fn describe(&self, shown: impl Fn(&[u8]) -> String) -> String {
        let mut text = format!("status {}", self.statuses);
        if let Some(rule) = &self.body {
            if !matches!(rule.pattern, Pattern::Any) {
                text += &format!(" and {}", rule.pattern.describe(&shown));
            }
            let captures = rule.captures.iter();
            text += &captures.map(|one| format!(" and {}", one.describe())).collect::<String>();
        }
        for field in &self.fields {
            text += &format!(" and {}", field.describe());
        }
        text
    }
}

impl StatusCaptures {
    /// Passes the status to `store`, with each of its places among the user's values.
    pub(crate) fn store(&self, status: u16, mut store: impl FnMut(u16, &[u8])) {
        for slot in &self.0 {
            store(*slot, status.to_string().as_bytes());
        }
    }
}

/// Returns a body as a message that a pattern may match.
pub(crate) fn message_of(body: &[u8]) -> IncomingMessage<'_> {
    match std::str::from_utf8(body) {
        Ok(text) => IncomingMessage::Text(text),
        Err(_) => IncomingMessage::Binary(body),
    }
}

impl Statuses {
    /// Statuses of success.
    pub(crate) fn success() -> Self {
        Self(vec![200..=299])
    }

    pub(crate) fn contain(&self, status: u16) -> bool {
        self.0.iter().any(|range| range.contains(&status))
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            let or = if index > 0 { " or " } else { "" };
            match range.start() == range.end() {
                true => write!(f, "{or}{}", range.start())?,
                false => write!(f, "{or}{}xx", range.start() / 100)?,
            }
        }
        Ok(())
    }
}

impl FieldCapture {
    /// Finds the field, or its part; `None` if the answer has none.
    fn find<'a>(&self, answer: &HttpResponse<'a>) -> Option<&'a str> {
        // A value that is sent must be the one that came.
        let (field, value) = self.find_text(answer)?;
        answer.is_verbatim(field, value).then_some(value)
    }

    /// Finds the text, and the index of its field.
    fn find_text<'a>(&self, answer: &HttpResponse<'a>) -> Option<(usize, &'a str)> {
        let fields = answer.head.headers.iter().enumerate();
        let mut own = fields.filter(|(_, (name, _))| name.eq_ignore_ascii_case(&self.field));
        own.find_map(|(field, (_, value))| {
            let Some(regex) = &self.part else { return Some((field, value)) };
            let groups = regex.captures(value)?;
            let found = groups.get(1).or_else(|| groups.get(0))?;
            Some((field, found.as_str()))
        })
    }

    /// Describes what the answer must have.
    pub(crate) fn describe(&self) -> String {
        format!("a {}", self.header())
    }

    /// Says that an answer has no such field.
    pub(crate) fn describe_missing(&self) -> String {
        format!("it has no {}", self.header())
    }

    fn header(&self) -> String {
        match &self.part {
            None => format!("header `{}`", self.field),
            Some(regex) => format!("header `{}` that matches {}", self.field, regex.as_str()),
        }
    }
}

/// The field that shows user and password (RFC 9110 section 11.6.2).
const AUTHORIZATION: &str = "authorization";

/// Bytes of a request beside its templates: the first line, the fields that every request has, and
/// the cookies.
const FIXED_BYTES_MAX: usize = 256 + JAR_BYTES_MAX;

#[cfg(test)]
mod tests {
    use throng_base::Prng;
    use throng_proto::http::{Headers, Response};

    use super::*;

    #[test]
    fn the_first_difference_is_found() {
        let part = |part: &str| Some(Regex::new(part).unwrap());
        let capture = |field: &str, part| FieldCapture { slot: 0, field: field.to_owned(), part };
        let lines = "Set-Cookie: a=1\r\nset-cookie: sid=2; Path=/\r\nx-token: t\r\n\r\n";
        let answer = |status| HttpResponse {
            head: Response { status, headers: Headers::new(lines) },
            body: b"hello",
            body_bytes: 5,
            keep_alive: true,
            latin1_fields: 0,
            surplus: b"",
        };
        let text = |text: &str| {
            let pattern = Pattern::Text(Template::parse(text).unwrap());
            Some(MessagePattern::new(pattern, Vec::new(), false))
        };
        for (status, body, field, expected) in [
            (200, text("hello"), capture("X-Token", None), None),
            (299, None, capture("set-cookie", part("sid=([^;]+)")), None),
            (302, text("x"), capture("none", None), Some(HttpDifference::Status)),
            (200, text("x"), capture("none", None), Some(HttpDifference::Body)),
            (200, None, capture("none", None), Some(HttpDifference::Field(0))),
            (200, None, capture("x-token", part("[0-9]")), Some(HttpDifference::Field(0))),
        ] {
            let rule = HttpExpectation { body, fields: vec![field], ..HttpExpectation::success() };
            let scope = VariableScope::new(7, Prng::new(1));
            let found = rule.difference(&answer(status), scope, &mut Vec::new());
            assert_eq!(found, expected, "{rule:?}");
            let mut stored = Vec::new();
            rule.store_captures(&answer(status), |_, value| stored.push(value.to_vec()));
            if found.is_none() {
                assert!(stored == [b"t"] || stored == [b"2"], "{stored:?}");
            }
        }
    }

    #[test]
    fn a_value_that_is_not_as_it_came_is_not_captured() {
        let lines = "x-token: t\u{e9}; n=1\r\n\r\n";
        let answer = HttpResponse {
            head: Response { status: 200, headers: Headers::new(lines) },
            body: b"",
            body_bytes: 0,
            keep_alive: true,
            latin1_fields: 1,
            surplus: b"",
        };
        let found = |part: Option<&str>| {
            let part = part.map(|part| Regex::new(part).unwrap());
            FieldCapture { slot: 0, field: "x-token".to_owned(), part }.find(&answer)
        };
        assert_eq!((found(None), found(Some("n=(.)"))), (None, Some("1")));
    }

    #[test]
    fn statuses_are_shown_as_they_are_written() {
        let statuses = Statuses(vec![200..=200, 300..=399]);
        assert_eq!(statuses.to_string(), "200 or 3xx");
        assert!(statuses.contain(301) && !statuses.contain(201));
    }
}
