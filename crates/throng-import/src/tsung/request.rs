//! `request`: what is sent, and what is waited for.

use std::ops::Range;

use throng_load::scenario::{HeaderPlace, is_token};

use super::answer::Answer;
use super::element::{Attribute, Element};
use super::steps::{Plugin, StepsReader, Wire};
use super::variables::literal;
use crate::headers::Headers;
use crate::step;
use crate::text::hex;
use crate::yaml::Yaml;

/// What is sent.
enum Payload {
    Text(String),
    Hex(String),
    /// As many bytes, of any value.
    Random(u64),
}

impl<'d> StepsReader<'_, '_, 'd> {
    pub(super) fn request(&mut self, request: Element<'d>) -> Vec<Yaml> {
        let subst = self.translator.word(request, "subst", &["true", "false", "all_except_body"]);
        let subst = subst.unwrap_or("false");
        self.translator.translated(&request.span(), "request");
        if request.get("tag").is_some() {
            let why = "`tsung -x` leaves requests out by their tags; the scenario has all of them";
            self.translator.not_needed(&request.span(), "request tag", why);
        }
        let is_other = |child: &Element<'_>| !is_of_answer(*child);
        let mut protocols = request.elements().filter(is_other);
        let name = self.plugin.element();
        let Some(element) = protocols.next() else {
            let title = "this request sends nothing";
            let label = format!("expected `<{name} .../>` in it");
            return self.translator.fail(&request.span(), title, label);
        };
        if let Some(second) = protocols.next() {
            let label = "expected one for each `request`";
            return self.translator.fail(
                &second.span(),
                "this request sends something already",
                label,
            );
        }
        self.check_order(request);
        if element.name() != name {
            let title = format!("`{}` is no request of this session", element.name());
            let label = format!("expected `{name}`, which its type sends");
            return self.translator.fail(&element.span(), title, label);
        }
        let mut steps = match self.plugin {
            Plugin::Raw => self.raw(request, element, subst == "true"),
            Plugin::WebSocket => self.websocket(request, element, subst == "true"),
            Plugin::Http => self.http(request, element, subst),
        };
        // The request itself has the values from before it.
        for (name, stored) in std::mem::take(&mut self.captured) {
            if !steps.is_empty() {
                self.variables.bind(&name, stored);
            }
        }
        for name in std::mem::take(&mut self.emptied) {
            steps.extend(self.set_to(&[&name], ""));
        }
        steps
    }

