//! A cursor over a JSON text. It checks values and returns them as written, without building them.

use std::borrow::Cow;

use super::nesting::Nesting;
use super::string::{find_special, parse_escape, unescape};
use crate::phoenix::FrameDecodeError;

/// A cursor over a text. After an error its position has no meaning.
#[derive(Clone, Debug)]
pub(in crate::phoenix) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(in crate::phoenix) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(in crate::phoenix) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(in crate::phoenix) fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Returns the text that is not scanned yet.
    pub(in crate::phoenix) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(in crate::phoenix) fn error<T>(&self, what: &'static str) -> Result<T, FrameDecodeError> {
        Err(FrameDecodeError::Json { what, at: self.at })
    }

    /// Checks that only space remains.
    pub(in crate::phoenix) fn end(&mut self) -> Result<(), FrameDecodeError> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { self.error("text follows the value") }
    }

    /// Consumes `byte` if it comes next, after any space.
    pub(in crate::phoenix) fn consume(&mut self, byte: u8) -> bool {
        self.skip_space();
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// Consumes `byte`, which must come next, after any space.
    pub(in crate::phoenix) fn expect(
        &mut self,
        byte: u8,
        what: &'static str,
    ) -> Result<(), FrameDecodeError> {
        if self.consume(byte) { Ok(()) } else { self.error(what) }
    }

    /// Reads a string, which must come next, after any space.
    pub(in crate::phoenix) fn string(&mut self) -> Result<Cow<'a, str>, FrameDecodeError> {
        self.skip_space();
        let start = self.at + 1;
        let escaped = self.skip_string()?;
        let raw = &self.text[start..self.at - 1];
        Ok(if escaped { Cow::Owned(unescape(raw)) } else { Cow::Borrowed(raw) })
    }

    /// Checks a value, which must come next, after any space, and returns it as written.
    pub(in crate::phoenix) fn value(&mut self) -> Result<&'a str, FrameDecodeError> {
        self.skip_space();
        let start = self.at;
        let mut nesting = Nesting::default();
        loop {
            self.skip_space();
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    if !self.consume(b'}') {
                        nesting.enter(true);
                        self.key()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    if !self.consume(b']') {
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
                None => return self.error("the text ends where a value is expected"),
            }
            // A value is complete, and so is every level that ends with it.
            loop {
                let Some(in_object) = nesting.is_in_object() else {
                    return Ok(&self.text[start..self.at]);
                };
                if self.consume(b',') {
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

    fn key(&mut self) -> Result<(), FrameDecodeError> {
        self.skip_space();
        self.skip_string()?;
        self.expect(b':', "expected :")
    }

    /// Skips a string; reports whether it contains escapes.
    fn skip_string(&mut self) -> Result<bool, FrameDecodeError> {
        if self.peek() != Some(b'"') {
            return self.error("expected a string");
        }
        self.at += 1;
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        loop {
            let Some(ahead) = find_special(&bytes[self.at..]) else {
                self.at = bytes.len();
                return self.error("the text ends within a string");
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
                _ => return self.error("control character within a string"),
            }
        }
    }

    fn skip_escape(&mut self) -> Result<(), FrameDecodeError> {
        let rest = &self.text.as_bytes()[self.at..];
        match parse_escape(rest) {
            Some((_, length)) => {
                self.at += length;
                Ok(())
            }
            None => self.error("unknown escape"),
        }
    }

    fn skip_number(&mut self) -> Result<(), FrameDecodeError> {
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

    fn skip_digits(&mut self) -> Result<(), FrameDecodeError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { self.error("expected a digit") }
    }

    fn skip_word(&mut self, word: &str) -> Result<(), FrameDecodeError> {
        if !self.rest().starts_with(word) {
            return self.error("expected a value");
        }
        self.at += word.len();
        Ok(())
    }
}
