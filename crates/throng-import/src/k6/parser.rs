//! The parser of the part of JavaScript that is imported. All else is a mistake at its place.

use throng_load::scenario::Diagnostic;

use super::lexer::{JAVASCRIPT, tokens};
use super::syntax::{Expression, ExpressionKind, Function, Statement, StatementKind};
use crate::cursor::{Cursor, Parsed};
use crate::lexer::{Piece, TokenKind};
use crate::source::Span;

/// Parses a script.
pub(super) fn parse(source: &str) -> Result<Vec<Statement>, Diagnostic> {
    let tokens = tokens(source, &(0..source.len()))?;
    let mut parser = Parser { source, tokens: Cursor::new(&tokens, &JAVASCRIPT, 0) };
    let mut statements = Vec::new();
    while !parser.tokens.is_at_end() {
        statements.extend(parser.statement()?);
    }
    Ok(statements)
}

/// Returns the mistake of a part of a script that is not imported.
pub(super) fn program(span: &Span) -> Diagnostic {
    let title = "k6 scripts are programs, and this part is more than a list of steps";
    let label = "write this as a step of a scenario";
    Diagnostic::new(span.clone(), title, label).help(
        "throng imports `options`, and default functions that consist of requests, checks, sleeps \
         and WebSocket sessions with literals; docs/importing/k6.md has all of it",
    )
}

struct Parser<'s, 't> {
    source: &'s str,
    tokens: Cursor<'t>,
}

impl Parser<'_, '_> {
    fn span(&self) -> Span {
        self.tokens.peek().span.clone()
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        self.tokens.expect(sign, &format!("`{sign}`"))
    }

    fn name(&mut self) -> Parsed<String> {
        let Some(name) = self.tokens.word() else { return Err(self.tokens.unexpected("a name")) };
        self.tokens.next();
        Ok(name.to_owned())
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.tokens.open()?;
        let parsed = parse(self);
        self.tokens.close();
        parsed
    }

    fn statement(&mut self) -> Parsed<Option<Statement>> {
        if self.tokens.takes(";") {
            return Ok(None);
        }
        self.deeper(|parser| {
            let start = parser.span().start;
            let kind = parser.statement_kind()?;
            parser.tokens.takes(";");
            Ok(Some(Statement { span: start..parser.tokens.end_of_last(), kind }))
        })
    }

    fn statement_kind(&mut self) -> Parsed<StatementKind> {
        let is_exported = self.tokens.takes_word("export");
        if is_exported && self.tokens.takes_word("default") {
            let start = self.span();
            let value = self.expression()?;
            return match value.kind {
                ExpressionKind::Function(function) => {
                    Ok(StatementKind::Function("default".to_owned(), function))
                }
                _ => Err(program(&start)),
            };
        }
        let word = self.tokens.word().unwrap_or_default().to_owned();
        match &*word {
            "import" => self.import(),
            "const" | "let" | "var" => {
                self.tokens.next();
                let span = self.span();
                if self.tokens.is_sign("{") || self.tokens.is_sign("[") {
                    return Err(program(&span));
                }
                let name = self.name()?;
                if !self.tokens.is_sign("=") {
                    return Err(program(&span));
                }
                self.tokens.next();
                Ok(StatementKind::Constant(name, self.expression()?))
            }
            "function" if matches!(self.tokens.ahead(1).kind, TokenKind::Word(_)) => {
                self.tokens.next();
                let name = self.name()?;
                Ok(StatementKind::Function(name, self.function()?))
            }
            "return" => {
                self.tokens.next();
                let is_empty = self.tokens.is_sign(";") || self.tokens.is_sign("}");
                let value = if is_empty { None } else { Some(self.expression()?) };
                Ok(StatementKind::Return(value))
            }
            _ if KEYWORDS.contains(&&*word) => Err(program(&self.span())),
            _ => Ok(StatementKind::Expression(self.expression()?)),
        }
    }

    /// Parses `import x, { y } from 'z'`. Its names are those of k6's documentation.
    fn import(&mut self) -> Parsed<StatementKind> {
        let start = self.span();
        self.tokens.next();
        loop {
            match &self.tokens.next().kind {
                TokenKind::Text(module) => return Ok(StatementKind::Import(module.clone())),
                TokenKind::Word(_) | TokenKind::Sign("{" | "}" | "," | "*") => {}
                _ => break,
            }
        }
        Err(Diagnostic::new(start, "this import has no module", "expected `from 'k6/http'`"))
    }

    /// Parses the parameters and the body of a function.
    fn function(&mut self) -> Parsed<Function> {
        self.tokens.takes("*").then_some(()).map_or(Ok(()), |()| Err(program(&self.span())))?;
        self.expect("(")?;
        let mut parameters = Vec::new();
        while !self.tokens.takes(")") {
            parameters.push(self.name()?);
            if !self.tokens.is_sign(")") {
                self.expect(",")?;
            }
        }
        Ok(Function { parameters, body: self.body()? })
    }

