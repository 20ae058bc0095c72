//! Data that arrives while no step waits for it: kept for the `expect` that is about to begin, or
//! counted as *unasked*.
//!
//! After a `send`, an `expect` accepts only what arrives after it. What arrived before is unasked:
//! it is counted and discarded. If unasked messages look like what the user's next `expect` waits
//! for, the user cannot tell its own answers from them; each answer from then on is counted as
//! doubtful. Bytes of a stream that come before the user has sent anything are a greeting, and no
//! sign of more: they are discarded.

use throng_base::Instant;

use super::context::{UserAction, UserContext};
use super::error::ErrorKind;
use super::failure;
use super::inbox::{INBOX_BYTES_MAX, Inbox};
use super::record::{Record, Sample};
use super::state::{User, UserWait};
use super::timing::AnswerTiming;
use super::trace::TraceEvent;
use crate::program::{
    IncomingMessage, MessagePattern, NextAnswer, OnError, Program, VariableScope,
};

/// Keeps or discards bytes of a stream for which the op at `pc` does not wait. `of_answer` is true
/// if they came together with the previous answer. Returns false if the user ends its connection.
pub(crate) fn receive_bytes(
    cx: &mut UserContext<'_>,
    pc: u32,
    bytes: &[u8],
    timing: AnswerTiming,
    of_answer: bool,
) -> bool {
    if !may_be_expected_next(cx, pc) {
        cx.count(|c| c.messages_unasked += 1);
        cx.trace(TraceEvent::Discarded);
        // The rest of an answer whose beginning was enough for its step belongs to that answer.
        let is_greeting = !cx.user.flags.has_sent();
        if is_greeting {
            cx.user.flags.set_greeted();
        }
        if !of_answer && !is_greeting && !take_late_answer(cx.user, timing.arrived_at()) {
            note_lookalike(cx);
        }
        return true;
    }
    let inbox = cx.user.inbox.get_or_insert_with(|| Box::new(Inbox::new(timing)));
    if inbox.has_room(bytes.len()) {
        inbox.bytes.extend_from_slice(bytes);
        inbox.timing = timing;
        cx.trace(TraceEvent::Kept);
        return true;
    }
    overflow(cx)
}

/// Keeps or discards a message that no step waits for.
pub(crate) fn receive_message(cx: &mut UserContext<'_>, message: IncomingMessage<'_>) {
    let timing = cx.timing();
    if !may_be_expected_next(cx, cx.user.pc()) {
        return discard_message(cx, message, timing.arrived_at());
    }
    let bytes = message.bytes().len();
    if !has_room(cx, bytes) {
        let Some(reader) = skipping_reader(cx).filter(|_| bytes <= INBOX_BYTES_MAX) else {
            overflow(cx);
            return;
        };
        skip_kept(cx, reader, bytes);
        if !has_room(cx, bytes) {
            // What the `expect` will take is kept already.
            cx.count(|c| c.messages_unasked += 1);
            return cx.trace(TraceEvent::Discarded);
        }
    }
    let inbox = cx.user.inbox.get_or_insert_with(|| Box::new(Inbox::new(timing)));
    inbox.push(message, timing);
    cx.trace(TraceEvent::Kept);
}

fn has_room(cx: &UserContext<'_>, bytes: usize) -> bool {
    cx.user.inbox.as_ref().map_or(bytes <= INBOX_BYTES_MAX, |inbox| inbox.has_room(bytes))
}

/// The `expect` or `receive` that reads the next message.
#[derive(Clone, Copy)]
struct Reader<'a> {
    pattern: &'a MessagePattern,
    is_receive: bool,
}

impl<'a> Reader<'a> {
    /// Returns the reader at `pc`, if it reads messages.
    fn at(program: &'a Program, pc: u32) -> Option<Self> {
        Some(Self { pattern: program.pattern_of(pc)?, is_receive: program.is_receive(pc) })
    }

