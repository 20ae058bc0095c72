//! Text with variables: `device ${user.id} says ${random(1,6)}`.
//!
//! The reader parses a template once. Rendering appends to the caller's buffer and allocates
//! nothing else.

use std::fmt;
use std::ops::Range;

use super::escape::Escape;
use super::template_error::TemplateError;
use super::variable::{Variable, VariableScope};
use super::variable_names::VariableNames;
use super::variable_parser;

/// Segments that are written one after another. Text without variables is a single literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    segments: Box<[Segment]>,
    /// True if it has a counter.
    is_counted: bool,
}

/// A segment of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Literal bytes.
    Literal(Box<[u8]>),
    /// The value of a variable, in the form that its place needs.
    Variable(Variable, Escape),
}

/// The reader of a piece between two variables: it returns the bytes that the piece stands for,
/// from its text and the byte at which that begins.
pub(super) type PieceReader<'a> = dyn Fn(&str, usize) -> Result<Vec<u8>, TemplateError> + 'a;

impl Segment {
    /// Creates the segment of a variable in the form that its place needs. A raw value has none.
    pub(crate) fn escaped(variable: &Variable, escape: Escape) -> Self {
        let escape = if variable.is_raw() { Escape::None } else { escape };
        Self::Variable(variable.clone(), escape)
    }
}

