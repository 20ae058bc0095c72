//! benchDL: calls, with blocks of statements below them by their indentation.

mod lexer;

use throng_load::scenario::Diagnostic;

use super::tree::{Call, CallOption, Expr, ExprKind, Tree, is_unit};
use crate::cursor::{Cursor, Parsed};
use crate::lexer::{TokenKind, tokens};
use lexer::BENCH_DL;

/// Reads a file. `None` after a mistake, which is in `mistakes` then: one for each statement of the
/// file that cannot be read.
pub(super) fn parse(source: &str, mistakes: &mut Vec<Diagnostic>) -> Option<Tree> {
    let (tokens, comments) = match tokens(source, &(0..source.len()), &BENCH_DL) {
        Ok(lexed) => lexed,
        Err(mistake) => {
            mistakes.push(mistake);
            return None;
        }
    };
    let mut parser = Parser { tokens: Cursor::new(&tokens, &BENCH_DL, 0) };
    let (mut statements, before) = (Vec::new(), mistakes.len());
    while !parser.tokens.is_at_end() {
        let begin = parser.tokens.at;
        match parser.top_statement() {
            Ok(statement) => statements.push(statement),
            Err(mistake) => {
                mistakes.push(mistake);
                parser.skip_to_top(begin);
            }
        }
    }
    (mistakes.len() == before).then_some(Tree { statements, comments })
}

struct Parser<'t> {
    tokens: Cursor<'t>,
}

