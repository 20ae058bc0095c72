//! Dynamic variables: what `%%...%%` becomes, and the data files behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::element::Attribute;
use crate::data_file::DataFile;
use crate::names::{NameSet, in_letters, is_reserved};
use crate::text::{append, escape};
use crate::translator::Translator;

/// The data files of the scenario, which all sessions share.
#[derive(Debug)]
pub(super) struct Tables<'d> {
    tables: Vec<Table<'d>>,
    names: NameSet,
    /// Ids of the files, which no variable may have as its name.
    pub(super) ids: Vec<String>,
}

#[derive(Debug)]
struct Table<'d> {
    name: String,
    id: &'d str,
    file: DataFile,
}

/// The variables of one session.
#[derive(Debug, Default)]
pub(super) struct Variables {
    /// What stands between `${` and `}`, by tsung's names.
    known: BTreeMap<String, String>,
    /// Names in the scenario, by tsung's names.
    names: BTreeMap<String, String>,
    /// The values of `names`.
    taken: NameSet,
    /// Variables whose values are numbers, by tsung's names.
    numbers: BTreeSet<String>,
}

impl<'d> Tables<'d> {
    /// Creates a list for the files with these ids.
    pub(super) fn new(ids: Vec<String>) -> Self {
        Self { tables: Vec::new(), names: NameSet::default(), ids }
    }

    /// Returns the name of a data file with these columns, which it adds if it is not there.
    /// `None` if there are too many.
    pub(super) fn add(
        &mut self,
        id: &'d str,
        path: &Attribute<'d>,
        columns: Vec<String>,
        (delimiter, is_random): (&str, bool),
    ) -> Option<String> {
        let is_same = |table: &&Table<'_>| {
            table.id == id
                && table.file.columns == columns
                && table.file.delimiter == delimiter
                && table.file.is_random == is_random
        };
        if let Some(table) = self.tables.iter().find(is_same) {
            return Some(table.name.clone());
        }
        if self.tables.len() == TABLES_MAX {
            return None;
        }
        let name = self.names.add(&plain_name(id));
        let (path, delimiter) = (path.value.trim().to_owned(), delimiter.to_owned());
        let file = DataFile { path, columns, delimiter, is_random };
        self.tables.push(Table { name: name.clone(), id, file });
        Some(name)
    }

    /// Returns the files by their names.
    pub(super) fn into_files(self) -> Vec<(String, DataFile)> {
        self.tables.into_iter().map(|table| (table.name, table.file)).collect()
    }
}

impl Variables {
    /// Returns the name that a value has in the scenario, and makes it known as a value that a
    /// step stores.
    pub(super) fn store(&mut self, name: &str, ids: &[String]) -> String {
        let stored = self.name(name, ids);
        self.numbers.remove(name);
        self.known.insert(name.to_owned(), stored.clone());
        stored
    }

    /// Makes a variable known: a cell of a data file.
    pub(super) fn bind(&mut self, name: &str, expression: String) {
        self.numbers.remove(name);
        self.known.insert(name.to_owned(), expression);
    }

    /// Says that the values of a known variable are numbers.
    pub(super) fn is_number(&mut self, name: &str) {
        self.numbers.insert(name.to_owned());
    }

    /// Returns what stands for the variable in `${...}`.
    pub(super) fn find(&self, name: &str) -> Option<&str> {
        if name == "tsung_userid" {
            return Some(USER_NUMBER);
        }
        self.known.get(name).map(String::as_str)
    }

    /// Returns the name of a value in the scenario.
    pub(super) fn name(&mut self, name: &str, ids: &[String]) -> String {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let mut base = plain_name(name);
        if ids.iter().any(|id| base.starts_with(id.as_str())) {
            base.insert_str(0, "value_");
        }
        let free = self.taken.add(&base);
        self.names.insert(name.to_owned(), free.clone());
        free
    }

    /// Returns a text of the source as a text of the scenario. With `subst`, `%%...%%` become
    /// variables, each of which is reported at `span`; without it, they stay as they are.
    pub(super) fn text(
        &self,
        translator: &mut Translator<'_>,
        text: &str,
        subst: bool,
        span: &Range<usize>,
    ) -> String {
        if !subst {
            return literal(translator, text, span, NO_SUBST);
        }
        self.fill_in(translator, text, span, &mut |_, expression| format!("${{{expression}}}"))
    }

    /// Returns a path of the source as one of the scenario, in which values stand as they are, and
    /// whether there is one that may be no number.
    pub(super) fn path(
        &self,
        translator: &mut Translator<'_>,
        text: &str,
        span: &Range<usize>,
    ) -> (String, bool) {
        let mut has_texts = false;
        let path = self.fill_in(translator, text, span, &mut |name, expression| {
            if expression == USER_NUMBER || self.numbers.contains(name) {
                return format!("${{{expression}}}");
            }
            has_texts = true;
            format!("${{raw({expression})}}")
        });
        (path, has_texts)
    }

