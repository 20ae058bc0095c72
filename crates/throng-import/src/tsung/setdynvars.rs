//! `setdynvars`: values that a step stores, and rows of data files.

use super::element::Element;
use super::request::NO_VARIABLES;
use super::steps::StepsReader;
use super::variables::{function_value, literal, plain_name};
use crate::data_file::is_delimiter;
use crate::step;
use crate::text::{RANDOM_CHARS_MAX, escape, random_digits};
use crate::yaml::Yaml;

impl<'d> StepsReader<'_, '_, 'd> {
    /// Translates `setdynvars`.
    pub(super) fn setdynvars(&mut self, element: Element<'d>) -> Vec<Yaml> {
        let found = self.translator.require(element, "sourcetype", "file");
        let kind = found.and_then(|_| self.translator.word(element, "sourcetype", SOURCES));
        let Some(kind) = kind else { return Vec::new() };
        let names: Vec<_> = element
            .elements()
            .filter_map(|var| self.translator.require(var, "name", "user"))
            .map(|name| name.value.trim())
            .filter(|name| !name.is_empty())
            .collect();
        if names.is_empty() {
            let label = "expected `<var name=\"...\"/>` in it";
            return self.translator.fail(&element.span(), "no variable is set", label);
        }
        match kind {
            "file" | "local_file" => self.file(element, kind, &names),
            "random_number" => {
                let number = |reader: &mut Self, name, default| {
                    let bounds = 0..=u64::MAX / 2;
                    reader.translator.integer(element, name, bounds).unwrap_or(default)
                };
                let (low, high) = (number(self, "start", 1), number(self, "end", 10));
                if low > high {
                    let label = format!("expected `end` to be at least {low}");
                    return self.translator.fail(&element.span(), "the range is empty", label);
                }
                self.translator.translated(&element.span(), label(kind));
                let set = self.set_to(&names, &format!("${{random({low},{high})}}"));
                names.iter().for_each(|name| self.variables.is_number(name));
                set
            }
            "random_string" | "urandom_string" => {
                let length = self.translator.integer(element, "length", 1..=RANDOM_CHARS_MAX);
                let value = random_digits(length.unwrap_or(20));
                let how = "the scenario's text is as long, of digits and not of letters";
                self.translator.approximated(&element.span(), label(kind), how);
                self.set_to(&names, &value)
            }
            "value" => {
                let Some(value) = self.translator.require(element, "value", "...") else {
                    return Vec::new();
                };
                self.check_letters(value.value, &value.span, "setdynvars value");
                let text = literal(self.translator, value.value, &value.span, NO_VARIABLES);
                self.translator.translated(&element.span(), label(kind));
                self.set_first(&names, [text])
            }
            "server" => {
                self.translator.translated(&element.span(), label(kind));
                self.set_first(&names, [self.server.host, self.server.port].map(escape))
            }
            "erlang" => {
                let function = element.value("callback").unwrap_or_default().trim();
                let span = element.span();
                if names.len() > 1 {
                    let remedy = "a function of tsung has one value: give each variable its own \
                                  `setdynvars`";
                    self.translator.not_supported(&span, label(kind), remedy);
                    return self.set_to(&names, "");
                }
                match function_value(self.translator, function, &label(kind), &span) {
                    Some(value) => self.set_to(&names, &value),
                    None => {
                        self.translator.not_supported(&span, label(kind), NO_ERLANG);
                        self.set_to(&names, "")
                    }
                }
            }
            kind => {
                let remedy = match kind {
                    "jsonpath" => "keep the part of the answer itself, with `capture`",
                    _ => NO_ERLANG,
                };
                self.translator.not_supported(&element.span(), label(kind), remedy);
                self.set_to(&names, "")
            }
        }
    }

    /// Returns a step that stores the value under each of the names.
    pub(super) fn set_to(&mut self, names: &[&str], value: &str) -> Vec<Yaml> {
        let mut stored = Vec::<(String, Yaml)>::new();
        for name in names {
            let name = self.variables.store(name, &self.shared.tables.ids);
            if !stored.iter().any(|(other, _)| *other == name) {
                stored.push((name, Yaml::text(value)));
            }
        }
        vec![step::set_all(stored)]
    }

    /// Returns steps that store the values under the first names. The other names get empty texts,
    /// as in tsung.
    fn set_first<const N: usize>(&mut self, names: &[&str], values: [String; N]) -> Vec<Yaml> {
        let mut values = values.into_iter();
        let set = |name: &&str| self.set_to(&[*name], &values.next().unwrap_or_default());
        names.iter().flat_map(set).collect()
    }

    fn file(&mut self, element: Element<'d>, kind: &str, names: &[&'d str]) -> Vec<Yaml> {
        let id = element.value("fileid").unwrap_or("default");
        let Some(path) = self.options.files.get(id).cloned() else {
            let span = element.get("fileid").map_or(element.span(), |found| found.span);
            let title = format!("there is no file `{id}`");
            let label = format!("expected an option `file_server` with `id=\"{id}\"`");
            return self.translator.fail(&span, title, label);
        };
        let order = self.translator.word(element, "order", &["iter", "random"]);
        let is_random = order == Some("random") || kind == "local_file";
        let delimiter = element.get("delimiter").map_or(";", |found| found.value);
        if !is_delimiter(delimiter) {
            let span = element.get("delimiter").map_or(element.span(), |found| found.span);
            let label = "expected one character, such as `;`";
            return self.translator.fail(&span, "this delimiter cannot be used", label);
        }
        let mut columns = Vec::<String>::new();
        for name in names {
            let base = plain_name(name);
            let is_new = !columns.contains(&base);
            let column = if is_new { base } else { format!("{base}_{}", columns.len() + 1) };
            columns.push(column);
        }
        if columns.len() > COLUMNS_MAX {
            let label = format!("expected at most {COLUMNS_MAX}");
            return self.translator.fail(&element.span(), "too many variables", label);
        }
        let Some(table) =
            self.shared.tables.add(id, &path, columns.clone(), (delimiter, is_random))
        else {
            let label = "expected at most 16 files, each with its variables";
            return self.translator.fail(&element.span(), "too many data files", label);
        };
        for (name, column) in names.iter().zip(&columns) {
            self.variables.bind(name, format!("{table}.{column}"));
        }
        let how = match (self.is_repeated(), self.read_files.contains(&id)) {
            (true, _) => "tsung takes another row in each turn; a user of the scenario has one row",
            (_, true) => "tsung takes another row here; a user of the scenario has one row",
            _ if is_random && kind == "file" || self.is_only_session => {
                "tsung knows no quotes and no `\\r\\n`: it keeps quotes around a value, and the \
                 `\\r` at the end of a row"
            }
            _ => {
                "tsung gives the next row to the next user of this session; the scenario gives \
                  row k to user k, whatever its session"
            }
        };
        self.read_files.push(id);
        self.translator.approximated(&element.span(), label(kind), how);
        Vec::new()
    }
}

/// Returns the construct as a report calls it.
fn label(kind: &str) -> String {
    format!("setdynvars {kind}")
}

const SOURCES: &[&str] = words![
    "file" "local_file" "random_number" "random_string" "urandom_string" "value" "jsonpath" "server"
    "erlang" "eval"
];

/// What to do about a value that only Erlang computes.
const NO_ERLANG: &str = "throng runs no Erlang; use `set` with the scenario's functions";

/// Most columns of a data file.
const COLUMNS_MAX: usize = 100;
