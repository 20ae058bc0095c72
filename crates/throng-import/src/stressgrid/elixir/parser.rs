//! The parser of Elixir's expressions.

use throng_load::scenario::Diagnostic;

use super::lexer::{ELIXIR, UNREADABLE};
use super::{Call, Expr, ExprKind, Script};
use crate::cursor::{Cursor, Parsed};
use crate::lexer::{Piece, Token, TokenKind, tokens};
use crate::source::Span;

/// Reads a script. The error is its first mistake.
pub(in super::super) fn parse(source: &str) -> Parsed<Script> {
    parse_part(source, &(0..source.len()), 0)
}

fn parse_part(source: &str, part: &Span, depth: usize) -> Parsed<Script> {
    let (tokens, comments) = tokens(source, part, &ELIXIR)?;
    let mut parser = Parser { source, tokens: Cursor::new(&tokens, &ELIXIR, depth) };
    let statements = parser.statements(false)?;
    if !parser.tokens.is_at_end() {
        return Err(parser.tokens.unexpected("a statement"));
    }
    Ok(Script { statements, comments })
}

struct Parser<'s, 't> {
    source: &'s str,
    tokens: Cursor<'t>,
}

impl Parser<'_, '_> {
    fn skip_lines(&mut self) {
        while self.tokens.peek().kind == TokenKind::Line {
            self.tokens.next();
        }
    }

    /// Skips line breaks before a pipe, which goes on with the line above.
    fn skip_line_before_pipe(&mut self) {
        let is_line = self.tokens.peek().kind == TokenKind::Line;
        self.tokens.at += usize::from(is_line && self.tokens.is_sign_ahead(1, PIPE));
    }

    /// Reads statements up to the end of the source, or of a block, whose `end` it leaves.
    fn statements(&mut self, is_block: bool) -> Parsed<Vec<Expr>> {
        let mut statements = Vec::new();
        loop {
            self.skip_lines();
            let is_end = is_block && self.tokens.word() == Some("end")
                || !is_block && self.tokens.is_sign("}");
            if self.tokens.peek().kind == TokenKind::End || is_end {
                return Ok(statements);
            }
            statements.push(self.expression()?);
            let is_end = is_block && self.tokens.word() == Some("end");
            if !is_end && !matches!(self.tokens.peek().kind, TokenKind::Line | TokenKind::End) {
                return Err(self.tokens.unexpected("the next statement in a line of its own"));
            }
        }
    }

    /// Reads an expression, which may be a match.
    fn expression(&mut self) -> Parsed<Expr> {
        self.tokens.open()?;
        let left = self.operation(0)?;
        let whole = if self.tokens.takes("=") {
            self.skip_lines();
            let right = self.expression()?;
            let span = left.span.start..right.span.end;
            Expr { span, kind: ExprKind::Match(Box::new(left), Box::new(right)) }
        } else {
            left
        };
        self.tokens.close();
        Ok(whole)
    }

    /// Reads operands with operators of at least this rank between them.
    fn operation(&mut self, rank: usize) -> Parsed<Expr> {
        let Some(operators) = OPERATORS.get(rank) else { return self.postfix() };
        let mut left = self.operation(rank + 1)?;
        loop {
            self.skip_line_before_pipe();
            let found = match &self.tokens.peek().kind {
                TokenKind::Sign(sign) => operators.iter().find(|operator| *operator == sign),
                TokenKind::Word(word) => operators.iter().find(|operator| *operator == word),
                _ => None,
            };
            let Some(operator) = found else { return Ok(left) };
            self.tokens.next();
            self.skip_lines();
            let right = self.operation(rank + 1)?;
            let span = left.span.start..right.span.end;
            let kind = match *operator {
                PIPE => piped(left, right)?,
                _ => ExprKind::Operation(operator, Box::new(left), Box::new(right)),
            };
            left = Expr { span, kind };
        }
    }

