//! What becomes of everything that a user begins: it succeeds, it fails, or it waits when its user
//! is stopped.
//!
//! Successes are counted where they happen; this file counts the other two, so that the sums close
//! which [`LoadCounters`](throng_report::LoadCounters) names. A user's account is closed when the
//! user is stopped: when everybody begins to leave, or when the schedule or somebody by hand ends
//! this user. From then on nothing is counted of it.

use std::ops::Range;

use throng_base::Instant;
use throng_driver::Driver;
use throng_engine::CoreContext;
use throng_report::{Histogram, UnansweredWaits};

use super::user::{IterationOutcome, LoopCounter, User, UserState};
use super::{Generator, GeneratorMessage};
use crate::program::{Loop, Op, Protocol, Question};

/// What a user waits for from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// A connection; of a WebSocket, TCP alone.
    Connect,
    /// The answer to its upgrade.
    Upgrade,
    /// What its `expect` says.
    Answer,
    /// The answer to its join.
    Join,
    /// The answer to its push.
    Push,
    /// Room, to send into.
    Room,
}

/// What becomes of turns of `every` that came due and never begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NeverBegun {
    /// Their user is stopped.
    Waiting,
    /// An error ends their loop.
    Failed,
}

impl Generator {
    /// Closes the accounts of all users, at the moment at which everybody begins to leave.
    pub(super) fn close_accounts<D: Driver<Mail = GeneratorMessage>>(
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
            if user.doing == UserState::Waiting && user.intended < now {
                // Nobody but this generator kept it.
                self.stats.lag.record_us(now.micros_since(user.intended));
            }
            self.close_account(user, now);
            if !matches!(
                user.doing,
                UserState::Closing
                    | UserState::GivingUp
                    | UserState::Failing
                    | UserState::Resting
                    | UserState::Stopping
            ) {
                user.doing = UserState::Staying;
            }
        }
    }

    /// Counts what a user waits for that is stopped at `now`, and how its iteration has ended. Does
    /// nothing the second time.
    pub(super) fn close_account(&mut self, user: &mut User, now: Instant) {
        if user.is_settled() {
            return;
        }
        self.count_waiting(user, now);
        let never_begun = match user.doing {
            UserState::Failing | UserState::GivingUp => NeverBegun::Failed,
            _ => NeverBegun::Waiting,
        };
        let done = self.has_done_all(user, now);
        self.give_up_turns(user, now, never_begun);
        if user.iteration == IterationOutcome::Clean && !done {
            user.iteration = IterationOutcome::Over;
            self.stats.counters.users_cut += 1;
            self.stats.classes[usize::from(user.class)].users_cut += 1;
        } else {
            self.iteration_over(user);
        }
    }

    /// Counts the step that a user waits in, which is cut off at `now`.
    fn count_waiting(&mut self, user: &User, now: Instant) {
        let Some(wait) = self.wait_of(user) else { return };
        let counters = &mut self.stats.counters;
        match wait {
            Wait::Connect => counters.connects_waiting += 1,
            Wait::Upgrade => {
                counters.connects_waiting += 1;
                counters.upgrades_waiting += 1;
            }
            Wait::Answer => counters.messages_waiting += 1,
            Wait::Join => counters.joins_waiting += 1,
            Wait::Push => counters.pushes_waiting += 1,
            Wait::Room => counters.sends_waiting += 1,
        }
        self.record_unanswered(user, wait, now);
    }

    /// Counts the step that a user waits in, which fails at `now`; `timed_out` where the server had
    /// all the time that it was given. A failed connect is counted by what was the matter with it,
    /// too.
    pub(super) fn step_failed(&mut self, user: &User, now: Instant, timed_out: bool) {
        let Some(wait) = self.wait_of(user) else { return };
        let counters = &mut self.stats.counters;
        match wait {
            Wait::Connect => {}
            Wait::Upgrade => counters.upgrades_failed += 1,
            Wait::Answer => counters.messages_failed += 1,
            Wait::Join => counters.joins_failed += 1,
            Wait::Push => counters.pushes_failed += 1,
            Wait::Room => counters.sends_failed += 1,
        }
        if timed_out {
            self.record_unanswered(user, wait, now);
        }
    }

    /// Returns what a user waits for from the server.
    fn wait_of(&self, user: &User) -> Option<Wait> {
        Some(match user.doing {
            UserState::Connecting => Wait::Connect,
            UserState::Upgrading => Wait::Upgrade,
            UserState::Expecting => Wait::Answer,
            UserState::Asking => match self.config.program.question_at(user.pc)? {
                Question::Join => Wait::Join,
                Question::Push => Wait::Push,
                Question::Connect | Question::Message => return None,
            },
            UserState::Blocked => match self.config.program.op(user.pc) {
                Op::Send { .. } | Op::SendRandom { .. } | Op::Ask { .. } => Wait::Room,
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Records a wait that no answer has ended.
    fn record_unanswered(&mut self, user: &User, wait: Wait, now: Instant) {
        let from = match wait {
            Wait::Answer => user.answer_counts_from(),
            _ => user.intended,
        };
        let waited_us = now.micros_since(from);
        if let Some(question) = self.config.program.question_at(user.pc) {
            histogram(&mut self.stats.unanswered, question).record_us(waited_us);
        }
        if wait == Wait::Connect && self.config.program.protocol() != Protocol::Tcp {
            self.stats.unanswered.tcp.record_us(waited_us);
        }
    }

    /// Whether a user has nothing more to do than to wait for the end of the run: it stays, or its
    /// last loop has no end and the next turn is not due.
    fn has_done_all(&self, user: &User, now: Instant) -> bool {
        match user.doing {
            UserState::Staying => true,
            UserState::Waiting => {
                let endless = |index| self.config.program.looping(index).is_endless();
                user.intended > now.min(self.schedule_over_at)
                    && self.turn_awaited(user).is_some_and(endless)
            }
            _ => false,
        }
    }

    /// Returns the loop for whose next turn a user waits that is [`Doing::Waiting`].
    pub(super) fn turn_awaited(&self, user: &User) -> Option<u32> {
        match self.config.program.op(user.pc.checked_sub(1)?) {
            Op::LoopBegin { index } => Some(index),
            _ => None,
        }
    }

    /// Whether a user is between two turns of a loop that has no end.
    pub(super) fn is_idle(&self, user: &User, now: Instant) -> bool {
        user.doing == UserState::Waiting && self.has_done_all(user, now)
    }

    /// Counts the turns of every loop around a user that had come due by `now`, and never begin.
    pub(super) fn give_up_turns(&mut self, user: &mut User, now: Instant, why: NeverBegun) {
        let pc = user.pc;
        for index in self.config.program.loops_near(pc) {
            let program = &self.config.program;
            let looping = program.looping(index);
            if looping.contains(pc) {
                let begun = user.loop_at(looping.slot).turns_begun();
                let question = program.question_at(pc).or_else(|| program.question_of_turn(index));
                self.give_up_loop(user, index, begun, question, now, why);
            }
        }
    }

    /// Counts the turns of one loop that had come due by `now` and never begin: those after the
    /// first `begun`.
    pub(super) fn give_up_loop(
        &mut self,
        user: &mut User,
        index: u32,
        begun: u64,
        question: Option<Question>,
        now: Instant,
        why: NeverBegun,
    ) {
        let looping = *self.config.program.looping(index);
        let until = if looping.is_endless() { now.min(self.schedule_over_at) } else { now };
        let counter = user.loop_at(looping.slot);
        let (begun_at, counted) = (counter.begun, counter.counted());
        let due = match until < begun_at {
            true => counted,
            false => looping.turns_due(until - begun_at).max(counted),
        };
        // So that no turn is given up twice.
        *counter = LoopCounter { turn: due, ..LoopCounter::new(begun_at) };
        let counters = &mut self.stats.counters;
        counters.turns_intended += due - counted;
        match why {
            NeverBegun::Waiting => counters.turns_waiting += due - begun,
            NeverBegun::Failed => counters.turns_failed += due - begun,
        }
        if let Some(question) = question {
            let histogram = histogram(&mut self.stats.unanswered, question);
            record_turns(histogram, &looping, begun_at, begun..due, now);
        }
    }
}

fn histogram(unanswered: &mut UnansweredWaits, question: Question) -> &mut Histogram {
    match question {
        Question::Connect => &mut unanswered.connect,
        Question::Message => &mut unanswered.message,
        Question::Join => &mut unanswered.join,
        Question::Push => &mut unanswered.push,
    }
}

/// Records for how long each of these turns has been due. Of very many, some neighbours count as
/// the last of them.
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
        let last_due_ns = looping.turn_begins(next - 1, 0).unwrap_or(0);
        let due_at = begun + std::time::Duration::from_nanos(last_due_ns);
        let count = u32::try_from(next - first).unwrap_or(u32::MAX);
        histogram.record_n(now.micros_since(due_at), count);
        first = next;
    }
}

/// Values that are recorded for the turns of one loop of one user.
const TURNS_RECORDED_MAX: u64 = 1_000;
