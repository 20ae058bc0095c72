//! `get`, `post` and the other requests.

use throng_load::scenario::{HeaderPlace, is_token};

use super::answer_pattern::has_no_value;
use super::device::{Device, Step, Wire};
use super::elixir::{Call, Expr, ExprKind};
use super::value::{AnswerPart, Binding, Captures};
use crate::headers::Headers;
use crate::json::Json;
use crate::json_pointer::JsonPointer;
use crate::source::Span;
use crate::yaml::Yaml;

/// What a pattern demands of an answer.
#[derive(Debug, Default)]
struct Demands {
    status: Option<u16>,
    json: Option<Json>,
}

impl Device<'_, '_> {
    /// Translates a request. Its answer, `{status, headers, body}`, is matched with `pattern`.
    pub(super) fn http(&mut self, span: &Span, call: &Call, pattern: Option<&Expr>) -> Vec<Step> {
        if self.wire == Wire::Tcp || self.is_upgraded {
            let remedy = match self.wire {
                Wire::Tcp => "a TCP device sends no requests: choose the protocol `http`",
                _ => "Stressgrid sends no request after `ws_upgrade`: move it before",
            };
            self.translator.not_supported(span, &*call.name, remedy);
            return Vec::new();
        }
        let Some(path) = call.arguments.first() else {
            let title = format!("`{}` needs a path", call.name);
            let label = format!("for example `{}(\"/\")`", call.name);
            self.translator.mistake(span, title, label);
            return Vec::new();
        };
        let Some(path) = self.path(path) else { return Vec::new() };
        let mut entries = vec![("path".to_owned(), Yaml::text(path))];
        if let Some(headers) =
            call.arguments.get(1).and_then(|headers| self.headers(headers, HeaderPlace::Request))
        {
            entries.push(("headers".to_owned(), headers));
        }
        if let Some(body) = call.arguments.get(2) {
            entries.extend(self.body(body));
        }
        let mut notes = Vec::new();
        let captures = Captures::default();
        let demands = pattern.map_or_else(Demands::default, |it| self.answer(it, &captures));
        if demands.status.is_none() && self.told.insert("status") {
            notes.push(
                "Stressgrid takes an answer of any status; here others than 2xx are errors, after \
                 which a user rests for 1s and begins again",
            );
        }
        entries.extend(demands.write().map(|demands| ("expect".to_owned(), demands)));
        if call.arguments.get(2).is_some_and(is_json_body) && self.told.insert("charset") {
            notes.push("Stressgrid adds `; charset=utf-8` to the content type of JSON");
        }
        match notes.is_empty() {
            true => self.translator.translated(span, &*call.name),
            false => self.translator.approximated(span, &*call.name, notes.join("; ")),
        }
        let name = call.name.clone();
        vec![Box::new(move || {
            let captures = captures.borrow();
            if !captures.is_empty() {
                entries.push(("capture".to_owned(), captures_yaml(&captures)));
            }
            match &entries[..] {
                [(_, path)] => Yaml::entry(&name, path.clone()),
                _ => Yaml::entry(&name, Yaml::map(entries)),
            }
        })]
    }

    /// Returns a path with its variables.
    pub(super) fn path(&mut self, expr: &Expr) -> Option<String> {
        let path = match self.value(expr) {
            Ok(path) => path.text,
            Err(remedy) => {
                self.translator.not_supported(&expr.span, "path", remedy);
                return Some("/".to_owned());
            }
        };
        // What stands in a variable is percent-encoded.
        let literals = path.split("${").enumerate().map(|(index, part)| match index {
            0 => part,
            _ => part.split_once('}').map_or("", |(_, rest)| rest),
        });
        let is_ascii = literals.into_iter().all(|text| text.bytes().all(|b| b.is_ascii_graphic()));
        if path.starts_with('/') && is_ascii {
            return Some(path);
        }
        let label = "expected a path of printable ASCII that begins with /";
        self.translator.mistake(&expr.span, format!("`{path}` is not a path"), label);
        None
    }

