//! `send`: sends a message.

use super::prelude::*;
use crate::program::Frame;
use crate::scenario::reader::Form;
use crate::scenario::values::{read_hex, read_length, read_message_text};

pub(super) const KIND: StepKind = StepKind {
    name: "send",
    example: "send: hello",
    protocols: &[Protocol::Tcp, Protocol::Ws],
    form: StepForm::Value(read),
};

#[derive(Debug)]
pub(super) enum Send {
    /// A text with variables, or bytes.
    Template(Template, Frame),
    /// This many random bytes, different each time; at least 1. On a WebSocket, one binary message.
    Random(u32),
}

impl Action for Send {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.require_connection();
        if flow.is_half_closed() {
            flow.error("`send` after `close: half`", "the sending side is closed");
        }
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let (op, bytes_max) = match self {
            Self::Template(template, frame) => {
                let op = Op::Send { template: compiler.template(template), frame: *frame };
                (op, template.bytes_max())
            }
            Self::Random(bytes) => (Op::SendRandom { bytes: *bytes }, *bytes as usize),
        };
        let latency = Some(LatencyKind::Message);
        compiler.push(op, OpFacts { latency, bytes_max, ..OpFacts::of_role(OpRole::Sends) });
    }
}

fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Box<dyn Action>> {
    let (frame, forms): (_, &[Form<Send>]) = match reader.protocol {
        Protocol::Tcp => (Frame::Raw, BYTES),
        Protocol::Ws | Protocol::Phoenix => (Frame::Text, MESSAGES),
    };
    if node.scalar().is_some() {
        return Some(Box::new(Send::Template(read_message_text(reader, node)?, frame)));
    }
    let keys: Vec<_> = forms.iter().map(|(key, _)| *key).collect();
    let fields = reader.fields(node, "`send`", &keys)?;
    Some(Box::new(reader.one_form(&fields, "`send`", "payload", forms)?))
}

/// What is sent over TCP.
const BYTES: &[Form<Send>] = &[
    ("text", |reader, node| Some(Send::Template(read_message_text(reader, node)?, Frame::Raw))),
    ("hex", |reader, node| {
        let bytes = read_hex(reader, node, "`hex`")?;
        Some(Send::Template(Template::from_bytes(bytes), Frame::Raw))
    }),
    ("random", read_random),
];

/// What is sent over a WebSocket, as one message.
const MESSAGES: &[Form<Send>] = &[
    ("text", |reader, node| Some(Send::Template(read_message_text(reader, node)?, Frame::Text))),
    ("json", |reader, node| Some(Send::Template(json::read(reader, node, "`json`")?, Frame::Text))),
    ("binary", |reader, node| {
        let bytes = read_hex(reader, node, "`binary`")?;
        Some(Send::Template(Template::from_bytes(bytes), Frame::Binary))
    }),
    ("random", read_random),
];

fn read_random(reader: &mut Reader<'_>, node: &Node) -> Option<Send> {
    read_length(reader, node, "`random`").map(Send::Random)
}
