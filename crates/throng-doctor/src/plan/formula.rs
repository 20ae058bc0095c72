//! The formula for the connections of a node, as people write it: `f(x) = 3x + 15`.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// A linear formula, `slope × x + constant`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearFormula {
    /// Connections of a node for each node of the mesh.
    pub slope: f64,
    /// Connections of a node whatever the size of the mesh.
    pub constant: f64,
}

/// An error in a formula, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormulaError {
    /// Text of the formula.
    pub text: String,
    /// Bytes of the text that are wrong.
    pub span: Range<usize>,
    /// Description of the error.
    pub problem: String,
}

impl LinearFormula {
    /// Returns the connections of a node in a mesh of `x` nodes.
    pub fn at(&self, x: u64) -> f64 {
        self.slope * x as f64 + self.constant
    }
}

impl FromStr for LinearFormula {
    type Err = FormulaError;

    /// Parses a sum of terms with at most one variable of any name: `f(x) = 3x + 15`, `3*x+15`, `x
    /// - 1`, `2n`, `15`.
    fn from_str(text: &str) -> Result<Self, FormulaError> {
        let mut scan = Scan { text, at: 0, variable: None };
        scan.head()?;
        let formula = scan.sum()?;
        let fails = |problem: &str| Err(scan.error(0..text.len(), problem));
        if formula.slope < 0.0 {
            return fails("a node of a larger mesh would have fewer connections");
        }
        if formula.at(0) < 0.0 && formula.slope == 0.0 {
            return fails("the number of connections must not be below 0");
        }
        Ok(formula)
    }
}

/// A position in the text, and the variable's name once it is known.
struct Scan<'a> {
    text: &'a str,
    at: usize,
    variable: Option<char>,
}

impl<'a> Scan<'a> {
    /// Returns an error at these bytes.
    fn error(&self, span: Range<usize>, problem: impl Into<String>) -> FormulaError {
        FormulaError { text: self.text.to_owned(), span, problem: problem.into() }
    }

    /// Skips white space and returns the rest of the text.
    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    /// Skips `token` if it comes next, and reports whether it did.
    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    /// Parses `f(x) =`, if it is there.
    fn head(&mut self) -> Result<(), FormulaError> {
        let Some((head, _)) = self.text.split_once('=') else { return Ok(()) };
        let name = head.trim();
        let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        let mut letters = inner.unwrap_or("").trim().chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) if letter.is_ascii_alphabetic() => self.variable = Some(letter),
            _ => {
                let problem = "only a function such as `f(x)` may stand before `=`";
                return Err(self.error(0..head.len(), problem));
            }
        }
        self.at = head.len() + 1;
        Ok(())
    }

    /// Parses a sum of terms.
    fn sum(&mut self) -> Result<LinearFormula, FormulaError> {
        let mut formula = LinearFormula { slope: 0.0, constant: 0.0 };
        let mut first = true;
        loop {
            let sign = match (self.take("+"), self.take("-") || self.take("−")) {
                (false, false) if first => 1.0,
                (true, false) => 1.0,
                (false, true) => -1.0,
                _ => {
                    let (from, end) = (self.at, self.text.trim_end().len());
                    let problem = "`+` or `-` is missing between two terms";
                    return Err(self.error(from..end.max(from), problem));
                }
            };
            let (slope, constant) = self.term()?;
            formula.slope += sign * slope;
            formula.constant += sign * constant;
            first = false;
            if self.rest().is_empty() {
                return Ok(formula);
            }
        }
    }

    /// Parses `3x`, `3*x`, `x` or `15`, and returns its part of the slope and of the constant.
    fn term(&mut self) -> Result<(f64, f64), FormulaError> {
        let number = self.number()?;
        let times = number.is_some() && (self.take("*") || self.take("×") || self.take("·"));
        match self.rest().chars().next().filter(char::is_ascii_alphabetic) {
            Some(letter) => {
                self.variable(letter)?;
                Ok((number.unwrap_or(1.0), 0.0))
            }
            None if times || number.is_none() => {
                let from = self.at;
                let end = from + self.rest().chars().next().map_or(0, char::len_utf8);
                let problem = "a number or the variable is missing here, as in `3x + 15`";
                Err(self.error(from..end, problem))
            }
            None => Ok((0.0, number.unwrap_or(0.0))),
        }
    }

    /// Parses the variable, whose name must be the same everywhere.
    fn variable(&mut self, letter: char) -> Result<(), FormulaError> {
        let from = self.at;
        let known = *self.variable.get_or_insert(letter);
        self.at += 1;
        if known != letter {
            let problem = format!("there may be one variable only, and it is called `{known}`");
            return Err(self.error(from..self.at, problem));
        }
        let next = self.text[self.at..].chars().next();
        if let Some(next) = next.filter(|next| matches!(next, '^' | '²') || next.is_alphanumeric())
        {
            let end = self.at + next.len_utf8();
            let problem = "the formula must grow linearly: a number times the variable";
            return Err(self.error(from..end, problem));
        }
        Ok(())
    }

    /// Parses a number, if there is one.
    fn number(&mut self) -> Result<Option<f64>, FormulaError> {
        let rest = self.rest();
        let length = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        if length == 0 {
            return Ok(None);
        }
        let span = self.at..self.at + length;
        self.at = span.end;
        match self.text[span.clone()].parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(self.error(span, "this is not a number")),
        }
    }
}

