//! Reading what `expect` and `receive` wait for.

use regex::Regex;
use serde_json::Value;

use crate::program::{
    Capture, CapturePlace, JsonOrder, JsonPattern, JsonPlace, JsonTest, Matcher, MessagePart,
    MessagePattern, Pattern, Template, Variable,
};
use crate::scenario::node::{Kind, Node};
use crate::scenario::reader::{Fields, Form, Reader};
use crate::scenario::values::{EXPECTED_BYTES_MAX, read_hex, read_length, read_some_hex};
use crate::scenario::{is_name, is_reserved, json};

/// Keys of a pattern of bytes.
pub(super) const BYTES_KEYS: [&str; 4] = ["text", "hex", "bytes", "until"];

/// Keys of a pattern of messages.
const MESSAGE_KEYS: [&str; 7] = ["text", "json", "binary", "bytes", "contains", "regex", "one_of"];

/// Reads a rule for bytes of a stream.
pub(super) fn read_matcher(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    what: &str,
) -> Option<Matcher> {
    let forms: [Form<Matcher>; 4] = [
        ("text", |reader, node| Some(Matcher::literal(read_text(reader, node)?))),
        ("hex", |reader, node| {
            let template = read_some_hex(reader, node, "`hex`")?;
            check_steady_in(reader, node, &template)?;
            Some(Matcher::literal(template))
        }),
        ("bytes", |reader, node| {
            Some(Matcher::bytes(read_length(reader, node, "`bytes`", EXPECTED_BYTES_MAX)?))
        }),
        ("until", |reader, node| Some(Matcher::until(read_text(reader, node)?))),
    ];
    reader.one_form(fields, what, "pattern", &forms)
}

