//! Arithmetic in a scenario file: `ceil(users / rate, 1s)`.
//!
//! A quantity has a dimension: a number, a duration or a rate. Users divided by a rate are a
//! duration, and only what is alike can be added or compared. A quantity may be unknown; so is all
//! that is computed from it, and an unknown condition does not hold.

use std::ops::Range;

use throng_base::units::{parse_bytes, parse_count, parse_duration, parse_rate};

use super::quantity::Quantity;

/// The reason why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ExpressionError {
    /// The bytes of the expression at fault.
    pub span: Range<usize>,
    /// The problem with these bytes.
    pub problem: String,
}

/// The names that an expression may use.
pub type Scope<'a> = &'a dyn Fn(&str) -> Option<Quantity>;

/// Evaluates `text`.
///
/// # Errors
/// [`ExpressionError`]: `text` is no expression, uses a name that `scope` does not know, or mixes
/// dimensions.
pub fn evaluate(text: &str, scope: Scope<'_>) -> Result<Quantity, ExpressionError> {
    let mut evaluator = Evaluator { text, at: 0, depth: 0, scope };
    if text.len() > EXPRESSION_BYTES_MAX {
        let problem = format!("an expression has at most {EXPRESSION_BYTES_MAX} bytes");
        return Err(ExpressionError { span: 0..text.len(), problem });
    }
    let value = evaluator.any()?;
    match evaluator.rest() {
        "" => Ok(value),
        rest => {
            let end = evaluator.at + rest.chars().next().map_or(0, char::len_utf8);
            Err(evaluator.error(evaluator.at..end, "an operator belongs here"))
        }
    }
}

/// An expression, read and computed from left to right.
struct Evaluator<'a> {
    text: &'a str,
    at: usize,
    /// Parentheses that are open here.
    depth: usize,
    scope: Scope<'a>,
}

type Evaluated = Result<Quantity, ExpressionError>;

impl<'a> Evaluator<'a> {
    fn any(&mut self) -> Evaluated {
        let mut left = self.all()?;
        while self.take_word("or") {
            let right = self.all()?;
            left = Quantity::truth(left.holds() || right.holds());
        }
        Ok(left)
    }

    fn all(&mut self) -> Evaluated {
        let mut left = self.condition()?;
        while self.take_word("and") {
            let right = self.condition()?;
            left = Quantity::truth(left.holds() && right.holds());
        }
        Ok(left)
    }

    fn condition(&mut self) -> Evaluated {
        if self.take_word("not") {
            return Ok(Quantity::truth(!self.condition()?.holds()));
        }
        let left = self.sum()?;
        let at = self.at;
        let Some(sign) = COMPARISONS.into_iter().find(|sign| self.take(sign)) else {
            return Ok(left);
        };
        let right = self.sum()?;
        if let (Quantity::Text(a), Quantity::Text(b)) = (&left, &right) {
            return match sign {
                "==" => Ok(Quantity::truth(a == b)),
                "!=" => Ok(Quantity::truth(a != b)),
                _ => Err(self.error(at..self.at, "texts are compared with == and != only")),
            };
        }
        self.alike(at, &left, &right, |a, b| {
            let holds = match sign {
                "<=" => a <= b,
                ">=" => a >= b,
                "<" => a < b,
                ">" => a > b,
                "==" => a == b,
                _ => a != b,
            };
            f64::from(u8::from(holds))
        })
        .map(|truth| truth.value().map_or(Quantity::Unknown, Quantity::number))
    }

    fn sum(&mut self) -> Evaluated {
        let mut left = self.product()?;
        loop {
            let at = self.at;
            if self.take("+") {
                left = self.product().and_then(|b| self.alike(at, &left, &b, |a, b| a + b))?;
            } else if self.take("-") {
                left = self.product().and_then(|b| self.alike(at, &left, &b, |a, b| a - b))?;
            } else {
                return Ok(left);
            }
        }
    }

    fn product(&mut self) -> Evaluated {
        let mut left = self.atom()?;
        loop {
            let at = self.at;
            let (is_times, is_by) = (self.take("*"), self.take("/"));
            if !is_times && !is_by && !self.take("%") {
                return Ok(left);
            }
            let right = self.atom()?;
            left = match (&left, &right) {
                (
                    Quantity::Number { value: a, time: s },
                    Quantity::Number { value: b, time: t },
                ) if is_times || is_by => {
                    let (value, time) = if is_times { (a * b, s + t) } else { (a / b, s - t) };
                    if !(-POWER_MAX..=POWER_MAX).contains(&time) {
                        let problem = "too high a power of the second";
                        return Err(self.error(at..self.at, problem));
                    }
                    Quantity::with_time(value, time)
                }
                _ => self.alike(at, &left, &right, |a, b| a % b)?,
            };
        }
    }

