//! Terms of Erlang, as configuration files have them: atoms, numbers, strings, lists and tuples.

mod lexer;

use std::ops::Range;

use throng_load::scenario::Diagnostic;

use crate::comments::Comment;
use crate::cursor::{Cursor, Parsed};
use crate::lexer::{TokenKind, tokens};
use lexer::ERLANG;

/// A term, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Term {
    pub(crate) span: Range<usize>,
    pub(crate) kind: TermKind,
}

/// What a term is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TermKind {
    /// `infinity`, `'host name'`.
    Atom(String),
    Integer(i64),
    Float(f64),
    /// `"text"`, or `<<"text">>`.
    Text(String),
    List(Vec<Term>),
    Tuple(Vec<Term>),
}

/// The terms of a file, each ended by a dot, and its comments.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Terms {
    pub(crate) terms: Vec<Term>,
    pub(crate) comments: Vec<Comment>,
}

impl Term {
    /// Returns the name, if this is an atom.
    pub(crate) fn atom(&self) -> Option<&str> {
        let TermKind::Atom(name) = &self.kind else { return None };
        Some(name)
    }

    /// Returns the text of a string or of an atom.
    pub(crate) fn text(&self) -> Option<&str> {
        let (TermKind::Text(text) | TermKind::Atom(text)) = &self.kind else { return None };
        Some(text)
    }

    /// Returns the items, if this is a list.
    pub(crate) fn list(&self) -> Option<&[Self]> {
        let TermKind::List(items) = &self.kind else { return None };
        Some(items)
    }

    /// Returns the name of a tuple that begins with an atom, and the rest of it: `{name, ...}`.
    pub(crate) fn tagged(&self) -> Option<(&str, &[Self])> {
        match &self.kind {
            TermKind::Tuple(items) => {
                let (first, rest) = items.split_first()?;
                Some((first.atom()?, rest))
            }
            _ => None,
        }
    }

    /// Describes what the term is, for mistakes.
    pub(crate) fn describe(&self) -> &'static str {
        match self.kind {
            TermKind::Atom(_) => "an atom",
            TermKind::Integer(_) | TermKind::Float(_) => "a number",
            TermKind::Text(_) => "a string",
            TermKind::List(_) => "a list",
            TermKind::Tuple(_) => "a tuple",
        }
    }
}

/// Reads a file of terms, each of which ends with a dot. The error is its first mistake.
pub(crate) fn parse_terms(source: &str) -> Result<Terms, Diagnostic> {
    let (tokens, comments) = tokens(source, &(0..source.len()), &ERLANG)?;
    let mut tokens = Cursor::new(&tokens, &ERLANG, 0);
    let mut terms = Vec::new();
    while !tokens.is_at_end() {
        terms.push(term(&mut tokens)?);
        tokens.expect(".", "`.` after the term")?;
    }
    Ok(Terms { terms, comments })
}

fn term(tokens: &mut Cursor<'_>) -> Parsed<Term> {
    let token = tokens.peek();
    let kind = match &token.kind {
        TokenKind::Sign("[") => TermKind::List(items(tokens, "]")?),
        TokenKind::Sign("{") => TermKind::Tuple(items(tokens, "}")?),
        TokenKind::Sign("<<") => TermKind::Text(binary(tokens)?),
        TokenKind::Text(_) => TermKind::Text(texts(tokens)),
        one => {
            let kind = match one {
                TokenKind::Atom(name) => TermKind::Atom(name.clone()),
                TokenKind::Integer(value) => TermKind::Integer(*value),
                TokenKind::Number(value) => TermKind::Float(*value),
                _ => {
                    let expected = "a term: an atom, number, string, list or tuple";
                    return Err(tokens.unexpected(expected));
                }
            };
            tokens.next();
            kind
        }
    };
    Ok(Term { span: token.span.start..tokens.end_of_last(), kind })
}

/// Takes `<<"text">>`.
fn binary(tokens: &mut Cursor<'_>) -> Parsed<String> {
    tokens.next();
    let text = texts(tokens);
    let other = "a string: of binaries, only texts are read";
    tokens.expect(">>", if text.is_empty() { other } else { "`>>`" })?;
    Ok(text)
}

/// Takes the strings that come next, which are one: `"a" "b"` is `"ab"`.
fn texts(tokens: &mut Cursor<'_>) -> String {
    let mut all = String::new();
    while let TokenKind::Text(text) = &tokens.peek().kind {
        all.push_str(text);
        tokens.next();
    }
    all
}

/// Takes the items between two brackets, with commas between them.
fn items(tokens: &mut Cursor<'_>, close: &str) -> Parsed<Vec<Term>> {
    tokens.open()?;
    tokens.next();
    let mut items = Vec::new();
    if !tokens.is_sign(close) {
        items.push(term(tokens)?);
        while tokens.takes(",") {
            items.push(term(tokens)?);
        }
    }
    tokens.expect(close, &format!("`,` or `{close}`"))?;
    tokens.close();
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(term: &Term) -> String {
        let all = |items: &[Term]| items.iter().map(show).collect::<Vec<_>>().join(",");
        match &term.kind {
            TermKind::Atom(name) => name.clone(),
            TermKind::Integer(value) => value.to_string(),
            TermKind::Float(value) => format!("{value:?}"),
            TermKind::Text(text) => format!("{text:?}"),
            TermKind::List(items) => format!("[{}]", all(items)),
            TermKind::Tuple(items) => format!("{{{}}}", all(items)),
        }
    }

    fn check(source: &str, expected: &str) {
        let got = match parse_terms(source) {
            Ok(terms) => terms.terms.iter().map(show).collect::<Vec<_>>().join(" "),
            Err(mistake) => format!("{:?}: {}", &mistake.span, mistake.label),
        };
        assert_eq!(got, expected, "{source}");
    }

    #[test]
    fn terms_are_read() {
        check("a.", "a");
        check("[{server, [{listen_port,8989}]}]. % port", "[{server,[{listen_port,8989}]}]");
        check("{'host name', -1, 2.5e3, $a}.", "{host name,-1,2500.0,97}");
        check(r#""a\n" "b". <<"c">>. <<>>."#, r#""a\nb" "c" """#);
        check("[]. {}. [1]. 16#ff.", "[] {} [1] 255");
    }

    #[test]
    fn a_mistake_has_its_place() {
        check("[1, 2", "5..5: expected `,` or `]`");
        check("{a b}.", "3..4: expected `,` or `}`");
        check("a", "1..1: expected `.` after the term");
        check("\"abc", "0..4: expected `\"` at the end of the string");
        check("[fun].", "[fun]");
        check("<<1,2>>.", "2..3: expected a string: of binaries, only texts are read");
        check("99999999999999999999.", "0..20: expected a number of at most 64 bits");
    }

    #[test]
    fn lists_without_end_are_refused() {
        check(&"[".repeat(100), "64..65: at most 64 may be open");
    }
}
