//! The words of JavaScript, as far as scripts of k6 need them.

use throng_load::scenario::Diagnostic;

use crate::source::Span;

/// A word, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) span: Span,
    pub(super) kind: TokenKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Name(String),
    Number(f64),
    Text(String),
    /// A text in backticks: texts, and the places of the expressions between them.
    Template(Vec<Piece>),
    Sign(&'static str),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Expression(Span),
}

/// Returns the words in this part of the source.
pub(super) fn tokens(source: &str, part: Span) -> Result<Vec<Token>, Diagnostic> {
    let mut lexer = Lexer { source: &source[..part.end], at: part.start };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.token()? {
        tokens.push(token);
    }
    Ok(tokens)
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn token(&mut self) -> Result<Option<Token>, Diagnostic> {
        self.skip_blanks()?;
        let start = self.at;
        let Some(first) = self.rest().chars().next() else { return Ok(None) };
        let kind = match first {
            '"' | '\'' => TokenKind::Text(self.text(first)?),
            '`' => TokenKind::Template(self.template()?),
            '0'..='9' => self.number()?,
            _ if first.is_alphabetic() || "_$".contains(first) => {
                let is_part = |c: char| c.is_alphanumeric() || "_$".contains(c);
                let length = self.rest().find(|c| !is_part(c)).unwrap_or(self.rest().len());
                self.at += length;
                TokenKind::Name(self.source[start..self.at].to_owned())
            }
            _ => {
                let sign = SIGNS.iter().copied().find(|sign| self.rest().starts_with(sign));
                let Some(sign) = sign else {
                    let span = start..start + first.len_utf8();
                    let title = format!("`{}` is no word of a script", first.escape_debug());
                    return Err(Diagnostic::new(span, title, "not expected here"));
                };
                self.at += sign.len();
                TokenKind::Sign(sign)
            }
        };
        Ok(Some(Token { span: start..self.at, kind }))
    }

    fn skip_blanks(&mut self) -> Result<(), Diagnostic> {
        loop {
            let trimmed = self.rest().trim_start();
            self.at = self.source.len() - trimmed.len();
            if self.rest().starts_with("//") {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            } else if self.rest().starts_with("/*") {
                let Some(length) = self.rest().find("*/") else {
                    let span = self.at..self.at + 2;
                    let title = "a comment has no end";
                    return Err(Diagnostic::new(span, title, "expected `*/`"));
                };
                self.at += length + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn number(&mut self) -> Result<TokenKind, Diagnostic> {
        let start = self.at;
        let is_part = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
        self.at += self.rest().find(|c| !is_part(c)).unwrap_or(self.rest().len());
        let digits = self.source[start..self.at].replace('_', "");
        let number = digits.parse::<f64>().ok().filter(|number| number.is_finite());
        number.map(TokenKind::Number).ok_or_else(|| {
            let title = format!("`{digits}` is no number");
            Diagnostic::new(start..self.at, title, "expected a number such as `10` or `0.5`")
        })
    }

    fn text(&mut self, quote: char) -> Result<String, Diagnostic> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.rest().chars().next() {
                Some('\\') => text.extend(self.escaped()),
                Some(end) if end == quote => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(other) if other != '\n' => {
                    text.push(other);
                    self.at += other.len_utf8();
                }
                _ => {
                    let label = format!("expected {quote} at its end");
                    return Err(Diagnostic::new(start..self.at, "a text has no end", label));
                }
            }
        }
    }

    fn template(&mut self) -> Result<Vec<Piece>, Diagnostic> {
        let start = self.at;
        self.at += 1;
        let mut pieces = Vec::new();
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let Some(first) = rest.chars().next() else { break };
            if first == '`' {
                self.at += 1;
                pieces.push(Piece::Text(text));
                return Ok(pieces);
            }
            if first == '\\' {
                text.extend(self.escaped());
            } else if rest.starts_with("${") {
                let Some(length) = rest.find('}') else { break };
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(Piece::Expression(self.at + 2..self.at + length));
                self.at += length + 1;
            } else {
                text.push(first);
                self.at += first.len_utf8();
            }
        }
        Err(Diagnostic::new(start..start + 1, "a text has no end", "expected a backtick"))
    }

    /// Returns the character that a backslash and what follows stand for.
    fn escaped(&mut self) -> Option<char> {
        self.at += 1;
        let escaped = self.rest().chars().next()?;
        self.at += escaped.len_utf8();
        match escaped {
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            '0' => Some('\0'),
            '\n' => None,
            'x' => self.code(2),
            'u' => self.code(4),
            other => Some(other),
        }
    }

    fn code(&mut self, digits: usize) -> Option<char> {
        let code = self.rest().get(..digits)?;
        let code = u32::from_str_radix(code, 16).ok()?;
        self.at += digits;
        char::from_u32(code)
    }
}

/// The signs, each before those that it begins with.
const SIGNS: [&str; 44] = [
    "===", "!==", "...", "**=", ">>>", "=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "++",
    "--", "+=", "-=", "*=", "/=", "**", "(", ")", "{", "}", "[", "]", ";", ",", ":", ".", "=", "+",
    "-", "*", "/", "%", "<", ">", "!", "?", "&", "|", "^",
];
