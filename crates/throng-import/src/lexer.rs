//! Tokens of the languages in which the files of other tools are written.

use throng_load::scenario::Diagnostic;

use crate::comments::Comment;
use crate::source::Span;

/// What the tokens of a language look like.
#[derive(Debug)]
pub(crate) struct Language {
    /// Begins a comment, which ends with its line.
    pub(crate) comment: &'static str,
    /// The ends of a comment that may go over several lines.
    pub(crate) long_comment: Option<(&'static str, &'static str)>,
    /// True if the end of a line is a token.
    pub(crate) has_lines: bool,
    /// Longer signs come before those that they begin with.
    pub(crate) signs: &'static [&'static str],
    /// Reads the token that begins with this character; `None` if it is a sign or no token.
    pub(crate) read: fn(&mut Scanner<'_>, char) -> Result<Option<TokenKind>, Diagnostic>,
    /// Title and label of the mistake where no token begins with this character.
    pub(crate) unknown: fn(char) -> (String, &'static str),
    /// Title of the mistake of a token that may not stand in its place.
    pub(crate) unexpected: &'static str,
    /// Title of the mistake where the source ends too early.
    pub(crate) ends_early: &'static str,
    /// Parts that may be open at once, and the title of the mistake where more are.
    pub(crate) depth_max: (usize, &'static str),
}

/// A token, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) span: Span,
    pub(crate) kind: TokenKind,
    /// The column of the first token of a line, from 0.
    pub(crate) column: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    /// A name, or a word of the language.
    Word(String),
    /// An atom of Erlang or Elixir.
    Atom(String),
    /// `name:` of Elixir.
    Key(String),
    Number(f64),
    Integer(i64),
    Text(String),
    /// A text with expressions in it.
    Template(Vec<Piece>),
    Sign(&'static str),
    /// The end of a line.
    Line,
    /// The end of the source.
    End,
}

/// A part of a text with expressions in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    /// Where the expression stands.
    Expression(Span),
}

/// Returns the tokens in a part of a source, the last one `End`, and the comments between them.
pub(crate) fn tokens(
    source: &str,
    part: &Span,
    language: &Language,
) -> Result<(Vec<Token>, Vec<Comment>), Diagnostic> {
    let mut scanner = Scanner { source: &source[..part.end], at: part.start, begin: part.start };
    let (mut tokens, mut comments) = (Vec::<Token>::new(), Vec::new());
    let mut line_begin = Some(part.start);
    while let Some(first) = scanner.rest().chars().next() {
        scanner.begin = scanner.at;
        let is_line = first == '\n' && language.has_lines;
        let kind = if scanner.skips_comment(language, &mut comments)? {
            continue;
        } else if first.is_whitespace() && !is_line || first == '\u{feff}' {
            scanner.at += first.len_utf8();
            None
        } else {
            Some(scanner.token(first, language)?)
        };
        let column = line_begin.take_if(|_| kind.is_some()).map(|begin| scanner.begin - begin);
        if first == '\n' {
            line_begin = Some(scanner.at);
        }
        let is_again = |last: &Token| last.kind == TokenKind::Line;
        match kind {
            Some(TokenKind::Line) if tokens.last().is_none_or(is_again) => {}
            Some(kind) => tokens.push(Token { span: scanner.span(), kind, column }),
            None => {}
        }
    }
    let end = TokenKind::End;
    tokens.push(Token { span: part.end..part.end, kind: end, column: Some(0) });
    Ok((tokens, comments))
}

/// A place in a source, at which the characters of a token are taken.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    source: &'a str,
    pub(crate) at: usize,
    /// Where the present token begins.
    begin: usize,
}

impl<'a> Scanner<'a> {
    /// Returns what follows.
    pub(crate) fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    /// Returns the place of the token so far.
    pub(crate) fn span(&self) -> Span {
        self.begin..self.at
    }

