//! The variables of a file: `config.variables`, the columns of `config.payload`, and what the
//! steps store.

use std::collections::{HashMap, HashSet};

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
    constants: HashMap<String, String>,
    /// `config.variables` with several values, and the text that draws one of them.
    lists: HashMap<String, Vec<String>>,
    /// Columns of data files: the name in the source, and `row.name`.
    columns: HashMap<String, String>,
    /// What steps above have stored: the name in the source, and those in the scenario. The last
    /// one counts.
    stored: HashMap<String, Vec<String>>,
    /// What the steps of `before` have stored: the name in the source, and `setup.name`.
    of_setup: HashMap<String, String>,
    /// Names in the scenario that all users know: `row.name`, `setup.name`, `env.NAME`.
    of_all: HashSet<String>,
    /// Names in the scenario that the user knows.
    of_user: HashSet<String>,
    /// Lists of which a user draws one at its beginning.
    drawn: Vec<String>,
    /// Names of the drawn values in the scenario.
    drawn_names: HashSet<String>,
    /// Names of stored values, by those of the source.
    names: Names,
    /// What values with these names of the source are, if they are no texts.
    kinds: HashMap<String, Kind>,
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
                    variables.constants.insert(name.to_owned(), text.clone());
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
                    variables.lists.insert(name.to_owned(), values);
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
        self.constants.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }

    /// Makes a column of a data file known, as `row.name` in the scenario.
    pub(super) fn add_column(&mut self, name: &str, column: String) {
        self.of_all.insert(column.clone());
        self.columns.insert(name.to_owned(), column);
    }

    /// Sets what a value with this name is from here on.
    pub(super) fn is(&mut self, name: &str, kind: Kind) {
        self.kinds.insert(name.to_owned(), kind);
    }

    /// Returns what the variable `name` is.
    pub(super) fn kind(&self, name: &str) -> Kind {
        if name.starts_with("$randomNumber") {
            return Kind::Number;
        }
        self.kinds.get(name).copied().unwrap_or(Kind::Text)
    }

    /// Returns what stands in a text in the place of the variable `name`.
    pub(super) fn value(&mut self, name: &str) -> Option<String> {
        let stored = self.stored.get(name).and_then(|stored| stored.last());
        let stored = stored.or_else(|| self.of_setup.get(name));
        if let Some(stored) = stored.or_else(|| self.columns.get(name)) {
            return Some(format!("${{{stored}}}"));
        }
        if let Some(value) = self.constants.get(name) {
            return Some(escape(value));
        }
        self.lists.get(name)?;
        let drawn = self.names.of(name);
        if self.drawn_names.insert(drawn.clone()) {
            self.drawn.push(name.to_owned());
        }
        Some(format!("${{{drawn}}}"))
    }

    /// Returns the values of the list `name`.
    pub(super) fn list(&self, name: &str) -> Option<&[String]> {
        self.lists.get(name).map(|values| &**values)
    }

    /// Returns what stands in the place of a variable of the environment.
    pub(super) fn environment(&mut self, name: &str) -> String {
        let variable = format!("env.{name}");
        self.of_all.insert(variable.clone());
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
        self.of_user.insert(stored.clone());
        self.stored.entry(name.to_owned()).or_default().push(stored.clone());
        stored
    }

    /// Makes what the steps of `before` have stored known to all users.
    pub(super) fn end_setup(&mut self) {
        for (name, stored) in self.stored.drain() {
            let Some(stored) = stored.last() else { continue };
            let stored = format!("setup.{stored}");
            self.of_all.insert(stored.clone());
            self.of_setup.insert(name, stored);
        }
    }

    /// Forgets what the steps have stored: another user begins.
    pub(super) fn begin_user(&mut self) {
        self.stored.clear();
        self.drawn.clear();
        self.drawn_names.clear();
        self.of_user.clear();
    }

    /// Forgets a name that only the steps of a loop know.
    pub(super) fn forget(&mut self, name: &str) {
        if let Some(stored) = self.stored.get_mut(name) {
            stored.pop();
        }
    }

    /// Reports whether steps may use this name of the scenario.
    pub(super) fn knows(&self, name: &str) -> bool {
        let known = [&self.of_user, &self.drawn_names, &self.of_all];
        known.iter().any(|names| names.contains(name))
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