    fn atom(&mut self) -> Evaluated {
        let rest = self.rest();
        let start = self.at;
        let count_while = |is: fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
        match rest.chars().next() {
            Some('(') => {
                self.at += 1;
                self.nested(Self::any)
            }
            Some('-') => {
                self.at += 1;
                let value = self.nested_atom()?;
                self.alike(start, &Quantity::number(0.0).like(&value), &value, |a, b| a - b)
            }
            Some('\'') => {
                let Some(length) = rest[1..].find('\'') else {
                    return Err(self.error(start..self.text.len(), "`'` is missing at the end"));
                };
                self.at += length + 2;
                Ok(Quantity::Text(rest[1..=length].to_owned()))
            }
            Some('0'..='9') => {
                let is_part = |c: char| c.is_alphanumeric() || c == '.' || c == '_';
                let mut length = count_while(is_part);
                let mut units = ["/s", "/m", "/h"].into_iter();
                let unit = units.find(|unit| {
                    let after = rest[length..].strip_prefix(unit);
                    after.is_some_and(|after| !after.starts_with(char::is_alphanumeric))
                });
                length += unit.map_or(0, str::len);
                self.at += length;
                self.literal(start)
            }
            Some('a'..='z' | 'A'..='Z' | '_') => {
                self.at += count_while(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
                let name = &self.text[start..self.at];
                if self.take("(") {
                    return self.function(name, start);
                }
                (self.scope)(name).ok_or_else(|| {
                    self.error(start..self.at, &format!("`{name}` is not known here"))
                })
            }
            _ => Err(self.error(start..start, "a value is missing")),
        }
    }

    fn nested_atom(&mut self) -> Evaluated {
        self.deeper()?;
        let value = self.atom();
        self.depth -= 1;
        value
    }

    /// Reads what is in parentheses, and the closing one.
    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ExpressionError>,
    ) -> Result<T, ExpressionError> {
        self.deeper()?;
        let value = read(self)?;
        self.depth -= 1;
        if !self.take(")") {
            return Err(self.error(self.at..self.at, "`)` is missing"));
        }
        Ok(value)
    }