    /// Returns a text with variables in it. `write` returns what stands for a variable: by its
    /// name in tsung, and the expression of the scenario.
    fn fill_in(
        &self,
        translator: &mut Translator<'_>,
        text: &str,
        span: &Range<usize>,
        write: &mut dyn FnMut(&str, &str) -> String,
    ) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("%%") {
            append(&mut out, &escape(before));
            let Some((tag, behind)) = split_tag(after) else {
                let why = "the `%%` has no end: tsung leaves out what follows, and so does the \
                           scenario";
                translator.suspicious(span, "%%", why);
                return out;
            };
            append(&mut out, &self.value(translator, tag, span, write));
            rest = behind;
        }
        append(&mut out, &escape(rest));
        out
    }

    /// Returns what `%%name%%` becomes.
    fn value(
        &self,
        translator: &mut Translator<'_>,
        name: &str,
        span: &Range<usize>,
        write: &mut dyn FnMut(&str, &str) -> String,
    ) -> String {
        let construct = format!("%%{name}%%");
        if let Some(variable) = name.strip_prefix('_') {
            let Some(expression) = self.find(variable) else {
                let why = "no step before it sets the variable; tsung sends `undefined`, and so \
                           does the scenario";
                translator.suspicious(span, construct, why);
                return "undefined".to_owned();
            };
            match expression {
                USER_NUMBER => translator.approximated(span, construct, GAPS),
                _ => translator.translated(span, construct),
            }
            return write(variable, expression);
        }
        if let Some(value) = function_value(translator, name, &construct, span) {
            return value;
        }
        let remedy = "throng runs no Erlang; the scenario leaves the value out: write another \
                      variable there";
        translator.not_supported(span, construct, remedy);
        String::new()
    }
}

/// Returns a text in which tsung fills in no variable, as a text of the scenario. A `%%...%%` in it
/// is suspicious: `why` says why tsung leaves it as it is.
pub(super) fn literal(
    translator: &mut Translator<'_>,
    text: &str,
    span: &Range<usize>,
    why: &str,
) -> String {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("%%") {
        let tag = split_tag(after).filter(|(tag, _)| is_tag(tag));
        let Some((tag, behind)) = tag else {
            rest = after;
            continue;
        };
        translator.suspicious(span, format!("%%{tag}%%"), why);
        rest = behind;
    }
    escape(text)
}

/// Splits off the name of a variable, `_name`, or of a function, `module:function`, which ends with
/// `%%`, as tsung finds the end of both.
fn split_tag(text: &str) -> Option<(&str, &str)> {
    let begin = if text.starts_with('_') { 1 } else { text.find(':')? + 1 };
    let end = begin + text[begin..].find("%%")?;
    Some((&text[..end], &text[end + 2..]))
}

/// Reports whether this is the name of a variable or of a function, and not a text between two
/// signs that happen to be there.
fn is_tag(tag: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.[]".contains(c))
    };
    match tag.strip_prefix('_') {
        Some(variable) => is_name(variable),
        None => tag.split_once(':').is_some_and(|(module, name)| is_name(module) && is_name(name)),
    }
}

/// Returns what stands for the value of a function of tsung, `module:function`, and reports how it
/// differs; `None` if the scenario has nothing like it.
pub(super) fn function_value(
    translator: &mut Translator<'_>,
    function: &str,
    construct: &str,
    span: &Range<usize>,
) -> Option<String> {
    match function {
        "ts_user_server:get_unique_id" => {
            translator.approximated(span, construct, GAPS);
            Some(format!("${{{USER_NUMBER}}}"))
        }
        "ts_user_server:get_really_unique_id" => {
            let how = "the time in it is that of the message, and not of the user's begin";
            translator.approximated(span, construct, how);
            Some(format!("${{time('s')}}-${{{USER_NUMBER}}}"))
        }
        _ => None,
    }
}

/// Returns `name` in the letters that names of a scenario have.
pub(super) fn plain_name(name: &str) -> String {
    let name = in_letters(name, "value_", NAME_CHARS_MAX);
    if is_reserved(&name) { format!("value_{name}") } else { name }
}

/// Why tsung fills in no variable of a request.
const NO_SUBST: &str = "tsung fills in variables only where the request has `subst=\"true\"`; it \
                        sends this text as it stands, and so does the scenario";

/// Number of a user, from 1 as tsung counts.
pub(super) const USER_NUMBER: &str = "user.id + 1";

/// How the numbers of users differ.
const GAPS: &str = "the numbers begin at 1 and no two users have the same one, as in tsung; where \
                    users arrive at random, some numbers are left out";

const NAME_CHARS_MAX: usize = 40;

/// Most data files of a scenario.
const TABLES_MAX: usize = 16;
