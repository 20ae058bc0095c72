//! The tokens of Erlang's terms.

use std::ops::Range;

use throng_load::scenario::Diagnostic;

use crate::comments::Comment;

/// A token, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) span: Range<usize>,
    pub(super) kind: TokenKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Atom(String),
    Integer(i64),
    Float(f64),
    Text(String),
    ListOpen,
    ListClose,
    TupleOpen,
    TupleClose,
    BinaryOpen,
    BinaryClose,
    Comma,
    Dot,
    /// The end of the file.
    End,
}

/// Reads tokens one after another, and keeps the comments between them.
pub(super) struct Lexer<'a> {
    source: &'a str,
    at: usize,
    /// End of the last token that was taken.
    end_of_last: usize,
    peeked: Option<Token>,
    comments: Vec<Comment>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self { source, at: 0, end_of_last: 0, peeked: None, comments: Vec::new() }
    }

    /// Returns the next token and leaves it.
    pub(super) fn peek(&mut self) -> Result<&Token, Diagnostic> {
        if self.peeked.is_none() {
            self.peeked = Some(self.read()?);
        }
        Ok(self.peeked.as_ref().expect("it has just been read"))
    }

    /// Takes the next token.
    pub(super) fn next(&mut self) -> Result<Token, Diagnostic> {
        self.peek()?;
        let token = self.peeked.take().expect("it has just been read");
        self.end_of_last = token.span.end;
        Ok(token)
    }

    pub(super) fn end_of_last(&self) -> usize {
        self.end_of_last
    }

    pub(super) fn into_comments(self) -> Vec<Comment> {
        self.comments
    }

    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            let Some(comment) = self.rest().strip_prefix('%') else { return };
            let line = comment.lines().next().unwrap_or_default();
            let text = line.trim_start_matches('%').trim().to_owned();
            self.comments.push(Comment { offset: self.at, text });
            self.at += 1 + line.len();
        }
    }

    fn read(&mut self) -> Result<Token, Diagnostic> {
        self.skip_blanks();
        let (start, rest) = (self.at, self.rest());
        let Some(first) = rest.chars().next() else {
            return Ok(Token { span: start..start, kind: TokenKind::End });
        };
        let sign = [
            ("<<", TokenKind::BinaryOpen),
            (">>", TokenKind::BinaryClose),
            ("[", TokenKind::ListOpen),
            ("]", TokenKind::ListClose),
            ("{", TokenKind::TupleOpen),
            ("}", TokenKind::TupleClose),
            (",", TokenKind::Comma),
            (".", TokenKind::Dot),
        ];
        let kind = if let Some((text, kind)) = sign.into_iter().find(|(s, _)| rest.starts_with(s)) {
            self.at += text.len();
            kind
        } else if first.is_ascii_digit() || first == '-' || first == '+' {
            self.number()?
        } else if first == '"' {
            TokenKind::Text(self.quoted('"')?)
        } else if first == '\'' {
            TokenKind::Atom(self.quoted('\'')?)
        } else if first == '$' {
            self.character()?
        } else if first.is_lowercase() {
            let is_part = |part: char| part.is_alphanumeric() || part == '_' || part == '@';
            let end = rest.find(|part: char| !is_part(part)).unwrap_or(rest.len());
            self.at += end;
            TokenKind::Atom(rest[..end].to_owned())
        } else {
            let span = start..start + first.len_utf8();
            let label = "expected an atom, a number, a string, a list or a tuple";
            return Err(Diagnostic::new(span, "this is not a term of Erlang", label));
        };
        Ok(Token { span: start..self.at, kind })
    }

    /// Reads `12`, `-1.5e3` or `16#ff`.
    fn number(&mut self) -> Result<TokenKind, Diagnostic> {
        let (start, rest) = (self.at, self.rest());
        let digits =
            |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let mut end = usize::from(rest.starts_with(['-', '+']));
        end += digits(&rest[end..]);
        let kind = if let Some(based) = rest[end..].strip_prefix('#') {
            let base = rest[..end].parse().ok().filter(|base| (2..=36).contains(base));
            let length =
                based.len() - based.trim_start_matches(|c: char| c.is_alphanumeric()).len();
            end += 1 + length;
            base.and_then(|base| i64::from_str_radix(&based[..length], base).ok())
                .map(TokenKind::Integer)
        } else if rest[end..].starts_with('.') && digits(&rest[end + 1..]) > 0 {
            end += 1 + digits(&rest[end + 1..]);
            if let Some(exponent) = rest[end..].strip_prefix(['e', 'E']) {
                let sign = usize::from(exponent.starts_with(['-', '+']));
                let length = digits(&exponent[sign..]);
                end += if length > 0 { 1 + sign + length } else { 0 };
            }
            rest[..end].parse().ok().filter(|value: &f64| value.is_finite()).map(TokenKind::Float)
        } else {
            rest[..end].parse().ok().map(TokenKind::Integer)
        };
        self.at += end;
        kind.ok_or_else(|| {
            let label = "expected a number of at most 64 bits";
            Diagnostic::new(start..self.at, "this number cannot be read", label)
        })
    }

    /// Reads `$a`, the code of a character.
    fn character(&mut self) -> Result<TokenKind, Diagnostic> {
        let start = self.at;
        self.at += 1;
        let mut characters = self.rest().chars();
        let value = match characters.next() {
            Some('\\') => self.escape(start)?,
            Some(other) => {
                self.at += other.len_utf8();
                other
            }
            None => {
                let label = "expected a character after `$`";
                return Err(Diagnostic::new(start..self.at, "the file ends here", label));
            }
        };
        Ok(TokenKind::Integer(i64::from(u32::from(value))))
    }

    /// Reads a text up to the next `quote`.
    fn quoted(&mut self, quote: char) -> Result<String, Diagnostic> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.rest().chars().next() {
                Some('\\') => text.push(self.escape(start)?),
                Some(other) => {
                    self.at += other.len_utf8();
                    if other == quote {
                        return Ok(text);
                    }
                    text.push(other);
                }
                None => {
                    let label = format!("expected `{quote}` at the end of the string");
                    return Err(Diagnostic::new(start..self.at, "the string has no end", label));
                }
            }
        }
    }

    /// Reads an escape sequence, which begins with a backslash.
    fn escape(&mut self, start: usize) -> Result<char, Diagnostic> {
        let begin = self.at;
        self.at += 1;
        let Some(letter) = self.rest().chars().next() else {
            let label = "expected a character after the backslash";
            return Err(Diagnostic::new(start..self.at, "the string has no end", label));
        };
        self.at += letter.len_utf8();
        let known = match letter {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            's' => ' ',
            'b' => '\u{8}',
            'e' => '\u{1b}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            'd' => '\u{7f}',
            'x' => return self.hexadecimal(begin),
            '0'..='7' => return Ok(self.octal(letter)),
            other => other,
        };
        Ok(known)
    }

    /// Reads `\xHH` or `\x{H...}` after its `x`.
    fn hexadecimal(&mut self, begin: usize) -> Result<char, Diagnostic> {
        let rest = self.rest();
        let (digits, length) = match rest.strip_prefix('{') {
            Some(braced) => {
                let end = braced.find('}').unwrap_or(0);
                (&braced[..end], end + 2)
            }
            None => (rest.get(..2).unwrap_or_default(), 2),
        };
        let value = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
        let Some(value) = value else {
            let label = "expected two hexadecimal digits, or some in braces";
            return Err(Diagnostic::new(begin..self.at, "this escape cannot be read", label));
        };
        self.at += length;
        Ok(value)
    }

    /// Reads up to three octal digits, the first of which is `first`.
    fn octal(&mut self, first: char) -> char {
        let mut value = first.to_digit(8).unwrap_or(0);
        for _ in 0..2 {
            let Some(digit) = self.rest().chars().next().and_then(|next| next.to_digit(8)) else {
                break;
            };
            self.at += 1;
            value = value * 8 + digit;
        }
        char::from_u32(value).unwrap_or('\0')
    }
}