    /// Returns what it does with a kept message that arrived at `timing`.
    fn judge(
        self,
        message: IncomingMessage<'_>,
        timing: AnswerTiming,
        asked_at: Option<Instant>,
        scope: VariableScope<'_>,
        comparison: &mut Vec<u8>,
    ) -> KeptUse {
        // For the sake of a `receive` it may have been kept although it is no answer.
        if !self.is_receive && asked_at.is_some_and(|at| timing.is_before(at)) {
            KeptUse::Old
        } else if self.pattern.matches(message, scope, comparison) {
            KeptUse::Fits
        } else {
            KeptUse::Other
        }
    }

    /// Sets a kept message that fits aside if it may be a late answer. Returns whether it did. A
    /// pattern that knows its answer has no late ones.
    fn sets_aside(self, cx: &mut UserContext<'_>, timing: AnswerTiming) -> bool {
        !self.pattern.identifies && !self.is_receive && set_aside_if_late(cx, timing)
    }
}

/// What a reader does with a kept message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeptUse {
    /// Passes over it: it arrived before the question.
    Old,
    /// Takes it, unless it may be a late answer.
    Fits,
    /// Skips it, or fails because of it.
    Other,
}

/// Returns the next reader, if other messages may come before what it takes.
fn skipping_reader<'a>(cx: &UserContext<'a>) -> Option<Reader<'a>> {
    let program = cx.rules.program;
    let reader = Reader::at(program, program.next_answer(cx.user.pc()).expect?)?;
    Some(reader).filter(|reader| reader.pattern.skips_others())
}

/// Drops the oldest kept messages, which the reader would not take, until there is room for
/// `bytes`. Keeps the first one that it takes, which is compared once in each step of the user.
fn skip_kept(cx: &mut UserContext<'_>, reader: Reader<'_>, bytes: usize) {
    let (program, pc) = (cx.rules.program, cx.user.pc());
    while let Some(inbox) = cx.user.inbox.as_ref().filter(|inbox| !inbox.has_room(bytes)) {
        let Some(kept) = inbox.messages.front() else { return };
        if inbox.first_fits_in == Some(pc) {
            return;
        }
        let ((message, _), timing) = (kept.split_from(&inbox.bytes), kept.timing);
        let scope = cx.user.scope_of_answer(program, cx.rules.seed);
        let comparison = &mut cx.encoder.comparison;
        let kept_use = reader.judge(message, timing, inbox.asked_at, scope, comparison);
        if kept_use == KeptUse::Fits && !reader.sets_aside(cx, timing) {
            if let Some(inbox) = &mut cx.user.inbox {
                inbox.first_fits_in = Some(pc);
            }
            return;
        }
        if let Some(inbox) = &mut cx.user.inbox {
            inbox.pop(|_, _| ());
        }
        if kept_use != KeptUse::Fits {
            cx.count(|c| c.messages_unasked += 1);
        }
        if kept_use == KeptUse::Other {
            take_late_answer(cx.user, timing.arrived_at());
        }
    }
}

/// Reports whether data that arrives before the op at `pc` may match an `expect` that is about to
/// begin.
fn may_be_expected_next(cx: &UserContext<'_>, pc: u32) -> bool {
    let is_leaving = match cx.user.wait() {
        Some(wait) => {
            matches!(wait, UserWait::RunEnd | UserWait::Close | UserWait::CloseAfterError)
        }
        None => true,
    };
    if is_leaving || !cx.class().expects {
        return false;
    }
    let NextAnswer { sends_first, expect, .. } = cx.rules.program.next_answer(pc);
    // If answers are outstanding it may be one of them, even if the user sends before its next
    // `expect`.
    expect.is_some() && (!sends_first || cx.user.unanswered > 0)
}

/// Counts and discards a message that answers nothing.
pub(crate) fn discard_message(
    cx: &mut UserContext<'_>,
    message: IncomingMessage<'_>,
    arrived_at: Instant,
) {
    cx.count(|c| c.messages_unasked += 1);
    cx.trace(TraceEvent::Discarded);
    if cx.user.flags.receives_lookalikes() && cx.user.inbox.is_none() {
        return;
    }
    let program = cx.rules.program;
    let Some(expect) = program.next_answer(cx.user.pc()).expect else { return };
    let Some(pattern) = program.pattern_of(expect) else { return };
    if pattern.identifies {
        // The next answer will differ from this message.
        take_late_answer(cx.user, arrived_at);
        return;
    }
    let scope = cx.user.scope_of_answer(program, cx.rules.seed);
    let matches = pattern.matches(message, scope, &mut cx.encoder.comparison);
    if matches && !take_late_answer(cx.user, arrived_at) {
        note_lookalike(cx);
    }
}

