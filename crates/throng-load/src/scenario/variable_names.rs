//! The names that variables may use at some place of a scenario.

use super::data::DataTable;
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
    /// Names that a step before this place stores.
    defined: Vec<String>,
    /// True where a message has been sent before.
    has_sent: bool,
    /// True in the broadcast of a probe.
    has_probe: bool,
    /// Returns the value of an environment variable.
    env: fn(&str) -> Option<String>,
    /// Values of environment variables that were used. They are masked wherever one can see them.
    pub(super) secrets: Vec<String>,
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
            defined: Vec::new(),
            has_sent: false,
            has_probe: false,
            env: |name| std::env::var(name).ok(),
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
            return Ok(Variable::Stored { slot: self.declare(name), name: name.into() });
        }
        if let Some((prefix, column)) = name.split_once('.')
            && let Some(index) = self.tables.iter().position(|known| known.name() == prefix)
        {
            let table = &self.tables[index];
            let at = table.column(column).ok_or_else(|| NameError::Other {
                title: format!("{} has no column `{column}`", table.path()),
                label: format!("its columns are {}", table.columns().join(", ")),
            })?;
            return Ok(Variable::Cell {
                table: index as u16,
                column: at as u16,
                bytes_max: table.bytes_max(at),
                name: name.into(),
            });
        }
        if name.split_once('.').is_some_and(|(file, _)| self.unreadable.iter().any(|it| it == file))
        {
            return Ok(Variable::Text("".into()));
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

    fn find_in_environment(&mut self, name: &str) -> Result<Variable, NameError> {
        let Some(value) = (self.env)(name) else {
            return Err(NameError::Other {
                title: format!("the environment has no variable `{name}`"),
                label: format!("set it first: export {name}=..."),
            });
        };
        if !value.is_empty() && !self.secrets.contains(&value) {
            self.secrets.push(value.clone());
        }
        Ok(Variable::Text(value.into()))
    }

    /// Returns the names that have a value here.
    pub(super) fn known(&self) -> Vec<String> {
        let own = ["user.id", "counter"].map(str::to_owned);
        let columns = self.tables.iter().flat_map(|table| {
            table.columns().iter().map(move |column| format!("{}.{column}", table.name()))
        });
        own.into_iter().chain(self.defined.iter().cloned()).chain(columns).collect()
    }

    /// Returns a label that lists what can be used.
    pub(super) fn list(&self) -> String {
        let mut known = self.known();
        known.truncate(LIST_MAX);
        let known = known.join(", ");
        format!("use {known}, env.NAME or random(a,b); a plain `${{` is written `$${{`")
    }

    /// Sets the names that the steps of a class store, before they are read.
    pub(super) fn announce(&mut self, names: Vec<String>) {
        self.announced = names;
    }

    /// Adds a name under which a later step may use a value. Returns its place among the values of
    /// a user.
    pub(crate) fn define(&mut self, name: &str) -> u16 {
        let slot = self.declare(name);
        if !self.defined.iter().any(|defined| defined == name) {
            self.defined.push(name.to_owned());
        }
        slot
    }

    /// Adds a name that a step stores somewhere.
    pub(super) fn declare(&mut self, name: &str) -> u16 {
        let known = self.stored.iter().position(|stored| stored == name);
        known.unwrap_or_else(|| {
            self.stored.push(name.to_owned());
            self.stored.len() - 1
        }) as u16
    }

    /// Forgets which names have a value: another class of users begins.
    pub(super) fn begin_class(&mut self) {
        self.defined.clear();
        self.has_sent = false;
    }

    /// Makes all values known that a step of any class stores: one of the users sends the probe.
    pub(super) fn begin_probe(&mut self) {
        self.defined.clone_from(&self.stored);
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

/// Reports whether `name` is that of the last sent message, or of a part of it.
fn is_sent(name: &str) -> bool {
    name == "sent" || name.starts_with("sent.")
}

/// Names that an error message lists.
const LIST_MAX: usize = 12;
