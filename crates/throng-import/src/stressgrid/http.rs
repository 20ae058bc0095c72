//! `get`, `post` and the other requests.

use throng_load::scenario::{HeaderPlace, is_token};

use super::answer_pattern::has_no_value;
use super::device::{Device, Step, Wire};
use super::elixir::{Call, Expr, ExprKind};
use super::value::{AnswerPart, Binding, Captures};
use crate::headers::Headers;
use crate::json_pointer::JsonPointer;
use crate::request::{Expectation, Request};
use crate::source::Span;
use crate::yaml::Yaml;

impl Device<'_, '_> {
    /// Translates a request. Its answer, `{status, headers, body}`, is matched with `pattern`.
    pub(super) fn http(&mut self, span: &Span, call: &Call, pattern: Option<&Expr>) -> Vec<Step> {
        if self.wire == Wire::Tcp || self.is_upgraded {
            let remedy = match self.wire {
                Wire::Tcp => "a TCP device sends no requests: choose the protocol `http`",
                _ => "Stressgrid sends no request after `ws_upgrade`: move it before",
            };
            return self.translator.omit(span, &*call.name, remedy);
        }
        let Some(path) = call.arguments.first() else {
            let title = format!("`{}` needs a path", call.name);
            let label = format!("for example `{}(\"/\")`", call.name);
            return self.translator.fail(span, title, label);
        };
        let Some(path) = self.path(path) else { return Vec::new() };
        let headers = call.arguments.get(1);
        let headers = headers.map(|headers| self.headers(headers, HeaderPlace::Request));
        let body = call.arguments.get(2).and_then(|body| self.body(body));
        let mut notes = Vec::new();
        let captures = Captures::default();
        let expect = pattern.map_or_else(Expectation::default, |it| self.answer(it, &captures));
        if expect.statuses.is_empty() && self.told.insert("status") {
            notes.push(
                "Stressgrid takes an answer of any status; here others than 2xx are errors, after \
                 which a user rests for 1s and begins again",
            );
        }
        if call.arguments.get(2).is_some_and(is_json_body) && self.told.insert("charset") {
            notes.push("Stressgrid adds `; charset=utf-8` to the content type of JSON");
        }
        match notes.is_empty() {
            true => self.translator.translated(span, &*call.name),
            false => self.translator.approximated(span, &*call.name, notes.join("; ")),
        }
        let headers = headers.unwrap_or_default();
        let method = call.name.clone();
        let mut request = Request { method, path, headers, body, expect, ..Request::default() };
        vec![Box::new(move || {
            // The steps behind this one have said by now what they need of its answer.
            request.captures = written(&captures);
            request.write()
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
        self.translator.fail(&expr.span, format!("`{path}` is not a path"), label)
    }

    /// Returns header fields: `[{"name", "value"}]` or `%{"name" => "value"}`.
    pub(super) fn headers(&mut self, expr: &Expr, place: HeaderPlace) -> Headers {
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
            return self.translator.fail(&expr.span, "these headers cannot be read", label);
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
        headers
    }

    /// Returns the body of a request.
    fn body(&mut self, expr: &Expr) -> Option<(&'static str, Yaml)> {
        let literal = self.literal(expr);
        let read = match &literal.kind {
            ExprKind::Tuple(pair) => match (&pair[..], pair.first().and_then(Expr::literal)) {
                ([_, json], Some("json")) => self.json(json).map(|json| ("json", json.to_yaml())),
                ([_, _], Some("bert")) => Err("throng has no BERT: write the bytes".to_owned()),
                _ => Err("write a text, or `{:json, map}`".to_owned()),
            },
            _ => self.value(&literal).map(|body| ("body", Yaml::text(body.text))),
        };
        match read {
            Ok(body) => Some(body),
            Err(remedy) => self.translator.omit(&expr.span, "body", remedy),
        }
    }

    /// Binds the names of `{status, headers, body}`. Returns what it demands.
    fn answer(&mut self, pattern: &Expr, captures: &Captures) -> Expectation {
        let mut demands = Expectation::default();
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
            let demanded = Some(self.demanded(json)).filter(|json| !has_no_value(json));
            demands.body = demanded.map(|json| ("json", json.pattern()));
            let part = AnswerPart { captures: captures.clone(), place: JsonPointer::default() };
            self.bind_json(json, &part);
        }
        let status = status.whole().and_then(|status| u16::try_from(status).ok());
        let status = status.filter(|status| (100..600).contains(status));
        demands.statuses.extend(status.map(|status| status.to_string()));
        demands
    }
}

/// Returns the captures as a scenario writes them.
pub(super) fn written(captures: &Captures) -> Vec<(String, Yaml)> {
    captures.borrow().iter().map(|(name, place)| (name.clone(), place.write())).collect()
}

fn is_json_body(body: &Expr) -> bool {
    match &body.kind {
        ExprKind::Tuple(pair) => pair.first().and_then(Expr::literal) == Some("json"),
        _ => false,
    }
}
