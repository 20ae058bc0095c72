//! JSON that a script sends or expects.

use std::collections::HashSet;

use crate::json::Json;
use crate::text::escape;

use super::device::Device;
use super::elixir::{Expr, ExprKind};
use super::value::Value;

impl Device<'_, '_> {
    /// Returns the JSON of a map, a list or a value. The error says what to do.
    pub(super) fn json(&mut self, expr: &Expr) -> Result<Json, String> {
        let expr = self.literal(expr);
        match &expr.kind {
            ExprKind::Map(entries) => {
                let (mut map, mut keys) = (Vec::<(String, Json)>::new(), HashSet::new());
                for (key, value) in entries {
                    let key = key.literal().ok_or("write the map as JSON")?.to_owned();
                    let value = self.json(value)?;
                    if !keys.insert(key.clone()) {
                        map.retain(|(known, _)| *known != key);
                    }
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
                let is_stored = self.is_stored(&expr);
                if is_stored && self.told.insert("stored numbers") {
                    let how = "a number that a step has stored is a text in JSON";
                    self.translator.approximated(&expr.span, text.as_str(), how);
                }
                let is_number = is_number && !is_stored;
                Ok(match (is_plain, is_number) {
                    (true, _) => Json::Plain(text),
                    (false, true) => Json::Number(text),
                    (false, false) => Json::Text(text),
                })
            }
        }
    }
}
