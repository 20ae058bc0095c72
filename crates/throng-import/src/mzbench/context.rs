//! What the parts of the import know together: variables, comments, the target.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::tree::Expr;
use crate::draft::DraftClass;
use crate::erlang::Comment;
use crate::translator::Translator;
use crate::yaml::Yaml;

/// The state of an import.
pub(super) struct Context<'t, 'a> {
    pub(super) translator: &'t mut Translator<'a>,
    /// Comments that have no place yet.
    comments: VecDeque<Comment>,
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
            comments: comments.into(),
            defaults: BTreeMap::new(),
            params: Vec::new(),
            server: None,
            has_told_answers: false,
        }
    }

    /// Takes the comments above `offset`, and those in its line.
    pub(super) fn comments_to(&mut self, offset: usize) -> Vec<String> {
        let text = self.translator.source.text;
        let end = text.get(offset..).and_then(|rest| rest.find('\n'));
        let end = end.map_or(text.len(), |length| offset + length);
        self.take_comments(end)
    }

    /// Takes the comments above the line of `offset`.
    pub(super) fn comments_above(&mut self, offset: usize) -> Vec<String> {
        let before = self.translator.source.text.get(..offset).unwrap_or_default();
        self.take_comments(before.rfind('\n').map_or(0, |at| at + 1))
    }

    fn take_comments(&mut self, end: usize) -> Vec<String> {
        let count = self.comments.iter().take_while(|comment| comment.offset < end).count();
        let texts = self.comments.drain(..count).map(|comment| comment.text);
        texts.filter(|text| !text.is_empty()).collect()
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
