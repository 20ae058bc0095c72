//! Reading the options of an HTTP request.

use std::ops::RangeInclusive;

use throng_base::units::nearest;
use throng_measure::http_status::StatusRange;

use super::{HEAD_METHOD, Http};
use crate::program::{MessagePattern, Pattern};
use crate::protocols::http::request::{FieldCapture, HttpExpectation, StatusCaptures, Statuses};
use crate::protocols::ws::upgrade::{
    percent_encode, percent_encoded, read_headers, read_pairs, read_path,
};
use crate::scenario::node::{Kind, Node};
use crate::scenario::reader::{Fields, Reader};
use crate::scenario::values::read_timeout;
use crate::scenario::{HeaderPlace, Segment, Template, json};
use crate::steps::expect::{read_capture, read_captures_with, read_http_body, read_regex};

/// Keys of a request.
const KEYS: [&str; 8] = ["path", "headers", "body", "json", "form", "expect", "capture", "timeout"];

/// Reads a request: its path alone, or a mapping.
pub(super) fn read(
    reader: &mut Reader<'_>,
    node: &Node,
    (name, method): (&'static str, &'static str),
) -> Option<Http> {
    if node.scalar().is_some() {
        let path = read_path(reader, node, "/login")?;
        let expected = HttpExpectation::success();
        let (headers, body, timeout) = (Vec::new(), None, super::TIMEOUT_DEFAULT);
        return Some(Http { method, path, headers, body, expected, timeout });
    }
    let what = format!("`{name}`");
    let fields = reader.fields(node, &what, &KEYS)?;
    let path = reader.require(&fields, "path", &what, "path: /login");
    let path = path.and_then(|node| read_path(reader, node, "/login"));
    let mut headers = match fields.get("headers") {
        None => Some(Vec::new()),
        Some(node) => read_headers(reader, node, HeaderPlace::Request).and_then(|headers| {
            check_host(reader, node, &headers)?;
            Some(headers)
        }),
    };
    let body = read_body(reader, &fields);
    if let (Some(headers), Some(Some((_, content_type)))) = (&mut headers, &body)
        && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        let value = Template::from_bytes(content_type.as_bytes().to_vec());
        headers.push(("content-type".to_owned(), value));
    }
    let expected = read_expected(reader, &fields, method);
    let timeout = read_timeout(reader, fields.get("timeout"), super::TIMEOUT_DEFAULT);
    let mut headers = headers?;
    // A `host` is the first of them, as a request needs it.
    headers.sort_by_key(|(name, _)| !is_host(name));
    Some(Http {
        method,
        path: path?,
        headers,
        body: body?.map(|(body, _)| body),
        expected: expected?,
        timeout: timeout?,
    })
}

/// Checks that there is at most one `host`, and that it names one.
fn check_host(reader: &mut Reader<'_>, node: &Node, headers: &[(String, Template)]) -> Option<()> {
    let Kind::Map(entries) = &node.kind else { return None };
    let mut hosts = headers.iter().zip(entries).filter(|((name, _), _)| is_host(name));
    let Some(((_, value), (_, first))) = hosts.next() else { return Some(()) };
    if let Some((_, (other, _))) = hosts.next() {
        let label = "a request has one host: leave one of the two out";
        reader.error(other.span.clone(), "the header `host` is there already", label);
        return None;
    }
    if value.as_literal().is_some_and(|value| value.trim_ascii().is_empty()) {
        let label = "write a name such as www.example.com, or leave `host` out for the target's";
        reader.error(first.span.clone(), "the header `host` is empty", label);
        return None;
    }
    Some(())
}

fn is_host(name: &str) -> bool {
    name.eq_ignore_ascii_case("host")
}

/// Reads the body, with its type.
fn read_body(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
) -> Option<Option<(Template, &'static str)>> {
    let given = ["body", "json", "form"];
    let mut given = given.into_iter().filter_map(|key| Some((key, fields.get(key)?)));
    let Some((key, node)) = given.next() else { return Some(None) };
    if let Some((other, _)) = given.next() {
        let title = "a request has one body";
        reader.error(fields.key_span(other), title, format!("there is `{key}` already"));
        return None;
    }
    Some(Some(match key {
        "body" => {
            let text = reader.text(node, "`body`", "a text")?;
            (reader.template(node, text)?, "text/plain; charset=utf-8")
        }
        "json" => (json::read(reader, node, "`json`")?, "application/json"),
        _ => (read_form(reader, node)?, "application/x-www-form-urlencoded"),
    }))
}

/// Reads the fields of a form, and encodes them.
fn read_form(reader: &mut Reader<'_>, node: &Node) -> Option<Template> {
    let mut segments = Vec::new();
    for (name, value) in read_pairs(reader, node, "`form`", "{user: \"${user.id}\"}")? {
        let joint = if segments.is_empty() { "" } else { "&" };
        let name = format!("{joint}{}=", percent_encode(name.as_bytes()));
        segments.push(Segment::Literal(name.into_bytes().into()));
        segments.extend(value.segments().iter().map(percent_encoded));
    }
    Some(Template::from_segments(segments))
}

