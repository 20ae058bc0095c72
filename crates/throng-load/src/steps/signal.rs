//! `signal`: lets the users go on that wait for it, also those that come later.

use super::prelude::*;
use crate::scenario::cue_names;
use crate::scenario::cue_use::CueUse;
use crate::user::cues;

pub(super) const KIND: StepKind = StepKind::new("signal", "signal: ready", StepForm::Value(read));

#[derive(Debug)]
struct Signal {
    /// Name of the cue.
    name: String,
}

impl Action for Signal {
    fn check(&self, _: &mut Flow<'_, '_>) {}

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let cue = compiler.cue(&self.name);
        compiler.push(Op::Signal { cue }, OpFacts::of_role(OpRole::Neutral));
    }
}

fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Box<dyn Action>> {
    let name = cue_names::read(reader, node, CueUse::Signal)?;
    Some(Box::new(Signal { name }))
}

/// Gives the signal.
pub(crate) fn begin(cx: &mut UserContext<'_>, cue: u16) -> StepOutcome {
    cues::signal(cx, cue)
}
