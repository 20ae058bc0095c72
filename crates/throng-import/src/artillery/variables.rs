//! The variables of a file: `config.variables`, the columns of `config.payload`, and what the
//! steps store.

use std::collections::{BTreeSet, HashMap, HashSet};

use throng_load::scenario::{YamlKind, YamlNode};

use crate::source::Span;
use crate::step;
use crate::translator::Translator;
use crate::yaml::Yaml;

use super::address::Part;
use super::scalar::Scalar;
use super::{json, template};
use crate::fields::Fields;
use crate::json::Json;
use crate::names::Names;

/// The variables that are known at some place of a scenario.
#[derive(Clone, Debug, Default)]
pub(super) struct Variables {
    /// `config.target`, which is `{{ target }}`.
    target: String,
    /// `config.variables` with one value, and the members of objects.
    constants: HashMap<String, Vec<Part>>,
    /// `config.variables` with several values, and the text that draws one of them.
    lists: HashMap<String, Vec<String>>,
    /// Columns of data files: the name in the source, and `row.name`.
    columns: HashMap<String, String>,
    /// What steps above have stored, by its name in the source.
    stored: HashMap<String, Stored>,
    /// What the steps of `before` have stored: the name in the source, and `setup.name`.
    of_setup: HashMap<String, String>,
    /// Lists of which a user draws one at its beginning, and `$uuid`.
    drawn: Vec<String>,
    /// Names of the drawn values in the scenario.
    drawn_names: HashSet<String>,
    /// Names of stored values, by those of the source.
    names: Names,
    /// What values with these names of the source are, if they are no texts.
    kinds: HashMap<String, Kind>,
    /// Names in the scenario of values that are the same in a URL, whatever they are.
    plain: HashSet<String>,
    /// Whether the text is one of `config`, which has values of the environment alone.
    pub(super) is_config: bool,
    /// Variables of `config` that are reported, each with its place: its texts are read again for
    /// each step.
    reported: BTreeSet<(usize, String)>,
    /// Whether functions of JavaScript may set variables.
    pub(super) has_functions: bool,
}

/// A value that a step or a loop has stored.
#[derive(Clone, Debug)]
enum Stored {
    /// Its name in the scenario.
    Name(String),
    /// What it is, known before the run.
    Known(String),
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    /// A stored value, which may be a number: JSON of a scenario has it in a text.
    Any,
}

impl Variables {
    /// Reads `config.variables`.
    pub(super) fn read(&mut self, translator: &mut Translator<'_>, node: &YamlNode) {
        let Some(fields) = Fields::read_any(translator, node, "`variables`") else { return };
        for (name, span, value) in fields.iter() {
            match &value.kind {
                YamlKind::List(items) if items.iter().all(|item| item.scalar().is_some()) => {
                    if !self.read_list(translator, name, value, items) {
                        continue;
                    }
                }
                YamlKind::List(_) => {
                    let remedy = "a value of this list is an object; put the values into a data \
                                  file";
                    translator.not_supported(&span, format!("variable {name}"), remedy);
                    continue;
                }
                _ => self.read_constant(translator, name, value),
            }
            translator.translated(&span, format!("variable {name}"));
        }
    }

    /// Reads a list, of which each user draws a value. Returns whether it has one.
    fn read_list(
        &mut self,
        translator: &mut Translator<'_>,
        name: &str,
        node: &YamlNode,
        items: &[YamlNode],
    ) -> bool {
        let source = translator.source;
        let scalars =
            items.iter().filter_map(|item| Some(Scalar::of(&source, item, item.scalar()?)));
        let scalars: Vec<_> = scalars.collect();
        if scalars.is_empty() {
            let title = format!("`{name}` has no value");
            return translator.fail(&node.span, title, "expected at least one value");
        }
        if scalars.iter().all(|scalar| matches!(scalar, Scalar::Typed { .. })) {
            self.is(name, Kind::Number);
        }
        let values: Vec<_> = scalars.into_iter().map(Scalar::into_text).collect();
        let refused = |value: &&String| !may_be_quoted(value) || value.contains("{{");
        if let Some(value) = values.iter().find(refused) {
            let remedy = format!(
                "`{value}` has both quotes or a brace, which `choice` cannot hold; put the values \
                 into a data file"
            );
            return translator.omit(&node.span, format!("variable {name}"), remedy);
        }
        self.lists.insert(name.to_owned(), values);
        true
    }