impl fmt::Display for LinearFormula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { slope, constant } = *self;
        match constant {
            _ if slope == 0.0 => write!(f, "{constant}"),
            0.0 => write!(f, "{slope}x"),
            ..0.0 => write!(f, "{slope}x - {}", -constant),
            _ => write!(f, "{slope}x + {constant}"),
        }
    }
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = self.text[..self.span.start].chars().count();
        let carets = self.text[self.span.clone()].chars().count().max(1);
        write!(f, "{}\n    {}\n    {:before$}{}", self.problem, self.text, "", "^".repeat(carets))
    }
}

impl std::error::Error for FormulaError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_read_as_people_write_them() {
        for (text, slope, constant) in [
            ("f(x) = 3x + 15", 3.0, 15.0),
            ("3x+15", 3.0, 15.0),
            ("15 + 3*x", 3.0, 15.0),
            ("conns(n)=2.5 n", 2.5, 0.0),
            ("x - 1", 1.0, -1.0),
            (" x + x + 2 ", 2.0, 2.0),
            ("40", 0.0, 40.0),
            ("3 × n − 3", 3.0, -3.0),
        ] {
            assert_eq!(text.parse(), Ok(LinearFormula { slope, constant }), "{text}");
        }
    }

    #[test]
    fn mistakes_are_pointed_at() {
        for (text, at, says) in [
            ("", "", "a number or the variable"),
            ("3x +", "", "a number or the variable"),
            ("3x 15", "15", "`+` or `-`"),
            ("3x + 15y", "y", "called `x`"),
            ("f(x) = 3n + 1", "n", "called `x`"),
            ("x^2 + 1", "x^", "linearly"),
            ("2xy", "xy", "linearly"),
            ("1.2.3x", "1.2.3", "not a number"),
            ("3 = x", "3 ", "before `=`"),
            ("15 - 3x", "15 - 3x", "fewer connections"),
            ("-4", "-4", "not be below 0"),
            ("3x + $", "$", "a number or the variable"),
        ] {
            let error = text.parse::<LinearFormula>().unwrap_err();
            assert_eq!(&text[error.span.clone()], at, "{text}: {error}");
            assert!(error.problem.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_caret_points_at_the_mistake() {
        let error = "f(x) = 3x + 15y".parse::<LinearFormula>().unwrap_err().to_string();
        let lines: Vec<_> = error.lines().collect();
        assert_eq!(lines[1].find('y'), lines[2].find('^'), "{error}");
    }

    #[test]
    fn a_formula_is_shown_as_it_could_have_been_written() {
        for text in ["3x + 15", "40", "2.5x", "1x - 1"] {
            assert_eq!(text.parse::<LinearFormula>().unwrap().to_string(), text);
        }
    }
}
