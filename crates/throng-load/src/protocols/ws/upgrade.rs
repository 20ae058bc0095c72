//! The options of a WebSocket upgrade.

use std::time::Duration;

use throng_proto::phoenix::Vsn;
use throng_proto::websocket::DeflateOffer;

use super::deflate;
use crate::scenario::node::{Kind, Node};
use crate::scenario::reader::{Fields, Reader};
use crate::scenario::values::positive_duration;
use crate::scenario::{Escape, HeaderPlace, Segment, Template, is_token};

/// Default interval of Phoenix heartbeats, as in phoenix.js.
const HEARTBEAT_DEFAULT: Duration = Duration::from_secs(30);

/// Options of a WebSocket upgrade.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UpgradeOptions {
    /// Path in place of the target's.
    pub(crate) path: Option<Template>,
    /// Additional query parameters: names and values, percent-encoded.
    pub(crate) query: Vec<(String, Template)>,
    /// Additional header fields.
    pub(crate) headers: Vec<(String, Template)>,
    /// Offered subprotocols, most preferred first.
    pub(crate) subprotocols: Vec<String>,
    /// Offers of permessage-deflate, most preferred first.
    pub(crate) deflate: Vec<DeflateOffer>,
    /// Phoenix: version of the serialization.
    pub(crate) vsn: Vsn,
    /// Phoenix: time between the reply to a heartbeat and the next one, and time-out of that reply.
    pub(crate) heartbeat: Duration,
}

impl Default for UpgradeOptions {
    fn default() -> Self {
        Self {
            path: None,
            query: Vec::new(),
            headers: Vec::new(),
            subprotocols: Vec::new(),
            deflate: Vec::new(),
            vsn: Vsn::V2,
            heartbeat: HEARTBEAT_DEFAULT,
        }
    }
}

