//! Values of YAML with comments, and how they are written.
//!
//! A list or mapping without comments stands in one line (flow style) if it is short; else each of
//! its items has its own lines (block style).

use std::fmt::Write;

use throng_report::render::is_unsafe;

/// A value, and the comments that stand above it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Yaml {
    comments: Vec<String>,
    value: Value,
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    /// Written as it is: a number, a duration, a word that needs no quotes.
    Plain(String),
    /// A text, with quotes where it needs some.
    Text(String),
    List(Vec<Yaml>),
    /// The entries, in the order in which they are written.
    Map(Vec<(String, Yaml)>),
}

impl Yaml {
    /// Returns a value that is written as it is: `5s`, `100k`, `true`.
    pub(crate) fn plain(text: impl ToString) -> Self {
        Value::Plain(text.to_string()).into()
    }

    /// Returns a text. It is quoted if YAML would read it as something else.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Value::Text(text.into()).into()
    }

    /// Returns a list.
    pub(crate) fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Value::List(items.into_iter().collect()).into()
    }

    /// Returns a mapping. Its keys are words of the scenario language, or names.
    pub(crate) fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        Value::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect()).into()
    }

    /// Returns a mapping with one entry: a step such as `send: hello`.
    pub(crate) fn entry(key: &str, value: Self) -> Self {
        Self::map([(key, value)])
    }

    /// Adds comments above the value: one for each line.
    #[must_use]
    pub(crate) fn comment(mut self, text: &str) -> Self {
        self.comments.extend(text.lines().map(|line| line.trim().to_owned()));
        self
    }

    /// Adds comments above the value, in their order.
    #[must_use]
    pub(crate) fn comments<T: AsRef<str>>(self, texts: impl IntoIterator<Item = T>) -> Self {
        texts.into_iter().fold(self, |value, text| value.comment(text.as_ref().trim()))
    }

    /// Adds comments above the first step of a list.
    pub(crate) fn comment_first<T: AsRef<str>>(
        steps: &mut [Self],
        texts: impl IntoIterator<Item = T>,
    ) {
        if let Some(first) = steps.first_mut() {
            *first = std::mem::replace(first, Self::plain("")).comments(texts);
        }
    }

    /// Reports whether it is a text.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.value, Value::Text(_))
    }

    /// Reports whether it is a mapping with this key.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        matches!(&self.value, Value::Map(entries) if entries.iter().any(|(known, _)| known == key))
    }

    /// Returns all single values in it, as they are written.
    pub(crate) fn scalars(&self) -> Vec<&str> {
        match &self.value {
            Value::Plain(text) | Value::Text(text) => vec![text],
            Value::List(items) => items.iter().flat_map(Self::scalars).collect(),
            Value::Map(entries) => entries.iter().flat_map(|(_, it)| it.scalars()).collect(),
        }
    }

    /// Reports whether it is the step `connect`.
    pub(crate) fn is_connect(&self) -> bool {
        matches!(&self.value, Value::Text(text) if text == "connect") || self.has_key("connect")
    }

    /// Reports whether it is a step that sends a request of HTTP.
    pub(crate) fn is_request(&self) -> bool {
        let methods = ["get", "head", "post", "put", "patch", "delete", "options"];
        methods.iter().any(|method| self.has_key(method))
    }

    /// Reports whether a value in this one has a comment.
    fn contains_comments(&self) -> bool {
        let has_some = |value: &Self| !value.comments.is_empty() || value.contains_comments();
        match &self.value {
            Value::Plain(_) | Value::Text(_) => false,
            Value::List(items) => items.iter().any(has_some),
            Value::Map(entries) => entries.iter().any(|(_, value)| has_some(value)),
        }
    }

    /// Returns how many levels of lists and mappings this value has.
    fn depth(&self) -> usize {
        match &self.value {
            Value::Plain(_) | Value::Text(_) => 0,
            Value::List(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Value::Map(entries) => 1 + entries.iter().map(|(_, v)| v.depth()).max().unwrap_or(0),
        }
    }

    /// Returns the value in one line.
    fn flow(&self) -> String {
        match &self.value {
            // A law such as `uniform(1s, 3s)` would be two items.
            Value::Plain(text) if text.contains([',', '[', ']', '{', '}']) => quoted(text, true),
            Value::Plain(text) => text.clone(),
            Value::Text(text) => quoted(text, true),
            Value::List(items) => {
                let items: Vec<_> = items.iter().map(Self::flow_item).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Map(entries) => format!("{{{}}}", flow_entries(entries)),
        }
    }

    /// Returns the value as an item of a list in one line, where a mapping with one entry needs no
    /// braces.
    fn flow_item(&self) -> String {
        match &self.value {
            Value::Map(entries) if entries.len() == 1 => flow_entries(entries),
            _ => self.flow(),
        }
    }

    /// Returns the value in one line if it may stand in one, after `before` columns.
    fn short(&self, before: usize) -> Option<String> {
        match &self.value {
            Value::Plain(text) => Some(text.clone()),
            Value::Text(text) => Some(quoted(text, false)),
            Value::List(items) if items.is_empty() => Some("[]".to_owned()),
            Value::Map(entries) if entries.is_empty() => Some("{}".to_owned()),
            Value::List(_) | Value::Map(_) => {
                let is_small = self.depth() <= FLOW_DEPTH_MAX && !self.contains_comments();
                let flow = is_small.then(|| self.flow())?;
                (before + flow.chars().count() <= FLOW_COLUMNS_MAX).then_some(flow)
            }
        }
    }
}

fn flow_entries(entries: &[(String, Yaml)]) -> String {
    let entries: Vec<_> = entries
        .iter()
        .map(|(key, value)| format!("{}: {}", quoted(key, true), value.flow()))
        .collect();
    entries.join(", ")
}

impl From<Value> for Yaml {
    fn from(value: Value) -> Self {
        Self { comments: Vec::new(), value }
    }
}

/// Writes lines of a comment.
pub(crate) fn write_comments(lines: &[String], indent: usize, out: &mut String) {
    for line in lines {
        let line = line.replace(is_unsafe, " ");
        let line = format!("{:indent$}# {line}", "");
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// Writes `key: value`, below the comments of the value.
pub(crate) fn write_entry(key: &str, value: &Yaml, indent: usize, out: &mut String) {
    write_comments(&value.comments, indent, out);
    let _ = write!(out, "{:indent$}", "");
    write_pair(key, value, indent, out);
}

/// Writes a list in block style, each item below its comments.
pub(crate) fn write_list(items: &[Yaml], indent: usize, out: &mut String) {
    for item in items {
        write_comments(&item.comments, indent, out);
        if let Value::Map(entries) = &item.value {
            // The first key stands behind the dash, so its comments stand above the item.
            entries.iter().take(1).for_each(|(_, first)| {
                write_comments(&first.comments, indent, out);
            });
        }
        let _ = write!(out, "{:indent$}- ", "");
        write_item(item, indent + 2, out);
    }
}

/// Writes an item behind its dash, at column `indent`.
fn write_item(item: &Yaml, indent: usize, out: &mut String) {
    let is_one_entry = matches!(&item.value, Value::Map(entries) if entries.len() == 1);
    let short = if is_one_entry { None } else { item.short(indent) };
    match (&item.value, short) {
        (Value::Map(entries), None) => {
            let mut entries = entries.iter();
            let (key, first) = entries.next().expect("an empty mapping is short");
            write_pair(key, first, indent, out);
            entries.for_each(|(key, value)| write_entry(key, value, indent, out));
        }
        (Value::List(items), None) => {
            out.push('\n');
            write_list(items, indent, out);
        }
        (_, short) => {
            let _ = writeln!(out, "{}", short.unwrap_or_else(|| item.flow()));
        }
    }
}

/// Writes `key: value`. The key is at column `indent`; what precedes it is written already.
fn write_pair(key: &str, value: &Yaml, indent: usize, out: &mut String) {
    let key = quoted(key, true);
    match (&value.value, value.short(indent + key.chars().count() + 2)) {
        (Value::List(items), None) => {
            let _ = writeln!(out, "{key}:");
            write_list(items, indent + 2, out);
        }
        (Value::Map(entries), None) => {
            let _ = writeln!(out, "{key}:");
            entries.iter().for_each(|(key, value)| write_entry(key, value, indent + 2, out));
        }
        (_, short) => {
            let _ = writeln!(out, "{key}: {}", short.unwrap_or_else(|| value.flow()));
        }
    }
}

/// Returns the text as a scalar of YAML: as it is, in single quotes or in double quotes.
fn quoted(text: &str, is_in_flow: bool) -> String {
    if is_plain(text, is_in_flow) {
        return text.to_owned();
    }
    let is_printable = !text.contains(is_unsafe);
    if is_printable && text.contains(['"', '\\']) && !text.contains('\'') {
        return format!("'{text}'");
    }
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            // A terminal that shows the file must not obey it.
            other if is_unsafe(other) => {
                let code = u32::from(other);
                let _ = match code {
                    0..=0xffff => write!(quoted, "\\u{code:04x}"),
                    _ => write!(quoted, "\\U{code:08x}"),
                };
            }
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

/// Reports whether YAML reads the text without quotes as this text.
fn is_plain(text: &str, is_in_flow: bool) -> bool {
    let may_begin = |first: char| first.is_alphanumeric() || "/_$.".contains(first);
    let may_stand = |character: char| {
        character.is_alphanumeric()
            || "/_.-+%=?&;@$*()<>~^|!".contains(character)
            || (!is_in_flow && "{}[],".contains(character))
            || matches!(character, ' ' | ':' | '±')
    };
    let is_word = || {
        ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .iter()
            .any(|word| text.eq_ignore_ascii_case(word))
    };
    // `0x1f`, `1e3`, `.inf`, `2001-01-01` and the like are numbers or dates.
    let is_number = text.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && !text.contains(['/', '=', '?']);
    text.starts_with(may_begin)
        && !text.contains(is_unsafe)
        && !text.ends_with([' ', ':'])
        && text.chars().all(may_stand)
        && !(text.contains(' ') && (text.contains(": ") || text.contains(" #")))
        && !is_number
        && !is_word()
}

/// Longest line in flow style, in columns.
const FLOW_COLUMNS_MAX: usize = 96;

/// Deepest list or mapping in flow style.
const FLOW_DEPTH_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(value: &Yaml) -> String {
        let mut out = String::new();
        write_entry("root", value, 0, &mut out);
        out
    }

    #[test]
    fn short_values_stand_in_one_line() {
        let ramp = Yaml::map([("to", Yaml::plain("100k")), ("over", Yaml::plain("15m"))]);
        let load = Yaml::list([Yaml::entry("ramp", ramp)]);
        assert_eq!(written(&load), "root: [ramp: {to: 100k, over: 15m}]\n");
    }

    #[test]
    fn a_comma_has_quotes_in_flow_style_alone() {
        let wait = Yaml::entry("wait", Yaml::plain("uniform(1s, 3s)"));
        assert_eq!(written(&wait), "root: {wait: \"uniform(1s, 3s)\"}\n");
        let steps = Yaml::list([wait, Yaml::text("close").comment("end")]);
        let expected = "root:\n  - wait: uniform(1s, 3s)\n  # end\n  - close\n";
        assert_eq!(written(&steps), expected);
    }

    #[test]
    fn nothing_in_it_is_a_command_to_a_terminal() {
        let hostile = "a\x1b[2J\u{9b}\u{202e}\u{3164}\u{e0041}'b";
        let steps = Yaml::map([(hostile, Yaml::text(hostile).comment(hostile))]);
        let text = written(&steps);
        assert!(!text.contains(|c| is_unsafe(c) && c != '\n'), "{text:?}");
        assert_eq!(read(&text)[0][hostile], hostile);
    }

    #[test]
    fn comments_stand_above_their_items() {
        let wait = Yaml::entry("wait", Yaml::plain("1s").comment("think\na little"));
        let steps = Yaml::list([Yaml::text("connect"), wait, Yaml::text("close").comment("end")]);
        let expected =
            "root:\n  - connect\n  # think\n  # a little\n  - wait: 1s\n  # end\n  - close\n";
        assert_eq!(written(&steps), expected);
    }

    #[test]
    fn a_list_in_a_list_is_in_block_style_where_it_is_long() {
        let long = Yaml::list((0..20).map(|n| Yaml::text(format!("number {n}"))));
        let text = written(&Yaml::list([long, Yaml::plain(1)]));
        let read: Vec<serde_json::Value> = read(&text);
        assert_eq!(read[0][19], "number 19");
        assert_eq!(read[1], 1);
    }

    fn read(text: &str) -> Vec<serde_json::Value> {
        let root: serde_json::Value =
            serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        root["root"].as_array().cloned().unwrap_or_else(|| vec![root["root"].clone()])
    }

    /// Any text, texts with signs of YAML, numbers, and words that are no texts.
    const TEXTS: &str = "\\PC{0,40}|[ -~\\n\\r\\t]{0,40}|[-0-9.:e]{1,8}|true|null|~";

    proptest! {
        /// YAML reads each text as the same text, wherever it stands.
        #[test]
        fn a_text_stays_the_same(text in TEXTS) {
            let value = Yaml::list([
                Yaml::text(&text),
                Yaml::entry("key", Yaml::text(&text)),
                Yaml::text("x").comment("in block style"),
            ]);
            for value in [value.clone(), Yaml::list([value])] {
                let written = written(&value);
                let root = read(&written);
                let list = if root.len() == 1 { root[0].as_array().unwrap() } else { &root };
                prop_assert_eq!(&list[0], &serde_json::Value::from(text.clone()), "{}", written);
                prop_assert_eq!(&list[1]["key"], &serde_json::Value::from(text.clone()));
            }
            let flow = written(&Yaml::list([Yaml::text(&text)]));
            prop_assert_eq!(&read(&flow)[0], &serde_json::Value::from(text.clone()), "{}", flow);
        }
    }
}
