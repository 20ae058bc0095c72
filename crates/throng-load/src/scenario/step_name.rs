//! The names of steps and transactions. There is one set of names for both, and for all classes.
//! Steps of one kind may share a name; their figures are then added up.

use throng_measure::STEP_NAMES_MAX;

use super::node::Node;
use super::reader::Reader;

/// The names in a scenario, each with the kind of its steps.
#[derive(Debug, Default)]
pub(crate) struct StepNames(Vec<(String, &'static str)>);

impl StepNames {
    /// Iterates over the names.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

/// Reads the name of a step of this kind.
pub(crate) fn read(reader: &mut Reader<'_>, node: &Node, kind: &'static str) -> Option<String> {
    let name = reader.text(node, "`name`", "a name such as `login`")?;
    if let Some(list) = reader.solo_key {
        let title = format!("a step of `{list}` has no name");
        let label = "a name is for a step that is measured: leave it out";
        reader.error(node.span.clone(), title, label);
        return None;
    }
    if let Err(label) = check(name) {
        let title = format!("`{name}` cannot be the name of a step");
        reader.error(node.span.clone(), title, label);
        return None;
    }
    let known = &mut reader.step_names.0;
    let others = known.iter().find(|(other, _)| other == name).map(|(_, kind)| *kind);
    let too_many = others.is_none() && known.len() >= STEP_NAMES_MAX;
    if others.is_none() && !too_many {
        known.push((name.to_owned(), kind));
    }
    match others {
        Some(other) if other != kind => {
            let title = format!("the name `{name}` is that of another kind of step, `{other}`");
            let label = "take another name: the two would be measured together";
            reader.error(node.span.clone(), title, label);
            None
        }
        None if too_many => {
            let label = format!("a scenario may have {STEP_NAMES_MAX}");
            reader.error(node.span.clone(), "too many names of steps", label);
            None
        }
        _ => Some(name.to_owned()),
    }
}

/// Checks the letters of a name.
pub(super) fn check(name: &str) -> Result<(), String> {
    let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    match name {
        _ if !begins || !name.chars().all(belongs) => {
            Err("a letter first, then letters, digits, `_` and `-`".to_owned())
        }
        _ if name.len() > NAME_BYTES_MAX => Err(format!("at most {NAME_BYTES_MAX} characters")),
        _ => Ok(()),
    }
}

/// The longest name.
const NAME_BYTES_MAX: usize = 32;