    fn deeper(&mut self) -> Result<(), ExpressionError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error(self.at..self.at, "too many parentheses are open"));
        }
        Ok(())
    }

    fn literal(&self, start: usize) -> Evaluated {
        let text = &self.text[start..self.at];
        if let Ok(number) = text.parse() {
            return Ok(Quantity::number(number));
        }
        if let Ok(count) = parse_count(text).or_else(|_| parse_bytes(text)) {
            return Ok(Quantity::number(count as f64));
        }
        if let Ok(span) = parse_duration(text) {
            return Ok(Quantity::seconds(span.as_secs_f64()));
        }
        parse_rate(text).map(Quantity::per_second).map_err(|_| {
            self.error(start..self.at, &format!("`{text}` is no number, duration or rate"))
        })
    }

    fn function(&mut self, name: &str, start: usize) -> Evaluated {
        let values = self.nested(|this| {
            let mut values = vec![this.any()?];
            while this.take(",") {
                values.push(this.any()?);
            }
            Ok(values)
        })?;
        let fold = |apply: fn(f64, f64) -> f64| {
            let mut rest = values.iter();
            let first = rest.next().cloned().unwrap_or(Quantity::Unknown);
            rest.try_fold(first, |a, b| self.alike(start, &a, b, apply))
        };
        let round = |apply: fn(f64) -> f64| {
            let step = values.get(1).cloned().unwrap_or(Quantity::number(1.0).like(&values[0]));
            self.alike(start, &values[0], &step, |value, step| nearly(value / step, apply) * step)
        };
        match (name, &values[..]) {
            ("min", _) => fold(f64::min),
            ("max", _) => fold(f64::max),
            ("ceil", [_] | [_, _]) => round(f64::ceil),
            ("floor", [_] | [_, _]) => round(f64::floor),
            ("round", [_] | [_, _]) => round(f64::round),
            ("if", [condition, then, other]) => {
                Ok(if condition.holds() { then } else { other }.clone())
            }
            ("known", [value]) => Ok(Quantity::truth(*value != Quantity::Unknown)),
            ("first", _) => {
                let known = values.iter().find(|value| **value != Quantity::Unknown);
                Ok(known.cloned().unwrap_or(Quantity::Unknown))
            }
            _ => Err(self.error(
                start..start + name.len(),
                &format!(
                    "`{name}` with {} values is not known; functions are min, max, ceil, floor, \
                     round, if, first, known",
                    values.len()
                ),
            )),
        }
    }

    /// Applies `apply` to two quantities of the same dimension.
    fn alike(
        &self,
        at: usize,
        a: &Quantity,
        b: &Quantity,
        apply: impl Fn(f64, f64) -> f64,
    ) -> Evaluated {
        match (a, b) {
            (Quantity::Unknown, _) | (_, Quantity::Unknown) => Ok(Quantity::Unknown),
            (Quantity::Number { value: a, time: s }, Quantity::Number { value: b, time: t })
                if s == t =>
            {
                Ok(Quantity::with_time(apply(*a, *b), *s))
            }
            _ => {
                let problem = format!("{} and {} do not match", a.kind(), b.kind());
                Err(self.error(at..self.at, &problem))
            }
        }
    }

    /// Returns the text that is left, without the space before it.
    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let after = self.rest().strip_prefix(word);
        after.is_some_and(|after| !after.starts_with(is_name)) && self.take(word)
    }

    fn error(&self, span: Range<usize>, problem: &str) -> ExpressionError {
        ExpressionError { span, problem: problem.to_owned() }
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

/// Rounds with `round`, but takes what is nearly a whole number for it: 30 s are 30,000 ms.
fn nearly(value: f64, round: fn(f64) -> f64) -> f64 {
    let whole = value.round();
    if (value - whole).abs() < 1e-6 { whole } else { round(value) }
}

/// The highest power of the second in a value.
const POWER_MAX: i8 = 8;

const COMPARISONS: [&str; 6] = ["<=", ">=", "==", "!=", "<", ">"];
/// The longest expression.
pub const EXPRESSION_BYTES_MAX: usize = 500;
/// The most parentheses that are open at one place.
const DEPTH_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<String, ExpressionError> {
        let scope = |name: &str| match name {
            "users" => Some(Quantity::number(210_000.0)),
            "rate" => Some(Quantity::per_second(7_000.0)),
            "connect.p99" => Some(Quantity::Unknown),
            "end" => Some(Quantity::Text("timeouts".into())),
            _ => None,
        };
        evaluate(text, &scope).map(|value| value.to_string())
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(value(text).as_deref(), Ok(expected), "{text}");
    }

    #[test]
    fn quantities_keep_their_dimension() {
        check("users / rate", "30s");
        check("ceil(users / rate, 1ms) / 2", "15s");
        check("rate * 1m30s", "630000");
        check("2k/s + rate", "9k/s");
        check("200k + 1.5M - 1_000", "1699000");
        check("-3 + 5 % 3 * 2", "1");
        check("(1 + 2) * 3", "9");
        check("1 / 3s", "20/m");
        check("ceil(10k / 35s, 1/h) * 1h", "1028572");
    }

    #[test]
    fn functions_take_quantities_that_are_alike() {
        check("min(5, 3, 4)", "3");
        check("max(1s, 200ms)", "1s");
        check("ceil(2.1)", "3");
        check("floor(17s / 2)", "8s");
        check("round(users, 100k)", "200000");
        check("if(users > 100k, 1, 2)", "1");
        check("first(connect.p99, 7)", "7");
    }

    #[test]
    fn what_is_unknown_stays_unknown_and_holds_nothing() {
        check("connect.p99 + 1", "unknown");
        check("1 / 0", "unknown");
        check("if(connect.p99 > 1, 1, 2)", "2");
        check("known(connect.p99) or not known(users)", "0");
    }

    #[test]
    fn conditions_compare_numbers_and_texts() {
        check("users >= 210k and rate == 7k/s", "1");
        check("end == 'timeouts' and not end == 'none'", "1");
        check("end != 'timeouts' or 1 < 1", "0");
    }

    #[track_caller]
    fn check_error(text: &str, at: &str, problem: &str) {
        let error = value(text).unwrap_err();
        assert_eq!(&text[error.span.clone()], at, "{error:?}");
        assert!(error.problem.contains(problem), "{error}");
    }

    #[test]
    fn a_mistake_is_shown_where_it_is() {
        check_error("1 + user", "user", "`user` is not known");
        check_error("'b' < 'a'", "< 'a'", "== and != only");
        check_error("1s*1s*1s*1s*1s*1s*1s*1s*1s", "*1s", "too high a power");
        check_error("users + 1s", "+ 1s", "a number and a duration do not match");
        check_error("ceil(1", "", "`)` is missing");
        check_error("1 2", "2", "an operator");
        check_error("7 *", "", "a value is missing");
        check_error("12parsec", "12parsec", "no number, duration or rate");
        check_error("mean(1, 2)", "mean", "functions are min");
        check_error(&"(".repeat(100), "", "too many parentheses");
        check_error(&"-".repeat(100), "", "too many parentheses");
        assert!(value(&"1+".repeat(400)).unwrap_err().problem.contains("at most 500 bytes"));
    }
}
