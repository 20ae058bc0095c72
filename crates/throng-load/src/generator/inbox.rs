//! Data that arrives while no step waits for it: kept for the `expect` that is about to begin, or
//! counted as *unasked*.
//!
//! After a `send`, an `expect` accepts only what arrives after it. What arrived before is unasked:
//! it is counted and discarded. If unasked messages look like what the user's next `expect` waits
//! for, the user cannot tell its own answers from them; each answer from then on is counted as
//! doubtful.

use std::collections::VecDeque;

use throng_base::Instant;
use throng_driver::Driver;
use throng_engine::Conn;

use super::encode_buffers::as_text;
use super::timing::{AnswerTiming, CLOCK_ERROR_MAX};
use super::user::{User, UserState};
use super::{ErrorKind, Generator, GeneratorMessage};
use crate::program::{IncomingMessage, NextAnswer, OnError, Op};

/// Data that no step has waited for yet, and late answers. Almost no user has one.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) bytes: Vec<u8>,
    /// Messages that the bytes consist of; empty on a TCP stream.
    messages: VecDeque<KeptMessage>,
    /// Arrival of the last bytes: a complete answer in here was complete by then.
    pub(super) timing: AnswerTiming,
    /// Answers to requests that timed out, which may still arrive.
    late_answers: u16,
    /// Moment until which late answers are accepted as late.
    late_until: Instant,
    /// An answer that may be a late one.
    set_aside: Option<AnswerTiming>,
    /// Intended moments of the unanswered messages, for a user that sends the next ones before
    /// their answers.
    pub(super) window: VecDeque<Instant>,
}

/// A message in an inbox.
#[derive(Clone, Copy, Debug)]
struct KeptMessage {
    timing: AnswerTiming,
    bytes: u32,
    is_text: bool,
}

impl Inbox {
    fn new(timing: AnswerTiming) -> Self {
        Self {
            bytes: Vec::new(),
            messages: VecDeque::new(),
            timing,
            late_answers: 0,
            late_until: Instant::ZERO,
            set_aside: None,
            window: VecDeque::new(),
        }
    }

    /// Takes the first message out.
    fn pop<R>(&mut self, read: impl FnOnce(IncomingMessage<'_>, AnswerTiming) -> R) -> Option<R> {
        let kept = self.messages.pop_front()?;
        let bytes = &self.bytes[..kept.bytes as usize];
        let message = if kept.is_text {
            IncomingMessage::Text(as_text(bytes))
        } else {
            IncomingMessage::Binary(bytes)
        };
        let result = read(message, kept.timing);
        self.bytes.drain(..kept.bytes as usize);
        Some(result)
    }

    /// Reports whether it holds nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
            && self.messages.is_empty()
            && self.late_answers == 0
            && self.set_aside.is_none()
            && self.window.is_empty()
    }
}