/// Reads `expect` and `capture`: what the answer must be.
fn read_expected(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    method: &str,
) -> Option<HttpExpectation> {
    let mut statuses = Some(Statuses::success());
    let mut pattern = Some(None);
    match fields.get("expect") {
        None => {}
        Some(node) if matches!(node.kind, Kind::Map(_)) => {
            let (status, body) = read_http_body(reader, node)?;
            if let Some(node) = status {
                statuses = read_statuses(reader, node);
            }
            pattern = body;
        }
        Some(node) => statuses = read_statuses(reader, node),
    }
    let (mut of_fields, mut of_status) = (Vec::new(), Vec::new());
    let captures = read_captures_with(reader, fields, &mut |reader, slot, name, node| {
        if node.scalar() == Some(STATUS) {
            of_status.push(slot);
            return Some(None);
        }
        check_status_name(reader, node)?;
        match read_field(reader, slot, node) {
            None => {
                check_has_body(reader, node, method)?;
                read_capture(reader, slot, name, node).map(Some)
            }
            Some(field) => {
                of_fields.push(field?);
                Some(None)
            }
        }
    })?;
    if let (Some(Some(_)), Some(node)) = (&pattern, fields.get("expect")) {
        check_has_body(reader, node, method)?;
    }
    let body = match (pattern?, captures.is_empty()) {
        (None, true) => None,
        (pattern, _) => {
            let pattern = pattern.unwrap_or(Pattern::Any);
            Some(MessagePattern::new(pattern, captures, false))
        }
    };
    let status_captures = StatusCaptures(of_status);
    Some(HttpExpectation { statuses: statuses?, body, fields: of_fields, status_captures })
}

/// Reports a misspelled `status`. A text with a `/` is a JSON pointer.
fn check_status_name(reader: &mut Reader<'_>, node: &Node) -> Option<()> {
    let is_meant = |text: &&str| !text.starts_with('/') && nearest(text, [STATUS]).is_some();
    let text = node.scalar().filter(is_meant);
    let Some(text) = text else { return Some(()) };
    let title = format!("a request has nothing to capture at `{text}`");
    reader.error(node.span.clone(), title, "did you mean `status`?");
    None
}

/// Reports what looks at a body where the answer has none.
fn check_has_body(reader: &mut Reader<'_>, node: &Node, method: &str) -> Option<()> {
    if method != HEAD_METHOD {
        return Some(());
    }
    let label = "look at its `status` or a `header`, or use `get`";
    reader.error(node.span.clone(), "the answer to a `head` has no body", label);
    None
}

/// Reads the capture of a header field. Returns `None` if it is one of the body.
fn read_field(reader: &mut Reader<'_>, slot: u16, node: &Node) -> Option<Option<FieldCapture>> {
    let Kind::Map(entries) = &node.kind else { return None };
    let keys = || entries.iter().filter_map(|(key, _)| key.scalar());
    let is_meant = |key: &str| nearest(key, ["header", "json", "regex"]) == Some("header");
    let is_of_body = keys().any(|key| key == "json");
    if !keys().any(|key| key == "header" || is_meant(key) && !is_of_body) {
        return None;
    }
    Some((|| {
        let fields = reader.fields(node, "a capture of a header", &["header", "regex"])?;
        let field = reader.text(fields.get("header")?, "`header`", "the name of a field")?;
        let part = match fields.get("regex") {
            None => None,
            Some(node) => Some(read_regex(reader, node)?),
        };
        Some(FieldCapture { slot, field: field.to_owned(), part })
    })())
}

/// Reads the statuses that are expected: one, or a list.
fn read_statuses(reader: &mut Reader<'_>, node: &Node) -> Option<Statuses> {
    let Kind::List(items) = &node.kind else {
        return Some(Statuses(vec![read_status(reader, node)?]));
    };
    if items.is_empty() {
        reader.error(node.span.clone(), "no status is expected", "add at least one");
        return None;
    }
    let ranges: Vec<_> = items.iter().map(|item| read_status(reader, item)).collect();
    ranges.into_iter().collect::<Option<_>>().map(Statuses)
}

fn read_status(reader: &mut Reader<'_>, node: &Node) -> Option<RangeInclusive<u16>> {
    let expected = "an HTTP status such as 200 or 2xx";
    let text = reader.text(node, "a status", expected)?;
    match StatusRange::named(text) {
        Some(StatusRange::Class(class)) => return Some(class * 100..=class * 100 + 99),
        Some(StatusRange::One(status)) => return Some(status..=status),
        None => {}
    }
    let label = "200 to 599, or 2xx, 3xx, 4xx or 5xx";
    reader.error(node.span.clone(), format!("`status` must be {expected}"), label);
    None
}

/// Place of a capture that keeps the status.
const STATUS: &str = "status";
