//! The default function of a script: its statements as steps.

use std::time::Duration;

use throng_load::scenario::Diagnostic;

use crate::headers::Headers;
use crate::json_pointer::JsonPointer;
use crate::request::Request;
use crate::source::Span;
use crate::step;
use crate::step_names::StepNames;
use crate::translator::Translator;
use crate::yaml::Yaml;

use super::checked::{Checked, Place, checked, place_in_answer};
use super::load::parse_duration;
use super::parser::program;
use super::request::ScriptRequest;
use super::session::Session;
use super::syntax::{Expression, ExpressionKind, Statement, StatementKind};
use super::values::{Kind, Values};

/// The translation of the statements.
pub(super) struct Script<'t, 's> {
    pub(super) translator: &'t mut Translator<'s>,
    pub(super) values: Values,
    pub(super) names: StepNames,
    /// Scheme and server of the first URL, and its place.
    pub(super) server: Option<(String, Span)>,
    pub(super) items: Vec<Item>,
    /// The variable of the WebSocket that `new WebSocket` has opened.
    pub(super) socket: Option<String>,
}

/// A part of the default function.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Request(ScriptRequest),
    Session(Session),
    Step(Yaml),
    Group(String, Vec<Item>),
}

pub(super) type Done<T> = Result<T, Diagnostic>;

impl Item {
    /// Reports whether there is a request in it.
    pub(super) fn has_request(&self) -> bool {
        match self {
            Self::Request(_) => true,
            Self::Group(_, items) => items.iter().any(Self::has_request),
            Self::Session(_) | Self::Step(_) => false,
        }
    }

    /// Reports whether a session in it waits for a message.
    pub(super) fn awaits_answer(&self) -> bool {
        match self {
            Self::Session(session) => session.closes_on_message,
            Self::Group(_, items) => items.iter().any(Self::awaits_answer),
            Self::Request(_) | Self::Step(_) => false,
        }
    }

    /// Adds a header to the requests and sessions in it that do not have it.
    pub(super) fn add_header(&mut self, name: &str, value: &str) {
        match self {
            Self::Request(request) => drop(request.step.headers.add(name, value)),
            Self::Session(session) => drop(session.headers.add(name, value)),
            Self::Group(_, items) => items.iter_mut().for_each(|item| item.add_header(name, value)),
            Self::Step(_) => {}
        }
    }
}