impl Generator {
    /// Handles bytes of a stream that arrive while no step waits. `of_answer` is true if they came
    /// together with the previous answer.
    pub(super) fn unasked_bytes_received<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        bytes: &[u8],
        timing: AnswerTiming,
        of_answer: bool,
    ) {
        let user = conn.state();
        if !self.may_be_expected_next(user) {
            self.stats.counters.messages_unasked += 1;
            // The rest of an answer whose beginning was enough for its step belongs to that answer.
            if !of_answer && !user.take_late_answer(timing.arrived_at()) {
                user.flags.set_receives_lookalikes(true);
            }
            return;
        }
        let inbox = user.inbox.get_or_insert_with(|| Box::new(Inbox::new(timing)));
        if inbox.bytes.len() + bytes.len() <= INBOX_BYTES_MAX {
            inbox.bytes.extend_from_slice(bytes);
            inbox.timing = timing;
            return;
        }
        user.inbox = None;
        self.inbox_overflowed(conn);
    }

    /// Handles a message that arrives while no step waits.
    pub(super) fn unasked_message_received<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        message: IncomingMessage<'_>,
    ) {
        let timing = AnswerTiming::of(conn);
        self.stats.incidents.unasked_received(timing.arrived_at());
        let user = conn.state();
        if !self.may_be_expected_next(user) {
            return self.discard_message(user, message, timing.arrived_at());
        }
        let bytes = message.bytes();
        let inbox = user.inbox.get_or_insert_with(|| Box::new(Inbox::new(timing)));
        // If others are skipped anyway, the oldest make room.
        while self.skips_others[usize::from(user.class)]
            && inbox.bytes.len() + bytes.len() > INBOX_BYTES_MAX
            && inbox.pop(|_, _| ()).is_some()
        {
            self.stats.counters.messages_unasked += 1;
        }
        if inbox.bytes.len() + bytes.len() <= INBOX_BYTES_MAX {
            inbox.bytes.extend_from_slice(bytes);
            let is_text = matches!(message, IncomingMessage::Text(_));
            inbox.messages.push_back(KeptMessage { timing, bytes: bytes.len() as u32, is_text });
            return;
        }
        user.inbox = None;
        self.inbox_overflowed(conn);
    }

    /// Reports whether data that arrives now may match an `expect` that is about to begin.
    fn may_be_expected_next(&self, user: &User) -> bool {
        let is_leaving = matches!(
            user.state,
            UserState::Staying
                | UserState::Closing
                | UserState::ClosingAfterError
                | UserState::Stopping
        );
        if is_leaving || !self.expects[usize::from(user.class)] {
            return false;
        }
        let NextAnswer { sends_first, expect } = self.config.program.next_answer(user.pc);
        // If answers are outstanding it may be one of them, even if the user sends before its next
        // `expect`.
        (expect.is_some() && !sends_first) || user.unanswered > 0
    }

    /// Counts and discards a message that answers nothing.
    pub(super) fn discard_message(
        &mut self,
        user: &mut User,
        message: IncomingMessage<'_>,
        arrived_at: Instant,
    ) {
        self.stats.counters.messages_unasked += 1;
        if user.flags.receives_lookalikes() && user.inbox.is_none() {
            return;
        }
        let program = &self.config.program;
        let Some(expect) = program.next_answer(user.pc).expect else { return };
        let Op::ExpectMessage { pattern, .. } = program.op(expect) else { return };
        if program.pattern(pattern).matches(message) && !user.take_late_answer(arrived_at) {
            user.flags.set_receives_lookalikes(true);
        }
    }

    /// Discards what has arrived before a request is sent: it cannot be the answer.
    pub(super) fn discard_unasked(&mut self, user: &mut User, now: Instant) {
        let Some(mut inbox) = user.inbox.take() else { return };
        inbox.set_aside = None;
        let may_be_late = inbox.late_answers > 0 && now <= inbox.late_until;
        if inbox.messages.is_empty() && !inbox.bytes.is_empty() {
            self.stats.counters.messages_unasked += 1;
            // A stream has no message boundaries: all of it is one late answer, or it looks like an
            // answer.
            if may_be_late {
                inbox.late_answers = 0;
            } else {
                user.flags.set_receives_lookalikes(true);
            }
        }
        let bytes = std::mem::take(&mut inbox.bytes);
        let messages = std::mem::take(&mut inbox.messages);
        user.inbox = Some(inbox).filter(|inbox| may_be_late && !inbox.is_empty());
        let mut rest = &bytes[..];
        for kept in messages {
            let (message, after) = rest.split_at(kept.bytes as usize);
            rest = after;
            let message = if kept.is_text {
                IncomingMessage::Text(as_text(message))
            } else {
                IncomingMessage::Binary(message)
            };
            self.discard_message(user, message, kept.timing.arrived_at());
        }
    }

    /// Takes the first kept message that `pattern` matches. Skips messages before it if the pattern
    /// skips others. Returns `None` if there is none, and an error if another message came first.
    pub(super) fn take_kept_answer(
        &mut self,
        user: &mut User,
        pattern: u32,
    ) -> Result<Option<AnswerTiming>, ErrorKind> {
        let skips_others = self.config.program.pattern(pattern).skips_others();
        while let Some((matches, timing)) = self.pop_kept(user, pattern) {
            if matches && !self.set_aside_if_late(user, timing) {
                return Ok(Some(timing));
            }
            if !matches && !skips_others {
                return Err(ErrorKind::ExpectMismatch);
            }
            self.stats.counters.messages_unasked += u64::from(!matches);
        }
        Ok(None)
    }

    /// Takes the first kept message. Returns whether `pattern` matches it, and when it arrived.
    fn pop_kept(&self, user: &mut User, pattern: u32) -> Option<(bool, AnswerTiming)> {
        let pattern = self.config.program.pattern(pattern);
        let inbox = user.inbox.as_mut()?;
        let popped = inbox.pop(|message, timing| (pattern.matches(message), timing));
        user.inbox.take_if(|inbox| inbox.is_empty());
        popped
    }

    /// Counts an answer that may belong to another request. Returns false if its latency means
    /// nothing.
    pub(super) fn check_latency(
        &mut self,
        user: &User,
        arrived_at: Instant,
        from: Instant,
    ) -> bool {
        let counters = &mut self.stats.counters;
        if arrived_at + CLOCK_ERROR_MAX < from {
            counters.answers_out_of_step += 1;
            return false;
        }
        counters.answers_doubtful += u64::from(user.flags.receives_lookalikes());
        true
    }

    /// Sets a matching message aside if it may be the late answer to a request that timed out.
    /// Returns whether it did. If another match follows, that one is the answer. If none follows in
    /// time, this one was.
    pub(super) fn set_aside_if_late(&mut self, user: &mut User, timing: AnswerTiming) -> bool {
        if !user.may_be_late_answer(timing.arrived_at()) {
            return false;
        }
        if let Some(inbox) = &mut user.inbox {
            inbox.late_answers -= 1;
            inbox.set_aside = Some(timing);
        }
        self.stats.counters.messages_unasked += 1;
        true
    }

    /// Handles the time-out of an `expect`. If a message was set aside, it was the answer after
    /// all. Its latency is not measured, because it is uncertain which request it answers.
    pub(super) fn expect_timed_out<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let user = conn.state();
        let Some(timing) = user.inbox.as_mut().and_then(|inbox| inbox.set_aside.take()) else {
            self.sample_timeout(conn);
            return self.fail_step(conn, ErrorKind::ExpectTimeout);
        };
        user.inbox.take_if(|inbox| inbox.is_empty());
        self.stats.counters.messages_unasked -= 1;
        self.stats.counters.answers_out_of_step += 1;
        self.answered_unmeasured(conn, timing);
        self.advance(conn);
    }

    /// Handles an inbox overflow: more has arrived than a user keeps.
    fn inbox_overflowed<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let user = conn.state();
        if self.on_error(user.class) == OnError::Continue {
            // No step has failed: the user continues its present step without these bytes.
            user.iteration = super::user::IterationOutcome::Erred;
            self.count_error(ErrorKind::InboxOverflow);
        } else {
            self.fail_step(conn, ErrorKind::InboxOverflow);
        }
    }
}

