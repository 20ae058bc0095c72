//! Limits that the scenario sets: a user waits for its turn before it sends or connects.
//!
//! The wait is a pause until the turn, so the latency of what follows counts from the turn.

use throng_engine::Deadline;

use super::context::{StepOutcome, UserContext};
use super::loops;
use super::record::Record;
use super::state::UserWait;
use crate::program::LimitScope;

/// Takes the user's next turn of a limit, and waits for it.
pub(crate) fn begin(cx: &mut UserContext<'_>, limit: u16) -> StepOutcome {
    let rule = cx.rules.program.limits()[usize::from(limit)];
    let clock = &mut cx.clocks[usize::from(limit)];
    let turn = match rule.scope {
        LimitScope::All => clock.next_turn(cx.now),
        LimitScope::User => {
            let next = cx.user.memory.next_turn(rule.action);
            let turn = (*next).max(cx.now);
            *next = clock.after(turn);
            turn
        }
    };
    cx.record(Record::TurnGiven { limit, turn });
    if turn <= cx.now {
        return StepOutcome::Next;
    }
    loops::delay(cx, turn - cx.now);
    cx.user.intended = turn;
    cx.user.set_wait(UserWait::Pause);
    cx.wait_until(Deadline::Exact(turn));
    StepOutcome::WaitAt(cx.user.pc() + 1)
}
