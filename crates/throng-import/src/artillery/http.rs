//! `get`, `post` and the other requests.

use throng_base::units::show_duration;
use throng_load::scenario::{YamlKind, YamlNode};

use crate::headers::Headers;
use crate::source::Span;
use crate::text::{base64, escape};
use crate::yaml::Yaml;

use super::expect::Expectation;
use super::fields::{Fields, text};
use super::flow::Flow;
use super::settings::is_on;
use super::{capture, json};
use crate::url::{encode, path_of};

impl Flow<'_, '_, '_> {
    /// Returns the request, and with `ifTrue` its condition around it.
    pub(super) fn request(&mut self, method: &str, span: &Span, node: &YamlNode) -> Option<Yaml> {
        if let YamlKind::Scalar(_) = node.kind {
            let url = self.text(node, "the URL")?;
            let path = self.path(&node.span, &url)?;
            let step = Yaml::entry(method, Yaml::text(&*path));
            self.check(span, std::slice::from_ref(&step));
            self.translator.translated(span, format!("{method} {path}"));
            return Some(step);
        }
        let fields = Fields::read(self.translator, node, &format!("`{method}`"), &KEYS)?;
        let Some((url_span, url)) = fields.entry("url").or_else(|| fields.entry("uri")) else {
            let label = "expected `url: /path`";
            self.translator.mistake(span, "this request has no URL", label);
            return None;
        };
        let url = self.text(url, "`url`")?;
        let mut path = self.path(&url_span, &url)?;
        self.add_query(&fields, &mut path);
        let mut entries = vec![("path", Yaml::text(&*path))];
        let name = fields.get("name").and_then(YamlNode::scalar);
        let name = name.filter(|_| !self.is_once);
        if let Some(name) = name.and_then(|name| self.names.take(name, method)) {
            entries.push(("name", Yaml::text(name)));
        }
        let headers = self.headers(&fields);
        entries.extend(headers.write().map(|headers| ("headers", headers)));
        entries.extend(self.body(&fields));
        let expectation = self.expectation(&fields);
        entries.extend(expectation.map(|expect| ("expect", expect)));
        if let Some(node) = fields.get("capture") {
            let captures = capture::read(self.translator, &mut self.variables, node);
            if !captures.is_empty() {
                entries.push(("capture", Yaml::map(captures)));
            }
        }
        if let Some(timeout) = self.settings.timeout.filter(|timeout| !timeout.is_zero()) {
            entries.push(("timeout", Yaml::plain(show_duration(timeout))));
        }
        self.report_options(&fields);
        self.translator.translated(span, format!("{method} {path}"));
        let value = if entries.len() == 1 { entries.remove(0).1 } else { Yaml::map(entries) };
        let step = Yaml::entry(method, value);
        self.check(span, std::slice::from_ref(&step));
        Some(self.guarded(&fields, step))
    }

    /// Returns the path of a URL on the target. Reports a URL of another server.
    fn path(&mut self, span: &Span, url: &str) -> Option<String> {
        let path = path_of(url, &self.base);
        if path.is_none() {
            let remedy = "a scenario has one target, and paths begin with `/`; the step is left \
                          out";
            self.translator.not_supported(span, format!("url {url}"), remedy);
        }
        path
    }

    /// Adds `qs` to the path.
    fn add_query(&mut self, fields: &Fields<'_>, path: &mut String) {
        let Some(node) = fields.get("qs") else { return };
        let Some(query) = Fields::read_any(self.translator, node, "`qs`") else { return };
        for (name, _, value) in query.iter() {
            let Some(value) = self.text(value, "a value of `qs`") else { continue };
            let sign = if path.contains('?') { '&' } else { '?' };
            path.push_str(&format!("{sign}{}={}", encode(&escape(name)), encode(&value)));
        }
    }

    /// Returns the headers of a request: its own, those of its cookies and its login, and those of
    /// `defaults`.
    pub(super) fn headers(&mut self, fields: &Fields<'_>) -> Headers {
        let place = self.engine.header_place();
        let mut headers = Headers::default();
        let of_all = [self.settings.headers, self.settings.cookie].into_iter().flatten();
        let bytes = of_all.map(|node| node.span.len()).sum();
        let span = fields.iter().next().map_or(0..0, |(_, span, _)| span);
        if !self.translator.expansion.charge(&span, bytes) {
            return headers;
        }
        for node in [fields.get("headers"), self.settings.headers].into_iter().flatten() {
            let Some(entries) = Fields::read_any(self.translator, node, "`headers`") else {
                continue;
            };
            for (name, span, value) in entries.iter() {
                let name = name.to_ascii_lowercase();
                let construct = format!("header {name}");
                if !self.translator.may_have_header(&span, &construct, &name, place) {
                    continue;
                }
                let Some(value) = self.text(value, "a header") else { continue };
                headers.add(&name, value);
            }
        }
        if let Some((span, node)) = fields.entry("auth")
            && let Some(login) = self.login(&span, node)
        {
            headers.set("authorization", login);
        }
        let cookies = fields.entry("cookie").map(|(span, node)| (Some(span), node));
        if let Some((span, node)) = cookies.or(self.settings.cookie.map(|node| (None, node))) {
            let cookies = Fields::read_any(self.translator, node, "`cookie`");
            let mut parts = Vec::new();
            for (name, _, value) in cookies.iter().flat_map(Fields::iter) {
                let value = self.text(value, "a cookie").unwrap_or_default();
                parts.push(format!("{name}={value}"));
            }
            headers.set("cookie", parts.join("; "));
            let span = span.unwrap_or(node.span.clone());
            let how = "these cookies take the place of those that the server has set";
            self.translator.approximated(&span, "cookie", how);
        }
        if is_on(fields.get("gzip")) {
            headers.set("accept-encoding", "gzip");
        }
        headers
    }

    /// Returns the value of `authorization` for `auth: {user, pass}`.
    fn login(&mut self, span: &Span, node: &YamlNode) -> Option<String> {
        let auth = Fields::read(self.translator, node, "`auth`", &["user", "pass", "password"])?;
        let user = text(self.translator, auth.get("user").unwrap_or(node), "`user`")?;
        let password = auth.get("pass").or_else(|| auth.get("password")).unwrap_or(node);
        let password = text(self.translator, password, "`pass`")?;
        let login = format!("{user}:{password}");
        let Some(login) = base64(&login) else {
            let remedy = "put the whole login into a column of `data`: `Basic \
                          ${base64(row.login)}`";
            self.translator.not_supported(span, "auth", remedy);
            return None;
        };
        self.translator.translated(span, "auth");
        Some(format!("Basic {login}"))
    }

    /// Returns the body of a request.
    fn body(&mut self, fields: &Fields<'_>) -> Option<(&'static str, Yaml)> {
        if let Some(node) = fields.get("json") {
            return Some((
                "json",
                json::value(self.translator, &mut self.variables, node).to_yaml(),
            ));
        }
        if let Some(node) = fields.get("form") {
            let form = Fields::read_any(self.translator, node, "`form`")?;
            let mut entries = Vec::new();
            for (name, _, value) in form.iter() {
                let value = self.text(value, "a field of the form")?;
                entries.push((name.to_owned(), Yaml::text(value)));
            }
            return Some(("form", Yaml::map(entries)));
        }
        if let Some((span, _)) = fields.entry("formData") {
            let remedy = "a body of several parts is no body here; write it out in `body`";
            self.translator.not_supported(&span, "formData", remedy);
        }
        let node = fields.get("body")?;
        Some(("body", Yaml::text(self.text(node, "`body`")?)))
    }

    /// Returns what the answer must be.
    fn expectation(&mut self, fields: &Fields<'_>) -> Option<Yaml> {
        let mut expectation = Expectation::default();
        if let Some((span, node)) = fields.entry("expect") {
            if !self.settings.has_expect {
                let why = "Artillery checks `expect` only with `plugins: {expect: {}}`; the \
                           scenario checks it";
                self.translator.suspicious(&span, "expect", why);
            }
            expectation.read(self.translator, node);
        }
        if let Some(node) = fields.get("match") {
            expectation.read_match(self.translator, &mut self.variables, node);
        }
        if let (Some((span, node)), true) =
            (fields.entry("followRedirect"), expectation.has_no_status())
        {
            if is_on(Some(node)) {
                let remedy = "redirects are not followed; write the second request as a step";
                self.translator.not_supported(&span, "followRedirect", remedy);
            } else {
                self.translator.translated(&span, "followRedirect");
                expectation.add_statuses(&["2xx", "3xx"]);
            }
        }
        expectation.write()
    }

    /// Reports the options that have no key in a step.
    fn report_options(&mut self, fields: &Fields<'_>) {
        for (key, span, _) in fields.iter() {
            match key {
                "beforeRequest" | "afterResponse" => {
                    let remedy = "JavaScript is not run; write what the function does as steps, \
                                  `set` or `data`";
                    self.translator.not_supported(&span, key, remedy);
                }
                "gzip" => {
                    let how = "answers are not decompressed: `capture` and `expect` see them as \
                               they are sent";
                    self.translator.approximated(&span, key, how);
                }
                _ => {}
            }
        }
    }
}

const KEYS: [&str; 19] = [
    "url",
    "uri",
    "name",
    "headers",
    "qs",
    "json",
    "form",
    "formData",
    "body",
    "capture",
    "match",
    "expect",
    "ifTrue",
    "auth",
    "cookie",
    "gzip",
    "followRedirect",
    "beforeRequest",
    "afterResponse",
];
