//! What a script does with an answer: its checks, and the values that it takes from it.

use crate::yaml::Yaml;

use super::request::ScriptRequest;
use super::syntax::{Expression, ExpressionKind, Statement, StatementKind};

/// What a check looks at.
pub(super) enum Checked {
    Status(u16),
    Body(&'static str, Yaml),
}

impl ScriptRequest {
    /// Adds what the answer must be. Returns whether there is a place for it.
    pub(super) fn add(&mut self, checked: Checked) -> bool {
        match checked {
            Checked::Status(status) => self.step.expect.statuses.push(status.to_string()),
            Checked::Body(key, pattern) if self.step.expect.body.is_none() => {
                self.step.expect.body = Some((key, pattern));
            }
            Checked::Body(..) => return false,
        }
        true
    }
}

/// Returns what `(r) => r.status === 200` and the like look at.
pub(super) fn checked(condition: &Expression) -> Option<Checked> {
    let function = condition.function()?;
    let [parameter] = &*function.parameters else { return None };
    let [Statement { kind: StatementKind::Return(Some(value)), .. }] =
        function.statements().ok()?
    else {
        return None;
    };
    // `r && r.status === 200`
    let value = match &value.kind {
        ExpressionKind::Binary(left, "&&", right) if left.name() == Some(parameter) => right,
        _ => value,
    };
    if let Some((name, [text])) = value.call() {
        let is_includes = name == format!("{parameter}.body.includes");
        return is_includes.then_some(Checked::Body("contains", Yaml::text(text.text()?)));
    }
    let ExpressionKind::Binary(left, "===" | "==", right) = &value.kind else { return None };
    if left.path()? == format!("{parameter}.status") {
        let status = right.number().filter(|n| n.fract() == 0.0 && (100.0..600.0).contains(n))?;
        return Some(Checked::Status(status as u16));
    }
    if left.path()? == format!("{parameter}.body") {
        return Some(Checked::Body("text", Yaml::text(right.text()?)));
    }
    None
}

/// A part of an answer that a script keeps.
pub(super) enum Place {
    /// A path in its JSON.
    Json(String),
    Status,
    /// The name of a header, in small letters.
    Header(String),
}

/// Returns the variable and the place of `res.json('a.b')`, `res.json().a.b`, `res.status` and
/// `res.headers['X-Id']`.
pub(super) fn place_in_answer(value: &Expression) -> Option<(String, Place)> {
    if let Some((function, [place])) = value.call() {
        let variable = function.strip_suffix(".json")?;
        return Some((variable.to_owned(), Place::Json(place.text()?.to_owned())));
    }
    if let ExpressionKind::Member(object, name) = &value.kind {
        match (&object.kind, name.as_str()) {
            (ExpressionKind::Name(variable), "status") => {
                return Some((variable.clone(), Place::Status));
            }
            (ExpressionKind::Member(answer, part), header) if part == "headers" => {
                let header = Place::Header(header.to_ascii_lowercase());
                return Some((answer.name()?.to_owned(), header));
            }
            _ => {}
        }
    }
    let mut names = Vec::new();
    let mut object = value;
    while let ExpressionKind::Member(inner, name) = &object.kind {
        names.push(name.as_str());
        object = inner;
    }
    let (function, []) = object.call()? else { return None };
    let variable = function.strip_suffix(".json")?;
    names.reverse();
    (!names.is_empty()).then(|| (variable.to_owned(), Place::Json(names.join("."))))
}
