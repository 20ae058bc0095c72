//! `http`: requests and their headers.

use std::ops::Range;

use super::element::{Attribute, Element};
use super::request::is_token;
use super::sessions::weights;
use super::steps::StepsReader;
use crate::own_headers::is_own_header;
use crate::text::escape;
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
            "GET" | "POST" | "PUT" | "DELETE" => method.to_ascii_lowercase(),
            _ => {
                let remedy = "a scenario has `get`, `post`, `put` and `delete`; take one of them";
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
                if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                    headers.push(("content-type".to_owned(), Yaml::text(FORM)));
                }
            }
        }
        if !headers.is_empty() {
            parts.insert(0, ("headers", Yaml::map(headers)));
        }
        if let Some(regex) = answer.regex {
            parts.push((
                "expect",
                Yaml::map([
                    ("status", Yaml::list([Yaml::text("2xx")])),
                    ("regex", Yaml::text(regex)),
                ]),
            ));
        }
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

    fn headers(&mut self, http: Element<'d>, subst: bool) -> Vec<(String, Yaml)> {
        let mut headers = Vec::new();
        let agents = &self.options.user_agents;
        match &**agents {
            [] => {}
            [(_, agent)] => headers.push(("user-agent".to_owned(), Yaml::text(escape(agent)))),
            _ => headers.push(("user-agent".to_owned(), Yaml::text(format!("${{{AGENT}}}")))),
        }
        for (attribute, header) in
            [("content_type", "content-type"), ("if_modified_since", "if-modified-since")]
        {
            if let Some(value) = http.get(attribute) {
                let value = self.header_value(&value, subst);
                headers.push((header.to_owned(), Yaml::text(value)));
            }
        }
        if self.translator.word(http, "version", &["1.0", "1.1"]) == Some("1.0") {
            let how = "the request is of HTTP/1.1 and closes its connection, as one of HTTP/1.0";
            self.approximated_once(&http.span(), "http version", how);
            headers.push(("connection".to_owned(), Yaml::text("close")));
        }
        if http.get("contents_from_file").is_some() {
            let remedy = "a body stands in the scenario: write it as `body`";
            self.translator.not_supported(&http.span(), "http contents_from_file", remedy);
        }
        for child in http.elements() {
            self.read_child(child, &mut headers, subst);
        }
        headers.extend(self.extra_headers(http, subst));
        let mut names = Vec::new();
        headers.retain(|(name, _)| {
            let name = name.to_ascii_lowercase();
            let is_new = !names.contains(&name);
            names.push(name);
            is_new
        });
        headers
    }

    /// Reads an element of a request, beside its headers.
    fn read_child(&mut self, child: Element<'d>, headers: &mut Vec<(String, Yaml)>, subst: bool) {
        let span = child.span();
        match child.name() {
            "www_authenticate" => {
                let user = self.translator.require(child, "userid", "user");
                let password = self.translator.require(child, "passwd", "secret");
                let (Some(user), Some(password)) = (user, password) else { return };
                let pair = format!("{}:{}", user.value, password.value);
                let is_basic = child.value("type").unwrap_or("basic") == "basic";
                if !is_basic || pair.contains(['\'', '}', '{']) || subst && pair.contains("%%") {
                    let remedy = "a scenario has Basic authentication with a plain name: write \
                                  the header `authorization`";
                    return self.translator.not_supported(&span, "www_authenticate", remedy);
                }
                let value = format!("Basic ${{base64('{pair}')}}");
                self.translator.translated(&span, "www_authenticate");
                headers.push(("authorization".to_owned(), Yaml::text(value)));
            }
            "soap" => {
                let Some(action) = self.translator.require(child, "action", "urn:x") else {
                    return;
                };
                let value = self.header_value(&action, subst);
                self.translator.translated(&span, "soap");
                headers.push(("soapaction".to_owned(), Yaml::text(format!("\"{value}\""))));
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
                match headers.iter_mut().find(|(name, _)| name == "cookie") {
                    Some(_) => {
                        let remedy = "write all cookies into one header `cookie`";
                        self.translator.not_supported(&span, "add_cookie", remedy);
                    }
                    None => headers.push(("cookie".to_owned(), Yaml::text(cookie))),
                }
            }
            "oauth" => {
                let remedy = "throng signs no requests; write the header `authorization`";
                self.translator.not_supported(&span, "oauth", remedy);
            }
            _ => {}
        }
    }

    /// Returns the headers that an element names one by one.
    pub(super) fn extra_headers(
        &mut self,
        element: Element<'d>,
        subst: bool,
    ) -> Vec<(String, Yaml)> {
        let mut headers = Vec::<(String, Yaml)>::new();
        for header in element.elements().filter(|child| child.name() == "http_header") {
            let span = header.span();
            let name = self.translator.require(header, "name", "accept");
            let value = self.translator.require(header, "value", "*/*");
            let (Some(name), Some(value)) = (name, value) else { continue };
            let text = name.value.trim().to_owned();
            if text.is_empty() || !text.bytes().all(is_token) {
                let label = "expected letters, digits and `-`";
                self.translator.mistake(&name.span, "this is no name of a header", label);
                continue;
            }
            let is_own = is_own_header(&text);
            if is_own || headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(&text)) {
                self.leave_header_out(&span, is_own);
                continue;
            }
            if header.get("encoding").is_some() {
                let remedy = "throng encodes no headers; write `${base64(...)}` in its value";
                self.translator.not_supported(&span, "http_header encoding", remedy);
            }
            let value = self.header_value(&value, subst);
            self.translator.translated(&span, "http_header");
            headers.push((text, Yaml::text(value)));
        }
        headers
    }

    fn leave_header_out(&mut self, span: &Range<usize>, is_own: bool) {
        if is_own {
            let why = "throng sets this header itself";
            return self.translator.not_needed(span, "http_header", why);
        }
        let remedy = "a request has each header once; join the two";
        self.translator.not_supported(span, "http_header", remedy);
    }

    /// Returns the step that draws a browser for the session, if there are several.
    pub(super) fn draw_agent(&mut self) -> Option<Yaml> {
        let agents = &self.options.user_agents;
        if agents.len() < 2 {
            return None;
        }
        let shares: Vec<_> = agents.iter().map(|(share, _)| *share).collect();
        let choice = |((_, agent), weight): (&(f64, String), u32)| {
            let set = Yaml::map([(AGENT, Yaml::text(escape(agent)))]);
            let steps = Yaml::list([Yaml::entry("set", set)]);
            Yaml::map([("weight", Yaml::plain(weight)), ("do", steps)])
        };
        let choices = agents.iter().zip(weights(&shares)).map(choice);
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

/// Name of the value with the browser of a session.
const AGENT: &str = "user_agent";

/// Type of a body that does not say its own.
const FORM: &str = "application/x-www-form-urlencoded";
