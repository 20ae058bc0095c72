//! Conditions of steps: `${count} < 10`.

use std::fmt;

use super::{Template, Variable, VariableScope};

/// A condition that holds for a user or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    left: Template,
    /// The comparison and its right side; without it, the text must be something other than empty,
    /// `0` and `false`.
    comparison: Option<(Relation, Template)>,
}

/// A relation between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<=`
    LessOrEqual,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `>`
    Greater,
}

impl Relation {
    /// All relations, those of two characters first.
    pub(crate) const ALL: [(&'static str, Self); 6] = [
        ("==", Self::Equal),
        ("!=", Self::NotEqual),
        ("<=", Self::LessOrEqual),
        (">=", Self::GreaterOrEqual),
        ("<", Self::Less),
        (">", Self::Greater),
    ];
}

impl Condition {
    /// Creates the condition that `text` is something.
    pub(crate) fn truth(text: Template) -> Self {
        Self { left: text, comparison: None }
    }

    /// Creates a comparison.
    pub(crate) fn comparison(left: Template, relation: Relation, right: Template) -> Self {
        Self { left, comparison: Some((relation, right)) }
    }

    /// Reports whether its variables have one value until a step stores another.
    pub(crate) fn is_steady(&self) -> bool {
        let changes = |part: &Variable| matches!(part, Variable::Counter | Variable::Probe);
        self.variables().all(|variable| variable.drawn().is_none() && !variable.any(&changes))
    }

    /// Reports whether a variable is in it.
    pub(crate) fn has_variables(&self) -> bool {
        self.variables().next().is_some()
    }

    fn variables(&self) -> impl Iterator<Item = &Variable> {
        let right = self.comparison.as_ref().map(|(_, right)| right);
        self.left.variables().chain(right.into_iter().flat_map(Template::variables))
    }

    /// Reports whether it holds. Two numbers are compared by their values, everything else as
    /// texts, which are equal or not.
    pub fn holds(&self, scope: &mut VariableScope<'_>, scratch: &mut Vec<u8>) -> bool {
        scratch.clear();
        self.left.render(scope, scratch);
        let Some((relation, right)) = &self.comparison else {
            return !matches!(scratch.trim_ascii(), b"" | b"0" | b"false");
        };
        let middle = scratch.len();
        right.render(scope, scratch);
        let (left, right) = scratch.split_at(middle);
        let (left, right) = (left.trim_ascii(), right.trim_ascii());
        let order = match (number(left), number(right)) {
            (Some(left), Some(right)) => left.partial_cmp(&right),
            _ if left == right => Some(std::cmp::Ordering::Equal),
            _ => None,
        };
        match relation {
            Relation::Equal => order.is_some_and(std::cmp::Ordering::is_eq),
            Relation::NotEqual => order.is_none_or(std::cmp::Ordering::is_ne),
            Relation::LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
            Relation::GreaterOrEqual => order.is_some_and(std::cmp::Ordering::is_ge),
            Relation::Less => order.is_some_and(std::cmp::Ordering::is_lt),
            Relation::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
        }
    }
}

fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.left.fmt(f)?;
        let Some((relation, right)) = &self.comparison else { return Ok(()) };
        let sign = Relation::ALL.iter().find(|(_, known)| known == relation);
        write!(f, " {} {right}", sign.map_or("", |(sign, _)| sign))
    }
}

#[cfg(test)]
mod tests {
    use throng_base::Prng;

    use super::*;

    #[test]
    fn numbers_are_compared_by_value_and_texts_by_their_bytes() {
        let text = |text: &str| Template::parse(text).unwrap();
        let holds = |left: &str, sign: &str, right: &str| {
            let (_, relation) = *Relation::ALL.iter().find(|(known, _)| *known == sign).unwrap();
            let condition = Condition::comparison(text(left), relation, text(right));
            assert_eq!(condition.to_string(), format!("{left} {sign} {right}"));
            condition.holds(&mut VariableScope::new(7, Prng::new(1)), &mut Vec::new())
        };
        for (left, sign, right, expected) in [
            ("${user.id}", "==", "7", true),
            ("${user.id}", "==", "7.0", true),
            ("${user.id}", "<", "10", true),
            ("${user.id}", ">=", "7", true),
            ("${user.id}", ">", "7", false),
            ("a", "==", "a", true),
            ("a", "!=", "b", true),
            ("a", "<", "b", false),
            ("a", "<=", "a", true),
            ("7", "!=", "7", false),
            ("", "==", "0", false),
        ] {
            assert_eq!(holds(left, sign, right), expected, "{left} {sign} {right}");
        }
        let is = |left: &str| {
            let mut scope = VariableScope::new(7, Prng::new(1));
            Condition::truth(text(left)).holds(&mut scope, &mut Vec::new())
        };
        assert!(is("yes") && is("1") && is("${user.id}"));
        assert!(!is("false") && !is("0") && !is(" "));
    }
}
