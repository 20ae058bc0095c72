//! `load` in the classes of `users`: each class has a load of its own.

use std::path::Path;

use throng_base::units::show_count;

use super::phase::PHASES_MAX;
use super::{ClassLoad, ScenarioLoad, read_phases};
use crate::scenario::node::{Kind, Node};
use crate::scenario::reader::{Fields, Reader};

/// Reports whether a class of `users` has a load of its own.
pub(super) fn is_written(users: &Node) -> bool {
    let Kind::Map(classes) = &users.kind else { return false };
    classes.iter().any(|(_, class)| entry(class, "load").is_some())
}

/// Reads the loads of all classes. The rest of a class is read with its steps.
pub(super) fn read(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    users: &Node,
    folder: &Path,
) -> Option<ScenarioLoad> {
    let Kind::Map(classes) = &users.kind else { return None };
    let mistakes = reader.mistakes.len();
    if fields.has("load") {
        let title = "a load is that of all users, or each class has one";
        reader.error(fields.key_span("load"), title, "take this one out, or those of the classes");
    }
    if let Some((name, _)) = classes.get(CLASSES_MAX) {
        let title = format!("{} classes with a `load`", classes.len());
        reader.error(name.span.clone(), title, format!("at most {CLASSES_MAX}"));
    }
    let loads: Vec<_> =
        classes.iter().map(|(name, it)| read_one(reader, name, it, folder)).collect();
    let loads: Vec<_> = loads.into_iter().collect::<Option<_>>()?;
    let phases: usize = loads.iter().map(|load: &ClassLoad| load.phases.len()).sum();
    if phases > PHASES_MAX {
        let title = format!("more than {} phases", show_count(PHASES_MAX as u64));
        let label = "those of all classes count; repeat a loop less often";
        reader.error(reader.first_line(&users.span), title, label);
    }
    (reader.mistakes.len() == mistakes).then_some(ScenarioLoad::ByClass(loads))
}

fn read_one(
    reader: &mut Reader<'_>,
    name: &Node,
    class: &Node,
    folder: &Path,
) -> Option<ClassLoad> {
    let shown = name.scalar()?.to_owned();
    if let Some((weight, _)) = entry(class, "weight") {
        let title = "`weight` shares one `load`, but each class has its own";
        reader.error(weight.span.clone(), title, "take it out: the `load` has the users");
    }
    let Some((_, load)) = entry(class, "load") else {
        let title = format!("the class `{shown}` has no `load`");
        let label = "another class has one, so that each class needs one";
        reader.error(name.span.clone(), title, label);
        return None;
    };
    Some(ClassLoad { phases: read_phases(reader, load, folder)?, class: shown })
}

/// Returns the entry of a mapping with this key.
fn entry<'n>(node: &'n Node, key: &str) -> Option<&'n (Node, Node)> {
    let Kind::Map(entries) = &node.kind else { return None };
    entries.iter().find(|(name, _)| name.scalar() == Some(key))
}

/// Maximum number of classes with a load of their own.
const CLASSES_MAX: usize = 16;
