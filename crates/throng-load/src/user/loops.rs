//! `every` and `repeat`: the turns of a loop, by the clock or one after another.

use std::time::Duration;
use throng_measure::Operation;

use throng_engine::Deadline;

use super::context::{StepOutcome, UserContext};
use super::loop_counter::LoopCounter;
use super::record::{MissedTurns, Record};
use super::state::{Packed, UserWait};
use crate::program::{Loop, Turns};

/// Begins a loop with turn 0, which is due now.
pub(crate) fn begin(cx: &mut UserContext<'_>, index: u32) -> StepOutcome {
    let slot = cx.rules.program.loop_at(index).slot;
    *cx.user.loop_counter(slot) = LoopCounter::new(cx.user.intended);
    begin_turn(cx, index)
}

/// Ends a turn: begins the next one, or leaves the loop.
pub(crate) fn end_turn(cx: &mut UserContext<'_>, index: u32) -> StepOutcome {
    let slot = cx.rules.program.loop_at(index).slot;
    cx.user.loop_counter(slot).next_turn();
    begin_turn(cx, index)
}

fn begin_turn(cx: &mut UserContext<'_>, index: u32) -> StepOutcome {
    let looping = &loop_of_user(cx, index);
    let LoopCounter { begun, turn, .. } = *cx.user.loop_counter(looping.slot);
    if !cx.rules.is_scheduled && looping.is_endless() {
        let kind = cx.rules.program.latency_kind_of_turn(index);
        count_missed_turns_of(cx, looping, turn, kind, false);
        return StepOutcome::Go(looping.after);
    }
    let passed_ns = cx.now.since(begun).as_nanos() as u64;
    let Some(begins_ns) = looping.turn_begin_ns(turn, passed_ns) else {
        return StepOutcome::Go(looping.after);
    };
    if let Turns::While { condition } = looping.turns {
        let next = if cx.holds(condition) { looping.body } else { looping.after };
        return StepOutcome::Go(next);
    }
    if !matches!(looping.turns, Turns::Every { .. }) {
        return StepOutcome::Go(looping.body);
    }
    // The turn's latencies count from its due moment.
    let due = begun + Duration::from_nanos(begins_ns);
    cx.user.intended = due;
    if due <= cx.now {
        count_turn(cx, looping);
        return StepOutcome::Go(looping.body);
    }
    cx.user.set_wait(UserWait::Turn { index: Packed::new(index) });
    cx.wait_until(Deadline::Exact(due));
    StepOutcome::WaitAt(looping.body)
}

/// Returns a loop with the deviations of this user.
fn loop_of_user(cx: &UserContext<'_>, index: u32) -> Loop {
    cx.rules.program.loop_at(index).of_user(cx.rules.seed, cx.user.id)
}

/// Begins the turn that the user has waited for. In the open model, an endless loop ends with the
/// schedule.
pub(crate) fn resume(cx: &mut UserContext<'_>, index: u32) -> StepOutcome {
    let looping = &loop_of_user(cx, index);
    if looping.is_endless() && cx.user.intended > cx.rules.schedule_over_at {
        return StepOutcome::Go(looping.after);
    }
    count_turn(cx, looping);
    StepOutcome::Again
}

/// Counts the turn that begins and the turns that came due during the last one.
fn count_turn(cx: &mut UserContext<'_>, looping: &Loop) {
    let counter = cx.user.loop_counter(looping.slot);
    let passed = cx.now.since(counter.begun);
    let next = counter.counted().max(counter.turn + 1);
    let is_behind = looping
        .turn_begin_ns(next, 0)
        .is_some_and(|begins_ns| u128::from(begins_ns) <= passed.as_nanos());
    let due = if is_behind { looping.turns_due(passed).max(next) } else { next };
    let new = counter.count(due);
    cx.count(|c| c.turns_started += 1);
    cx.record(Record::TurnsDue(new));
}

/// Delays the turns of every paced loop around a user: the scenario itself holds the user back for
/// this time, and no turn that comes due meanwhile is a wait for the server.
pub(crate) fn delay(cx: &mut UserContext<'_>, by: Duration) {
    let pc = cx.user.pc();
    let program = cx.rules.program;
    for index in program.loops_near(pc) {
        let looping = program.loop_at(index);
        if looping.contains(pc) && matches!(looping.turns, Turns::Every { .. }) {
            let counter = cx.user.loop_counter(looping.slot);
            let begun = counter.begun;
            counter.begun = begun + by;
        }
    }
}

/// Counts the turns of every loop around a user that came due by now and never begin, because an
/// error has ended them (`has_failed`) or the user is stopped.
pub(crate) fn count_missed_turns(cx: &mut UserContext<'_>, has_failed: bool) {
    let pc = cx.user.pc();
    let program = cx.rules.program;
    for index in program.loops_near(pc) {
        if program.loop_at(index).contains(pc) {
            let looping = &loop_of_user(cx, index);
            let begun = cx.user.loop_counter(looping.slot).turns_begun();
            let kind = program.latency_kind_at(pc).or_else(|| program.latency_kind_of_turn(index));
            count_missed_turns_of(cx, looping, begun, kind, has_failed);
        }
    }
}

/// Counts the turns of one loop that came due by now and never begin: all after the first `begun`.
fn count_missed_turns_of(
    cx: &mut UserContext<'_>,
    looping: &Loop,
    begun: u64,
    kind: Option<Operation>,
    has_failed: bool,
) {
    let over_at = cx.rules.schedule_over_at;
    let until = if looping.is_endless() { cx.now.min(over_at) } else { cx.now };
    let counter = cx.user.loop_counter(looping.slot);
    let (begun_at, counted) = (counter.begun, counter.counted());
    let due =
        if until < begun_at { counted } else { looping.turns_due(until - begun_at).max(counted) };
    // Prevents counting a turn twice.
    *counter = LoopCounter { turn: due, ..LoopCounter::new(begun_at) };
    cx.record(Record::TurnsDue(due - counted));
    let missed =
        MissedTurns { has_failed, kind, looping: *looping, begun_at, first: begun, end: due };
    cx.record(Record::MissedTurns(missed));
}