/// Returns the keys of a step that waits for a message.
pub(super) fn keys(more: &[&'static str]) -> Vec<&'static str> {
    MESSAGE_KEYS.iter().chain(more).copied().collect()
}

/// Reads a pattern of whole messages.
pub(super) fn read_pattern(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    what: &str,
) -> Option<Pattern> {
    let forms: [Form<Pattern>; 7] = [
        ("text", |reader, node| read_whole_text(reader, node).map(Pattern::Text)),
        ("json", |reader, node| read_json(reader, node).map(Pattern::Json)),
        ("binary", |reader, node| {
            let template = read_hex(reader, node, "`binary`")?;
            check_steady_in(reader, node, &template)?;
            Some(Pattern::Binary(template))
        }),
        ("bytes", |reader, node| {
            read_length(reader, node, "`bytes`", EXPECTED_BYTES_MAX).map(Pattern::Bytes)
        }),
        ("contains", |reader, node| {
            Some(Pattern::Contains(Box::new(MessagePart::new(read_text(reader, node)?))))
        }),
        ("regex", |reader, node| read_regex(reader, node).map(Pattern::Regex)),
        ("one_of", read_one_of),
    ];
    reader.one_form(fields, what, "pattern", &forms)
}

fn read_one_of(reader: &mut Reader<'_>, node: &Node) -> Option<Pattern> {
    let Kind::List(items) = &node.kind else {
        reader.wrong_kind(node, "`one_of`", "a list such as [{json: {type: ok}}, {text: busy}]");
        return None;
    };
    if items.len() < 2 {
        reader.error(node.span.clone(), "`one_of` needs at least two patterns", "add another one");
        return None;
    }
    let patterns: Vec<_> = items
        .iter()
        .map(|item| {
            if item.scalar().is_some() {
                return read_whole_text(reader, item).map(Pattern::Text);
            }
            let simple: Vec<_> = MESSAGE_KEYS.into_iter().filter(|key| *key != "one_of").collect();
            let fields = reader.fields(item, "a pattern of `one_of`", &simple)?;
            read_pattern(reader, &fields, "a pattern of `one_of`")
        })
        .collect();
    patterns.into_iter().collect::<Option<Vec<_>>>().map(Pattern::OneOf)
}

/// Reads a part of an answer that is expected: at least one byte.
pub(super) fn read_text(reader: &mut Reader<'_>, node: &Node) -> Option<Template> {
    let template = read_whole_text(reader, node)?;
    if template.bytes_max() == 0 {
        reader.error(node.span.clone(), "`expect` is empty", "at least one byte");
        return None;
    }
    Some(template)
}

/// Reads the text of a whole message that is expected: its variables must have one value. It may be
/// empty.
pub(super) fn read_whole_text(reader: &mut Reader<'_>, node: &Node) -> Option<Template> {
    let text = reader.text(node, "`expect`", "a text")?;
    let template = reader.template(node, text)?;
    if text.len() > PATTERN_BYTES_MAX {
        let label = format!("at most {PATTERN_BYTES_MAX} bytes");
        reader.error(node.span.clone(), "the expected text is too long", label);
        return None;
    }
    check_steady(reader, node, text, &template)?;
    Some(template)
}

/// Reports a variable of a scalar that would be drawn anew when the answer is compared.
fn check_steady_in(reader: &mut Reader<'_>, node: &Node, template: &Template) -> Option<()> {
    check_steady(reader, node, node.scalar().unwrap_or_default(), template)
}

/// Reports a variable that would be drawn anew when the answer is compared.
pub(crate) fn check_steady(
    reader: &mut Reader<'_>,
    node: &Node,
    text: &str,
    template: &Template,
) -> Option<()> {
    let Some(name) = template.variables().find_map(Variable::drawn) else { return Some(()) };
    let at = text.find("${").unwrap_or(0);
    let span = reader.inner_span(node, at..text.len());
    let title = format!("`{name}` cannot be expected: each use has another value");
    reader
        .error(span, title, "use `${sent}` or `${sent.member}`, the message that was sent")
        .help = Some("`set: {name: ...}` before the `send` keeps a value for both".to_owned());
    None
}

pub(crate) fn read_regex(reader: &mut Reader<'_>, node: &Node) -> Option<Regex> {
    let text = reader.text(node, "`regex`", "a regular expression")?;
    match Regex::new(text) {
        Ok(regex) => Some(regex),
        Err(error) => {
            let problem = error.to_string();
            let last = problem.lines().last().unwrap_or_default();
            let label = last.trim_start_matches("error: ").to_owned();
            reader.error(node.span.clone(), "this regular expression cannot be used", label);
            None
        }
    }
}

/// Reads a pattern of JSON: as YAML, or as one text that is JSON already.
fn read_json(reader: &mut Reader<'_>, node: &Node) -> Option<JsonPattern> {
    match &node.kind {
        Kind::Scalar(text) if !node.is_typed && text.trim_start().starts_with(['{', '[']) => {
            read_json_text(reader, node, text)
        }
        Kind::Scalar(text) if node.is_typed => {
            let text = json::typed_scalar(reader, node, text)?;
            serde_json::from_str::<Value>(&text).ok().map(JsonPattern::from)
        }
        Kind::Nothing => Some(JsonPattern::Null),
        Kind::Scalar(text) => {
            let template = reader.template(node, text)?;
            check_steady(reader, node, text, &template)?;
            Some(JsonPattern::Text(template))
        }
        Kind::List(items) => {
            let items: Vec<_> = items.iter().map(|item| read_json(reader, item)).collect();
            items.into_iter().collect::<Option<_>>().map(JsonPattern::List)
        }
        Kind::Map(entries) if entries.iter().any(|(key, _)| is_test(key)) => {
            let tests: Vec<_> =
                entries.iter().map(|(key, value)| read_test(reader, key, value)).collect();
            tests.into_iter().collect::<Option<_>>().map(JsonPattern::Tests)
        }
        Kind::Map(entries) => {
            let members: Vec<_> = entries
                .iter()
                .map(|(key, value)| {
                    let key = reader.text(key, "a JSON key", "a text")?;
                    Some((key.into(), read_json(reader, value)?))
                })
                .collect();
            members.into_iter().collect::<Option<_>>().map(JsonPattern::Object)
        }
    }
}

fn read_json_text(reader: &mut Reader<'_>, node: &Node, text: &str) -> Option<JsonPattern> {
    let span = reader.first_line(&node.span);
    if text.contains("${") {
        let title = "JSON that is written as one text has no variables in an `expect`";
        reader.error(span, title, "write it as YAML: {id: \"${user.id}\"}").help =
            Some("there, a text that is one variable also matches a number".to_owned());
        return None;
    }
    match serde_json::from_str::<Value>(text.trim()) {
        Ok(value) => Some(JsonPattern::from(value)),
        Err(error) => {
            let label = format!("{error}; as YAML it needs no quotes: {{body: hello}}");
            reader.error(span, "`json` is not JSON", label);
            None
        }
    }
}

fn is_test(key: &Node) -> bool {
    key.scalar().is_some_and(|name| name.starts_with('$'))
}

fn read_test(reader: &mut Reader<'_>, key: &Node, value: &Node) -> Option<JsonTest> {
    let name = reader.text(key, "a comparison", "a name such as $gt")?;
    let order = |reader: &mut Reader<'_>, order| {
        let text = reader.text(value, &format!("`{name}`"), "a number")?;
        let bound = match value.is_typed {
            true => Template::from_bytes(json::typed_scalar(reader, value, text)?.into_bytes()),
            false => reader.template(value, text)?,
        };
        check_steady(reader, value, text, &bound)?;
        let is_number = |bound: &[u8]| {
            let number =
                str::from_utf8(bound).ok().and_then(|text| text.trim().parse::<f64>().ok());
            number.is_some_and(f64::is_finite)
        };
        let is_number = bound.as_literal().is_none_or(is_number);
        if !is_number {
            let title = format!("`{name}` compares with a number");
            reader.error(value.span.clone(), title, "for example {n: {$gt: 5}}");
            return None;
        }
        Some(JsonTest::Order(order, bound))
    };
    match name {
        "$exists" => {
            let known = [("true", true), ("false", false)];
            reader.one_of(value, "`$exists`", &known).map(JsonTest::Exists)
        }
        "$lt" => order(reader, JsonOrder::Less),
        "$lte" => order(reader, JsonOrder::LessOrEqual),
        "$gt" => order(reader, JsonOrder::Greater),
        "$gte" => order(reader, JsonOrder::GreaterOrEqual),
        "$ne" => read_scalar(reader, value, "`$ne`").map(JsonTest::Not),
        "$regex" => read_regex(reader, value).map(JsonTest::Regex),
        "$in" => {
            let Kind::List(items) = &value.kind else {
                reader.wrong_kind(value, "`$in`", "a list such as [open, closed]");
                return None;
            };
            let items: Vec<_> =
                items.iter().map(|item| read_scalar(reader, item, "an item of `$in`")).collect();
            items.into_iter().collect::<Option<_>>().map(JsonTest::OneOf)
        }
        _ => {
            reader.unknown(key.span.clone(), &format!("comparison `{name}`"), name, &TESTS);
            None
        }
    }
}

fn read_scalar(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<JsonPattern> {
    if matches!(node.kind, Kind::List(_) | Kind::Map(_)) {
        reader.wrong_kind(node, what, "a text, a number, true, false or null");
        return None;
    }
    read_json(reader, node)
}

/// Reads `capture`, a mapping from names to places in the message.
pub(crate) fn read_captures(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Vec<Capture>> {
    read_captures_with(reader, fields, &mut |reader, slot, name, node| {
        read_capture(reader, slot, name, node).map(Some)
    })
}

/// Reader of one capture: its place among the user's values, its name, and its node. Returns
/// nothing for one that is no part of a message.
type CaptureReader<'f> =
    dyn FnMut(&mut Reader<'_>, u16, String, &Node) -> Option<Option<Capture>> + 'f;

/// Reads `capture`, each of its parts with `read`.
pub(crate) fn read_captures_with(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    read: &mut CaptureReader<'_>,
) -> Option<Vec<Capture>> {
    let Some(node) = fields.get("capture") else { return Some(Vec::new()) };
    let Kind::Map(entries) = &node.kind else {
        reader.wrong_kind(node, "`capture`", "a mapping such as {id: /user/id}");
        return None;
    };
    let captures: Vec<_> = entries
        .iter()
        .map(|(key, value)| {
            let name = read_value_name(reader, key)?;
            // A mistake in the place is no mistake of those that use the value.
            let slot = reader.define(key, &name, false);
            read(reader, slot, name, value)
        })
        .collect();
    let captures: Option<Vec<_>> = captures.into_iter().collect();
    captures.map(|captures| captures.into_iter().flatten().collect())
}

/// Reads one part of a message to keep.
pub(crate) fn read_capture(
    reader: &mut Reader<'_>,
    slot: u16,
    name: String,
    node: &Node,
) -> Option<Capture> {
    Some(Capture { slot, name, place: read_place(reader, node)? })
}

/// Reads `expect` of an HTTP request: the node of its status, and the pattern of its body.
pub(crate) fn read_http_body<'n>(
    reader: &mut Reader<'_>,
    node: &'n Node,
) -> Option<(Option<&'n Node>, Option<Option<Pattern>>)> {
    let what = "`expect` of a request";
    let fields = reader.fields(node, what, &keys(&["status"]))?;
    let status = fields.get("status");
    let has_pattern = MESSAGE_KEYS.iter().any(|key| fields.get(key).is_some());
    if status.is_some() && !has_pattern {
        return Some((status, Some(None)));
    }
    Some((status, read_pattern(reader, &fields, what).map(Some)))
}

/// Reads `expect` and `capture` of a request: what the response of an ok must be.
pub(crate) fn read_response(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
) -> Option<Option<MessagePattern>> {
    let pattern = match fields.get("expect") {
        None => Some(JsonPattern::Tests(Vec::new())),
        Some(node) => read_json(reader, node),
    };
    let captures = read_captures(reader, fields)?;
    let is_given = fields.get("expect").is_some() || !captures.is_empty();
    let pattern = Pattern::Json(pattern?);
    Some(is_given.then(|| MessagePattern::new(pattern, captures, false)))
}

/// Reads `payload` of an event that is awaited: what it must contain.
pub(crate) fn read_payload(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
) -> Option<Option<JsonPattern>> {
    reader.optional(fields, "payload", read_json)
}

/// Reads the name of a value that a step stores.
pub(crate) fn read_value_name(reader: &mut Reader<'_>, node: &Node) -> Option<String> {
    let name = reader.text(node, "the key of a value", "a name such as token")?;
    let taken = reader.names.is_data_file(name);
    if is_name(name) && !is_reserved(name) && !taken {
        return Some(name.to_owned());
    }
    let label = if taken {
        "a data file has this name"
    } else {
        "a letter, then letters, digits and _; not user, env, sent, counter or probe"
    };
    reader.error(node.span.clone(), format!("`{name}` cannot name a value"), label);
    None
}

fn read_place(reader: &mut Reader<'_>, node: &Node) -> Option<CapturePlace> {
    if let Some(text) = node.scalar() {
        if let Some(place) = JsonPlace::parse_pointer(text) {
            return Some(CapturePlace::Json(place));
        }
        let label = match text.strip_prefix("$.").or_else(|| text.strip_prefix('$')) {
            Some(rest) => format!("write /{}", rest.replace(['.', '['], "/").replace(']', "")),
            None => format!("begin with /, as in /{}", text.replace('.', "/")),
        };
        let title = "a place in JSON is a JSON pointer such as /user/id";
        reader.error(node.span.clone(), title, label);
        return None;
    }
    let fields = reader.fields(node, "a capture", &["json", "regex"])?;
    let forms: [Form<CapturePlace>; 2] = [
        ("json", |reader, node| match reader.text(node, "`json`", "a JSON pointer") {
            Some(_) => read_place(reader, node),
            None => None,
        }),
        ("regex", |reader, node| read_regex(reader, node).map(CapturePlace::Regex)),
    ];
    reader.one_form(&fields, "a capture", "place", &forms)
}

/// Comparisons of a value of JSON.
const TESTS: [&str; 8] = ["$exists", "$lt", "$lte", "$gt", "$gte", "$ne", "$regex", "$in"];

/// Longest text that `expect` looks for.
const PATTERN_BYTES_MAX: usize = 64 * 1024;
