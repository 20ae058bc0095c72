//! The variables of a file: `config.variables`, the columns of `config.payload`, and what the
//! steps store.

use throng_load::scenario::{YamlKind, YamlNode};

use crate::translator::Translator;
use crate::yaml::Yaml;

use super::fields::{Fields, one_or_more};
use crate::names::Names;
use crate::text::escape;

/// The variables that are known at some place of a scenario.
#[derive(Clone, Debug, Default)]
pub(super) struct Variables {
    /// `config.variables` with one value.
    constants: Vec<(String, String)>,
    /// `config.variables` with several values, and the text that draws one of them.
    lists: Vec<(String, Vec<String>)>,
    /// Columns of data files: the name in the source, and `row.name`.
    pub(super) columns: Vec<(String, String)>,
    /// What steps above have stored: the name in the source, and the one in the scenario.
    stored: Vec<(String, String)>,
    /// What the steps of `before` have stored: the name in the source, and `setup.name`.
    of_setup: Vec<(String, String)>,
    /// Variables of the environment that are used: `env.NAME`.
    environment: Vec<String>,
    /// Lists of which a user draws one at its beginning.
    drawn: Vec<String>,
    /// Names of stored values, by those of the source.
    names: Names,
    /// What values with these names of the source are, if they are no texts.
    kinds: Vec<(String, Kind)>,
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
    pub(super) fn read(translator: &mut Translator<'_>, node: &YamlNode) -> Self {
        let mut variables = Self::default();
        let Some(fields) = Fields::read_any(translator, node, "`variables`") else {
            return variables;
        };
        for (name, span, value) in fields.iter() {
            match &value.kind {
                YamlKind::Scalar(text) => {
                    variables.constants.push((name.to_owned(), text.clone()));
                }
                YamlKind::List(items) if items.iter().all(|item| item.scalar().is_some()) => {
                    let values: Vec<_> =
                        items.iter().filter_map(YamlNode::scalar).map(str::to_owned).collect();
                    if values.is_empty() {
                        let title = format!("`{name}` has no value");
                        translator.mistake(&value.span, title, "expected at least one value");
                        continue;
                    }
                    if let Some(value) = values.iter().find(|value| !may_be_quoted(value)) {
                        let remedy = format!(
                            "`{value}` has both quotes or a brace, which `choice` cannot hold; \
                             put the values into a data file"
                        );
                        translator.not_supported(&span, format!("variable {name}"), remedy);
                        continue;
                    }
                    variables.lists.push((name.to_owned(), values));
                }
                _ => {
                    let remedy = "objects are no values of a scenario; give each member a name \
                                  of its own";
                    translator.not_supported(&span, format!("variable {name}"), remedy);
                    continue;
                }
            }
            if one_or_more(value).iter().all(|item| item.is_typed) {
                let is_drawn = matches!(value.kind, YamlKind::List(_));
                variables.is(name, if is_drawn { Kind::Any } else { Kind::Number });
            }
            translator.translated(&span, format!("variable {name}"));
        }
        variables
    }

    /// Makes a text known, unless the file has a variable of this name.
    pub(super) fn constant(&mut self, name: &str, value: &str) {
        self.constants.insert(0, (name.to_owned(), value.to_owned()));
    }

    /// Sets what a value with this name is from here on.
    pub(super) fn is(&mut self, name: &str, kind: Kind) {
        self.kinds.push((name.to_owned(), kind));
    }

    /// Returns what the variable `name` is.
    pub(super) fn kind(&self, name: &str) -> Kind {
        if name.starts_with("$randomNumber") {
            return Kind::Number;
        }
        let known = self.kinds.iter().rev().find(|(known, _)| known == name);
        known.map_or(Kind::Text, |(_, kind)| *kind)
    }

    /// Returns what stands in a text in the place of the variable `name`.
    pub(super) fn value(&mut self, name: &str) -> Option<String> {
        let find = |list: &[(String, String)]| {
            let found = list.iter().rev().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        let stored = find(&self.stored).or_else(|| find(&self.of_setup));
        if let Some(stored) = stored.or_else(|| find(&self.columns)) {
            return Some(format!("${{{stored}}}"));
        }
        if let Some(value) = find(&self.constants) {
            return Some(escape(&value));
        }
        self.lists.iter().find(|(known, _)| known == name)?;
        if !self.drawn.iter().any(|drawn| drawn == name) {
            self.drawn.push(name.to_owned());
        }
        Some(format!("${{{}}}", self.names.of(name)))
    }

    /// Returns the values of the list `name`.
    pub(super) fn list(&self, name: &str) -> Option<&[String]> {
        self.lists.iter().find(|(known, _)| known == name).map(|(_, values)| &**values)
    }

    /// Returns what stands in the place of a variable of the environment.
    pub(super) fn environment(&mut self, name: &str) -> String {
        let variable = format!("env.{name}");
        if !self.environment.contains(&variable) {
            self.environment.push(variable.clone());
        }
        format!("${{{variable}}}")
    }

    /// Makes a name known from here on. Returns its name in the scenario.
    pub(super) fn store(&mut self, name: &str) -> String {
        self.store_as(name, name)
    }

    /// Makes a name known from here on, as `inner` in the scenario. Returns that name.
    pub(super) fn store_as(&mut self, name: &str, inner: &str) -> String {
        self.is(name, Kind::Text);
        let stored = self.names.made_from(name, inner);
        self.stored.push((name.to_owned(), stored.clone()));
        stored
    }

    /// Makes what the steps of `before` have stored known to all users.
    pub(super) fn end_setup(&mut self) {
        let of_setup = self.stored.drain(..).map(|(name, ours)| (name, format!("setup.{ours}")));
        self.of_setup.extend(of_setup);
    }

    /// Forgets what the steps have stored: another user begins.
    pub(super) fn begin_user(&mut self) {
        self.stored.clear();
        self.drawn.clear();
    }

    /// Forgets a name that only the steps of a loop know.
    pub(super) fn forget(&mut self, name: &str) {
        if let Some(at) = self.stored.iter().rposition(|(known, _)| known == name) {
            self.stored.remove(at);
        }
    }

    /// Returns the names that a trial must know.
    pub(super) fn known(&mut self) -> Vec<String> {
        let drawn: Vec<_> = self.drawn.iter().map(|name| self.names.of(name)).collect();
        let stored = self.stored.iter().map(|(_, stored)| stored);
        let columns = self.columns.iter().chain(&self.of_setup).map(|(_, column)| column);
        let known = stored.chain(columns).chain(&self.environment).cloned();
        let mut known: Vec<_> = known.chain(drawn).collect();
        known.sort();
        known.dedup();
        known
    }

    /// Returns the step that draws the values of a user, if it needs some.
    pub(super) fn draw(&mut self) -> Option<Yaml> {
        let mut entries = Vec::new();
        for name in self.drawn.clone() {
            let values = self.list(&name).unwrap_or_default();
            let quoted: Vec<_> = values.iter().map(|value| quote(value)).collect();
            let choice = Yaml::text(format!("${{choice({})}}", quoted.join(", ")));
            entries.push((self.names.of(&name), choice));
        }
        (!entries.is_empty()).then(|| Yaml::entry("set", Yaml::map(entries)))
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