pub(crate) fn read(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<UpgradeOptions> {
    let mut upgrade = UpgradeOptions::default();
    if let Some(node) = fields.get("path") {
        upgrade.path = Some(read_path(reader, node, "/socket/websocket")?);
    }
    if let Some(node) = fields.get("query") {
        for (name, value) in read_pairs(reader, node, "`query`", "{room: 1}")? {
            let encoded = value.segments().iter().map(percent_encoded);
            let name = percent_encode(name.as_bytes());
            upgrade.query.push((name, Template::from_segments(encoded)));
        }
    }
    if let Some(node) = fields.get("headers") {
        upgrade.headers = read_headers(reader, node, HeaderPlace::Upgrade)?;
    }
    if let Some(node) = fields.get("subprotocols") {
        upgrade.subprotocols = read_subprotocols(reader, node)?;
    }
    upgrade.deflate = deflate::read(reader, fields)?;
    if let Some(node) = fields.get("vsn") {
        let known = [("1.0.0", Vsn::V1), ("2.0.0", Vsn::V2)];
        upgrade.vsn = reader.one_of(node, "`vsn`", &known)?;
    }
    if let Some(node) = fields.get("heartbeat") {
        upgrade.heartbeat = positive_duration(reader, node, "`heartbeat`")?;
    }
    Some(upgrade)
}

/// Reads a path. It goes into the first line of the request: printable ASCII without spaces (RFC
/// 9112 section 3.2).
pub(crate) fn read_path(reader: &mut Reader<'_>, node: &Node, example: &str) -> Option<Template> {
    let text = reader.text(node, "`path`", &format!("a path such as {example}"))?;
    let template = reader.template(node, text)?;
    let literals = |is_legal: fn(&u8) -> bool| {
        template.segments().iter().all(|segment| match segment {
            Segment::Literal(bytes) => bytes.iter().all(is_legal),
            _ => true,
        })
    };
    let begins = match template.segments().first() {
        Some(Segment::Literal(bytes)) => bytes.starts_with(b"/"),
        // It is checked when its value is known.
        Some(Segment::Variable(variable, _)) => variable.is_raw(),
        None => false,
    };
    let (label, fault) = if !begins {
        ("must begin with /", None)
    } else if !literals(u8::is_ascii_graphic) {
        let at = find_outside(text, |letter| !letter.is_ascii_graphic());
        let end = |at: usize| at + text[at..].chars().next().map_or(0, char::len_utf8);
        let label = "must be printable ASCII; percent-encode everything else, %20 for a space";
        (label, at.map(|at| at..end(at)))
    } else if !literals(|byte| *byte != b'#') {
        // RFC 9110 section 4.2.5.
        let label = "a fragment is never sent: remove `#` and what follows it, or write %23 for \
                     the character";
        (label, find_outside(text, |letter| letter == '#').map(|at| at..text.len()))
    } else {
        return Some(template.with_escape(Escape::Percent));
    };
    let span = fault.map_or(node.span.clone(), |fault| reader.inner_span(node, fault));
    let title = format!("`path` must be a path such as {example}");
    let mistake = reader.error(span, title, label);
    if let Some(Segment::Variable(variable, _)) = template.segments().first() {
        let help = format!(
            "the value is percent-encoded, a `/` too; if it is a whole path, write \
             ${{raw({variable})}}: it stays as it is"
        );
        mistake.help = Some(help);
    }
    None
}

/// Returns the index of the first letter that fits, outside of the variables of a text.
fn find_outside(text: &str, is: fn(char) -> bool) -> Option<usize> {
    let mut at = 0;
    for (index, part) in text.split("${").enumerate() {
        let begin = if index == 0 { 0 } else { part.find('}').map_or(part.len(), |end| end + 1) };
        if let Some(found) = part[begin..].find(is) {
            return Some(at + begin + found);
        }
        at += part.len() + 2;
    }
    None
}

/// Reads additional header fields of a request or an upgrade.
pub(crate) fn read_headers(
    reader: &mut Reader<'_>,
    node: &Node,
    place: HeaderPlace,
) -> Option<Vec<(String, Template)>> {
    let headers = read_pairs(reader, node, "`headers`", "{origin: http://localhost}")?;
    let Kind::Map(entries) = &node.kind else { return None };
    for ((name, value), (key, _)) in headers.iter().zip(entries) {
        let wrong = if place.excludes(name) {
            Some("throng sets this header itself")
        } else if !is_token(name) {
            Some("a name is letters, digits and !#$%&'*+-.^_`|~ (RFC 9110 section 5.1)")
        } else {
            let breaks = |segment: &Segment| match segment {
                Segment::Literal(bytes) => {
                    bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
                }
                _ => false,
            };
            value.segments().iter().any(breaks).then_some("its value has a line break in it")
        };
        if let Some(label) = wrong {
            reader.error(key.span.clone(), format!("the header `{name}` cannot be sent"), label);
            return None;
        }
    }
    let escaped = |(name, value): (_, Template)| (name, value.with_escape(Escape::Header));
    Some(headers.into_iter().map(escaped).collect())
}

fn read_subprotocols(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<String>> {
    let expected = "a list of names such as [chat]";
    let Kind::List(items) = &node.kind else {
        reader.wrong_kind(node, "`subprotocols`", expected);
        return None;
    };
    let names = items.iter().map(|item| {
        let name = reader.text(item, "a subprotocol", "a name")?;
        if !is_token(name) {
            let label = "a name is letters, digits and !#$%&'*+-.^_`|~ (RFC 6455 section 4.1)";
            reader.error(item.span.clone(), "invalid name of a subprotocol", label);
            return None;
        }
        Some(name.to_owned())
    });
    let names: Vec<_> = names.collect();
    names.into_iter().collect()
}

/// Reads a mapping from names to texts with variables.
pub(crate) fn read_pairs(
    reader: &mut Reader<'_>,
    node: &Node,
    what: &str,
    example: &str,
) -> Option<Vec<(String, Template)>> {
    let Kind::Map(entries) = &node.kind else {
        reader.wrong_kind(node, what, &format!("a mapping such as {example}"));
        return None;
    };
    let pairs = entries.iter().map(|(key, value)| {
        let key = reader.text(key, &format!("a key of {what}"), "a name")?;
        let text = reader.text(value, &format!("`{key}` in {what}"), "a text")?;
        Some((key.to_owned(), reader.template(value, text)?))
    });
    let pairs: Vec<_> = pairs.collect();
    pairs.into_iter().collect()
}

pub(crate) fn percent_encoded(segment: &Segment) -> Segment {
    match segment {
        Segment::Literal(bytes) => Segment::Literal(percent_encode(bytes).into_bytes().into()),
        Segment::Variable(variable, _) => Segment::escaped(variable, Escape::Percent),
    }
}

pub(crate) fn percent_encode(bytes: &[u8]) -> String {
    let mut encoded = bytes.to_vec();
    Escape::Percent.apply(&mut encoded, 0);
    encoded.into_iter().map(char::from).collect()
}