    /// Parses the body of a function. If that is more than steps, skips it: the function may be one
    /// that no user needs.
    fn body(&mut self) -> Parsed<Result<Vec<Statement>, Diagnostic>> {
        let begin = self.tokens.at;
        let refusal = match self.deeper(Self::block) {
            Ok(body) => return Ok(Ok(body)),
            Err(refusal) => refusal,
        };
        self.tokens.at = begin;
        let mut open = 0;
        loop {
            match self.tokens.next().kind {
                TokenKind::Sign("{") => open += 1,
                TokenKind::Sign("}") => open -= 1,
                TokenKind::End => return Err(refusal),
                _ => {}
            }
            if open == 0 {
                return Ok(Err(refusal));
            }
        }
    }

    fn block(&mut self) -> Parsed<Vec<Statement>> {
        self.expect("{")?;
        let mut body = Vec::new();
        while !self.tokens.takes("}") {
            if self.tokens.is_at_end() {
                self.expect("}")?;
            }
            body.extend(self.statement()?);
        }
        Ok(body)
    }

    fn expression(&mut self) -> Parsed<Expression> {
        self.deeper(|parser| {
            let mut left = parser.comparison()?;
            let mut links = 0;
            while let Some(sign) = parser.operator(&["&&", "||", "??", "="]) {
                parser.check_chain(&mut links)?;
                left = Expression::binary(left, sign, parser.comparison()?);
            }
            if parser.tokens.is_sign("?")
                || parser.tokens.is_sign("++")
                || parser.tokens.is_sign("--")
            {
                return Err(program(&(left.span.start..parser.span().end)));
            }
            Ok(left)
        })
    }

    /// Parses operands between operators of one rank. A chain with different ones is refused where
    /// it matters.
    fn comparison(&mut self) -> Parsed<Expression> {
        let mut links = 0;
        let mut left = self.operand()?;
        while let Some(sign) = self.operator(&OPERATORS) {
            self.check_chain(&mut links)?;
            left = Expression::binary(left, sign, self.operand()?);
        }
        Ok(left)
    }

    /// Counts a link of a chain of operators or members. Reports a chain that is longer than any
    /// person writes.
    fn check_chain(&self, links: &mut usize) -> Parsed<()> {
        *links += 1;
        if *links <= CHAIN_LINKS_MAX {
            return Ok(());
        }
        let label = format!("expected at most {CHAIN_LINKS_MAX} operators or members");
        Err(Diagnostic::new(self.span(), "this expression is too long", label))
    }

