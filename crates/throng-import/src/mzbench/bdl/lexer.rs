//! The tokens of benchDL.

use std::ops::Range;

use throng_load::scenario::Diagnostic;

use crate::comments::Comment;

/// A token, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) span: Range<usize>,
    pub(super) kind: TokenKind,
    /// The column of the first token of a line, from 0.
    pub(super) indent: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Word(String),
    Number(f64),
    Text(String),
    /// A bracket, a comma, or an operator.
    Sign(&'static str),
    /// The end of the file.
    End,
}

/// Returns the tokens of a file, the last one `End`, and its comments.
pub(super) fn tokens(source: &str) -> Result<(Vec<Token>, Vec<Comment>), Diagnostic> {
    let (mut tokens, mut comments) = (Vec::new(), Vec::new());
    let (mut at, mut line_begin, mut is_first) = (0, 0, true);
    while let Some(first) = source[at..].chars().next() {
        if first == '\n' {
            at += 1;
            (line_begin, is_first) = (at, true);
            continue;
        }
        if first.is_whitespace() || first == '\u{feff}' {
            at += first.len_utf8();
            continue;
        }
        if first == '#' {
            let line = source[at..].lines().next().unwrap_or_default();
            let text = line.trim_start_matches('#').trim();
            if !line.starts_with("#!") {
                comments.push(Comment { offset: at, text: text.to_owned() });
            }
            at += line.len();
            continue;
        }
        let indent = is_first.then_some(at - line_begin);
        is_first = false;
        let (kind, length) = token(&source[at..], at)?;
        tokens.push(Token { span: at..at + length, kind, indent });
        at += length;
    }
    tokens.push(Token { span: at..at, kind: TokenKind::End, indent: Some(0) });
    Ok((tokens, comments))
}

/// Reads the token at the beginning of `rest`, and returns it with its length.
fn token(rest: &str, at: usize) -> Result<(TokenKind, usize), Diagnostic> {
    let first = rest.chars().next().unwrap_or_default();
    if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        return Ok((TokenKind::Sign(sign), sign.len()));
    }
    if first == '"' {
        return text(rest, at);
    }
    let begins_number = rest.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    if begins_number && (first == '-' || first.is_ascii_digit()) {
        return number(rest, at);
    }
    if first.is_alphabetic() || first == '_' {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        return Ok((TokenKind::Word(rest[..end].to_owned()), end));
    }
    let span = at..at + first.len_utf8();
    let label = "expected a name, a number, a string or a list";
    Err(Diagnostic::new(span, "benchDL has no such character", label))
}

/// Reads `12`, `-1.5` or `20M`.
fn number(rest: &str, at: usize) -> Result<(TokenKind, usize), Diagnostic> {
    let sign = usize::from(rest.starts_with('-'));
    let digits = |from: usize| {
        let digits = rest[from..].find(|c: char| !c.is_ascii_digit());
        digits.map_or(rest.len(), |length| from + length)
    };
    let mut end = digits(sign);
    if rest[end..].starts_with('.') && digits(end + 1) > end + 1 {
        end = digits(end + 1);
    }
    let value: f64 = rest[..end].parse().unwrap_or(f64::INFINITY);
    let suffix = rest[end..].chars().next();
    let factor = SUFFIXES.iter().find(|(letter, _)| suffix == Some(*letter));
    let is_alone = !rest[end..].chars().nth(1).is_some_and(char::is_alphanumeric);
    let factor = factor.filter(|_| is_alone).map(|(_, factor)| *factor);
    end += usize::from(factor.is_some());
    let value = value * factor.unwrap_or(1.0);
    if !value.is_finite() || value.abs() > NUMBER_MAX {
        let label = "expected a number of at most 10^15";
        return Err(Diagnostic::new(at..at + end, "this number is too large", label));
    }
    Ok((TokenKind::Number(value), end))
}

/// Reads a text in quotes.
fn text(rest: &str, at: usize) -> Result<(TokenKind, usize), Diagnostic> {
    let mut text = String::new();
    let mut letters = rest.char_indices().skip(1);
    while let Some((offset, letter)) = letters.next() {
        match letter {
            '"' => return Ok((TokenKind::Text(text), offset + 1)),
            '\n' => break,
            '\\' => match letters.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 'r')) => text.push('\r'),
                Some((_, 't')) => text.push('\t'),
                Some((_, other)) => text.push(other),
                None => break,
            },
            other => text.push(other),
        }
    }
    let end = rest.lines().next().unwrap_or_default().len();
    let label = "expected `\"` at the end of the string";
    Err(Diagnostic::new(at..at + end, "the string has no end", label))
}

/// Longer signs come before those that they begin with.
const SIGNS: &[&str] =
    &["<=", ">=", "==", "!=", "/=", "<>", "<", ">", "=", "(", ")", "[", "]", ",", ":"];

/// Suffixes of numbers.
const SUFFIXES: [(char, f64); 4] = [('K', 1e3), ('M', 1e6), ('G', 1e9), ('T', 1e12)];

/// Largest number of a file.
const NUMBER_MAX: f64 = 1e15;