impl Script<'_, '_> {
    /// Translates statements. What is more than a step is a mistake.
    pub(super) fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            let begin = self.items.len();
            if let Err(mistake) = self.statement(statement) {
                self.translator.mistakes.push(mistake);
            }
            let comments = self.translator.source.comments_above(statement.span.start, "//");
            match self.items.get_mut(begin) {
                Some(Item::Request(request)) => request.comments = comments,
                Some(Item::Session(session)) => session.comments = comments,
                Some(Item::Step(step)) => *step = step.clone().comments(comments),
                Some(Item::Group(..)) | None => {}
            }
        }
    }

    fn statement(&mut self, statement: &Statement) -> Done<()> {
        match &statement.kind {
            StatementKind::Constant(name, value) => self.constant(name, value),
            StatementKind::Expression(value) => self.expression(value),
            StatementKind::Return(None) => Ok(()),
            _ => Err(program(&statement.span)),
        }
    }

    pub(super) fn constant(&mut self, name: &str, value: &Expression) -> Done<()> {
        if let Some((function, arguments)) = value.call() {
            if function.starts_with("http.") || function == "ws.connect" {
                return self.call(&function, arguments, &value.span, Some(name));
            }
            if function == "WebSocket" {
                let url = arguments.first().ok_or_else(|| program(&value.span))?;
                let (path, login) = self.path(url)?;
                let span = value.span.clone();
                let mut session = Session { span: span.clone(), path, ..Session::default() };
                self.add_login(&span, login, &mut session.headers);
                self.items.push(Item::Session(session));
                self.socket = Some(name.to_owned());
                self.translator.translated(&value.span, "WebSocket");
                return Ok(());
            }
            if function == "check" {
                return self.expression(value);
            }
        }
        if let Some((variable, place)) = place_in_answer(value) {
            let (place, construct, is) = match place {
                Place::Json(place) => {
                    let pointer = JsonPointer::of_path(&place);
                    (pointer.ok_or_else(|| program(&value.span))?.write(), "json", Kind::Any)
                }
                Place::Status => (Yaml::text("status"), "status", Kind::Number),
                Place::Header(header) => {
                    (Yaml::entry("header", Yaml::text(header)), "headers", Kind::Text)
                }
            };
            self.request_of(&variable).ok_or_else(|| program(&value.span))?;
            let stored = self.values.store(name, is);
            let request = self.request_of(&variable).ok_or_else(|| program(&value.span))?;
            request.step.captures.push((stored, place));
            self.translator.translated(&value.span, format!("{variable}.{construct}"));
            return Ok(());
        }
        let resolved = self.values.resolved(value, 0);
        let is_text = !matches!(resolved.call(), Some((name, _)) if name == "JSON.stringify");
        if self.socket.is_none() && is_text && self.values.draws(&resolved) {
            // The script draws the value once.
            if let Ok(text) = self.values.text(&resolved) {
                let stored = self.values.store_drawn(name, &resolved);
                self.items.push(Item::Step(step::set(stored, text)));
                return Ok(());
            }
        }
        self.values.define(name, value);
        Ok(())
    }

    fn expression(&mut self, value: &Expression) -> Done<()> {
        if let ExpressionKind::Binary(left, "=", right) = &value.kind {
            return self.assignment(left, right);
        }
        let Some((function, arguments)) = value.call() else { return Err(program(&value.span)) };
        self.call(&function, arguments, &value.span, None)
    }

    /// Translates `socket.onopen = () => {...}`.
    pub(super) fn assignment(&mut self, left: &Expression, right: &Expression) -> Done<()> {
        let path = left.path().unwrap_or_default();
        let event = path.split_once(".on").filter(|(socket, _)| self.is_socket(socket));
        let Some((_, event)) = event else { return Err(program(&left.span)) };
        let event = event.to_owned();
        self.handler(&event, right, &left.span)
    }

    fn is_socket(&self, name: &str) -> bool {
        self.socket.as_deref() == Some(name)
    }

    fn call(
        &mut self,
        function: &str,
        arguments: &[Expression],
        span: &Span,
        variable: Option<&str>,
    ) -> Done<()> {
        match function {
            "http.get" | "http.head" | "http.post" | "http.put" | "http.patch" | "http.del"
            | "http.options" => self.request(function, arguments, span, variable),
            "http.request" => {
                let [method, arguments @ ..] = arguments else { return Err(program(span)) };
                let method = self.values.resolved(method, 0);
                let method = method.text().unwrap_or_default().to_ascii_lowercase();
                let function = match &*method {
                    "get" | "head" | "post" | "put" | "patch" | "options" => method.clone(),
                    "delete" => "del".to_owned(),
                    _ => return Err(program(span)),
                };
                // A body stands in its place, also where the method has none.
                let arguments: Vec<_> = match (&*function, arguments) {
                    ("get" | "head", [url, _, params @ ..]) => {
                        [url].into_iter().chain(params).cloned().collect()
                    }
                    _ => arguments.to_vec(),
                };
                self.request(&format!("http.{function}"), &arguments, span, variable)
            }
            "http.setResponseCallback" => {
                let remedy = "write the statuses as `expect` of each request";
                self.translator.not_checked(span, function, remedy);
                Ok(())
            }
            "check" => self.check(arguments, span),
            "sleep" => self.sleep(arguments, span),
            "group" => self.group(arguments, span),
            "ws.connect" => self.connect(arguments, span),
            _ if function.starts_with("console.") => {
                self.translator.not_needed(span, function, "see `--log` of `throng run`");
                Ok(())
            }
            _ if self.is_metric(function) => {
                let why = "throng measures each step; one with a `name` has a row of its own";
                self.translator.not_needed(span, function, why);
                Ok(())
            }
            _ => match function.split_once(".addEventListener") {
                Some((socket, "")) if self.is_socket(socket) => match arguments {
                    [event, handler] => {
                        let event = event.text().ok_or_else(|| program(span))?;
                        self.handler(event, handler, span)
                    }
                    _ => Err(program(span)),
                },
                _ => Err(program(span)),
            },
        }
    }

    /// Reports whether it is `metric.add`, of a metric of the script's own.
    fn is_metric(&self, function: &str) -> bool {
        let Some(name) = function.strip_suffix(".add") else { return false };
        let name = Expression { span: 0..0, kind: ExpressionKind::Name(name.to_owned()) };
        let made = self.values.resolved(&name, 0).call().map(|(function, _)| function);
        made.is_some_and(|made| ["Trend", "Counter", "Rate", "Gauge"].contains(&&*made))
    }

    fn request(
        &mut self,
        function: &str,
        arguments: &[Expression],
        span: &Span,
        variable: Option<&str>,
    ) -> Done<()> {
        let (method, has_body) = match function {
            "http.get" => ("get", false),
            "http.head" => ("head", false),
            "http.post" => ("post", true),
            "http.put" => ("put", true),
            "http.patch" => ("patch", true),
            "http.options" => ("options", true),
            _ => ("delete", true),
        };
        let url = arguments.first().ok_or_else(|| program(span))?;
        let (path, login) = self.path(url)?;
        let variable = variable.map(str::to_owned);
        let step = Request { method: method.to_owned(), path, ..Request::default() };
        let mut request =
            ScriptRequest { span: span.clone(), step, variable, ..ScriptRequest::default() };
        let is_given = |value: &&Expression| !matches!(value.kind, ExpressionKind::Null);
        if let Some(params) = arguments.get(1 + usize::from(has_body)).filter(is_given) {
            self.params(params, &mut request)?;
        }
        self.add_login(span, login, &mut request.step.headers);
        if let Some(body) = arguments.get(1).filter(|_| has_body).filter(is_given) {
            request.step.body = Some(self.body(body, &request.step.headers)?);
        }
        self.translator.translated(span, format!("{function} {}", request.step.path));
        self.items.push(Item::Request(request));
        Ok(())
    }

    /// Returns the body of a request.
    fn body(&mut self, body: &Expression, headers: &Headers) -> Done<(&'static str, Yaml)> {
        let resolved = self.values.resolved(body, 0);
        if let ExpressionKind::Object(members) = &resolved.kind {
            let mut form = Vec::new();
            for (name, value) in members {
                form.push((name.clone(), Yaml::text(self.values.text(value)?)));
            }
            return Ok(("form", Yaml::map(form)));
        }
        let (key, value) = self.values.payload(body)?;
        if headers.has("content-type") {
            return Ok((if key == "text" { "body" } else { key }, value));
        }
        let text = self.values.text(body)?;
        let is_text = key == "text" || !text.contains("${");
        let named = if is_text { "text/plain; charset=utf-8" } else { "application/json" };
        let how = format!("k6 names no type of this body, and the scenario `{named}`");
        self.translator.approximated(&body.span, "content-type", how);
        Ok(if is_text { ("body", Yaml::text(text)) } else { (key, value) })
    }

    /// Reads the parameters of a request or of a session.
    fn params(&mut self, params: &Expression, request: &mut ScriptRequest) -> Done<()> {
        let params = self.values.resolved(params, 0);
        let members = params.object().ok_or_else(|| program(&params.span))?;
        for (key, value) in members {
            match &**key {
                "headers" => {
                    let place = request.header_place();
                    for (name, value) in value.object().ok_or_else(|| program(&value.span))? {
                        let name = name.to_ascii_lowercase();
                        let (span, construct) = (&value.span, format!("header {name}"));
                        if self.translator.may_have_header(span, &construct, &name, place) {
                            request.step.headers.set(&name, self.values.text(value)?);
                            if name == "cookie" && !request.is_session() {
                                let how = "k6 adds the cookies of the user; the scenario sends \
                                           these alone";
                                self.translator.approximated(span, construct, how);
                            }
                        }
                    }
                }
                "tags" => {
                    let tags = value.object().unwrap_or_default();
                    let name = tags.iter().find(|(name, _)| name == "name");
                    let name = name.and_then(|(_, name)| name.text());
                    let kind = if request.is_session() { "connect" } else { &request.step.method };
                    request.step.name = name.and_then(|name| self.names.take(name, kind));
                }
                "timeout" => {
                    let seconds = value.number().map(|ms| Duration::from_millis(ms as u64));
                    let timeout = value.text().and_then(parse_duration).or(seconds);
                    let timeout = timeout.filter(|timeout| !timeout.is_zero());
                    let label = "expected a text such as '10s'";
                    let mistake =
                        || Diagnostic::new(value.span.clone(), "`timeout` cannot be read", label);
                    request.step.timeout = Some(timeout.ok_or_else(mistake)?);
                }
                "redirects" if value.number() == Some(0.0) => {
                    request.step.expect.statuses = vec!["2xx".to_owned(), "3xx".to_owned()];
                }
                "compression" if request.is_session() && value.text() == Some("deflate") => {
                    request.deflates = true;
                    self.translator.translated(&value.span, "compression");
                }
                "responseType" | "responseCallback" | "compression" => {
                    let why = "answers are read as far as the scenario looks at them";
                    self.translator.not_needed(&value.span, &**key, why);
                }
                _ => {
                    let remedy = "a step has no such key; see docs/scenario.md";
                    self.translator.not_supported(&value.span, &**key, remedy);
                }
            }
        }
        Ok(())
    }

    fn connect(&mut self, arguments: &[Expression], span: &Span) -> Done<()> {
        let (url, params, function) = match arguments {
            [url, params, function] => (url, Some(params), function),
            [url, function] => (url, None, function),
            _ => return Err(program(span)),
        };
        let (path, login) = self.path(url)?;
        let function = function.function().ok_or_else(|| program(&function.span))?;
        let mut request = ScriptRequest::default();
        let is_given = |value: &&Expression| !matches!(value.kind, ExpressionKind::Null);
        if let Some(params) = params.filter(is_given) {
            self.params(params, &mut request)?;
        }
        self.add_login(span, login, &mut request.step.headers);
        let ScriptRequest { step: Request { headers, .. }, deflates, .. } = request;
        let session = Session { span: span.clone(), path, headers, deflates, ..Session::default() };
        self.items.push(Item::Session(session));
        self.socket = function.parameters.first().cloned();
        self.translator.translated(span, "ws.connect");
        self.session(function.statements()?)
    }

    /// Translates `check(answer, {name: (answer) => condition})`.
    fn check(&mut self, arguments: &[Expression], span: &Span) -> Done<()> {
        let [answer, checks, ..] = arguments else { return Err(program(span)) };
        let variable = match answer.name() {
            Some(name) => name.to_owned(),
            None => {
                // `check(http.get(...), {...})`
                self.expression(answer)?;
                if let Some(Item::Request(request)) = self.items.last_mut() {
                    request.variable = Some(String::new());
                }
                String::new()
            }
        };
        let checks = self.values.resolved(checks, 0);
        let checks = checks.object().ok_or_else(|| program(&checks.span))?.to_vec();
        for (name, condition) in &checks {
            let construct = format!("check {name}");
            match checked(condition) {
                Some(Checked::Status(101)) => {
                    let why = "`connect` checks it";
                    self.translator.not_needed(&condition.span, construct, why);
                }
                Some(checked) => {
                    let is_kept =
                        self.request_of(&variable).is_some_and(|request| request.add(checked));
                    if is_kept {
                        self.translator.translated(&condition.span, construct);
                    } else {
                        let remedy = "a request has one pattern for the body; put both into one";
                        self.translator.not_checked(&condition.span, construct, remedy);
                    }
                }
                None => {
                    let remedy = "write it as `expect` of the request";
                    self.translator.not_checked(&condition.span, construct, remedy);
                }
            }
        }
        Ok(())
    }

    fn group(&mut self, arguments: &[Expression], span: &Span) -> Done<()> {
        let [name, function] = arguments else { return Err(program(span)) };
        let name = name.text().ok_or_else(|| program(&name.span))?;
        let function = function.function().ok_or_else(|| program(&function.span))?;
        let outer = std::mem::take(&mut self.items);
        match function.statements() {
            Ok(statements) => self.statements(statements),
            Err(refusal) => self.translator.mistakes.push(refusal),
        }
        let inner = std::mem::replace(&mut self.items, outer);
        self.translator.translated(span, format!("group {name}"));
        match self.names.take(name, "transaction") {
            Some(name) if !inner.is_empty() => self.items.push(Item::Group(name, inner)),
            _ => self.items.extend(inner),
        }
        Ok(())
    }

    /// Returns the request whose answer this variable holds.
    fn request_of(&mut self, variable: &str) -> Option<&mut ScriptRequest> {
        self.items.iter_mut().rev().find_map(|item| match item {
            Item::Request(request) if request.variable.as_deref() == Some(variable) => {
                Some(request)
            }
            _ => None,
        })
    }
}
