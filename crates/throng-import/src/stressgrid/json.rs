//! JSON that a script sends or expects.

use super::device::Device;
use super::elixir::{Expr, ExprKind};
use super::value::Value;
use crate::text::escape;
use crate::yaml::Yaml;

/// JSON with variables.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    /// A number, `true`, `false` or `null`.
    Plain(String),
    Text(String),
    /// A variable in place of a number.
    Number(String),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

impl Json {
    /// Returns it as a scenario writes it: in YAML, unless a variable stands for a number, or a
    /// text looks like JSON.
    pub(super) fn to_yaml(&self) -> Yaml {
        if self.needs_text() || !matches!(self, Self::List(_) | Self::Map(_)) {
            return Yaml::text(self.to_text());
        }
        self.yaml()
    }

    fn yaml(&self) -> Yaml {
        match self {
            Self::Plain(text) => Yaml::plain(text),
            Self::Text(text) | Self::Number(text) => Yaml::text(text),
            Self::List(items) => Yaml::list(items.iter().map(Self::yaml)),
            Self::Map(entries) => {
                Yaml::map(entries.iter().map(|(key, value)| (key.clone(), value.yaml())))
            }
        }
    }

    fn needs_text(&self) -> bool {
        match self {
            Self::Number(_) => true,
            Self::Text(text) => text.trim_start().starts_with(['{', '[']),
            Self::Plain(_) => false,
            Self::List(items) => items.iter().any(Self::needs_text),
            Self::Map(entries) => entries.iter().any(|(_, value)| value.needs_text()),
        }
    }

    /// Returns the text of JSON.
    pub(super) fn to_text(&self) -> String {
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

impl Device<'_, '_> {
    /// Returns the JSON of a map, a list or a value. The error says what to do.
    pub(super) fn json(&mut self, expr: &Expr) -> Result<Json, String> {
        let expr = self.literal(expr);
        match &expr.kind {
            ExprKind::Map(entries) => {
                let mut map: Vec<(String, Json)> = Vec::new();
                for (key, value) in entries {
                    let key = key.literal().ok_or("write the map as JSON")?.to_owned();
                    let value = self.json(value)?;
                    map.retain(|(known, _)| *known != key);
                    map.push((key, value));
                }
                Ok(Json::Map(map))
            }
            ExprKind::List(items) => {
                let items: Result<Vec<_>, _> = items.iter().map(|item| self.json(item)).collect();
                Ok(Json::List(items?))
            }
            ExprKind::Number(number) => Ok(Json::Plain(number.to_string())),
            ExprKind::Atom(name) => Ok(match &**name {
                "nil" => Json::Plain("null".to_owned()),
                "true" | "false" => Json::Plain(name.clone()),
                name => Json::Text(escape(name)),
            }),
            _ => {
                let Value { text, is_number } = self.value(&expr)?;
                let is_plain = is_number && text.parse::<f64>().is_ok();
                Ok(match (is_plain, is_number) {
                    (true, _) => Json::Plain(text),
                    (false, true) => Json::Number(text),
                    (false, false) => Json::Text(text),
                })
            }
        }
    }
}
