//! WebSockets and plain TCP.

use throng_load::scenario::HeaderPlace;

use super::device::{Device, Step, Wire, ready};
use super::elixir::{Call, Expr, ExprKind};
use super::http::written;
use super::rows::CALLS;
use super::value::{AnswerPart, Binding, Captures};
use crate::json::Json;
use crate::json_pointer::JsonPointer;
use crate::source::Span;
use crate::step;
use crate::text::{escape, hex};
use crate::yaml::Yaml;

/// What a receive waits for.
struct Wanted {
    entries: Vec<(&'static str, Yaml)>,
    captures: Captures,
    /// How the scenario differs.
    note: Option<&'static str>,
}

impl Device<'_, '_> {
    /// Translates a function of WebSockets.
    pub(super) fn web_socket(
        &mut self,
        span: &Span,
        call: &Call,
        pattern: Option<&Expr>,
    ) -> Vec<Step> {
        if self.wire == Wire::Tcp {
            let remedy = "a TCP device has no WebSockets: choose the protocol `http`";
            return self.translator.omit(span, &*call.name, remedy);
        }
        if call.name == "ws_upgrade" {
            return self.upgrade(span, call);
        }
        if !self.is_upgraded {
            let label = "add `ws_upgrade(\"/path\")` before it";
            let title = format!("`{}` needs a WebSocket", call.name);
            return self.translator.fail(span, title, label);
        }
        if self.translator.has_row(span, CALLS, &call.name) {
            return Vec::new();
        }
        match &*call.name {
            "ws_send_text" | "ws_send_binary" | "ws_send_json" => {
                let Some(message) = call.arguments.first() else {
                    let title = format!("`{}` needs a message", call.name);
                    return self.translator.fail(
                        span,
                        title,
                        "for example `ws_send_text(\"hello\")`",
                    );
                };
                self.ws_send(span, &call.name, message)
            }
            name if name.starts_with("ws_fetch") => {
                let uses = pattern.is_some_and(|it| !matches!(it.kind, ExprKind::Atom(_)));
                if uses {
                    let remedy = "a scenario does not look whether a message is there: write \
                                  `receive` where one must come";
                    self.translator.not_supported(span, name, remedy);
                } else {
                    let why = "what no step waits for is set aside";
                    self.translator.not_needed(span, name, why);
                }
                Vec::new()
            }
            name => self.ws_receive(span, name, call.arguments.first(), pattern),
        }
    }

    fn upgrade(&mut self, span: &Span, call: &Call) -> Vec<Step> {
        if self.is_upgraded || self.loops > 0 {
            let remedy = "a script opens its WebSocket once: write it outside of loops";
            return self.translator.omit(span, "ws_upgrade", remedy);
        }
        let Some(path) = call.arguments.first() else {
            let label = "for example `ws_upgrade(\"/socket\")`";
            return self.translator.fail(span, "`ws_upgrade` needs a path", label);
        };
        let Some(path) = self.path(path) else { return Vec::new() };
        let headers = call.arguments.get(1);
        let headers = headers.map(|headers| self.headers(headers, HeaderPlace::Upgrade));
        let mut entries = vec![("path", Yaml::text(path))];
        entries.extend(headers.unwrap_or_default().write().map(|headers| ("headers", headers)));
        self.is_upgraded = true;
        self.translator.translated(span, "ws_upgrade");
        vec![ready(step::connect(entries))]
    }

    fn ws_send(&mut self, span: &Span, name: &str, message: &Expr) -> Vec<Step> {
        let data = self.literal(message);
        let kind = name.strip_prefix("ws_send_").unwrap_or_default();
        let sent = match kind {
            "json" => self.json(&data).map(|json| Yaml::map([("json", json.to_yaml())])),
            "binary" => self.bytes(&data, "binary"),
            _ => self.value(&data).map(|text| Yaml::text(text.text)),
        };
        match sent {
            Ok(_) if data.literal() == Some("") => {
                let label = "expected at least one byte";
                self.translator.fail(&message.span, "an empty message cannot be sent", label)
            }
            Ok(sent) => {
                self.has_asked = true;
                self.translator.translated(span, name);
                vec![ready(Yaml::entry("send", sent))]
            }
            Err(remedy) => self.translator.omit(span, name, remedy),
        }
    }

    /// Returns the value of `send` for bytes; `key` is the one for hexadecimal digits.
    fn bytes(&mut self, data: &Expr, key: &'static str) -> Result<Yaml, String> {
        let data = self.literal(data);
        if let Some(call) = data.call()
            && call.name == "random_bytes"
        {
            let size = call
                .arguments
                .first()
                .and_then(Expr::whole)
                .filter(|size| (1..=1 << 30).contains(size));
            let size = size.ok_or("write the number of bytes")?;
            self.translator.translated(&data.span, &*call.name);
            let size = throng_base::units::show_bytes(size);
            return Ok(Yaml::map([("random", Yaml::plain(size))]));
        }
        let written = match &data.kind {
            ExprKind::Bytes(items) => {
                let mut bytes = Vec::new();
                for item in items {
                    match (item.whole().and_then(|byte| u8::try_from(byte).ok()), item.literal()) {
                        (Some(byte), _) => bytes.push(byte),
                        (None, Some(text)) => bytes.extend(text.as_bytes()),
                        (None, None) => return Err("write bytes from 0 to 255".to_owned()),
                    }
                }
                Some(bytes)
            }
            _ if key == "binary" => data.literal().map(|text| text.as_bytes().to_vec()),
            _ => None,
        };
        match written {
            Some(bytes) if bytes.is_empty() => Err("write at least one byte".to_owned()),
            Some(bytes) => Ok(Yaml::map([(key, Yaml::text(hex(&bytes)))])),
            None if key == "binary" => {
                Err("write its bytes: `send: {binary: de ad be ef}`".to_owned())
            }
            None => self.value(&data).and_then(|text| match text.text.is_empty() {
                true => Err("write at least one byte".to_owned()),
                false => Ok(Yaml::text(text.text)),
            }),
        }
    }