    /// Returns the token so far, as it is written.
    pub(crate) fn text(&self) -> &'a str {
        &self.source[self.span()]
    }

    /// Takes the next character.
    pub(crate) fn next(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Takes a text, if it comes next.
    pub(crate) fn takes(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    /// Takes the characters that follow and fit.
    pub(crate) fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|next| !fits(next)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Takes a point and the digits behind it, if there is one.
    pub(crate) fn takes_fraction(&mut self, is_digit: fn(char) -> bool) -> bool {
        let behind = self.rest().strip_prefix('.');
        let has_some = behind.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if has_some {
            self.at += 1;
            self.take_while(is_digit);
        }
        has_some
    }

    /// Returns the mistake of the token so far.
    pub(crate) fn mistake(&self, title: impl Into<String>, label: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.span(), title, label)
    }

    /// Reads a text from here up to the next `quote`. `None` if it has no end.
    pub(crate) fn template(
        &mut self,
        quote: char,
        rules: &TextRules,
    ) -> Result<Option<Vec<Piece>>, Diagnostic> {
        self.next();
        let (mut pieces, mut text) = (Vec::new(), String::new());
        loop {
            if rules.expression.is_some_and(|begin| self.takes(begin)) {
                let Some(length) = self.rest().find('}') else { return Ok(None) };
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(Piece::Expression(self.at..self.at + length));
                self.at += length + 1;
                continue;
            }
            match self.next() {
                Some('\\') => text.extend((rules.escaped)(self)?),
                Some(end) if end == quote => {
                    pieces.push(Piece::Text(text));
                    return Ok(Some(pieces));
                }
                Some('\n') if rules.is_one_line => {
                    self.at -= 1;
                    return Ok(None);
                }
                Some(other) => text.push(other),
                None => return Ok(None),
            }
        }
    }

    /// Reads a text as [`Self::template`] does, and returns it without its expressions.
    pub(crate) fn quoted(
        &mut self,
        quote: char,
        rules: &TextRules,
    ) -> Result<Option<String>, Diagnostic> {
        Ok(self.template(quote, rules)?.map(|pieces| literal(&pieces)))
    }

    /// Skips a comment, if one begins here.
    fn skips_comment(
        &mut self,
        language: &Language,
        comments: &mut Vec<Comment>,
    ) -> Result<bool, Diagnostic> {
        let rest = self.rest();
        if rest.starts_with(language.comment) {
            let line = rest.lines().next().unwrap_or_default();
            let text = line.trim_start_matches(&language.comment[..1]).trim().to_owned();
            if !line.starts_with("#!") {
                comments.push(Comment { offset: self.at, text });
            }
            self.at += line.len();
            return Ok(true);
        }
        let Some((_, end)) = language.long_comment.filter(|(begin, _)| self.takes(begin)) else {
            return Ok(false);
        };
        let Some(length) = self.rest().find(end) else {
            return Err(self.mistake("a comment has no end", format!("expected `{end}`")));
        };
        self.at += length + end.len();
        Ok(true)
    }

    fn token(&mut self, first: char, language: &Language) -> Result<TokenKind, Diagnostic> {
        if let Some(kind) = (language.read)(self, first)? {
            return Ok(kind);
        }
        if let Some(sign) = language.signs.iter().find(|sign| self.takes(sign)) {
            return Ok(TokenKind::Sign(sign));
        }
        self.next();
        let (title, label) = (language.unknown)(first);
        Err(self.mistake(title, label))
    }
}

/// What may stand between two quotes.
#[derive(Debug)]
pub(crate) struct TextRules {
    /// Begins an expression, which goes on to the next `}`.
    pub(crate) expression: Option<&'static str>,
    /// True if the text ends in the line in which it begins.
    pub(crate) is_one_line: bool,
    /// Reads what follows a backslash, and returns the character that the two stand for.
    pub(crate) escaped: fn(&mut Scanner<'_>) -> Result<Option<char>, Diagnostic>,
}

/// Returns the text of the pieces that are no expressions.
pub(crate) fn literal(pieces: &[Piece]) -> String {
    let text = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Expression(_) => String::new(),
    };
    pieces.iter().map(text).collect()
}