    /// Reads a value, and the members of an object.
    fn read_constant(&mut self, translator: &mut Translator<'_>, name: &str, node: &YamlNode) {
        self.is_config = true;
        let value = json::value(translator, self, node);
        self.is_config = false;
        if let YamlKind::Map(entries) = &node.kind {
            for (key, member) in entries {
                let member_name = format!("{name}.{}", key.scalar().unwrap_or_default());
                self.read_constant(translator, &member_name, member);
            }
        }
        let parts = match value {
            Json::Text(_) => {
                let text = node.scalar().unwrap_or_default();
                self.of_config(translator, &node.span, text)
            }
            value => {
                self.is(name, Kind::Number);
                vec![Part::Literal(value.to_text())]
            }
        };
        self.constants.insert(name.to_owned(), parts);
    }

    /// Returns a text of `config`.
    pub(super) fn of_config(
        &mut self,
        translator: &mut Translator<'_>,
        span: &Span,
        text: &str,
    ) -> Vec<Part> {
        let was_config = std::mem::replace(&mut self.is_config, true);
        let parts = template::parts(translator, self, span, text);
        self.is_config = was_config;
        parts
    }

    /// Reports whether something about a variable is to be reported: in `config`, once.
    pub(super) fn is_news(&mut self, span: &Span, name: &str) -> bool {
        !self.is_config || self.reported.insert((span.start, name.to_owned()))
    }

    /// Makes the target known.
    pub(super) fn set_target(&mut self, target: &str) {
        target.clone_into(&mut self.target);
    }

    /// Sets what a value with this name is from here on.
    pub(super) fn is(&mut self, name: &str, kind: Kind) {
        self.kinds.insert(name.to_owned(), kind);
    }

    /// Returns what the variable `name` is.
    pub(super) fn kind(&self, name: &str) -> Kind {
        self.kinds.get(name).copied().unwrap_or(Kind::Text)
    }

    /// Returns what stands in the place of the variable `name`. What steps have stored comes
    /// first, and what `before` has stored last (`runner.ts`, `createContext`).
    pub(super) fn value(&mut self, name: &str) -> Option<Vec<Part>> {
        if self.is_config {
            return None;
        }
        let variable = |name: &str| vec![Part::Variable(format!("${{{name}}}"))];
        if let Some(stored) = self.stored.get(name) {
            return Some(match stored {
                Stored::Name(ours) => variable(ours),
                Stored::Known(text) => vec![Part::Literal(text.clone())],
            });
        }
        if let Some(value) = self.constants.get(name) {
            return Some(value.clone());
        }
        let is_drawn = name == "$uuid" || self.list(name).is_some();
        if is_drawn {
            let drawn = self.drawn_name(name);
            if self.drawn_names.insert(drawn.clone()) {
                self.drawn.push(name.to_owned());
            }
            return Some(variable(&drawn));
        }
        if let Some(place) = self.columns.get(name).or_else(|| self.of_setup.get(name)) {
            return Some(variable(place));
        }
        (name == "target").then(|| vec![Part::Literal(self.target.clone())])
    }

