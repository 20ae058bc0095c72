//! `match` and `dyn_variable`: what an answer must have, and what is kept of it.

use std::ops::Range;

use regex::Regex;
use throng_load::scenario::is_token;

use super::element::{Attribute, Element};
use super::steps::{Plugin, StepsReader, Wire};
use crate::json_pointer::JsonPointer;
use crate::yaml::Yaml;

/// What a request says about its answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// What must match in it.
    pub(super) regex: Option<String>,
    /// The status of HTTP that it must have.
    pub(super) status: Option<String>,
    /// Parts to keep, each with its name.
    pub(super) captures: Vec<(String, Yaml)>,
}

impl Answer {
    /// Reports whether it looks at more than the head of an answer of HTTP.
    pub(super) fn looks_at_body(&self) -> bool {
        self.regex.is_some() || self.captures.iter().any(|(_, place)| !place.has_key("header"))
    }
}

impl<'d> StepsReader<'_, '_, 'd> {
    /// Reads what a request says about its answer, for which it waits or not.
    pub(super) fn answer(&mut self, request: Element<'d>, waits: bool) -> Answer {
        let mut answer = Answer::default();
        for element in request.elements() {
            match element.name() {
                "match" => self.read_match(element, &mut answer, waits),
                "dyn_variable" => self.read_variable(element, &mut answer, waits),
                _ => {}
            }
        }
        if self.wire == Wire::Tcp
            && let Some(regex) = answer.regex.take()
        {
            // A part that is kept must be there.
            let place = Yaml::entry("regex", Yaml::text(format!("({regex})")));
            let name = self.variables.name("matched", &self.shared.tables.ids);
            answer.captures.push((name, place));
        }
        answer
    }

    fn read_match(&mut self, element: Element<'d>, answer: &mut Answer, waits: bool) {
        let span = element.span();
        let action = self.translator.word(element, "do", &ACTIONS).unwrap_or("continue");
        let when = self.translator.word(element, "when", &["match", "nomatch"]).unwrap_or("match");
        for (name, most) in
            [("max_loop", 1e9), ("max_restart", 1e9), ("sleep_loop", 1e9), ("loop_back", 1e9)]
        {
            self.translator.number(element, name, 0.0..=most);
        }
        if element.get("name").is_some() {
            self.translator.not_needed(&span, "match name", "it names a counter of tsung");
        }
        let construct = format!("match {action}");
        if matches!(action, "log" | "dump") {
            let why = "throng shows the first exchange of each kind of error";
            return self.translator.not_needed(&span, construct, why);
        }
        let text = element.text();
        let text = text.trim();
        // Without its headers, an answer has no status either.
        let is_of_body = element.value("skip_headers") == Some("http");
        let status = self.status_in(text).filter(|_| !is_of_body);
        let remedy = self.match_remedy(element, (action, when), waits);
        let remedy = remedy.or_else(|| {
            let is_taken = match &status {
                Some(_) => answer.status.is_some(),
                None => answer.regex.is_some(),
            };
            is_taken.then_some("an answer has one expression; join the two into one")
        });
        if let Some(remedy) = remedy {
            return self.translator.not_supported(&span, construct, remedy);
        }
        let how = match action {
            "abort" => {
                self.on_error = Some("stop");
                "an answer that does not match is an error, after which the user stops; so it \
                 does after all other errors"
            }
            "restart" => {
                self.on_error = Some("restart");
                "an answer that does not match is an error, after which the user begins again, \
                 as often as that happens, and after all other errors, too"
            }
            _ => {
                self.captures = true;
                if self.stops_after_errors {
                    "an answer that does not match is an error, after which the user stops or \
                     begins again, because of another match; tsung only counts it"
                } else {
                    "an answer that does not match is an error, after which the user goes on; \
                     tsung only counts it"
                }
            }
        };
        self.approximated_once(&span, &construct, how);
        match status {
            Some(status) => answer.status = Some(status),
            None => {
                if self.plugin == Plugin::Http && !is_of_body {
                    let how = "it looks at the body; tsung looks at the headers, too";
                    self.approximated_once(&span, "match in headers", how);
                }
                answer.regex = Some(text.to_owned());
            }
        }
    }

