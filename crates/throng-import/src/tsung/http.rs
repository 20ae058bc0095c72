//! `http`: requests and their headers.

use std::ops::Range;

use throng_load::scenario::{HeaderPlace, is_token};

use super::element::{Attribute, Element};
use super::steps::StepsReader;
use crate::headers::Headers;
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
        let method = self.translator.word(http, "method", &METHODS);
        if http.get("method").is_some() && method.is_none() {
            return Vec::new();
        }
        let method = method.unwrap_or("GET");
        let step = match method {
            "HEAD" if answer.looks_at_body() => {
                let remedy = "the answer to a HEAD has no body: look at its headers, or take GET";
                self.translator.not_supported(&span, "http method HEAD", remedy);
                return Vec::new();
            }
            "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS" => {
                method.to_ascii_lowercase()
            }
            _ => {
                let remedy = "a scenario has `get`, `head`, `post`, `put`, `patch`, `delete` and \
                              `options`; take one of them";
                let construct = format!("http method {method}");
                self.translator.not_supported(&span, construct, remedy);
                return Vec::new();
            }
        };
        let Some(path) = url.and_then(|url| self.path_of(&url, subst != "false")) else {
            return Vec::new();
        };
        let mut steps = self.close();
        let mut headers = self.headers(http, subst != "false");
        let mut parts = Vec::new();
        if let Some(body) = http.get("contents") {
            let in_body = subst == "true";
            let text = self.variables.text(self.translator, body.value, in_body, &body.span);
            if !text.is_empty() {
                parts.push(("body", Yaml::text(text)));
                headers.add("content-type", FORM);
            }
        }
        if let Some(headers) = headers.write() {
            parts.insert(0, ("headers", headers));
        }
        // tsung takes any status.
        let status = match answer.status {
            Some(status) => Yaml::plain(status),
            None => Yaml::list(["2xx", "3xx", "4xx", "5xx"].map(Yaml::plain)),
        };
        let expect = match answer.regex {
            Some(regex) => Yaml::map([("status", status), ("regex", Yaml::text(regex))]),
            None => status,
        };
        parts.push(("expect", expect));
        if !answer.captures.is_empty() {
            self.captures = true;
            parts.push(("capture", Yaml::map(answer.captures)));
        }
        parts.insert(0, ("path", Yaml::text(path)));
        parts.push(self.timeout());
        self.translator.translated(&span, "http");
        steps.push(Yaml::entry(&step, Yaml::map(parts)));
        steps
    }

    /// Returns the path of an address on the scenario's target.
    fn path_of(&mut self, url: &Attribute<'d>, subst: bool) -> Option<String> {
        let text = url.value.trim();
        let mut path = text;
        if let Some((_, rest)) = text.split_once("://").filter(|(scheme, _)| scheme.len() < 6) {
            let (host, behind) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let own = format!("{}:{}", self.server.host, self.server.port);
            let is_own = host == own || self.server.port == "80" && host == self.server.host;
            if !text.starts_with("http://") || !is_own {
                let remedy = "a scenario has one target; make a scenario of each server";
                self.translator.not_supported(&url.span, "http url", remedy);
                return None;
            }
            path = if behind.is_empty() { "/" } else { behind };
        }
        if subst && path.starts_with("%%") {
            let remedy = "a request goes to the target: write a path that begins with `/`";
            self.translator.not_supported(&url.span, "http url", remedy);
            return None;
        }
        self.check_path(path, &url.span);
        if subst && path.contains("%%") {
            let how = "values in a path are percent-encoded; tsung puts them there as they are";
            self.approximated_once(&url.span, "http url", how);
        }
        Some(self.variables.text(self.translator, path, subst, &url.span))
    }

    fn headers(&mut self, http: Element<'d>, subst: bool) -> Headers {
        let mut headers = Headers::default();
        for (attribute, header) in
            [("content_type", "content-type"), ("if_modified_since", "if-modified-since")]
        {
            if let Some(value) = http.get(attribute) {
                headers.add(header, self.header_value(&value, subst));
            }
        }
        if self.translator.word(http, "version", &["1.0", "1.1"]) == Some("1.0") {
            let how = "the request is of HTTP/1.1 and closes its connection, as one of HTTP/1.0";
            self.approximated_once(&http.span(), "http version", how);
            headers.set("connection", "close");
        }
        if http.get("contents_from_file").is_some() {
            let remedy = "a body stands in the scenario: write it as `body`";
            self.translator.not_supported(&http.span(), "http contents_from_file", remedy);
        }
        for child in http.elements() {
            self.read_child(child, &mut headers, subst);
        }
        self.extra_headers(http, subst, HeaderPlace::Request, &mut headers);
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
            "www_authenticate" => {
                let user = self.translator.require(child, "userid", "user");
                let password = self.translator.require(child, "passwd", "secret");
                let (Some(user), Some(password)) = (user, password) else { return };
                let pair = format!("{}:{}", user.value, password.value);
                let is_basic = child.value("type").unwrap_or("basic") == "basic";
                let is_plain = is_basic && !(subst && pair.contains("%%"));
                let Some(login) = base64(&pair).filter(|_| is_plain) else {
                    let remedy = "a scenario has Basic authentication with a plain name: write \
                                  the header `authorization`";
                    return self.translator.not_supported(&span, "www_authenticate", remedy);
                };
                self.translator.translated(&span, "www_authenticate");
                headers.add("authorization", format!("Basic {login}"));
            }
            "soap" => {
                let Some(action) = self.translator.require(child, "action", "urn:x") else {
                    return;
                };
                let value = self.header_value(&action, subst);
                self.translator.translated(&span, "soap");
                headers.add("soapaction", format!("\"{value}\""));
            }
            "add_cookie" => {
                let key = self.translator.require(child, "key", "name");
                let value = self.translator.require(child, "value", "1");
                let (Some(key), Some(value)) = (key, value) else { return };
                let cookie = format!(
                    "{}={}",
                    self.header_value(&key, subst),
                    self.header_value(&value, subst)
                );
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
            if !self.translator.may_have_header(&span, "http_header", text, place) {
                continue;
            }
            if headers.has(text) {
                let remedy = "a request has each header once; join the two";
                self.translator.not_supported(&span, "http_header", remedy);
                continue;
            }
            if header.get("encoding").is_some() {
                let remedy = "throng encodes no headers; write `${base64(...)}` in its value";
                self.translator.not_supported(&span, "http_header encoding", remedy);
            }
            let value = self.header_value(&value, subst);
            self.translator.translated(&span, "http_header");
            headers.set(text, value);
        }
    }

    /// Returns the step that draws a browser for the session, if there are several.
    pub(super) fn draw_agent(&mut self, span: &Range<usize>) -> Option<Yaml> {
        let agents = &self.options.user_agents;
        let bytes = agents.iter().map(|(_, agent)| agent.len()).sum();
        if agents.len() < 2 || !self.translator.expansion.charge(span, bytes) {
            return None;
        }
        let shares: Vec<_> = agents.iter().map(|(share, _)| *share).collect();
        let choice = |((_, agent), weight): (&(f64, String), u32)| {
            let set = Yaml::map([(AGENT, Yaml::text(escape(agent)))]);
            let steps = Yaml::list([Yaml::entry("set", set)]);
            Yaml::map([("weight", Yaml::plain(weight)), ("do", steps)])
        };
        let choices = agents.iter().zip(Weights::of_shares(&shares).each).map(choice);
        Some(Yaml::entry("choose", Yaml::list(choices)))
    }
}

const METHODS: [&str; 20] = [
    "GET",
    "POST",
    "PUT",
    "DELETE",
    "HEAD",
    "PATCH",
    "OPTIONS",
    "PURGE",
    "PROPFIND",
    "PROPPATCH",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "MKCOL",
    "MKACTIVITY",
    "REPORT",
    "VERSION-CONTROL",
    "MERGE",
    "CHECKOUT",
];

/// The header with the name of a browser.
const USER_AGENT: &str = "user-agent";

/// Name of the value with the browser of a session.
const AGENT: &str = "user_agent";

/// Type of a body that does not say its own.
const FORM: &str = "application/x-www-form-urlencoded";
