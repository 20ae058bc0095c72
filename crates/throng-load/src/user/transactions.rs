//! Transactions: steps that are measured together, from the intended moment of the first to the end
//! of the last.
//!
//! An error in a transaction fails it at once, even if `on_error: continue` lets the user go on.

use throng_base::Instant;

use super::context::{StepOutcome, UserContext};
use super::record::Record;
use super::timing::AnswerTiming;
use crate::program::{StepIndex, Transaction};

/// Begins a transaction.
pub(crate) fn begin(cx: &mut UserContext<'_>, index: u32) -> StepOutcome {
    let slot = cx.rules.program.transaction(index).slot;
    *cx.user.transaction_begun(slot) = cx.user.intended;
    StepOutcome::Next
}

/// Ends a transaction. Records its duration if it has not failed.
pub(crate) fn end(cx: &mut UserContext<'_>, index: u32) -> StepOutcome {
    let Transaction { slot, step, .. } = *cx.rules.program.transaction(index);
    let begun = std::mem::replace(cx.user.transaction_begun(slot), ENDED);
    if begun != ENDED {
        // The user goes on from this moment: there is no second clock.
        let timing = AnswerTiming::own(cx.user.intended);
        cx.record(Record::StepDone { step, from: Some(begun), timing });
    }
    StepOutcome::Next
}

/// Fails the transactions around the present step. With `timed_out`, the server had all the time
/// that it was given, and each is recorded as a wait, too.
pub(crate) fn fail(cx: &mut UserContext<'_>, timed_out: bool) {
    end_open(cx, |cx, step, from| {
        cx.record(Record::StepFailed(step));
        if timed_out {
            cx.record(Record::StepUnanswered { step, from });
        }
    });
}

/// Records that the user is stopped in the transactions around the present step.
pub(crate) fn cut_off(cx: &mut UserContext<'_>) {
    end_open(cx, |cx, step, from| {
        cx.record(Record::StepCut(step));
        cx.record(Record::StepUnanswered { step, from });
    });
}

/// Ends all transactions around the present step that have not failed.
fn end_open(cx: &mut UserContext<'_>, record: impl Fn(&mut UserContext<'_>, StepIndex, Instant)) {
    let program = cx.rules.program;
    for Transaction { slot, step, .. } in program.transactions_around(cx.user.pc()) {
        let begun = std::mem::replace(cx.user.transaction_begun(*slot), ENDED);
        if begun != ENDED {
            record(cx, *step, begun);
        }
    }
}

/// The beginning of a transaction that has ended.
const ENDED: Instant = Instant::FAR;
