//! A place in a value of JSON: `/items/0/id`.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The way to a value: names of members and indexes of items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPlace(Box<[Box<str>]>);

impl JsonPlace {
    /// Parses a JSON pointer (RFC 6901): empty for the whole, else `/` before each name or index.
    /// Returns `None` if it does not begin with `/`.
    pub fn parse_pointer(pointer: &str) -> Option<Self> {
        if pointer.is_empty() {
            return Some(Self(Box::default()));
        }
        let steps = pointer.strip_prefix('/')?.split('/');
        Some(Self(steps.map(|step| step.replace("~1", "/").replace("~0", "~").into()).collect()))
    }

    /// Parses names and indexes between dots.
    pub fn parse_dots(dots: &str) -> Self {
        Self(dots.split('.').filter(|step| !step.is_empty()).map(Into::into).collect())
    }

    /// Finds the value in `text`. Returns the contents of a string, and anything else as it is
    /// written; `None` if there is no such value, or `text` is not JSON.
    pub fn find(&self, text: &str) -> Option<String> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let raw = Seek(&self.0).deserialize(&mut reader).ok()??;
        reader.end().ok()?;
        match raw.get() {
            string if string.starts_with('"') => serde_json::from_str(string).ok(),
            other => Some(other.to_owned()),
        }
    }
}

impl fmt::Display for JsonPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|step| write!(f, "/{}", step.replace('~', "~0").replace('/', "~1")))
    }
}

/// Deserializes a value and returns the one at a place in it.
struct Seek<'p>(&'p [Box<str>]);

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() {
            return <&RawValue>::deserialize(deserializer).map(Some);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let index = self.0[0].parse::<usize>().ok();
        let (mut at, mut found) = (0, None);
        loop {
            if Some(at) == index {
                match items.next_element_seed(Seek(&self.0[1..]))? {
                    Some(value) => found = value,
                    None => return Ok(None),
                }
            } else if items.next_element::<IgnoredAny>()?.is_none() {
                return Ok(found);
            }
            at += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_on_way) = members.next_key_seed(IsName(&self.0[0]))? {
            if is_on_way {
                found = members.next_value_seed(Seek(&self.0[1..]))?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Deserializes a key and reports whether it is this name.
struct IsName<'p>(&'p str);

impl<'de> DeserializeSeed<'de> for IsName<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for IsName<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_value_is_found_by_the_way_to_it() {
        let text = r#" {"a": {"b": [1, {"c": "x\n\"é"}, 2.50]}, "": 7, "a/b": true, "n": null} "#;
        for (pointer, found) in [
            ("/a/b/0", Some("1")),
            ("/a/b/1/c", Some("x\n\"é")),
            ("/a/b/1", Some(r#"{"c": "x\n\"é"}"#)),
            ("/a/b/2", Some("2.50")),
            ("/a/b/3", None),
            ("/a/b/x", None),
            ("/a/b/0/c", None),
            ("/", Some("7")),
            ("/a~1b", Some("true")),
            ("/n", Some("null")),
            ("/z", None),
        ] {
            let place = JsonPlace::parse_pointer(pointer).unwrap();
            assert_eq!(place.find(text).as_deref(), found, "{pointer}");
            assert_eq!(place.to_string(), pointer);
        }
        assert_eq!(JsonPlace::parse_pointer("a"), None);
        assert_eq!(JsonPlace::parse_pointer("").unwrap().find("\"all\"").as_deref(), Some("all"));
        assert_eq!(JsonPlace::parse_dots("a.b.0"), JsonPlace::parse_pointer("/a/b/0").unwrap());
        assert_eq!(JsonPlace::parse_dots("a").find("{\"a\": 1"), None, "cut short");
        assert_eq!(JsonPlace::parse_dots("a").find("{\"a\": 1} x"), None, "something follows");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: String, pointer in "(/[a-z0-9~]{0,3}){0,4}") {
            let place = JsonPlace::parse_pointer(&pointer).unwrap();
            let by_hand = serde_json::from_str::<serde_json::Value>(&text).ok();
            let found = place.find(&text);
            prop_assert!(by_hand.is_some() || found.is_none());
        }
    }
}
