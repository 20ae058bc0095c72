//! `close`: closes the connection, or its sending side.

use super::prelude::*;
use crate::program::CloseAction;

pub(super) const KIND: StepKind = StepKind {
    name: "close",
    example: "close: reset",
    protocols: Protocol::ALL,
    form: StepForm::OptionalValue(read),
};

#[derive(Debug)]
struct Close(CloseAction);

impl Action for Close {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        if !flow.require_connection() {
            return flow.disconnect();
        }
        match self.0 {
            CloseAction::Half if flow.is_half_closed() => {
                flow.error("the sending side is already closed", "remove this");
            }
            CloseAction::Half => flow.half_close(),
            CloseAction::Normal | CloseAction::Reset => flow.disconnect(),
        }
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        compiler.push(Op::Close { how: self.0 }, OpFacts::of_role(OpRole::Closes(self.0)));
    }
}

fn read(reader: &mut Reader<'_>, value: Option<&Node>) -> Option<Box<dyn Action>> {
    let Some(node) = value else { return Some(Box::new(Close(CloseAction::Normal))) };
    let known = [
        ("normal", CloseAction::Normal),
        ("reset", CloseAction::Reset),
        ("half", CloseAction::Half),
    ];
    let how = reader.one_of(node, "way to close", &known)?;
    if how == CloseAction::Half && reader.protocol != Protocol::Tcp {
        let label = "use `normal` or `reset`; after a close frame nothing is sent or read";
        reader.error(node.span.clone(), "a WebSocket cannot be half-closed", label);
        return None;
    }
    Some(Box::new(Close(how)))
}
