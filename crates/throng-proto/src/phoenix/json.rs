//! As much JSON (RFC 8259) as a frame needs: a scanner that checks a text without building anything from it, and strings written.
//!
//! Nothing recurses: how deep a text nests costs one bit a level.

use std::borrow::Cow;

use super::DecodeError;

/// Whether `text` is one JSON object and nothing else: what a server may send as a payload.
pub fn is_object(text: &str) -> bool {
    let mut scanner = Scanner::new(text);
    scanner.skip_space();
    scanner.peek() == Some(b'{') && scanner.value().is_ok() && scanner.end().is_ok()
}

/// Whether `text` is one JSON value and nothing else.
pub fn is_valid(text: &str) -> bool {
    let mut scanner = Scanner::new(text);
    scanner.value().is_ok() && scanner.end().is_ok()
}

/// Appends `text` as a JSON string, quotes included.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = special(rest) {
        out.extend_from_slice(&rest[..at]);
        write_escape(rest[at], out);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// A cursor over a text. After an error its place means nothing.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Everything that was not scanned yet.
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn error<T>(&self, what: &'static str) -> Result<T, DecodeError> {
        Err(DecodeError::Json { what, at: self.at })
    }

    /// Nothing but space is left.
    pub(super) fn end(&mut self) -> Result<(), DecodeError> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { self.error("something follows the value") }
    }

    /// Takes `byte`, after any space, if it comes next.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// Takes `byte`, after any space, which must come next.
    pub(super) fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), DecodeError> {
        if self.take(byte) { Ok(()) } else { self.error(what) }
    }

    /// A string, which must come next, after any space.
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        self.skip_space();
        let start = self.at + 1;
        let escaped = self.skip_string()?;
        let raw = &self.text[start..self.at - 1];
        Ok(if escaped { Cow::Owned(unescape(raw)) } else { Cow::Borrowed(raw) })
    }

    /// Any value, which must come next, after any space: checked, and lent as it is written.
    pub(super) fn value(&mut self) -> Result<&'a str, DecodeError> {
        self.skip_space();
        let start = self.at;
        let mut nesting = Nesting::default();
        loop {
            self.skip_space();
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    if !self.take(b'}') {
                        nesting.enter(true);
                        self.key()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    if !self.take(b']') {
                        nesting.enter(false);
                        continue;
                    }
                }
                Some(b'"') => {
                    self.skip_string()?;
                }
                Some(b'-' | b'0'..=b'9') => self.skip_number()?,
                Some(b't') => self.skip_word("true")?,
                Some(b'f') => self.skip_word("false")?,
                Some(b'n') => self.skip_word("null")?,
                Some(_) => return self.error("expected a value"),
                None => return self.error("it ends where a value is expected"),
            }
            // A value is complete: so are all that end with it.
            loop {
                let Some(in_object) = nesting.innermost() else {
                    return Ok(&self.text[start..self.at]);
                };
                if self.take(b',') {
                    if in_object {
                        self.key()?;
                    }
                    break;
                }
                let (close, what) =
                    if in_object { (b'}', "expected , or }") } else { (b']', "expected , or ]") };
                self.expect(close, what)?;
                nesting.leave();
            }
        }
    }

    fn key(&mut self) -> Result<(), DecodeError> {
        self.skip_space();
        self.skip_string()?;
        self.expect(b':', "expected :")
    }

    /// Steps over a string; tells whether there are escapes in it.
    fn skip_string(&mut self) -> Result<bool, DecodeError> {
        if self.peek() != Some(b'"') {
            return self.error("expected a string");
        }
        self.at += 1;
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        loop {
            let Some(ahead) = special(&bytes[self.at..]) else {
                self.at = bytes.len();
                return self.error("it ends within a string");
            };
            self.at += ahead;
            match bytes[self.at] {
                b'"' => {
                    self.at += 1;
                    return Ok(escaped);
                }
                b'\\' => {
                    escaped = true;
                    self.skip_escape()?;
                }
                _ => return self.error("a control character within a string"),
            }
        }
    }

    fn skip_escape(&mut self) -> Result<(), DecodeError> {
        let rest = &self.text.as_bytes()[self.at..];
        match escape(rest) {
            Some((_, length)) => {
                self.at += length;
                Ok(())
            }
            None => self.error("an escape that does not exist"),
        }
    }

    fn skip_number(&mut self) -> Result<(), DecodeError> {
        self.at += usize::from(self.peek() == Some(b'-'));
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.skip_digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.skip_digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.skip_digits()?;
        }
        Ok(())
    }

    fn skip_digits(&mut self) -> Result<(), DecodeError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { self.error("expected a digit") }
    }

    fn skip_word(&mut self, word: &str) -> Result<(), DecodeError> {
        if !self.rest().starts_with(word) {
            return self.error("expected a value");
        }
        self.at += word.len();
        Ok(())
    }
}

/// The arrays and objects around a place, one bit each: the innermost 64 here, the others on the heap.
#[derive(Default)]
struct Nesting {
    objects: u64,
    depth: usize,
    outer: Vec<u64>,
}

impl Nesting {
    fn enter(&mut self, object: bool) {
        if self.depth.is_multiple_of(64) && self.depth > 0 {
            self.outer.push(self.objects);
        }
        self.objects = self.objects << 1 | u64::from(object);
        self.depth += 1;
    }

    fn leave(&mut self) {
        self.objects >>= 1;
        self.depth -= 1;
        if self.depth.is_multiple_of(64) && self.depth > 0 {
            self.objects = self.outer.pop().unwrap_or_default();
        }
    }

    /// Whether the innermost is an object; nothing outside of any.
    const fn innermost(&self) -> Option<bool> {
        if self.depth == 0 { None } else { Some(self.objects & 1 == 1) }
    }
}

/// Where the first byte is that a string cannot just contain: a quote, a backslash, a control character.
fn special(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES * 0x80;
    // The high bit of every byte that is below `bound`; bytes above 0x7f never count. A borrow only disturbs
    // bytes above the lowest hit, which is the one that is asked for.
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word & HIGHS;
    let equal = |word: u64, byte: u8| below(word ^ ONES * u64::from(byte), 1);
    let mut chunks = bytes.chunks_exact(8);
    let mut at = 0;
    for chunk in &mut chunks {
        let word = chunk.try_into().map_or(0, u64::from_le_bytes);
        let hits = below(word, 0x20) | equal(word, b'"') | equal(word, b'\\');
        if hits != 0 {
            return Some(at + hits.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let odd = |&byte: &u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    chunks.remainder().iter().position(odd).map(|ahead| at + ahead)
}

/// The character that the escape at the start of `bytes` stands for, and the length of the escape (of both halves of a pair).
fn escape(bytes: &[u8]) -> Option<(char, usize)> {
    let simple = match bytes.get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let first = hex4(bytes.get(2..6)?)?;
            if !(0xd800..0xdc00).contains(&first) {
                return Some((char::from_u32(first)?, 6));
            }
            let second = hex4(bytes.get(6..12)?.strip_prefix(b"\\u")?)?;
            let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
            return Some((char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + low)?, 12));
        }
        _ => return None,
    };
    Some((simple, 2))
}

fn hex4(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, &digit| Some(sum << 4 | char::from(digit).to_digit(16)?))
}

/// `raw` has been scanned: its escapes exist.
fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let (char, length) =
            escape(&rest.as_bytes()[at..]).unwrap_or((char::REPLACEMENT_CHARACTER, 1));
        text.push(char);
        rest = &rest[at + length..];
    }
    text.push_str(rest);
    text
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}
