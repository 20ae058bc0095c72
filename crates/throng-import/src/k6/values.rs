//! Values of a script as texts of a scenario.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use throng_load::scenario::Diagnostic;

use crate::expansion::Expansion;
use crate::json::Json;
use crate::names::Names;
use crate::source::Span;
use crate::text::{RANDOM_CHARS_MAX, append, escape, random_digits};
use crate::yaml::Yaml;

use super::parser::program;
use super::syntax::{Expression, ExpressionKind};

/// The constants that are known at some place, and the variables that are used.
#[derive(Clone, Debug)]
pub(super) struct Values {
    constants: HashMap<String, Constant>,
    expansion: Rc<Expansion>,
    /// Names of values that steps have stored.
    stored: Vec<String>,
    /// The same by the names of the script.
    names: Names,
    /// Names of values that `setup` has stored: `setup.token`.
    of_setup: Vec<String>,
    /// Variables of the environment that are used: `env.HOST`.
    environment: BTreeSet<String>,
    /// What the values are that steps have stored, by their names in the scenario.
    kinds: HashMap<String, Kind>,
    /// Places of variables of the environment that have a default, with their names.
    pub(super) defaults: Vec<(Span, String)>,
    /// Places of random texts.
    pub(super) random_texts: Vec<Span>,
    /// The first place of `__ITER`.
    pub(super) iteration: Option<Span>,
    /// The first place of a value of any type in JSON.
    pub(super) untyped_json: Option<Span>,
}

/// The value of a constant.
#[derive(Clone, Debug)]
struct Constant {
    value: Expression,
    /// Bytes of its texts.
    bytes: usize,
}

/// What a stored value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// What the server sends: a text, a number, or more.
    Any,
}

impl Values {
    /// Returns none. Constants in the places of their names count as `expansion`.
    pub(super) fn new(expansion: Rc<Expansion>) -> Self {
        Self {
            constants: HashMap::new(),
            expansion,
            stored: Vec::new(),
            names: Names::default(),
            of_setup: Vec::new(),
            environment: BTreeSet::new(),
            kinds: HashMap::new(),
            defaults: Vec::new(),
            random_texts: Vec::new(),
            iteration: None,
            untyped_json: None,
        }
    }

    /// Makes a constant known.
    pub(super) fn define(&mut self, name: &str, value: &Expression) {
        // A value with the constants in it, so that it cannot be in itself.
        let resolved = self.resolved(value, 0);
        let is_small = size(&resolved) <= PARTS_MAX;
        let value = if is_small { resolved } else { value.clone() };
        let bytes = text_bytes(&value);
        self.constants.insert(name.to_owned(), Constant { value, bytes });
    }

    /// Makes a value known that a step stores. Returns its name in the scenario.
    pub(super) fn store(&mut self, name: &str, is: Kind) -> String {
        let stored = self.names.of(name);
        self.kinds.entry(stored.clone()).or_insert(is);
        let kind = ExpressionKind::Name(format!("\u{0}{stored}"));
        let value = Expression { span: 0..0, kind };
        self.constants.insert(name.to_owned(), Constant { value, bytes: 0 });
        self.stored.push(stored.clone());
        stored
    }

    /// Returns all variables that a trial must know.
    pub(super) fn known(&self) -> BTreeSet<String> {
        self.stored.iter().chain(&self.environment).chain(&self.of_setup).cloned().collect()
    }

    /// Makes the values known that the steps of `setup` have stored.
    pub(super) fn add_of_setup(&mut self, setup: &Self) {
        self.kinds.clone_from(&setup.kinds);
        self.iteration.clone_from(&setup.iteration);
        self.untyped_json.clone_from(&setup.untyped_json);
        self.defaults.clone_from(&setup.defaults);
        self.random_texts.clone_from(&setup.random_texts);
        self.of_setup.extend(setup.stored.iter().map(|name| format!("setup.{name}")));
    }

    /// Returns what a value of `setup` is outside of it.
    pub(super) fn in_setup(&self, value: &Expression) -> ExpressionKind {
        let inner = |value: &Expression| Expression {
            span: value.span.clone(),
            kind: self.in_setup(value),
        };
        match self.resolved(value, 0).kind {
            ExpressionKind::Name(name) => match name.strip_prefix('\u{0}') {
                Some(stored) => ExpressionKind::Name(format!("\u{0}setup.{stored}")),
                None => ExpressionKind::Name(name),
            },
            ExpressionKind::Template(parts) => {
                ExpressionKind::Template(parts.iter().map(inner).collect())
            }
            ExpressionKind::Binary(left, sign, right) => {
                ExpressionKind::Binary(Box::new(inner(&left)), sign, Box::new(inner(&right)))
            }
            other => other,
        }
    }

