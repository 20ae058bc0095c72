//! JSON with variables of the scenario in it.

use crate::yaml::Yaml;

/// JSON that a file sends or expects.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    /// A number, `true`, `false` or `null`.
    Plain(String),
    Text(String),
    /// A variable in place of a number.
    Number(String),
    List(Vec<Json>),
    /// The entries; variables stand in their keys, too.
    Map(Vec<(String, Json)>),
}

impl Json {
    /// Returns the pattern of any value.
    pub(crate) fn any() -> Self {
        Self::Map(vec![("$exists".to_owned(), Self::Plain("true".to_owned()))])
    }

    /// Returns it as a scenario writes it: in YAML, unless a variable stands for a number, or a
    /// text looks like JSON.
    pub(crate) fn to_yaml(&self) -> Yaml {
        if self.needs_text() || !matches!(self, Self::List(_) | Self::Map(_)) {
            return Yaml::text(self.to_text());
        }
        self.pattern()
    }

    /// Returns it in YAML, with texts in place of variables: as a pattern, such a text is also
    /// the number.
    pub(crate) fn pattern(&self) -> Yaml {
        match self {
            Self::Plain(text) => Yaml::plain(text),
            Self::Text(text) | Self::Number(text) => Yaml::text(text),
            Self::List(items) => Yaml::list(items.iter().map(Self::pattern)),
            Self::Map(entries) => {
                Yaml::map(entries.iter().map(|(key, value)| (key.clone(), value.pattern())))
            }
        }
    }

    fn needs_text(&self) -> bool {
        match self {
            Self::Number(_) => true,
            Self::Text(text) => text.trim_start().starts_with(['{', '[']),
            Self::Plain(_) => false,
            Self::List(items) => items.iter().any(Self::needs_text),
            // In YAML, a key is no text with variables.
            Self::Map(entries) => {
                entries.iter().any(|(key, value)| key.contains("${") || value.needs_text())
            }
        }
    }

    /// Returns the text of JSON.
    pub(crate) fn to_text(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match self {
            Self::Plain(text) | Self::Number(text) => text.clone(),
            Self::Text(text) => quoted(text),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(Self::to_text).collect();
                format!("[{}]", items.join(","))
            }
            Self::Map(entries) => {
                let entry =
                    |(key, value): &(String, Self)| format!("{}:{}", quoted(key), value.to_text());
                format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(","))
            }
        }
    }
}
