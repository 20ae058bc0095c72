//! A place among the tokens of a source, from which a parser takes them.

use throng_load::scenario::Diagnostic;

use crate::lexer::{Language, Token, TokenKind};

/// Result of reading a part of a source. The error is its first mistake.
pub(crate) type Parsed<T> = Result<T, Diagnostic>;

#[derive(Clone, Debug)]
pub(crate) struct Cursor<'t> {
    tokens: &'t [Token],
    /// Index of the next token.
    pub(crate) at: usize,
    language: &'static Language,
    /// Parts that are open.
    pub(crate) depth: usize,
}

impl<'t> Cursor<'t> {
    /// Creates a cursor at the first token, with `depth` parts open. The last token is `End`.
    pub(crate) fn new(tokens: &'t [Token], language: &'static Language, depth: usize) -> Self {
        Self { tokens, at: 0, language, depth }
    }

    /// Returns the next token.
    pub(crate) fn peek(&self) -> &'t Token {
        self.ahead(0)
    }

    /// Returns the token behind so many others, or the end.
    pub(crate) fn ahead(&self, count: usize) -> &'t Token {
        &self.tokens[(self.at + count).min(self.tokens.len() - 1)]
    }

    /// Takes the next token.
    pub(crate) fn next(&mut self) -> &'t Token {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Reports whether no token is left.
    pub(crate) fn is_at_end(&self) -> bool {
        self.peek().kind == TokenKind::End
    }

    /// Returns the end of the token that was taken last.
    pub(crate) fn end_of_last(&self) -> usize {
        let last = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        last.map_or(0, |token| token.span.end)
    }

    pub(crate) fn is_sign(&self, sign: &str) -> bool {
        self.is_sign_ahead(0, sign)
    }

    pub(crate) fn is_sign_ahead(&self, count: usize, sign: &str) -> bool {
        matches!(self.ahead(count).kind, TokenKind::Sign(next) if next == sign)
    }

    /// Returns the next token, if it is a word.
    pub(crate) fn word(&self) -> Option<&'t str> {
        match &self.peek().kind {
            TokenKind::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Takes a sign, if it comes next.
    pub(crate) fn takes(&mut self, sign: &str) -> bool {
        let is_next = self.is_sign(sign);
        self.at += usize::from(is_next);
        is_next
    }

    /// Takes a word, if it comes next.
    pub(crate) fn takes_word(&mut self, word: &str) -> bool {
        let is_next = self.word() == Some(word);
        self.at += usize::from(is_next);
        is_next
    }

    /// Takes a sign. The mistake says that `expected` should be here.
    pub(crate) fn expect(&mut self, sign: &str, expected: &str) -> Parsed<()> {
        if self.takes(sign) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// Returns the mistake of the next token.
    pub(crate) fn unexpected(&self, expected: &str) -> Diagnostic {
        let language = self.language;
        let title = if self.is_at_end() { language.ends_early } else { language.unexpected };
        Diagnostic::new(self.peek().span.clone(), title, format!("expected {expected}"))
    }

    /// Begins a part that may contain others of its kind.
    pub(crate) fn open(&mut self) -> Parsed<()> {
        let (depth_max, title) = self.language.depth_max;
        if self.depth == depth_max {
            let label = format!("at most {depth_max} may be open");
            return Err(Diagnostic::new(self.peek().span.clone(), title, label));
        }
        self.depth += 1;
        Ok(())
    }

    /// Ends a part.
    pub(crate) fn close(&mut self) {
        self.depth -= 1;
    }
}
