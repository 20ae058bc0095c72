//! Outcomes of everything that a user begins: it succeeds, it fails, or its user is stopped while
//! it waits.
//!
//! Successes are counted where they happen. This file counts failures and waits, so that the sums
//! that [`LoadCounters`](throng_report::LoadCounters) names add up. A stopped user is counted when
//! all users begin to leave, or when the schedule or a control command stops it. Nothing is counted
//! for it after that.

use std::ops::Range;

use throng_base::Instant;
use throng_driver::Driver;
use throng_engine::CoreContext;
use throng_report::{Histogram, UnansweredWaits};

use super::user::{IterationOutcome, LoopCounter, User, UserState};
use super::{Generator, GeneratorMessage};
use crate::program::{LatencyKind, Loop, Op, Protocol};

/// Response that a user waits for from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerWait {
    /// An established connection; for a WebSocket, TCP's part of it.
    Connect,
    /// The answer to its upgrade request.
    Upgrade,
    /// The answer that its `expect` describes.
    Answer,
    /// The reply to its join.
    Join,
    /// The reply to its push.
    Push,
    /// Buffer space, to send more.
    SendSpace,
}

/// Reason why turns of `every` that came due never begin. Names the counter that they add to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissedTurns {
    /// Their user is stopped.
    Waiting,
    /// An error ends their loop.
    Failed,
}

