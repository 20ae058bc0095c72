//! `expect`: waits for an answer.

use serde_json::Value;

use super::prelude::*;
use crate::program::{Matcher, MessagePattern, Pattern};
use crate::scenario::reader::Form;
use crate::scenario::values::{read_hex, read_length};

pub(super) const KIND: StepKind = StepKind {
    name: "expect",
    example: "expect: ok",
    protocols: &[Protocol::Tcp, Protocol::Ws],
    form: StepForm::Value(read),
};

#[derive(Debug)]
pub(super) struct Expect {
    pub(super) answer: Answer,
    pub(super) timeout: Duration,
}

#[derive(Debug)]
pub(super) enum Answer {
    /// Bytes of a TCP stream.
    Bytes(Matcher),
    /// A whole WebSocket message.
    Message {
        pattern: Pattern,
        /// True to skip other messages; otherwise they are a mismatch.
        skip_others: bool,
    },
}

impl Action for Expect {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.require_connection();
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let timeout_ns = nanos(self.timeout);
        let (op, skips_others) = match &self.answer {
            Answer::Bytes(matcher) => {
                (Op::ExpectBytes { matcher: compiler.matcher(matcher), timeout_ns }, false)
            }
            Answer::Message { pattern, skip_others } => {
                let rule = MessagePattern::new(pattern.clone(), *skip_others);
                (Op::ExpectMessage { pattern: compiler.pattern(rule), timeout_ns }, *skip_others)
            }
        };
        let role = OpRole::Expects { skips_others };
        let latency = Some(LatencyKind::Message);
        compiler.push(op, OpFacts { latency, ..OpFacts::of_role(role) });
    }
}

fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Box<dyn Action>> {
    Some(Box::new(match reader.protocol {
        Protocol::Tcp => read_bytes(reader, node)?,
        Protocol::Ws | Protocol::Phoenix => read_message(reader, node)?,
    }))
}

fn read_bytes(reader: &mut Reader<'_>, node: &Node) -> Option<Expect> {
    if node.scalar().is_some() {
        let matcher = Matcher::literal(&read_pattern(reader, node)?);
        return Some(Expect { answer: Answer::Bytes(matcher), timeout: TIMEOUT_DEFAULT });
    }
    let fields = reader.fields(node, "`expect`", &["text", "hex", "bytes", "until", "timeout"])?;
    let timeout = read_timeout(reader, fields.get("timeout"), TIMEOUT_DEFAULT);
    let forms: [Form<Matcher>; 4] = [
        ("text", |reader, node| Some(Matcher::literal(&read_pattern(reader, node)?))),
        ("hex", |reader, node| Some(Matcher::literal(&read_hex(reader, node, "`hex`")?))),
        ("bytes", |reader, node| Some(Matcher::bytes(read_length(reader, node, "`bytes`")?))),
        ("until", |reader, node| Some(Matcher::until(&read_pattern(reader, node)?))),
    ];
    let matcher = reader.one_form(&fields, "`expect`", "pattern", &forms)?;
    Some(Expect { answer: Answer::Bytes(matcher), timeout: timeout? })
}

fn read_message(reader: &mut Reader<'_>, node: &Node) -> Option<Expect> {
    if node.scalar().is_some() {
        let pattern = Pattern::Text(read_pattern(reader, node)?);
        let answer = Answer::Message { pattern, skip_others: false };
        return Some(Expect { answer, timeout: TIMEOUT_DEFAULT });
    }
    let known = ["text", "json", "binary", "bytes", "contains", "skip_others", "timeout"];
    let fields = reader.fields(node, "`expect`", &known)?;
    let timeout = read_timeout(reader, fields.get("timeout"), TIMEOUT_DEFAULT);
    let skip_others = reader.flag(&fields, "skip_others", false);
    let forms: [Form<Pattern>; 5] = [
        ("text", |reader, node| read_pattern(reader, node).map(Pattern::Text)),
        ("json", |reader, node| read_json(reader, node).map(Pattern::Json)),
        ("binary", |reader, node| read_hex(reader, node, "`binary`").map(Pattern::Binary)),
        ("bytes", |reader, node| read_length(reader, node, "`bytes`").map(Pattern::Bytes)),
        ("contains", |reader, node| read_pattern(reader, node).map(Pattern::Contains)),
    ];
    let pattern = reader.one_form(&fields, "`expect`", "pattern", &forms)?;
    let answer = Answer::Message { pattern, skip_others: skip_others? };
    Some(Expect { answer, timeout: timeout? })
}

/// Reads a text without variables: expected answers are known before the run.
fn read_pattern(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<u8>> {
    let text = reader.text(node, "`expect`", "a text")?;
    let literal =
        Template::parse(text).ok().and_then(|template| template.as_literal().map(<[u8]>::to_vec));
    match literal {
        None => {
            let at = text.find("${").unwrap_or(0);
            let span = reader.inner_span(node, at..text.len());
            reader
                .error(span, "`expect` cannot contain variables", "a plain `${` is written `$${`")
                .help = Some(
                "where the answer varies, wait for `{bytes: n}` or `{until: text}`".to_owned(),
            );
        }
        Some(bytes) if bytes.is_empty() => {
            reader.error(node.span.clone(), "`expect` is empty", "at least one byte");
        }
        Some(bytes) if bytes.len() > PATTERN_BYTES_MAX => {
            let label = format!("at most {PATTERN_BYTES_MAX} bytes");
            reader.error(node.span.clone(), "the expected text is too long", label);
        }
        Some(bytes) => return Some(bytes),
    }
    None
}

fn read_json(reader: &mut Reader<'_>, node: &Node) -> Option<Value> {
    let template = json::read(reader, node, "`json`")?;
    let value = template.as_literal().and_then(|text| serde_json::from_slice(text).ok());
    if value.is_none() {
        let span = reader.first_line(&node.span);
        reader.error(span, "`expect` cannot contain variables", "leave out what varies").help =
            Some("a message may contain more than what is expected".to_owned());
    }
    value
}

/// Default time-out of an answer.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);

/// Longest text that `expect` looks for.
const PATTERN_BYTES_MAX: usize = 64 * 1024;
