//! Steps with a name: what becomes of each is recorded for its name, beside its kind.

use throng_base::Instant;

use super::context::UserContext;
use super::record::Record;
use super::timing::AnswerTiming;

/// Records that the present step is done, if it has a name. Without `from`, its latency would mean
/// nothing.
pub(crate) fn succeed(cx: &mut UserContext<'_>, from: Option<Instant>, timing: AnswerTiming) {
    if let Some(step) = cx.rules.program.step_at(cx.user.pc()) {
        cx.record(Record::StepDone { step, from, timing });
    }
}

/// Records that an error ended the present step, if it has a name.
pub(crate) fn fail(cx: &mut UserContext<'_>) {
    if let Some(step) = cx.rules.program.step_at(cx.user.pc()) {
        cx.record(Record::StepFailed(step));
    }
}

/// Records that the user is stopped in the present step, if it has a name.
pub(crate) fn cut_off(cx: &mut UserContext<'_>) {
    if let Some(step) = cx.rules.program.step_at(cx.user.pc()) {
        cx.record(Record::StepCut(step));
    }
}

/// Records the wait of the present step, which no answer ended, if it has a name.
pub(crate) fn record_unanswered(cx: &mut UserContext<'_>, from: Instant) {
    if let Some(step) = cx.rules.program.step_at(cx.user.pc()) {
        cx.record(Record::StepUnanswered { step, from });
    }
}
