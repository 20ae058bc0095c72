//! `send`: sends a message.

use throng_base::Instant;

use super::prelude::*;
use crate::program::{Frame, LimitedAction, UnsendablePart};
use crate::protocols::MessageForm;
use crate::scenario::reader::Form;
use crate::scenario::values::{read_hex, read_length, read_message_text, read_some_hex};
use crate::user::record::Sample;
use crate::user::{Payload, unasked};

pub(crate) const KIND: StepKind = StepKind::new("send", "send: hello", StepForm::Value(read));

#[derive(Debug)]
pub(super) struct Send {
    pub(super) payload: SendPayload,
    /// False if nothing answers it.
    pub(super) reply: bool,
}

#[derive(Debug)]
pub(super) enum SendPayload {
    /// A text with variables, or bytes.
    Template(Template, Frame),
    /// This many random bytes, different each time; at least 1. On a WebSocket, one binary message.
    Random(u32),
}

impl Action for Send {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.acts(LimitedAction::Send);
        flow.require_connection();
        if flow.is_half_closed() {
            flow.error("`send` after `close: half`", "the sending side is closed");
        }
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        compiler.limit(LimitedAction::Send);
        let (op, bytes_max) = match &self.payload {
            SendPayload::Template(template, frame) => {
                let op = Op::Send { template: compiler.template(template), frame: *frame };
                // An empty message is one, too.
                (op, template.bytes_max().max(1))
            }
            SendPayload::Random(bytes) => (Op::SendRandom { bytes: *bytes }, *bytes as usize),
        };
        let role = OpRole::Sends { is_answered: self.reply };
        let latency = Some(Operation::Message);
        compiler.push(op, OpFacts { latency, bytes_max, ..OpFacts::of_role(role) });
    }
}

fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Box<dyn Action>> {
    let send = read_payload(reader, node);
    // What follows may use the message, even if this step has a mistake.
    reader.names.define_sent();
    Some(Box::new(send?))
}

fn read_payload(reader: &mut Reader<'_>, node: &Node) -> Option<Send> {
    let (frame, forms): (_, &[Form<SendPayload>]) = match reader.protocol.messages {
        MessageForm::Bytes => (Frame::Raw, BYTES),
        _ => (Frame::Text, MESSAGES),
    };
    if node.scalar().is_some() {
        let payload = SendPayload::Template(read_message_text(reader, node)?, frame);
        return Some(Send { payload, reply: true });
    }
    let keys: Vec<_> = forms.iter().map(|(key, _)| *key).chain(["reply"]).collect();
    let fields = reader.fields(node, "`send`", &keys)?;
    let reply = reader.flag(&fields, "reply", true);
    let payload = reader.one_form(&fields, "`send`", "payload", forms);
    Some(Send { payload: payload?, reply: reply? })
}

/// What is sent over TCP.
const BYTES: &[Form<SendPayload>] = &[
    ("text", |reader, node| read_text(reader, node, Frame::Raw)),
    ("hex", |reader, node| {
        Some(SendPayload::Template(read_some_hex(reader, node, "`hex`")?, Frame::Raw))
    }),
    ("random", read_random),
];

/// What is sent over a WebSocket, as one message.
const MESSAGES: &[Form<SendPayload>] = &[
    ("text", |reader, node| read_text(reader, node, Frame::Text)),
    ("json", |reader, node| {
        Some(SendPayload::Template(json::read(reader, node, "`json`")?, Frame::Text))
    }),
    ("binary", |reader, node| {
        Some(SendPayload::Template(read_hex(reader, node, "`binary`")?, Frame::Binary))
    }),
    ("random", read_random),
];

fn read_text(reader: &mut Reader<'_>, node: &Node, frame: Frame) -> Option<SendPayload> {
    Some(SendPayload::Template(read_message_text(reader, node)?, frame))
}

fn read_random(reader: &mut Reader<'_>, node: &Node) -> Option<SendPayload> {
    read_length(reader, node, "`random`", RANDOM_BYTES_MAX).map(SendPayload::Random)
}

/// Sends the message of a template.
pub(crate) fn begin(cx: &mut UserContext<'_>, template: u32, frame: Frame) -> StepOutcome {
    if let Some(flow) = check_can_send(cx) {
        return flow;
    }
    let Some(begin) = write(cx, template, frame) else {
        return failure::fail_step(cx, ErrorKind::BadValue);
    };
    let text = if frame == Frame::Raw { &cx.out[begin..] } else { &cx.encoder.text };
    for part in cx.rules.program.sent_parts() {
        part.store(text, |slot, value| cx.user.memory.store(slot, value));
    }
    complete(cx)
}

