//! `wait`: a think time.

mod law;

use throng_base::units::parse_jitter;

use super::prelude::*;
use crate::program::{ThinkTime, jittered};

pub(super) const KIND: StepKind = StepKind::new("wait", "wait: 1s ±10%", StepForm::Value(read));

#[derive(Debug)]
struct Wait {
    /// Mean of the think time.
    span: Duration,
    /// Share of `span` by which it varies either way, evenly distributed; 0 to 1.
    jitter: f64,
}

/// A think time with a long tail.
#[derive(Debug)]
struct Think(ThinkTime);

impl Action for Wait {
    fn check(&self, _: &mut Flow<'_, '_>) {}

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let op = Op::Wait { span_ns: nanos(self.span), jitter: self.jitter as f32 };
        let time_min = Some(self.span);
        compiler.push(op, OpFacts { time_min, ..OpFacts::of_role(OpRole::Neutral) });
    }
}

impl Action for Think {
    fn check(&self, _: &mut Flow<'_, '_>) {}

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let index = compiler.think_time(self.0);
        let time_min = Some(self.0.mean());
        let facts = OpFacts { time_min, ..OpFacts::of_role(OpRole::Neutral) };
        compiler.push(Op::Think { index }, facts);
    }
}

fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Box<dyn Action>> {
    if node.scalar().is_some_and(|text| text.contains('(')) {
        return law::read(reader, node);
    }
    if let Some(meant) = node.scalar().and_then(law::of_range) {
        reader.error(node.span.clone(), "`wait` is a range", format!("write `{meant}`"));
        return None;
    }
    let (span, jitter) = reader.quantity(node, "`wait`", parse_jitter)?;
    if jitter > 1.0 {
        reader.error(node.span.clone(), "`wait` varies by more than 100%", "at most ±100%");
        return None;
    }
    Some(Box::new(Wait { span, jitter }))
}

/// Begins a `wait`.
pub(crate) fn begin(cx: &mut UserContext<'_>, span_ns: u64, jitter: f32) -> StepOutcome {
    let span = Duration::from_nanos(jittered(span_ns, jitter, &mut cx.user.prng));
    pause(cx, span)
}

/// Begins a `wait` that is drawn from a law.
pub(crate) fn begin_drawn(cx: &mut UserContext<'_>, index: u32) -> StepOutcome {
    let span = cx.rules.program.think_time(index).draw(&mut cx.user.prng);
    pause(cx, span)
}

/// Begins a pause. It counts from the end of the step before, not from now, so that delays do not
/// add up. The next op's latency counts from its end.
fn pause(cx: &mut UserContext<'_>, span: Duration) -> StepOutcome {
    let due = cx.user.intended + span;
    cx.user.intended = due;
    if due <= cx.now {
        return StepOutcome::Next;
    }
    cx.user.set_wait(UserWait::Pause);
    cx.wait_until(Deadline::Exact(due));
    StepOutcome::WaitAt(cx.user.pc() + 1)
}
