//! JSON for a page: text from outside shows its hidden characters.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};

use crate::render::is_unsafe;

/// Writes the data of a page as JSON. A character that turns the direction of the text beside it,
/// or that no font shows, becomes its escape as text: the page shows `\u{202e}`. All texts of a
/// run enter a page here, in a file and live.
///
/// # Errors
/// The output cannot be written.
pub fn write_json(output: impl Write, page: &impl Serialize) -> io::Result<()> {
    page.serialize(&mut Serializer::with_formatter(output, Visible)).map_err(io::Error::from)
}

/// Returns the same as a text.
pub fn json(page: &impl Serialize) -> String {
    let mut json = Vec::new();
    // A vector takes everything, and all keys of a page are texts.
    _ = write_json(&mut json, page);
    String::from_utf8(json).unwrap_or_default()
}

/// JSON without a character that is not shown.
struct Visible;

impl Formatter for Visible {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        to: &mut W,
        text: &str,
    ) -> io::Result<()> {
        let mut shown = 0;
        for (at, c) in text.char_indices().filter(|(_, c)| is_unsafe(*c)) {
            to.write_all(&text.as_bytes()[shown..at])?;
            write!(to, r"\{}", c.escape_unicode())?;
            shown = at + c.len_utf8();
        }
        to.write_all(&text.as_bytes()[shown..])
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        to: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        match escape {
            CharEscape::AsciiControl(byte) => write!(to, r"\\u{{{byte:x}}}"),
            CharEscape::Backspace => to.write_all(br"\\u{8}"),
            CharEscape::FormFeed => to.write_all(br"\\u{c}"),
            CharEscape::Quote => to.write_all(br#"\""#),
            CharEscape::ReverseSolidus => to.write_all(br"\\"),
            CharEscape::Solidus => to.write_all(b"/"),
            CharEscape::LineFeed => to.write_all(br"\n"),
            CharEscape::CarriageReturn => to.write_all(br"\r"),
            CharEscape::Tab => to.write_all(br"\t"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text that a page shows for `text`.
    fn shown(text: &str) -> String {
        serde_json::from_str(&json(&text)).unwrap()
    }

    #[test]
    fn a_page_shows_the_characters_that_are_hidden_or_turn_text() {
        assert_eq!(shown("evil\u{202e}txt.exe\u{200b}"), r"evil\u{202e}txt.exe\u{200b}");
        assert_eq!(shown("\u{2066}a\u{2069}\u{e0041}"), r"\u{2066}a\u{2069}\u{e0041}");
        assert_eq!(shown("\u{1b}[2J\u{9b}\u{8}\u{c}"), r"\u{1b}[2J\u{9b}\u{8}\u{c}");
        let kept = "room:lobby \"ä\" \\ 日本 / שלום ❤\u{fe0f}\r\n\tend";
        assert_eq!(shown(kept), kept);
        let all: String = (0..0x11_0000_u32).filter_map(char::from_u32).collect();
        assert!(shown(&all).chars().all(|c| !is_unsafe(c) || matches!(c, '\n' | '\r' | '\t')));
    }
}
