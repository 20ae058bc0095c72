//! Values of a script as texts of a scenario.

use throng_load::scenario::Diagnostic;

use crate::text::{append, escape};
use crate::yaml::Yaml;

use super::parser::program;
use super::syntax::{Expression, ExpressionKind};

/// The constants that are known at some place, and the variables that are used.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    constants: Vec<(String, Expression)>,
    /// Names of values that steps have stored.
    stored: Vec<String>,
    /// Variables of the environment that are used: `env.HOST`.
    environment: Vec<String>,
    /// Whether `__ITER` is used.
    pub(super) has_iteration: bool,
}

impl Values {
    /// Makes a constant known.
    pub(super) fn define(&mut self, name: &str, value: &Expression) {
        // A value with the constants in it, so that it cannot be in itself.
        let resolved = self.resolved(value, 0);
        let is_small = size(&resolved) <= PARTS_MAX;
        let value = if is_small { resolved } else { value.clone() };
        self.constants.push((name.to_owned(), value));
    }

    /// Makes a value known that a step stores. Returns its name in the scenario.
    pub(super) fn store(&mut self, name: &str) -> String {
        let stored = crate::names::identifier(name);
        let kind = ExpressionKind::Name(format!("\u{0}{stored}"));
        self.constants.push((name.to_owned(), Expression { span: 0..0, kind }));
        self.stored.push(stored.clone());
        stored
    }

    /// Returns all variables that a trial must know.
    pub(super) fn known(&self) -> Vec<String> {
        self.stored.iter().chain(&self.environment).cloned().collect()
    }

    /// Returns the variables that no step stores.
    pub(super) fn of_environment(&self) -> Vec<String> {
        self.environment.clone()
    }

    /// Returns the value, with constants in the place of their names.
    pub(super) fn resolved(&self, value: &Expression, depth: usize) -> Expression {
        if depth > DEPTH_MAX {
            return value.clone();
        }
        let resolve = |value: &Expression| self.resolved(value, depth + 1);
        let kind = match &value.kind {
            ExpressionKind::Name(name) => {
                let known = self.constants.iter().rev().find(|(known, _)| known == name);
                match known {
                    Some((_, known)) => known.kind.clone(),
                    None => value.kind.clone(),
                }
            }
            ExpressionKind::Template(parts) => {
                ExpressionKind::Template(parts.iter().map(resolve).collect())
            }
            ExpressionKind::List(items) => {
                ExpressionKind::List(items.iter().map(resolve).collect())
            }
            ExpressionKind::Object(members) => ExpressionKind::Object(
                members.iter().map(|(key, value)| (key.clone(), resolve(value))).collect(),
            ),
            ExpressionKind::Binary(left, sign, right) => {
                ExpressionKind::Binary(Box::new(resolve(left)), sign, Box::new(resolve(right)))
            }
            ExpressionKind::Call(function, arguments) => {
                let arguments = arguments.iter().map(resolve).collect();
                ExpressionKind::Call(function.clone(), arguments)
            }
            other => other.clone(),
        };
        Expression { span: value.span.clone(), kind }
    }

    /// Returns the text of a scenario that stands for the value.
    pub(super) fn text(&mut self, value: &Expression) -> Result<String, Diagnostic> {
        let resolved = self.resolved(value, 0);
        self.text_of(&resolved)
    }

    fn text_of(&mut self, value: &Expression) -> Result<String, Diagnostic> {
        match &value.kind {
            ExpressionKind::Text(text) => Ok(escape(text)),
            ExpressionKind::Number(number) => Ok(number.to_string()),
            ExpressionKind::Truth(truth) => Ok(truth.to_string()),
            ExpressionKind::Template(parts) => {
                let mut text = String::new();
                for part in parts {
                    append(&mut text, &self.text_of(part)?);
                }
                Ok(text)
            }
            ExpressionKind::Binary(left, "+", right) => {
                let is_number = |side: &Expression| side.number().is_some();
                if is_number(left) && is_number(right) {
                    return Err(program(&value.span));
                }
                let mut text = self.text_of(left)?;
                append(&mut text, &self.text_of(right)?);
                Ok(text)
            }
            ExpressionKind::Name(name) if name.starts_with('\u{0}') => {
                Ok(format!("${{{}}}", &name[1..]))
            }
            _ => self.variable(value),
        }
    }

