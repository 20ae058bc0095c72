//! `set`: stores values under names, for later steps of the same user.

use super::expect::read_value_name;
use super::prelude::*;

pub(super) const KIND: StepKind =
    StepKind::new("set", "set: {order: \"${uuid()}\"}", StepForm::Value(read));

/// Values, each with its place among those of the user.
#[derive(Debug)]
struct Set(Vec<(u16, Template)>);

impl Action for Set {
    fn check(&self, _: &mut Flow<'_, '_>) {}

    fn compile(&self, compiler: &mut Compiler<'_>) {
        for (slot, template) in &self.0 {
            let op = Op::Set { slot: *slot, template: compiler.template(template) };
            compiler.push(op, OpFacts::of_role(OpRole::Neutral));
        }
    }
}

fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Box<dyn Action>> {
    let Kind::Map(entries) = &node.kind else {
        reader.wrong_kind(node, "`set`", "a mapping such as {order: \"${uuid()}\"}");
        return None;
    };
    let values: Vec<_> = entries
        .iter()
        .map(|(key, value)| {
            let text = reader.text(value, "a value of `set`", "a text");
            let template = text.and_then(|text| reader.template(value, text));
            // A mistake in the value is no mistake of those that use it.
            let name = read_value_name(reader, key)?;
            let is_number = template.as_ref().is_none_or(Template::is_number);
            let slot = reader.define(key, &name, is_number);
            Some((slot, template?))
        })
        .collect();
    let values: Option<Vec<_>> = values.into_iter().collect();
    Some(Box::new(Set(values?)))
}

/// Stores a value. It takes no time.
pub(crate) fn begin(cx: &mut UserContext<'_>, slot: u16, template: u32) -> StepOutcome {
    let program = cx.rules.program;
    let text = &mut cx.encoder.comparison;
    text.clear();
    cx.user.render(program, |scope| program.template(template).render(scope, text));
    cx.user.memory.store(slot, text);
    StepOutcome::Next
}