    /// Returns the value, with constants in the place of their names.
    pub(super) fn resolved(&self, value: &Expression, depth: usize) -> Expression {
        if depth > DEPTH_MAX {
            return value.clone();
        }
        let resolve = |value: &Expression| self.resolved(value, depth + 1);
        let kind = match &value.kind {
            ExpressionKind::Name(name) => {
                let known = self.constants.get(name);
                let known = known.filter(|it| self.expansion.charge(&value.span, it.bytes));
                known.map_or(value, |known| &known.value).kind.clone()
            }
            ExpressionKind::Template(parts) => {
                ExpressionKind::Template(parts.iter().map(resolve).collect())
            }
            ExpressionKind::List(items) => {
                ExpressionKind::List(items.iter().map(resolve).collect())
            }
            ExpressionKind::Object(members) => ExpressionKind::Object(
                members.iter().map(|(key, value)| (key.clone(), resolve(value))).collect(),
            ),
            ExpressionKind::Binary(left, sign, right) => {
                ExpressionKind::Binary(Box::new(resolve(left)), sign, Box::new(resolve(right)))
            }
            ExpressionKind::Member(..) if self.member(value).is_some() => {
                self.member(value).map_or(value.clone(), resolve).kind
            }
            ExpressionKind::Member(object, name) => {
                let object = resolve(object);
                let members = object.object().unwrap_or_default();
                match members.iter().find(|(key, _)| key == name) {
                    Some((_, member)) => member.kind.clone(),
                    None => value.kind.clone(),
                }
            }
            ExpressionKind::Call(function, arguments) => {
                let arguments = arguments.iter().map(resolve).collect();
                ExpressionKind::Call(function.clone(), arguments)
            }
            other => other.clone(),
        };
        Expression { span: value.span.clone(), kind }
    }

    /// Returns the member of a constant, where it stands: the others take no copy.
    fn member(&self, value: &Expression) -> Option<&Expression> {
        match &value.kind {
            ExpressionKind::Name(name) => self.constants.get(name).map(|known| &known.value),
            ExpressionKind::Member(object, name) => {
                let mut members = self.member(object)?.object()?.iter();
                members.find(|(key, _)| key == name).map(|(_, member)| member)
            }
            _ => None,
        }
    }

    /// Returns the text of a scenario that stands for the value.
    pub(super) fn text(&mut self, value: &Expression) -> Result<String, Diagnostic> {
        let resolved = self.resolved(value, 0);
        self.text_of(&resolved)
    }

    fn text_of(&mut self, value: &Expression) -> Result<String, Diagnostic> {
        match &value.kind {
            ExpressionKind::Text(text) => Ok(escape(text)),
            ExpressionKind::Number(number) => Ok(number.to_string()),
            ExpressionKind::Truth(truth) => Ok(truth.to_string()),
            ExpressionKind::Template(parts) => {
                let mut text = String::new();
                for part in parts {
                    append(&mut text, &self.text_of(part)?);
                }
                Ok(text)
            }
            ExpressionKind::Binary(left, "+", right) => {
                let is_number = |side: &Expression| side.number().is_some();
                if is_number(left) && is_number(right) {
                    return Err(program(&value.span));
                }
                let mut text = self.text_of(left)?;
                append(&mut text, &self.text_of(right)?);
                Ok(text)
            }
            // `__ENV.HOST || 'http://127.0.0.1'`
            ExpressionKind::Binary(left, "||" | "??", right)
                if left.path().is_some_and(|path| path.starts_with("__ENV.")) =>
            {
                self.defaults.push((value.span.clone(), left.path().unwrap_or_default()));
                self.text_of(right)
            }
            ExpressionKind::Name(name) if name.starts_with('\u{0}') => {
                Ok(format!("${{{}}}", &name[1..]))
            }
            _ => self.variable(value),
        }
    }