    /// Reads a value with `.key` and `["key"]` behind it.
    fn postfix(&mut self) -> Parsed<Expr> {
        let mut value = self.primary()?;
        loop {
            if self.tokens.is_sign("[") && self.tokens.peek().span.start == value.span.end {
                self.tokens.next();
                let key = self.expression()?;
                self.tokens.expect("]", "`]`")?;
                let span = value.span.start..self.tokens.end_of_last();
                value = Expr { span, kind: ExprKind::Access(Box::new(value), Box::new(key)) };
            } else if self.tokens.is_sign(".") {
                self.tokens.next();
                let TokenKind::Word(name) = &self.tokens.peek().kind else {
                    return Err(self.tokens.unexpected("a name"));
                };
                let token = self.tokens.next();
                let span = value.span.start..token.span.end;
                value = match &value.kind {
                    // `Enum.each` and `:rand.uniform` are names of functions.
                    ExprKind::Name(module) | ExprKind::Atom(module)
                        if module.starts_with(char::is_uppercase)
                            || matches!(value.kind, ExprKind::Atom(_)) =>
                    {
                        let is_atom = matches!(value.kind, ExprKind::Atom(_));
                        let colon = if is_atom { ":" } else { "" };
                        self.call(&format!("{colon}{module}.{name}"), value.span.start, token)?
                    }
                    _ => {
                        let kind = ExprKind::Atom(name.clone());
                        let key = Expr { span: token.span.clone(), kind };
                        Expr { span, kind: ExprKind::Access(Box::new(value), Box::new(key)) }
                    }
                };
            } else {
                return Ok(value);
            }
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let token = self.tokens.next();
        let begin = token.span.start;
        let kind = match &token.kind {
            TokenKind::Number(value) => ExprKind::Number(*value),
            TokenKind::Atom(name) => ExprKind::Atom(name.clone()),
            TokenKind::Template(parts) => ExprKind::Text(self.text(parts)?),
            TokenKind::Sign("-") => {
                self.tokens.open()?;
                let operand = self.primary()?;
                self.tokens.close();
                match operand.kind {
                    ExprKind::Number(value) => ExprKind::Number(-value),
                    _ => ExprKind::Other("-".to_owned()),
                }
            }
            TokenKind::Sign("(") => {
                self.skip_lines();
                let inner = self.expression()?;
                self.skip_lines();
                self.tokens.expect(")", "`)`")?;
                return Ok(inner);
            }
            TokenKind::Sign("[") => ExprKind::List(self.items("]")?),
            TokenKind::Sign("{") => ExprKind::Tuple(self.items("}")?),
            TokenKind::Sign("%{") => ExprKind::Map(self.entries()?),
            TokenKind::Sign("<<") => ExprKind::Bytes(self.items(">>")?),
            TokenKind::Word(word) => return self.word(word, token),
            TokenKind::Sign("^") => {
                self.tokens.open()?;
                let name = self.primary()?;
                self.tokens.close();
                ExprKind::Pinned(Box::new(name))
            }
            TokenKind::Sign("&") => {
                self.tokens.open()?;
                // `&(&1 != nil)`, `&fetch/0`, `&1`.
                self.operation(0)?;
                self.tokens.close();
                ExprKind::Other("&".to_owned())
            }
            _ => {
                self.tokens.at -= 1;
                return Err(self.tokens.unexpected("a call, a value or a name"));
            }
        };
        Ok(Expr { span: begin..self.tokens.end_of_last(), kind })
    }

    fn text(&mut self, parts: &[Piece]) -> Parsed<Vec<Expr>> {
        let mut exprs = Vec::new();
        for part in parts {
            match part {
                Piece::Text(text) if text.is_empty() => {}
                Piece::Text(text) => {
                    exprs.push(Expr { span: 0..0, kind: ExprKind::Literal(text.clone()) });
                }
                Piece::Expression(span) => {
                    self.tokens.open()?;
                    let mut script = parse_part(self.source, span, self.tokens.depth)?;
                    self.tokens.close();
                    match script.statements.pop() {
                        Some(value) if script.statements.is_empty() => exprs.push(value),
                        _ => {
                            let label = "expected one value between `#{` and `}`";
                            return Err(Diagnostic::new(span.clone(), UNREADABLE, label));
                        }
                    }
                }
            }
        }
        Ok(exprs)
    }

    /// Reads what begins with a word: a block, a call or a variable.
    fn word(&mut self, word: &str, token: &Token) -> Parsed<Expr> {
        let begin = token.span.start;
        match word {
            "true" | "false" | "nil" => {
                Ok(Expr { span: token.span.clone(), kind: ExprKind::Atom(word.to_owned()) })
            }
            "fn" => self.function(begin),
            "if" | "unless" | "for" | "case" | "cond" | "try" | "receive" | "with" => {
                self.other(word, begin, 0)
            }
            "def" | "defp" | "defmodule" | "import" | "alias" | "require" | "use" => {
                let label = "expected the body of a script alone";
                let title = format!("a script of Stressgrid has no `{word}`");
                Err(Diagnostic::new(token.span.clone(), title, label))
            }
            _ => self.call(word, begin, token),
        }
    }

    /// Reads the rest of a call, or of a variable, behind its name.
    fn call(&mut self, name: &str, begin: usize, token: &Token) -> Parsed<Expr> {
        let mut call = Call { name: name.to_owned(), ..Call::default() };
        let has_parentheses =
            self.tokens.is_sign("(") && self.tokens.peek().span.start == token.span.end;
        if has_parentheses {
            self.tokens.next();
            call.arguments = self.items(")")?;
        } else if self.begins_argument(name) && self.tokens.peek().span.start > token.span.end {
            call.arguments.push(self.expression()?);
            while self.tokens.takes(",") {
                self.skip_lines();
                call.arguments.push(self.expression()?);
            }
        } else {
            let kind = match name.contains('.') {
                true => ExprKind::Call(Box::new(call)),
                false => ExprKind::Name(name.to_owned()),
            };
            return Ok(Expr { span: begin..token.span.end, kind });
        }
        let span = begin..self.tokens.end_of_last();
        Ok(Expr { span, kind: ExprKind::Call(Box::new(call)) })
    }

    /// Reports whether an argument without parentheses follows: `delay 1000`.
    fn begins_argument(&self, name: &str) -> bool {
        let may = match &self.tokens.peek().kind {
            TokenKind::Number(_) | TokenKind::Template(_) | TokenKind::Atom(_) => true,
            TokenKind::Sign(sign) => ["%{", "{", "[", "("].contains(sign),
            TokenKind::Word(word) => !["do", "and", "or", "in", "end", "else"].contains(&&**word),
            _ => false,
        };
        let function = name.rsplit('.').next().unwrap_or_default();
        may && function.starts_with(|first: char| first.is_lowercase())
    }

    /// Reads `fn _ -> ... end`.
    fn function(&mut self, begin: usize) -> Parsed<Expr> {
        self.tokens.open()?;
        self.skip_lines();
        let first = self.tokens.at;
        let mut call = Call { name: "fn".to_owned(), ..Call::default() };
        while !self.tokens.takes("->") {
            call.arguments.push(self.operation(0)?);
            if !self.tokens.takes(",") && !self.tokens.is_sign("->") {
                return Err(self.tokens.unexpected("`->`"));
            }
        }
        call.block = match self.statements(true) {
            Err(_) if self.tokens.is_sign("->") => {
                self.tokens.at = first;
                self.tokens.close();
                return self.other("fn with several clauses", begin, 1);
            }
            block => block?,
        };
        if !self.tokens.takes_word("end") {
            return Err(self.tokens.unexpected("`end`"));
        }
        self.tokens.close();
        let span = begin..self.tokens.end_of_last();
        Ok(Expr { span, kind: ExprKind::Call(Box::new(call)) })
    }

    /// Skips a block up to its `end`. `open` blocks have begun.
    fn other(&mut self, word: &str, begin: usize, mut open: i32) -> Parsed<Expr> {
        loop {
            let token = self.tokens.next();
            match &token.kind {
                TokenKind::Word(inner) if inner == "do" || inner == "fn" => open += 1,
                TokenKind::Word(inner) if inner == "end" => {
                    open -= 1;
                    if open <= 0 {
                        let span = begin..token.span.end;
                        return Ok(Expr { span, kind: ExprKind::Other(word.to_owned()) });
                    }
                }
                TokenKind::End => {
                    return Err(self.tokens.unexpected(&format!("the `end` of `{word}`")));
                }
                _ => {}
            }
        }
    }

    /// Reads items up to `close`. Keys without braces become pairs: `a: 1`.
    fn items(&mut self, close: &'static str) -> Parsed<Vec<Expr>> {
        self.tokens.open()?;
        let mut items = Vec::new();
        loop {
            self.skip_lines();
            if self.tokens.takes(close) {
                break;
            }
            items.push(match &self.tokens.peek().kind {
                TokenKind::Key(key) => {
                    let token = self.tokens.next();
                    self.skip_lines();
                    let key = Expr { span: token.span.clone(), kind: ExprKind::Atom(key.clone()) };
                    let value = self.expression()?;
                    let span = key.span.start..value.span.end;
                    Expr { span, kind: ExprKind::Tuple(vec![key, value]) }
                }
                _ => self.expression()?,
            });
            self.skip_lines();
            if !self.tokens.takes(",") {
                self.tokens.expect(close, &format!("`,` or `{close}`"))?;
                break;
            }
        }
        self.tokens.close();
        Ok(items)
    }

    /// Reads the entries of a map, behind its `%{`.
    fn entries(&mut self) -> Parsed<Vec<(Expr, Expr)>> {
        self.tokens.open()?;
        let mut entries = Vec::new();
        loop {
            self.skip_lines();
            if self.tokens.takes("}") {
                break;
            }
            let key = match &self.tokens.peek().kind {
                TokenKind::Key(key) => {
                    let token = self.tokens.next();
                    Expr { span: token.span.clone(), kind: ExprKind::Atom(key.clone()) }
                }
                _ => {
                    let key = self.expression()?;
                    self.skip_lines();
                    self.tokens.expect("=>", "`=>`")?;
                    key
                }
            };
            self.skip_lines();
            entries.push((key, self.expression()?));
            self.skip_lines();
            if !self.tokens.takes(",") {
                self.tokens.expect("}", "`,` or `}`")?;
                break;
            }
        }
        self.tokens.close();
        Ok(entries)
    }
}

/// Returns `f(value, a)` for `value |> f(a)`.
fn piped(value: Expr, function: Expr) -> Parsed<ExprKind> {
    let mut call = match function.kind {
        ExprKind::Call(call) => call,
        ExprKind::Name(name) => Box::new(Call { name, ..Call::default() }),
        _ => {
            let label = "expected a function such as `Enum.each(fn _ -> ... end)`";
            return Err(Diagnostic::new(function.span, "this takes no value from a pipe", label));
        }
    };
    call.arguments.insert(0, value);
    Ok(ExprKind::Call(call))
}

const PIPE: &str = "|>";

/// Operators between two operands, from the loosest.
const OPERATORS: [&[&str]; 9] = [
    &["||", "or"],
    &["&&", "and"],
    &["==", "!=", "===", "!=="],
    &["<", ">", "<=", ">="],
    &[PIPE],
    &["in"],
    &["<>", "++", ".."],
    &["+", "-"],
    &["*", "/"],
];
