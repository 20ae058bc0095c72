//! `barrier`: waits until as many users have come, and lets all of them go on at once.

use super::prelude::*;
use crate::scenario::cue_names;
use crate::scenario::cue_use::CueUse;
use crate::user::cues;

pub(super) const KIND: StepKind =
    StepKind::new("barrier", "barrier: {name: start, users: 100}", StepForm::Value(read));

/// A `barrier` or a `wait_for`.
#[derive(Debug)]
pub(super) struct AwaitCue {
    /// Name of the barrier or cue.
    pub(super) name: String,
    /// `None` to wait as long as the run lasts.
    pub(super) timeout: Option<Duration>,
}

impl Action for AwaitCue {
    fn check(&self, _: &mut Flow<'_, '_>) {}

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let cue = compiler.cue(&self.name);
        let op = Op::AwaitCue { cue, timeout_ns: self.timeout.map_or(u64::MAX, nanos) };
        compiler.push(op, OpFacts::of_role(OpRole::Neutral));
    }
}

fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Box<dyn Action>> {
    if node.scalar().is_some() {
        let name = cue_names::read(reader, node, CueUse::Barrier { users: None })?;
        return Some(Box::new(AwaitCue { name, timeout: None }));
    }
    let fields = reader.fields(node, "`barrier`", &["name", "users", "timeout"])?;
    let users = match fields.get("users") {
        Some(node) if node.scalar() != Some("all") => cue_names::read_users(reader, node).map(Some),
        _ => Some(None),
    };
    let timeout = read_optional_timeout(reader, fields.get("timeout"));
    let name = reader.require(&fields, "name", "`barrier`", "name: start");
    let name = name
        .zip(users)
        .and_then(|(name, users)| cue_names::read(reader, name, CueUse::Barrier { users }));
    Some(Box::new(AwaitCue { name: name?, timeout: timeout? }))
}

/// Reads a time-out that is none by default.
pub(super) fn read_optional_timeout(
    reader: &mut Reader<'_>,
    node: Option<&Node>,
) -> Option<Option<Duration>> {
    match node {
        None => Some(None),
        node => read_timeout(reader, node, Duration::ZERO).map(Some),
    }
}

/// Begins a wait at a barrier, or for a cue.
pub(crate) fn begin(cx: &mut UserContext<'_>, cue: u16) -> StepOutcome {
    cues::begin(cx, cue)
}
