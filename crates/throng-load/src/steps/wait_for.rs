//! `wait_for`: waits until some user has given a signal.

use super::barrier::{AwaitCue, read_optional_timeout};
use super::prelude::*;
use crate::scenario::cue_names;
use crate::scenario::cue_use::CueUse;

pub(super) const KIND: StepKind =
    StepKind::new("wait_for", "wait_for: ready", StepForm::Value(read));

fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Box<dyn Action>> {
    if node.scalar().is_some() {
        let name = cue_names::read(reader, node, CueUse::WaitFor)?;
        return Some(Box::new(AwaitCue { name, timeout: None }));
    }
    let fields = reader.fields(node, "`wait_for`", &["name", "timeout"])?;
    let timeout = read_optional_timeout(reader, fields.get("timeout"));
    let name = reader.require(&fields, "name", "`wait_for`", "name: ready");
    let name = name.and_then(|name| cue_names::read(reader, name, CueUse::WaitFor));
    Some(Box::new(AwaitCue { name: name?, timeout: timeout? }))
}
