//! The tree of a script.

use throng_load::scenario::Diagnostic;

use crate::source::Span;

/// An expression, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) span: Span,
    pub(super) kind: ExpressionKind,
}

#[derive(Clone, Debug)]
pub(super) enum ExpressionKind {
    Number(f64),
    Text(String),
    /// Texts and expressions in backticks.
    Template(Vec<Expression>),
    Truth(bool),
    Null,
    Name(String),
    Object(Vec<(String, Expression)>),
    List(Vec<Expression>),
    /// `object.name`, `object['name']`
    Member(Box<Expression>, String),
    /// `function(arguments)`, `new Function(arguments)`
    Call(Box<Expression>, Vec<Expression>),
    Function(Function),
    Binary(Box<Expression>, &'static str, Box<Expression>),
}

/// A function: `() => ...`, `function () {...}`.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) parameters: Vec<String>,
    /// Its statements. The error is the first part that is more than a step: a function may be
    /// left out.
    pub(super) body: Result<Vec<Statement>, Diagnostic>,
}

impl Function {
    /// Returns the statements.
    ///
    /// # Errors
    /// The first part of it that is more than a step.
    pub(super) fn statements(&self) -> Result<&[Statement], Diagnostic> {
        match &self.body {
            Ok(statements) => Ok(statements),
            Err(refusal) => Err(refusal.clone()),
        }
    }
}

/// A statement, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) span: Span,
    pub(super) kind: StatementKind,
}

#[derive(Clone, Debug)]
pub(super) enum StatementKind {
    /// `import ... from 'k6/http'`
    Import(String),
    /// `const name = value`
    Constant(String, Expression),
    /// `function name() {...}`; the default one is called `default`.
    Function(String, Function),
    Expression(Expression),
    /// The value of an arrow function, and `return value`.
    Return(Option<Expression>),
}

impl Expression {
    /// Returns `object.name`.
    pub(super) fn member(object: Self, name: String) -> Self {
        let span = object.span.clone();
        Self { span, kind: ExpressionKind::Member(Box::new(object), name) }
    }

    /// Returns `function(arguments)`.
    pub(super) fn call_of(function: Self, arguments: Vec<Self>) -> Self {
        let span = function.span.clone();
        Self { span, kind: ExpressionKind::Call(Box::new(function), arguments) }
    }

    /// Returns `list[index]`, as the call of a function [`ITEM`].
    pub(super) fn item_of(list: Self, index: Self) -> Self {
        let function =
            Self { span: list.span.clone(), kind: ExpressionKind::Name(ITEM.to_owned()) };
        Self::call_of(function, vec![list, index])
    }

    /// Returns `left sign right`.
    pub(super) fn binary(left: Self, sign: &'static str, right: Self) -> Self {
        let span = left.span.start..right.span.end;
        Self { span, kind: ExpressionKind::Binary(Box::new(left), sign, Box::new(right)) }
    }

    /// Returns the expressions that it consists of.
    pub(super) fn parts(&self) -> Vec<&Self> {
        match &self.kind {
            ExpressionKind::Template(parts)
            | ExpressionKind::List(parts)
            | ExpressionKind::Call(_, parts) => parts.iter().collect(),
            ExpressionKind::Object(members) => members.iter().map(|(_, value)| value).collect(),
            ExpressionKind::Binary(left, _, right) => vec![left, right],
            _ => Vec::new(),
        }
    }

    /// Returns the text of a literal.
    pub(super) fn text(&self) -> Option<&str> {
        let ExpressionKind::Text(text) = &self.kind else { return None };
        Some(text)
    }

    /// Returns the number of a literal.
    pub(super) fn number(&self) -> Option<f64> {
        let ExpressionKind::Number(number) = self.kind else { return None };
        Some(number)
    }

    /// Returns the name of a variable.
    pub(super) fn name(&self) -> Option<&str> {
        let ExpressionKind::Name(name) = &self.kind else { return None };
        Some(name)
    }

    /// Returns the members of an object.
    pub(super) fn object(&self) -> Option<&[(String, Self)]> {
        let ExpressionKind::Object(members) = &self.kind else { return None };
        Some(members)
    }

    /// Returns the function.
    pub(super) fn function(&self) -> Option<&Function> {
        let ExpressionKind::Function(function) = &self.kind else { return None };
        Some(function)
    }

    /// Returns the name of a called function, with its object, and the arguments: `http.get`.
    pub(super) fn call(&self) -> Option<(String, &[Self])> {
        let ExpressionKind::Call(function, arguments) = &self.kind else { return None };
        Some((function.path()?, arguments))
    }

    /// Returns the names of a variable and its members: `socket.send`.
    pub(super) fn path(&self) -> Option<String> {
        match &self.kind {
            ExpressionKind::Name(name) => Some(name.clone()),
            ExpressionKind::Member(object, name) => Some(format!("{}.{name}", object.path()?)),
            _ => None,
        }
    }
}

/// The name of what takes an item of a list: no script has a function of this name.
pub(super) const ITEM: &str = "[]";
