//! `stay`: keeps the connection until the run ends or the server closes it.

use super::prelude::*;
use crate::user::iteration;

pub(super) const KIND: StepKind = StepKind::new("stay", "stay", StepForm::OptionalValue(read));

#[derive(Debug)]
struct Stay;

impl Action for Stay {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.require_connection();
        flow.end();
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let facts = OpFacts { time_min: None, ..OpFacts::of_role(OpRole::Separates) };
        compiler.push(Op::Stay, facts);
    }
}

fn read(reader: &mut Reader<'_>, value: Option<&Node>) -> Option<Box<dyn Action>> {
    if let Some(node) = value {
        reader.error(node.span.clone(), "`stay` takes no value", "remove this").help =
            Some("to stay for a time, write `wait: 1m`".to_owned());
        return None;
    }
    Some(Box::new(Stay))
}

/// Begins a `stay`, which lasts as long as the schedule. After it, the program ends.
pub(crate) fn begin(cx: &mut UserContext<'_>) -> StepOutcome {
    if !cx.rules.is_scheduled {
        return iteration::end(cx);
    }
    cx.user.set_wait(UserWait::RunEnd);
    cx.wait_until(Deadline::Never);
    StepOutcome::Wait
}
