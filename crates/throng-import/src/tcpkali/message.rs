//! Messages of tcpkali: texts with escape sequences and expressions.

use crate::source::Span;
use crate::text::{append, escape, hex};
use crate::translator::Translator;
use crate::yaml::Yaml;

/// A message, in the words of a scenario.
#[derive(Debug, Default)]
pub(super) struct Message {
    /// Where it stands.
    pub(super) span: Span,
    parts: Vec<Part>,
    /// Its length; variables count as a few bytes.
    pub(super) bytes_about: usize,
    /// The expressions in it that are the number of the connection.
    pub(super) of_connection: Vec<String>,
}

#[derive(Debug)]
enum Part {
    Bytes(Vec<u8>),
    /// A variable of scenarios: `${user.id + 1}`.
    Variable(String),
}

impl Message {
    /// Reads the text of a message. `has_escapes` if `\n` is a line break in it (`-e`). Reports
    /// what cannot be read.
    pub(super) fn read(
        translator: &mut Translator<'_>,
        text: &str,
        span: &Span,
        has_escapes: bool,
    ) -> Self {
        let mut message = Self { span: span.clone(), ..Self::default() };
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if let Some(expression) = rest.strip_prefix("\\{") {
                let Some(end) = expression.find('}') else {
                    let title = "an expression in a message has no end";
                    translator.mistake(span, title, "expected `}`");
                    return message;
                };
                message.expression(translator, &expression[..end]);
                rest = &expression[end + 1..];
            } else if rest.starts_with("\\\\") {
                // With -e, too, two backslashes are two.
                message.push(b"\\\\");
                rest = &rest[2..];
            } else if let Some((byte, length)) = escaped_byte(rest).filter(|_| has_escapes) {
                message.push(&[byte]);
                rest = &rest[length..];
            } else {
                message.push(&rest.as_bytes()[..first.len_utf8()]);
                rest = &rest[first.len_utf8()..];
            }
        }
        if message.parts.is_empty() {
            translator.mistake(span, "this message is empty", "expected a text");
        }
        if message.is_binary() && message.parts.len() > 1 {
            let label = "expected either: a binary message of a scenario has no variables";
            translator.mistake(span, "expressions and binary bytes in one message", label);
        }
        message
    }

    /// Returns the text of the message; `None` if it has bytes that are no text.
    pub(super) fn text(&self) -> Option<String> {
        if self.is_binary() {
            return None;
        }
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Variable(variable) => append(&mut text, variable),
                Part::Bytes(bytes) => append(&mut text, &escape(&String::from_utf8_lossy(bytes))),
            }
        }
        Some(text)
    }

    /// Reports whether a scenario sends it in a binary frame, because it is no text.
    pub(super) fn is_binary(&self) -> bool {
        let is_text = |bytes| std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'));
        self.parts.iter().any(|part| matches!(part, Part::Bytes(bytes) if !is_text(bytes)))
    }

    /// Returns the entries of a `send` step.
    pub(super) fn payload(&self, is_websocket: bool) -> (&'static str, Yaml) {
        match self.text() {
            Some(text) => ("text", Yaml::text(text)),
            None => self.hexadecimal(is_websocket),
        }
    }

    fn hexadecimal(&self, is_websocket: bool) -> (&'static str, Yaml) {
        let bytes = self.parts.iter().flat_map(|part| match part {
            Part::Bytes(bytes) => bytes.as_slice(),
            Part::Variable(_) => &[],
        });
        let key = if is_websocket { "binary" } else { "hex" };
        (key, Yaml::text(hex(&bytes.copied().collect::<Vec<_>>())))
    }

    /// Reads what stands between `\{` and `}`.
    fn expression(&mut self, translator: &mut Translator<'_>, text: &str) {
        let span = self.span.clone();
        let construct = format!("\\{{{text}}}");
        let words: Vec<_> = text.splitn(2, ' ').collect();
        match (words[0], words.get(1)) {
            ("connection.uid", None) => {
                self.of_connection.push(construct);
                self.variable("${user.id + 1}");
            }
            (uid, None) if uid.starts_with("connection.uid%") => {
                let modulus = uid["connection.uid%".len()..].parse::<u32>();
                let Some(modulus) = modulus.ok().filter(|modulus| *modulus > 0) else {
                    self.push(b"?");
                    let label = "expected a number above 0 after `%`";
                    return translator.mistake(&span, "this expression cannot be read", label);
                };
                self.of_connection.push(construct);
                self.variable(&format!("${{(user.id + 1) % {modulus}}}"));
            }
            ("re", Some(pattern)) if choices(pattern).is_some() => {
                translator.translated(&span, construct);
                let choices = choices(pattern).unwrap_or_default();
                self.variable(&format!("${{choice({choices})}}"));
            }
            ("message.marker", None) => {
                let how = "the marker is the time in microseconds, without tcpkali's letters; \
                           throng measures latency by itself";
                translator.approximated(&span, construct, how);
                self.variable("${time('us')}");
            }
            _ => {
                let remedy = "the message is sent without it; write it with the variables of \
                              docs/scenario.md";
                translator.not_supported(&span, construct, remedy);
                if self.parts.is_empty() {
                    self.push(b"?");
                }
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes_about += bytes.len();
        match self.parts.last_mut() {
            Some(Part::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.parts.push(Part::Bytes(bytes.to_vec())),
        }
    }

    fn variable(&mut self, text: &str) {
        self.bytes_about += VARIABLE_BYTES_ABOUT;
        self.parts.push(Part::Variable(text.to_owned()));
    }
}

/// Returns the arguments of `choice` for a pattern such as `(red|green)`.
fn choices(pattern: &str) -> Option<String> {
    let pattern = pattern.trim();
    let inner =
        pattern.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(pattern);
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || " _-".contains(c))
    };
    let words: Vec<_> = inner.split('|').collect();
    (words.len() > 1 && words.iter().all(|word| is_word(word)))
        .then(|| words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", "))
}

/// Returns the byte of the escape sequence at the beginning of `text`, and its length, as
/// `unescape_data` of tcpkali reads it. That knows no `\t`, and octal digits only behind a `0`; a
/// backslash before any other character is left out.
fn escaped_byte(text: &str) -> Option<(u8, usize)> {
    let rest = text.strip_prefix('\\')?;
    let digits = |from: usize, most: usize, radix: u32| {
        let digits = rest[from..].chars().take(most).take_while(|digit| digit.is_digit(radix));
        let length = digits.count();
        Some((u32::from_str_radix(&rest[from..from + length], radix).ok()? as u8, length))
    };
    let simple = match rest.chars().next()? {
        'n' => b'\n',
        'r' => b'\r',
        'f' => 0x0c,
        'b' => 0x08,
        'x' => return digits(1, 2, 16).map(|(byte, length)| (byte, 2 + length)),
        '0' => return digits(0, 4, 8).map(|(byte, length)| (byte, 1 + length)),
        other if other.is_ascii() => other as u8,
        _ => return None,
    };
    Some((simple, 2))
}

/// The length that a variable is taken for where a bandwidth is translated.
const VARIABLE_BYTES_ABOUT: usize = 4;
