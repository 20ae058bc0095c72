//! Text from outside, made safe for a terminal.

/// Returns `text` with escapes in place of what a terminal would obey or not show: control
/// characters, and those that change the direction of text or have no width.
pub fn escape(text: &str) -> String {
    escape_but(text, |_| false)
}

/// Returns `text` with [escapes](escape) in its lines. The line breaks stay.
pub fn escape_lines(text: &str) -> String {
    escape_but(text, |c| c == '\n')
}

fn escape_but(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) && !stays(c) {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Reports whether a terminal or a page would obey the character, or not show it.
pub(super) fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_reaches_the_terminal_as_a_command() {
        assert_eq!(escape("room:lobby ä 日本"), "room:lobby ä 日本");
        assert_eq!(escape("\x1b[2J\x07\r\n"), r"\u{1b}[2J\u{7}\r\n");
        assert_eq!(escape("a\u{9b}31mb"), r"a\u{9b}31mb");
        assert_eq!(escape("evil\u{202e}txt\u{200b}"), r"evil\u{202e}txt\u{200b}");
        let all: String = (0..0x11_0000_u32).filter_map(char::from_u32).collect();
        assert!(!escape(&all).chars().any(char::is_control));
        assert_eq!(escape_lines("a\r\nb\x1b\n"), "a\\r\nb\\u{1b}\n");
    }
}
