//! Values of a script: texts with variables of the scenario in them.

use std::cell::RefCell;
use std::rc::Rc;

use crate::json_pointer::JsonPointer;
use crate::source::Span;
use crate::text::{RANDOM_CHARS_MAX, append, base64, escape, random_digits};
use crate::yaml::Yaml;

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
    /// The headers of the answer with these captures.
    Headers(Captures),
    /// What the scenario does not know; the text says what it is.
    Unknown(&'static str),
}

/// A part of an answer. What the script uses of it becomes a capture of its step.
#[derive(Clone, Debug)]
pub(super) struct AnswerPart {
    pub(super) captures: Captures,
    pub(super) place: AnswerPlace,
}

/// Where a part of an answer is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AnswerPlace {
    /// A place in its JSON.
    Json(JsonPointer),
    Status,
    Header(String),
}

/// The captures of a step: names, and places.
pub(super) type Captures = Rc<RefCell<Vec<(String, AnswerPlace)>>>;

impl AnswerPlace {
    /// Reports whether it is the whole answer, which a scenario does not keep.
    fn is_whole(&self) -> bool {
        matches!(self, Self::Json(pointer) if pointer.is_whole())
    }

    /// Returns it as the value of a capture.
    pub(super) fn write(&self) -> Yaml {
        match self {
            Self::Json(pointer) => pointer.write(),
            Self::Status => Yaml::text("status"),
            Self::Header(name) => Yaml::entry("header", Yaml::text(name)),
        }
    }
}

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

    /// Reports whether a scenario computes with it: with numbers, and with few variables.
    fn may_be_computed(&self) -> bool {
        let begins = ["user.id", "counter", "random(", "("];
        let is_variable = begins.iter().any(|begin| self.operand().starts_with(begin));
        self.is_number && (is_variable || self.text.parse::<f64>().is_ok())
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
            ExprKind::Name(name) => match self.binding_of(&expr.span, name)? {
                Some(Binding::Value(value)) => Ok(value),
                Some(Binding::Literal(literal)) => self.value(&literal),
                Some(Binding::Answer(part)) if !part.place.is_whole() => {
                    let is_number = part.place == AnswerPlace::Status;
                    Ok(Value { text: self.capture(&part, name), is_number })
                }
                Some(Binding::Answer(_)) => {
                    Err("the whole answer is not kept: use a part of its JSON".to_owned())
                }
                Some(Binding::Headers(_)) => {
                    Err("keep one header: `{_, name} = List.keyfind(headers, \"x-id\", 0)`"
                        .to_owned())
                }
                Some(Binding::Unknown(what)) => {
                    Err(format!("{what} is not kept: `capture` a part of it by hand"))
                }
                None => Err(format!("`{name}` has no value here: write one")),
            },
            ExprKind::Pinned(name) => self.value(name),
            ExprKind::Access(from, key) => self.access(from, key),
            ExprKind::Operation(operator, left, right) => self.operation(operator, left, right),
            ExprKind::Call(call) => {
                if let Some(length) = random_text_chars(call) {
                    if self.told.insert("random texts") {
                        let how = "the scenario's text is as long, of digits and not of letters";
                        self.translator.approximated(&expr.span, &*call.name, how);
                    }
                    return Ok(Value::text(random_digits(length)));
                }
                if call.name == "random_bits" && self.told.insert("random bits") {
                    let how = "Stressgrid's value is a text of as many bits, of bytes of any \
                               value; the scenario's is the number that they are";
                    self.translator.approximated(&expr.span, "random_bits", how);
                }
                self.call_value(call)
            }
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
        let AnswerPlace::Json(pointer) = &part.place else { return None };
        let key = match &key.kind {
            ExprKind::Number(number) => number.to_string(),
            _ => key.literal()?.to_owned(),
        };
        Some(AnswerPart { place: AnswerPlace::Json(pointer.join(&key)), ..part })
    }

    /// Returns the name and the header of `{_, name} = List.keyfind(headers, "x-id", 0)`.
    pub(super) fn header_of(&self, pattern: &Expr, value: &Expr) -> Option<(String, AnswerPart)> {
        let ExprKind::Tuple(pair) = &pattern.kind else { return None };
        let [_, Expr { kind: ExprKind::Name(name), .. }] = &pair[..] else { return None };
        let call = value.call().filter(|call| call.name == "List.keyfind")?;
        let [Expr { kind: ExprKind::Name(headers), .. }, header, ..] = &call.arguments[..] else {
            return None;
        };
        let Binding::Headers(captures) = self.bindings.get(headers)? else { return None };
        let place = AnswerPlace::Header(header.literal()?.to_ascii_lowercase());
        Some((name.clone(), AnswerPart { place, captures: captures.clone() }))
    }

    /// Reports whether a name stands for the status, or a part of the JSON, of an answer.
    pub(super) fn is_stored(&self, expr: &Expr) -> bool {
        let ExprKind::Name(name) = &expr.kind else { return false };
        matches!(self.bindings.get(name), Some(Binding::Answer(part))
            if !matches!(part.place, AnswerPlace::Header(_)))
    }

    /// Captures a part of an answer, and returns its variable.
    fn capture(&mut self, part: &AnswerPart, name: &str) -> String {
        let known = part.captures.borrow();
        if let Some((name, _)) = known.iter().find(|(_, place)| *place == part.place) {
            return format!("${{{name}}}");
        }
        drop(known);
        let name = self.new_name(name);
        part.captures.borrow_mut().push((name.clone(), part.place.clone()));
        format!("${{{name}}}")
    }

    /// Returns a name for a stored value, unlike all others.
    pub(super) fn new_name(&mut self, name: &str) -> String {
        self.names.another(name)
    }

    fn operation(&mut self, operator: &str, left: &Expr, right: &Expr) -> Result<Value, String> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        if operator == "<>" {
            let mut text = left.text;
            append(&mut text, &right.text);
            return Ok(Value::text(text));
        }
        let is_sum = ["+", "-", "*"].contains(&operator);
        let is_known =
            |value: &Value| value.may_be_computed() || self.numbers.contains(&value.text);
        if !is_sum || !is_known(&left) || !is_known(&right) {
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
                match is_variable {
                    true => Ok(Value::text(format!("${{base64({})}}", value.operand()))),
                    false => base64(&value.text).map(Value::text).ok_or_else(remedy),
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
                let texts: Vec<String> = items.iter().map(quoted).collect::<Option<_>>()?;
                let text = match &texts[..] {
                    [text] => text.trim_matches('\'').to_owned(),
                    texts => format!("${{choice({})}}", texts.join(", ")),
                };
                let is_number = |item: &Expr| matches!(item.kind, ExprKind::Number(_));
                Some(Value { text, is_number: items.iter().all(is_number) })
            }
            _ => None,
        }
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
