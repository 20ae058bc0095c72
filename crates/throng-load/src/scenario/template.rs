//! Text with variables: `device ${user.id} says ${random(1,6)}`.
//!
//! The reader parses a template once. Rendering appends to the caller's buffer and allocates
//! nothing else.

use std::ops::Range;

use throng_base::Prng;
use throng_base::units::nearest;

/// Segments that are written one after another. Text without variables is a single literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    segments: Box<[Segment]>,
}

/// A segment of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Literal bytes.
    Literal(Box<[u8]>),
    /// `${user.id}`: number of the user over all cores and machines, from 0.
    UserId,
    /// `${user.id / n}`: number of the user's group, where each group has n users; n is at least 1.
    UserGroup(u64),
    /// `${user.id % n}`: the user's group, where there are n groups; n is at least 1.
    UserModulo(u64),
    /// `${counter}`: number of earlier messages of this user with a counter, from 0.
    Counter,
    /// `${random(a,b)}`: a random integer from a to b, both included.
    Random(u64, u64),
}

/// Values of a user's variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateVars {
    /// Number of the user.
    pub user_id: u64,
    /// Messages with a counter so far.
    pub counter: u64,
    /// Random numbers of the user.
    pub prng: Prng,
}

/// Error in a template, with the bytes at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// Bytes at fault.
    pub span: Range<usize>,
    /// Description of the error.
    pub title: String,
    /// Expected text or suggestion.
    pub label: String,
}

