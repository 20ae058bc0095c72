//! The tokens of Elixir's expressions.

use throng_load::scenario::Diagnostic;

use crate::comments::Comment;
use crate::source::Span;

/// A token, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) span: Span,
    pub(super) kind: TokenKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Number(f64),
    /// A text: literal parts, and the places of the expressions in `#{}` between them.
    Text(Vec<TextPart>),
    /// `:name`.
    Atom(String),
    /// `name:`, a key.
    Key(String),
    /// `get`, `Enum`, `do`.
    Word(String),
    Sign(&'static str),
    /// The end of a line, or `;`.
    Line,
    End,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TextPart {
    Literal(String),
    /// The bytes of an expression.
    Place(Span),
}

/// Returns the tokens in a part of a script, the last one `End`, and the comments.
pub(super) fn tokens(source: &str, part: &Span) -> Result<(Vec<Token>, Vec<Comment>), Diagnostic> {
    let mut lexer = Lexer { source: &source[..part.end], at: part.start, comments: Vec::new() };
    let mut tokens: Vec<Token> = Vec::new();
    while let Some(token) = lexer.read()? {
        let is_again = token.kind == TokenKind::Line
            && tokens.last().is_none_or(|last| last.kind == TokenKind::Line);
        if !is_again {
            tokens.push(token);
        }
    }
    tokens.push(Token { span: part.end..part.end, kind: TokenKind::End });
    Ok((tokens, lexer.comments))
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    comments: Vec<Comment>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn read(&mut self) -> Result<Option<Token>, Diagnostic> {
        loop {
            match self.rest().chars().next() {
                None => return Ok(None),
                Some('#') => {
                    let line = self.rest().lines().next().unwrap_or_default();
                    let text = line.trim_start_matches('#').trim().to_owned();
                    self.comments.push(Comment { offset: self.at, text });
                    self.at += line.len();
                }
                Some(blank) if blank != '\n' && (blank.is_whitespace() || blank == '\u{feff}') => {
                    self.at += blank.len_utf8();
                }
                Some(_) => break,
            }
        }
        let start = self.at;
        let kind = self.kind()?;
        Ok(Some(Token { span: start..self.at, kind }))
    }

    fn kind(&mut self) -> Result<TokenKind, Diagnostic> {
        let rest = self.rest();
        let first = rest.chars().next().unwrap_or_default();
        if first == '\n' || first == ';' {
            self.at += 1;
            return Ok(TokenKind::Line);
        }
        if rest.starts_with("\"\"\"") {
            return self.heredoc();
        }
        if first == '"' {
            return Ok(TokenKind::Text(self.text()?));
        }
        if first.is_ascii_digit() {
            return self.number();
        }
        if rest.starts_with(":\"") {
            self.at += 1;
            let parts = self.text()?;
            return Ok(TokenKind::Atom(literal(&parts)));
        }
        let word = |text: &str| {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
            let ends_with_sign =
                end > 0 && text[end..].starts_with(['?', '!']) && !text[end + 1..].starts_with('=');
            end + usize::from(ends_with_sign)
        };
        if let Some(name) = rest.strip_prefix(':')
            && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        {
            let length = word(name);
            self.at += 1 + length;
            return Ok(TokenKind::Atom(name[..length].to_owned()));
        }
        if first.is_alphabetic() || first == '_' {
            let length = word(rest);
            let text = rest[..length].to_owned();
            self.at += length;
            let after = &rest[length..];
            if after.starts_with(':') && after[1..].starts_with([' ', '\n', '\t']) {
                self.at += 1;
                return Ok(TokenKind::Key(text));
            }
            return Ok(TokenKind::Word(text));
        }
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            self.at += sign.len();
            return Ok(TokenKind::Sign(sign));
        }
        let span = self.at..self.at + first.len_utf8();
        let label = "expected a call, a value or a name";
        Err(Diagnostic::new(span, "the script cannot be read here", label))
    }

    /// Reads `1_000`, `0x1f` or `0.1`.
    fn number(&mut self) -> Result<TokenKind, Diagnostic> {
        let (start, rest) = (self.at, self.rest());
        let digits =
            |text: &str| text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
        let value = if let Some(hex) = rest.strip_prefix("0x") {
            let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
            self.at += 2 + end;
            u32::from_str_radix(&hex[..end], 16).ok().map(f64::from)
        } else {
            let mut end = digits(rest);
            if let Some(fraction) = rest[end..].strip_prefix('.')
                && fraction.starts_with(|c: char| c.is_ascii_digit())
            {
                end += 1 + digits(fraction);
                if let Some(exponent) = rest[end..].strip_prefix('e') {
                    let sign = usize::from(exponent.starts_with('-'));
                    end += 1 + sign + digits(&exponent[sign..]);
                }
            }
            self.at += end;
            rest[..end].replace('_', "").parse().ok()
        };
        match value.filter(|value: &f64| value.abs() <= NUMBER_MAX) {
            Some(value) => Ok(TokenKind::Number(value)),
            None => {
                let label = "expected a number of at most 10^15";
                Err(Diagnostic::new(start..self.at, "this number cannot be read", label))
            }
        }
    }

    /// Reads a text in quotes.
    fn text(&mut self) -> Result<Vec<TextPart>, Diagnostic> {
        let start = self.at;
        self.at += 1;
        let (mut parts, mut literal) = (Vec::new(), String::new());
        loop {
            let rest = self.rest();
            if let Some(place) = rest.strip_prefix("#{") {
                let begin = self.at + 2;
                let Some(length) = place.find('}') else { return Err(unended(start..begin)) };
                parts.push(TextPart::Literal(std::mem::take(&mut literal)));
                parts.push(TextPart::Place(begin..begin + length));
                self.at = begin + length + 1;
                continue;
            }
            let mut letters = rest.chars();
            match letters.next() {
                None => return Err(unended(start..self.at)),
                Some('"') => {
                    self.at += 1;
                    parts.push(TextPart::Literal(literal));
                    return Ok(parts);
                }
                Some('\\') => {
                    let escaped = letters.next().ok_or_else(|| unended(start..self.at))?;
                    self.at += 1 + escaped.len_utf8();
                    literal.push(match escaped {
                        'n' => '\n',
                        'r' => '\r',
                        't' => '\t',
                        's' => ' ',
                        '0' => '\0',
                        other => other,
                    });
                }
                Some(other) => {
                    self.at += other.len_utf8();
                    literal.push(other);
                }
            }
        }
    }

    /// Reads a text between `"""`, without the blanks that all its lines begin with.
    fn heredoc(&mut self) -> Result<TokenKind, Diagnostic> {
        let start = self.at;
        let body = &self.rest()[3..];
        let Some(length) = body.find("\"\"\"") else { return Err(unended(start..start + 3)) };
        self.at += 3 + length + 3;
        let body = body[..length].strip_prefix('\n').unwrap_or(&body[..length]);
        let end = body.rfind('\n').map_or(body.len(), |at| at + 1);
        let indent = body.len() - end;
        let strip = |line: &str| {
            let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
            line[indent.min(blanks)..].to_owned()
        };
        let text: Vec<String> = body[..end].lines().map(strip).collect();
        let text = text.iter().map(|line| format!("{line}\n")).collect();
        Ok(TokenKind::Text(vec![TextPart::Literal(text)]))
    }
}

fn literal(parts: &[TextPart]) -> String {
    let text = |part: &TextPart| match part {
        TextPart::Literal(text) => text.clone(),
        TextPart::Place(_) => String::new(),
    };
    parts.iter().map(text).collect()
}

fn unended(span: Span) -> Diagnostic {
    Diagnostic::new(span, "the text has no end", "expected `\"`")
}

/// Longer signs come before those that they begin with.
const SIGNS: &[&str] = &[
    "===", "!==", "<>", "|>", "->", "<-", "=>", "==", "!=", "<=", ">=", "&&", "||", "..", "++",
    "<<", ">>", "%{", "{", "}", "[", "]", "(", ")", "<", ">", "=", ",", "+", "-", "*", "/", ".",
    "|", "!", "@", "&", "^", ":",
];

/// Largest number of a script.
const NUMBER_MAX: f64 = 1e15;
