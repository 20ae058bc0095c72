//! The names that variables may use at some place of a scenario.

use std::collections::BTreeMap;

use super::data::DataTable;
use super::escape::Escape;
use super::function::{FUNCTIONS, Function};
use super::inputs::ScenarioInputs;
use super::variable::Variable;

/// The names that are known to the reader: data files, stored values, the environment.
#[derive(Debug)]
pub(crate) struct VariableNames {
    /// Data files, each with the name under which its columns are used.
    pub(super) tables: Vec<DataTable>,
    /// Names of the data files that could not be read, which is reported. Their columns may have
    /// any name.
    unreadable: Vec<String>,
    /// Names of the values that a step stores; the index is the place among a user's values.
    stored: Vec<String>,
    /// Names that some step of the present class stores.
    announced: Vec<String>,
    /// Names that a step of a class of `users` stores.
    of_users: Vec<String>,
    /// Names that a step before this place stores.
    defined: Vec<String>,
    /// Those of them that are whole numbers, whichever step has stored them.
    numbers: Vec<String>,
    /// Those of them that are computed with.
    computed: Vec<String>,
    /// True where a message has been sent before.
    has_sent: bool,
    /// Names that the steps of `setup` store; `None` before its end.
    set_up: Option<Vec<String>>,
    /// Columns of the table of `setup` that the steps of `teardown` use.
    teardown_columns: Vec<u16>,
    /// The steps that are read.
    steps: StepOwner,
    /// True in the broadcast of a probe.
    has_probe: bool,
    /// True in a binary message.
    is_binary: bool,
    /// The place that variables of the environment are read from.
    pub(super) inputs: ScenarioInputs,
    /// Environment variables that were used, with their values.
    pub(super) environment: BTreeMap<String, String>,
    /// Values of environment variables that were used, in each form that a step gives them. They
    /// are masked wherever one can see them.
    pub(super) secrets: Vec<String>,
}

/// Whose steps they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepOwner {
    Setup,
    Users,
    Teardown,
}

/// Why a name is no variable.
pub(super) enum NameError {
    /// No such name.
    Unknown,
    /// Another reason.
    Other { title: String, label: String },
}

impl Default for VariableNames {
    fn default() -> Self {
        Self {
            tables: Vec::new(),
            unreadable: Vec::new(),
            stored: Vec::new(),
            announced: Vec::new(),
            of_users: Vec::new(),
            defined: Vec::new(),
            numbers: Vec::new(),
            computed: Vec::new(),
            has_sent: false,
            set_up: None,
            teardown_columns: Vec::new(),
            steps: StepOwner::Users,
            has_probe: false,
            is_binary: false,
            inputs: ScenarioInputs::default(),
            environment: BTreeMap::new(),
            secrets: Vec::new(),
        }
    }
}

impl VariableNames {
    /// Returns the variable of this name.
    pub(super) fn find(&mut self, name: &str) -> Result<Variable, NameError> {
        if name == "probe" {
            return if self.has_probe {
                Ok(Variable::Probe)
            } else {
                Err(NameError::Other {
                    title: "`probe` is the mark of a probe".to_owned(),
                    label: "it belongs in the `broadcast` of a probe".to_owned(),
                })
            };
        }
        if let Some(name) = name.strip_prefix("env.") {
            return self.find_in_environment(name);
        }
        if self.defined.iter().any(|defined| defined == name) || self.has_sent && is_sent(name) {
            let is_number = self.numbers.iter().any(|number| number == name);
            return Ok(Variable::Stored { slot: self.declare(name), name: name.into(), is_number });
        }
        if let Some((prefix, column)) = name.split_once('.')
            && let Some(index) = self.tables.iter().position(|known| known.name() == prefix)
        {
            let table = &self.tables[index];
            let at = table.column(column).ok_or_else(|| match prefix {
                SETUP => self.no_setup_value(column),
                _ => NameError::Other {
                    title: format!("{} has no column `{column}`", table.path()),
                    label: format!("its columns are {}", columns_of(table)),
                },
            })?;
            if prefix == SETUP && self.steps == StepOwner::Teardown {
                self.teardown_columns.push(at as u16);
            }
            return Ok(Variable::Cell {
                table: index as u16,
                column: at as u16,
                bytes_max: table.bytes_max(at),
                name: name.into(),
            });
        }
        if let Some(value) = name.strip_prefix("setup.") {
            return Err(self.no_setup_value(value));
        }
        if name.split_once('.').is_some_and(|(file, _)| self.unreadable.iter().any(|it| it == file))
        {
            return Ok(Variable::Text("".into()));
        }
        if self.steps != StepOwner::Setup && self.set_up.iter().flatten().any(|known| known == name)
        {
            return Err(NameError::Other {
                title: format!("`{name}` has no value here"),
                label: format!("`setup` stores it: write ${{setup.{name}}}"),
            });
        }
        if self.steps == StepOwner::Teardown && self.of_users.iter().any(|known| known == name) {
            return Err(NameError::Other {
                title: format!("`{name}` has no value here"),
                label: "it is a user's own; `teardown` knows what `setup` stores".to_owned(),
            });
        }
        if self.stored.iter().chain(&self.announced).any(|stored| stored == name) {
            return Err(NameError::Other {
                title: format!("`{name}` has no value here"),
                label: "a later step stores it".to_owned(),
            });
        }
        if is_sent(name) {
            return Err(NameError::Other {
                title: format!("`{name}` has no value here"),
                label: "no step before it sends a message".to_owned(),
            });
        }
        Err(NameError::Unknown)
    }

