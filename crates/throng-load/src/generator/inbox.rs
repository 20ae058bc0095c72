//! What comes although no step waits for it: kept for the `expect` that is about to begin, or no answer
//! to anything.
//!
//! An answer belongs to its question. After a `send`, an `expect` looks only at what came after it. What
//! came before is *unasked*: it is counted and thrown away. A user who hears unasked messages of the kind
//! that its next `expect` waits for cannot tell its own answers from those; each answer that it takes from
//! then on is counted as doubtful.

use std::collections::VecDeque;

use throng_base::Instant;
use throng_driver::Driver;
use throng_engine::Conn;

use super::encode_buffers::as_text;
use super::timing::{AnswerTiming, CLOCK_ERROR_MAX};
use super::user::{User, UserState};
use super::{ErrorKind, Generator, GeneratorMessage};
use crate::program::{MessageTemplate, NextAnswer, OnError, Op};

/// What no step has waited for yet, and answers that are late. Almost no user has one.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) bytes: Vec<u8>,
    /// The messages that the bytes are, where they are messages.
    messages: VecDeque<KeptMessage>,
    /// When the last of the bytes came: an answer that waits here was whole by then.
    pub(super) timing: AnswerTiming,
    /// Answers of questions that were given up, which may still come.
    owed: u16,
    /// What is owed after this moment is lost.
    owed_until: Instant,
    /// An answer that may be one of those.
    set_aside: Option<AnswerTiming>,
    /// From when each of the messages counts that have not been answered, of a user that sends the next
    /// ones before.
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
            owed: 0,
            owed_until: Instant::ZERO,
            set_aside: None,
            window: VecDeque::new(),
        }
    }

    /// Takes the first message out.
    fn pop<R>(&mut self, read: impl FnOnce(MessageTemplate<'_>, AnswerTiming) -> R) -> Option<R> {
        let kept = self.messages.pop_front()?;
        let bytes = &self.bytes[..kept.bytes as usize];
        let message = if kept.is_text {
            MessageTemplate::Text(as_text(bytes))
        } else {
            MessageTemplate::Binary(bytes)
        };
        let result = read(message, kept.timing);
        self.bytes.drain(..kept.bytes as usize);
        Some(result)
    }

    /// Returns whether there is nothing to be kept in it.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
            && self.messages.is_empty()
            && self.owed == 0
            && self.set_aside.is_none()
            && self.window.is_empty()
    }
}

