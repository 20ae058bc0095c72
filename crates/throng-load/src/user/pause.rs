//! `wait` and `stay`: think times, and the end of the run.

use std::time::Duration;

use throng_engine::Deadline;

use super::context::UserContext;
use super::flow::Flow;
use super::state::Wait;
use crate::program::jittered;

/// Begins a `wait`. It counts from the end of the step before, not from now, so that delays do not
/// add up. The next op's latency counts from its end.
pub(super) fn begin(cx: &mut UserContext<'_>, span_ns: u64, jitter: f32) -> Flow {
    let span = Duration::from_nanos(jittered(span_ns, jitter, &mut cx.user.prng));
    let due = cx.user.intended + span;
    cx.user.intended = due;
    if due <= cx.now {
        return Flow::Next;
    }
    cx.user.set_wait(Wait::Pause);
    cx.wait_until(Deadline::Exact(due));
    Flow::WaitAt(cx.user.pc() + 1)
}

/// Begins a `stay`, which lasts as long as the schedule. `None` if the schedule is over.
pub(super) fn begin_stay(cx: &mut UserContext<'_>) -> Option<Flow> {
    cx.rules.is_scheduled.then(|| {
        cx.user.set_wait(Wait::RunEnd);
        cx.wait_until(Deadline::Never);
        Flow::Wait
    })
}
