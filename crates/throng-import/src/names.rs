//! Names of a source as names of a scenario.

use std::collections::{HashMap, HashSet};

/// The names that a scenario has for those of a source. Two names of the source are two in the
/// scenario, too, whatever letters they lose.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    known: HashMap<String, String>,
    taken: NameSet,
}

/// Names of which each is another one.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameSet {
    taken: HashSet<String>,
    /// The number that the next name which looks like this one gets.
    numbers: HashMap<String, u64>,
}

impl NameSet {
    /// Adds `name`, or if it is taken, `name` with the first number from 2 with which it is not.
    /// Returns what was added.
    pub(crate) fn add(&mut self, name: &str) -> String {
        if self.taken.insert(name.to_owned()) {
            return name.to_owned();
        }
        let number = self.numbers.entry(name.to_owned()).or_insert(2);
        loop {
            let numbered = format!("{name}_{number}");
            *number += 1;
            if self.taken.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

impl Names {
    /// Returns the name of a value for `name` of the source: the same one each time.
    pub(crate) fn of(&mut self, name: &str) -> String {
        self.made_from(name, name)
    }

    /// Returns the name for `name` of the source, which looks like `model`.
    pub(crate) fn made_from(&mut self, name: &str, model: &str) -> String {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let free = self.another(model);
        self.known.insert(name.to_owned(), free.clone());
        free
    }

    /// Returns a name that is in use nowhere else, and that looks like `model`.
    pub(crate) fn another(&mut self, model: &str) -> String {
        self.taken.add(&identifier(model))
    }
}

/// Returns the name in the letters that names of values have.
pub(crate) fn identifier(name: &str) -> String {
    let name = in_letters(name, "v_", NAME_CHARS_MAX);
    if is_reserved(&name) { format!("{name}_value") } else { name }
}

/// Returns a text with `_` in the place of all that is no letter, no digit and none of `others`. If
/// it begins with no letter, `prefix` stands before it.
pub(crate) fn in_letters_and(others: &str, text: &str, prefix: &str, chars_max: usize) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    let letter = |c: char| if is_kept(c) { c } else { '_' };
    let name: String = text.chars().map(letter).take(chars_max).collect();
    let begins_well = name.starts_with(|first: char| first.is_ascii_alphabetic());
    if begins_well { name } else { format!("{prefix}{name}") }
}

/// Returns a text in letters, digits and `_`, as [`in_letters_and`] does.
pub(crate) fn in_letters(text: &str, prefix: &str, chars_max: usize) -> String {
    in_letters_and("", text, prefix, chars_max)
}

/// Reports whether a name means something else in a scenario.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Names that mean something else in a scenario.
const RESERVED: [&str; 17] = [
    "user", "row", "env", "setup", "sent", "counter", "random", "choice", "uuid", "time", "base64",
    "json", "sha256", "probe", "true", "false", "null",
];

/// The longest name of a value.
const NAME_CHARS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_stay_two() {
        let mut names = Names::default();
        let ours = ["user-id", "user_id", "user-id", "user", "1"].map(|name| names.of(name));
        assert_eq!(ours, ["user_id", "user_id_2", "user_id", "user_value", "v_1"]);
        assert_eq!(names.another("user id"), "user_id_3");
    }
}