impl Generator {
    /// Takes bytes of a stream that come while no step waits. `of_answer`: they came together with the
    /// answer before.
    pub(super) fn unasked_bytes<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        bytes: &[u8],
        timing: AnswerTiming,
        of_answer: bool,
    ) {
        let user = conn.state();
        if !self.may_be_awaited(user) {
            self.stats.counters.messages_unasked += 1;
            // The rest of an answer of which only the beginning was waited for belongs to it.
            if !of_answer && !user.takes_owed(timing.came_at()) {
                user.flags.set_hears_alike(true);
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
        self.inbox_overflows(conn);
    }

    /// Takes a message that comes while no step waits.
    pub(super) fn unasked_message<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        message: MessageTemplate<'_>,
    ) {
        let timing = AnswerTiming::of(conn);
        self.stats.incidents.heard(timing.came_at());
        let user = conn.state();
        if !self.may_be_awaited(user) {
            return self.throw_away(user, message, timing.came_at());
        }
        let bytes = message.bytes();
        let inbox = user.inbox.get_or_insert_with(|| Box::new(Inbox::new(timing)));
        // Where others are passed over anyway, the oldest make room.
        while self.skips_others[usize::from(user.class)]
            && inbox.bytes.len() + bytes.len() > INBOX_BYTES_MAX
            && inbox.pop(|_, _| ()).is_some()
        {
            self.stats.counters.messages_unasked += 1;
        }
        if inbox.bytes.len() + bytes.len() <= INBOX_BYTES_MAX {
            inbox.bytes.extend_from_slice(bytes);
            let is_text = matches!(message, MessageTemplate::Text(_));
            inbox.messages.push_back(KeptMessage { timing, bytes: bytes.len() as u32, is_text });
            return;
        }
        user.inbox = None;
        self.inbox_overflows(conn);
    }

    /// Returns whether what comes now may be what an `expect` waits for that is about to begin.
    fn may_be_awaited(&self, user: &User) -> bool {
        let is_leaving = matches!(
            user.doing,
            UserState::Staying | UserState::Closing | UserState::Failing | UserState::Stopping
        );
        if is_leaving || !self.expects[usize::from(user.class)] {
            return false;
        }
        let NextAnswer { sends_first, expect } = self.config.program.next_answer(user.pc);
        // With answers outstanding it may be one of them, whatever is sent before it is waited for.
        (expect.is_some() && !sends_first) || user.unanswered > 0
    }

    /// A message that answers nothing.
    pub(super) fn throw_away(
        &mut self,
        user: &mut User,
        message: MessageTemplate<'_>,
        came_at: Instant,
    ) {
        self.stats.counters.messages_unasked += 1;
        if user.flags.hears_alike() && user.inbox.is_none() {
            return;
        }
        let program = &self.config.program;
        let Some(expect) = program.next_answer(user.pc).expect else { return };
        let Op::Await { pattern, .. } = program.op(expect) else { return };
        if program.pattern(pattern).matches(message) && !user.takes_owed(came_at) {
            user.flags.set_hears_alike(true);
        }
    }

    /// A question is about to be sent: what has come until now does not answer it.
    pub(super) fn forget_unasked(&mut self, user: &mut User, now: Instant) {
        let Some(mut inbox) = user.inbox.take() else { return };
        inbox.set_aside = None;
        let owes = inbox.owed > 0 && now <= inbox.owed_until;
        if inbox.messages.is_empty() && !inbox.bytes.is_empty() {
            self.stats.counters.messages_unasked += 1;
            // A stream has no borders: a late answer is all that has come, or nothing is known of it.
            if owes {
                inbox.owed = 0;
            } else {
                user.flags.set_hears_alike(true);
            }
        }
        let bytes = std::mem::take(&mut inbox.bytes);
        let messages = std::mem::take(&mut inbox.messages);
        user.inbox = Some(inbox).filter(|inbox| owes && !inbox.is_empty());
        let mut rest = &bytes[..];
        for kept in messages {
            let (message, after) = rest.split_at(kept.bytes as usize);
            rest = after;
            let message = if kept.is_text {
                MessageTemplate::Text(as_text(message))
            } else {
                MessageTemplate::Binary(message)
            };
            self.throw_away(user, message, kept.timing.came_at());
        }
    }

    /// Takes the first kept message that `pattern` takes; those before it are passed over if it skips
    /// others. None when there is none, and `Err` when another one came first.
    pub(super) fn kept_answer(
        &mut self,
        user: &mut User,
        pattern: u32,
    ) -> Result<Option<AnswerTiming>, ErrorKind> {
        let skips_others = self.config.program.pattern(pattern).skips_others();
        while let Some((matches, timing)) = self.pop_kept(user, pattern) {
            if matches && !self.sets_aside(user, timing) {
                return Ok(Some(timing));
            }
            if !matches && !skips_others {
                return Err(ErrorKind::ExpectMismatch);
            }
            self.stats.counters.messages_unasked += u64::from(!matches);
        }
        Ok(None)
    }

    /// Takes the first kept message; returns whether `pattern` takes it, and when it came.
    fn pop_kept(&self, user: &mut User, pattern: u32) -> Option<(bool, AnswerTiming)> {
        let pattern = self.config.program.pattern(pattern);
        let inbox = user.inbox.as_mut()?;
        let popped = inbox.pop(|message, timing| (pattern.matches(message), timing));
        user.inbox.take_if(|inbox| inbox.is_empty());
        popped
    }

    /// Counts an answer that cannot be told from others. Returns whether its latency means something.
    pub(super) fn is_in_step(&mut self, user: &User, came_at: Instant, from: Instant) -> bool {
        let counters = &mut self.stats.counters;
        if came_at + CLOCK_ERROR_MAX < from {
            counters.answers_out_of_step += 1;
            return false;
        }
        counters.answers_doubtful += u64::from(user.flags.hears_alike());
        true
    }

    /// Sets a message aside that its `expect` would take, if it may be the late answer to a question that
    /// was given up. If another one follows, that is the answer; if none does until the time-out, this was.
    pub(super) fn sets_aside(&mut self, user: &mut User, timing: AnswerTiming) -> bool {
        if !user.owes(timing.came_at()) {
            return false;
        }
        if let Some(inbox) = &mut user.inbox {
            inbox.owed -= 1;
            inbox.set_aside = Some(timing);
        }
        self.stats.counters.messages_unasked += 1;
        true
    }

    /// No answer came in time. One that was set aside was the answer after all; when it was asked for is
    /// known, and that nothing else was, is not: its latency is not measured.
    pub(super) fn expect_timed_out<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let user = conn.state();
        let Some(timing) = user.inbox.as_mut().and_then(|inbox| inbox.set_aside.take()) else {
            self.show_time_out(conn);
            return self.fail(conn, ErrorKind::ExpectTimeout);
        };
        user.inbox.take_if(|inbox| inbox.is_empty());
        self.stats.counters.messages_unasked -= 1;
        self.stats.counters.answers_out_of_step += 1;
        self.answered_unmeasured(conn, timing);
        self.advance(conn);
    }

    /// More has come than is kept.
    fn inbox_overflows<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let user = conn.state();
        if self.on_error(user.class) == OnError::Continue {
            // No step went wrong: the user goes on with what it was doing, without these bytes.
            user.iteration = super::user::IterationOutcome::Erred;
            self.count_error(ErrorKind::InboxOverflow);
        } else {
            self.fail(conn, ErrorKind::InboxOverflow);
        }
    }
}

