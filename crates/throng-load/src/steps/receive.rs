//! `receive`: waits for what comes unasked: what the server says first, other users' messages.

use super::expect::{Expect, read_step};
use super::prelude::*;

pub(crate) const KIND: StepKind =
    StepKind::new("receive", "receive: welcome", StepForm::Value(read))
        .measured(StepMeasure::ByName);

/// An `expect` that answers nothing.
#[derive(Debug)]
struct Receive(Expect);

impl Action for Receive {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        self.0.check(flow);
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let op = self.0.op(compiler);
        compiler.push(op, OpFacts::of_role(OpRole::Receives));
    }
}

fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Box<dyn Action>> {
    Some(Box::new(Receive(read_step(reader, node, "`receive`")?)))
}
