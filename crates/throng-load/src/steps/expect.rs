//! `expect`: waits for an answer.

mod pattern;

use std::borrow::Cow;

use throng_base::Instant;

use super::prelude::*;
use crate::program::{
    BytesPattern, IncomingMessage, MatchProgress, Matcher, MessagePattern, Pattern, Variable,
};
use crate::protocols::MessageForm;
use crate::scenario::reader::Fields;
use crate::user::named;
use crate::user::record::Sample;
use crate::user::state::Packed;
use crate::user::timing::{AnswerTiming, CLOCK_ERROR_MAX};
use crate::user::unasked;

pub(crate) use pattern::check_steady;
use pattern::{BYTES_KEYS, keys, read_matcher, read_pattern, read_text, read_whole_text};
pub(crate) use pattern::{
    read_capture, read_captures_with, read_http_body, read_regex, read_response, read_value_name,
};
pub(crate) use pattern::{read_captures, read_payload};

pub(crate) const KIND: StepKind = StepKind::new("expect", "expect: ok", StepForm::Value(read))
    .measured(StepMeasure::As(Operation::Message));

#[derive(Debug)]
pub(crate) struct Expect {
    pub(crate) answer: Answer,
    pub(crate) timeout: Duration,
}

#[derive(Debug)]
pub(crate) enum Answer {
    /// Bytes of a TCP stream.
    Bytes(BytesPattern),
    /// A whole WebSocket message.
    Message(MessagePattern),
}

impl Action for Expect {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.require_connection();
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let op = self.op(compiler);
        let latency = Some(Operation::Message);
        compiler.push(op, OpFacts { latency, ..OpFacts::of_role(OpRole::Expects) });
    }
}

impl Expect {
    /// Adds what is expected to the program. Returns the op.
    pub(crate) fn op(&self, compiler: &mut Compiler<'_>) -> Op {
        let timeout_ns = nanos(self.timeout);
        match &self.answer {
            Answer::Bytes(rule) => {
                let pattern = compiler.bytes_pattern(rule.clone());
                Op::ExpectBytes { pattern, timeout_ns }
            }
            Answer::Message(rule) => {
                let mut rule = rule.clone();
                rule.identifies = identifies(&rule.pattern, compiler);
                Op::ExpectMessage { pattern: compiler.pattern(rule), timeout_ns }
            }
        }
    }
}

/// Reports whether each message that is sent has another answer: the pattern has the counter, or a
/// part of the sent message, and each message that is sent has a counter or a UUID.
fn identifies(pattern: &Pattern, compiler: &Compiler<'_>) -> bool {
    let is_sent =
        |part: &Variable| matches!(part, Variable::Stored { name, .. } if name.starts_with("sent"));
    let is_unique = |part: &Variable| matches!(part, Variable::Counter | Variable::Uuid);
    pattern.uses(&|part| *part == Variable::Counter)
        || pattern.uses(&is_sent) && compiler.sent_messages().all(|sent| sent.uses(is_unique))
}

fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Box<dyn Action>> {
    Some(Box::new(read_step(reader, node, "`expect`")?))
}

