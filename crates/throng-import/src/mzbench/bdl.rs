//! benchDL: calls, with blocks of statements below them by their indentation.

mod lexer;

use throng_load::scenario::Diagnostic;

use super::tree::{Call, CallOption, Expr, ExprKind, Tree, is_unit};
use lexer::{Token, TokenKind, tokens};

/// Reads a file. `None` after a mistake, which is in `mistakes` then: one for each statement of the
/// file that cannot be read.
pub(super) fn parse(source: &str, mistakes: &mut Vec<Diagnostic>) -> Option<Tree> {
    let (tokens, comments) = match tokens(source) {
        Ok(lexed) => lexed,
        Err(mistake) => {
            mistakes.push(mistake);
            return None;
        }
    };
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let (mut statements, before) = (Vec::new(), mistakes.len());
    while parser.peek().kind != TokenKind::End {
        let begin = parser.at;
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

type Parsed<T> = Result<T, Diagnostic>;

struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    /// Calls, lists and blocks that are open.
    depth: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> &'t Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> &'t Token {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Takes a sign, if it comes next.
    fn takes(&mut self, sign: &str) -> bool {
        let is_next = matches!(self.peek().kind, TokenKind::Sign(next) if next == sign);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, sign: &str, expected: &str) -> Parsed<()> {
        if self.takes(sign) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn unexpected(&self, expected: &str) -> Diagnostic {
        let title = "this cannot be read";
        Diagnostic::new(self.peek().span.clone(), title, format!("expected {expected}"))
    }

    /// Goes to the next line that is not indented, behind the token `begin`.
    fn skip_to_top(&mut self, begin: usize) {
        while self.at == begin || self.peek().indent != Some(0) {
            if self.peek().kind == TokenKind::End {
                return;
            }
            self.next();
        }
    }

    fn top_statement(&mut self) -> Parsed<Expr> {
        let token = self.peek();
        if token.indent.is_some_and(|indent| indent > 0) {
            let label = "expected it at the beginning of its line";
            let title = "this statement is indented, and nothing is above it";
            return Err(Diagnostic::new(token.span.clone(), title, label));
        }
        self.depth = 0;
        self.statement(token.indent.unwrap_or(0))
    }

    /// Reads a call at column `indent`, with the block below it.
    fn statement(&mut self, indent: usize) -> Parsed<Expr> {
        let begin = self.peek().span.clone();
        let mut statement = self.value()?;
        let ExprKind::Call(call) = &mut statement.kind else {
            let title = "this is not a statement";
            return Err(Diagnostic::new(begin, title, "expected a call such as `pool(...)`"));
        };
        self.takes(":");
        match self.peek().indent {
            None => return Err(self.unexpected("the next statement in a line of its own")),
            Some(inner) if inner > indent => {
                self.open()?;
                call.body = self.block(inner)?;
                self.depth -= 1;
            }
            Some(_) => {}
        }
        Ok(statement)
    }

    /// Reads the statements at column `indent`.
    fn block(&mut self, indent: usize) -> Parsed<Vec<Expr>> {
        let mut statements = Vec::new();
        while self.peek().kind != TokenKind::End {
            match self.peek().indent {
                Some(column) if column == indent => statements.push(self.statement(indent)?),
                Some(column) if column > indent => {
                    let label = format!("expected {indent} columns, found {column}");
                    let title = "this line is indented more than those above it";
                    return Err(Diagnostic::new(self.peek().span.clone(), title, label));
                }
                _ => break,
            }
        }
        Ok(statements)
    }

    fn open(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let label = format!("at most {DEPTH_MAX} may be open");
            let title = "too many calls in calls";
            return Err(Diagnostic::new(self.peek().span.clone(), title, label));
        }
        Ok(())
    }

    /// Reads operands with `and` and `or` between them, from left to right.
    fn condition(&mut self) -> Parsed<Expr> {
        let mut left = self.comparison()?;
        while let TokenKind::Word(word) = &self.peek().kind {
            if word != "and" && word != "or" {
                break;
            }
            self.next();
            let right = self.comparison()?;
            let span = left.span.start..right.span.end;
            left = Expr { span, kind: ExprKind::Operation(word.clone(), vec![left, right]) };
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Parsed<Expr> {
        let begin = self.peek().span.start;
        if self.peek().kind == TokenKind::Word("not".to_owned()) {
            self.next();
            self.open()?;
            let operand = self.comparison()?;
            self.depth -= 1;
            let span = begin..operand.span.end;
            return Ok(Expr { span, kind: ExprKind::Operation("not".to_owned(), vec![operand]) });
        }
        let left = self.value()?;
        let TokenKind::Sign(sign) = self.peek().kind else { return Ok(left) };
        let Some((_, operator)) = COMPARISONS.iter().find(|(written, _)| *written == sign) else {
            return Ok(left);
        };
        self.next();
        let right = self.value()?;
        let span = begin..right.span.end;
        Ok(Expr { span, kind: ExprKind::Operation((*operator).to_owned(), vec![left, right]) })
    }

    /// Reads a value, with its unit.
    fn value(&mut self) -> Parsed<Expr> {
        let inner = self.primary()?;
        if let TokenKind::Word(unit) = &self.peek().kind
            && self.peek().indent.is_none()
            && is_unit(unit)
        {
            let span = inner.span.start..self.next().span.end;
            return Ok(Expr { span, kind: ExprKind::Quantity(Box::new(inner), unit.clone()) });
        }
        Ok(inner)
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let token = self.peek();
        let begin = token.span.start;
        let kind = match &token.kind {
            TokenKind::Number(value) => {
                self.next();
                ExprKind::Number(*value)
            }
            TokenKind::Text(text) => {
                self.next();
                ExprKind::Text(text.clone())
            }
            TokenKind::Word(name) => {
                self.next();
                if !self.takes("(") {
                    ExprKind::Word(name.clone())
                } else {
                    self.open()?;
                    let mut call = Call { name: name.clone(), ..Call::default() };
                    self.arguments(&mut call)?;
                    self.depth -= 1;
                    ExprKind::Call(Box::new(call))
                }
            }
            TokenKind::Sign("[") => {
                self.next();
                self.open()?;
                let mut items = Vec::new();
                while !self.takes("]") {
                    items.push(self.condition()?);
                    if !self.takes(",") {
                        self.expect("]", "`,` or `]`")?;
                        break;
                    }
                }
                self.depth -= 1;
                ExprKind::List(items)
            }
            TokenKind::Sign("(") => {
                self.next();
                self.open()?;
                let inner = self.condition()?;
                self.expect(")", "`)`")?;
                self.depth -= 1;
                return Ok(inner);
            }
            _ => return Err(self.unexpected("a call, a number, a string or a list")),
        };
        let end = self.tokens[self.at.saturating_sub(1)].span.end;
        Ok(Expr { span: begin..end.max(begin), kind })
    }

    /// Reads the arguments of a call, behind its `(`.
    fn arguments(&mut self, call: &mut Call) -> Parsed<()> {
        while !self.takes(")") {
            let is_key = matches!(
                self.tokens.get(self.at + 1).map(|token| &token.kind),
                Some(TokenKind::Sign("="))
            );
            let token = self.peek();
            match &token.kind {
                TokenKind::Word(key) | TokenKind::Text(key) if is_key => {
                    self.at += 2;
                    let value = self.condition()?;
                    let span = token.span.start..value.span.end;
                    call.options.push(CallOption { span, key: key.clone(), value });
                }
                _ => call.arguments.push(self.condition()?),
            }
            if !self.takes(",") {
                self.expect(")", "`,` or `)`")?;
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

/// Calls, lists and blocks that may be open at once.
const DEPTH_MAX: usize = 32;
