//! `connect` and `send` of the engine ws.

use std::time::Duration;

use throng_load::scenario::{YamlKind, YamlNode};

use crate::headers::Headers;
use crate::request::Expectation;
use crate::source::Span;
use crate::step;
use crate::yaml::Yaml;

use super::address::{Address, Part};
use super::flow::Flow;
use super::scalar::Scalar;
use super::{capture, json, template, tls};
use crate::fields::{Fields, one_or_more, text};
use crate::json::Json;
use crate::text::escape;

impl Flow<'_, '_, '_> {
    /// Returns the step that every user of this engine begins with.
    pub(super) fn first_connect(&mut self, span: &Span) -> Yaml {
        self.connection(span, None, self.settings.subprotocols, None)
    }

    /// Translates `connect`: a URL, or a mapping with more (`engine_ws.ts`, `getWsInstance`). Only
    /// the first step of a flow connects.
    pub(super) fn connect(&mut self, span: &Span, node: &YamlNode, is_first: bool) -> Option<Yaml> {
        if !is_first {
            let why = "Artillery connects at the beginning of a flow, and a `connect` that stands \
                       elsewhere does nothing; the scenario leaves it out";
            self.translator.suspicious(span, "connect", why);
            return None;
        }
        let function = match &node.kind {
            YamlKind::Scalar(url) if url.contains("://") || url.starts_with(['/', '{']) => None,
            YamlKind::Map(_) => None,
            _ => Some(()),
        };
        if function.is_some() {
            let remedy = "JavaScript is not run; write the target and the headers out";
            self.translator.not_supported(span, "connect", remedy);
            return Some(self.first_connect(span));
        }
        let (url, subprotocols, headers) = match &node.kind {
            YamlKind::Map(_) => {
                let keys = [CONNECT_KEYS, tls::KEYS].concat();
                let fields = Fields::read(self.translator, node, "`connect`", &keys)?;
                self.report_connect(&fields);
                (fields.get("target"), fields.get("subprotocols"), Some(fields))
            }
            _ => (Some(node), None, None),
        };
        let path = url.and_then(|node| self.path_of_connect(node));
        self.translator.translated(span, "connect");
        let subprotocols = subprotocols.or(self.settings.subprotocols);
        Some(self.connection(span, path, subprotocols, headers))
    }

    /// Reports the keys of `connect` that have no place in a scenario.
    fn report_connect(&mut self, fields: &Fields<'_>) {
        for key in tls::KEYS {
            if let Some((span, _)) = fields.entry(key) {
                let remedy = "all connections of a scenario are secured alike: write it in `tls`";
                self.translator.not_supported(&span, format!("connect {key}"), remedy);
            }
        }
        for key in ["proxy", "function", "beforeConnect"] {
            if let Some((span, _)) = fields.entry(key) {
                let remedy = "users connect to the target by themselves; write what the function \
                              sets as headers or a query";
                self.translator.not_supported(&span, format!("connect {key}"), remedy);
            }
        }
        for key in ["url", "subprotocol"] {
            if let Some((span, _)) = fields.entry(key) {
                let why = "Artillery does not read it: it reads `target` and `subprotocols`";
                self.translator.suspicious(&span, format!("connect {key}"), why);
            }
        }
    }

    /// Returns the path of a connect's URL.
    fn path_of_connect(&mut self, node: &YamlNode) -> Option<String> {
        let parts = self.parts(node, "the target")?;
        let url = template::text_of(&parts);
        let parts: Vec<_> = parts.into_iter().map(|part| self.raw(part)).collect();
        if matches!(parts.first(), Some(Part::Literal(text)) if text.starts_with('/')) {
            let why = "Artillery takes a whole URL, and its run ends with `Invalid URL`; the \
                       scenario connects to this path of the target";
            self.translator.suspicious(&node.span, "connect", why);
            return match Address::of(parts, &self.base) {
                Address::Path(path) => Some(path),
                _ => None,
            };
        }
        let address = Address::absolute(parts, &self.base);
        if let Address::Path(path) = address {
            return Some(path);
        }
        let remedy = "a scenario has one target; give its path and query";
        self.translator.omit(&node.span, format!("connect {url}"), remedy)
    }

    fn connection(
        &mut self,
        span: &Span,
        path: Option<String>,
        subprotocols: Option<&YamlNode>,
        fields: Option<Fields<'_>>,
    ) -> Yaml {
        let mut entries: Vec<(&str, Yaml)> = Vec::new();
        entries.extend(path.map(|path| ("path", Yaml::text(path))));
        let own = fields.as_ref().and_then(|fields| fields.get("headers"));
        let headers = match own {
            Some(node) => self.headers_as_they_are(node),
            None => self.headers(&Fields::default()),
        };
        entries.extend(headers.write().map(|headers| ("headers", headers)));
        let names = subprotocols.map(one_or_more).unwrap_or_default();
        let names: Vec<_> = names
            .into_iter()
            .filter_map(|node| text(self.translator, node, "a subprotocol"))
            .map(Yaml::text)
            .collect();
        if !names.is_empty() {
            entries.push(("subprotocols", Yaml::list(names)));
        }
        // npm's `ws` offers permessage-deflate by itself.
        if !self.settings.is_plain {
            entries.push(("deflate", Yaml::plain("true")));
        }
        let step = step::connect(entries);
        self.check(span, std::slice::from_ref(&step), true);
        step
    }

    /// Returns the headers of `connect`: they take the place of those of `config`, and Artillery
    /// fills in no variables.
    fn headers_as_they_are(&mut self, node: &YamlNode) -> Headers {
        let mut headers = Headers::default();
        let place = self.engine.header_place();
        let Some(entries) = Fields::read_any(self.translator, node, "`headers`") else {
            return headers;
        };
        for (name, span, node) in entries.iter() {
            let construct = format!("header {}", name.to_ascii_lowercase());
            if !self.translator.may_have_header(&span, &construct, name, place) {
                continue;
            }
            let Some(value) = text(self.translator, node, "a header") else { continue };
            let value = Scalar::of(&self.translator.source, node, value).into_text();
            if value.contains("{{") {
                let why = "Artillery fills no variables in here: it sends these letters, and so \
                           does the scenario";
                self.translator.suspicious(&span, construct, why);
            }
            headers.add(&name.to_ascii_lowercase(), escape(&value));
        }
        headers
    }

    /// Translates `send` and `wait` (`engine_ws.ts`, `step`): with `capture` or `match` the message
    /// is the `payload`, and the next message is the answer; without them the whole is the message.
    pub(super) fn send(&mut self, name: &str, span: &Span, node: &YamlNode, steps: &mut Vec<Yaml>) {
        let fields = match &node.kind {
            YamlKind::Map(entries) if has_answer(entries) => {
                match Fields::read(self.translator, node, "`send`", &SEND_KEYS) {
                    Some(fields) => fields,
                    None => return,
                }
            }
            _ => Fields::default(),
        };
        let is_alone = fields.iter().next().is_none();
        let message = if is_alone { Some(node) } else { fields.get("payload") };
        if is_alone {
            self.report_message(name, span, node);
        }
        let Some(message) = message else {
            let begin = steps.len();
            steps.extend(self.answer(&fields, "receive"));
            self.translator.translated(span, name);
            return self.check(span, &steps[begin..], false);
        };
        let (key, payload) = match &message.kind {
            YamlKind::Nothing => ("text", Yaml::text("null")),
            YamlKind::Scalar(_) => {
                let Some(text) = self.text(message, "the message") else { return };
                ("text", Yaml::text(text))
            }
            _ => ("json", json::value(self.translator, &mut self.variables, message).to_yaml()),
        };
        let answer = self.answer(&fields, "expect");
        let send = match (&answer, key) {
            (Some(_), "text") => payload,
            (Some(_), _) => Yaml::map([(key, payload)]),
            (None, _) => Yaml::map([(key, payload), ("reply", Yaml::plain("false"))]),
        };
        let begin = steps.len();
        steps.push(Yaml::entry("send", send));
        steps.extend(answer);
        self.translator.translated(span, name);
        self.check(span, &steps[begin..], false);
    }

    /// Reports a message that looks like something else.
    fn report_message(&mut self, name: &str, span: &Span, node: &YamlNode) {
        if name == "wait" {
            let why = "without `capture` or `match`, Artillery sends this as a message; so does \
                       the scenario";
            return self.translator.suspicious(span, "wait", why);
        }
        let YamlKind::Map(entries) = &node.kind else { return };
        if let [(key, _)] = entries.as_slice()
            && let Some(key) = key.scalar().filter(|key| LOOKS_LIKE_A_KEY.contains(key))
        {
            let why = format!(
                "without `capture` or `match`, the whole is the message: Artillery sends \
                 `{{\"{key}\":...}}`, and so does the scenario"
            );
            self.translator.suspicious(span, format!("send {key}"), why);
        }
    }

    /// Returns the step that waits for the answer, if the file looks at it.
    fn answer(&mut self, fields: &Fields<'_>, step: &str) -> Option<Yaml> {
        let (span, _) = fields.entry("capture").or_else(|| fields.entry("match"))?;
        let captures = match fields.get("capture") {
            Some(node) => capture::read(self.translator, &mut self.variables, node),
            None => Vec::new(),
        };
        let mut expectation = Expectation::default();
        if let Some(node) = fields.get("match") {
            expectation.read_match(self.translator, &mut self.variables, node);
        }
        let is_json = !captures.is_empty() && captures.iter().all(|(_, place)| place.is_text());
        let any = match is_json {
            true => ("json", Json::any().pattern()),
            false => ("regex", Yaml::text(".*")),
        };
        let pattern = expectation.body.unwrap_or(any);
        let timeout = self.settings.answer_timeout.filter(|timeout| !timeout.is_zero());
        let timeout = timeout.unwrap_or(ANSWER_TIMEOUT);
        if step == "receive" {
            let how = "Artillery waits for a message that arrives after this step has begun, and \
                       the scenario takes one that arrived after the step before, too";
            self.translator.approximated(&span, "wait", how);
        } else {
            let why = "Artillery takes the next message for the answer, also another user's; so \
                       does the scenario: expect what only the answer has, with `skip_others: \
                       true`";
            self.translator.suspicious(&span, "answer", why);
            self.has_answers |= !self.is_once;
        }
        Some(step::await_message(step, pattern, &captures, timeout))
    }
}

/// Reports whether a mapping says something about an answer.
fn has_answer(entries: &[(YamlNode, YamlNode)]) -> bool {
    entries.iter().any(|(key, _)| matches!(key.scalar(), Some("capture" | "match")))
}

const CONNECT_KEYS: &[&str] = words![
    "target" "url" "headers" "subprotocols" "subprotocol" "proxy" "function" "beforeConnect"
];

const SEND_KEYS: [&str; 3] = ["payload", "capture", "match"];

/// Keys of a message that look like words of Artillery.
const LOOKS_LIKE_A_KEY: [&str; 3] = ["payload", "json", "text"];

/// How long Artillery waits for an answer (`engine_ws.ts`, `step`).
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
