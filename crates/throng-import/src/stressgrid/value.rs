//! Values of a script: texts with variables of the scenario in them.

use std::cell::RefCell;
use std::rc::Rc;

use crate::json_pointer::JsonPointer;
use crate::source::Span;
use crate::text::{RANDOM_CHARS_MAX, append, escape, random_digits};

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

/// A part of an answer's JSON. What the script uses of it becomes a capture of its step.
#[derive(Clone, Debug)]
pub(super) struct AnswerPart {
    pub(super) captures: Captures,
    pub(super) place: JsonPointer,
}

/// The captures of a step: names, and places in the JSON of its answer.
pub(super) type Captures = Rc<RefCell<Vec<(String, JsonPointer)>>>;

impl Value {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_number: false }
    }

    fn number(text: impl ToString) -> Self {
        Self { text: text.to_string(), is_number: true }
    }

    /// Reports whether the text is another one each time.
    pub(super) fn varies(&self) -> bool {
        self.text.contains("${random(")
    }
}

impl Device<'_, '_> {
    /// Returns a value. The error says what to do where a scenario has none.
    pub(super) fn value(&mut self, expr: &Expr) -> Result<Value, String> {
        match &expr.kind {
            ExprKind::Number(number) => Ok(Value::number(number)),
            ExprKind::Literal(text) | ExprKind::Atom(text) => Ok(Value::text(escape(text))),
            ExprKind::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    append(&mut text, &self.value(part)?.text);
                }
                Ok(Value::text(text))
            }
            ExprKind::Name(name) => match self.binding_of(&expr.span, name)? {
                Some(Binding::Value(value)) => Ok(value),
                Some(Binding::Literal(literal)) => self.value(&literal),
                Some(Binding::Answer(part)) if !part.place.is_whole() => {
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
            ExprKind::Operation("<>", left, right) => {
                let mut text = self.value(left)?.text;
                append(&mut text, &self.value(right)?.text);
                Ok(Value::text(text))
            }
            ExprKind::Operation(operator, ..) => {
                Err(format!("a scenario does not compute this `{operator}`: write its value"))
            }
            ExprKind::Call(call) => {
                let length = random_text_chars(call).ok_or_else(|| {
                    format!(
                        "a scenario has no `{}`: write the text that it stands for, with \
                         `${{random(1,9)}}`, `${{choice('a', 'b')}}`, `${{uuid()}}` or \
                         `${{time()}}` in it",
                        call.name
                    )
                })?;
                if self.told.insert("random texts") {
                    let how = "the scenario's text is as long, of digits and not of letters";
                    self.translator.approximated(&expr.span, &*call.name, how);
                }
                Ok(Value::text(random_digits(length)))
            }
            _ => Err("write the text that it stands for".to_owned()),
        }
    }

    /// Returns what a name at `span` stands for. The error says that the script is too long.
    fn binding_of(&self, span: &Span, name: &str) -> Result<Option<Binding>, String> {
        let Some(binding) = self.bindings.get(name) else { return Ok(None) };
        let bytes = match binding {
            Binding::Value(value) => value.text.len(),
            Binding::Literal(literal) => literal.span.len(),
            _ => 0,
        };
        let is_small = self.translator.expansion.charge(span, bytes);
        is_small.then(|| Some(binding.clone())).ok_or_else(|| "write a shorter text".to_owned())
    }

    /// Returns the value of `params["key"]` or `json["key"]`.
    fn access(&mut self, from: &Expr, key: &Expr) -> Result<Value, String> {
        if let Some(value) = self.param(from, key) {
            return value.map(|value| match value {
                serde_json::Value::String(text) => Value::text(escape(&text)),
                serde_json::Value::Number(number) => Value::number(number),
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
        let value = self.params.get(key);
        let bytes = value.map_or(0, |value| value.to_string().len());
        if !self.translator.expansion.charge(&from.span, bytes) {
            return Some(Err("write a shorter text".to_owned()));
        }
        let value = value.cloned();
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
            _ => key.literal()?.to_owned(),
        };
        Some(AnswerPart { place: part.place.join(&key), ..part })
    }

    /// Reports whether a name stands for a part of an answer.
    pub(super) fn is_stored(&self, expr: &Expr) -> bool {
        let ExprKind::Name(name) = &expr.kind else { return false };
        matches!(self.bindings.get(name), Some(Binding::Answer(_)))
    }

    /// Captures a part of an answer, and returns its variable.
    fn capture(&mut self, part: &AnswerPart, name: &str) -> String {
        let known = part.captures.borrow();
        if let Some((name, _)) = known.iter().find(|(_, place)| *place == part.place) {
            return format!("${{{name}}}");
        }
        drop(known);
        let name = self.names.another(name);
        part.captures.borrow_mut().push((name.clone(), part.place.clone()));
        format!("${{{name}}}")
    }

    /// Returns the list or map that a name stands for, or the expression itself.
    pub(super) fn literal(&self, expr: &Expr) -> Expr {
        match &expr.kind {
            ExprKind::Name(name) => match self.bindings.get(name) {
                Some(Binding::Literal(literal))
                    if self.translator.expansion.charge(&expr.span, literal.span.len()) =>
                {
                    literal.clone()
                }
                _ => expr.clone(),
            },
            _ => expr.clone(),
        }
    }
}

/// Returns how many characters `Base.encode64(random_bytes(n))` and the like have; `None` if the
/// call is no such text, or a very long one.
fn random_text_chars(call: &Call) -> Option<u64> {
    let (random, options) = call.arguments.split_first()?;
    let random = random.call()?;
    let length = random.arguments.first()?.whole().filter(|length| *length > 0)?;
    let bytes = match &*random.name {
        "random_bytes" => length,
        "random_bits" => length.div_ceil(8),
        _ => return None,
    };
    let is_padded = !options.iter().any(|option| match &option.kind {
        ExprKind::Tuple(pair) => pair.first().and_then(Expr::literal) == Some("padding"),
        _ => false,
    });
    let chars = match &*call.name {
        "Base.encode16" => bytes.checked_mul(2)?,
        "Base.encode64" | "Base.url_encode64" if is_padded => bytes.div_ceil(3).checked_mul(4)?,
        "Base.encode64" | "Base.url_encode64" => bytes.checked_mul(4)?.div_ceil(3),
        _ => return None,
    };
    (chars <= RANDOM_CHARS_MAX).then_some(chars)
}