/// Reads what an `expect` or a `receive` waits for.
pub(crate) fn read_step(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<Expect> {
    match reader.protocol.messages {
        MessageForm::Bytes => read_bytes(reader, node, what),
        _ => read_message(reader, node, what),
    }
}

fn read_bytes(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<Expect> {
    if node.scalar().is_some() {
        let matcher = Matcher::literal(read_text(reader, node)?);
        let answer = Answer::Bytes(BytesPattern::new(matcher, Vec::new()));
        return Some(Expect { answer, timeout: TIMEOUT_DEFAULT });
    }
    let known: Vec<_> = BYTES_KEYS.into_iter().chain(["capture", "timeout"]).collect();
    let fields = reader.fields(node, what, &known)?;
    let timeout = read_timeout(reader, fields.get("timeout"), TIMEOUT_DEFAULT);
    let matcher = read_matcher(reader, &fields, what);
    let captures = read_captures(reader, &fields);
    let answer = Answer::Bytes(BytesPattern::new(matcher?, captures?));
    Some(Expect { answer, timeout: timeout? })
}

fn read_message(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<Expect> {
    if node.scalar().is_some() {
        let pattern = Pattern::Text(read_whole_text(reader, node)?);
        let answer = Answer::Message(MessagePattern::new(pattern, Vec::new(), false));
        return Some(Expect { answer, timeout: TIMEOUT_DEFAULT });
    }
    let fields = reader.fields(node, what, &keys(&["capture", "skip_others", "timeout"]))?;
    let timeout = read_timeout(reader, fields.get("timeout"), TIMEOUT_DEFAULT);
    let skip_others = reader.flag(&fields, "skip_others", false);
    let pattern = read_pattern(reader, &fields, what);
    let captures = read_captures(reader, &fields);
    let answer = Answer::Message(MessagePattern::new(pattern?, captures?, skip_others?));
    Some(Expect { answer, timeout: timeout? })
}

/// Reads a rule of `on_message`: its fields, and which messages it takes.
pub(crate) fn read_rule_pattern<'n>(
    reader: &mut Reader<'_>,
    node: &'n Node,
    what: &str,
) -> Option<(Fields<'n>, Option<MessagePattern>)> {
    let fields = reader.fields(node, what, &keys(&["capture", "do"]))?;
    let pattern = read_pattern(reader, &fields, what);
    let captures = read_captures(reader, &fields);
    let pattern = pattern
        .zip(captures)
        .map(|(pattern, captures)| MessagePattern::new(pattern, captures, true));
    Some((fields, pattern))
}

/// Default time-out of an answer.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);

/// Begins to wait for bytes of a stream. Bytes that arrived early are the beginning of the answer,
/// or all of it and more.
pub(crate) fn begin_bytes(cx: &mut UserContext<'_>, pattern: u32, timeout_ns: u64) -> StepOutcome {
    count_expected(cx);
    let early = unasked::take_kept_bytes(cx.user);
    let is_open = cx.socket.is_open();
    if !is_open && early.is_none() {
        return failure::skip_step(cx, ErrorKind::NotConnected);
    }
    if cx.rules.program.bytes_pattern(pattern).has_captures() {
        cx.user.memory.forget_answer();
    }
    cx.user.set_wait(UserWait::Answer { matched: Packed::new(0) });
    cx.wait_until(Deadline::Coarse(cx.now + Duration::from_nanos(timeout_ns)));
    let fed = early.and_then(|(bytes, timing)| feed(cx, pattern, &bytes, timing));
    match fed {
        Some(flow) => flow,
        None if is_open => StepOutcome::Wait,
        None => {
            cx.wait_until(Deadline::Never);
            failure::skip_step(cx, ErrorKind::NotConnected)
        }
    }
}

/// Begins to wait for a message. Looks at messages that arrived early first.
pub(crate) fn begin_message(
    cx: &mut UserContext<'_>,
    pattern: u32,
    timeout_ns: u64,
) -> StepOutcome {
    count_expected(cx);
    cx.user.set_wait(UserWait::Answer { matched: Packed::new(0) });
    match unasked::take_kept_answer(cx, pattern) {
        Ok(Some(timing)) => answered(cx, timing),
        Ok(None) if cx.socket.is_open() => {
            cx.wait_until(Deadline::Coarse(cx.now + Duration::from_nanos(timeout_ns)));
            StepOutcome::Wait
        }
        Ok(None) => failure::skip_step(cx, ErrorKind::NotConnected),
        Err(kind) => failure::fail_step(cx, kind),
    }
}

/// Counts the answer that the present step waits for. What comes unasked is none.
fn count_expected(cx: &mut UserContext<'_>) {
    if !cx.rules.program.is_receive(cx.user.pc()) {
        cx.count(|c| c.messages_expected += 1);
    }
}

/// Handles bytes that arrive on a stream.
pub(crate) fn bytes_received(cx: &mut UserContext<'_>, bytes: &[u8]) -> StepOutcome {
    let timing = cx.timing();
    cx.user.flags.note_received();
    if let Some(UserWait::Answer { .. }) = cx.user.wait() {
        let is_receive = cx.rules.program.is_receive(cx.user.pc());
        if !is_receive && cx.user.has_asked_after(timing.arrived_at()) {
            // They arrived before the request was sent and were only read after it.
            cx.count(|c| c.messages_unasked += 1);
            // What came before the first request is a greeting.
            if cx.user.flags.has_sent_again() {
                cx.user.flags.set_receives_lookalikes(true);
            } else {
                cx.user.flags.set_greeted();
            }
            return StepOutcome::Wait;
        }
        if let Op::ExpectBytes { pattern, .. } = cx.op() {
            return feed(cx, pattern, bytes, timing).unwrap_or(StepOutcome::Wait);
        }
    }
    unasked::receive_bytes(cx, cx.user.pc(), bytes, timing, false);
    StepOutcome::Wait
}

/// Handles a message that arrives on a WebSocket.
pub(crate) fn message_received(
    cx: &mut UserContext<'_>,
    message: IncomingMessage<'_>,
) -> StepOutcome {
    cx.user.flags.note_received();
    let (Some(UserWait::Answer { .. }), Op::ExpectMessage { pattern, .. }) =
        (cx.user.wait(), cx.op())
    else {
        unasked::receive_message(cx, message);
        return StepOutcome::Wait;
    };
    let timing = cx.timing();
    let program = cx.rules.program;
    let is_receive = program.is_receive(cx.user.pc());
    let pattern = program.pattern(pattern);
    if !is_receive && cx.user.has_asked_after(timing.arrived_at()) {
        // It arrived before the request was sent and was only read after it.
        unasked::discard_message(cx, message, timing.arrived_at());
        return StepOutcome::Wait;
    }
    let scope = cx.user.scope_of_answer(program, cx.rules.seed);
    if pattern.matches(message, scope, &mut cx.encoder.comparison) {
        let knows = is_receive || pattern.identifies;
        if knows || !unasked::set_aside_if_late(cx, timing) {
            pattern.store_captures(message, |slot, value| cx.user.memory.store(slot, value));
            return answered(cx, timing);
        }
    } else if unasked::take_late_answer(cx.user, timing.arrived_at()) {
        cx.count(|c| c.messages_unasked += 1);
    } else if pattern.skips_others() {
        cx.count(|c| c.messages_unasked += 1);
        cx.record(Record::Skipped(message));
    } else {
        return mismatched(cx, message);
    }
    StepOutcome::Wait
}

/// Handles the time-out. If a message was set aside, it was the answer after all. Its latency is
/// not measured, because it is uncertain which request it answers.
pub(crate) fn timed_out(cx: &mut UserContext<'_>, matched: u32) -> StepOutcome {
    let is_receive = cx.rules.program.is_receive(cx.user.pc());
    let Some(timing) = unasked::take_set_aside(cx).filter(|_| !is_receive) else {
        cx.sample(Sample::Timeout { matched });
        return failure::fail_step(cx, ErrorKind::ExpectTimeout);
    };
    cx.count(|c| c.answers_out_of_step += 1);
    complete(cx, timing, None)
}

/// Feeds bytes to the `expect` that waits for them. Keeps what follows the answer for the next one.
/// Returns `None` if the answer is not complete.
fn feed(
    cx: &mut UserContext<'_>,
    pattern: u32,
    mut bytes: &[u8],
    timing: AnswerTiming,
) -> Option<StepOutcome> {
    let program = cx.rules.program;
    let rule = program.bytes_pattern(pattern);
    let is_receive = program.is_receive(cx.user.pc());
    let Some(UserWait::Answer { matched }) = cx.user.wait() else { return None };
    let mut matched = matched.get();
    while !bytes.is_empty() {
        let scope = cx.user.scope_of_answer(program, cx.rules.seed);
        match rule.matcher.feed(&mut matched, bytes, scope, &mut cx.encoder.comparison) {
            MatchProgress::NeedMore => {
                if rule.has_captures() {
                    cx.user.memory.keep_answer(bytes);
                }
                break;
            }
            MatchProgress::Matched { consumed } => {
                let last = &bytes[..consumed];
                bytes = &bytes[consumed..];
                let answer = match rule.has_captures() {
                    true => cx.user.memory.whole_answer(last),
                    false => Cow::Borrowed(last),
                };
                if !is_receive && unasked::set_aside_if_late(cx, timing) {
                    continue;
                }
                if rule.has_captures()
                    && !rule
                        .store_captures(&answer, |slot, value| cx.user.memory.store(slot, value))
                {
                    return Some(mismatched(cx, IncomingMessage::Binary(&answer)));
                }
                let flow = answered(cx, timing);
                let after = cx.user.pc() + 1;
                let goes_on =
                    bytes.is_empty() || unasked::receive_bytes(cx, after, bytes, timing, true);
                return Some(if goes_on { flow } else { StepOutcome::Wait });
            }
            MatchProgress::Mismatch { .. } => {
                return Some(mismatched(cx, IncomingMessage::Binary(bytes)));
            }
        }
    }
    cx.user.set_wait(UserWait::Answer { matched: Packed::new(matched) });
    None
}

fn mismatched(cx: &mut UserContext<'_>, got: IncomingMessage<'_>) -> StepOutcome {
    let came_first = cx.user.flags.has_received_once();
    let kind = ErrorKind::ExpectMismatch;
    cx.sample(Sample::Mismatch { kind, got, came_first });
    failure::fail_step(cx, kind)
}

/// Completes the present step: its answer is whole now, or was before the step began.
fn answered(cx: &mut UserContext<'_>, timing: AnswerTiming) -> StepOutcome {
    if !cx.user.flags.has_sent() {
        cx.user.flags.set_greeted();
    }
    if cx.rules.program.is_receive(cx.user.pc()) {
        return received(cx, timing);
    }
    let from = cx.user.answer_counts_from();
    let is_out_of_step = timing.arrived_at() + CLOCK_ERROR_MAX < from;
    // An answer that arrived before its step, without a request, has no latency.
    if cx.user.unanswered > 0 {
        if is_out_of_step {
            cx.count(|c| c.answers_out_of_step += 1);
        } else if cx.user.flags.receives_lookalikes() {
            cx.count(|c| c.answers_doubtful += 1);
        }
    }
    complete(cx, timing, Some(from).filter(|_| !is_out_of_step))
}

/// Completes a `receive`: what came answers nothing, and is no latency of the server. A name has
/// the time from the step's beginning, unless the message was there before.
fn received(cx: &mut UserContext<'_>, timing: AnswerTiming) -> StepOutcome {
    let from = cx.user.intended;
    named::succeed(cx, Some(from).filter(|from| timing.arrived_at() >= *from), timing);
    cx.user.intended = cx.now;
    cx.user.set_wait(UserWait::Yield);
    cx.wait_until(Deadline::Never);
    StepOutcome::Next
}

/// Completes the present step. Records a latency from `from`, if it means something.
fn complete(cx: &mut UserContext<'_>, timing: AnswerTiming, from: Option<Instant>) -> StepOutcome {
    let user = &mut *cx.user;
    // Messages that were sent in a row are answered in a row.
    user.flags.set_answering(true);
    unasked::pop_from_window(user);
    user.unanswered = user.unanswered.saturating_sub(1);
    if user.unanswered == 0 {
        user.clear_unanswered();
    }
    user.intended = cx.now;
    user.set_wait(UserWait::Yield);
    cx.record(Record::Answered { timing, from });
    named::succeed(cx, from, timing);
    cx.wait_until(Deadline::Never);
    StepOutcome::Next
}
