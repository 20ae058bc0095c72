//! The step that waits for bytes of a TCP stream, and what all answers have in common.

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
    /// Begins an `expect` step on TCP.
    pub(super) fn expect_bytes<D: Driver<Message = GeneratorMessage>>(
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
            return self.skip_unconnected_step(conn);
        }
        user.awaited = 0;
        user.state = UserState::Expecting;
        conn.set_deadline(Deadline::Coarse(now + timeout));
        let Some((bytes, timing)) = early else { return StepOutcome::Wait };
        // Early bytes are the beginning of the answer, or all of it and more.
        match self.match_bytes(conn, matcher, &bytes, timing) {
            MatchOutcome::Answered => StepOutcome::Next,
            MatchOutcome::Incomplete if is_open => StepOutcome::Wait,
            MatchOutcome::Incomplete => {
                conn.set_deadline(Deadline::Never);
                self.skip_unconnected_step(conn)
            }
            MatchOutcome::Failed => StepOutcome::Wait,
        }
    }

    /// Feeds bytes to the `expect` that waits for them. Keeps what follows the answer for the next
    /// one.
    fn match_bytes<D: Driver<Message = GeneratorMessage>>(
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
                    if self.set_aside_if_late(conn.state(), timing) {
                        continue;
                    }
                    self.answered(conn, timing);
                    if !rest.is_empty() {
                        self.unasked_bytes_received(conn, rest, timing, true);
                    }
                    return MatchOutcome::Answered;
                }
                MatchProgress::Mismatch { .. } => {
                    self.sample_mismatch(conn, rest);
                    self.fail_step(conn, ErrorKind::ExpectMismatch);
                    return MatchOutcome::Failed;
                }
            }
        }
        MatchOutcome::Incomplete
    }

    /// Handles bytes that arrive on a TCP stream.
    pub(super) fn bytes_received<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        bytes: &[u8],
    ) {
        let timing = AnswerTiming::of(conn);
        let user = conn.state();
        if user.state == UserState::Expecting && user.has_asked_after(timing.arrived_at()) {
            // They arrived before the request was sent and were only read after it.
            self.stats.counters.messages_unasked += 1;
            user.flags.set_receives_lookalikes(true);
            return;
        }
        if user.state == UserState::Expecting
            && let Op::ExpectBytes { matcher, .. } = self.config.program.op(user.pc)
        {
            let taken = self.match_bytes(conn, matcher, bytes, timing);
            if taken == MatchOutcome::Answered && conn.state().state == UserState::Expecting {
                self.advance(conn);
            }
            return;
        }
        self.unasked_bytes_received(conn, bytes, timing, false);
    }

    /// Completes the present step: its answer is whole now, or was before the step began.
    pub(super) fn answered<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        timing: AnswerTiming,
    ) {
        let user = conn.state();
        let from = user.answer_counts_from();
        let arrived_at = timing.arrived_at();
        // An answer that arrived before its step, without a request, has no latency.
        let is_measured = match user.unanswered {
            0 => arrived_at + CLOCK_ERROR_MAX >= from,
            _ => self.check_latency(user, arrived_at, from),
        };
        self.complete_answer(conn, (from, timing), is_measured);
    }

    /// Completes the present step without recording a latency, because it would mean nothing.
    pub(super) fn answered_unmeasured<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        timing: AnswerTiming,
    ) {
        let from = conn.state().answer_counts_from();
        self.complete_answer(conn, (from, timing), false);
    }

    fn complete_answer<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        latency: (Instant, AnswerTiming),
        is_measured: bool,
    ) {
        let now = conn.now();
        let user = conn.state();
        // Messages that were sent in a row are answered in a row.
        user.flags.set_answering(true);
        user.pop_from_window();
        user.unanswered = user.unanswered.saturating_sub(1);
        if user.unanswered == 0 {
            user.clear_unanswered();
        }
        user.intended = now;
        user.pc += 1;
        let (from, timing) = latency;
        // An answer to another request still shows that the target is alive.
        let asked = if is_measured { from } else { timing.arrived_at() };
        self.stats.incidents.answered(timing.arrived_at(), asked);
        self.stats.count_answer(is_measured.then_some(latency), user.class);
        conn.set_deadline(Deadline::Never);
    }
}

/// Result of feeding bytes to an `expect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatchOutcome {
    /// The bytes complete the answer.
    Answered,
    /// The answer is not complete yet.
    Incomplete,
    /// The bytes do not match.
    Failed,
}

fn feed(matcher: &Matcher, user: &mut User, bytes: &[u8]) -> MatchProgress {
    matcher.feed(&mut user.awaited, bytes)
}
