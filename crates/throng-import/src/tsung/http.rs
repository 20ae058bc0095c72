//! `http`: requests and their headers.

use std::ops::Range;

use throng_load::scenario::{HeaderPlace, is_token};

use super::element::{Attribute, Element};
use super::request::NO_VARIABLES;
use super::steps::StepsReader;
use super::variables::literal;
use crate::headers::Headers;
use crate::request::{Expectation, Request};
use crate::step;
use crate::text::{base64, escape};
use crate::weights::Weights;
use crate::yaml::Yaml;

impl<'d> StepsReader<'_, '_, 'd> {
    /// Translates a request of HTTP.
    pub(super) fn http(
        &mut self,
        request: Element<'d>,
        http: Element<'d>,
        subst: &str,
    ) -> Vec<Yaml> {
        let span = http.span();
        let url = self.translator.require(http, "url", "/");
        let answer = self.answer(request, true);
        let method = self.translator.word(http, "method", METHODS);
        if http.get("method").is_some() && method.is_none() {
            return Vec::new();
        }
        let method = method.unwrap_or("GET");
        let step = match method {
            "HEAD" if answer.looks_at_body() => {
                let remedy = "the answer to a HEAD has no body: look at its headers, or take GET";
                return self.translator.omit(&span, "http method HEAD", remedy);
            }
            "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS" => {
                method.to_ascii_lowercase()
            }
            _ => {
                let remedy = "a scenario has `get`, `head`, `post`, `put`, `patch`, `delete` and \
                              `options`; take one of them";
                let construct = format!("http method {method}");
                return self.translator.omit(&span, construct, remedy);
            }
        };
        let Some(path) = url.and_then(|url| self.path_of(&url, subst != "false")) else {
            return Vec::new();
        };
        let mut steps = self.close();
        let mut headers = self.headers(http, subst != "false", method);
        steps.append(&mut self.sets);
        let contents = self.contents(http, subst, method);
        let body = contents.map(|body| ("body", Yaml::text(body)));
        if body.is_some() {
            headers.add("content-type", FORM);
        }
        let statuses = match answer.status {
            Some(status) => vec![status],
            // tsung takes any status.
            None => ["2xx", "3xx", "4xx", "5xx"].map(str::to_owned).into(),
        };
        let of_body = answer.regex.map(|regex| ("regex", Yaml::text(regex)));
        let expect = Expectation { statuses, body: of_body };
        self.captures |= !answer.captures.is_empty();
        self.translator.translated(&span, "http");
        let request = Request {
            method: step,
            path,
            name: None,
            headers,
            body,
            expect,
            captures: answer.captures,
            timeout: Some(self.options.idle_timeout),
        };
        steps.push(request.write());
        steps
    }

    /// Returns the path of an address on the scenario's target.
    fn path_of(&mut self, url: &Attribute<'d>, subst: bool) -> Option<String> {
        let text = url.value.trim();
        let mut path = text;
        let absolute = text.split_once("://").filter(|(scheme, _)| scheme.len() < 6);
        if let Some((scheme, rest)) = absolute {
            let (host, behind) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if !self.server.is_at(scheme, host) {
                let remedy = "a scenario has one target; make a scenario of each server";
                return self.translator.omit(&url.span, "http url", remedy);
            }
            path = if behind.is_empty() { "/" } else { behind };
        }
        Some(self.path_text(path, &url.span, "http url", subst))
    }

    /// Returns the body of a request; `None` for a method with which tsung sends none.
    fn contents(&mut self, http: Element<'d>, subst: &str, method: &str) -> Option<String> {
        let contents = http.get("contents");
        let is_file = http.get("contents_from_file").is_some();
        if !BODY_METHODS.contains(&method) {
            let has_contents = contents.is_some_and(|contents| !contents.value.is_empty());
            if has_contents || is_file {
                let why = "tsung sends no body with this method, and neither does the scenario";
                self.translator.suspicious(&http.span(), "http contents", why);
            }
            return None;
        }
        if is_file {
            let remedy = "a body stands in the scenario: write it as `body`";
            self.translator.not_supported(&http.span(), "http contents_from_file", remedy);
            return Some(String::new());
        }
        let Some(contents) = contents else { return Some(String::new()) };
        self.check_letters(contents.value, &contents.span, "http contents");
        let text = match subst {
            "all_except_body" => escape(contents.value),
            subst => {
                let subst = subst == "true";
                self.variables.text(self.translator, contents.value, subst, &contents.span)
            }
        };
        Some(text)
    }