/// Notes that what looks like an answer has come, and no message asked for it. After the first
/// message of a connection and its answer, that answer may be what the server says first: then this
/// is the true one, and the later ones are not in doubt.
fn note_lookalike(cx: &mut UserContext<'_>) {
    let user = &mut *cx.user;
    let is_after_first = user.flags.has_sent() && !user.flags.has_sent_again();
    let is_answered = user.flags.is_answering() && user.unanswered == 0;
    if is_after_first && is_answered && !user.flags.is_greeted() {
        user.flags.set_greeted();
        cx.count(|c| {
            c.answers_doubtful += 1;
            c.answers_after_greeting += 1;
        });
        return;
    }
    user.flags.set_receives_lookalikes(true);
}

/// Discards what has arrived before a request is sent: it cannot be the answer.
pub(crate) fn discard_all(cx: &mut UserContext<'_>) {
    let Some(mut inbox) = cx.user.inbox.take() else { return };
    inbox.set_aside = None;
    let may_be_late = inbox.may_be_late_answer(cx.now);
    if inbox.messages.is_empty() && !inbox.bytes.is_empty() {
        cx.count(|c| c.messages_unasked += 1);
        // A stream has no message boundaries: all of it is one late answer, or it looks like an
        // answer.
        if may_be_late {
            inbox.late_answers = 0;
        } else if cx.user.flags.has_sent() {
            note_lookalike(cx);
        } else {
            cx.user.flags.set_greeted();
        }
    }
    let bytes = std::mem::take(&mut inbox.bytes);
    let messages = std::mem::take(&mut inbox.messages);
    inbox.first_fits_in = None;
    cx.user.inbox = Some(inbox).filter(|inbox| may_be_late && !inbox.is_empty());
    let mut rest = &bytes[..];
    for kept in messages {
        let (message, after) = kept.split_from(rest);
        rest = after;
        discard_message(cx, message, kept.timing.arrived_at());
    }
}

/// Takes the first kept message that `pattern` matches, and stores its captures. Skips messages
/// before it if the pattern skips others. Returns `None` if there is none, and an error if another
/// message came first.
pub(crate) fn take_kept_answer(
    cx: &mut UserContext<'_>,
    pattern: u32,
) -> Result<Option<AnswerTiming>, ErrorKind> {
    let program = cx.rules.program;
    let is_receive = program.is_receive(cx.user.pc());
    let pattern = program.pattern(pattern);
    let reader = Reader { pattern, is_receive };
    let (pc, is_traced) = (cx.user.step_pc(), cx.is_traced);
    while let Some(mut inbox) = cx.user.inbox.take() {
        let asked_at = inbox.asked_at;
        let popped = inbox.pop(|message, timing| {
            if is_traced {
                (cx.actions)(UserAction::Trace(pc, TraceEvent::TakenFromKept(message)));
            }
            let scope = cx.user.scope_of_answer(program, cx.rules.seed);
            let comparison = &mut cx.encoder.comparison;
            let kept_use = reader.judge(message, timing, asked_at, scope, comparison);
            let (matches, is_old) = (kept_use == KeptUse::Fits, kept_use == KeptUse::Old);
            let is_late = !is_old && !matches && take_late_answer(cx.user, timing.arrived_at());
            if matches {
                pattern.store_captures(message, |slot, value| cx.user.memory.store(slot, value));
            } else if !is_old && !is_late {
                let record = match pattern.skips_others() {
                    true => Record::SkippedKept(message),
                    false => {
                        let came_first = cx.user.flags.has_received_once();
                        let scope = cx.user.scope_of_answer(program, cx.rules.seed);
                        let (kind, got) = (ErrorKind::ExpectMismatch, message);
                        Record::Sample(Sample::Mismatch { kind, got, came_first }, scope)
                    }
                };
                (cx.actions)(UserAction::Record(pc, record));
            }
            (matches, is_old || is_late, timing)
        });
        cx.user.inbox = Some(inbox).filter(|inbox| !inbox.is_empty());
        let Some((matches, is_other, timing)) = popped else { break };
        if matches && !reader.sets_aside(cx, timing) {
            return Ok(Some(timing));
        }
        if is_other {
            cx.count(|c| c.messages_unasked += 1);
            continue;
        }
        if !matches && !pattern.skips_others() {
            return Err(ErrorKind::ExpectMismatch);
        }
        if !matches {
            cx.count(|c| c.messages_unasked += 1);
        }
    }
    Ok(None)
}

