//! `transaction`: measures several steps together.

use super::prelude::*;
use crate::scenario::step_name;

pub(super) const KIND: StepKind = StepKind::new(
    "transaction",
    "transaction: {name: checkout, do: [send: ping]}",
    StepForm::Body(read),
);

#[derive(Debug)]
struct Transaction {
    name: String,
    /// Steps that are measured together; at least one.
    steps: Vec<Step>,
}

impl Action for Transaction {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        check_steps(&self.steps, flow);
        if flow.is_over() {
            let title = format!("the transaction `{}` never ends", self.name);
            flow.error(&title, "this runs until the run ends; take it out of the transaction");
        }
    }

    fn inner_size(&self) -> ExpandedSize {
        size_of(&self.steps)
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        compiler.transaction(&self.name, |compiler| compile_steps(&self.steps, compiler));
    }
}

fn read(reader: &mut Reader<'_>, node: &Node, place: &StepPlace) -> Option<Box<dyn Action>> {
    let fields = reader.fields(node, "`transaction`", &["name", "do"])?;
    let name = reader.require(&fields, "name", "`transaction`", "name: checkout");
    let name = name.and_then(|node| step_name::read(reader, node, KIND.name));
    let steps = place.read_transaction(reader, &fields);
    Some(Box::new(Transaction { name: name?, steps: steps? }))
}
