//! What the parts of the import know together: variables, comments, the target.

use std::collections::BTreeMap;
use std::ops::Range;

use super::tree::Expr;
use crate::comments::{Comment, Comments};
use crate::draft::DraftClass;
use crate::translator::Translator;
use crate::yaml::Yaml;

/// The state of an import.
pub(super) struct Context<'t, 'a> {
    pub(super) translator: &'t mut Translator<'a>,
    /// Comments that have no place yet.
    comments: Comments,
    /// `defaults(...)`.
    pub(super) defaults: BTreeMap<String, Expr>,
    /// Parameters of the scenario, with their values.
    params: Vec<(String, String)>,
    /// Host and port of the first connection, and where they stand.
    pub(super) server: Option<(Range<usize>, String, u16)>,
    /// Whether the report has said what an answer is.
    pub(super) has_told_answers: bool,
}

impl<'t, 'a> Context<'t, 'a> {
    pub(super) fn new(translator: &'t mut Translator<'a>, comments: Vec<Comment>) -> Self {
        Self {
            translator,
            comments: Comments::new(comments),
            defaults: BTreeMap::new(),
            params: Vec::new(),
            server: None,
            has_told_answers: false,
        }
    }

    /// Takes the comments above `offset`, and those in its line.
    pub(super) fn comments_to(&mut self, offset: usize) -> Vec<String> {
        self.comments.take_to(&self.translator.source, offset)
    }

    /// Takes the comments above the line of `offset`.
    pub(super) fn comments_above(&mut self, offset: usize) -> Vec<String> {
        self.comments.take_above(&self.translator.source, offset)
    }

    /// Returns the text of a value. If a variable has it, it becomes a parameter of the scenario:
    /// the text is then `$(name)`.
    pub(super) fn param(&mut self, variable: Option<&str>, value: String) -> String {
        let Some(name) = variable.and_then(param_name) else { return value };
        if self.translator.source.text.contains("$(") {
            return value;
        }
        match self.params.iter().find(|(known, _)| *known == name) {
            Some((_, known)) if *known != value => value,
            None if self.params.len() == PARAMS_MAX => value,
            found => {
                let reference = format!("$({name})");
                if found.is_none() {
                    self.params.push((name, value));
                }
                reference
            }
        }
    }

    /// Returns the parameters that the load and the classes use.
    pub(super) fn params(&self, load: &[Yaml], classes: &[DraftClass]) -> Option<Yaml> {
        let steps = classes.iter().flat_map(|class| &class.steps);
        let texts = load.iter().chain(steps).flat_map(Yaml::scalars);
        let uses: Vec<&str> = texts.filter_map(|text| Some(text.split_once("$(")?.1)).collect();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let has = |name: &str| {
            uses.iter().any(|expression| expression.split(|c| !is_word(c)).any(|word| word == name))
        };
        let used = self.params.iter().filter(|(name, _)| has(name));
        let entries: Vec<_> =
            used.map(|(name, value)| (name.clone(), Yaml::plain(value))).collect();
        (!entries.is_empty()).then(|| Yaml::map(entries))
    }
}

/// Returns the name of a parameter for a variable of this name, if it may have one.
fn param_name(variable: &str) -> Option<String> {
    let name: String = variable.replace(['-', '.'], "_");
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_name = begins && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_free = !["and", "or", "not"].contains(&&*name) && name.len() <= NAME_BYTES_MAX;
    (is_name && is_free).then_some(name)
}

/// Parameters of a scenario.
const PARAMS_MAX: usize = 64;

/// Longest name of a parameter.
const NAME_BYTES_MAX: usize = 40;
