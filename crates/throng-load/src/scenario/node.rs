//! The YAML document as a tree that keeps the position of every node.
//!
//! Scalars keep their text: the reader decides whether `1_000` is a number, a duration or a name,
//! not YAML's type rules.

use std::fmt;
use std::ops::Range;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::{Diagnostic, yaml_error};

/// A node and the bytes of the source that it covers.
#[derive(Debug)]
pub struct Node {
    /// Bytes of the source.
    pub span: Range<usize>,
    /// Its value.
    pub kind: Kind,
    /// True for a scalar that YAML takes for a number or a boolean, because it has no quotes.
    pub is_typed: bool,
}

/// The value of a node.
#[derive(Debug)]
pub enum Kind {
    /// No value, or `null`.
    Nothing,
    /// The text of a single value.
    Scalar(String),
    /// The items of a list.
    List(Vec<Node>),
    /// The entries of a mapping, in their order.
    Map(Vec<(Node, Node)>),
}

impl Node {
    /// Parses one YAML document. Text that is not YAML gives one diagnostic, because the parser
    /// cannot continue after it. Aliases are filled in, up to a limit.
    pub fn parse(source: &str) -> Result<Self, Diagnostic> {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_nodes: VALUES_MAX, max_events: 3 * VALUES_MAX },
            non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::PassThrough,
        };
        let tree: Spanned<YamlValue> = serde_saphyr::from_str_with_options(source, options)
            .map_err(|error| yaml_error::describe(source, &error))?;
        Ok(Self::from_tree(source, tree))
    }

    /// Returns the text of a scalar.
    pub fn scalar(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// Describes the node in words that fit after "found".
    pub fn describe(&self) -> &'static str {
        match self.kind {
            Kind::Nothing => "nothing",
            Kind::Scalar(_) => "a single value",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }

    /// Returns the span in the source of `inner`, a part of a scalar's text. If the scalar contains
    /// escapes or line breaks, returns the span of the whole scalar.
    pub(crate) fn inner_span(&self, source: &str, inner: Range<usize>) -> Range<usize> {
        let Some(text) = self.scalar() else { return self.span.clone() };
        for quote in [0, 1] {
            let start = self.span.start + quote;
            if source.get(start..).is_some_and(|rest| rest.starts_with(text)) {
                return start + inner.start..start + inner.end;
            }
        }
        self.span.clone()
    }

    fn from_tree(source: &str, tree: Spanned<YamlValue>) -> Self {
        let span = yaml_error::bytes_of(source, &tree.defined);
        let is_typed = matches!(tree.value, YamlValue::Typed);
        let node = |span, kind| Self { span, kind, is_typed };
        match tree.value {
            YamlValue::Nothing => node(span, Kind::Nothing),
            YamlValue::Text(text) => node(span, Kind::Scalar(text)),
            YamlValue::Typed => {
                let text = source[span.clone()].trim().to_owned();
                node(span, Kind::Scalar(text))
            }
            YamlValue::List(items) => {
                let items: Vec<_> =
                    items.into_iter().map(|item| Self::from_tree(source, item)).collect();
                let end = items.last().map_or(span.end, |item| item.span.end);
                node(collection_span(source, span, end), Kind::List(items))
            }
            YamlValue::Map(entries) => {
                let both =
                    |(key, value)| (Self::from_tree(source, key), Self::from_tree(source, value));
                let entries: Vec<_> = entries.into_iter().map(both).collect();
                let end = entries.last().map_or(span.end, |(_, value)| value.span.end);
                node(collection_span(source, span, end), Kind::Map(entries))
            }
        }
    }
}

/// Returns the span of a collection that begins with `begin` and whose last member ends at `end`.
/// The parser gives no end, so the function looks for the closing bracket.
fn collection_span(source: &str, begin: Range<usize>, end: usize) -> Range<usize> {
    let end = end.max(begin.end);
    let bracket = match source.as_bytes().get(begin.start) {
        Some(b'[') => "]",
        Some(b'{') => "}",
        _ => return begin.start..end,
    };
    let rest = source[end..].trim_start_matches([' ', '\n', ',']);
    let closing = source.len() - rest.len() + bracket.len();
    begin.start..if rest.starts_with(bracket) { closing } else { end }
}

/// Target of the deserializer. It drops YAML's scalar types in favour of their text.
enum YamlValue {
    Nothing,
    Text(String),
    /// A plain scalar that YAML takes for a number or a boolean. Its text is in the source.
    Typed,
    List(Vec<Spanned<YamlValue>>),
    Map(Vec<(Spanned<YamlValue>, Spanned<YamlValue>)>),
}

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = YamlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a list or a mapping")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<YamlValue, E> {
        Ok(YamlValue::Text(text.to_owned()))
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<YamlValue, E> {
        Ok(YamlValue::Typed)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<YamlValue, E> {
        Ok(YamlValue::Typed)
    }

    fn visit_i128<E: de::Error>(self, _: i128) -> Result<YamlValue, E> {
        Ok(YamlValue::Typed)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<YamlValue, E> {
        Ok(YamlValue::Typed)
    }

    fn visit_u128<E: de::Error>(self, _: u128) -> Result<YamlValue, E> {
        Ok(YamlValue::Typed)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<YamlValue, E> {
        Ok(YamlValue::Typed)
    }

    fn visit_unit<E: de::Error>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Nothing)
    }

    fn visit_none<E: de::Error>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlValue, D::Error> {
        YamlValue::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<YamlValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(YamlValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<YamlValue, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(YamlValue::Map(map))
    }
}

/// Values of a document at most, each key, scalar, list and mapping: an import of 15,000 requests
/// with 20 headers each has 900,000. Reading that many takes about 250 MB for a moment.
const VALUES_MAX: usize = 1_000_000;
