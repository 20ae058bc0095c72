//! `expect`: bytes of a stream, or a whole message.

use std::time::Duration;

use throng_base::Instant;
use throng_engine::Deadline;

use super::context::UserContext;
use super::error::ErrorKind;
use super::failure;
use super::flow::Flow;
use super::record::{Record, Sample};
use super::state::{Packed, Wait};
use super::timing::{AnswerTiming, CLOCK_ERROR_MAX};
use super::unasked;
use crate::program::{IncomingMessage, MatchProgress, Op};

/// Begins to wait for bytes of a stream. Bytes that arrived early are the beginning of the answer,
/// or all of it and more.
pub(super) fn begin_bytes(cx: &mut UserContext<'_>, matcher: u32, timeout_ns: u64) -> Flow {
    cx.count(|c| c.messages_expected += 1);
    let early = unasked::take_kept_bytes(cx.user);
    let is_open = cx.socket.is_open();
    if !is_open && early.is_none() {
        return failure::skip_step(cx, ErrorKind::NotConnected);
    }
    cx.user.set_wait(Wait::Answer { matched: Packed::new(0) });
    cx.wait_until(Deadline::Coarse(cx.now + Duration::from_nanos(timeout_ns)));
    let fed = early.and_then(|(bytes, timing)| feed(cx, matcher, &bytes, timing));
    match fed {
        Some(flow) => flow,
        None if is_open => Flow::Wait,
        None => {
            cx.wait_until(Deadline::Never);
            failure::skip_step(cx, ErrorKind::NotConnected)
        }
    }
}

/// Begins to wait for a message. Looks at messages that arrived early first.
pub(super) fn begin_message(cx: &mut UserContext<'_>, pattern: u32, timeout_ns: u64) -> Flow {
    cx.count(|c| c.messages_expected += 1);
    cx.user.set_wait(Wait::Answer { matched: Packed::new(0) });
    match unasked::take_kept_answer(cx, pattern) {
        Ok(Some(timing)) => answered(cx, timing),
        Ok(None) if cx.socket.is_open() => {
            cx.wait_until(Deadline::Coarse(cx.now + Duration::from_nanos(timeout_ns)));
            Flow::Wait
        }
        Ok(None) => failure::skip_step(cx, ErrorKind::NotConnected),
        Err(kind) => failure::fail_step(cx, kind),
    }
}

/// Handles bytes that arrive on a stream.
pub(super) fn bytes_received(cx: &mut UserContext<'_>, bytes: &[u8]) -> Flow {
    let timing = cx.timing();
    if let Some(Wait::Answer { .. }) = cx.user.wait() {
        if cx.user.has_asked_after(timing.arrived_at()) {
            // They arrived before the request was sent and were only read after it.
            cx.count(|c| c.messages_unasked += 1);
            cx.user.flags.set_receives_lookalikes(true);
            return Flow::Wait;
        }
        if let Op::ExpectBytes { matcher, .. } = cx.op() {
            return feed(cx, matcher, bytes, timing).unwrap_or(Flow::Wait);
        }
    }
    unasked::receive_bytes(cx, cx.user.pc(), bytes, timing, false);
    Flow::Wait
}

/// Handles a message that arrives on a WebSocket.
pub(super) fn message_received(cx: &mut UserContext<'_>, message: IncomingMessage<'_>) -> Flow {
    let (Some(Wait::Answer { .. }), Op::ExpectMessage { pattern, .. }) = (cx.user.wait(), cx.op())
    else {
        unasked::receive_message(cx, message);
        return Flow::Wait;
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
        cx.record(Record::Skipped(message.bytes()));
    } else {
        return mismatched(cx, message.bytes());
    }
    Flow::Wait
}

/// Handles the time-out. If a message was set aside, it was the answer after all. Its latency is
/// not measured, because it is uncertain which request it answers.
pub(super) fn timed_out(cx: &mut UserContext<'_>, matched: u32) -> Flow {
    let Some(timing) = unasked::take_set_aside(cx) else {
        cx.record(Record::Sample(Sample::Timeout { pc: cx.user.pc(), matched }));
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
) -> Option<Flow> {
    let matcher = cx.rules.program.matcher(matcher);
    let Some(Wait::Answer { matched }) = cx.user.wait() else { return None };
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
                return Some(if goes_on { flow } else { Flow::Wait });
            }
            MatchProgress::Mismatch { .. } => return Some(mismatched(cx, bytes)),
        }
    }
    cx.user.set_wait(Wait::Answer { matched: Packed::new(matched) });
    None
}

fn mismatched(cx: &mut UserContext<'_>, got: &[u8]) -> Flow {
    cx.record(Record::Sample(Sample::Mismatch { pc: cx.user.pc(), got }));
    failure::fail_step(cx, ErrorKind::ExpectMismatch)
}

/// Completes the present step: its answer is whole now, or was before the step began.
fn answered(cx: &mut UserContext<'_>, timing: AnswerTiming) -> Flow {
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
fn complete(cx: &mut UserContext<'_>, timing: AnswerTiming, from: Option<Instant>) -> Flow {
    let user = &mut *cx.user;
    // Messages that were sent in a row are answered in a row.
    user.flags.set_answering(true);
    unasked::pop_from_window(user);
    user.unanswered = user.unanswered.saturating_sub(1);
    if user.unanswered == 0 {
        user.clear_unanswered();
    }
    user.intended = cx.now;
    user.set_wait(Wait::Yield);
    cx.record(Record::Answered { timing, from });
    cx.wait_until(Deadline::Never);
    Flow::Next
}
