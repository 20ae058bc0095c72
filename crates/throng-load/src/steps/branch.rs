//! `if`: steps that run where a condition holds, and others where it does not.

use super::prelude::*;
use crate::program::Condition;
use crate::scenario::condition::read_condition;

pub(super) const KIND: StepKind = StepKind::new(
    "if",
    "if: {condition: \"${user.id} < 10\", do: [send: ping]}",
    StepForm::Body(read),
);

#[derive(Debug)]
struct Branch {
    condition: Condition,
    steps: Vec<Step>,
    /// Steps where the condition does not hold; empty for none.
    otherwise: Vec<Step>,
}

impl Action for Branch {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        let bodies = [&self.steps, &self.otherwise];
        flow.check_branches(
            &bodies.map(|steps| |flow: &mut Flow<'_, '_>| check_steps(steps, flow)),
        );
    }

    fn inner_size(&self) -> ExpandedSize {
        size_of(&self.steps).plus(size_of(&self.otherwise))
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let bodies = [&self.steps, &self.otherwise];
        compiler.branch(
            &self.condition,
            &bodies.map(|steps| |compiler: &mut Compiler<'_>| compile_steps(steps, compiler)),
        );
    }
}

fn read(reader: &mut Reader<'_>, node: &Node, place: &StepPlace) -> Option<Box<dyn Action>> {
    let fields = reader.fields(node, "`if`", &["condition", "do", "else"])?;
    let example = "condition: \"${user.id} < 10\"";
    let condition = reader.require(&fields, "condition", "`if`", example);
    let condition = condition.and_then(|node| read_condition(reader, node));
    let steps = place.read_branch(reader, &fields, "`if`", "do");
    let otherwise = reader.value_or(&fields, "else", Vec::new(), |reader, _| {
        place.read_branch(reader, &fields, "`if`", "else")
    });
    Some(Box::new(Branch { condition: condition?, steps: steps?, otherwise: otherwise? }))
}

/// Goes on with the next op where the condition holds, else at `otherwise`.
pub(crate) fn begin(cx: &mut UserContext<'_>, condition: u32, otherwise: u32) -> StepOutcome {
    if cx.holds(condition) { StepOutcome::Next } else { StepOutcome::Go(otherwise) }
}
