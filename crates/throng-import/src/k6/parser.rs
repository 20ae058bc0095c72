//! The parser of the part of JavaScript that is imported. All else is a mistake at its place.

use throng_load::scenario::Diagnostic;

use crate::source::Span;

use super::lexer::{Piece, Token, TokenKind, tokens};
use super::syntax::{Expression, ExpressionKind, Function, Statement, StatementKind};

/// Parses a script.
pub(super) fn parse(source: &str) -> Result<Vec<Statement>, Diagnostic> {
    let mut parser = Parser::new(source, 0..source.len(), 0)?;
    let mut statements = Vec::new();
    while !parser.is_at_end() {
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

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    at: usize,
    end: usize,
    depth: usize,
}

type Parsed<T> = Result<T, Diagnostic>;

impl<'a> Parser<'a> {
    fn new(source: &'a str, part: Span, depth: usize) -> Parsed<Self> {
        let end = part.end;
        Ok(Self { source, tokens: tokens(source, part)?, at: 0, end, depth })
    }

    fn is_at_end(&self) -> bool {
        self.at == self.tokens.len()
    }

    fn span(&self) -> Span {
        self.tokens.get(self.at).map_or(self.end..self.end, |token| token.span.clone())
    }

    /// Returns the end of the last word.
    fn last_end(&self) -> usize {
        let last = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        last.map_or(0, |token| token.span.end)
    }

    fn is_sign(&self, sign: &str) -> bool {
        self.is_sign_at(self.at, sign)
    }

    fn is_sign_at(&self, at: usize, sign: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| match token.kind {
            TokenKind::Sign(is) => is == sign,
            _ => false,
        })
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let is_it = self.is_sign(sign);
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.take_sign(sign) {
            return Ok(());
        }
        let title = if self.is_at_end() { "the script ends here" } else { "this cannot be read" };
        Err(Diagnostic::new(self.span(), title, format!("expected `{sign}`")))
    }

    fn word(&self) -> Option<&str> {
        match self.tokens.get(self.at) {
            Some(Token { kind: TokenKind::Name(name), .. }) => Some(name),
            _ => None,
        }
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_it = self.word() == Some(word);
        self.at += usize::from(is_it);
        is_it
    }

    fn name(&mut self) -> Parsed<String> {
        let Some(name) = self.word().map(str::to_owned) else {
            return Err(Diagnostic::new(self.span(), "this cannot be read", "expected a name"));
        };
        self.at += 1;
        Ok(name)
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEPTH_MAX {
            let label = format!("expected at most {DEPTH_MAX} levels");
            return Err(Diagnostic::new(self.span(), "this is nested too deeply", label));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn statement(&mut self) -> Parsed<Option<Statement>> {
        if self.take_sign(";") {
            return Ok(None);
        }
        self.deeper(|parser| {
            let start = parser.span().start;
            let kind = parser.statement_kind()?;
            parser.take_sign(";");
            Ok(Some(Statement { span: start..parser.last_end(), kind }))
        })
    }

    fn statement_kind(&mut self) -> Parsed<StatementKind> {
        let is_exported = self.take_word("export");
        if is_exported && self.take_word("default") {
            let start = self.span();
            let value = self.expression()?;
            return match value.kind {
                ExpressionKind::Function(function) => {
                    Ok(StatementKind::Function("default".to_owned(), function))
                }
                _ => Err(program(&start)),
            };
        }
        let word = self.word().unwrap_or_default().to_owned();
        match &*word {
            "import" => self.import(),
            "const" | "let" | "var" => {
                self.at += 1;
                let span = self.span();
                if self.is_sign("{") || self.is_sign("[") {
                    return Err(program(&span));
                }
                let name = self.name()?;
                if !self.is_sign("=") {
                    return Err(program(&span));
                }
                self.at += 1;
                Ok(StatementKind::Constant(name, self.expression()?))
            }
            "function"
                if matches!(
                    self.tokens.get(self.at + 1),
                    Some(Token { kind: TokenKind::Name(_), .. })
                ) =>
            {
                self.at += 1;
                let name = self.name()?;
                Ok(StatementKind::Function(name, self.function()?))
            }
            "return" => {
                self.at += 1;
                let is_empty = self.is_sign(";") || self.is_sign("}");
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
        self.at += 1;
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match &token.kind {
                TokenKind::Text(module) => return Ok(StatementKind::Import(module.clone())),
                TokenKind::Name(_) | TokenKind::Sign("{" | "}" | "," | "*") => {}
                _ => break,
            }
        }
        Err(Diagnostic::new(start, "this import has no module", "expected `from 'k6/http'`"))
    }

    /// Parses the parameters and the body of a function.
    fn function(&mut self) -> Parsed<Function> {
        self.take_sign("*").then_some(()).map_or(Ok(()), |()| Err(program(&self.span())))?;
        self.expect("(")?;
        let mut parameters = Vec::new();
        while !self.take_sign(")") {
            parameters.push(self.name()?);
            if !self.is_sign(")") {
                self.expect(",")?;
            }
        }
        Ok(Function { parameters, body: self.body()? })
    }

    /// Parses the body of a function. If that is more than steps, skips it: the function may be one
    /// that no user needs.
    fn body(&mut self) -> Parsed<Result<Vec<Statement>, Diagnostic>> {
        let begin = self.at;
        let refusal = match self.deeper(Self::block) {
            Ok(body) => return Ok(Ok(body)),
            Err(refusal) => refusal,
        };
        self.at = begin;
        let mut open = 0;
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match token.kind {
                TokenKind::Sign("{") => open += 1,
                TokenKind::Sign("}") => open -= 1,
                _ => {}
            }
            if open == 0 {
                return Ok(Err(refusal));
            }
        }
        Err(refusal)
    }

    fn block(&mut self) -> Parsed<Vec<Statement>> {
        self.expect("{")?;
        let mut body = Vec::new();
        while !self.take_sign("}") {
            if self.is_at_end() {
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
            if parser.is_sign("?") || parser.is_sign("++") || parser.is_sign("--") {
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
        let Some(Token { kind: TokenKind::Sign(sign), .. }) = self.tokens.get(self.at) else {
            return None;
        };
        let is_operator = operators.contains(sign);
        self.at += usize::from(is_operator);
        is_operator.then_some(*sign)
    }

    /// Parses a value with its members and calls.
    fn operand(&mut self) -> Parsed<Expression> {
        let start = self.span().start;
        self.take_word("new");
        let mut value = self.atom()?;
        let mut links = 0;
        loop {
            self.check_chain(&mut links)?;
            if self.take_sign(".") || self.take_sign("?.") {
                let name = self.name()?;
                value = Expression::member(value, name);
            } else if self.take_sign("[") {
                let index = self.expression()?;
                self.expect("]")?;
                value = match &index.kind {
                    ExpressionKind::Text(name) => Expression::member(value, name.clone()),
                    ExpressionKind::Number(number) => Expression::member(value, number.to_string()),
                    _ => Expression::item_of(value, index),
                };
            } else if let (Some("http.url"), Some(TokenKind::Template(_))) =
                (value.path().as_deref(), self.tokens.get(self.at).map(|token| &token.kind))
            {
                let text = self.atom()?;
                value = Expression::call_of(value, vec![text]);
            } else if self.is_sign("(") {
                let arguments = self.items("(", ")")?;
                value = Expression::call_of(value, arguments);
            } else {
                return Ok(value);
            }
            value.span = start..self.last_end();
        }
    }

    /// Parses a list between two brackets.
    fn items(&mut self, open: &str, close: &str) -> Parsed<Vec<Expression>> {
        self.expect(open)?;
        let mut items = Vec::new();
        while !self.take_sign(close) {
            items.push(self.expression()?);
            if !self.is_sign(close) {
                self.expect(",")?;
            }
        }
        Ok(items)
    }

    fn atom(&mut self) -> Parsed<Expression> {
        let Some(token) = self.tokens.get(self.at).cloned() else {
            return Err(Diagnostic::new(self.span(), "the script ends here", "expected a value"));
        };
        let start = token.span.start;
        let kind = match token.kind {
            TokenKind::Number(number) => self.literal(ExpressionKind::Number(number)),
            TokenKind::Text(text) => self.literal(ExpressionKind::Text(text)),
            TokenKind::Template(pieces) => {
                self.at += 1;
                self.template(&token.span, &pieces)?
            }
            TokenKind::Sign("{") => self.object()?,
            TokenKind::Sign("[") => ExpressionKind::List(self.items("[", "]")?),
            TokenKind::Sign("(") if self.is_arrow() => self.arrow()?,
            TokenKind::Sign("(") => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                inner.kind
            }
            TokenKind::Sign("-") => {
                self.at += 1;
                let Some(Token { kind: TokenKind::Number(number), .. }) = self.tokens.get(self.at)
                else {
                    return Err(program(&token.span));
                };
                let number = -number;
                self.literal(ExpressionKind::Number(number))
            }
            TokenKind::Sign(_) => return Err(program(&token.span)),
            TokenKind::Name(name) => match &*name {
                "true" | "false" => self.literal(ExpressionKind::Truth(name == "true")),
                "null" | "undefined" => self.literal(ExpressionKind::Null),
                "function" => {
                    self.at += 1;
                    if self.word().is_some() {
                        self.at += 1;
                    }
                    ExpressionKind::Function(self.function()?)
                }
                _ if self.is_arrow() => self.arrow()?,
                _ if KEYWORDS.contains(&&*name) => return Err(program(&token.span)),
                _ => self.literal(ExpressionKind::Name(name)),
            },
        };
        Ok(Expression { span: start..self.last_end(), kind })
    }

    fn literal(&mut self, kind: ExpressionKind) -> ExpressionKind {
        self.at += 1;
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
                    let mut parser = Parser::new(self.source, part.clone(), self.depth)?;
                    let value = parser.expression()?;
                    if !parser.is_at_end() {
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
        let is_sign = |at: usize, sign: &str| self.is_sign_at(at, sign);
        if !is_sign(self.at, "(") {
            return is_sign(self.at + 1, "=>");
        }
        let mut at = self.at + 1;
        while let Some(Token { kind: TokenKind::Name(_) | TokenKind::Sign(","), .. }) =
            self.tokens.get(at)
        {
            at += 1;
        }
        is_sign(at, ")") && is_sign(at + 1, "=>")
    }

    fn arrow(&mut self) -> Parsed<ExpressionKind> {
        let mut parameters = Vec::new();
        if self.take_sign("(") {
            while !self.take_sign(")") {
                if !self.take_sign(",") {
                    parameters.push(self.name()?);
                }
            }
        } else {
            parameters.push(self.name()?);
        }
        self.expect("=>")?;
        let body = if self.is_sign("{") {
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
        while !self.take_sign("}") {
            let Some(token) = self.tokens.get(self.at).cloned() else {
                self.expect("}")?;
                break;
            };
            let key = match &token.kind {
                TokenKind::Name(name) => name.clone(),
                TokenKind::Text(text) => text.clone(),
                TokenKind::Number(number) => number.to_string(),
                _ => return Err(program(&token.span)),
            };
            self.at += 1;
            let value = if self.take_sign(":") {
                self.expression()?
            } else {
                Expression { span: token.span.clone(), kind: ExpressionKind::Name(key.clone()) }
            };
            members.push((key, value));
            if !self.is_sign("}") {
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

/// The most levels of values and blocks in one another.
const DEPTH_MAX: usize = 64;

/// The most operators or members in one chain: each is one level of a tree.
const CHAIN_LINKS_MAX: usize = 2_500;
