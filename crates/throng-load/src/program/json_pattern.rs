//! A pattern of JSON: what a message must contain at least, with variables and comparisons.

use std::cell::RefCell;
use std::fmt;

use regex::Regex;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use super::{Template, Variable, VariableScope};

/// What a value of JSON must be.
#[derive(Clone, Debug)]
pub enum JsonPattern {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number of this value: 1 is 1.0.
    Number(Number),
    /// A string of this text; if the text is nothing but a variable, also a number, `true` or
    /// `false` that is written so.
    Text(Template),
    /// An array of exactly these items.
    List(Vec<Self>),
    /// An object with at least these members.
    Object(Vec<(Box<str>, Self)>),
    /// A value for which all tests hold.
    Tests(Vec<JsonTest>),
}

/// A test of a value.
#[derive(Clone, Debug)]
pub enum JsonTest {
    /// The member is there, or is not.
    Exists(bool),
    /// It is a number on this side of another one.
    Order(JsonOrder, Template),
    /// It differs from this.
    Not(JsonPattern),
    /// It is a string in which the expression matches.
    Regex(Regex),
    /// It is one of these.
    OneOf(Vec<JsonPattern>),
}

/// A side of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonOrder {
    /// `$lt`
    Less,
    /// `$lte`
    LessOrEqual,
    /// `$gt`
    Greater,
    /// `$gte`
    GreaterOrEqual,
}

impl JsonOrder {
    const fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl JsonPattern {
    /// Reports whether `text` is JSON that contains it. Allocates nothing for the text.
    pub fn is_in(&self, text: &str, scope: VariableScope<'_>, scratch: &mut Vec<u8>) -> bool {
        let cx = Comparison { scope, scratch: RefCell::new(scratch) };
        let mut reader = serde_json::Deserializer::from_str(text);
        let held = Part { pattern: self, cx: &cx }.deserialize(&mut reader);
        held.unwrap_or(false) && reader.end().is_ok()
    }

    /// Reports whether a part of one of its variables fits.
    pub(crate) fn uses(&self, is: &impl Fn(&Variable) -> bool) -> bool {
        match self {
            Self::Null | Self::Bool(_) | Self::Number(_) => false,
            Self::Text(template) => template.uses(is),
            Self::List(items) => items.iter().any(|item| item.uses(is)),
            Self::Object(members) => members.iter().any(|(_, member)| member.uses(is)),
            Self::Tests(tests) => tests.iter().any(|test| match test {
                JsonTest::Exists(_) | JsonTest::Regex(_) => false,
                JsonTest::Order(_, bound) => bound.uses(is),
                JsonTest::Not(pattern) => pattern.uses(is),
                JsonTest::OneOf(patterns) => patterns.iter().any(|pattern| pattern.uses(is)),
            }),
        }
    }

    /// Reports whether a member may be missing.
    pub(super) fn holds_if_absent(&self) -> bool {
        matches!(self, Self::Tests(tests) if tests.iter().all(
            |test| matches!(test, JsonTest::Exists(false) | JsonTest::Not(_))
        ))
    }

    fn holds_of(&self, value: Scalar<'_>, cx: &Comparison<'_>) -> bool {
        match self {
            Self::Null => matches!(value, Scalar::Null),
            Self::Bool(expected) => matches!(value, Scalar::Bool(value) if value == *expected),
            Self::Number(expected) => value.is_number(expected),
            Self::Text(template) => cx.holds_text(template, value),
            Self::List(_) | Self::Object(_) => false,
            Self::Tests(tests) => tests.iter().all(|test| test.holds_of(value, cx)),
        }
    }
}

impl JsonTest {
    fn holds_of(&self, value: Scalar<'_>, cx: &Comparison<'_>) -> bool {
        match self {
            Self::Exists(exists) => *exists,
            Self::Order(order, bound) => {
                let bound = cx.rendered(bound, |text| text.trim().parse::<f64>().ok());
                let compared = value.as_f64().zip(bound.flatten());
                let ordering = compared.and_then(|(value, bound)| value.partial_cmp(&bound));
                ordering.is_some_and(|ordering| order.holds(ordering))
            }
            Self::Not(pattern) => !pattern.holds_of(value, cx),
            Self::Regex(regex) => matches!(value, Scalar::Text(text) if regex.is_match(text)),
            Self::OneOf(patterns) => patterns.iter().any(|pattern| pattern.holds_of(value, cx)),
        }
    }

    /// Reports whether it holds for an array or an object.
    fn holds_of_composite(&self) -> bool {
        matches!(self, Self::Exists(true) | Self::Not(_))
    }
}

impl From<Value> for JsonPattern {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(value) => Self::Number(value),
            Value::String(text) => Self::Text(Template::from_bytes(text.into_bytes())),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(members) => {
                let members = members.into_iter().map(|(name, value)| (name.into(), value.into()));
                Self::Object(members.collect())
            }
        }
    }
}

impl fmt::Display for JsonPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(template) => write!(f, "{:?}", template.to_string()),
            Self::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (index, (name, member)) in members.iter().enumerate() {
                    write!(f, "{}{name:?}:{member}", if index == 0 { "" } else { "," })?;
                }
                f.write_str("}")
            }
            Self::Tests(tests) => {
                f.write_str("{")?;
                for (index, test) in tests.iter().enumerate() {
                    write!(f, "{}{test}", if index == 0 { "" } else { "," })?;
                }
                f.write_str("}")
            }
        }
    }
}

