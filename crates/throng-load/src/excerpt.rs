//! Excerpts of what users send and receive, for people: cut, escaped, and without secrets.

mod mask;

use std::fmt::Write as _;

/// The rules for excerpts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Excerpt<'a> {
    /// Texts that are replaced by `***` wherever they occur.
    secrets: &'a [String],
    /// Bytes that are shown of one message.
    bytes_max: usize,
    /// The variables of a scenario that are known, each as it is written and with its value, which
    /// is shown.
    values: &'a [(String, String)],
}

impl<'a> Excerpt<'a> {
    /// Returns the rules of a report, which shows the beginning of each message.
    pub(crate) fn short(secrets: &'a [String]) -> Self {
        Self { secrets, bytes_max: SHORT_BYTES_MAX, values: &[] }
    }

    /// Returns the rules of a trace that shows whole messages.
    pub(crate) fn full(secrets: &'a [String]) -> Self {
        Self { secrets, bytes_max: FULL_BYTES_MAX, values: &[] }
    }

    /// Sets the variables that are known.
    pub(crate) fn with_values(self, values: &'a [(String, String)]) -> Self {
        Self { values, ..self }
    }

    /// Formats bytes: as text in backticks with control characters escaped, otherwise in
    /// hexadecimal.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> String {
        self.between("`", bytes)
    }

    /// Formats a part of a scenario, with the values of the variables that are known. What a peer
    /// has sent may look like a variable and is none: [`Excerpt::bytes`] formats it.
    pub(crate) fn written(&self, part: &[u8]) -> String {
        let each = self.values.iter();
        each.fold(self.bytes(part), |shown, (variable, value)| shown.replace(variable, value))
    }

    /// Formats at most `bytes_max` bytes from byte `at` on. A secret that reaches into them is
    /// masked as a whole.
    pub(crate) fn piece(&self, bytes: &[u8], at: usize, bytes_max: usize) -> String {
        let begin = mask::begin_of_secret(bytes, at.min(bytes.len()), self.secrets);
        let rest = &bytes[begin..];
        let (cut, _) = mask::without_secrets(rest, bytes_max, self.secrets);
        Self { secrets: &[], bytes_max: cut.len(), values: &[] }.bytes(&cut)
    }

    /// Returns a text with `***` in place of each secret, so that it can be cut.
    pub(crate) fn masked(&self, text: &str) -> String {
        let (masked, _) = mask::without_secrets(text.as_bytes(), text.len(), self.secrets);
        String::from_utf8_lossy(&masked).into_owned()
    }

    /// Formats a word of a sentence: a name, which needs no backticks.
    pub(crate) fn word(&self, word: &str) -> String {
        self.between("", word.as_bytes())
    }

    fn between(&self, mark: &str, bytes: &[u8]) -> String {
        let (cut, is_cut) = mask::without_secrets(bytes, self.bytes_max, self.secrets);
        let text = readable(&cut, is_cut);
        let hex_max =
            HEX_BYTES_MAX.max(if self.bytes_max > SHORT_BYTES_MAX { cut.len() } else { 0 });
        let mut out = match text {
            Some(text) => format!("{mark}{}{mark}", escaped(&mask::body(text))),
            None => cut[..cut.len().min(hex_max)]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<Vec<_>>()
                .join(" "),
        };
        if is_cut || (text.is_none() && cut.len() > hex_max) {
            _ = write!(out, "… ({} bytes)", bytes.len());
        }
        out
    }

    /// Returns the lines of the head of an HTTP message, with the values of secret fields and query
    /// parameters masked.
    pub(crate) fn head_lines(&self, head: &[u8]) -> Vec<String> {
        let (head, _) = mask::without_secrets(head, FULL_BYTES_MAX, self.secrets);
        let head = mask::head(&String::from_utf8_lossy(&head));
        head.split(['\r', '\n']).filter(|line| !line.is_empty()).map(escaped).collect()
    }

    /// Formats the beginning of the head of an HTTP message as one text.
    pub(crate) fn head(&self, head: &[u8]) -> String {
        match readable(head, true) {
            Some(text) if text.contains("HTTP/") => {
                self.bytes(mask::head(text).trim_end().as_bytes())
            }
            _ => self.bytes(head),
        }
    }
}

/// Returns the text, if the bytes are text for people. A cut may have split its last character.
fn readable(bytes: &[u8], is_cut: bool) -> Option<&str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() && is_cut => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let hidden = text.chars().filter(|c| c.is_control() && !c.is_whitespace()).count();
    (hidden * 4 <= text.len()).then_some(text)
}

/// Escapes control characters and everything that no reader sees, but no quotes.
fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\'' => c.to_string(),
        c => c.escape_debug().to_string(),
    };
    text.chars().map(escape).collect()
}

/// Bytes of a message that a report shows.
const SHORT_BYTES_MAX: usize = 200;

/// Bytes of a message that a trace shows at most.
const FULL_BYTES_MAX: usize = 1 << 20;

