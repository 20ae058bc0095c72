//! The names of steps.

use crate::names::identifier;

/// The names that are taken, each with the kind of its steps.
#[derive(Debug, Default)]
pub(crate) struct StepNames(Vec<(String, String)>);

impl StepNames {
    /// Returns a name in the letters that names of steps have; `None` if there are too many. Steps
    /// of one kind may share a name.
    pub(crate) fn take(&mut self, name: &str, kind: &str) -> Option<String> {
        let name = identifier(name.trim_matches(|c: char| !c.is_ascii_alphanumeric()));
        let name: String = name.chars().take(NAME_CHARS_MAX).collect();
        let is_other = |(known, of): &(String, String)| *known == name && of != kind;
        let name = if self.0.iter().any(is_other) { format!("{name}_{kind}") } else { name };
        let entry = (name.clone(), kind.to_owned());
        if !self.0.contains(&entry) {
            if self.0.len() == NAMES_MAX {
                return None;
            }
            self.0.push(entry);
        }
        Some(name)
    }
}

/// The longest name, with room for its kind.
const NAME_CHARS_MAX: usize = 24;

/// The most names of a scenario.
const NAMES_MAX: usize = throng_measure::STEP_NAMES_MAX;