    /// Reports parts in an order, in which tsung's document type does not allow them.
    fn check_order(&mut self, request: Element<'d>) {
        let rank = |child: &Element<'_>| match child.name() {
            "match" => 0,
            "dyn_variable" => 1,
            _ => 2,
        };
        let mut last = 0;
        for child in request.elements() {
            if rank(&child) < last {
                let title = format!("`{}` is too late in this request", child.name());
                let label = "expected `match` first, then `dyn_variable`, then what is sent: tsung \
                             takes no other order";
                return self.translator.mistake(&child.span(), title, label);
            }
            last = rank(&child);
        }
    }

    fn raw(&mut self, request: Element<'d>, raw: Element<'d>, subst: bool) -> Vec<Yaml> {
        let span = raw.span();
        let ack = self.translator.require(raw, "ack", "local");
        let ack = ack.and_then(|_| self.translator.word(raw, "ack", &ACKS)).unwrap_or("no_ack");
        let Some(payload) = self.raw_payload(raw, subst) else { return Vec::new() };
        let waits = ack == "local";
        let answer = self.answer(request, waits);
        let mut steps = self.connect_before(&span);
        steps.push(self.send(payload, waits));
        match ack {
            "no_ack" => self.translator.translated(&span, "raw ack no_ack"),
            "global" => steps.extend(self.wait_global(&span, "raw ack global")),
            _ => {
                self.approximated_once(&span, "raw ack local", self.any_answer(&answer));
                steps.push(self.expect(answer));
            }
        }
        steps
    }

    fn raw_payload(&mut self, raw: Element<'d>, subst: bool) -> Option<Payload> {
        let span = raw.span();
        match (raw.get("data"), raw.get("datasize")) {
            (Some(data), None) => {
                self.translator.translated(&span, "raw");
                self.check_letters(data.value, &data.span, "raw data");
                let text = self.variables.text(self.translator, data.value, subst, &data.span);
                let text = self.sendable(text, &data.span)?;
                if self.wire == Wire::WebSocket {
                    let has_variables = subst && data.value.contains("%%");
                    let is_text = self.options.websocket.is_text;
                    return Some(self.framed(&span, (text, data.value), has_variables, is_text));
                }
                Some(Payload::Text(text))
            }
            (None, Some(size)) if subst && size.value.contains("%%") => {
                let remedy = "the size of a message has no variables; write it";
                self.translator.omit(&span, "raw datasize", remedy)
            }
            (None, Some(_)) => {
                let bytes = self.translator.integer(raw, "datasize", 1..=BYTES_MAX)?;
                if bytes <= ZEROS_MAX {
                    self.translator.translated(&span, "raw datasize");
                    return Some(Payload::Hex("00 ".repeat(bytes as usize).trim().to_owned()));
                }
                let how = "the scenario sends as many random bytes; tsung's are zeros";
                self.translator.approximated(&span, "raw datasize", how);
                Some(Payload::Random(bytes))
            }
            (Some(_), Some(size)) => {
                let label = "expected one of `data` and `datasize`";
                self.translator.fail(&size.span, "this message has two contents", label)
            }
            (None, None) => {
                let label = "expected `data=\"...\"` or `datasize=\"...\"`";
                self.translator.fail(&span, "this request has no data", label)
            }
        }
    }

    fn websocket(&mut self, request: Element<'d>, element: Element<'d>, subst: bool) -> Vec<Yaml> {
        let kinds = ["connect", "message", "close"];
        let found = self.translator.require(element, "type", "message");
        match found.and_then(|_| self.translator.word(element, "type", &kinds)) {
            Some("connect") => self.websocket_connect(request, element, subst),
            Some("message") => self.websocket_message(request, element, subst),
            Some(_) => {
                let how = "tsung gives `close` as the reason in the close frame; throng gives none";
                self.approximated_once(&element.span(), "websocket close", how);
                if !self.connected {
                    let why = "the user is not connected here; the scenario leaves it out";
                    self.translator.suspicious(&element.span(), "websocket close", why);
                }
                self.close()
            }
            None => Vec::new(),
        }
    }

    fn websocket_connect(
        &mut self,
        request: Element<'d>,
        element: Element<'d>,
        subst: bool,
    ) -> Vec<Yaml> {
        let span = element.span();
        let answer = self.answer(request, false);
        if self.connected {
            let why = "the user is connected already, so that tsung sends this handshake over \
                       the WebSocket; the scenario leaves it out";
            self.translator.suspicious(&span, "websocket connect", why);
            return Vec::new();
        }
        if !answer.captures.is_empty() {
            let remedy = "a scenario keeps nothing of the answer to a handshake";
            self.translator.not_supported(&span, "websocket connect dyn_variable", remedy);
        }
        if self.server.is_websocket {
            let why = "the server's type is `websocket`, too: tsung makes one handshake for it, \
                       and sends this second one over that WebSocket, where no server answers \
                       it; the scenario makes one plain handshake, with the path of this element";
            self.translator.suspicious(&span, "websocket connect", why);
        } else {
            self.translator.translated(&span, "websocket connect");
        }
        vec![self.connect(Some((element, subst)))]
    }

    fn websocket_message(
        &mut self,
        request: Element<'d>,
        element: Element<'d>,
        subst: bool,
    ) -> Vec<Yaml> {
        let span = element.span();
        let ack = self.translator.word(element, "ack", &["parse", "no_ack"]).unwrap_or("parse");
        let frame = self.translator.word(element, "frame", &["text", "binary"]);
        let raw = element.text();
        let answer = self.answer(request, ack == "parse");
        let has_variables = subst && raw.contains("%%");
        self.check_letters(&raw, &span, "websocket message");
        let text = self.variables.text(self.translator, &raw, subst, &span);
        let Some(text) = self.sendable(text, &span) else { return Vec::new() };
        if raw.starts_with(['\n', '\r']) || raw.ends_with(['\n', '\r']) {
            let why = "the line breaks around the text are a part of the message";
            self.translator.suspicious(&span, "websocket message", why);
        }
        let is_text = frame.map(|frame| frame == "text");
        let payload = self.framed(&span, (text, &raw), has_variables, is_text);
        let mut steps = self.connect_before(&span);
        steps.push(self.send(payload, ack == "parse"));
        if ack == "no_ack" {
            self.translator.translated(&span, "websocket ack no_ack");
            return steps;
        }
        self.approximated_once(&span, "websocket ack parse", self.any_answer(&answer));
        steps.push(self.expect(answer));
        steps
    }

    /// Returns a message of a WebSocket: the text, which is `raw` in the source.
    fn framed(
        &mut self,
        span: &Range<usize>,
        (text, raw): (String, &str),
        has_variables: bool,
        is_text: Option<bool>,
    ) -> Payload {
        match is_text {
            Some(true) => self.translator.translated(span, "websocket message"),
            Some(false) if !has_variables => {
                self.translator.translated(span, "websocket message");
                return Payload::Hex(hex(raw.as_bytes()));
            }
            Some(false) => {
                let how = "a binary message of throng has no variables: the scenario sends it as \
                           text";
                self.approximated_once(span, "websocket frame", how);
            }
            None => {
                let how = "tsung 1.7 sends a binary frame where no `frame` is written; the \
                           scenario sends text, as servers of text messages need it";
                self.approximated_once(span, "websocket message", how);
            }
        }
        Payload::Text(text)
    }

    /// Returns the step that connects: that of an element, or one that tsung takes by itself.
    pub(super) fn connect(&mut self, element: Option<(Element<'d>, bool)>) -> Yaml {
        self.connected = true;
        let mut connect = Vec::new();
        if self.wire == Wire::WebSocket {
            let options = &self.options.websocket;
            let own = |name| element.and_then(|(element, _)| element.get(name));
            let (path, origin, subprotocols, subst) = match element {
                Some((_, subst)) => (own("path"), own("origin"), own("subprotocols"), subst),
                None => (
                    options.path.clone(),
                    options.origin.clone(),
                    options.subprotocols.clone(),
                    false,
                ),
            };
            let default = if element.is_some() { "/" } else { "/chat" };
            let path = self.path(path, default, subst);
            let plain = (!path.contains("${")).then(|| path.replace("$${", "${"));
            match (&self.shared.path, plain) {
                (None, Some(plain)) => self.shared.path = Some(plain),
                (Some(known), Some(plain)) if *known == plain => {}
                _ => connect.push(("path", Yaml::text(path))),
            }
            let headers = self.upgrade_headers(element, origin);
            connect.extend(headers.write().map(|headers| ("headers", headers)));
            let names = subprotocols.map(|list| self.subprotocols(&list)).unwrap_or_default();
            if !names.is_empty() {
                connect.push(("subprotocols", Yaml::list(names.iter().map(Yaml::text))));
            }
        }
        connect.push(self.timeout_of_connect());
        step::connect(connect)
    }

    /// Returns the headers of a handshake: the origin, and those that the element names.
    fn upgrade_headers(
        &mut self,
        element: Option<(Element<'d>, bool)>,
        origin: Option<Attribute<'d>>,
    ) -> Headers {
        let mut headers = Headers::default();
        match origin.filter(|origin| !origin.value.trim().is_empty()) {
            Some(origin) => {
                let value = self.literal_header(&origin);
                headers.set("origin", value);
            }
            None => {
                if let Some((element, _)) = element {
                    let how = "tsung sends the host of the server as `origin`, where none is \
                               written; the scenario sends none";
                    self.approximated_once(&element.span(), "websocket origin", how);
                }
            }
        }
        if let Some((element, subst)) = element {
            self.extra_headers(element, subst, HeaderPlace::Upgrade, &mut headers);
        }
        headers
    }

    /// Returns a path of the source as a path of the scenario.
    fn path(&mut self, path: Option<Attribute<'d>>, default: &str, subst: bool) -> String {
        let Some(path) = path else { return default.to_owned() };
        self.path_text(path.value, &path.span, "websocket path", subst)
    }

    /// Returns the text of a path as a path of the scenario.
    pub(super) fn path_text(
        &mut self,
        path: &str,
        span: &Range<usize>,
        construct: &str,
        subst: bool,
    ) -> String {
        let begins_with_value = subst && path.starts_with("%%");
        let is_graphic = path.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_graphic || !path.starts_with('/') && !begins_with_value {
            let label = match is_graphic {
                true => "expected `/` at its beginning",
                false => "expected printable ASCII without spaces: percent-encode the rest",
            };
            self.translator.mistake(span, "this path cannot be requested", label);
        }
        if !subst {
            return self.variables.text(self.translator, path, false, span);
        }
        let (text, has_texts) = self.variables.path(self.translator, path, span);
        let how = match self.plugin {
            _ if begins_with_value => {
                "the value must begin with `/`: one that begins with `http` is an error in the \
                 scenario, and another address in tsung"
            }
            Plugin::Http => {
                "a value stands in the path as it is; one with a blank is an error in the \
                 scenario, and tsung sends `%20` for the blank"
            }
            _ => {
                "a value stands in the path as it is; one with a blank is an error in the \
                 scenario, and tsung sends the blank"
            }
        };
        if has_texts || begins_with_value {
            self.approximated_once(span, construct, how);
        }
        text
    }

    fn subprotocols(&mut self, list: &Attribute<'d>) -> Vec<String> {
        literal(self.translator, list.value, &list.span, NO_VARIABLES);
        let names: Vec<_> = list.value.split(',').map(str::trim).collect();
        let names: Vec<_> = names.into_iter().filter(|name| !name.is_empty()).collect();
        if names.iter().any(|name| !is_token(name)) {
            let label = "expected names with commas between them: `chat, superchat`";
            self.translator.mistake(&list.span, "these are no subprotocols", label);
        }
        names.into_iter().map(str::to_owned).collect()
    }

    fn send(&mut self, payload: Payload, waits: bool) -> Yaml {
        let is_web = self.wire == Wire::WebSocket;
        let payload = match payload {
            Payload::Text(text) => ("text", Yaml::text(text)),
            Payload::Hex(hex) => (if is_web { "binary" } else { "hex" }, Yaml::text(hex)),
            Payload::Random(bytes) => ("random", Yaml::plain(bytes)),
        };
        step::send(payload, waits || !self.expects)
    }

    fn expect(&mut self, answer: Answer) -> Yaml {
        let pattern = match (answer.regex, self.wire) {
            (Some(regex), Wire::WebSocket) => ("regex", Yaml::text(regex)),
            // A stream has no ends of messages: the answer is a line.
            _ if self.wire == Wire::Tcp && !answer.captures.is_empty() => {
                ("until", Yaml::text("\n"))
            }
            _ => self.anything(),
        };
        self.captures |= !answer.captures.is_empty();
        step::await_message("expect", pattern, &answer.captures, self.options.idle_timeout)
    }

    /// Says what the scenario takes for an answer.
    fn any_answer(&self, answer: &Answer) -> &'static str {
        match self.wire {
            Wire::Tcp if !answer.captures.is_empty() => {
                "the answer goes on to the end of its line, in which the scenario looks for what \
                 is kept or must match; in tsung it is the first packet"
            }
            Wire::Tcp => {
                "the first byte that comes is the answer, as the first packet is in tsung, \
                 whichever it is; where bytes come unasked, throng calls such answers doubtful"
            }
            Wire::WebSocket | Wire::Http => {
                "the next text is the answer, as the next frame of any kind is in tsung; for a \
                 binary answer write `expect: {bytes: N}`; where messages come unasked, throng \
                 calls such answers doubtful"
            }
        }
    }

    /// Returns the text, unless nothing is left of it.
    fn sendable(&mut self, text: String, span: &Range<usize>) -> Option<String> {
        if text.is_empty() {
            let remedy = "an empty message cannot be sent; take it out";
            return self.translator.omit(span, "empty message", remedy);
        }
        Some(text)
    }

    /// Returns the value of a header as a text of the scenario.
    pub(super) fn header_value(&mut self, value: &Attribute<'d>, subst: bool) -> String {
        self.check_header(value);
        self.variables.text(self.translator, value.value, subst, &value.span)
    }

    /// Returns the value of a header, in which tsung fills in no variables.
    pub(super) fn literal_header(&mut self, value: &Attribute<'d>) -> String {
        self.check_header(value);
        literal(self.translator, value.value, &value.span, NO_VARIABLES)
    }

    fn check_header(&mut self, value: &Attribute<'d>) {
        if value.value.contains(['\r', '\n', '\0']) {
            let label = "expected one line";
            self.translator.mistake(&value.span, "this header has a line break in it", label);
        }
        self.check_letters(value.value, &value.span, "header");
    }

    /// Reports letters that tsung sends in another way than the scenario.
    pub(super) fn check_letters(&mut self, text: &str, span: &Range<usize>, construct: &str) {
        let why = match text.chars().max() {
            Some('\u{100}'..) => {
                "tsung cannot send letters beyond U+00FF: its user ends with an error; the \
                 scenario sends them in UTF-8"
            }
            Some('\u{80}'..) => {
                "tsung sends a letter beyond ASCII as one byte, which is no UTF-8; the scenario \
                 sends it in UTF-8"
            }
            _ => return,
        };
        self.translator.suspicious(span, construct, why);
    }
}

/// Reports whether an element of a request is about the answer.
fn is_of_answer(element: Element<'_>) -> bool {
    matches!(element.name(), "match" | "dyn_variable")
}

impl Plugin {
    /// Returns the element of its requests.
    fn element(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::WebSocket => "websocket",
            Self::Http => "http",
        }
    }
}

/// Why tsung fills in no variable of some attributes, whatever the request says.
pub(super) const NO_VARIABLES: &str = "tsung fills in no variables here, not even with \
                                       `subst=\"true\"`; it sends the text as it stands, and so \
                                       does the scenario";

const ACKS: [&str; 3] = ["local", "no_ack", "global"];

/// Longest message of zeros that is written out.
const ZEROS_MAX: u64 = 16;

const BYTES_MAX: u64 = 1 << 30;