impl User {
    /// An answer was not waited for any longer. It may come until as much time again has passed.
    pub(super) fn give_up_answers(&mut self, now: Instant, until: Instant) {
        let timing = AnswerTiming { seen_at: now, arrival: throng_engine::Arrival::UNKNOWN };
        let owed_before = self.inbox.take().map_or(0, |inbox| inbox.owed);
        let mut inbox = Inbox::new(timing);
        inbox.owed = owed_before.saturating_add(self.unanswered.max(1));
        inbox.owed_until = until;
        self.inbox = Some(Box::new(inbox));
    }

    /// Sends a message, to be counted from `from`, while `unanswered` ones before it are still to be
    /// answered.
    pub(super) fn widen_window(&mut self, now: Instant, from: Instant) {
        let (unanswered, before) = (usize::from(self.unanswered), self.message_from);
        let timing = AnswerTiming { seen_at: now, arrival: throng_engine::Arrival::UNKNOWN };
        let inbox = self.inbox.get_or_insert_with(|| Box::new(Inbox::new(timing)));
        if inbox.window.is_empty() {
            inbox.window.extend(std::iter::repeat_n(before, unanswered));
        }
        inbox.window.push_back(from);
    }

    /// The first message of the window is answered.
    pub(super) fn answered_of_window(&mut self) {
        if let Some(inbox) = &mut self.inbox {
            inbox.window.pop_front();
            self.inbox.take_if(|inbox| inbox.is_empty());
        }
    }

    /// Returns whether an answer that came then may be a late one to a question before.
    fn owes(&self, came_at: Instant) -> bool {
        self.inbox.as_ref().is_some_and(|inbox| inbox.owed > 0 && came_at <= inbox.owed_until)
    }

    /// Books an unasked message that came then as a late answer, if one is owed.
    fn takes_owed(&mut self, came_at: Instant) -> bool {
        let owes = self.owes(came_at);
        if let Some(inbox) = self.inbox.as_mut().filter(|_| owes) {
            inbox.owed -= 1;
        }
        self.inbox.take_if(|inbox| inbox.is_empty());
        owes
    }
}

/// Bytes kept for one user that no step waits for yet.
pub(super) const INBOX_BYTES_MAX: usize = 64 << 10;
