//! `foreach`: steps for each value of a list, one after another.

use super::expect::read_value_name;
use super::prelude::*;

pub(super) const KIND: StepKind = StepKind::new(
    "foreach",
    "foreach: {name: room, in: [a, b], do: [send: ping]}",
    StepForm::Body(read),
);

#[derive(Debug)]
struct ForEach {
    /// Place of the value among those of the user.
    slot: u16,
    values: Vec<Template>,
    steps: Vec<Step>,
}

impl Action for ForEach {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.check_turns(self.values.len() > 1, |flow| check_steps(&self.steps, flow));
    }

    fn inner_size(&self) -> ExpandedSize {
        size_of(&self.steps).repeated(self.values.len())
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        for value in &self.values {
            let op = Op::Set { slot: self.slot, template: compiler.template(value) };
            compiler.push(op, OpFacts::of_role(OpRole::Neutral));
            compile_steps(&self.steps, compiler);
        }
    }
}

fn read(reader: &mut Reader<'_>, node: &Node, place: &StepPlace) -> Option<Box<dyn Action>> {
    let fields = reader.fields(node, "`foreach`", &["name", "in", "do"])?;
    let values = reader.require(&fields, "in", "`foreach`", "in: [a, b]");
    let values = values.and_then(|node| read_values(reader, node));
    let name = reader.require(&fields, "name", "`foreach`", "name: room");
    let name = name.and_then(|node| Some((node, read_value_name(reader, node)?)));
    let is_number = values.as_ref().is_none_or(|values| values.iter().all(Template::is_number));
    let slot = name.map(|(node, name)| reader.define(node, &name, is_number));
    let steps = place.read_branch(reader, &fields, "`foreach`", "do");
    Some(Box::new(ForEach { slot: slot?, values: values?, steps: steps? }))
}

fn read_values(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<Template>> {
    let Kind::List(items) = &node.kind else {
        reader.wrong_kind(node, "`in`", "a list such as [a, b]");
        return None;
    };
    if items.is_empty() || items.len() > VALUES_MAX {
        let label = format!("at least 1, at most {VALUES_MAX}");
        reader.error(node.span.clone(), format!("`in` has {} values", items.len()), label);
        return None;
    }
    let values: Vec<_> = items
        .iter()
        .map(|item| {
            let text = reader.text(item, "a value of `in`", "a text")?;
            reader.template(item, text)
        })
        .collect();
    values.into_iter().collect()
}

/// Most values: the steps stand in the program once for each.
const VALUES_MAX: usize = 100;