    /// Returns what to write instead of a `match` that no `expect` can say; `None` if one can.
    fn match_remedy(
        &self,
        element: Element<'d>,
        (action, when): (&str, &str),
        waits: bool,
    ) -> Option<&'static str> {
        let text = element.text();
        let text = text.trim();
        if !waits && self.plugin != Plugin::Http {
            Some("nothing waits for this answer: give the request an `ack` that does")
        } else if text.is_empty() || Regex::new(text).is_err() {
            Some(
                "throng has no such regular expression: write it without look-around and \
                  back-references",
            )
        } else if element.value("subst") == Some("true") && text.contains("%%") {
            Some("a regular expression has no variables; use `contains`, which has")
        } else if element.get("apply_to_content").is_some() {
            Some("throng runs no Erlang; match the answer as it comes")
        } else {
            match (action, when) {
                ("continue", _) | ("abort" | "restart", "nomatch") => None,
                ("loop", _) => Some(
                    "put the request into a `repeat: {while}` whose condition uses a captured \
                     value",
                ),
                ("abort_test", _) => Some("no step ends a run; write a threshold"),
                _ => Some(
                    "an `expect` says what an answer must have, and not what it must not have: \
                     turn the expression round, or capture the value and write an `if`",
                ),
            }
        }
    }

    /// Returns the status that an expression for the first line of an answer demands: `200 OK`.
    fn status_in(&self, expression: &str) -> Option<String> {
        let line = expression.trim_start_matches('^');
        let line =
            ["HTTP/1.1 ", "HTTP/1.0 ", "HTTP/1\\.1 ", "HTTP/1\\.0 ", "HTTP/1.. ", "HTTP/1\\.. "]
                .iter()
                .find_map(|version| line.strip_prefix(version))
                .unwrap_or(line);
        let (status, reason) = line.split_at_checked(3)?;
        let is_status = status.starts_with(['1', '2', '3', '4', '5'])
            && status.chars().all(|digit| digit.is_ascii_digit());
        // Digits alone may be anywhere in an answer.
        let has_version = line.len() < expression.trim_start_matches('^').len();
        let is_reason = match reason.strip_prefix(' ') {
            Some(reason) => reason.chars().all(|c| c.is_ascii_alphabetic() || c == ' '),
            None => reason.is_empty() && has_version,
        };
        (self.plugin == Plugin::Http && is_status && is_reason).then(|| status.to_owned())
    }

    fn read_variable(&mut self, element: Element<'d>, answer: &mut Answer, waits: bool) {
        let span = element.span();
        let Some(name) = self.translator.require(element, "name", "id") else { return };
        if let Some(regexp) = element.get("regexp") {
            let why = "tsung knows no `regexp` since 1.4, and looks for the field of a form with \
                       the name of the variable; so does the scenario: write `re`";
            self.translator.suspicious(&regexp.span, "dyn_variable regexp", why);
        }
        let forms = ["re", "jsonpath", "xpath", "header", "pgsql_expr"];
        let given: Vec<_> =
            forms.iter().filter_map(|form| Some((*form, element.get(form)?))).collect();
        if given.len() > 1 {
            let label = format!("expected one of {}", forms.join(", "));
            return self.translator.mistake(
                &given[1].1.span,
                "this variable has two sources",
                label,
            );
        }
        let (form, place) = match given.into_iter().next() {
            Some(("re", value)) if self.has_no_group(&value) => {
                return self.keep_nothing(&span, name.value.trim());
            }
            Some(("re", value)) if self.plugin == Plugin::Http => {
                ("re", self.place_in_answer(&value))
            }
            None => ("form", self.form_field(name.value)),
            Some((form, value)) => (form, self.place(form, &value)),
        };
        let construct = format!("dyn_variable {form}");
        let place = if waits || self.plugin == Plugin::Http {
            place
        } else {
            Err("nothing waits for this answer: give the request an `ack` that does")
        };
        let (place, how) = match place {
            Ok(place) => place,
            Err(remedy) => {
                return self.translator.not_supported(&span, construct, remedy);
            }
        };
        let decodes = element.value("decode") == Some("html_entities");
        let how = match how {
            "" if decodes => "the scenario keeps the text as it comes, with its HTML entities",
            "" if self.wire == Wire::Tcp => {
                "the scenario looks for it in the first line of the answer; tsung does in the \
                 first packet"
            }
            "" if self.stops_after_errors => {
                "an answer without it is an error like one that does not match: the user stops \
                 or begins again; tsung goes on with an empty text"
            }
            "" => {
                "an answer without it is an error, after which the user goes on; all that is \
                 kept of this answer is then empty, in tsung only this text"
            }
            how => how,
        };
        self.approximated_once(&span, &construct, how);
        let own = name.value.trim();
        let name = self.variables.name(own, &self.shared.tables.ids);
        self.captured.push((own.to_owned(), name.clone()));
        answer.captures.retain(|(other, _)| *other != name);
        answer.captures.push((name, place));
    }

    /// Reports whether an expression marks no part of what it matches.
    fn has_no_group(&self, value: &Attribute<'d>) -> bool {
        Regex::new(value.value.trim()).is_ok_and(|regex| regex.captures_len() == 1)
    }

    /// Makes a variable one that the answer leaves empty.
    fn keep_nothing(&mut self, span: &Range<usize>, name: &str) {
        let why = "the expression has no `(...)`: tsung keeps an empty text, and so does the \
                   scenario";
        self.translator.suspicious(span, "dyn_variable re", why);
        self.emptied.push(name.to_owned());
    }

    /// Returns the place of an expression of HTTP, for which tsung looks in the headers, too.
    fn place_in_answer(
        &mut self,
        value: &Attribute<'d>,
    ) -> Result<(Yaml, &'static str), &'static str> {
        let text = value.value.trim();
        let Some((field, part, ends)) = field_in(text) else {
            let how = "it looks at the body; tsung looks at the headers, too";
            self.approximated_once(&value.span, "dyn_variable in headers", how);
            return self.place("re", value);
        };
        if !ends && [".*)", ".+)"].iter().any(|end| text.ends_with(end)) {
            let why = "the `.` in it takes the `\\r` at the end of the header, too, which tsung \
                       keeps and throng does not: write `[^\\r]` in its place";
            self.translator.suspicious(&value.span, "dyn_variable re", why);
        }
        let place = [("header", Yaml::text(field)), ("regex", Yaml::text(part))];
        let how = "the scenario looks in the header, whatever the case of its name; tsung looks in \
                   the whole answer";
        Ok((Yaml::map(place), how))
    }

    /// Returns the place of a form's field, as tsung looks for it, and how it differs.
    fn form_field(&self, name: &str) -> Result<(Yaml, &'static str), &'static str> {
        let name = regex::escape(name);
        let regex = format!("name=[\"']{name}[\"'] (?:[^>]* )?value=[\"']([^\"']*)[\"']");
        Ok((Yaml::entry("regex", Yaml::text(regex)), ""))
    }

    /// Returns the place of the value in an answer and how it differs; or else what to do.
    fn place(
        &self,
        form: &str,
        value: &Attribute<'d>,
    ) -> Result<(Yaml, &'static str), &'static str> {
        let regex = |text: &str| Yaml::entry("regex", Yaml::text(text));
        let text = value.value.trim();
        match form {
            "re" if text.is_empty() || Regex::new(text).is_err() => {
                Err("throng has no such regular expression: write it without look-around and \
                     back-references")
            }
            "re" => Ok((regex(text), "")),
            "jsonpath" if text.contains("%%") => {
                Err("a place in JSON has no variables: write it, and an `if` for each place")
            }
            "jsonpath" => match JsonPointer::of_path(text) {
                Some(pointer) => Ok((pointer.write(), "")),
                None => {
                    Err("a place in JSON is a plain path, without `*` and `?`: name the member")
                }
            },
            "header" if self.plugin != Plugin::Http => Err("only answers of HTTP have headers"),
            "header" => {
                let (name, parameter) = text
                    .split_once('/')
                    .map_or((text, None), |(name, part)| (name, Some(parameter(name, part))));
                if !is_token(name) {
                    return Err("this is no name of a header: write one");
                }
                let mut place = vec![("header", Yaml::text(name.to_ascii_lowercase()))];
                place.extend(parameter.map(|part| ("regex", Yaml::text(part))));
                Ok((Yaml::map(place), ""))
            }
            "xpath" => match xpath(text) {
                Some(expression) => Ok((
                    regex(&expression),
                    "a regular expression looks for it, which knows no HTML: the attributes must \
                     come in this order",
                )),
                None => Err("throng reads no HTML; capture it with a `regex`"),
            },
            _ => Err("throng does not speak this protocol"),
        }
    }
}

/// Returns a regular expression for a parameter of a header, which stands behind its first value.
fn parameter(header: &str, name: &str) -> String {
    let name = regex::escape(name);
    match header {
        "www-authenticate" | "authentication-info" => {
            format!("(?i)[ ,]{name}\\s*=\\s*\"?([^\",]*)")
        }
        _ => format!("(?i);\\s*{name}\\s*=\\s*\"?([^\";]*)"),
    }
}

/// Returns the header that an expression looks for, `Location: (.*)`, the expression for its value,
/// and whether the expression ends with the line.
fn field_in(expression: &str) -> Option<(String, String, bool)> {
    let text = ["^", "\\r\\n", "\\n"].iter().find_map(|begin| expression.strip_prefix(begin));
    let text = text.unwrap_or(expression);
    let (name, rest) = text.split_once(':')?;
    let name = name.replace("\\-", "-").to_ascii_lowercase();
    if !is_token(&name) || !(FIELDS.contains(&&*name) || name.starts_with("x-")) {
        return None;
    }
    let spaces = ["\\s*", "\\s+", " *", " +", " ?", "\\s", " "];
    let rest = spaces.iter().find_map(|space| rest.strip_prefix(space)).unwrap_or(rest);
    let line_ends = ["\\r\\n", "\\r?\\n", "\\r", "\\n", "$"];
    let whole = line_ends.iter().find_map(|end| rest.strip_suffix(end));
    let part = match whole {
        Some(part) => format!("^{part}$"),
        None => format!("^{rest}"),
    };
    Regex::new(&part).ok().map(|_| (name, part, whole.is_some()))
}

/// Returns a regular expression for the simplest paths of XPath: `//input[@name='a']/@value`,
/// `//a/@href`, `//title/text()`.
fn xpath(path: &str) -> Option<String> {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    let path = path.strip_prefix("//")?;
    let (element, wanted) = path.rsplit_once('/')?;
    let (tag, attribute) = match element.split_once('[') {
        None => (element, String::new()),
        Some((tag, test)) => {
            let (name, value) = test.strip_suffix(']')?.strip_prefix('@')?.split_once('=')?;
            let quotes: [&[char]; 2] = [&['\''], &['"']];
            let value = quotes.iter().find_map(|quote| {
                value.strip_prefix(*quote).and_then(|value| value.strip_suffix(*quote))
            })?;
            if !is_name(name) {
                return None;
            }
            (tag, format!("[^>]*\\s{name}=[\"']{}[\"']", regex::escape(value)))
        }
    };
    if !is_name(tag) {
        return None;
    }
    match wanted.strip_prefix('@') {
        Some(name) if is_name(name) => {
            Some(format!("<{tag}\\b{attribute}[^>]*\\s{name}=[\"']([^\"']*)"))
        }
        None if wanted == "text()" => Some(format!("<{tag}\\b{attribute}[^>]*>([^<]*)<")),
        _ => None,
    }
}

/// Headers that expressions look for.
const FIELDS: &[&str] = words![
    "content-type" "date" "etag" "last-modified" "location" "server" "set-cookie"
    "transfer-encoding" "www-authenticate"
];

const ACTIONS: [&str; 7] = ["continue", "loop", "abort", "restart", "log", "dump", "abort_test"];
