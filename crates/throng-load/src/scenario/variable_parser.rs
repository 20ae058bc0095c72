//! Parsing a variable: `user.id % 50`, `row.token`, `base64(env.TOKEN)`.

use std::ops::Range;

use throng_base::units::nearest;

use super::function::Function;
use super::template_error::TemplateError;
use super::variable::{Arithmetic, Operator, Variable};
use super::variable_names::{NameError, VariableNames};

/// Parses the variable that begins at byte `at` of `text`, after its `${`. Returns it and the index
/// of its `}`; `None` if there is no `}`.
pub(super) fn parse(
    text: &str,
    at: usize,
    names: &mut VariableNames,
) -> Option<Result<(Variable, usize), TemplateError>> {
    text[at..].find('}')?;
    let mut parser = Parser { text, at, depth: 0, names };
    let parsed = parser.sum().and_then(|variable| match parser.rest().chars().next() {
        Some('}') => parser.check_place(&variable, at).map(|()| (variable, parser.at)),
        _ => Err(parser.error_to_end("this does not belong here", "expected `}`")),
    });
    Some(parsed)
}

struct Parser<'a, 'n> {
    text: &'a str,
    at: usize,
    /// Parentheses that are open here.
    depth: usize,
    names: &'n mut VariableNames,
}

type Parsed = Result<Variable, TemplateError>;