/// Takes the bytes of a stream that arrived early.
pub(crate) fn take_kept_bytes(user: &mut User) -> Option<(Vec<u8>, AnswerTiming)> {
    let inbox = user.inbox.as_mut()?;
    let kept = (std::mem::take(&mut inbox.bytes), inbox.timing);
    user.inbox.take_if(|inbox| inbox.is_empty());
    Some(kept).filter(|(bytes, _)| !bytes.is_empty())
}

/// Sets a matching message aside if it may be the late answer to a request that timed out. Returns
/// whether it did. If another match follows, that one is the answer. If none follows in time, this
/// one was.
pub(crate) fn set_aside_if_late(cx: &mut UserContext<'_>, timing: AnswerTiming) -> bool {
    let arrived_at = timing.arrived_at();
    let inbox = cx.user.inbox.as_mut();
    let Some(inbox) = inbox.filter(|inbox| inbox.may_be_late_answer(arrived_at)) else {
        return false;
    };
    inbox.late_answers -= 1;
    inbox.set_aside = Some(timing);
    cx.count(|c| c.messages_unasked += 1);
    cx.trace(TraceEvent::SetAside);
    true
}

/// Takes the answer that was set aside as a late one: it was the answer after all.
pub(crate) fn take_set_aside(cx: &mut UserContext<'_>) -> Option<AnswerTiming> {
    let timing = cx.user.inbox.as_mut()?.set_aside.take()?;
    cx.user.inbox.take_if(|inbox| inbox.is_empty());
    cx.count(|c| c.messages_unasked -= 1);
    Some(timing)
}

/// Counts an unasked message that arrived at `arrived_at` as a late answer, if one is outstanding.
/// Returns whether it did.
pub(crate) fn take_late_answer(user: &mut User, arrived_at: Instant) -> bool {
    let late = user.inbox.as_mut().filter(|inbox| inbox.may_be_late_answer(arrived_at));
    let owes = late.map(|inbox| inbox.late_answers -= 1).is_some();
    user.inbox.take_if(|inbox| inbox.is_empty());
    owes
}

/// Keeps the moment of a message that a `receive` follows: what came before it is kept for the
/// `receive`, and is no answer.
pub(crate) fn note_asked_at(cx: &mut UserContext<'_>) {
    let timing = AnswerTiming::own(cx.now);
    let inbox = cx.user.inbox.get_or_insert_with(|| Box::new(Inbox::new(timing)));
    inbox.asked_at = Some(cx.now);
}

/// Adds the message that is about to be sent to the window, behind the unanswered ones.
pub(crate) fn push_to_window(cx: &mut UserContext<'_>) {
    let user = &mut *cx.user;
    let (unanswered, before) = (usize::from(user.unanswered), user.message_from);
    let timing = AnswerTiming::own(cx.now);
    let inbox = user.inbox.get_or_insert_with(|| Box::new(Inbox::new(timing)));
    if inbox.window.is_empty() {
        inbox.window.extend(std::iter::repeat_n(before, unanswered));
    }
    inbox.window.push_back(user.intended);
}

/// Removes the oldest message from the window: it is answered.
pub(crate) fn pop_from_window(user: &mut User) {
    if let Some(inbox) = &mut user.inbox {
        inbox.window.pop_front();
        user.inbox.take_if(|inbox| inbox.is_empty());
    }
}

/// Handles more bytes than a user keeps. Returns false if the user ends its connection.
fn overflow(cx: &mut UserContext<'_>) -> bool {
    cx.user.inbox = None;
    failure::fail_beside(cx, ErrorKind::InboxOverflow);
    cx.on_error() == OnError::Continue
}