    /// Returns the headers of a request. Steps that store what they need stand in `sets`.
    fn headers(&mut self, http: Element<'d>, subst: bool, method: &str) -> Headers {
        let mut headers = Headers::default();
        let has_body = BODY_METHODS.contains(&method);
        if self.translator.word(http, "version", &["1.0", "1.1"]) == Some("1.0") {
            let how = "the request is of HTTP/1.1 and closes its connection, as one of HTTP/1.0";
            self.approximated_once(&http.span(), "http version", how);
            headers.set("connection", "close");
        }
        for child in http.elements() {
            self.read_child(child, &mut headers, subst);
        }
        self.extra_headers(http, subst, HeaderPlace::Request, &mut headers);
        for (attribute, header, is_sent) in [
            ("content_type", "content-type", has_body),
            ("if_modified_since", "if-modified-since", !has_body),
        ] {
            let Some(value) = http.get(attribute) else { continue };
            if !is_sent {
                let why = "tsung does not send this header with this method, and neither does the \
                           scenario";
                self.translator.suspicious(&value.span, http.with(attribute), why);
            } else if has_body {
                headers.add(header, self.header_value(&value, subst));
            } else {
                headers.add(header, self.literal_header(&value));
            }
        }
        // A request that names its own browser has no other.
        match &*self.options.user_agents {
            [] => {}
            [(_, agent)] => drop(headers.add(USER_AGENT, escape(agent))),
            _ => drop(headers.add(USER_AGENT, format!("${{{AGENT}}}"))),
        }
        headers
    }

    /// Reads an element of a request, beside its headers.
    fn read_child(&mut self, child: Element<'d>, headers: &mut Headers, subst: bool) {
        let span = child.span();
        match child.name() {
            "www_authenticate" => self.login(child, headers, subst),
            "soap" => {
                let Some(action) = self.translator.require(child, "action", "urn:x") else {
                    return;
                };
                let value = self.literal_header(&action);
                self.translator.translated(&span, "soap");
                headers.add("soapaction", format!("\"{value}\""));
            }
            "add_cookie" => {
                let key = self.translator.require(child, "key", "name");
                let value = self.translator.require(child, "value", "1");
                let (Some(key), Some(value)) = (key, value) else { return };
                let cookie =
                    format!("{}={}", self.literal_header(&key), self.header_value(&value, subst));
                let how = "the cookie is sent with this request alone, in place of those that the \
                           server has set";
                self.approximated_once(&span, "add_cookie", how);
                if !headers.add("cookie", cookie) {
                    let remedy = "write all cookies into one header `cookie`";
                    self.translator.not_supported(&span, "add_cookie", remedy);
                }
            }
            "oauth" => {
                let remedy = "throng signs no requests; write the header `authorization`";
                self.translator.not_supported(&span, "oauth", remedy);
            }
            _ => {}
        }
    }

    /// Adds the header of a `www_authenticate`.
    fn login(&mut self, element: Element<'d>, headers: &mut Headers, subst: bool) {
        let span = element.span();
        let user = self.translator.require(element, "userid", "user");
        let password = self.translator.require(element, "passwd", "secret");
        let (Some(user), Some(password)) = (user, password) else { return };
        if element.value("type").unwrap_or("basic") != "basic" {
            let remedy = "a scenario has Basic authentication: write the header `authorization`";
            return self.translator.not_supported(&span, "www_authenticate", remedy);
        }
        self.translator.translated(&span, "www_authenticate");
        let pair = format!("{}:{}", user.value, password.value);
        let plain = base64(&pair).filter(|_| !pair.contains("%%"));
        let login = plain.unwrap_or_else(|| {
            let user = self.header_value(&user, subst);
            let password = self.header_value(&password, subst);
            self.sets = self.set_to(&["login of a request"], &format!("{user}:{password}"));
            let stored = self.variables.find("login of a request").unwrap_or_default();
            format!("${{base64({stored})}}")
        });
        headers.add("authorization", format!("Basic {login}"));
    }

