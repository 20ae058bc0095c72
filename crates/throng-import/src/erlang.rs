//! Terms of Erlang, as configuration files have them: atoms, numbers, strings, lists and tuples.

mod lexer;

use std::ops::Range;

use throng_load::scenario::Diagnostic;

use crate::comments::Comment;

use lexer::{Lexer, Token, TokenKind};

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
    let mut parser = Parser { lexer: Lexer::new(source), depth: 0 };
    let mut terms = Vec::new();
    while parser.lexer.peek()?.kind != TokenKind::End {
        terms.push(parser.term()?);
        parser.expect(&TokenKind::Dot, "`.` after the term")?;
    }
    Ok(Terms { terms, comments: parser.lexer.into_comments() })
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// Lists and tuples that are open.
    depth: usize,
}

impl Parser<'_> {
    fn term(&mut self) -> Result<Term, Diagnostic> {
        let Token { span, kind } = self.lexer.next()?;
        let start = span.start;
        let kind = match kind {
            TokenKind::Atom(name) => TermKind::Atom(name),
            TokenKind::Integer(value) => TermKind::Integer(value),
            TokenKind::Float(value) => TermKind::Float(value),
            TokenKind::Text(text) => TermKind::Text(self.joined(text)?),
            TokenKind::BinaryOpen => {
                let text = self.binary()?;
                self.expect(&TokenKind::BinaryClose, "`>>`")?;
                TermKind::Text(text)
            }
            TokenKind::ListOpen => {
                TermKind::List(self.items(&span, &TokenKind::ListClose, "`]`")?)
            }
            TokenKind::TupleOpen => {
                TermKind::Tuple(self.items(&span, &TokenKind::TupleClose, "`}`")?)
            }
            _ => return Err(unexpected(span, "a term: an atom, number, string, list or tuple")),
        };
        Ok(Term { span: start..self.lexer.end_of_last(), kind })
    }

    /// Returns a string with those that follow it: `"a" "b"` is `"ab"`.
    fn joined(&mut self, mut text: String) -> Result<String, Diagnostic> {
        while let TokenKind::Text(_) = self.lexer.peek()?.kind {
            if let TokenKind::Text(more) = self.lexer.next()?.kind {
                text.push_str(&more);
            }
        }
        Ok(text)
    }

    /// Returns the text in `<<"text">>`.
    fn binary(&mut self) -> Result<String, Diagnostic> {
        if self.lexer.peek()?.kind == TokenKind::BinaryClose {
            return Ok(String::new());
        }
        match self.lexer.next()? {
            Token { kind: TokenKind::Text(text), .. } => self.joined(text),
            token => Err(unexpected(token.span, "a string: of binaries, only texts are read")),
        }
    }

    /// Returns the items up to `close`, with commas between them.
    fn items(
        &mut self,
        open: &Range<usize>,
        close: &TokenKind,
        name: &str,
    ) -> Result<Vec<Term>, Diagnostic> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let label = format!("at most {DEPTH_MAX} may be open");
            return Err(Diagnostic::new(open.clone(), "too many lists in lists", label));
        }
        let mut items = Vec::new();
        if self.lexer.peek()?.kind != *close {
            items.push(self.term()?);
            while self.lexer.peek()?.kind == TokenKind::Comma {
                self.lexer.next()?;
                items.push(self.term()?);
            }
        }
        self.expect(close, &format!("`,` or {name}"))?;
        self.depth -= 1;
        Ok(items)
    }

    fn expect(&mut self, kind: &TokenKind, expected: &str) -> Result<(), Diagnostic> {
        let token = self.lexer.next()?;
        if token.kind == *kind { Ok(()) } else { Err(unexpected(token.span, expected)) }
    }
}

fn unexpected(span: Range<usize>, expected: &str) -> Diagnostic {
    let title = "this is not a term of Erlang";
    Diagnostic::new(span, title, format!("expected {expected}"))
}

/// Lists and tuples that may be open at once.
const DEPTH_MAX: usize = 64;

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