impl User {
    /// Gives up on the outstanding answers. They may still arrive until `until`.
    pub(super) fn allow_late_answers(&mut self, now: Instant, until: Instant) {
        let timing = AnswerTiming { seen_at: now, arrival: throng_engine::Arrival::UNKNOWN };
        let owed_before = self.inbox.take().map_or(0, |inbox| inbox.late_answers);
        let mut inbox = Inbox::new(timing);
        inbox.late_answers = owed_before.saturating_add(self.unanswered.max(1));
        inbox.late_until = until;
        self.inbox = Some(Box::new(inbox));
    }

    /// Adds a message with intended moment `from` to the window, behind the unanswered ones.
    pub(super) fn push_to_window(&mut self, now: Instant, from: Instant) {
        let (unanswered, before) = (usize::from(self.unanswered), self.message_from);
        let timing = AnswerTiming { seen_at: now, arrival: throng_engine::Arrival::UNKNOWN };
        let inbox = self.inbox.get_or_insert_with(|| Box::new(Inbox::new(timing)));
        if inbox.window.is_empty() {
            inbox.window.extend(std::iter::repeat_n(before, unanswered));
        }
        inbox.window.push_back(from);
    }

    /// Removes the oldest message from the window: it is answered.
    pub(super) fn pop_from_window(&mut self) {
        if let Some(inbox) = &mut self.inbox {
            inbox.window.pop_front();
            self.inbox.take_if(|inbox| inbox.is_empty());
        }
    }

    /// Reports whether an answer that arrived at `arrived_at` may be a late one.
    fn may_be_late_answer(&self, arrived_at: Instant) -> bool {
        self.inbox
            .as_ref()
            .is_some_and(|inbox| inbox.late_answers > 0 && arrived_at <= inbox.late_until)
    }

    /// Counts an unasked message that arrived at `arrived_at` as a late answer, if one is
    /// outstanding. Returns whether it did.
    fn take_late_answer(&mut self, arrived_at: Instant) -> bool {
        let owes = self.may_be_late_answer(arrived_at);
        if let Some(inbox) = self.inbox.as_mut().filter(|_| owes) {
            inbox.late_answers -= 1;
        }
        self.inbox.take_if(|inbox| inbox.is_empty());
        owes
    }
}

/// Bytes that are kept for one user.
pub(super) const INBOX_BYTES_MAX: usize = 64 << 10;
