//! A scenario of MZBench as a tree of calls, whichever form it was written in.

use std::ops::Range;

use crate::comments::Comment;

/// The statements of a file, and its comments.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) statements: Vec<Expr>,
    pub(super) comments: Vec<Comment>,
}

/// An expression, and where it stands. A statement is one, too.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expr {
    pub(super) span: Range<usize>,
    pub(super) kind: ExprKind,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ExprKind {
    Number(f64),
    Text(String),
    /// `always`, `true`, `tcp_worker`.
    Word(String),
    List(Vec<Expr>),
    Call(Box<Call>),
    /// `10 rps`, `numvar("time") min`.
    Quantity(Box<Expr>, String),
    /// `a < b`, `a and b`; `not a` has one operand.
    Operation(String, Vec<Expr>),
}

/// A call, with its options and with the statements below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Vec<Expr>,
    /// `key = value`.
    pub(super) options: Vec<CallOption>,
    pub(super) body: Vec<Expr>,
}

/// `key = value`, or `{key, value}`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallOption {
    pub(super) span: Range<usize>,
    pub(super) key: String,
    pub(super) value: Expr,
}

impl Expr {
    /// Returns the call, if this is one.
    pub(super) fn call(&self) -> Option<&Call> {
        let ExprKind::Call(call) = &self.kind else { return None };
        Some(call)
    }

    /// Returns the name and the values of `name(values)`, or of `[name, values]`.
    pub(super) fn named(&self) -> Option<(&str, &[Self])> {
        match &self.kind {
            ExprKind::Call(call) => Some((&call.name, &call.arguments)),
            ExprKind::List(items) => {
                let (first, rest) = items.split_first()?;
                Some((first.word()?, rest))
            }
            _ => None,
        }
    }

    /// Returns the word, if this is one.
    pub(super) fn word(&self) -> Option<&str> {
        let ExprKind::Word(word) = &self.kind else { return None };
        Some(word)
    }

    /// Returns a text, or the letters of a word.
    pub(super) fn text(&self) -> Option<&str> {
        let (ExprKind::Text(text) | ExprKind::Word(text)) = &self.kind else { return None };
        Some(text)
    }

    /// Describes what the expression is, for mistakes.
    pub(super) fn describe(&self) -> String {
        match &self.kind {
            ExprKind::Number(_) => "a number".to_owned(),
            ExprKind::Text(_) => "a string".to_owned(),
            ExprKind::Word(word) => format!("`{word}`"),
            ExprKind::List(_) => "a list".to_owned(),
            ExprKind::Call(call) => format!("`{}(...)`", call.name),
            ExprKind::Quantity(_, unit) => format!("a number of `{unit}`"),
            ExprKind::Operation(..) => "a condition".to_owned(),
        }
    }
}

impl Call {
    /// Returns the value of an option.
    pub(super) fn option(&self, key: &str) -> Option<&Expr> {
        self.options.iter().find(|option| option.key == key).map(|option| &option.value)
    }
}

/// Units of times, in seconds.
pub(super) const TIMES: [(&str, f64); 4] =
    [("ms", 0.001), ("sec", 1.0), ("min", 60.0), ("h", 3600.0)];

/// Units of rates: turns in this many seconds.
pub(super) const RATES: [(&str, f64); 3] = [("rps", 1.0), ("rpm", 60.0), ("rph", 3600.0)];

/// Units of sizes, in bytes.
pub(super) const SIZES: [(&str, f64); 5] =
    [("b", 1.0), ("kb", 1024.0), ("mb", 1048576.0), ("gb", 1073741824.0), ("tb", 1099511627776.0)];

/// Reports whether a word is a unit.
pub(super) fn is_unit(word: &str) -> bool {
    TIMES.iter().chain(&RATES).chain(&SIZES).any(|(unit, _)| *unit == word)
}
