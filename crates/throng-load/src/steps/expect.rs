//! `expect`: waits for an answer.

use serde_json::Value;
use throng_base::Instant;

use super::prelude::*;
use crate::program::{IncomingMessage, MatchProgress, Matcher, MessagePattern, Pattern};
use crate::scenario::reader::Form;
use crate::scenario::values::{read_hex, read_length};
use crate::user::record::Sample;
use crate::user::state::Packed;
use crate::user::timing::{AnswerTiming, CLOCK_ERROR_MAX};
use crate::user::unasked;

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

/// Begins to wait for bytes of a stream. Bytes that arrived early are the beginning of the answer,
/// or all of it and more.
pub(crate) fn begin_bytes(cx: &mut UserContext<'_>, matcher: u32, timeout_ns: u64) -> StepOutcome {
    cx.count(|c| c.messages_expected += 1);
    let early = unasked::take_kept_bytes(cx.user);
    let is_open = cx.socket.is_open();
    if !is_open && early.is_none() {
        return failure::skip_step(cx, ErrorKind::NotConnected);
    }
    cx.user.set_wait(UserWait::Answer { matched: Packed::new(0) });
    cx.wait_until(Deadline::Coarse(cx.now + Duration::from_nanos(timeout_ns)));
    let fed = early.and_then(|(bytes, timing)| feed(cx, matcher, &bytes, timing));
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
    cx.count(|c| c.messages_expected += 1);
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

/// Handles bytes that arrive on a stream.
pub(crate) fn bytes_received(cx: &mut UserContext<'_>, bytes: &[u8]) -> StepOutcome {
    let timing = cx.timing();
    if let Some(UserWait::Answer { .. }) = cx.user.wait() {
        if cx.user.has_asked_after(timing.arrived_at()) {
            // They arrived before the request was sent and were only read after it.
            cx.count(|c| c.messages_unasked += 1);
            cx.user.flags.set_receives_lookalikes(true);
            return StepOutcome::Wait;
        }
        if let Op::ExpectBytes { matcher, .. } = cx.op() {
            return feed(cx, matcher, bytes, timing).unwrap_or(StepOutcome::Wait);
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
    let (Some(UserWait::Answer { .. }), Op::ExpectMessage { pattern, .. }) =
        (cx.user.wait(), cx.op())
    else {
        unasked::receive_message(cx, message);
        return StepOutcome::Wait;
    };
    let timing = cx.timing();
    let pattern = cx.rules.program.pattern(pattern);
    if cx.user.has_asked_after(timing.arrived_at()) {
        // It arrived before the request was sent and was only read after it.
        unasked::discard_message(cx, message, timing.arrived_at());
    } else if pattern.matches(message) {
        if !unasked::set_aside_if_late(cx, timing) {
            return answered(cx, timing);
        }
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
    let Some(timing) = unasked::take_set_aside(cx) else {
        cx.record(Record::Sample(Sample::Timeout { matched }));
        return failure::fail_step(cx, ErrorKind::ExpectTimeout);
    };
    cx.count(|c| c.answers_out_of_step += 1);
    complete(cx, timing, None)
}

/// Feeds bytes to the `expect` that waits for them. Keeps what follows the answer for the next one.
/// Returns `None` if the answer is not complete.
fn feed(
    cx: &mut UserContext<'_>,
    matcher: u32,
    mut bytes: &[u8],
    timing: AnswerTiming,
) -> Option<StepOutcome> {
    let matcher = cx.rules.program.matcher(matcher);
    let Some(UserWait::Answer { matched }) = cx.user.wait() else { return None };
    let mut matched = matched.get();
    while !bytes.is_empty() {
        match matcher.feed(&mut matched, bytes) {
            MatchProgress::NeedMore => break,
            MatchProgress::Matched { consumed } => {
                bytes = &bytes[consumed..];
                if unasked::set_aside_if_late(cx, timing) {
                    continue;
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
    cx.record(Record::Sample(Sample::Mismatch { got }));
    failure::fail_step(cx, ErrorKind::ExpectMismatch)
}

/// Completes the present step: its answer is whole now, or was before the step began.
fn answered(cx: &mut UserContext<'_>, timing: AnswerTiming) -> StepOutcome {
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
    cx.wait_until(Deadline::Never);
    StepOutcome::Next
}