impl fmt::Display for JsonTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(exists) => write!(f, "$exists:{exists}"),
            Self::Order(order, bound) => {
                let name = match order {
                    JsonOrder::Less => "$lt",
                    JsonOrder::LessOrEqual => "$lte",
                    JsonOrder::Greater => "$gt",
                    JsonOrder::GreaterOrEqual => "$gte",
                };
                write!(f, "{name}:{bound}")
            }
            Self::Not(pattern) => write!(f, "$ne:{pattern}"),
            Self::Regex(regex) => write!(f, "$regex:{:?}", regex.as_str()),
            Self::OneOf(patterns) => write!(f, "$in:{}", JsonPattern::List(patterns.clone())),
        }
    }
}

/// A value that is neither an array nor an object.
#[derive(Clone, Copy)]
enum Scalar<'a> {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Text(&'a str),
}

impl Scalar<'_> {
    fn is_number(self, expected: &Number) -> bool {
        match self {
            Self::Signed(value) => {
                expected.as_i64() == Some(value) || expected.as_f64() == Some(value as f64)
            }
            Self::Unsigned(value) => {
                expected.as_u64() == Some(value) || expected.as_f64() == Some(value as f64)
            }
            Self::Float(value) => expected.as_f64() == Some(value),
            Self::Null | Self::Bool(_) | Self::Text(_) => false,
        }
    }

    fn as_f64(self) -> Option<f64> {
        match self {
            Self::Signed(value) => Some(value as f64),
            Self::Unsigned(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            Self::Null | Self::Bool(_) | Self::Text(_) => None,
        }
    }

    /// Reports whether `text` is how the value is written. A number is compared by its value.
    fn is_written(self, text: &str) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(value) => text == if value { "true" } else { "false" },
            Self::Signed(value) => text.parse() == Ok(value),
            Self::Unsigned(value) => text.parse() == Ok(value),
            Self::Float(value) => text.parse() == Ok(value),
            Self::Text(value) => text == value,
        }
    }
}

/// What a comparison of values needs.
struct Comparison<'a> {
    scope: VariableScope<'a>,
    scratch: RefCell<&'a mut Vec<u8>>,
}

impl Comparison<'_> {
    fn holds_text(&self, template: &Template, value: Scalar<'_>) -> bool {
        match value {
            Scalar::Text(text) => {
                let scratch = &mut *self.scratch.borrow_mut();
                template.is_rendered(text.as_bytes(), self.scope, scratch)
            }
            _ if template.is_one_variable() => {
                self.rendered(template, |text| value.is_written(text)).unwrap_or(false)
            }
            _ => false,
        }
    }

    /// Calls `read` with the text of a template; `None` if the text is not UTF-8.
    fn rendered<R>(&self, template: &Template, read: impl FnOnce(&str) -> R) -> Option<R> {
        let scratch = &mut *self.scratch.borrow_mut();
        scratch.clear();
        template.render(&mut { self.scope }, scratch);
        std::str::from_utf8(scratch).ok().map(read)
    }
}

/// Deserializes a value and reports whether it contains the expected one.
#[derive(Clone, Copy)]
struct Part<'e> {
    pattern: &'e JsonPattern,
    cx: &'e Comparison<'e>,
}

impl Part<'_> {
    fn holds_of<E>(self, value: Scalar<'_>) -> Result<bool, E> {
        Ok(self.pattern.holds_of(value, self.cx))
    }

    /// Reports whether it holds for an array or an object whatever is in it.
    fn holds_of_composite(self) -> bool {
        match self.pattern {
            JsonPattern::Tests(tests) => tests.iter().all(JsonTest::holds_of_composite),
            _ => false,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<bool, E> {
        self.holds_of(Scalar::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<bool, E> {
        self.holds_of(Scalar::Signed(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<bool, E> {
        self.holds_of(Scalar::Unsigned(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<bool, E> {
        self.holds_of(Scalar::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<bool, E> {
        self.holds_of(Scalar::Text(value))
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        self.holds_of(Scalar::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let JsonPattern::List(expected) = self.pattern else {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(self.holds_of_composite());
        };
        let (mut held, mut count) = (true, 0);
        for pattern in expected {
            match items.next_element_seed(Part { pattern, ..self })? {
                Some(same) => (held, count) = (held & same, count + 1),
                None => break,
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {
            held = false;
        }
        Ok(held && count == expected.len())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
        let JsonPattern::Object(expected) = self.pattern else {
            while members.next_key::<IgnoredAny>()?.is_some() {
                members.next_value::<IgnoredAny>()?;
            }
            return Ok(self.holds_of_composite());
        };
        let mut held = true;
        let mut found = MemberSet::default();
        while let Some(member) = members.next_key_seed(Key(expected))? {
            match member {
                Some(index) => {
                    let pattern = &expected[index].1;
                    held &= members.next_value_seed(Part { pattern, ..self })?;
                    found.add(index);
                }
                None => _ = members.next_value::<IgnoredAny>()?,
            }
        }
        let mut rest = expected.iter().enumerate().filter(|(index, _)| !found.has(*index));
        Ok(held && rest.all(|(_, (_, pattern))| pattern.holds_if_absent()))
    }
}

/// The members of an object that have been found.
#[derive(Default)]
struct MemberSet {
    first: u64,
    /// Those from the 65th on.
    more: Vec<usize>,
}

impl MemberSet {
    fn add(&mut self, index: usize) {
        match index {
            0..64 => self.first |= 1 << index,
            _ => self.more.push(index),
        }
    }

    fn has(&self, index: usize) -> bool {
        match index {
            0..64 => self.first & 1 << index != 0,
            _ => self.more.contains(&index),
        }
    }
}

/// Deserializes a key and returns the index of the expected member of this name.
struct Key<'e>(&'e [(Box<str>, JsonPattern)]);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|(name, _)| **name == *key))
    }
}

#[cfg(test)]
mod tests;