impl<'a> Parser<'a, '_> {
    fn sum(&mut self) -> Parsed {
        self.chain(&[('+', Operator::Plus), ('-', Operator::Minus)], Self::product)
    }

    fn product(&mut self) -> Parsed {
        let operators = [('*', Operator::Times), ('/', Operator::Over), ('%', Operator::Modulo)];
        self.chain(&operators, Self::atom)
    }

    /// Parses operands between operators of one rank, from left to right.
    fn chain(
        &mut self,
        operators: &[(char, Operator)],
        operand: fn(&mut Self) -> Parsed,
    ) -> Parsed {
        let begin = self.skip_space();
        let mut left = operand(self)?;
        loop {
            self.skip_space();
            let next = self.rest().chars().next();
            let Some((sign, operator)) = operators.iter().find(|(sign, _)| next == Some(*sign))
            else {
                return Ok(left);
            };
            self.check_number(&left, begin)?;
            self.at += sign.len_utf8();
            let right_begin = self.skip_space();
            let right = operand(self)?;
            self.check_number(&right, right_begin)?;
            if matches!(operator, Operator::Over | Operator::Modulo)
                && !matches!(right, Variable::Number(1..))
            {
                let label = format!("as in ${{user.id {sign} 1000}}");
                let title = "the right side must be a whole number of at least 1";
                return Err(self.error(right_begin..self.at, title, label));
            }
            left = Variable::Arithmetic(Box::new(Arithmetic { left, operator: *operator, right }));
        }
    }

    fn check_number(&mut self, operand: &Variable, begin: usize) -> Result<(), TemplateError> {
        if operand.is_number() {
            self.names.compute(operand);
            return Ok(());
        }
        let span = begin..begin + self.text[begin..self.at].trim_end().len();
        let label = match operand {
            Variable::Stored { .. } => {
                "this may be a text; values of `foreach` and `set` that are whole numbers can be \
                 computed with"
            }
            _ => "this is a text; user.id, counter, random(a,b) and numbers can be computed with",
        };
        Err(self.error(span, "arithmetic needs whole numbers", label.to_owned()))
    }

    /// Checks that the place of the variable has room for its value.
    fn check_place(&self, variable: &Variable, begin: usize) -> Result<(), TemplateError> {
        if !variable.is_of_bytes() || self.names.is_binary() {
            return Ok(());
        }
        let title = format!("`{variable}` is bytes, and this is a text");
        let label = "it belongs in `binary`, or over TCP in `hex`".to_owned();
        Err(self.error(begin..self.at, &title, label))
    }

    fn atom(&mut self) -> Parsed {
        let begin = self.skip_space();
        match self.rest().chars().next() {
            Some('(') => {
                self.at += 1;
                let inner = self.nested()?;
                self.close(begin)?;
                Ok(inner)
            }
            Some('0'..='9') => self.number(),
            Some(quote @ ('\'' | '"')) => self.quoted(quote),
            Some(first) if first.is_alphabetic() || first == '_' => self.named(),
            Some('}') | None => {
                let label = self.names.list();
                Err(self.error(begin..begin, "a variable is missing", label))
            }
            Some(_) => Err(self.error_to_end("this is no variable", &self.names.list())),
        }
    }

    fn nested(&mut self) -> Parsed {
        if self.depth == DEPTH_MAX {
            return Err(self.error_to_end("too many parentheses", "write it simpler"));
        }
        self.depth += 1;
        let inner = self.sum();
        self.depth -= 1;
        inner
    }

    fn number(&mut self) -> Parsed {
        let begin = self.at;
        let rest = self.rest();
        self.at += rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let digits = &self.text[begin..self.at];
        digits.parse().map(Variable::Number).map_err(|_| {
            self.error(begin..self.at, "this number is too large", "at most 2^64 - 1".to_owned())
        })
    }

    fn quoted(&mut self, quote: char) -> Parsed {
        let begin = self.at + 1;
        let Some(length) = self.text[begin..].find(quote) else {
            return Err(self.error_to_end("a text is not closed", "its second quote is missing"));
        };
        self.at = begin + length + 1;
        Ok(Variable::Text(self.text[begin..begin + length].into()))
    }

    /// Parses a name, and its arguments if it is a function.
    fn named(&mut self) -> Parsed {
        let begin = self.at;
        self.at += name_bytes(self.rest());
        let span = begin..self.at;
        let name = &self.text[span.clone()];
        self.skip_space();
        if !self.rest().starts_with('(') {
            return self.plain(name, span);
        }
        if matches!(name, "user.id" | "counter") {
            let label = format!("write ${{{name}}}");
            return Err(self.error(span, "this variable takes no arguments", label));
        }
        if Function::of(name).is_none() {
            return Err(self.unknown(name, span));
        }
        self.at += 1;
        let arguments = self.arguments(begin)?;
        self.function(name, begin..self.at, arguments)
    }

    fn plain(&mut self, name: &str, span: Range<usize>) -> Parsed {
        match name {
            "user.id" => return Ok(Variable::UserId),
            "counter" => return Ok(Variable::Counter),
            _ => {}
        }
        match (self.names.find(name), Function::of(name)) {
            // A stored value may have the name of a function.
            (Ok(variable), _) => Ok(variable),
            (Err(_), Some(Function { example, .. })) => {
                let title = format!("`{name}` is a function");
                Err(self.error(span, &title, format!("as in ${{{example}}}")))
            }
            (Err(why), None) => Err(self.no_value(name, span, why)),
        }
    }

    fn no_value(&self, name: &str, span: Range<usize>, why: NameError) -> TemplateError {
        match why {
            NameError::Unknown => self.unknown(name, span),
            NameError::Other { title, label } => self.error(span, &title, label),
        }
    }

    fn unknown(&self, name: &str, span: Range<usize>) -> TemplateError {
        let known = self.names.known();
        let functions = self.names.functions().map(|function| function.name);
        let known = known.iter().map(String::as_str).chain(functions);
        let names = known.collect::<Vec<_>>();
        let last = |known: &&str| known.rsplit('.').next().unwrap_or_default().to_owned();
        let lasts: Vec<_> = names.iter().map(last).collect();
        let of_last = || {
            let near = nearest(name, lasts.iter().map(String::as_str))?;
            names.iter().copied().find(|known| last(known) == near)
        };
        let label = match nearest(name, names.iter().copied()).or_else(of_last) {
            Some(near) => format!("did you mean `{}`?", usage(near)),
            None => self.names.list(),
        };
        self.error(span, &format!("unknown variable `{name}`"), label)
    }

    fn arguments(&mut self, begin: usize) -> Result<Vec<Variable>, TemplateError> {
        let mut arguments = Vec::new();
        self.skip_space();
        while !self.rest().starts_with([')', '}']) {
            arguments.push(self.nested()?);
            self.skip_space();
            if !self.rest().starts_with(',') {
                break;
            }
            self.at += 1;
            self.skip_space();
        }
        self.close(begin)?;
        Ok(arguments)
    }

    fn close(&mut self, begin: usize) -> Result<(), TemplateError> {
        self.skip_space();
        if !self.rest().starts_with(')') {
            let title = "a parenthesis is not closed";
            let end = self.at;
            return Err(self.error(begin..end, title, "`)` is missing".to_owned()));
        }
        self.at += 1;
        Ok(())
    }

    fn function(&self, name: &str, span: Range<usize>, mut arguments: Vec<Variable>) -> Parsed {
        let count = arguments.len();
        self.check_arguments(name, span.clone(), &arguments)?;
        let one = |arguments: &mut Vec<Variable>| arguments.pop().map(Box::new);
        let made = match (name, &arguments[..]) {
            ("random", [Variable::Number(low), Variable::Number(high)]) => {
                Some(Variable::Random(*low, *high))
            }
            ("choice", [_, ..]) => Some(Variable::Choice(std::mem::take(&mut arguments).into())),
            ("uuid", []) => Some(Variable::Uuid),
            ("time", []) => Some(Variable::Time(1_000_000)),
            ("time", [Variable::Text(unit)]) => match &**unit {
                "s" => Some(Variable::Time(1_000_000_000)),
                "ms" => Some(Variable::Time(1_000_000)),
                "us" => Some(Variable::Time(1_000)),
                _ => None,
            },
            ("base64", [_]) => one(&mut arguments).map(Variable::Base64),
            ("json", [_]) => one(&mut arguments).map(Variable::Json),
            ("sha256", [_]) => one(&mut arguments).map(Variable::Sha256),
            ("raw", [_]) => one(&mut arguments).map(Variable::Raw),
            ("length", [_]) => one(&mut arguments).map(Variable::Length),
            ("varint", [_]) => one(&mut arguments).map(Variable::Varint),
            ("from_hex", [_]) => one(&mut arguments).map(Variable::FromHex),
            ("from_base64", [_]) => one(&mut arguments).map(Variable::FromBase64),
            _ => integer(name, arguments),
        };
        made.ok_or_else(|| {
            let needs = match name {
                "random" => "two whole numbers",
                "choice" => "at least one value",
                "uuid" => "no arguments",
                "time" => "no arguments, or 's', 'ms' or 'us'",
                "u8" | "u16" | "u32" | "u64" => "one value, and 'le' for the lowest byte first",
                _ => "one value",
            };
            let title = format!("`{name}` takes {needs}");
            let example = Function::of(name).map_or("", |function| function.example);
            let label = format!("{count} given; as in ${{{example}}}");
            self.error(span, &title, label)
        })
    }

    /// Reports arguments that the function of this name can do nothing with.
    fn check_arguments(
        &self,
        name: &str,
        span: Range<usize>,
        arguments: &[Variable],
    ) -> Result<(), TemplateError> {
        if let Some(inner) = arguments.iter().find(|argument| argument.is_raw()) {
            let title = format!("`{inner}` is within `{name}`");
            let label = "`raw` is around the whole value, as in ${raw(choice('a', 'b'))}";
            return Err(self.error(span, &title, label.to_owned()));
        }
        match (name, arguments) {
            ("random", [Variable::Number(low), Variable::Number(high)]) if low > high => {
                let label = format!("{low} is more than {high}: random({high},{low})");
                Err(self.error(span, "the range of a random number is empty", label))
            }
            ("json", [inner]) if inner.is_of_bytes() => {
                let title = format!("`{inner}` is bytes, and JSON has only texts");
                Err(self.error(span, &title, "as in ${json(base64(x))}".to_owned()))
            }
            ("length", [inner]) if inner.drawn().is_some() => {
                let label = "keep it with `set` before this step, and use its name in both places";
                Err(self.error(span, "each use of this value has another length", label.to_owned()))
            }
            ("u8" | "u16" | "u32" | "u64", [Variable::Number(number), ..])
                if number.checked_shr(bits_of(name)).unwrap_or(0) > 0 =>
            {
                let label = format!("at most {}", u64::MAX >> (64 - bits_of(name)));
                Err(self.error(span, &format!("{number} does not fit into `{name}`"), label))
            }
            _ => Ok(()),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Skips spaces. Returns the index of what follows.
    fn skip_space(&mut self) -> usize {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.at
    }

    fn error(&self, span: Range<usize>, title: &str, label: String) -> TemplateError {
        TemplateError { span, title: title.to_owned(), label }
    }

    /// Returns an error about everything from here to the end of the variable.
    fn error_to_end(&self, title: &str, label: &str) -> TemplateError {
        let end = self.rest().find('}').map_or(self.text.len(), |length| self.at + length);
        self.error(self.at..end, title, label.to_owned())
    }
}

/// Returns the length of the name that `text` begins with. After a dot, as in the name of a column,
/// it may have hyphens and further dots.
fn name_bytes(text: &str) -> usize {
    let mut has_dot = false;
    let end = text.find(|c: char| {
        has_dot |= c == '.';
        !(c.is_alphanumeric() || c == '_' || c == '.' || c == '-' && has_dot)
    });
    text[..end.unwrap_or(text.len())].trim_end_matches('-').len()
}

/// Returns a name as it is used: a function with its arguments.
fn usage(name: &str) -> &str {
    Function::of(name).map_or(name, |function| function.usage)
}

/// Makes a whole number of bytes: `u16(x)`, `u16(x, 'le')`.
fn integer(name: &str, arguments: Vec<Variable>) -> Option<Variable> {
    let bytes = (bits_of(name) / 8) as u8;
    let mut arguments = arguments.into_iter();
    let (value, order) = (arguments.next()?, arguments.next());
    let is_little = match order {
        None => false,
        Some(Variable::Text(order)) if &*order == "le" => true,
        Some(_) => return None,
    };
    let is_one = bytes > 0 && arguments.next().is_none();
    is_one.then(|| Variable::Integer { bytes, is_little, value: Box::new(value) })
}

/// Returns the bits of the numbers that a function makes; 0 for all other functions.
fn bits_of(name: &str) -> u32 {
    match name {
        "u8" => 8,
        "u16" => 16,
        "u32" => 32,
        "u64" => 64,
        _ => 0,
    }
}

/// Deepest nesting of parentheses.
const DEPTH_MAX: usize = 16;
