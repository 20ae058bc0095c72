//! `connect` and `send` of the engine ws.

use throng_load::scenario::{YamlKind, YamlNode};

use crate::source::Span;
use crate::yaml::Yaml;

use super::fields::{Fields, one_or_more, text};
use super::flow::Flow;
use super::{capture, json};
use crate::json::Json;
use crate::text::hex;
use crate::url::path_of;

impl Flow<'_, '_, '_> {
    /// Returns the step that every user of this engine begins with.
    pub(super) fn first_connect(&mut self, span: &Span) -> Yaml {
        self.connection(span, None, self.settings.subprotocols, None)
    }

    /// Translates `connect`: a URL, or a mapping with more.
    pub(super) fn connect(&mut self, span: &Span, node: &YamlNode) -> Option<Yaml> {
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
                let fields = Fields::read(self.translator, node, "`connect`", &CONNECT_KEYS)?;
                for key in ["proxy", "function", "beforeConnect"] {
                    if let Some((span, _)) = fields.entry(key) {
                        let remedy = "users connect to the target by themselves; write what the \
                                      function sets as headers or a query";
                        self.translator.not_supported(&span, format!("connect {key}"), remedy);
                    }
                }
                let url = ["target", "url"].iter().find_map(|key| fields.get(key));
                let subprotocols = fields.get("subprotocols").or_else(|| fields.get("subprotocol"));
                (url, subprotocols, Some(fields))
            }
            _ => (Some(node), None, None),
        };
        let path = match url {
            None => None,
            Some(node) => {
                let url = self.text(node, "the target")?;
                let path = path_of(&url, &self.base);
                if path.is_none() {
                    let remedy = "a scenario has one target; give its path and query";
                    self.translator.not_supported(&node.span, format!("connect {url}"), remedy);
                }
                path
            }
        };
        self.translator.translated(span, "connect");
        let subprotocols = subprotocols.or(self.settings.subprotocols);
        Some(self.connection(span, path, subprotocols, headers))
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
        let headers = self.headers(&fields.unwrap_or_default());
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
        let step = match entries.is_empty() {
            true => Yaml::text("connect"),
            false => Yaml::entry("connect", Yaml::map(entries)),
        };
        self.check_first(span, &step);
        step
    }

    /// Translates `send`: a text, a value as JSON, or a payload with what its answer has.
    pub(super) fn send(&mut self, span: &Span, node: &YamlNode, steps: &mut Vec<Yaml>) {
        let fields = match &node.kind {
            YamlKind::Map(entries) if is_payload(entries) => {
                Fields::read(self.translator, node, "`send`", &SEND_KEYS)
            }
            _ => None,
        };
        let fields = fields.unwrap_or_default();
        let (_, payload) = fields.entry("payload").unwrap_or((span.clone(), node));
        let (key, payload) = match &payload.kind {
            YamlKind::Nothing => {
                let label = "expected a text or a mapping";
                return self.translator.mistake(span, "this message is empty", label);
            }
            YamlKind::Scalar(_) => {
                let Some(text) = self.text(payload, "the message") else { return };
                ("text", Yaml::text(text))
            }
            _ => ("json", json::value(self.translator, &mut self.variables, payload).to_yaml()),
        };
        let answer = self.answer(&fields);
        let send = match (&answer, key) {
            (Some(_), "text") => payload,
            (Some(_), _) => Yaml::map([(key, payload)]),
            (None, _) => Yaml::map([(key, payload), ("reply", Yaml::plain("false"))]),
        };
        let begin = steps.len();
        steps.push(Yaml::entry("send", send));
        steps.extend(answer);
        self.translator.translated(span, "send");
        self.check(span, &steps[begin..]);
    }

    /// Translates `sendBytes`: a binary message of the bytes of a text.
    pub(super) fn send_bytes(&mut self, span: &Span, node: &YamlNode, steps: &mut Vec<Yaml>) {
        let Some(text) = text(self.translator, node, "the message") else { return };
        if text.contains("{{") || text.is_empty() {
            let remedy = "a binary message is known before the run: write `send: {binary: de ad}`, \
                          or `send: {random: 64}`";
            return self.translator.not_supported(span, "sendBytes", remedy);
        }
        let bytes = Yaml::text(hex(text.as_bytes()));
        let send = Yaml::map([("binary", bytes), ("reply", Yaml::plain("false"))]);
        steps.push(Yaml::entry("send", send));
        self.translator.translated(span, "sendBytes");
        self.check(span, &steps[steps.len() - 1..]);
    }

    /// Returns the step that waits for the answer, if the file looks at it.
    fn answer(&mut self, fields: &Fields<'_>) -> Option<Yaml> {
        let (span, _) = fields.entry("capture").or_else(|| fields.entry("match"))?;
        let captures = match fields.get("capture") {
            Some(node) => capture::read(self.translator, &mut self.variables, node),
            None => Vec::new(),
        };
        let mut expectation = super::expect::Expectation::default();
        if let Some(node) = fields.get("match") {
            expectation.read_match(self.translator, &mut self.variables, node);
        }
        let is_json = !captures.is_empty() && captures.iter().all(|(_, place)| place.is_text());
        let any = match is_json {
            true => ("json", Json::any().pattern()),
            false => ("regex", Yaml::text(".*")),
        };
        let mut entries = vec![expectation.into_body().unwrap_or(any)];
        if !captures.is_empty() {
            entries.push(("capture", Yaml::map(captures)));
        }
        let why = "Artillery takes the next message for the answer, also another user's; so does \
                   the scenario: expect what only the answer has, with `skip_others: true`";
        self.translator.suspicious(&span, "answer", why);
        self.has_answers |= !self.is_once;
        Some(Yaml::entry("expect", Yaml::map(entries)))
    }
}

/// Reports whether a mapping is the long form of `send`, and not a message of JSON.
fn is_payload(entries: &[(YamlNode, YamlNode)]) -> bool {
    let is_key =
        |(key, _): &(YamlNode, YamlNode)| key.scalar().is_some_and(|key| SEND_KEYS.contains(&key));
    entries.iter().all(is_key) && entries.iter().any(|(key, _)| key.scalar() == Some("payload"))
}

const CONNECT_KEYS: [&str; 8] = [
    "target",
    "url",
    "headers",
    "subprotocols",
    "subprotocol",
    "proxy",
    "function",
    "beforeConnect",
];

const SEND_KEYS: [&str; 3] = ["payload", "capture", "match"];
