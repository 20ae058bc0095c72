//! Patterns for the JSON of an answer: what it must be, and the names of its parts.

use crate::json::Json;
use crate::json_pointer::JsonPointer;

use super::device::Device;
use super::elixir::{Expr, ExprKind};
use super::pattern::binds;
use super::value::{AnswerPart, Binding};

impl Device<'_, '_> {
    /// Returns the JSON that a pattern demands, in the words of `expect`. Reports the parts that a
    /// scenario cannot demand; there it takes any value.
    pub(super) fn demanded(&mut self, pattern: &Expr) -> Json {
        match &pattern.kind {
            ExprKind::Name(_) => Json::any(),
            ExprKind::Map(entries) => {
                let mut map: Vec<(String, Json)> = Vec::new();
                for (key, value) in entries {
                    let Some(key) = key.literal() else {
                        self.undemanded(key);
                        continue;
                    };
                    let value = self.demanded(value);
                    map.retain(|(known, _)| known != key);
                    map.push((key.to_owned(), value));
                }
                Json::Map(map)
            }
            ExprKind::List(items) => {
                Json::List(items.iter().map(|item| self.demanded(item)).collect())
            }
            ExprKind::Pinned(value) => match self.json(value) {
                Ok(json) => json,
                Err(_) => self.undemanded(pattern),
            },
            ExprKind::Number(_) | ExprKind::Atom(_) | ExprKind::Text(_)
                if matches!(pattern.kind, ExprKind::Number(_)) || pattern.literal().is_some() =>
            {
                self.json(pattern).unwrap_or_else(|_| Json::any())
            }
            _ => self.undemanded(pattern),
        }
    }

    /// Reports a part of a pattern that the scenario does not demand, and returns what it takes.
    fn undemanded(&mut self, pattern: &Expr) -> Json {
        let remedy = "the scenario takes any value here: write an `expect` that demands this one";
        if binds(pattern) {
            self.translator.not_supported(&pattern.span, "pattern", remedy);
        } else {
            self.translator.not_checked(&pattern.span, "pattern", remedy);
        }
        Json::any()
    }

    /// Binds the names in a pattern for JSON.
    pub(super) fn bind_json(&mut self, pattern: &Expr, part: &AnswerPart) {
        match &pattern.kind {
            ExprKind::Name(name) => {
                self.bindings.insert(name.clone(), Binding::Answer(part.clone()));
            }
            ExprKind::Map(entries) => {
                for (key, value) in entries {
                    let Some(key) = key.literal() else { continue };
                    self.bind_json(value, &part.at(part.place.join(key)));
                }
            }
            ExprKind::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.bind_json(item, &part.at(part.place.join(&index.to_string())));
                }
            }
            _ => {}
        }
    }
}

impl AnswerPart {
    /// Returns the part of the same answer at this place.
    fn at(&self, pointer: JsonPointer) -> Self {
        Self { captures: self.captures.clone(), place: pointer }
    }
}

/// Reports whether a pattern demands no value, but only that parts are there.
pub(super) fn has_no_value(pattern: &Json) -> bool {
    match pattern {
        Json::Map(entries) => {
            *pattern == Json::any() || entries.iter().all(|(_, value)| has_no_value(value))
        }
        _ => false,
    }
}
