//! URLs of a script: paths on the target, and logins in them.

use percent_encoding::percent_decode_str;
use throng_load::scenario::Diagnostic;

use crate::headers::Headers;
use crate::source::Span;
use crate::text::base64;
use crate::url::{Url, path_of};

use super::script::{Done, Script};
use super::syntax::Expression;

impl Script<'_, '_> {
    /// Returns the path of a URL, and the login in it. The first URL is that of the target.
    pub(super) fn path(&mut self, url: &Expression) -> Done<(String, Option<String>)> {
        let text = self.values.url(url)?;
        let (text, login) = without_login(&text);
        let Some(parts) = Url::split(&text) else {
            let label = "expected a URL such as 'http://127.0.0.1:8080/'";
            return Err(Diagnostic::new(url.span.clone(), "this is no URL", label));
        };
        let server = format!("{}://{}", parts.scheme, parts.authority);
        if self.server.is_none() {
            if parts.authority.contains("${") && self.translator.options.target.is_none() {
                let title = "the target is a variable";
                let label = "expected a host and a port here, or `--target`";
                return Err(Diagnostic::new(url.span.clone(), title, label));
            }
            self.server = Some((server, url.span.clone()));
        }
        let base = self.server.as_ref().map_or("", |(server, _)| server);
        let path = path_of(&text, base).ok_or_else(|| {
            let label = format!("expected a URL of `{base}`");
            let title = "a scenario has one target, and this is another server";
            Diagnostic::new(url.span.clone(), title, label)
        })?;
        self.report_url(&url.span, parts.path, &path);
        Ok((path, login))
    }

    /// Reports what a URL of the scenario has otherwise than that of the script.
    fn report_url(&mut self, span: &Span, written: &str, path: &str) {
        let literal = |text: &str| text.split('#').next().unwrap_or_default().to_owned();
        if !literal(written).is_empty() && literal(written) != *path {
            let how = "k6 sends blanks and other signs that no URL has as they are, in a query \
                       letters beyond ASCII, too; the scenario percent-encodes them";
            self.translator.approximated(span, "URL", how);
        }
        if path.contains("${raw(") {
            let how = "k6 percent-encodes letters beyond ASCII in the values of variables of a \
                       path, and sends blanks; in the scenario a blank there is the error \
                       `bad_value`";
            self.translator.approximated(span, "values in a URL", how);
        }
    }

    /// Adds the login of a URL, unless there is a header of its own.
    pub(super) fn add_login(&mut self, span: &Span, login: Option<String>, headers: &mut Headers) {
        let Some(login) = login else { return };
        match base64(&login) {
            Some(login) => drop(headers.add("authorization", format!("Basic {login}"))),
            None => {
                let remedy = "write the header: `authorization: Basic ${base64(row.login)}`";
                self.translator.not_supported(span, "login in a URL", remedy);
            }
        }
    }
}

/// Returns a URL without `user:password@`, and the two as a login.
fn without_login(url: &str) -> (String, Option<String>) {
    let split = || {
        let (scheme, rest) = url.split_once("://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (login, _) = rest[..end].rsplit_once('@')?;
        let decoded = percent_decode_str(login).decode_utf8_lossy().into_owned();
        Some((format!("{scheme}://{}", &rest[login.len() + 1..]), decoded))
    };
    split().map_or((url.to_owned(), None), |(url, login)| (url, Some(login)))
}