    /// Adds the headers that an element names one by one.
    pub(super) fn extra_headers(
        &mut self,
        element: Element<'d>,
        subst: bool,
        place: HeaderPlace,
        headers: &mut Headers,
    ) {
        for header in element.elements().filter(|child| child.name() == "http_header") {
            let span = header.span();
            let name = self.translator.require(header, "name", "accept");
            let value = self.translator.require(header, "value", "*/*");
            let (Some(name), Some(value)) = (name, value) else { continue };
            let text = name.value.trim();
            if !is_token(text) {
                let label = "expected letters, digits and `-`";
                self.translator.mistake(&name.span, "this is no name of a header", label);
                continue;
            }
            literal(self.translator, text, &name.span, NO_VARIABLES);
            if self.is_overruled(element, header, text, place)
                || !self.translator.may_have_header(&span, "http_header", text, place)
            {
                continue;
            }
            if headers.has(text) {
                let remedy = "a request has each header once; join the two";
                self.translator.not_supported(&span, "http_header", remedy);
                continue;
            }
            let value = match header.value("encoding") {
                None => self.header_value(&value, subst),
                // tsung encodes the text before it fills in variables.
                Some(_) => match base64(value.value) {
                    Some(encoded) => encoded,
                    None => {
                        let remedy = "write `${base64(...)}` in its value";
                        self.translator.not_supported(&span, "http_header encoding", remedy);
                        continue;
                    }
                },
            };
            self.translator.translated(&span, "http_header");
            headers.set(text, value);
        }
    }

    /// Reports a header that does not become what its author wrote.
    fn is_overruled(
        &mut self,
        element: Element<'d>,
        header: Element<'d>,
        name: &str,
        place: HeaderPlace,
    ) -> bool {
        let name = name.to_ascii_lowercase();
        let contents = element.get("contents").map_or("", |contents| contents.value);
        let is_true = || {
            let length = contents.len().to_string();
            !contents.contains("%%") && header.value("value") == Some(&*length)
        };
        let why = match place {
            HeaderPlace::Upgrade if UPGRADE_FIELDS.contains(&&*name) => {
                "tsung sets this header of a handshake itself and leaves yours out, and so does \
                 the scenario"
            }
            HeaderPlace::Request if name == "content-length" && !is_true() => {
                "tsung sends this length, whatever the length of the body is; throng sends the \
                 length of the body"
            }
            _ => return false,
        };
        self.translator.suspicious(&header.span(), "http_header", why);
        true
    }

    /// Returns the step that draws a browser for the session, if there are several.
    pub(super) fn draw_agent(&mut self, span: &Range<usize>) -> Option<Yaml> {
        let agents = &self.options.user_agents;
        let bytes = agents.iter().map(|(_, agent)| agent.len()).sum();
        if agents.len() < 2 || !self.translator.expansion.charge(span, bytes) {
            return None;
        }
        let shares: Vec<_> = agents.iter().map(|(share, _)| *share).collect();
        let set = |((_, agent), weight): (&(f64, String), u32)| {
            (weight, step::set_all(vec![(AGENT, Yaml::text(escape(agent)))]))
        };
        Some(step::choose(agents.iter().zip(Weights::of_shares(&shares).each).map(set)))
    }
}

const METHODS: &[&str] = words![
    "GET" "POST" "PUT" "DELETE" "HEAD" "PATCH" "OPTIONS" "PURGE" "PROPFIND" "PROPPATCH" "COPY"
    "MOVE" "LOCK" "UNLOCK" "MKCOL" "MKACTIVITY" "REPORT" "VERSION-CONTROL" "MERGE" "CHECKOUT"
];

/// Methods of requests with a body, which may be empty.
const BODY_METHODS: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

/// Headers of a handshake that tsung sets itself.
const UPGRADE_FIELDS: &[&str] = words![
    "host" "upgrade" "connection" "origin" "sec-websocket-key" "sec-websocket-version"
    "sec-websocket-protocol"
];

/// The header with the name of a browser.
const USER_AGENT: &str = "user-agent";

/// Name of the value with the browser of a session.
const AGENT: &str = "user_agent";

/// Type of a body that does not say its own.
const FORM: &str = "application/x-www-form-urlencoded";