    /// Returns the reason why `setup` has no value of this name.
    fn no_setup_value(&self, name: &str) -> NameError {
        let title = format!("`setup.{name}` has no value");
        let label = match &self.set_up {
            _ if self.steps == StepOwner::Setup => format!("within `setup` it is ${{{name}}}"),
            None => "the scenario has no `setup`".to_owned(),
            Some(known) if known.is_empty() => {
                "`setup` stores nothing: add `set`, or `capture` to a step".to_owned()
            }
            Some(known) => format!("`setup` stores {}", known.join(", ")),
        };
        NameError::Other { title, label }
    }

    fn find_in_environment(&mut self, name: &str) -> Result<Variable, NameError> {
        let Some(value) = self.inputs.variable(name) else {
            return Err(NameError::Other {
                title: format!("the environment has no variable `{name}`"),
                label: format!("set it first: export {name}=..."),
            });
        };
        if !value.is_empty() && !self.secrets.contains(&value) {
            self.secrets.extend(Escape::forms(&value));
        }
        self.environment.insert(name.to_owned(), value.clone());
        Ok(Variable::Text(value.into()))
    }

    /// Returns the names that have a value here.
    pub(super) fn known(&self) -> Vec<String> {
        let sent = ["sent"].iter().filter(|_| self.has_sent);
        let own = ["user.id", "counter"].iter().chain(sent).map(|name| (*name).to_owned());
        let columns = self.tables.iter().flat_map(|table| {
            table.columns().iter().map(move |column| format!("{}.{column}", table.name()))
        });
        own.chain(self.defined.iter().cloned()).chain(columns).collect()
    }