impl Parser<'_> {
    /// Goes to the next line that is not indented, behind the token `begin`.
    fn skip_to_top(&mut self, begin: usize) {
        while self.tokens.at == begin || self.tokens.peek().column != Some(0) {
            if self.tokens.is_at_end() {
                return;
            }
            self.tokens.next();
        }
    }

    fn top_statement(&mut self) -> Parsed<Expr> {
        let token = self.tokens.peek();
        if token.column.is_some_and(|column| column > 0) {
            let label = "expected it at the beginning of its line";
            let title = "this statement is indented, and nothing is above it";
            return Err(Diagnostic::new(token.span.clone(), title, label));
        }
        self.tokens.depth = 0;
        self.statement(token.column.unwrap_or(0))
    }

    /// Reads a call at column `indent`, with the block below it.
    fn statement(&mut self, indent: usize) -> Parsed<Expr> {
        let begin = self.tokens.peek().span.clone();
        let mut statement = self.value()?;
        let ExprKind::Call(call) = &mut statement.kind else {
            let title = "this is not a statement";
            return Err(Diagnostic::new(begin, title, "expected a call such as `pool(...)`"));
        };
        self.tokens.takes(":");
        match self.tokens.peek().column {
            None => return Err(self.tokens.unexpected("the next statement in a line of its own")),
            Some(inner) if inner > indent => {
                self.tokens.open()?;
                call.body = self.block(inner)?;
                self.tokens.close();
            }
            Some(_) => {}
        }
        Ok(statement)
    }

    /// Reads the statements at column `indent`.
    fn block(&mut self, indent: usize) -> Parsed<Vec<Expr>> {
        let mut statements = Vec::new();
        while !self.tokens.is_at_end() {
            match self.tokens.peek().column {
                Some(column) if column == indent => statements.push(self.statement(indent)?),
                Some(column) if column > indent => {
                    let label = format!("expected {indent} columns, found {column}");
                    let title = "this line is indented more than those above it";
                    return Err(Diagnostic::new(self.tokens.peek().span.clone(), title, label));
                }
                _ => break,
            }
        }
        Ok(statements)
    }

    /// Reads operands with `and` and `or` between them, from left to right.
    fn condition(&mut self) -> Parsed<Expr> {
        let mut left = self.comparison()?;
        while let TokenKind::Word(word) = &self.tokens.peek().kind {
            if word != "and" && word != "or" {
                break;
            }
            self.tokens.next();
            let right = self.comparison()?;
            let span = left.span.start..right.span.end;
            left = Expr { span, kind: ExprKind::Operation(word.clone(), vec![left, right]) };
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Parsed<Expr> {
        let begin = self.tokens.peek().span.start;
        if self.tokens.peek().kind == TokenKind::Word("not".to_owned()) {
            self.tokens.next();
            self.tokens.open()?;
            let operand = self.comparison()?;
            self.tokens.close();
            let span = begin..operand.span.end;
            return Ok(Expr { span, kind: ExprKind::Operation("not".to_owned(), vec![operand]) });
        }
        let left = self.value()?;
        let TokenKind::Sign(sign) = self.tokens.peek().kind else { return Ok(left) };
        let Some((_, operator)) = COMPARISONS.iter().find(|(written, _)| *written == sign) else {
            return Ok(left);
        };
        self.tokens.next();
        let right = self.value()?;
        let span = begin..right.span.end;
        Ok(Expr { span, kind: ExprKind::Operation((*operator).to_owned(), vec![left, right]) })
    }

    /// Reads a value, with its unit.
    fn value(&mut self) -> Parsed<Expr> {
        let inner = self.primary()?;
        if let TokenKind::Word(unit) = &self.tokens.peek().kind
            && self.tokens.peek().column.is_none()
            && is_unit(unit)
        {
            let span = inner.span.start..self.tokens.next().span.end;
            return Ok(Expr { span, kind: ExprKind::Quantity(Box::new(inner), unit.clone()) });
        }
        Ok(inner)
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let token = self.tokens.peek();
        let begin = token.span.start;
        let kind = match &token.kind {
            TokenKind::Number(value) => {
                self.tokens.next();
                ExprKind::Number(*value)
            }
            TokenKind::Text(text) => {
                self.tokens.next();
                ExprKind::Text(text.clone())
            }
            TokenKind::Word(name) => {
                self.tokens.next();
                if !self.tokens.takes("(") {
                    ExprKind::Word(name.clone())
                } else {
                    self.tokens.open()?;
                    let mut call = Call { name: name.clone(), ..Call::default() };
                    self.arguments(&mut call)?;
                    self.tokens.close();
                    ExprKind::Call(Box::new(call))
                }
            }
            TokenKind::Sign("[") => {
                self.tokens.next();
                self.tokens.open()?;
                let mut items = Vec::new();
                while !self.tokens.takes("]") {
                    items.push(self.condition()?);
                    if !self.tokens.takes(",") {
                        self.tokens.expect("]", "`,` or `]`")?;
                        break;
                    }
                }
                self.tokens.close();
                ExprKind::List(items)
            }
            TokenKind::Sign("(") => {
                self.tokens.next();
                self.tokens.open()?;
                let inner = self.condition()?;
                self.tokens.expect(")", "`)`")?;
                self.tokens.close();
                return Ok(inner);
            }
            _ => return Err(self.tokens.unexpected("a call, a number, a string or a list")),
        };
        Ok(Expr { span: begin..self.tokens.end_of_last().max(begin), kind })
    }

    /// Reads the arguments of a call, behind its `(`.
    fn arguments(&mut self, call: &mut Call) -> Parsed<()> {
        while !self.tokens.takes(")") {
            let is_key = self.tokens.is_sign_ahead(1, "=");
            let token = self.tokens.peek();
            match &token.kind {
                TokenKind::Word(key) | TokenKind::Text(key) if is_key => {
                    self.tokens.at += 2;
                    let value = self.condition()?;
                    let span = token.span.start..value.span.end;
                    call.options.push(CallOption { span, key: key.clone(), value });
                }
                _ => call.arguments.push(self.condition()?),
            }
            if !self.tokens.takes(",") {
                self.tokens.expect(")", "`,` or `)`")?;
                break;
            }
        }
        Ok(())
    }
}

/// Comparisons, and the names that Erlang's terms have for them.
const COMPARISONS: [(&str, &str); 8] = [
    ("<", "lt"),
    (">", "gt"),
    ("<=", "lte"),
    (">=", "gte"),
    ("==", "eq"),
    ("!=", "ne"),
    ("/=", "ne"),
    ("<>", "ne"),
];
