//! Values of a script as texts of a scenario.

use std::collections::HashMap;
use std::rc::Rc;

use throng_load::scenario::Diagnostic;

use crate::expansion::Expansion;
use crate::javascript::show_number as show;
use crate::json::Json;
use crate::names::Names;
use crate::source::Span;
use crate::text::{RANDOM_CHARS_MAX, append, escape, random_digits};
use crate::yaml::Yaml;

use super::parser::program;
use super::syntax::{Expression, ExpressionKind, ITEM};

/// The constants that are known at some place, and the variables that are used.
#[derive(Clone, Debug)]
pub(super) struct Values {
    constants: HashMap<String, Constant>,
    expansion: Rc<Expansion>,
    /// Names of values that steps have stored, by those of the script.
    names: Names,
    /// What the values are that steps have stored, by their names in the scenario.
    kinds: HashMap<String, Kind>,
    /// Values that a step has drawn, by their names in the scenario.
    drawn: HashMap<String, Expression>,
    /// Whether the text is a URL, in which variables stand as they are.
    in_url: bool,
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
    Number,
    /// What the server sends: a text, a number, or more.
    Any,
}

impl Values {
    /// Returns none. Constants in the places of their names count as `expansion`.
    pub(super) fn new(expansion: Rc<Expansion>) -> Self {
        Self {
            constants: HashMap::new(),
            expansion,
            names: Names::default(),
            kinds: HashMap::new(),
            drawn: HashMap::new(),
            in_url: false,
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
        stored
    }

    /// Makes a value known that a step draws. Returns its name in the scenario.
    pub(super) fn store_drawn(&mut self, name: &str, value: &Expression) -> String {
        let is = if self.is_number(value) { Kind::Number } else { Kind::Text };
        let stored = self.store(name, is);
        self.drawn.insert(stored.clone(), value.clone());
        stored
    }

    /// Returns the value, or what it was drawn from.
    pub(super) fn before_draw(&self, value: &Expression) -> Expression {
        let resolved = self.resolved(value, 0);
        let stored = resolved.name().and_then(|name| name.strip_prefix('\u{0}'));
        stored.and_then(|name| self.drawn.get(name)).unwrap_or(&resolved).clone()
    }

    /// Reports whether the value is another one each time.
    pub(super) fn draws(&self, value: &Expression) -> bool {
        let function = value.call().map(|(name, _)| name).unwrap_or_default();
        DRAWING.contains(&&*function)
            || match &value.kind {
                ExpressionKind::List(_) | ExpressionKind::Object(_) => false,
                _ => value.parts().into_iter().any(|part| self.draws(part)),
            }
    }

    /// Returns a URL. Its variables stand there as they are.
    pub(super) fn url(&mut self, value: &Expression) -> Result<String, Diagnostic> {
        self.in_url = true;
        let url = self.text(value);
        self.in_url = false;
        url
    }

    /// Takes over what the steps of `setup` have stored and noted.
    pub(super) fn add_of_setup(&mut self, setup: &Self) {
        self.kinds.clone_from(&setup.kinds);
        self.iteration.clone_from(&setup.iteration);
        self.untyped_json.clone_from(&setup.untyped_json);
        self.defaults.clone_from(&setup.defaults);
        self.random_texts.clone_from(&setup.random_texts);
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
            ExpressionKind::Number(number) => Ok(show(*number)),
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
                let name = &name[1..];
                let kind = self.kinds.get(name).copied();
                let is_raw = self.in_url && kind != Some(Kind::Number);
                Ok(if is_raw { format!("${{raw({name})}}") } else { format!("${{{name}}}") })
            }
            _ => self.variable(value),
        }
    }

    /// Returns a variable of k6.
    fn variable(&mut self, value: &Expression) -> Result<String, Diagnostic> {
        let path = value.path().unwrap_or_default();
        if let Some(name) = path.strip_prefix("__ENV.") {
            let variable = format!("env.{name}");
            return Ok(match self.in_url {
                true => format!("${{raw({variable})}}"),
                false => format!("${{{variable}}}"),
            });
        }
        let call = value.call();
        let refusal = || program(&value.span);
        let arguments = call.as_ref().map_or(&[][..], |(_, arguments)| arguments);
        let first = || arguments.first().ok_or_else(refusal);
        let numbers: Vec<_> = arguments.iter().filter_map(Expression::number).collect();
        match (&*path, call.as_ref().map(|(name, _)| &**name), &numbers[..]) {
            ("__VU" | "exec.vu.idInTest", ..) => Ok("${user.id + 1}".to_owned()),
            ("__ITER" | "exec.vu.iterationInInstance", ..) => {
                self.iteration.get_or_insert_with(|| value.span.clone());
                Ok("${counter}".to_owned())
            }
            (_, Some("uuidv4" | "crypto.randomUUID"), _) => Ok("${uuid()}".to_owned()),
            (_, Some("randomIntBetween"), [least, most])
                if *least >= 0.0 && least <= most && *most < 1e15 =>
            {
                Ok(format!("${{random({least},{most})}}"))
            }
            (_, Some("randomString"), [length, ..])
                if (1.0..=RANDOM_CHARS_MAX as f64).contains(length) =>
            {
                self.random_texts.push(value.span.clone());
                Ok(random_digits(*length as u64))
            }
            (_, Some("http.url"), _) => self.text_of(first()?),
            (_, Some("randomItem"), _) => choice(first()?).ok_or_else(refusal),
            (_, Some(ITEM), _) => match arguments {
                [list, index] if is_random_index(index, list) => choice(list).ok_or_else(refusal),
                _ => Err(refusal()),
            },
            (_, Some("Date.now"), _) => Ok("${time()}".to_owned()),
            (_, Some("JSON.stringify"), _) => Ok(self.json(first()?)?.to_text()),
            _ => Err(refusal()),
        }
    }

    /// Returns the value as JSON.
    fn json(&mut self, value: &Expression) -> Result<Json, Diagnostic> {
        Ok(match &value.kind {
            ExpressionKind::Object(members) => {
                let mut entries = Vec::new();
                for (key, value) in members {
                    entries.push((escape(key), self.json(value)?));
                }
                Json::Map(entries)
            }
            ExpressionKind::List(items) => {
                let items: Result<Vec<_>, _> = items.iter().map(|item| self.json(item)).collect();
                Json::List(items?)
            }
            ExpressionKind::Null => Json::Plain("null".to_owned()),
            ExpressionKind::Number(number) => Json::Plain(show(*number)),
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
            let kind = self.kinds.get(name).copied();
            if kind == Some(Kind::Any) {
                self.untyped_json.get_or_insert_with(|| value.span.clone());
            }
            return kind == Some(Kind::Number);
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

/// Returns the text that draws one item of a list of literals.
fn choice(list: &Expression) -> Option<String> {
    let ExpressionKind::List(items) = &list.kind else { return None };
    let quoted = |item: &Expression| {
        let text = item.text().map(str::to_owned).or_else(|| item.number().map(show))?;
        let has_both = text.contains('\'') && text.contains('"');
        let fits = !has_both && !text.contains('}') && !text.contains("${");
        let quote = if text.contains('\'') { '"' } else { '\'' };
        fits.then(|| format!("{quote}{text}{quote}"))
    };
    let items: Option<Vec<_>> = items.iter().map(quoted).collect();
    items
        .filter(|items| !items.is_empty())
        .map(|items| format!("${{choice({})}}", items.join(", ")))
}

/// Reports whether the index is `Math.floor(Math.random() * list.length)`.
fn is_random_index(index: &Expression, list: &Expression) -> bool {
    let ExpressionKind::List(items) = &list.kind else { return false };
    let Some((floor, [product])) = index.call() else { return false };
    let ExpressionKind::Binary(left, "*", right) = &product.kind else { return false };
    let is_random = |side: &Expression| side.call().is_some_and(|(name, _)| name == "Math.random");
    let is_length = |side: &Expression| {
        side.number() == Some(items.len() as f64)
            || matches!(&side.kind, ExpressionKind::Member(_, name) if name == "length")
    };
    let is_product = (is_random(left) && is_length(right)) || (is_length(left) && is_random(right));
    floor == "Math.floor" && is_product
}

/// Returns how many expressions an expression has in it, itself included.
fn size(value: &Expression) -> usize {
    1 + value.parts().into_iter().map(size).sum::<usize>()
}

/// Returns how many bytes the texts in an expression have.
fn text_bytes(value: &Expression) -> usize {
    let own = match &value.kind {
        ExpressionKind::Text(text) => text.len(),
        ExpressionKind::Object(members) => members.iter().map(|(key, _)| key.len()).sum(),
        _ => 0,
    };
    own + value.parts().into_iter().map(text_bytes).sum::<usize>()
}

/// Functions that return another value each time.
const DRAWING: [&str; 8] = [
    "randomIntBetween",
    "randomString",
    "randomItem",
    "uuidv4",
    "crypto.randomUUID",
    "Date.now",
    "Math.random",
    ITEM,
];

/// The most expressions in a constant. Constants of constants would have no bound.
const PARTS_MAX: usize = 500;

/// The deepest value.
const DEPTH_MAX: usize = 80;
