//! Short texts of other machines: what a terminal can show in a line.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use throng_base::is_unsafe;

/// A line of at most `BYTES_MAX` bytes, without characters that are [unsafe](is_unsafe). A message
/// with another text in its place is refused when it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Text<const BYTES_MAX: usize = TEXT_BYTES_MAX>(String);

/// A text that is too long, or has characters that no line has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAText {
    /// It has more bytes than this.
    #[error("a text of {bytes} bytes where at most {bytes_max} may stand")]
    TooLong {
        /// Bytes that it has.
        bytes: usize,
        /// Bytes that it may have.
        bytes_max: usize,
    },
    /// It has this character.
    #[error("a text with `{}`", .0.escape_unicode())]
    Character(char),
}

impl<const BYTES_MAX: usize> Text<BYTES_MAX> {
    /// Checks a text.
    ///
    /// # Errors
    /// It has more than `BYTES_MAX` bytes, or a character that no line has.
    pub fn new(text: impl Into<String>) -> Result<Self, NotAText> {
        let text = text.into();
        if text.len() > BYTES_MAX {
            return Err(NotAText::TooLong { bytes: text.len(), bytes_max: BYTES_MAX });
        }
        match text.chars().find(|c| is_unsafe(*c)) {
            Some(character) => Err(NotAText::Character(character)),
            None => Ok(Self(text)),
        }
    }

    /// Returns the beginning of a text of this process, with a space for each character that no
    /// line has. An `…` stands for the rest.
    pub fn cut(text: &str) -> Self {
        let replaced = |c: char| if is_unsafe(c) { ' ' } else { c };
        if text.len() <= BYTES_MAX {
            return Self(text.chars().map(replaced).collect());
        }
        let room = BYTES_MAX.saturating_sub(REST.len_utf8());
        let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        Self(text[..end].chars().map(replaced).chain([REST]).collect())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const BYTES_MAX: usize> TryFrom<String> for Text<BYTES_MAX> {
    type Error = NotAText;

    fn try_from(text: String) -> Result<Self, NotAText> {
        Self::new(text)
    }
}

impl<const BYTES_MAX: usize> From<Text<BYTES_MAX>> for String {
    fn from(text: Text<BYTES_MAX>) -> Self {
        text.0
    }
}

impl<const BYTES_MAX: usize> Deref for Text<BYTES_MAX> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const BYTES_MAX: usize> PartialEq<str> for Text<BYTES_MAX> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl<const BYTES_MAX: usize> fmt::Display for Text<BYTES_MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Bytes of a text, if its field sets no other limit.
pub const TEXT_BYTES_MAX: usize = 256;
/// Stands for what was cut off.
const REST: char = '…';

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Text<8>, String> {
        serde_json::from_value(serde_json::json!(text)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_text_that_a_terminal_would_obey_or_that_is_too_long_is_refused() {
        for good in ["", "a b", "größe", "12345678"] {
            assert_eq!(read(good).unwrap().as_str(), good);
        }
        for wrong in ["\x1b[2J", "a\nb", "\u{202e}a", "\u{9b}1m", "\u{2066}", "\u{2028}"] {
            let error = read(wrong).unwrap_err();
            assert!(error.is_ascii() && error.contains("\\u{"), "{error}");
        }
        assert_eq!(read("123456789").unwrap_err(), "a text of 9 bytes where at most 8 may stand");
    }

    #[test]
    fn what_this_process_says_is_cut_to_a_text() {
        for (text, cut) in [
            ("short", "short"),
            ("a\x1bb\u{202e}c", "a b c"),
            ("12345678", "12345678"),
            ("123456789", "12345…"),
            ("1234ü6789", "1234…"),
        ] {
            let short = Text::<8>::cut(text);
            assert_eq!(short.as_str(), cut);
            assert_eq!(Text::<8>::new(short.as_str()).unwrap(), short);
        }
    }
}
