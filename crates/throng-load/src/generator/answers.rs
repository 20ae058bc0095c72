//! The step that waits for bytes of a stream, and what every answer has in common.

use std::time::Duration;

use throng_base::Instant;
use throng_driver::Driver;
use throng_engine::{Conn, Deadline};

use super::steps::StepOutcome;
use super::timing::{AnswerTiming, CLOCK_ERROR_MAX};
use super::user::{User, UserState};
use super::{ErrorKind, Generator, GeneratorMessage};
use crate::program::{MatchProgress, Matcher, Op};

impl Generator {
    /// The step `expect` begins.
    pub(super) fn expect<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        matcher: u32,
        timeout: Duration,
    ) -> StepOutcome {
        let now = conn.now();
        let is_open = conn.is_open();
        let user = conn.state();
        let early =
            user.inbox.as_mut().map(|inbox| (std::mem::take(&mut inbox.bytes), inbox.timing));
        user.inbox.take_if(|inbox| inbox.is_empty());
        let early = early.filter(|(bytes, _)| !bytes.is_empty());
        if !is_open && early.is_none() {
            return self.not_connected(conn);
        }
        user.awaited = 0;
        user.doing = UserState::Expecting;
        conn.set_deadline(Deadline::Coarse(now + timeout));
        let Some((bytes, timing)) = early else { return StepOutcome::Wait };
        // What arrived early is the beginning of the answer, or all of it and more.
        match self.take_bytes(conn, matcher, &bytes, timing) {
            MatchOutcome::Answered => StepOutcome::Next,
            MatchOutcome::Wanting if is_open => StepOutcome::Wait,
            MatchOutcome::Wanting => {
                conn.set_deadline(Deadline::Never);
                self.not_connected(conn)
            }
            MatchOutcome::Failed => StepOutcome::Wait,
        }
    }

    /// Gives bytes to the `expect` that waits for them. What follows the answer is kept for the next one.
    fn take_bytes<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        matcher: u32,
        bytes: &[u8],
        timing: AnswerTiming,
    ) -> MatchOutcome {
        let mut rest = bytes;
        while !rest.is_empty() {
            match feed(self.config.program.matcher(matcher), conn.state(), rest) {
                MatchProgress::NeedMore => break,
                MatchProgress::Matched { consumed } => {
                    rest = &rest[consumed..];
                    if self.sets_aside(conn.state(), timing) {
                        continue;
                    }
                    self.answered(conn, timing);
                    if !rest.is_empty() {
                        self.unasked_bytes(conn, rest, timing, true);
                    }
                    return MatchOutcome::Answered;
                }
                MatchProgress::Mismatch { .. } => {
                    self.show_mismatch(conn, rest);
                    self.fail(conn, ErrorKind::ExpectMismatch);
                    return MatchOutcome::Failed;
                }
            }
        }
        MatchOutcome::Wanting
    }

    /// Bytes have arrived.
    pub(super) fn received<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        bytes: &[u8],
    ) {
        let timing = AnswerTiming::of(conn);
        let user = conn.state();
        if user.doing == UserState::Expecting && user.asked_after(timing.came_at()) {
            // They came before the question and were only read after it.
            self.stats.counters.messages_unasked += 1;
            user.flags.set_hears_alike(true);
            return;
        }
        if user.doing == UserState::Expecting
            && let Op::Expect { matcher, .. } = self.config.program.op(user.pc)
        {
            let taken = self.take_bytes(conn, matcher, bytes, timing);
            if taken == MatchOutcome::Answered && conn.state().doing == UserState::Expecting {
                self.advance(conn);
            }
            return;
        }
        self.unasked_bytes(conn, bytes, timing, false);
    }

    /// The answer that the present step waits for is whole: now, or before the step began.
    pub(super) fn answered<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        timing: AnswerTiming,
    ) {
        let user = conn.state();
        let from = user.answer_counts_from();
        let came_at = timing.came_at();
        // What was there before the step that waits for it, and was not asked for, has no latency.
        let is_measured = match user.unanswered {
            0 => came_at + CLOCK_ERROR_MAX >= from,
            _ => self.is_in_step(user, came_at, from),
        };
        self.book_answer(conn, (from, timing), is_measured);
    }

    /// The same, of an answer whose latency means nothing.
    pub(super) fn answered_unmeasured<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        timing: AnswerTiming,
    ) {
        let from = conn.state().answer_counts_from();
        self.book_answer(conn, (from, timing), false);
    }

    fn book_answer<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        latency: (Instant, AnswerTiming),
        is_measured: bool,
    ) {
        let now = conn.now();
        let user = conn.state();
        // Messages that were sent in a row are answered in a row.
        user.flags.set_answering(true);
        user.answered_of_window();
        user.unanswered = user.unanswered.saturating_sub(1);
        if user.unanswered == 0 {
            user.forget_question();
        }
        user.intended = now;
        user.pc += 1;
        let (from, timing) = latency;
        // An answer to something else is a sign of life.
        let asked = if is_measured { from } else { timing.came_at() };
        self.stats.incidents.answered(timing.came_at(), asked);
        self.stats.answered(is_measured.then_some(latency), user.class);
        conn.set_deadline(Deadline::Never);
    }
}

/// What became of bytes that an `expect` was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatchOutcome {
    /// They are the answer, or the end of it.
    Answered,
    /// The answer is not whole yet.
    Wanting,
    /// They are not the answer.
    Failed,
}

fn feed(matcher: &Matcher, user: &mut User, bytes: &[u8]) -> MatchProgress {
    matcher.feed(&mut user.awaited, bytes)
}