/// Bytes that a report shows in hexadecimal.
const HEX_BYTES_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn printable(bytes: &[u8]) -> String {
        Excerpt::short(&[]).bytes(bytes)
    }

    #[test]
    fn bytes_are_shown_as_text_where_they_are_text() {
        assert_eq!(printable(b"hello"), "`hello`");
        assert_eq!(printable(b"+OK\r\n"), "`+OK\\r\\n`");
        assert_eq!(printable(br#"{"type":"it's"}"#), r#"`{"type":"it's"}`"#);
        assert_eq!(printable(br#"{"text":"a\nb"}"#), r#"`{"text":"a\\nb"}`"#);
        assert_eq!(printable(&[0x97, 0x9a, 0x93]), "97 9a 93");
        assert_eq!(printable(&[0, 1, 2, 3]), "00 01 02 03");
        assert_eq!(printable(b""), "``");
        // Control sequences do not reach the terminal.
        assert_eq!(printable(b"abc\x1b[2Jabcdef"), "`abc\\u{1b}[2Jabcdef`");
    }

    #[test]
    fn long_messages_are_cut_and_say_so() {
        let long = "ä".repeat(150);
        let cut = printable(long.as_bytes());
        assert!(cut.starts_with("`ää") && cut.ends_with("ä`… (300 bytes)"), "{cut}");
        let bytes = printable(&[0xff; 4_000]);
        assert!(bytes.ends_with("ff… (4000 bytes)") && bytes.len() < 130, "{bytes}");
        let full = Excerpt::full(&[]);
        assert!(!full.bytes(long.as_bytes()).contains('…'));
        assert_eq!(full.bytes(&[0xff; 4_000]).len(), 4_000 * 3 - 1);
    }

    #[test]
    fn secrets_are_masked_even_where_the_cut_goes_through_one() {
        let secrets = ["hunter2".to_owned()];
        let excerpt = Excerpt::short(&secrets);
        assert_eq!(excerpt.bytes(b"a hunter2 b hunter2"), "`a *** b ***`");
        for before in 190..202 {
            let text = format!("{}hunter2{}", "x".repeat(before), "y".repeat(90));
            let shown = excerpt.bytes(text.as_bytes());
            assert!(!shown.contains("hu"), "{shown}");
        }
    }

    #[test]
    fn the_head_of_a_request_shows_neither_tokens_nor_cookies() {
        let head = b"GET /ws?room=1&access_token=abc&key=d HTTP/1.1\r\nhost: h\r\n\
            Authorization: Bearer abc\r\ncookie: sid=abc\r\nx-api-key: abc\r\n\
            location: /login?password=abc&next=1#top\r\n\r\n";
        let shown = Excerpt::short(&[]).head_lines(head);
        assert_eq!(
            shown,
            [
                "GET /ws?room=1&access_token=***&key=*** HTTP/1.1",
                "host: h",
                "Authorization: ***",
                "cookie: ***",
                "x-api-key: ***",
                "location: /login?password=***&next=1#top",
            ]
        );
        let answer = b"HTTP/1.1 302 Found\r\nset-cookie: sid=abc\r\n\r\n";
        let shown = Excerpt::short(&[]).head(answer);
        assert_eq!(shown, "`HTTP/1.1 302 Found\\r\\nset-cookie: sid=***`");
        assert_eq!(Excerpt::short(&[]).head(b"+OK hello redis\r\n"), "`+OK hello redis\\r\\n`");
    }

    #[test]
    fn a_head_with_other_line_ends_or_folded_fields_shows_no_cookie() {
        for (head, shown) in [
            (
                "HTTP/1.1 200 OK\nset-cookie: sid=abc\ncontent-length: 1\n\n",
                "`HTTP/1.1 200 OK\\nset-cookie: sid=***\\ncontent-length: 1`",
            ),
            ("HTTP/1.1 200 OK\rset-cookie: sid=abc\r\r", "`HTTP/1.1 200 OK\\rset-cookie: sid=***`"),
            (
                "HTTP/1.1 200 OK\r\nset-cookie:\r\n sid=abc\r\n\tpath:abc\r\nx: 1\r\n\r\n",
                "`HTTP/1.1 200 OK\\r\\nset-cookie: ***\\r\\n ***\\r\\n ***\\r\\nx: 1`",
            ),
            (
                "HTTP/1.1 200 OK\r\nset-cookie : sid=abc\r\n\r\n",
                "`HTTP/1.1 200 OK\\r\\nset-cookie : sid=***`",
            ),
        ] {
            assert_eq!(Excerpt::short(&[]).head(head.as_bytes()), shown);
            // The lines show the same, one by one.
            let one_by_one = shown.trim_matches('`').replace("\\r", "\n").replace("\\n", "\n");
            let expected: Vec<_> = one_by_one.split('\n').filter(|line| !line.is_empty()).collect();
            assert_eq!(Excerpt::full(&[]).head_lines(head.as_bytes()), expected);
        }
    }

    #[test]
    fn a_secret_is_masked_in_a_body_as_in_a_head() {
        let shown = |text: &str| Excerpt::short(&[]).bytes(text.as_bytes());
        assert_eq!(shown(r#"{"token":"tok-7","id":7}"#), r#"`{"token":"***","id":7}`"#);
        assert_eq!(shown("user=ann&password=abc&next=1"), "`user=ann&password=***&next=1`");
        let long = format!(r#"{{"accessToken":"{}"}}"#, "abc".repeat(200));
        assert_eq!(shown(&long), "`{\"accessToken\":\"***`… (618 bytes)");
    }

    #[test]
    fn a_piece_shows_no_part_of_a_secret() {
        let secrets = ["hunter2".to_owned()];
        let excerpt = Excerpt::short(&secrets);
        assert_eq!(excerpt.piece(b"pw=hunter2;", 6, 40), "`***;`");
        assert_eq!(excerpt.piece(b"pw=hunter2;", 0, 5), "`pw=***`");
        assert_eq!(excerpt.piece(b"abcdef", 2, 3), "`cde`");
        assert_eq!(excerpt.masked("a hunter2 b"), "a *** b");
    }
}