    fn operator(&mut self, operators: &[&str]) -> Option<&'static str> {
        let TokenKind::Sign(sign) = self.tokens.peek().kind else { return None };
        let is_operator = operators.contains(&sign);
        self.tokens.at += usize::from(is_operator);
        is_operator.then_some(sign)
    }

    /// Parses a value with its members and calls.
    fn operand(&mut self) -> Parsed<Expression> {
        let start = self.span().start;
        self.tokens.takes_word("new");
        let mut value = self.atom()?;
        let mut links = 0;
        loop {
            self.check_chain(&mut links)?;
            if self.tokens.takes(".") || self.tokens.takes("?.") {
                let name = self.name()?;
                value = Expression::member(value, name);
            } else if self.tokens.takes("[") {
                let index = self.expression()?;
                self.expect("]")?;
                value = match &index.kind {
                    ExpressionKind::Text(name) => Expression::member(value, name.clone()),
                    ExpressionKind::Number(number) => Expression::member(value, number.to_string()),
                    _ => Expression::item_of(value, index),
                };
            } else if let (Some("http.url"), TokenKind::Template(_)) =
                (value.path().as_deref(), &self.tokens.peek().kind)
            {
                let text = self.atom()?;
                value = Expression::call_of(value, vec![text]);
            } else if self.tokens.is_sign("(") {
                let arguments = self.items("(", ")")?;
                value = Expression::call_of(value, arguments);
            } else {
                return Ok(value);
            }
            value.span = start..self.tokens.end_of_last();
        }
    }

    /// Parses a list between two brackets.
    fn items(&mut self, open: &str, close: &str) -> Parsed<Vec<Expression>> {
        self.expect(open)?;
        let mut items = Vec::new();
        while !self.tokens.takes(close) {
            items.push(self.expression()?);
            if !self.tokens.is_sign(close) {
                self.expect(",")?;
            }
        }
        Ok(items)
    }

    fn atom(&mut self) -> Parsed<Expression> {
        let token = self.tokens.peek();
        let start = token.span.start;
        let kind = match &token.kind {
            TokenKind::End => return Err(self.tokens.unexpected("a value")),
            TokenKind::Number(number) => self.literal(ExpressionKind::Number(*number)),
            TokenKind::Text(text) => self.literal(ExpressionKind::Text(text.clone())),
            TokenKind::Template(pieces) => {
                self.tokens.next();
                self.template(&token.span, pieces)?
            }
            TokenKind::Sign("{") => self.object()?,
            TokenKind::Sign("[") => ExpressionKind::List(self.items("[", "]")?),
            TokenKind::Sign("(") if self.is_arrow() => self.arrow()?,
            TokenKind::Sign("(") => {
                self.tokens.next();
                let inner = self.expression()?;
                self.expect(")")?;
                inner.kind
            }
            TokenKind::Sign("-") => {
                self.tokens.next();
                let TokenKind::Number(number) = self.tokens.peek().kind else {
                    return Err(program(&token.span));
                };
                self.literal(ExpressionKind::Number(-number))
            }
            TokenKind::Word(name) => match &**name {
                "true" | "false" => self.literal(ExpressionKind::Truth(name == "true")),
                "null" | "undefined" => self.literal(ExpressionKind::Null),
                "function" => {
                    self.tokens.next();
                    if self.tokens.word().is_some() {
                        self.tokens.next();
                    }
                    ExpressionKind::Function(self.function()?)
                }
                _ if self.is_arrow() => self.arrow()?,
                _ if KEYWORDS.contains(&&**name) => return Err(program(&token.span)),
                _ => self.literal(ExpressionKind::Name(name.clone())),
            },
            _ => return Err(program(&token.span)),
        };
        Ok(Expression { span: start..self.tokens.end_of_last(), kind })
    }

    fn literal(&mut self, kind: ExpressionKind) -> ExpressionKind {
        self.tokens.next();
        kind
    }

    fn template(&mut self, span: &Span, pieces: &[Piece]) -> Parsed<ExpressionKind> {
        let mut parts = Vec::new();
        for piece in pieces {
            parts.push(match piece {
                Piece::Text(text) => {
                    let kind = ExpressionKind::Text(text.clone());
                    Expression { span: span.clone(), kind }
                }
                Piece::Expression(part) => {
                    let words = tokens(self.source, part)?;
                    let words = Cursor::new(&words, &JAVASCRIPT, self.tokens.depth);
                    let mut parser = Parser { source: self.source, tokens: words };
                    let value = parser.expression()?;
                    if !parser.tokens.is_at_end() {
                        return Err(program(&parser.span()));
                    }
                    value
                }
            });
        }
        Ok(ExpressionKind::Template(parts))
    }

    /// Reports whether an arrow function begins here: `x =>`, `(x, y) =>`.
    fn is_arrow(&self) -> bool {
        if !self.tokens.is_sign("(") {
            return self.tokens.is_sign_ahead(1, "=>");
        }
        let mut count = 1;
        while let TokenKind::Word(_) | TokenKind::Sign(",") = self.tokens.ahead(count).kind {
            count += 1;
        }
        self.tokens.is_sign_ahead(count, ")") && self.tokens.is_sign_ahead(count + 1, "=>")
    }

    fn arrow(&mut self) -> Parsed<ExpressionKind> {
        let mut parameters = Vec::new();
        if self.tokens.takes("(") {
            while !self.tokens.takes(")") {
                if !self.tokens.takes(",") {
                    parameters.push(self.name()?);
                }
            }
        } else {
            parameters.push(self.name()?);
        }
        self.expect("=>")?;
        let body = if self.tokens.is_sign("{") {
            self.body()?
        } else {
            let value = self.expression()?;
            let span = value.span.clone();
            Ok(vec![Statement { span, kind: StatementKind::Return(Some(value)) }])
        };
        Ok(ExpressionKind::Function(Function { parameters, body }))
    }

    fn object(&mut self) -> Parsed<ExpressionKind> {
        self.expect("{")?;
        let mut members = Vec::new();
        while !self.tokens.takes("}") {
            let token = self.tokens.peek();
            let key = match &token.kind {
                TokenKind::End => return Err(self.tokens.unexpected("`}`")),
                TokenKind::Word(name) => name.clone(),
                TokenKind::Text(text) => text.clone(),
                TokenKind::Number(number) => number.to_string(),
                _ => return Err(program(&token.span)),
            };
            self.tokens.next();
            let value = if self.tokens.takes(":") {
                self.expression()?
            } else {
                Expression { span: token.span.clone(), kind: ExpressionKind::Name(key.clone()) }
            };
            members.push((key, value));
            if !self.tokens.is_sign("}") {
                self.expect(",")?;
            }
        }
        Ok(ExpressionKind::Object(members))
    }
}

/// Words that begin what is not imported.
const KEYWORDS: [&str; 18] = [
    "if", "else", "for", "while", "do", "switch", "try", "throw", "class", "async", "await",
    "yield", "delete", "typeof", "with", "break", "continue", "debugger",
];

const OPERATORS: [&str; 13] =
    ["+", "-", "*", "/", "%", "===", "!==", "==", "!=", "<", "<=", ">", ">="];

/// The most operators or members in one chain: each is one level of a tree.
const CHAIN_LINKS_MAX: usize = 2_500;
