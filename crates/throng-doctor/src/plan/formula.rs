//! How many connections a node has, as people write it: `f(x) = 3x + 15`.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// `slope × x + constant`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearFormula {
    /// Of each node.
    pub slope: f64,
    /// Of each whatever their number.
    pub constant: f64,
}

/// Why a text is no such formula, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormulaError {
    /// The text.
    pub text: String,
    /// The bytes at fault.
    pub span: Range<usize>,
    /// What is the matter with them.
    pub problem: String,
}

impl LinearFormula {
    /// Its value for `x` nodes.
    pub fn at(&self, x: u64) -> f64 {
        self.slope * x as f64 + self.constant
    }
}

impl FromStr for LinearFormula {
    type Err = FormulaError;

    /// Reads `f(x) = 3x + 15`, `3*x+15`, `x - 1`, `2n`, `15`: one variable, whatever it is called, in terms that are added up.
    fn from_str(text: &str) -> Result<Self, FormulaError> {
        let mut scan = Scan { text, at: 0, variable: None };
        scan.head()?;
        let formula = scan.sum()?;
        let fails = |problem: &str| Err(scan.error(0..text.len(), problem));
        if formula.slope < 0.0 {
            return fails("a node of a larger mesh would have fewer connections");
        }
        if formula.at(0) < 0.0 && formula.slope == 0.0 {
            return fails("a number of connections is not below 0");
        }
        Ok(formula)
    }
}

/// A position in the text, and what the variable is called once that is known.
struct Scan<'a> {
    text: &'a str,
    at: usize,
    variable: Option<char>,
}

impl<'a> Scan<'a> {
    fn error(&self, span: Range<usize>, problem: impl Into<String>) -> FormulaError {
        FormulaError { text: self.text.to_owned(), span, problem: problem.into() }
    }

    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    /// `f(x) =`, if it is there.
    fn head(&mut self) -> Result<(), FormulaError> {
        let Some((head, _)) = self.text.split_once('=') else { return Ok(()) };
        let name = head.trim();
        let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        let mut letters = inner.unwrap_or("").trim().chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) if letter.is_ascii_alphabetic() => self.variable = Some(letter),
            _ => {
                let problem = "before `=` stands what it is a function of, `f(x)`, or nothing";
                return Err(self.error(0..head.len(), problem));
            }
        }
        self.at = head.len() + 1;
        Ok(())
    }

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
                    let problem = "`+` or `-` belongs between two terms";
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

    /// `3x`, `3*x`, `x`, `15`: its share of the slope and of the constant.
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
                let problem = "a number or the variable belongs here, as in `3x + 15`";
                Err(self.error(from..end, problem))
            }
            None => Ok((0.0, number.unwrap_or(0.0))),
        }
    }

    fn variable(&mut self, letter: char) -> Result<(), FormulaError> {
        let from = self.at;
        let known = *self.variable.get_or_insert(letter);
        self.at += 1;
        if known != letter {
            let problem = format!("there is one variable, and it is called `{known}`");
            return Err(self.error(from..self.at, problem));
        }
        let next = self.text[self.at..].chars().next();
        if let Some(next) = next.filter(|next| matches!(next, '^' | '²') || next.is_alphanumeric())
        {
            let end = self.at + next.len_utf8();
            let problem = "only what grows linearly can be planned: a number times the variable";
            return Err(self.error(from..end, problem));
        }
        Ok(())
    }

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
            ("-4", "-4", "not below 0"),
            ("3x + $", "$", "a number or the variable"),
        ] {
            let error = text.parse::<LinearFormula>().unwrap_err();
            assert_eq!(&text[error.span.clone()], at, "{text}: {error}");
            assert!(error.problem.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_caret_stands_below_the_mistake() {
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
