//! What a value must look like where it stands: in a string of JSON, in a URL, in a header.

/// A form into which values of variables are brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// As it is.
    None,
    /// Inside the quotes of a string of JSON.
    Json,
    /// In a path or a query: all bytes except those that never need it are percent-encoded (RFC
    /// 3986 section 2.3).
    Percent,
    /// In the value of a header: control characters become spaces, so that no value adds a line.
    Header,
}

impl Escape {
    /// Replaces what begins at byte `begin` of `out` by its escaped form.
    pub(crate) fn apply(self, out: &mut Vec<u8>, begin: usize) {
        let needs = |byte: &u8| self.escapes(*byte);
        let Some(first) = out[begin..].iter().position(needs) else { return };
        let rest = out.split_off(begin + first);
        for byte in rest {
            if self.escapes(byte) {
                self.write(byte, out);
            } else {
                out.push(byte);
            }
        }
    }

    /// Returns the forms that `text` may have in what a user sends or a report shows, without
    /// doubles. Its own form is the first.
    pub(super) fn forms(text: &str) -> Vec<String> {
        let own = [Self::None, Self::Json, Self::Percent, Self::Header].map(|it| it.applied(text));
        // Forms and some servers write a blank as a plus; JSON has more than one form of a control
        // character.
        let plus = Self::Percent.applied(text).replace("%20", "+");
        let quoted = serde_json::Value::from(text).to_string();
        let other = [plus, quoted[1..quoted.len() - 1].to_owned()];
        let mut forms = Vec::new();
        for form in own.into_iter().chain(other) {
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
        forms
    }

    fn applied(self, text: &str) -> String {
        let mut out = text.as_bytes().to_vec();
        self.apply(&mut out, 0);
        String::from_utf8(out).expect("only ASCII characters are replaced, by others")
    }

    /// Returns an upper bound of the escaped form of this many bytes.
    pub(super) const fn bytes_max(self, bytes: usize) -> usize {
        match self {
            Self::None | Self::Header => bytes,
            Self::Percent => bytes * 3,
            Self::Json => bytes * 6,
        }
    }

    const fn escapes(self, byte: u8) -> bool {
        match self {
            Self::None => false,
            Self::Json => byte < 0x20 || matches!(byte, b'"' | b'\\'),
            Self::Percent => {
                !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'.' | b'_' | b'~')
            }
            Self::Header => byte.is_ascii_control(),
        }
    }

    fn write(self, byte: u8, out: &mut Vec<u8>) {
        let hex = |digit: u8| b"0123456789ABCDEF"[usize::from(digit)];
        match (self, byte) {
            (Self::Json, b'"' | b'\\') => out.extend([b'\\', byte]),
            (Self::Json, b'\n') => out.extend(*b"\\n"),
            (Self::Json, b'\r') => out.extend(*b"\\r"),
            (Self::Json, b'\t') => out.extend(*b"\\t"),
            (Self::Json, _) => {
                out.extend(*b"\\u00");
                out.extend([hex(byte >> 4), hex(byte & 15)]);
            }
            (Self::Percent, _) => out.extend([b'%', hex(byte >> 4), hex(byte & 15)]),
            (Self::Header | Self::None, _) => out.push(b' '),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(escape: Escape, text: &str) -> String {
        let mut out = b"begin".to_vec();
        out.extend_from_slice(text.as_bytes());
        escape.apply(&mut out, 5);
        assert!(out.len() - 5 <= escape.bytes_max(text.len()), "{text}");
        String::from_utf8(out).unwrap().split_off(5)
    }

    #[test]
    fn each_place_has_its_form() {
        assert_eq!(escaped(Escape::None, "a\"\n é"), "a\"\n é");
        assert_eq!(escaped(Escape::Percent, "a b/é~"), "a%20b%2F%C3%A9~");
        assert_eq!(escaped(Escape::Header, "a\r\nset-cookie: b"), "a  set-cookie: b");
    }

    #[test]
    fn the_forms_of_a_text_are_those_that_differ() {
        assert_eq!(Escape::forms("hunter2"), ["hunter2"]);
        assert_eq!(
            Escape::forms("a@b \"c"),
            ["a@b \"c", r#"a@b \"c"#, "a%40b%20%22c", "a%40b+%22c"]
        );
        let control = ["a\u{1b}", "a\\u001B", "a%1B", "a ", "a\\u001b"];
        assert_eq!(Escape::forms("a\u{1b}"), control);
    }

    proptest! {
        #[test]
        fn a_string_of_json_stays_what_it_was(text: String) {
            let json = format!("\"{}\"", escaped(Escape::Json, &text));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