    /// Returns header fields: `[{"name", "value"}]` or `%{"name" => "value"}`.
    pub(super) fn headers(&mut self, expr: &Expr, place: HeaderPlace) -> Option<Yaml> {
        let literal = self.literal(expr);
        let pairs: Option<Vec<(Expr, Expr)>> = match &literal.kind {
            ExprKind::Map(entries) => Some(entries.clone()),
            ExprKind::List(items) => items
                .iter()
                .map(|item| match &item.kind {
                    ExprKind::Tuple(pair) => match &pair[..] {
                        [name, value] => Some((name.clone(), value.clone())),
                        _ => None,
                    },
                    _ => None,
                })
                .collect(),
            _ => None,
        };
        let Some(pairs) = pairs else {
            let label = "expected a list of pairs: `[{\"name\", \"value\"}]`";
            self.translator.mistake(&expr.span, "these headers cannot be read", label);
            return None;
        };
        let mut headers = Headers::default();
        for (name, value) in pairs {
            let Some(field) = name.literal().map(str::to_ascii_lowercase) else {
                self.translator.not_supported(&name.span, "header", "write its name as a text");
                continue;
            };
            let construct = format!("header {field}");
            if !self.translator.may_have_header(&name.span, &construct, &field, place) {
                continue;
            }
            if !is_token(&field) {
                let label = "expected letters, digits and !#$%&'*+-.^_`|~";
                self.translator.mistake(&name.span, "a header cannot have this name", label);
                continue;
            }
            match self.value(&value) {
                Ok(value) if !value.text.contains(['\r', '\n', '\0']) => {
                    headers.set(&field, value.text);
                }
                Ok(_) => {
                    let label = "expected no line break";
                    self.translator.mistake(&value.span, "a header cannot have this value", label);
                }
                Err(remedy) => {
                    self.translator.not_supported(&value.span, construct, remedy);
                }
            }
        }
        headers.write()
    }

    /// Returns the body of a request.
    fn body(&mut self, expr: &Expr) -> Option<(String, Yaml)> {
        let literal = self.literal(expr);
        let read = match &literal.kind {
            ExprKind::Tuple(pair) => match (&pair[..], pair.first().and_then(Expr::literal)) {
                ([_, json], Some("json")) => {
                    self.json(json).map(|json| ("json".to_owned(), json.to_yaml()))
                }
                ([_, _], Some("bert")) => Err("throng has no BERT: write the bytes".to_owned()),
                _ => Err("write a text, or `{:json, map}`".to_owned()),
            },
            _ => self.value(&literal).map(|body| ("body".to_owned(), Yaml::text(body.text))),
        };
        match read {
            Ok(body) => Some(body),
            Err(remedy) => {
                self.translator.not_supported(&expr.span, "body", remedy);
                None
            }
        }
    }

    /// Binds the names of `{status, headers, body}`. Returns what it demands.
    fn answer(&mut self, pattern: &Expr, captures: &Captures) -> Demands {
        let mut demands = Demands::default();
        let ExprKind::Tuple(parts) = &pattern.kind else {
            if let ExprKind::Name(name) = &pattern.kind {
                self.bindings.insert(name.clone(), Binding::Unknown("the whole answer"));
            }
            return demands;
        };
        let [status, headers, body] = &parts[..] else { return demands };
        for (expr, what) in
            [(status, "the status"), (headers, "the headers"), (body, "the whole answer")]
        {
            if let ExprKind::Name(name) = &expr.kind {
                self.bindings.insert(name.clone(), Binding::Unknown(what));
            }
        }
        if let ExprKind::Tuple(parts) = &body.kind
            && let [kind, json] = &parts[..]
            && kind.literal() == Some("json")
        {
            demands.json = Some(self.demanded(json)).filter(|json| !has_no_value(json));
            let part = AnswerPart { captures: captures.clone(), place: JsonPointer::default() };
            self.bind_json(json, &part);
        }
        let status = status.whole().and_then(|status| u16::try_from(status).ok());
        demands.status = status.filter(|status| (100..600).contains(status));
        demands
    }
}

impl Demands {
    /// Returns the value of `expect`, if it needs one.
    fn write(self) -> Option<Yaml> {
        let status = self.status.map(Yaml::plain);
        match (status, self.json) {
            (status, None) => status,
            (status, Some(json)) => {
                let status = status.map(|status| ("status", status));
                Some(Yaml::map(status.into_iter().chain([("json", json.pattern())])))
            }
        }
    }
}

/// Returns the value of `capture`.
pub(super) fn captures_yaml(captures: &[(String, JsonPointer)]) -> Yaml {
    Yaml::map(captures.iter().map(|(name, place)| (name.clone(), place.write())))
}

fn is_json_body(body: &Expr) -> bool {
    match &body.kind {
        ExprKind::Tuple(pair) => pair.first().and_then(Expr::literal) == Some("json"),
        _ => false,
    }
}
