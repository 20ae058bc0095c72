//! Values of a script: texts with variables of the scenario in them.

use crate::text::{append, escape};
use std::cell::RefCell;
use std::rc::Rc;

use super::device::Device;
use super::elixir::{Call, Expr, ExprKind};

/// What a scenario writes for a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value {
    /// A text with variables.
    pub(super) text: String,
    pub(super) is_number: bool,
}

/// What a name of the script stands for.
#[derive(Clone, Debug)]
pub(super) enum Binding {
    Value(Value),
    /// A list or a map, as it is written.
    Literal(Expr),
    /// A JSON value that the server has sent, or a part of it.
    Answer(AnswerPart),
    /// What the scenario does not know; the text says what it is.
    Unknown(&'static str),
}

/// A part of an answer. What the script uses of it becomes a capture of its step.
#[derive(Clone, Debug)]
pub(super) struct AnswerPart {
    pub(super) captures: Captures,
    /// JSON pointer.
    pub(super) pointer: String,
}

/// The captures of a step: names, and JSON pointers.
pub(super) type Captures = Rc<RefCell<Vec<(String, String)>>>;

impl Value {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_number: false }
    }

    pub(super) fn number(text: impl ToString) -> Self {
        Self { text: text.to_string(), is_number: true }
    }

    /// Reports whether the text is another one each time.
    pub(super) fn varies(&self) -> bool {
        ["${random(", "${choice(", "${uuid(", "${time("].iter().any(|it| self.text.contains(it))
    }

    /// Returns the value as an operand of an expression.
    fn operand(&self) -> &str {
        let inner = self.text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        inner.unwrap_or(&self.text)
    }
}

