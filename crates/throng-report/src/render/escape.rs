//! Text from outside, for a terminal, a file or a page: no character of it is a command, or turns
//! the text beside it.

pub use throng_base::is_unsafe;

/// Returns text for one line: each unsafe character becomes its escape.
pub fn escape(text: &str) -> String {
    escape_but(text, |_| false)
}

/// Returns the same for several lines: line breaks stay.
pub fn escape_lines(text: &str) -> String {
    escape_but(text, |c| c == '\n')
}

/// Returns the same for text of a program that has tabs, such as a script.
pub fn escape_document(text: &str) -> String {
    escape_but(text, |c| matches!(c, '\n' | '\t'))
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

/// Returns JSON that means the same, in which each unsafe character of a text is escaped.
/// `serde_json` escapes those below the space alone. Line breaks between values stay.
pub fn escape_json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unsafe(c) && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                safe += &format!("\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_reaches_the_terminal_as_a_command() {
        assert_eq!(escape("room:lobby ä 日本 ❤\u{fe0f}"), "room:lobby ä 日本 ❤\u{fe0f}");
        assert_eq!(escape("\x1b[2J\x07\r\n"), r"\u{1b}[2J\u{7}\r\n");
        assert_eq!(escape("a\u{9b}31mb"), r"a\u{9b}31mb");
        assert_eq!(escape("evil\u{202e}txt\u{200b}"), r"evil\u{202e}txt\u{200b}");
        let all: String = (0..0x11_0000_u32).filter_map(char::from_u32).collect();
        for escaped in [escape(&all), escape_lines(&all), escape_document(&all), escape_json(&all)]
        {
            assert!(!escaped.chars().any(|c| is_unsafe(c) && !matches!(c, '\n' | '\t')));
        }
        assert_eq!(escape_lines("a\r\nb\x1b\n"), "a\\r\nb\\u{1b}\n");
        assert_eq!(escape_document("a\tb\u{2028}\n"), "a\tb\\u{2028}\n");
    }

    #[test]
    fn json_means_the_same_when_it_is_escaped() {
        let all: String = (0..0x11_0000_u32).filter_map(char::from_u32).collect();
        for json in [serde_json::to_string(&all), serde_json::to_string_pretty(&[&all])] {
            let json = json.unwrap();
            let escaped = escape_json(&json);
            let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
            assert_eq!(value(&escaped), value(&json));
            assert!(!escaped.chars().any(|c| is_unsafe(c) && c != '\n'));
        }
    }
}