impl Generator {
    /// Counts all users as stopped, when all users begin to leave.
    pub(super) fn count_stopped_users<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
    ) {
        let now = cx.now();
        for key in cx.keys() {
            let Some(user) = cx.state(key) else { continue };
            if let Some(from) = user.waiting_from() {
                let counters = &mut self.stats.counters;
                counters.users_waiting += 1;
                counters.users_waiting_us_most =
                    counters.users_waiting_us_most.max(now.micros_since(from));
            }
            if user.state == UserState::Waiting && user.intended < now {
                // Only this generator delayed it.
                self.stats.lag.record_us(now.micros_since(user.intended));
            }
            self.count_stopped_user(user, now);
            if !matches!(
                user.state,
                UserState::Closing
                    | UserState::ClosingFailedConnect
                    | UserState::ClosingAfterError
                    | UserState::Resting
                    | UserState::Stopping
            ) {
                user.state = UserState::Staying;
            }
        }
    }

    /// Counts a user that is stopped at `now`: the step that it waits in, and the end of its
    /// iteration. Does nothing the second time.
    pub(super) fn count_stopped_user(&mut self, user: &mut User, now: Instant) {
        if user.is_between_iterations() {
            return;
        }
        self.count_cut_off_step(user, now);
        let missed_turns = match user.state {
            UserState::ClosingAfterError | UserState::ClosingFailedConnect => MissedTurns::Failed,
            _ => MissedTurns::Waiting,
        };
        let done = self.is_done(user, now);
        self.count_missed_turns(user, now, missed_turns);
        if user.iteration == IterationOutcome::Clean && !done {
            user.iteration = IterationOutcome::Over;
            self.stats.counters.users_cut += 1;
            self.stats.classes[usize::from(user.class)].users_cut += 1;
        } else {
            self.count_iteration_end(user);
        }
    }

    /// Counts the step that a user waits in as cut off at `now`.
    fn count_cut_off_step(&mut self, user: &User, now: Instant) {
        let Some(wait) = self.server_wait_of(user) else { return };
        let counters = &mut self.stats.counters;
        match wait {
            ServerWait::Connect => counters.connects_waiting += 1,
            ServerWait::Upgrade => {
                counters.connects_waiting += 1;
                counters.upgrades_waiting += 1;
            }
            ServerWait::Answer => counters.messages_waiting += 1,
            ServerWait::Join => counters.joins_waiting += 1,
            ServerWait::Push => counters.pushes_waiting += 1,
            ServerWait::SendSpace => counters.sends_waiting += 1,
        }
        self.record_unanswered(user, wait, now);
    }

    /// Counts the step that a user waits in as failed at `now`. With `timed_out`, the server had
    /// all the time that it was given, and the wait is recorded. A failed connect is also counted
    /// by its [`ConnectFailure`](super::ConnectFailure).
    pub(super) fn count_step_failure(&mut self, user: &User, now: Instant, timed_out: bool) {
        let Some(wait) = self.server_wait_of(user) else { return };
        let counters = &mut self.stats.counters;
        match wait {
            ServerWait::Connect => {}
            ServerWait::Upgrade => counters.upgrades_failed += 1,
            ServerWait::Answer => counters.messages_failed += 1,
            ServerWait::Join => counters.joins_failed += 1,
            ServerWait::Push => counters.pushes_failed += 1,
            ServerWait::SendSpace => counters.sends_failed += 1,
        }
        if timed_out {
            self.record_unanswered(user, wait, now);
        }
    }

    /// Returns the server's response that a user waits for.
    fn server_wait_of(&self, user: &User) -> Option<ServerWait> {
        Some(match user.state {
            UserState::Connecting => ServerWait::Connect,
            UserState::Upgrading => ServerWait::Upgrade,
            UserState::Expecting => ServerWait::Answer,
            UserState::AwaitingReply => match self.config.program.latency_kind_at(user.pc)? {
                LatencyKind::Join => ServerWait::Join,
                LatencyKind::Push => ServerWait::Push,
                LatencyKind::Connect | LatencyKind::Message => return None,
            },
            UserState::Blocked => match self.config.program.op(user.pc) {
                Op::Send { .. } | Op::SendRandom { .. } | Op::Request { .. } => {
                    ServerWait::SendSpace
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Records a wait that ended without an answer.
    fn record_unanswered(&mut self, user: &User, wait: ServerWait, now: Instant) {
        let from = match wait {
            ServerWait::Answer => user.answer_counts_from(),
            _ => user.intended,
        };
        let waited_us = now.micros_since(from);
        if let Some(kind) = self.config.program.latency_kind_at(user.pc) {
            histogram(&mut self.stats.unanswered, kind).record_us(waited_us);
        }
        if wait == ServerWait::Connect && self.config.program.protocol() != Protocol::Tcp {
            self.stats.unanswered.tcp.record_us(waited_us);
        }
    }

    /// Reports whether a user only waits for the end of the run: it is in `stay`, or its last loop
    /// is endless and the next turn is not due.
    fn is_done(&self, user: &User, now: Instant) -> bool {
        match user.state {
            UserState::Staying => true,
            UserState::Waiting => {
                let endless = |index| self.config.program.loop_at(index).is_endless();
                user.intended > now.min(self.schedule_over_at)
                    && self.awaited_loop(user).is_some_and(endless)
            }
            _ => false,
        }
    }

    /// Returns the loop whose next turn a user waits for. The user's state is
    /// [`UserState::Waiting`].
    pub(super) fn awaited_loop(&self, user: &User) -> Option<u32> {
        match self.config.program.op(user.pc.checked_sub(1)?) {
            Op::LoopBegin { index } => Some(index),
            _ => None,
        }
    }

    /// Reports whether a user is between two turns of an endless loop.
    pub(super) fn is_idle(&self, user: &User, now: Instant) -> bool {
        user.state == UserState::Waiting && self.is_done(user, now)
    }

    /// Counts the turns of every loop around a user that came due by `now` and never begin.
    pub(super) fn count_missed_turns(&mut self, user: &mut User, now: Instant, why: MissedTurns) {
        let pc = user.pc;
        for index in self.config.program.loops_near(pc) {
            let program = &self.config.program;
            let looping = program.loop_at(index);
            if looping.contains(pc) {
                let begun = user.loop_counter(looping.slot).turns_begun();
                let kind =
                    program.latency_kind_at(pc).or_else(|| program.latency_kind_of_turn(index));
                self.count_missed_turns_of_loop(user, index, begun, kind, now, why);
            }
        }
    }

    /// Counts the turns of one loop that came due by `now` and never begin: all after the first
    /// `begun`.
    pub(super) fn count_missed_turns_of_loop(
        &mut self,
        user: &mut User,
        index: u32,
        begun: u64,
        kind: Option<LatencyKind>,
        now: Instant,
        why: MissedTurns,
    ) {
        let looping = *self.config.program.loop_at(index);
        let until = if looping.is_endless() { now.min(self.schedule_over_at) } else { now };
        let counter = user.loop_counter(looping.slot);
        let (begun_at, counted) = (counter.begun, counter.counted());
        let due = if until < begun_at {
            counted
        } else {
            looping.turns_due(until - begun_at).max(counted)
        };
        // Prevents counting a turn twice.
        *counter = LoopCounter { turn: due, ..LoopCounter::new(begun_at) };
        let counters = &mut self.stats.counters;
        counters.turns_intended += due - counted;
        match why {
            MissedTurns::Waiting => counters.turns_waiting += due - begun,
            MissedTurns::Failed => counters.turns_failed += due - begun,
        }
        if let Some(kind) = kind {
            let histogram = histogram(&mut self.stats.unanswered, kind);
            record_turns(histogram, &looping, begun_at, begun..due, now);
        }
    }
}

fn histogram(unanswered: &mut UnansweredWaits, kind: LatencyKind) -> &mut Histogram {
    match kind {
        LatencyKind::Connect => &mut unanswered.connect,
        LatencyKind::Message => &mut unanswered.message,
        LatencyKind::Join => &mut unanswered.join,
        LatencyKind::Push => &mut unanswered.push,
    }
}

/// Records how long each of these turns has been due. If there are very many, groups of neighbours
/// count as the last of their group.
fn record_turns(
    histogram: &mut Histogram,
    looping: &Loop,
    begun: Instant,
    turns: Range<u64>,
    now: Instant,
) {
    let Range { start: mut first, end } = turns;
    let together = (end - first).div_ceil(TURNS_RECORDED_MAX).max(1);
    while first < end {
        let next = end.min(first.saturating_add(together));
        let last_due_ns = looping.turn_begin_ns(next - 1, 0).unwrap_or(0);
        let due_at = begun + std::time::Duration::from_nanos(last_due_ns);
        let count = u32::try_from(next - first).unwrap_or(u32::MAX);
        histogram.record_n(now.micros_since(due_at), count);
        first = next;
    }
}

/// Values recorded for the turns of one loop of one user.
const TURNS_RECORDED_MAX: u64 = 1_000;