    /// Returns the variable `name` in a text of the scenario.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        Some(template::text_of(&self.value(name)?))
    }

    /// Returns the text of a variable that is known before the run.
    pub(super) fn known_text(&mut self, name: &str) -> Option<String> {
        let part = |part| match part {
            Part::Literal(text) => Some(text),
            Part::Variable(_) => None,
        };
        self.value(name)?.into_iter().map(part).collect()
    }

    /// Returns a variable as it stands in a URL: its value is sent as it is.
    pub(super) fn raw(&self, variable: &str) -> String {
        let inner = variable.strip_prefix("${").and_then(|inner| inner.strip_suffix('}'));
        match inner {
            Some(inner) if !inner.contains('(') && !self.plain.contains(inner) => {
                format!("${{raw({inner})}}")
            }
            _ => variable.to_owned(),
        }
    }

    /// Says that a value with this name in the scenario has no signs that a URL encodes.
    pub(super) fn is_plain(&mut self, ours: &str) {
        self.plain.insert(ours.to_owned());
    }

    fn drawn_name(&mut self, name: &str) -> String {
        if name != "$uuid" {
            return self.names.of(name);
        }
        let ours = self.names.made_from(name, "user_uuid");
        self.is_plain(&ours);
        ours
    }

    /// Returns the values of the list `name`.
    fn list(&self, name: &str) -> Option<&[String]> {
        self.lists.get(name).map(|values| &**values)
    }

    /// Makes a name known from here on. Returns its name in the scenario.
    pub(super) fn store(&mut self, name: &str) -> String {
        self.store_as(name, name)
    }

    /// Makes a name known from here on, as `inner` in the scenario. Returns that name.
    pub(super) fn store_as(&mut self, name: &str, inner: &str) -> String {
        self.is(name, Kind::Text);
        let ours = self.names.made_from(name, inner);
        self.stored.insert(name.to_owned(), Stored::Name(ours.clone()));
        ours
    }

    /// Makes the name of a number known from here on, as `inner` in the scenario.
    pub(super) fn store_number(&mut self, name: &str, inner: &str) -> String {
        let ours = self.store_as(name, inner);
        self.is(name, Kind::Number);
        self.is_plain(&ours);
        ours
    }

    /// Makes a name known from here on, with a value that is known before the run.
    pub(super) fn store_known(&mut self, name: &str, value: &str) {
        let kind = if value.parse::<f64>().is_ok() { Kind::Number } else { Kind::Text };
        self.is(name, kind);
        self.stored.insert(name.to_owned(), Stored::Known(value.to_owned()));
    }

    /// Makes what the steps of `before` have stored known to all users.
    pub(super) fn end_setup(&mut self) {
        for (name, stored) in self.stored.drain() {
            let Stored::Name(ours) = stored else { continue };
            self.of_setup.insert(name, format!("setup.{ours}"));
        }
    }

    /// Forgets what the steps have stored: another user begins.
    pub(super) fn begin_user(&mut self) {
        self.stored.clear();
        self.drawn.clear();
        self.drawn_names.clear();
    }

    /// Makes a column of a data file known, as `row.name` in the scenario.
    pub(super) fn add_column(&mut self, name: &str, column: String) {
        self.columns.insert(name.to_owned(), column);
    }

    /// Returns the bytes of the lists of which a user draws.
    pub(super) fn drawn_bytes(&self) -> usize {
        let lists = self.drawn.iter().filter_map(|name| self.list(name));
        lists.flatten().map(String::len).sum()
    }

    /// Returns the step that draws the values of a user, if it needs some.
    pub(super) fn draw(&mut self) -> Option<Yaml> {
        let mut entries = Vec::new();
        for name in self.drawn.clone() {
            let drawn = match self.list(&name) {
                Some(values) => {
                    let quoted: Vec<_> = values.iter().map(|value| quote(value)).collect();
                    format!("${{choice({})}}", quoted.join(", "))
                }
                None => "${uuid()}".to_owned(),
            };
            entries.push((self.drawn_name(&name), Yaml::text(drawn)));
        }
        (!entries.is_empty()).then(|| step::set_all(entries))
    }
}

/// Reports whether a text can be an argument of `choice`.
fn may_be_quoted(text: &str) -> bool {
    let has_both_quotes = text.contains('"') && text.contains('\'');
    !(has_both_quotes || text.contains('}') || text.contains("${"))
}

/// Returns the text in quotes that it does not have itself.
fn quote(text: &str) -> String {
    if text.contains('\'') { format!("\"{text}\"") } else { format!("'{text}'") }
}