    /// Returns a variable of k6.
    fn variable(&mut self, value: &Expression) -> Result<String, Diagnostic> {
        let path = value.path().unwrap_or_default();
        if let Some(name) = path.strip_prefix("__ENV.") {
            let variable = format!("env.{name}");
            if !self.environment.contains(&variable) {
                self.environment.push(variable.clone());
            }
            return Ok(format!("${{{variable}}}"));
        }
        let call = value.call();
        let numbers = call.as_ref().map(|(_, arguments)| {
            arguments.iter().filter_map(Expression::number).collect::<Vec<_>>()
        });
        match (&*path, call.as_ref().map(|(name, _)| &**name), numbers.as_deref()) {
            ("__VU" | "exec.vu.idInTest", ..) => Ok("${user.id + 1}".to_owned()),
            ("__ITER" | "exec.vu.iterationInInstance", ..) => {
                self.has_iteration = true;
                Ok("${counter}".to_owned())
            }
            (_, Some("uuidv4" | "crypto.randomUUID"), _) => Ok("${uuid()}".to_owned()),
            (_, Some("randomIntBetween"), Some([least, most]))
                if *least >= 0.0 && least <= most && *most < 1e15 =>
            {
                Ok(format!("${{random({least},{most})}}"))
            }
            (_, Some("Date.now"), _) => Ok("${time()}".to_owned()),
            (_, Some("JSON.stringify"), _) => match call {
                Some((_, [object, ..])) => self.json_text(object),
                _ => Err(program(&value.span)),
            },
            _ => Err(program(&value.span)),
        }
    }

    /// Returns the value as JSON in one text.
    fn json_text(&mut self, value: &Expression) -> Result<String, Diagnostic> {
        match &value.kind {
            ExpressionKind::Object(members) => {
                let mut parts = Vec::new();
                for (key, value) in members {
                    let key = serde_json::Value::from(&**key);
                    parts.push(format!("{key}:{}", self.json_text(value)?));
                }
                Ok(format!("{{{}}}", parts.join(",")))
            }
            ExpressionKind::List(items) => {
                let items: Result<Vec<_>, _> =
                    items.iter().map(|item| self.json_text(item)).collect();
                Ok(format!("[{}]", items?.join(",")))
            }
            ExpressionKind::Null => Ok("null".to_owned()),
            ExpressionKind::Number(_) | ExpressionKind::Truth(_) => self.text_of(value),
            _ => {
                let text = self.text_of(value)?;
                Ok(serde_json::Value::from(text).to_string())
            }
        }
    }

    /// Returns the value as JSON in the form of YAML.
    pub(super) fn json(&mut self, value: &Expression) -> Result<Yaml, Diagnostic> {
        match &value.kind {
            ExpressionKind::Object(members) => {
                let mut entries = Vec::new();
                for (key, value) in members {
                    entries.push((key.clone(), self.json(value)?));
                }
                Ok(Yaml::map(entries))
            }
            ExpressionKind::List(items) => {
                let items: Result<Vec<_>, _> = items.iter().map(|item| self.json(item)).collect();
                Ok(Yaml::list(items?))
            }
            ExpressionKind::Null => Ok(Yaml::plain("null")),
            ExpressionKind::Number(number) => Ok(Yaml::plain(number)),
            ExpressionKind::Truth(truth) => Ok(Yaml::plain(truth)),
            _ => Ok(Yaml::text(self.text_of(value)?)),
        }
    }

    /// Returns a message or a body: JSON of an object in `JSON.stringify`, or a text.
    pub(super) fn payload(
        &mut self,
        value: &Expression,
    ) -> Result<(&'static str, Yaml), Diagnostic> {
        let resolved = self.resolved(value, 0);
        match resolved.call() {
            Some((name, [object, ..])) if name == "JSON.stringify" => {
                Ok(("json", self.json(object)?))
            }
            _ => Ok(("text", Yaml::text(self.text_of(&resolved)?))),
        }
    }
}

/// Returns how many expressions an expression has in it.
fn size(value: &Expression) -> usize {
    1 + match &value.kind {
        ExpressionKind::Template(parts) | ExpressionKind::List(parts) => {
            parts.iter().map(size).sum()
        }
        ExpressionKind::Object(members) => members.iter().map(|(_, value)| size(value)).sum(),
        ExpressionKind::Binary(left, _, right) => size(left) + size(right),
        ExpressionKind::Call(_, arguments) => arguments.iter().map(size).sum(),
        _ => 0,
    }
}

/// The most expressions in a constant. Constants of constants would have no bound.
const PARTS_MAX: usize = 500;

/// The deepest value.
const DEPTH_MAX: usize = 80;
