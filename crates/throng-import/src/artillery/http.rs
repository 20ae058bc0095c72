//! `get`, `post` and the other requests.

use throng_load::scenario::{YamlKind, YamlNode};

use crate::headers::Headers;
use crate::request::{Expectation, Request};
use crate::source::Span;
use crate::step;
use crate::text::base64;
use crate::yaml::Yaml;

use super::address::{Address, Part, form_encoded};
use super::flow::Flow;
use super::settings::is_on;
use super::{capture, json};
use crate::fields::{Fields, one_or_more};

impl Flow<'_, '_, '_> {
    /// Returns the request, and with `ifTrue` its condition around it.
    pub(super) fn request(&mut self, method: &str, span: &Span, node: &YamlNode) -> Option<Yaml> {
        if let YamlKind::Scalar(_) = node.kind {
            let why = "Artillery refuses a request that is no mapping: `get: {url: /path}`";
            self.translator.suspicious(span, method, why);
            let path = self.path(node)?;
            let step = Yaml::entry(method, Yaml::text(&*path));
            self.check(span, std::slice::from_ref(&step), false);
            return Some(step);
        }
        let fields = Fields::read(self.translator, node, &format!("`{method}`"), KEYS)?;
        let Some(url) = fields.get("url").or_else(|| fields.get("uri")) else {
            let label = "expected `url: /path`";
            return self.translator.fail(span, "this request has no URL", label);
        };
        let mut path = self.path(url)?;
        self.add_query(&fields, &mut path);
        let has_body =
            ["json", "form", "body", "formData"].iter().any(|key| fields.get(key).is_some());
        if has_body && matches!(method, "get" | "head") {
            let why = "a `get` or `head` with a body is none that Artillery sends";
            self.end_unless_conditional(&fields, span, method, why);
            return None;
        }
        let name = fields.get("name").and_then(YamlNode::scalar);
        let name = name.filter(|_| !self.is_once).and_then(|name| self.names.take(name, method));
        let mut headers = self.headers(&fields);
        let body = self.body(&fields, &mut headers);
        let expect = self.expectation(&fields);
        let captures = match fields.get("capture") {
            Some(node) => capture::read(self.translator, &mut self.variables, node),
            None => Vec::new(),
        };
        let timeout = self.settings.timeout.filter(|timeout| !timeout.is_zero());
        self.report_options(&fields);
        self.translator.translated(span, format!("{method} {path}"));
        let method = method.to_owned();
        let request = Request { method, path, name, headers, body, expect, captures, timeout };
        let step = request.write();
        self.check(span, std::slice::from_ref(&step), false);
        let step = self.guarded(&fields, step);
        self.perhaps(&fields, step)
    }

    /// Returns the step within the choice of `probability`: Artillery draws a number from 0 to 100,
    /// and takes the step where the number is below it (`engine_util.ts`, `isProbableEnough`).
    fn perhaps(&mut self, fields: &Fields<'_>, step: Yaml) -> Option<Yaml> {
        let Some((span, node)) = fields.entry("probability") else { return Some(step) };
        let share = node.scalar().and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        let share = share.clamp(0.0, 100.0).ceil() as u32;
        if share == 0 {
            return self.translator.skip(&span, "probability", "no user takes this step");
        }
        self.translator.translated(&span, "probability");
        Some(step::choose([(share, step), (101 - share, step::wait("0s"))]))
    }

    /// Ends the user, unless a condition says whether this step is taken at all.
    fn end_unless_conditional(&mut self, fields: &Fields<'_>, span: &Span, name: &str, why: &str) {
        if fields.get("ifTrue").is_none() && fields.get("probability").is_none() {
            return self.end(span, name, why);
        }
        let remedy = format!("{why}: it ends the user with an error; the step is left out");
        self.translator.not_supported(span, name, remedy);
    }

    /// Returns the path of a URL on the target. Reports a URL of another server, and one that
    /// Artillery does not send.
    fn path(&mut self, node: &YamlNode) -> Option<String> {
        let parts = self.parts(node, "`url`")?;
        let url = super::template::text_of(&parts);
        match self.address(parts, &node.span) {
            Address::Path(path) => Some(path),
            Address::Elsewhere => {
                let remedy = "a scenario has one target; the step is left out";
                self.translator.omit(&node.span, format!("url {url}"), remedy)
            }
            Address::Invalid => {
                let why = "a URL begins with `/` or with `http`";
                self.end(&node.span, format!("url {url}"), why);
                None
            }
        }
    }

    /// Returns the address of a URL. Its variables stand there as they are.
    fn address(&mut self, parts: Vec<Part>, span: &Span) -> Address {
        let raw: Vec<_> = parts.into_iter().map(|part| self.raw(part)).collect();
        let has_raw = |part: &Part| matches!(part, Part::Variable(it) if it.starts_with("${raw("));
        if raw.iter().any(has_raw) {
            let how = "Artillery percent-encodes blanks and letters beyond ASCII in the values of \
                       variables; in the scenario a blank there is the error `bad_value`";
            self.translator.approximated(span, "values in a URL", how);
        }
        Address::of(raw, &self.base)
    }

    /// Returns the part as it stands in a URL.
    pub(super) fn raw(&self, part: Part) -> Part {
        match part {
            Part::Variable(variable) => Part::Variable(self.variables.raw(&variable)),
            literal => literal,
        }
    }

    /// Puts `qs` in the place of the query: got's `searchParams` are those of a form.
    fn add_query(&mut self, fields: &Fields<'_>, path: &mut String) {
        let Some(node) = fields.get("qs") else { return };
        let Some(query) = Fields::read_any(self.translator, node, "`qs`") else { return };
        let mut pairs = Vec::new();
        let mut changed = Vec::new();
        for (name, span, value) in query.iter() {
            let is_changed = name.contains("{{");
            let name = super::template::parts(self.translator, &mut self.variables, &span, name);
            let name = self.in_query(name);
            let pairs = if is_changed { &mut changed } else { &mut pairs };
            for value in one_or_more(value) {
                let value = match value.kind {
                    YamlKind::Nothing => Vec::new(),
                    _ => match self.parts(value, "a value of `qs`") {
                        Some(value) => value,
                        None => continue,
                    },
                };
                let is_variable = |part: &Part| matches!(part, Part::Variable(_));
                self.has_encoded |= value.iter().any(is_variable);
                pairs.push(format!("{name}={}", self.in_query(value)));
            }
        }
        pairs.append(&mut changed);
        let before = path.split('?').next().unwrap_or_default().to_owned();
        let sign = if pairs.is_empty() { "" } else { "?" };
        *path = format!("{before}{sign}{}", pairs.join("&"));
    }

    /// Returns a name or a value of a query.
    fn in_query(&self, parts: Vec<Part>) -> String {
        let part = |part| match part {
            Part::Literal(text) => form_encoded(&text),
            Part::Variable(variable) => variable,
        };
        parts.into_iter().map(part).collect()
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
        let own = fields.get("headers").map(|node| (node, false));
        let of_all = self.settings.headers.map(|node| (node, true));
        for (node, is_config) in [own, of_all].into_iter().flatten() {
            let Some(entries) = Fields::read_any(self.translator, node, "`headers`") else {
                continue;
            };
            for (name, span, value) in entries.iter() {
                let name = name.to_ascii_lowercase();
                let construct = format!("header {name}");
                if !self.translator.may_have_header(&span, &construct, &name, place) {
                    continue;
                }
                if headers.has(&name) {
                    continue;
                }
                let value = match is_config {
                    true => self.config_text(value, "a header"),
                    false => self.text(value, "a header"),
                };
                let Some(value) = value else { continue };
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
            let how = "these cookies take the place of those that the server has set; Artillery \
                       keeps them for later requests";
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
        let user = self.parts(auth.get("user").unwrap_or(node), "`user`")?;
        let password = auth.get("pass").or_else(|| auth.get("password")).unwrap_or(node);
        let password = self.parts(password, "`pass`")?;
        let known = |parts: Vec<Part>| {
            let text = |part| match part {
                Part::Literal(text) => text,
                // No login can have a variable in it: `base64` refuses the brace.
                Part::Variable(variable) => variable,
            };
            parts.into_iter().map(text).collect::<String>()
        };
        let (user, password) = (known(user), known(password));
        let login = format!("{user}:{password}");
        let Some(login) = base64(&login) else {
            let remedy = "put the whole login into a column of `data`: `Basic \
                          ${base64(row.login)}`";
            return self.translator.omit(span, "auth", remedy);
        };
        self.translator.translated(span, "auth");
        Some(format!("Basic {login}"))
    }

    /// Returns the body of a request.
    fn body(&mut self, fields: &Fields<'_>, headers: &mut Headers) -> Option<(&'static str, Yaml)> {
        if let Some(node) = fields.get("json") {
            return Some((
                "json",
                json::value(self.translator, &mut self.variables, node).to_yaml(),
            ));
        }
        if let Some(node) = fields.get("form") {
            return self.form(node, headers);
        }
        if let Some((span, _)) = fields.entry("formData") {
            let remedy = "a body of several parts is no body here; write it out in `body`";
            self.translator.not_supported(&span, "formData", remedy);
        }
        let node = fields.get("body")?;
        self.has_untyped |= !headers.has("content-type");
        Some(("body", Yaml::text(self.text(node, "`body`")?)))
    }

    /// Returns a form. Artillery fills variables into its values alone (`engine_http.ts`, `step`),
    /// and writes it as a text where a scenario would write other bytes.
    fn form(&mut self, node: &YamlNode, headers: &mut Headers) -> Option<(&'static str, Yaml)> {
        let form = Fields::read_any(self.translator, node, "`form`")?;
        let mut pairs = Vec::new();
        for (name, _, value) in form.iter() {
            let mut parts: Vec<Part> = Vec::new();
            for (index, value) in one_or_more(value).into_iter().enumerate() {
                if index > 0 {
                    parts.push(Part::Literal(",".to_owned()));
                }
                match value.kind {
                    YamlKind::Nothing => parts.push(Part::Literal("null".to_owned())),
                    _ => parts.extend(self.parts(value, "a field of the form")?),
                }
            }
            pairs.push((name.to_owned(), parts));
        }
        let is_variable = |part: &Part| matches!(part, Part::Variable(_));
        let has_variable = pairs.iter().any(|(_, parts)| parts.iter().any(is_variable));
        let text = |parts: &[Part]| super::template::text_of(parts);
        let is_same = |text: &str| !text.contains([' ', '*', '~']);
        let all_same = pairs.iter().all(|(name, parts)| is_same(name) && is_same(&text(parts)));
        if !has_variable && !all_same {
            let pair = |(name, parts): &(String, Vec<Part>)| {
                format!("{}={}", form_encoded(name), self.in_query(parts.clone()))
            };
            let body = pairs.iter().map(pair).collect::<Vec<_>>().join("&");
            headers.add("content-type", "application/x-www-form-urlencoded");
            return Some(("body", Yaml::text(body)));
        }
        self.has_encoded |= has_variable;
        let entries = pairs.iter().map(|(name, parts)| (name.clone(), Yaml::text(text(parts))));
        Some(("form", Yaml::map(entries)))
    }

    /// Returns what the answer must be.
    fn expectation(&mut self, fields: &Fields<'_>) -> Expectation {
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
            (fields.entry("followRedirect"), expectation.statuses.is_empty())
        {
            if is_on(Some(node)) {
                let remedy = "redirects are not followed; write the second request as a step";
                self.translator.not_supported(&span, "followRedirect", remedy);
            } else {
                self.translator.translated(&span, "followRedirect");
                expectation.statuses = ["2xx", "3xx"].map(str::to_owned).into();
            }
        }
        expectation
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
                "gzip" if !is_on(fields.get("gzip")) => {
                    self.translator.translated(&span, key);
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

const KEYS: &[&str] = words![
    "url" "uri" "name" "headers" "qs" "json" "form" "formData" "body" "capture" "match" "expect"
    "ifTrue" "probability" "auth" "cookie" "gzip" "followRedirect" "beforeRequest" "afterResponse"
];