impl Template {
    /// Parses `text`; `$${` stands for a plain `${`.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut segments = Vec::new();
        let mut literal = String::new();
        let mut at = 0;
        while let Some(found) = text[at..].find("${") {
            let open = at + found;
            if text[..open].ends_with('$') && open > at {
                literal += &text[at..open - 1];
                literal += "${";
                at = open + 2;
                continue;
            }
            literal += &text[at..open];
            let Some(length) = text[open..].find('}') else {
                return Err(TemplateError {
                    span: open..text.len(),
                    title: "a variable is not closed".to_owned(),
                    label: "`}` is missing; a plain `${` is written `$${`".to_owned(),
                });
            };
            if !literal.is_empty() {
                segments.push(Segment::Literal(std::mem::take(&mut literal).into_bytes().into()));
            }
            segments.push(variable(&text[open + 2..open + length], open + 2)?);
            at = open + length + 1;
        }
        literal += &text[at..];
        if !literal.is_empty() {
            segments.push(Segment::Literal(literal.into_bytes().into()));
        }
        Ok(Self { segments: segments.into() })
    }

    /// Creates a template from segments. Joins neighbouring literals.
    pub fn from_segments(segments: impl IntoIterator<Item = Segment>) -> Self {
        let mut joined: Vec<Segment> = Vec::new();
        for segment in segments {
            match (joined.last_mut(), &segment) {
                (_, Segment::Literal(bytes)) if bytes.is_empty() => {}
                (Some(Segment::Literal(before)), Segment::Literal(bytes)) => {
                    *before = [&**before, &**bytes].concat().into();
                }
                _ => joined.push(segment),
            }
        }
        Self { segments: joined.into() }
    }

    /// Creates a template from literal bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        let literal = (!bytes.is_empty()).then(|| Segment::Literal(bytes.into()));
        Self { segments: literal.into_iter().collect() }
    }

    /// Returns the segments in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns the whole text if the template has no variables.
    pub fn as_literal(&self) -> Option<&[u8]> {
        match &*self.segments {
            [] => Some(&[]),
            [Segment::Literal(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// Returns an upper bound of the rendered length, in bytes.
    pub fn bytes_max(&self) -> usize {
        let of_segment = |segment: &Segment| match segment {
            Segment::Literal(bytes) => bytes.len(),
            Segment::UserId
            | Segment::UserGroup(_)
            | Segment::UserModulo(_)
            | Segment::Counter
            | Segment::Random(..) => DIGITS_MAX,
        };
        self.segments.iter().map(of_segment).sum()
    }

    /// Appends the text of one message. Advances the counter by one if the message contains it.
    pub fn render(&self, vars: &mut TemplateVars, out: &mut Vec<u8>) {
        let mut counted = false;
        for segment in &self.segments {
            match *segment {
                Segment::Literal(ref bytes) => out.extend_from_slice(bytes),
                Segment::UserId => digits(vars.user_id, out),
                Segment::UserGroup(size) => digits(vars.user_id / size, out),
                Segment::UserModulo(groups) => digits(vars.user_id % groups, out),
                Segment::Counter => {
                    digits(vars.counter, out);
                    counted = true;
                }
                Segment::Random(low, high) => digits(vars.prng.between(low, high), out),
            }
        }
        vars.counter += u64::from(counted);
    }
}

/// Parses a variable. `inside` is its text, which begins at byte `at` of the template.
fn variable(inside: &str, at: usize) -> Result<Segment, TemplateError> {
    let wrong = |title: &str, label: String| TemplateError {
        span: at..at + inside.len(),
        title: title.to_owned(),
        label,
    };
    if let Some((name, operator, number)) = division(inside) {
        let number = number.parse::<u64>().ok().filter(|number| *number > 0);
        return match (name, operator, number) {
            ("user.id", '/', Some(size)) => Ok(Segment::UserGroup(size)),
            ("user.id", _, Some(groups)) => Ok(Segment::UserModulo(groups)),
            ("user.id", operator, None) => {
                let label = format!("as in ${{user.id {operator} 1000}}");
                Err(wrong("`user.id` must be divided by a whole number of at least 1", label))
            }
            _ => Err(wrong("only `user.id` can be divided", "remove this".to_owned())),
        };
    }
    let (name, arguments) = match inside.split_once('(') {
        Some((name, rest)) => (name.trim(), Some(rest.trim_end())),
        None => (inside.trim(), None),
    };
    match (name, arguments) {
        ("user.id", None) => Ok(Segment::UserId),
        ("counter", None) => Ok(Segment::Counter),
        ("random", Some(rest)) => {
            let bounds = rest.strip_suffix(')').and_then(|rest| rest.split_once(','));
            let number = |text: &str| text.trim().parse::<u64>().ok();
            match bounds.map(|(low, high)| (number(low), number(high))) {
                Some((Some(low), Some(high))) if low <= high => Ok(Segment::Random(low, high)),
                Some((Some(low), Some(high))) => {
                    let label = format!("{low} is more than {high}: random({high},{low})");
                    Err(wrong("the range of a random number is empty", label))
                }
                _ => Err(wrong(
                    "`random` takes two whole numbers",
                    "as in ${random(1,6)}".to_owned(),
                )),
            }
        }
        ("random", None) => {
            Err(wrong("`random` takes two whole numbers", "as in ${random(1,6)}".to_owned()))
        }
        ("user.id" | "counter", Some(_)) => {
            Err(wrong("this variable takes no arguments", format!("write ${{{name}}}")))
        }
        _ => {
            let label = match nearest(name, NAMES) {
                Some("random") => "did you mean `random(a,b)`?".to_owned(),
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    "use user.id, counter or random(a,b); a plain `${` is written `$${`".to_owned()
                }
            };
            Err(wrong(&format!("unknown variable `{name}`"), label))
        }
    }
}

/// Splits `user.id / 1000` into its three parts.
fn division(inside: &str) -> Option<(&str, char, &str)> {
    let at = inside.find(['/', '%'])?;
    let operator = inside[at..].chars().next()?;
    Some((inside[..at].trim(), operator, inside[at + 1..].trim()))
}

/// Appends a number in decimal.
fn digits(mut number: u64, out: &mut Vec<u8>) {
    let mut buffer = [0u8; DIGITS_MAX];
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&buffer[at..]);
}

/// Digits of the largest number.
const DIGITS_MAX: usize = 20;

const NAMES: [&str; 3] = ["user.id", "counter", "random"];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn render(text: &str, vars: &mut TemplateVars) -> String {
        let mut out = Vec::new();
        Template::parse(text).unwrap().render(vars, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn vars() -> TemplateVars {
        TemplateVars { user_id: 42, counter: 0, prng: Prng::new(1) }
    }

    #[test]
    fn variables_are_filled_in() {
        let vars = &mut vars();
        assert_eq!(render("user ${user.id}!", vars), "user 42!");
        assert_eq!(render("${counter} ${counter}", vars), "0 0");
        assert_eq!(render("${ counter }", vars), "1");
        assert_eq!(render("no counter here", vars), "no counter here");
        assert_eq!(render("${counter}", vars), "2");
        assert_eq!(render("${random(7,7)}", vars), "7");
        assert_eq!(render("${user.id / 10} ${user.id%10} ${user.id / 43}", vars), "4 2 0");
        let thrown = render("${random(1, 6)}", vars).parse::<u64>().unwrap();
        assert!((1..=6).contains(&thrown));
    }

    #[test]
    fn dollars_that_open_nothing_stay() {
        let vars = &mut vars();
        for (text, rendered) in [
            ("", ""),
            ("$5 and 5$", "$5 and 5$"),
            ("$${user.id}", "${user.id}"),
            ("a$${${user.id}}", "a${42}"),
            ("${user.id}${user.id}", "4242"),
            ("{}", "{}"),
        ] {
            assert_eq!(render(text, vars), rendered, "{text}");
        }
        assert_eq!(Template::parse("$${a} b").unwrap().as_literal(), Some(&b"${a} b"[..]));
        assert_eq!(Template::parse("x ${counter}").unwrap().as_literal(), None);
    }

    #[test]
    fn mistakes_are_named_and_placed() {
        for (text, at, says) in [
            ("a ${user.ip} b", "user.ip", "did you mean `user.id`?"),
            ("${contuer}", "contuer", "did you mean `counter`?"),
            ("${rand(1,2)}", "rand(1,2)", "did you mean `random(a,b)`?"),
            ("${banana}", "banana", "use user.id"),
            ("x ${user.id", "${user.id", "`}` is missing"),
            ("${random}", "random", "${random(1,6)}"),
            ("${random(1)}", "random(1)", "${random(1,6)}"),
            ("${random(1,x)}", "random(1,x)", "${random(1,6)}"),
            ("${random(6,1)}", "random(6,1)", "random(1,6)"),
            ("${counter()}", "counter()", "write ${counter}"),
            ("${user.id / 0}", "user.id / 0", "${user.id / 1000}"),
            ("${user.id % x}", "user.id % x", "${user.id % 1000}"),
            ("${counter % 2}", "counter % 2", "remove this"),
            ("${}", "", "use user.id"),
        ] {
            let error = Template::parse(text).expect_err(text);
            assert_eq!(&text[error.span.clone()], at, "{text}: {error:?}");
            assert!(error.label.contains(says), "{text}: {error:?}");
        }
    }

    #[test]
    fn neighbouring_literals_become_one() {
        let literal = |text: &str| Segment::Literal(text.as_bytes().into());
        let pieces = [literal(""), literal("a"), literal("b"), Segment::UserId, literal("c")];
        let template = Template::from_segments(pieces);
        assert_eq!(template, Template::parse("ab${user.id}c").unwrap());
    }

    proptest! {
        #[test]
        fn text_without_variables_is_itself(text in "[^$]{0,40}") {
            let template = Template::parse(&text).unwrap();
            prop_assert_eq!(template.as_literal(), Some(text.as_bytes()));
        }

        #[test]
        fn an_escaped_text_renders_as_the_text(text in "[a${}(]{0,12}") {
            let escaped = text.replace("${", "$${");
            // A dollar before the opening one would be part of the escape.
            prop_assume!(!text.contains("$${"));
            prop_assert_eq!(render(&escaped, &mut vars()), text);
        }

        #[test]
        fn numbers_are_written_as_usual(number: u64) {
            let mut out = Vec::new();
            digits(number, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
