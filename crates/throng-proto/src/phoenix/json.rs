//! The part of JSON (RFC 8259) that a frame needs: a validator that builds nothing, and a writer of
//! strings.
//!
//! Nothing recurses: each level of nesting costs one bit. A `\u` escape of half a surrogate pair is
//! not a character, so a text with one is refused, as in Phoenix's own decoder.

mod nesting;
mod scanner;
mod string;

pub use string::write_string;

pub(super) use scanner::Scanner;

/// Reports whether `text` is one JSON object and nothing else: a valid payload of a server.
pub fn is_object(text: &str) -> bool {
    let mut scanner = Scanner::new(text);
    scanner.skip_space();
    scanner.peek() == Some(b'{') && scanner.value().is_ok() && scanner.end().is_ok()
}

/// Reports whether `text` is one JSON value and nothing else.
pub fn is_valid(text: &str) -> bool {
    let mut scanner = Scanner::new(text);
    scanner.value().is_ok() && scanner.end().is_ok()
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;

    #[test]
    fn valid_texts_are_valid() {
        for text in [
            "null",
            "true",
            " false ",
            "0",
            "-0",
            "10",
            "-1.5e+10",
            "1E5",
            "0.0",
            r#""""#,
            r#""a\u0041\n\\\"\/\b\f\r\t""#,
            r#""\ud83d\ude00""#,
            "[]",
            "[ ]",
            "{ }",
            "\t\r\n[1 , 2]",
            r#"{"a":{"b":[{}]},"c":[[],[[]]]}"#,
            r#"{"":0,"":1}"#,
            "\"\u{7f}é😀\"",
        ] {
            assert!(is_valid(text), "{text}");
        }
    }

    #[test]
    fn invalid_texts_are_refused() {
        for text in [
            "",
            " ",
            "nul",
            "nulll",
            "True",
            "01",
            "-",
            "1.",
            ".5",
            "+1",
            "1e",
            "1e+",
            "0x1",
            "NaN",
            "\"",
            "\"a",
            "\"\\\"",
            r#""\x""#,
            r#""\u12""#,
            r#""\u12g4""#,
            r#""\ud800""#,
            r#""\ud800\n""#,
            r#""\udc00""#,
            r#""\ud800\ud800""#,
            "\"\n\"",
            "\"\0\"",
            "[",
            "]",
            "[1",
            "[1,",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1}",
            "{",
            "}",
            "{1:2}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a":1]"#,
            r#"{"a" 1}"#,
            "1 2",
            "[] []",
            "'a'",
            "\u{feff}1",
            "\u{a0}1",
            "1\u{b}",
        ] {
            assert!(!is_valid(text), "{text:?}");
            assert!(!is_object(text), "{text:?}");
        }
    }

    #[test]
    fn only_objects_are_objects() {
        assert!(is_object(" {\"a\":[1]} "));
        for text in ["[]", "\"{}\"", "{} {}", "1", "null"] {
            assert!(!is_object(text), "{text}");
        }
    }

    #[test]
    fn nesting_of_any_depth_is_checked_to_the_last_bracket() {
        let depths = [1, 63, 64, 65, 127, 128, 129, 10_000, 1_000_000];
        // Miri does not run the last two.
        for &depth in &depths[..if cfg!(miri) { 7 } else { 9 }] {
            let (open, close) = (r#"[{"":"#.repeat(depth / 2), "}]".repeat(depth / 2));
            assert!(is_valid(&format!("{open}0{close}")), "{depth}");
            assert!(!is_valid(&format!("{open}0{close}]")), "{depth}");
            let wrong = close.replacen("}]", "]}", 1);
            assert_eq!(is_valid(&format!("{open}0{wrong}")), depth == 1, "{depth}");
            assert!(!is_valid(&"[".repeat(depth)));
        }
    }

    #[test]
    fn special_bytes_are_found_wherever_they_are() {
        for filler in ['a', '\u{7f}', 'ÿ', '\u{20}', '#', '!', ']'] {
            // Miri runs a few of the control characters.
            let controls = (0..0x20).step_by(if cfg!(miri) { 10 } else { 1 });
            for byte in controls.chain(*b"\"\\") {
                for before in 0..20 {
                    let mut text = filler.to_string().repeat(before);
                    let at = text.len();
                    text.push(char::from(byte));
                    text.push_str("\0\"\\and more");
                    assert_eq!(string::find_special(text.as_bytes()), Some(at), "{text:?}");
                }
            }
            assert_eq!(string::find_special(filler.to_string().repeat(33).as_bytes()), None);
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        let mut out = Vec::new();
        write_string("a\"\\\n\r\t\u{0}\u{1f}/é\u{2028}", &mut out);
        assert_eq!(out, "\"a\\\"\\\\\\n\\r\\t\\u0000\\u001f/é\u{2028}\"".as_bytes());
    }

    proptest! {
        #[test]
        fn every_string_is_read_as_it_was_written(text in ".*|[\\x00-\\x30\\\\]*") {
            let mut out = Vec::new();
            write_string(&text, &mut out);
            let written = std::str::from_utf8(&out).unwrap();
            prop_assert_eq!(&serde_json::from_str::<String>(written).unwrap(), &text);
            prop_assert_eq!(&*Scanner::new(written).string().unwrap(), &text);
        }

        #[test]
        fn strings_with_any_escapes_mean_what_serde_json_reads(
            body in concat!(
                r#"([a-z"é😀]|\\["\\/bfnrtux]|"#,
                r#"\\u[0-9a-fA-F]{4}|\\ud83d\\ude0[0-9]){0,8}"#
            ),
        ) {
            let text = format!("\"{body}\"");
            let mut scanner = Scanner::new(&text);
            let read = scanner.string().and_then(|read| scanner.end().map(|()| read));
            let expected = serde_json::from_str::<String>(&text).ok();
            prop_assert_eq!(read.ok().map(Cow::into_owned), expected, "{}", text);
        }

        #[test]
        fn what_is_valid_is_what_serde_json_takes(
            value in value(),
            place in any::<prop::sample::Index>(),
            change in r#"[\[\]{}:,"0-9eE.+\- tfn\\]?"#,
            keep in any::<bool>(),
        ) {
            let text = value.to_string();
            prop_assert!(is_valid(&text), "{}", text);
            let mut places = text.char_indices().map(|(at, _)| at).collect::<Vec<_>>();
            places.push(text.len());
            let at = place.index(places.len());
            let after = if keep { at } else { (at + 1).min(places.len() - 1) };
            let changed = format!("{}{change}{}", &text[..places[at]], &text[places[after]..]);
            let expected = serde_json::from_str::<IgnoredAny>(&changed).is_ok();
            prop_assert_eq!(is_valid(&changed), expected, "{}", changed);
        }
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            (-1e9..1e9).prop_map(Into::<serde_json::Value>::into),
            "[a-z\"\\\\\n\té]{0,5}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map("[a-c\"]{0,2}", inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }
}