impl Device<'_, '_> {
    /// Returns a value. The error says what to do where a scenario has none.
    pub(super) fn value(&mut self, expr: &Expr) -> Result<Value, String> {
        match &expr.kind {
            ExprKind::Number(number) => Ok(Value::number(number)),
            ExprKind::Literal(text) => Ok(Value::text(escape(text))),
            ExprKind::Atom(name) => Ok(Value::text(escape(name))),
            ExprKind::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    append(&mut text, &self.value(part)?.text);
                }
                Ok(Value::text(text))
            }
            ExprKind::Name(name) => match self.bindings.get(name).cloned() {
                Some(Binding::Value(value)) => Ok(value),
                Some(Binding::Literal(literal)) => self.value(&literal),
                Some(Binding::Answer(part)) if !part.pointer.is_empty() => {
                    Ok(Value::text(self.capture(&part, name)))
                }
                Some(Binding::Answer(_)) => {
                    Err("the whole answer is not kept: use a part of its JSON".to_owned())
                }
                Some(Binding::Unknown(what)) => {
                    Err(format!("{what} is not kept: `capture` a part of it by hand"))
                }
                None => Err(format!("`{name}` has no value here: write one")),
            },
            ExprKind::Access(from, key) => self.access(from, key),
            ExprKind::Operation(operator, left, right) => self.operation(operator, left, right),
            ExprKind::Call(call) => self.call_value(call),
            ExprKind::List(items) => {
                // A list of texts is one text, where Stressgrid sends it.
                let mut text = String::new();
                for item in items {
                    append(&mut text, &self.value(item)?.text);
                }
                Ok(Value::text(text))
            }
            ExprKind::Tuple(_)
            | ExprKind::Map(_)
            | ExprKind::Bytes(_)
            | ExprKind::Match(..)
            | ExprKind::Other(_) => Err("write the text that it stands for".to_owned()),
        }
    }

    /// Returns the value of `params["key"]` or `json["key"]`.
    fn access(&mut self, from: &Expr, key: &Expr) -> Result<Value, String> {
        if let Some(value) = self.param(from, key) {
            return value.map(|value| match value {
                serde_json::Value::String(text) => Value::text(escape(&text)),
                serde_json::Value::Number(number) => Value::number(number),
                serde_json::Value::Bool(value) => Value::text(value.to_string()),
                other => Value::text(escape(&other.to_string())),
            });
        }
        let part = self.answer_part(from, key).ok_or("write the text that it stands for")?;
        let name = key.literal().unwrap_or("value").to_owned();
        Ok(Value::text(self.capture(&part, &name)))
    }

    /// Returns a parameter of the script, if this is one. The error says what to do without it.
    fn param(&self, from: &Expr, key: &Expr) -> Option<Result<serde_json::Value, String>> {
        if !matches!(&from.kind, ExprKind::Name(name) if name == "params")
            || self.bindings.contains_key("params")
        {
            return None;
        }
        let key = key.literal()?;
        let value = self.params.get(key).cloned();
        Some(value.ok_or_else(|| {
            format!(
                "the parameter `{key}` has no value: add a comment to the script, `# sgcli run \
                 NAME SCRIPT --script-params '{{\"{key}\": ...}}'`"
            )
        }))
    }

    /// Returns the part of an answer that an expression names.
    pub(super) fn answer_part(&self, from: &Expr, key: &Expr) -> Option<AnswerPart> {
        let part = match &from.kind {
            ExprKind::Name(name) => match self.bindings.get(name)? {
                Binding::Answer(part) => part.clone(),
                _ => return None,
            },
            ExprKind::Access(inner, inner_key) => self.answer_part(inner, inner_key)?,
            _ => return None,
        };
        let key = match &key.kind {
            ExprKind::Number(number) => number.to_string(),
            _ => key.literal()?.replace('~', "~0").replace('/', "~1"),
        };
        Some(AnswerPart { pointer: format!("{}/{key}", part.pointer), ..part })
    }

    /// Captures a part of an answer, and returns its variable.
    fn capture(&mut self, part: &AnswerPart, name: &str) -> String {
        let known = part.captures.borrow();
        if let Some((name, _)) = known.iter().find(|(_, pointer)| *pointer == part.pointer) {
            return format!("${{{name}}}");
        }
        drop(known);
        let name = self.new_name(name);
        part.captures.borrow_mut().push((name.clone(), part.pointer.clone()));
        format!("${{{name}}}")
    }

    /// Returns a name for a stored value, unlike all others.
    pub(super) fn new_name(&mut self, name: &str) -> String {
        let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let name: String = name.chars().map(letter).take(NAME_CHARS_MAX).collect();
        let begins = name.starts_with(|first: char| first.is_ascii_alphabetic());
        let is_free = begins && !RESERVED.contains(&&*name);
        let name = if is_free { name } else { format!("v_{name}") };
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let name = std::iter::once(name.clone())
            .chain(numbered)
            .find(|name| !self.names.contains(name))
            .unwrap_or(name);
        self.names.insert(name.clone());
        name
    }

    fn operation(&mut self, operator: &str, left: &Expr, right: &Expr) -> Result<Value, String> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        if operator == "<>" {
            let mut text = left.text;
            append(&mut text, &right.text);
            return Ok(Value::text(text));
        }
        let is_sum = ["+", "-", "*"].contains(&operator);
        if !is_sum || !left.is_number || !right.is_number {
            return Err(format!("a scenario does not compute this `{operator}`: write its value"));
        }
        let numbers = (left.text.parse::<f64>(), right.text.parse::<f64>());
        if let (Ok(a), Ok(b)) = numbers {
            let value = match operator {
                "+" => a + b,
                "-" => a - b,
                _ => a * b,
            };
            return Ok(Value::number(value));
        }
        if [&left, &right]
            .iter()
            .any(|it| it.text.parse().is_ok_and(|v: f64| v < 0.0 || v.fract() != 0.0))
        {
            return Err("a scenario computes with whole numbers: write the value".to_owned());
        }
        Ok(Value::number(format!("${{({}) {operator} ({})}}", left.operand(), right.operand())))
    }

    fn call_value(&mut self, call: &Call) -> Result<Value, String> {
        let remedy =
            || format!("a scenario has no `{}`: write the text that it stands for", call.name);
        match (&*call.name, &call.arguments[..]) {
            ("to_string" | "Integer.to_string" | "inspect", [value]) => {
                Ok(Value { is_number: false, ..self.value(value)? })
            }
            (":rand.uniform", [most]) => {
                let most = most.whole().filter(|most| *most >= 1).ok_or_else(remedy)?;
                Ok(Value::number(format!("${{random(1,{most})}}")))
            }
            ("Enum.random", [from]) => self.random(from).ok_or_else(remedy),
            ("random_bits", [bits]) => {
                let bits =
                    bits.whole().filter(|bits| (1..=62).contains(bits)).ok_or_else(remedy)?;
                Ok(Value::number(format!("${{random(0,{})}}", (1u64 << bits) - 1)))
            }
            ("Map.get" | "Access.get", [from, key]) => self.access(from, key),
            ("Jason.encode!" | "Poison.encode!", [value]) => {
                let json = self.json(value)?;
                Ok(Value::text(json.to_text()))
            }
            ("UUID.uuid4" | "Ecto.UUID.generate", []) => Ok(Value::text("${uuid()}")),
            ("System.system_time" | ":os.system_time" | "System.os_time", [unit]) => {
                let unit = match unit.literal() {
                    Some("second" | "seconds") => "'s'",
                    Some("microsecond" | "micro_seconds") => "'us'",
                    Some("millisecond" | "milli_seconds") => "",
                    _ => return Err(remedy()),
                };
                Ok(Value::number(format!("${{time({unit})}}")))
            }
            ("Base.encode64", [value]) => {
                let value = self.value(value)?;
                let is_variable = value.text.starts_with("${")
                    && value.text.find('}') == Some(value.text.len() - 1);
                let is_plain = !value.text.contains(['$', '\'', '}']);
                match (is_variable, is_plain) {
                    (true, _) => Ok(Value::text(format!("${{base64({})}}", value.operand()))),
                    (_, true) => Ok(Value::text(format!("${{base64('{}')}}", value.text))),
                    _ => Err(remedy()),
                }
            }
            _ => Err(remedy()),
        }
    }

    /// Returns one of a range or a list, at random.
    fn random(&mut self, from: &Expr) -> Option<Value> {
        let from = self.literal(from);
        match &from.kind {
            ExprKind::Operation("..", first, last) => {
                let (first, last) = (first.whole()?, last.whole()?);
                (first <= last).then(|| Value::number(format!("${{random({first},{last})}}")))
            }
            ExprKind::List(items) if !items.is_empty() => {
                let quoted = |item: &Expr| match &item.kind {
                    ExprKind::Number(number) => Some(format!("'{number}'")),
                    _ => {
                        let text = item.literal()?;
                        (!text.contains(['\'', '}', '$'])).then(|| format!("'{text}'"))
                    }
                };
                let items: Vec<String> = items.iter().map(quoted).collect::<Option<_>>()?;
                match &items[..] {
                    [item] => Some(Value::text(item.trim_matches('\''))),
                    items => Some(Value::text(format!("${{choice({})}}", items.join(", ")))),
                }
            }
            _ => None,
        }
    }

    /// Returns the list or map that a name stands for, or the expression itself.
    pub(super) fn literal(&self, expr: &Expr) -> Expr {
        match &expr.kind {
            ExprKind::Name(name) => match self.bindings.get(name) {
                Some(Binding::Literal(literal)) => literal.clone(),
                _ => expr.clone(),
            },
            _ => expr.clone(),
        }
    }
}

/// Names that mean something else in a scenario.
const RESERVED: [&str; 17] = [
    "user", "env", "sent", "setup", "counter", "probe", "row", "random", "choice", "uuid", "time",
    "base64", "json", "sha256", "true", "false", "null",
];

/// Longest name of a value that an import writes.
const NAME_CHARS_MAX: usize = 28;