    /// Returns the functions that have a place here.
    pub(super) fn functions(&self) -> impl Iterator<Item = &'static Function> + use<> {
        let is_binary = self.is_binary;
        FUNCTIONS.iter().filter(move |function| is_binary || !function.is_of_bytes)
    }

    /// Sets whether variables are parts of a binary message.
    pub(super) fn set_binary(&mut self, is_binary: bool) {
        self.is_binary = is_binary;
    }

    /// Reports whether variables are parts of a binary message.
    pub(super) fn is_binary(&self) -> bool {
        self.is_binary
    }

    /// Returns a label that lists what can be used.
    pub(super) fn list(&self) -> String {
        let mut known = self.known();
        known.truncate(LIST_MAX);
        let known = known.iter().map(String::as_str);
        let functions = self.functions().map(|function| function.usage);
        let all: Vec<_> = known.chain(["env.NAME"]).chain(functions).collect();
        format!(
            "use {}, what `set`, `capture` and `data` store, or arithmetic such as user.id % 50; a \
             plain `${{` is written `$${{`",
            all.join(", ")
        )
    }

    /// Sets the names that the steps of a class store, before they are read.
    pub(super) fn announce(&mut self, names: Vec<String>) {
        self.announced = names;
    }

    /// Adds a name under which a later step may use a value, and whether that is a whole number.
    /// Returns its place among the values of a user.
    pub(super) fn define(&mut self, name: &str, is_number: bool) -> u16 {
        let slot = self.declare(name);
        if !is_number {
            self.numbers.retain(|number| number != name);
        } else if !self.defined.iter().any(|defined| defined == name) {
            self.numbers.push(name.to_owned());
        }
        if !self.defined.iter().any(|defined| defined == name) {
            self.defined.push(name.to_owned());
        }
        if self.steps == StepOwner::Users {
            self.of_users.push(name.to_owned());
        }
        slot
    }

    /// Notes that a variable is computed with.
    pub(super) fn compute(&mut self, variable: &Variable) {
        if let Variable::Stored { name, .. } = variable {
            self.computed.push(name.to_string());
        }
    }

    /// Reports whether a step before this place computes with the value of this name.
    pub(super) fn is_computed(&self, name: &str) -> bool {
        self.computed.iter().any(|computed| computed == name)
    }

    /// Adds a name that a step stores somewhere.
    pub(super) fn declare(&mut self, name: &str) -> u16 {
        let known = self.stored.iter().position(|stored| stored == name);
        known.unwrap_or_else(|| {
            self.stored.push(name.to_owned());
            self.stored.len() - 1
        }) as u16
    }

    /// Begins the steps of `setup`.
    pub(super) fn begin_setup(&mut self) {
        self.steps = StepOwner::Setup;
    }

    /// Ends the steps of `setup`. Returns the names that they store, each with its place among the
    /// values of a user.
    pub(super) fn end_setup(&mut self) -> (Vec<String>, Vec<u16>) {
        self.steps = StepOwner::Users;
        let names: Vec<_> = self.defined.iter().filter(|name| !is_sent(name)).cloned().collect();
        let slots = names.iter().map(|name| self.declare(name)).collect();
        self.set_up = Some(names.clone());
        self.begin_class();
        (names, slots)
    }

    /// Begins the steps of `teardown`.
    pub(super) fn begin_teardown(&mut self) {
        self.begin_class();
        self.steps = StepOwner::Teardown;
    }

    /// Ends the steps of `teardown`. Returns the columns of the table of `setup` that they use.
    pub(super) fn end_teardown(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.teardown_columns)
    }

    /// Forgets which names have a value: another class of users begins.
    pub(super) fn begin_class(&mut self) {
        self.defined.clear();
        self.numbers.clear();
        self.computed.clear();
        self.has_sent = false;
        self.has_probe = false;
    }

    /// Makes all values known that a step of any class stores: one of the users sends the probe.
    pub(super) fn begin_probe(&mut self) {
        let of_users = |name: &&String| is_sent(name) || self.of_users.contains(name);
        self.defined = self.stored.iter().filter(of_users).cloned().collect();
        self.has_probe = true;
    }

    /// Notes that the data file of this name cannot be read.
    pub(super) fn add_unreadable(&mut self, name: &str) {
        self.unreadable.push(name.to_owned());
    }

    /// Notes that a message has been sent before what follows.
    pub(crate) fn define_sent(&mut self) {
        self.has_sent = true;
    }

    /// Reports whether a data file has this name.
    pub(crate) fn is_data_file(&self, name: &str) -> bool {
        self.tables.iter().any(|table| table.name() == name)
    }

    /// Returns the names of all values that users store.
    pub(super) fn stored(&self) -> &[String] {
        &self.stored
    }
}

/// Returns the names of the first columns of a data file.
fn columns_of(table: &DataTable) -> String {
    let columns = table.columns();
    let rest = if columns.len() > LIST_MAX { ", ..." } else { "" };
    columns[..columns.len().min(LIST_MAX)].join(", ") + rest
}

/// Reports whether `name` is that of the last sent message, or of a part of it.
fn is_sent(name: &str) -> bool {
    name == "sent" || name.starts_with("sent.")
}

/// Key of the steps that are taken before the load, and first part of the names of their values.
pub(super) const SETUP: &str = "setup";

/// Names that an error message lists.
const LIST_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::excerpt::Excerpt;
    use crate::scenario::inputs::CarriedInputs;

    #[test]
    fn a_value_of_the_environment_is_masked_in_each_of_its_forms() {
        let environment = [("PW".to_owned(), "p@ss \"w".to_owned())].into();
        let carried = CarriedInputs { environment, ..CarriedInputs::default() };
        let inputs = ScenarioInputs::Carried(carried.into());
        let mut names = VariableNames { inputs, ..VariableNames::default() };
        assert!(names.find("env.PW").is_ok() && names.find("env.PW").is_ok());
        let shown = |text: &str| Excerpt::full(&names.secrets).bytes(text.as_bytes());
        assert_eq!(shown("password=p%40ss%20%22w&a=1"), "`password=***&a=1`");
        assert_eq!(shown("password=p%40ss+%22w&a=1"), "`password=***&a=1`");
        assert_eq!(shown(r#"{"password":"p@ss \"w"}"#), r#"`{"password":"***"}`"#);
        assert_eq!(shown("p@ss \"w"), "`***`");
        assert_eq!(names.secrets.len(), 4);
    }
}