    /// Returns a variable of k6.
    fn variable(&mut self, value: &Expression) -> Result<String, Diagnostic> {
        let path = value.path().unwrap_or_default();
        if let Some(name) = path.strip_prefix("__ENV.") {
            let variable = format!("env.{name}");
            self.environment.insert(variable.clone());
            return Ok(format!("${{{variable}}}"));
        }
        let call = value.call();
        let numbers = call.as_ref().map(|(_, arguments)| {
            arguments.iter().filter_map(Expression::number).collect::<Vec<_>>()
        });
        match (&*path, call.as_ref().map(|(name, _)| &**name), numbers.as_deref()) {
            ("__VU" | "exec.vu.idInTest", ..) => Ok("${user.id + 1}".to_owned()),
            ("__ITER" | "exec.vu.iterationInInstance", ..) => {
                self.iteration.get_or_insert_with(|| value.span.clone());
                Ok("${counter}".to_owned())
            }
            (_, Some("uuidv4" | "crypto.randomUUID"), _) => Ok("${uuid()}".to_owned()),
            (_, Some("randomIntBetween"), Some([least, most]))
                if *least >= 0.0 && least <= most && *most < 1e15 =>
            {
                Ok(format!("${{random({least},{most})}}"))
            }
            (_, Some("randomString"), Some([length, ..]))
                if (1.0..=RANDOM_CHARS_MAX as f64).contains(length) =>
            {
                self.random_texts.push(value.span.clone());
                Ok(random_digits(*length as u64))
            }
            (_, Some("Date.now"), _) => Ok("${time()}".to_owned()),
            (_, Some("JSON.stringify"), _) => match call {
                Some((_, [object, ..])) => Ok(self.json(object)?.to_text()),
                _ => Err(program(&value.span)),
            },
            _ => Err(program(&value.span)),
        }
    }

    /// Returns the value as JSON.
    fn json(&mut self, value: &Expression) -> Result<Json, Diagnostic> {
        Ok(match &value.kind {
            ExpressionKind::Object(members) => {
                let mut entries = Vec::new();
                for (key, value) in members {
                    entries.push((key.clone(), self.json(value)?));
                }
                Json::Map(entries)
            }
            ExpressionKind::List(items) => {
                let items: Result<Vec<_>, _> = items.iter().map(|item| self.json(item)).collect();
                Json::List(items?)
            }
            ExpressionKind::Null => Json::Plain("null".to_owned()),
            ExpressionKind::Number(number) => Json::Plain(number.to_string()),
            ExpressionKind::Truth(truth) => Json::Plain(truth.to_string()),
            _ if self.is_number(value) => Json::Number(self.text_of(value)?),
            _ => Json::Text(self.text_of(value)?),
        })
    }

    /// Reports whether a variable is a number. Notes a stored one that may be: JSON of a scenario
    /// has stored values in texts.
    fn is_number(&mut self, value: &Expression) -> bool {
        if let ExpressionKind::Name(name) = &value.kind
            && let Some(name) = name.strip_prefix('\u{0}')
        {
            let name = name.trim_start_matches("setup.");
            if self.kinds.get(name) == Some(&Kind::Any) {
                self.untyped_json.get_or_insert_with(|| value.span.clone());
            }
            return false;
        }
        let path = value.path().unwrap_or_default();
        let function = value.call().map(|(name, _)| name).unwrap_or_default();
        ["__VU", "exec.vu.idInTest", "__ITER", "exec.vu.iterationInInstance"].contains(&&*path)
            || ["randomIntBetween", "Date.now"].contains(&&*function)
    }

    /// Returns a message or a body: JSON of an object in `JSON.stringify`, or a text.
    pub(super) fn payload(
        &mut self,
        value: &Expression,
    ) -> Result<(&'static str, Yaml), Diagnostic> {
        let resolved = self.resolved(value, 0);
        match resolved.call() {
            Some((name, [object, ..])) if name == "JSON.stringify" => {
                Ok(("json", self.json(object)?.to_yaml()))
            }
            _ => Ok(("text", Yaml::text(self.text_of(&resolved)?))),
        }
    }
}

/// Returns how many expressions an expression has in it.
fn size(value: &Expression) -> usize {
    1 + match &value.kind {
        ExpressionKind::Template(parts) | ExpressionKind::List(parts) => {
            parts.iter().map(size).sum()
        }
        ExpressionKind::Object(members) => members.iter().map(|(_, value)| size(value)).sum(),
        ExpressionKind::Binary(left, _, right) => size(left) + size(right),
        ExpressionKind::Call(_, arguments) => arguments.iter().map(size).sum(),
        _ => 0,
    }
}

/// Returns how many bytes the texts in an expression have.
fn text_bytes(value: &Expression) -> usize {
    match &value.kind {
        ExpressionKind::Text(text) => text.len(),
        ExpressionKind::Template(parts) | ExpressionKind::List(parts) => {
            parts.iter().map(text_bytes).sum()
        }
        ExpressionKind::Object(members) => {
            members.iter().map(|(key, value)| key.len() + text_bytes(value)).sum()
        }
        ExpressionKind::Binary(left, _, right) => text_bytes(left) + text_bytes(right),
        ExpressionKind::Call(_, arguments) => arguments.iter().map(text_bytes).sum(),
        _ => 0,
    }
}

/// The most expressions in a constant. Constants of constants would have no bound.
const PARTS_MAX: usize = 500;

/// The deepest value.
const DEPTH_MAX: usize = 80;