impl Template {
    /// Parses `text`, which uses no names of its scenario; `$${` stands for a plain `${`.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        // There is at least one, and the first is told.
        Self::parse_with(text, &mut VariableNames::default()).map_err(|mut errors| errors.remove(0))
    }

    /// Parses `text`, which may use these names. Returns all mistakes in it, at least one.
    pub(super) fn parse_with(
        text: &str,
        names: &mut VariableNames,
    ) -> Result<Self, Vec<TemplateError>> {
        Self::parse_pieces(text, names, &|piece, _| Ok(piece.as_bytes().to_vec()))
    }

    /// Parses `text`, whose pieces between the variables stand for the bytes that `read` returns.
    /// Returns all mistakes in it, at least one.
    pub(super) fn parse_pieces(
        text: &str,
        names: &mut VariableNames,
        read: &PieceReader<'_>,
    ) -> Result<Self, Vec<TemplateError>> {
        let mut parts = Vec::new();
        let mut at = 0;
        let piece = |range: Range<usize>| {
            read(&text[range.clone()], range.start).map(|bytes| Segment::Literal(bytes.into()))
        };
        while let Some(found) = text[at..].find("${") {
            let open = at + found;
            if text[at..open].ends_with('$') {
                parts.extend([piece(at..open - 1), piece(open..open + 2)]);
                at = open + 2;
                continue;
            }
            parts.push(piece(at..open));
            let parsed = variable_parser::parse(text, open + 2, names);
            // The parser has found one mistake. What follows has mistakes of its own.
            let after = text[open..].find('}').map_or(text.len(), |close| open + close + 1);
            let part = parsed.unwrap_or_else(|| {
                Err(TemplateError {
                    span: open..text.len(),
                    title: "a variable is not closed".to_owned(),
                    label: "`}` is missing; a plain `${` is written `$${`".to_owned(),
                })
            });
            at = part.as_ref().map_or(after, |(_, close)| close + 1);
            parts.push(part.map(|(variable, _)| match variable {
                Variable::Text(text) => Segment::Literal(text.into_boxed_bytes()),
                variable => Segment::Variable(variable, Escape::None),
            }));
        }
        parts.push(piece(at..text.len()));
        if parts.iter().any(Result::is_err) {
            return Err(parts.into_iter().filter_map(Result::err).collect());
        }
        Ok(Self::from_segments(parts.into_iter().flatten()))
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
        let mut template = Self { segments: joined.into(), is_counted: false };
        template.is_counted = template.uses(|part| *part == Variable::Counter);
        template
    }

    /// Creates a template from literal bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self::from_segments([Segment::Literal(bytes.into())])
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

    /// Reports whether the text may be `text`: any value may stand in place of a variable.
    pub(crate) fn may_be(&self, text: &[u8]) -> bool {
        let (mut rest, mut after_variable) = (text, false);
        for (at, segment) in self.segments.iter().enumerate() {
            let bytes = match segment {
                Segment::Literal(bytes) => &**bytes,
                Segment::Variable(..) => {
                    after_variable = true;
                    continue;
                }
            };
            if after_variable && at + 1 == self.segments.len() {
                return rest.ends_with(bytes);
            }
            let mut places = rest.windows(bytes.len());
            let from = match after_variable {
                true => places.position(|place| place == bytes),
                false => rest.starts_with(bytes).then_some(0),
            };
            let Some(from) = from else { return false };
            rest = &rest[from + bytes.len()..];
            after_variable = false;
        }
        after_variable || rest.is_empty()
    }

    /// Returns the template with its variables in another form. Literals stay.
    pub(crate) fn with_escape(&self, escape: Escape) -> Self {
        let segments = self.segments.iter().map(|segment| match segment {
            Segment::Variable(variable, _) => Segment::escaped(variable, escape),
            literal @ Segment::Literal(_) => literal.clone(),
        });
        Self::from_segments(segments)
    }

    /// Reports whether a part of one of its variables fits.
    pub(crate) fn uses(&self, is: impl Fn(&Variable) -> bool) -> bool {
        self.variables().any(|variable| variable.any(&is))
    }

    /// Returns its variables.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Variable(variable, _) => Some(variable),
            Segment::Literal(_) => None,
        })
    }

    /// Reports whether it is always a whole number that can be computed with.
    pub(crate) fn is_number(&self) -> bool {
        match &*self.segments {
            [Segment::Variable(variable, _)] => variable.is_number(),
            [Segment::Literal(digits)] => {
                let digits = std::str::from_utf8(digits).ok();
                digits.is_some_and(|digits| digits.parse::<i64>().is_ok())
            }
            _ => false,
        }
    }

    /// Reports whether a value of it is written as it is, whatever its place needs.
    pub(crate) fn has_raw(&self) -> bool {
        self.variables().any(Variable::is_raw)
    }

    /// Reports whether it is nothing but one variable.
    pub(crate) fn is_one_variable(&self) -> bool {
        matches!(&*self.segments, [Segment::Variable(..)])
    }

    /// Returns the template as one in hexadecimal is written.
    pub(crate) fn in_hexadecimal(&self) -> String {
        let shown = self.segments.iter().map(|segment| match segment {
            Segment::Literal(bytes) => {
                bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
            }
            Segment::Variable(variable, _) => format!("${{{variable}}}"),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    /// Returns an upper bound of the rendered length, in bytes.
    pub fn bytes_max(&self) -> usize {
        let of_segment = |segment: &Segment| match segment {
            Segment::Literal(bytes) => bytes.len(),
            Segment::Variable(variable, escape) => escape.bytes_max(variable.bytes_max()),
        };
        self.segments.iter().map(of_segment).sum()
    }

    /// Appends the text of one message. Advances the counter by one if the message contains it.
    pub fn render(&self, scope: &mut VariableScope<'_>, out: &mut Vec<u8>) {
        for segment in &self.segments {
            match segment {
                Segment::Literal(bytes) => out.extend_from_slice(bytes),
                Segment::Variable(variable, escape) => {
                    let begin = out.len();
                    variable.write(scope, out);
                    escape.apply(out, begin);
                }
            }
        }
        scope.counter += u64::from(self.is_counted);
    }

    /// Reports whether `bytes` are what it renders to. Uses `scratch` to write a variable out.
    pub(crate) fn is_rendered(
        &self,
        mut bytes: &[u8],
        scope: VariableScope<'_>,
        scratch: &mut Vec<u8>,
    ) -> bool {
        for segment in &self.segments {
            let value = match segment {
                Segment::Literal(literal) => &**literal,
                Segment::Variable(Variable::Stored { slot, .. }, Escape::None) => {
                    scope.stored.get(usize::from(*slot)).map_or(&[][..], Vec::as_slice)
                }
                Segment::Variable(variable, escape) => {
                    scratch.clear();
                    variable.write(&mut { scope }, scratch);
                    escape.apply(scratch, 0);
                    &scratch[..]
                }
            };
            match bytes.strip_prefix(value) {
                Some(rest) => bytes = rest,
                None => return false,
            }
        }
        bytes.is_empty()
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.segments.iter().try_for_each(|segment| match segment {
            Segment::Literal(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
            Segment::Variable(variable, _) => write!(f, "${{{variable}}}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use throng_base::Prng;

    use super::*;

    fn render(text: &str, vars: &mut VariableScope<'_>) -> String {
        let mut out = Vec::new();
        Template::parse(text).unwrap().render(vars, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn vars() -> VariableScope<'static> {
        VariableScope::new(42, Prng::new(1))
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
    fn functions_and_arithmetic_are_computed() {
        let vars = &mut vars();
        for (text, rendered) in [
            ("${user.id % 50 + 1}", "43"),
            ("${(user.id + 8) / 10 * 2}", "10"),
            ("${1 - 43}", "-42"),
            ("${counter + 1} ${counter}", "1 0"),
            ("${counter}", "1"),
            ("${'}'}", "}"),
            ("${choice('a')}", "a"),
            ("${base64('user:pass')}", "dXNlcjpwYXNz"),
            ("${base64(user.id)}", "NDI="),
            ("${json('a\"b')}", "\"a\\\"b\""),
            (
                "${sha256('abc')}",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
        ] {
            assert_eq!(render(text, vars), rendered, "{text}");
        }
        let chosen: Vec<_> = (0..20).map(|_| render("${choice('a', user.id)}", vars)).collect();
        assert!(chosen.contains(&"a".to_owned()) && chosen.contains(&"42".to_owned()));
        assert!(render("${time('s')}", vars).parse::<u64>().unwrap() > 1_700_000_000);
    }

    #[test]
    fn a_raw_value_has_no_form_of_its_place() {
        let template = Template::parse("/a${'/b'}${raw('/c d')}${choice('/e f')}").unwrap();
        for (escape, rendered) in
            [(Escape::None, "/a/b/c d/e f"), (Escape::Percent, "/a/b/c d%2Fe%20f")]
        {
            let mut out = Vec::new();
            template.with_escape(escape).render(&mut vars(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), rendered);
        }
    }

    #[test]
    fn a_stored_value_may_have_the_name_of_a_function() {
        let mut names = VariableNames::default();
        names.define("length", false);
        assert!(Template::parse_with("${length} ${length('a')}", &mut names).is_ok());
    }

    #[test]
    fn stored_whole_numbers_are_computed_with() {
        let mut names = VariableNames::default();
        let slot = names.define("page", true);
        let template = Template::parse_with("${page * 10 + 1} ${page}", &mut names).unwrap();
        assert!(names.is_computed("page") && slot == 0);
        let rendered = |value: &str| {
            let stored = [value.as_bytes().to_vec()];
            let mut out = Vec::new();
            template.render(&mut VariableScope { stored: &stored, ..vars() }, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(rendered("-3"), "-29 -3");
        assert_eq!(rendered(""), "1 ", "an error has left it out");
        names.define("page", false);
        let errors = Template::parse_with("${page + 1}", &mut names).unwrap_err();
        assert!(errors[0].label.contains("this may be a text"), "{errors:?}");
    }

    #[test]
    fn a_rendered_text_is_recognised() {
        let mut scope = vars();
        let template = Template::parse("a ${user.id} b ${counter}").unwrap();
        scope.counter = 3;
        let is = |text: &str| template.is_rendered(text.as_bytes(), scope, &mut Vec::new());
        assert!(is("a 42 b 3"));
        assert!(!is("a 42 b 33") && !is("a 42 b ") && !is("a 4") && !is(""));
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
            ("${rand(1,2)}", "rand", "did you mean `random(a,b)`?"),
            ("${banana}", "banana", "use user.id"),
            ("x ${user.id", "${user.id", "`}` is missing"),
            ("${random}", "random", "${random(1,6)}"),
            ("${random(1)}", "random(1)", "${random(1,6)}"),
            ("${random(1,x)}", "x", "use user.id"),
            ("${random(1,user.id)}", "random(1,user.id)", "${random(1,6)}"),
            ("${random(1}", "random(1", "`)` is missing"),
            ("${random(6,1)}", "random(6,1)", "random(1,6)"),
            ("${counter()}", "counter", "write ${counter}"),
            ("${user.id / 0}", "0", "${user.id / 1000}"),
            ("${user.id % x}", "x", "use user.id"),
            ("${user.id % user.id}", "user.id", "${user.id % 1000}"),
            ("${uuid() + 2}", "uuid()", "this is a text"),
            ("${1 + 'a'}", "'a'", "this is a text"),
            ("${'a}", "'a", "second quote is missing"),
            ("${user.id counter}", "counter", "expected `}`"),
            ("${user.id +}", "", "use user.id"),
            ("${+}", "+", "use user.id"),
            ("${99999999999999999999}", "99999999999999999999", "2^64"),
            ("${choice()}", "choice()", "choice('red', 'green')"),
            ("${uuid(1)}", "uuid(1)", "uuid()"),
            ("${time('h')}", "time('h')", "time()"),
            ("${base64()}", "base64()", "base64('user:password')"),
            ("${bas64('a')}", "bas64", "base64(x)"),
            ("${raw()}", "raw()", "raw(row.path)"),
            ("${json(raw('a'))}", "json(raw('a'))", "around the whole value"),
            ("${choice(raw('a'), 'b')}", "choice(raw('a'), 'b')", "around the whole value"),
            ("${1 + raw(2)}", "raw(2)", "this is a text"),
            ("${u8(1)}", "u8(1)", "in `binary`"),
            ("${raw(varint(1))}", "raw(varint(1))", "in `binary`"),
            ("${json(u8(1))}", "json(u8(1))", "json(base64(x))"),
            ("${u8(256)}", "u8(256)", "at most 255"),
            ("${u16(1, 'be')}", "u16(1, 'be')", "2 given"),
            ("${length(uuid())}", "length(uuid())", "keep it with `set`"),
            ("${env.THRONG_NO_SUCH}", "env.THRONG_NO_SUCH", "export THRONG_NO_SUCH="),
            ("${sent.body}", "sent.body", "no step before it sends"),
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
        let user = Segment::Variable(Variable::UserId, Escape::None);
        let pieces = [literal(""), literal("a"), literal("b"), user, literal("c")];
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
    }
}