    fn ws_receive(
        &mut self,
        span: &Span,
        name: &str,
        timeout: Option<&Expr>,
        pattern: Option<&Expr>,
    ) -> Vec<Step> {
        // `{:ok, pattern}`
        let inner = pattern.and_then(|pattern| second(pattern, "ok"));
        let Some(timeout) = self.timeout(timeout) else { return Vec::new() };
        let mut wanted = self.wanted(name.ends_with("json"), inner);
        wanted.entries.extend(timeout);
        self.receive(span, name, wanted)
    }

    /// Returns what a message must be.
    fn wanted(&mut self, is_json: bool, pattern: Option<&Expr>) -> Wanted {
        let captures = Captures::default();
        let entry = match (is_json, pattern) {
            (true, Some(pattern)) => {
                let json = self.demanded(pattern);
                let part = AnswerPart { captures: captures.clone(), place: JsonPointer::default() };
                self.bind_json(pattern, &part);
                ("json", json.pattern())
            }
            (true, None) => ("json", Json::any().pattern()),
            (false, pattern) => {
                if let Some(ExprKind::Name(name)) = pattern.map(|pattern| &pattern.kind) {
                    self.bindings.insert(name.clone(), Binding::Unknown("the message"));
                }
                match pattern.and_then(Expr::literal).filter(|text| !text.is_empty()) {
                    Some(text) => ("text", Yaml::text(escape(text))),
                    None => ("regex", Yaml::text(".*")),
                }
            }
        };
        Wanted { entries: vec![entry], captures, note: None }
    }

    /// Returns the entry for a time-out, unless it is the default; `None` after a mistake.
    fn timeout(&mut self, timeout: Option<&Expr>) -> Option<Option<(&'static str, Yaml)>> {
        let Some(timeout) = timeout else { return Some(None) };
        let ms = self.value(timeout).ok().and_then(|value| value.text.parse::<f64>().ok());
        match ms.filter(|ms| (1.0..=86_400_000.0).contains(ms)) {
            Some(5000.0) => Some(None),
            Some(ms) => Some(Some(("timeout", Yaml::plain(super::load::millis(ms))))),
            None => {
                let label = "expected milliseconds, from 1 to a day";
                self.translator.fail(&timeout.span, "this time-out cannot be read", label)
            }
        }
    }

    /// Returns the step that waits: for an answer if something was sent before.
    fn receive(&mut self, span: &Span, name: &str, wanted: Wanted) -> Vec<Step> {
        match wanted.note.filter(|note| self.told.insert(note)) {
            Some(note) => self.translator.approximated(span, name, note),
            None => self.translator.translated(span, name),
        }
        let key = if std::mem::take(&mut self.has_asked) { "expect" } else { "receive" };
        let Wanted { mut entries, captures, .. } = wanted;
        vec![Box::new(move || {
            entries.extend(step::capture(&written(&captures)));
            match &entries[..] {
                [("text", text)] => Yaml::entry(key, text.clone()),
                _ => Yaml::entry(key, Yaml::map(entries)),
            }
        })]
    }

    /// Translates `send` and `recv` of plain TCP.
    pub(super) fn tcp(&mut self, span: &Span, call: &Call, pattern: Option<&Expr>) -> Vec<Step> {
        if call.name == "send" {
            let Some(data) = call.arguments.first() else {
                return self.translator.fail(
                    span,
                    "`send` needs data",
                    "for example `send(\"hello\")`",
                );
            };
            return match self.bytes(data, "hex") {
                Ok(data) => {
                    self.has_asked = true;
                    self.translator.translated(span, "send");
                    vec![ready(Yaml::entry("send", data))]
                }
                Err(remedy) => self.translator.omit(span, "send", remedy),
            };
        }
        let Some(timeout) = self.timeout(call.arguments.first()) else { return Vec::new() };
        let inner = pattern.and_then(|pattern| second(pattern, "ok"));
        let text = inner.and_then(Expr::literal);
        let (entry, note) = match text.filter(|text| !text.is_empty()) {
            Some(text) => (("text", Yaml::text(escape(text))), None),
            // The first data are the answer, whatever they are.
            None => (("bytes", Yaml::plain(1)), Some(ANY_ANSWER)),
        };
        let mut wanted = Wanted { entries: vec![entry], captures: Captures::default(), note };
        if let Some(ExprKind::Name(name)) = inner.map(|inner| &inner.kind) {
            self.bindings.insert(name.clone(), Binding::Unknown("the answer"));
        }
        wanted.entries.extend(timeout);
        self.receive(span, "recv", wanted)
    }
}

/// Returns the second part of `{:name, part}`.
fn second<'e>(pattern: &'e Expr, name: &str) -> Option<&'e Expr> {
    match &pattern.kind {
        ExprKind::Tuple(pair) => match &pair[..] {
            [first, second] if first.literal() == Some(name) => Some(second),
            _ => None,
        },
        _ => None,
    }
}

const ANY_ANSWER: &str = "recv takes any data, and so does the scenario: it waits for one byte and \
    ignores the rest; if you know the answer, write `expect: ok`";