/// Writes the message of a template to the output. Returns the length of the output before it;
/// `None` if a value cannot be sent, and nothing is.
pub(crate) fn write(cx: &mut UserContext<'_>, template: u32, frame: Frame) -> Option<usize> {
    let program = cx.rules.program;
    let template = program.template(template);
    let begin = cx.out.len();
    let text = if frame == Frame::Raw {
        &mut *cx.out
    } else {
        cx.encoder.text.clear();
        &mut cx.encoder.text
    };
    let fault = cx.user.render(program, |scope| {
        template.render(scope, text);
        scope.fault
    });
    if let Some(fault) = fault {
        cx.out.truncate(begin);
        cx.sample(Sample::Unsendable(&UnsendablePart::Value(fault)));
        return None;
    }
    match frame {
        Frame::Raw => cx.trace_output(begin, |bytes| Payload::Bytes(bytes)),
        Frame::Text => cx.write_text(),
        Frame::Binary => cx.write_binary(),
    }
    Some(begin)
}

/// Sends random bytes: raw on TCP, as one binary message on a WebSocket.
pub(crate) fn begin_random(cx: &mut UserContext<'_>, bytes: usize) -> StepOutcome {
    if let Some(flow) = check_can_send(cx) {
        return flow;
    }
    write_random(cx, bytes);
    complete(cx)
}

/// Writes random bytes to the output.
pub(crate) fn write_random(cx: &mut UserContext<'_>, bytes: usize) {
    let is_raw = cx.protocol().messages == MessageForm::Bytes;
    let out = if is_raw { &mut *cx.out } else { &mut cx.encoder.text };
    let begin = if is_raw { out.len() } else { 0 };
    out.resize(begin + bytes, 0);
    cx.user.prng.fill(&mut out[begin..]);
    if is_raw {
        cx.trace_output(begin, |bytes| Payload::Bytes(bytes));
    } else {
        cx.write_binary();
    }
}

/// Notes that a message has been sent. A large output leaves before the next step, which then sees
/// whether the server accepts it.
fn complete(cx: &mut UserContext<'_>) -> StepOutcome {
    if cx.rules.program.is_unanswered(cx.user.pc()) {
        return sent(cx);
    }
    let user = &*cx.user;
    let begins_anew = user.message_from == Instant::FAR || user.flags.is_answering();
    let is_ahead = user.unanswered > 0 && !cx.rules.program.sends_exceed_answers(user.pc());
    if begins_anew && is_ahead {
        unasked::push_to_window(cx);
    } else if begins_anew {
        if cx.rules.program.next_answer(cx.user.pc()).is_receive {
            // It takes what has come before, too.
            unasked::note_asked_at(cx);
        } else {
            unasked::discard_all(cx);
        }
        cx.user.message_from = cx.user.intended;
        cx.user.unanswered = 0;
        cx.user.flags.set_answering(false);
    }
    cx.user.unanswered = cx.user.unanswered.saturating_add(1);
    sent(cx)
}

/// Counts a message that has been sent.
fn sent(cx: &mut UserContext<'_>) -> StepOutcome {
    cx.user.intended = cx.now;
    cx.user.flags.note_sent();
    cx.count(|c| c.messages_sent += 1);
    if cx.out.len() < SEND_BYTES_MAX {
        return StepOutcome::Next;
    }
    cx.encoder.large_bytes += cx.out.len();
    StepOutcome::Flush
}

/// Checks whether the user can send. Returns `None` if it can. Skips the step if there is no
/// connection, blocks the user while the server has not accepted what was sent before, and lets it
/// wait for the next turn of its core if users have sent much in this one.
pub(crate) fn check_can_send(cx: &mut UserContext<'_>) -> Option<StepOutcome> {
    if !cx.socket.is_open() {
        return Some(failure::skip_step(cx, ErrorKind::NotConnected));
    }
    if let Some(flow) = check_has_space(cx) {
        return Some(flow);
    }
    (cx.encoder.large_bytes >= LARGE_BYTES_MAX).then(|| {
        cx.user.set_wait(UserWait::Yield);
        cx.wait_until(Deadline::Exact(cx.now));
        StepOutcome::Wait
    })
}

/// Blocks the user while the server has not accepted what was sent before. Returns `None` if it
/// has.
pub(crate) fn check_has_space(cx: &mut UserContext<'_>) -> Option<StepOutcome> {
    cx.is_blocked().then(|| {
        cx.user.set_wait(UserWait::SendSpace);
        cx.wait_until(Deadline::Never);
        StepOutcome::Wait
    })
}

/// Bytes of large messages after which a core makes no further message in the same turn: making one
/// takes time, in which nothing else happens on the core.
const LARGE_BYTES_MAX: usize = 1 << 20;
/// Longest message of random bytes: it is made in one turn of its core.
const RANDOM_BYTES_MAX: (u32, &str) = (16 << 20, "at most 16MiB: repeat the step to send more");
/// Output bytes at which a user hands them to the kernel.
pub(crate) const SEND_BYTES_MAX: usize = 256 << 10;
