//! The part of Elixir that Stressgrid's documentation shows: calls, literals, matches and
//! `Enum.each`.

mod lexer;
mod parser;

use crate::comments::Comment;
use crate::source::Span;
pub(super) use parser::parse;

/// A script: its statements, and its comments with the bytes at which they begin.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) statements: Vec<Expr>,
    pub(super) comments: Vec<Comment>,
}

/// An expression, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expr {
    pub(super) span: Span,
    pub(super) kind: ExprKind,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ExprKind {
    Number(f64),
    /// A text: literal parts and expressions.
    Text(Vec<Expr>),
    /// A literal part of a text.
    Literal(String),
    /// `:ok`, `true`, `nil`.
    Atom(String),
    /// A variable.
    Name(String),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    /// `<<1, 2>>`.
    Bytes(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    /// `json["key"]`, `params.key`.
    Access(Box<Expr>, Box<Expr>),
    /// `a == b`, `a <> b`, `1..5`.
    Operation(&'static str, Box<Expr>, Box<Expr>),
    /// `pattern = value`.
    Match(Box<Expr>, Box<Expr>),
    /// `name(arguments)`, or `fn arguments -> block end`.
    Call(Box<Call>),
    /// `^name`: the value of the name, in a pattern.
    Pinned(Box<Expr>),
    /// What is read and not understood: `if`, `case`, `try`.
    Other(String),
}

/// A call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Call {
    /// `get`, `Enum.each`, `:rand.uniform`.
    pub(super) name: String,
    pub(super) arguments: Vec<Expr>,
    /// The statements of `fn`.
    pub(super) block: Vec<Expr>,
}

impl Script {
    /// Reports whether one of these functions is called.
    pub(super) fn calls(&self, names: &[&str]) -> bool {
        let is_called = |expr: &Expr| expr.call().is_some_and(|call| names.contains(&&*call.name));
        self.statements.iter().any(|statement| statement.any(&is_called))
    }
}

impl Expr {
    /// Reports whether this expression, or one in it, fits.
    pub(super) fn any(&self, fits: &dyn Fn(&Self) -> bool) -> bool {
        let all = |items: &[Self]| items.iter().any(|item| item.any(fits));
        fits(self)
            || match &self.kind {
                ExprKind::Text(items)
                | ExprKind::List(items)
                | ExprKind::Tuple(items)
                | ExprKind::Bytes(items) => all(items),
                ExprKind::Map(entries) => {
                    entries.iter().any(|(key, value)| key.any(fits) || value.any(fits))
                }
                ExprKind::Access(a, b) | ExprKind::Operation(_, a, b) | ExprKind::Match(a, b) => {
                    a.any(fits) || b.any(fits)
                }
                ExprKind::Call(call) => all(&call.arguments) || all(&call.block),
                ExprKind::Pinned(name) => name.any(fits),
                ExprKind::Number(_)
                | ExprKind::Literal(_)
                | ExprKind::Atom(_)
                | ExprKind::Name(_)
                | ExprKind::Other(_) => false,
            }
    }

    /// Returns the call, if this is one.
    pub(super) fn call(&self) -> Option<&Call> {
        let ExprKind::Call(call) = &self.kind else { return None };
        Some(call)
    }

    /// Returns the text, if it has no expressions in it.
    pub(super) fn literal(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Text(parts) => match &parts[..] {
                [] => Some(""),
                [Self { kind: ExprKind::Literal(text), .. }] => Some(text),
                _ => None,
            },
            ExprKind::Literal(text) | ExprKind::Atom(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the whole number, if this is one.
    pub(super) fn whole(&self) -> Option<u64> {
        match self.kind {
            ExprKind::Number(value) if value >= 0.0 && value.fract() == 0.0 => Some(value as u64),
            _ => None,
        }
    }
}
