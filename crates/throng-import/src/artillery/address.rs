//! URLs as Artillery sends them: a text that begins with `/` stands behind the target
//! (`engine_http.ts`, `maybePrependBase`), and the whole is read as browsers read it (`new URL`).

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What stands in the file.
    Literal(String),
    /// A variable in the scenario's form: `${raw(row.path)}`.
    Variable(String),
}

impl Part {
    /// Returns the length of its text.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Literal(text) | Self::Variable(text) => text.len(),
        }
    }
}

/// What a URL is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// Path and query on the target's server.
    Path(String),
    /// A URL of another server.
    Elsewhere,
    /// No URL: Artillery ends the user with an error.
    Invalid,
}

impl Address {
    /// Returns what the parts are as a URL, behind `base`, the target. A path that begins with a
    /// variable stands behind the target, too.
    pub(super) fn of(parts: Vec<Part>, base: &str) -> Self {
        let mut parts = parts;
        let is_behind = match parts.first() {
            None => return Self::Invalid,
            Some(Part::Variable(_)) => true,
            Some(Part::Literal(text)) => text.starts_with('/'),
        };
        if is_behind {
            parts.insert(0, Part::Literal(base.to_owned()));
        }
        Self::absolute(parts, base)
    }

    /// Returns what the parts are as a whole URL.
    pub(super) fn absolute(parts: Vec<Part>, base: &str) -> Self {
        let mut parts = joined(parts);
        let server = |url: &str| {
            let (scheme, rest) = url.trim_start().split_once("://")?;
            let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            let is_secure = matches!(scheme, "https" | "wss");
            let port = if is_secure { ":443" } else { ":80" };
            let authority = authority.strip_suffix(port).unwrap_or(authority).to_ascii_lowercase();
            let is_known = ["http", "https", "ws", "wss"].contains(&scheme);
            (is_known && !authority.is_empty()).then(|| ((authority, is_secure), path.to_owned()))
        };
        let Some(Part::Literal(first)) = parts.first_mut() else { return Self::Invalid };
        let Some((of_url, path)) = server(first) else { return Self::Invalid };
        if server(base).is_none_or(|(of_base, _)| of_base != of_url) {
            return Self::Elsewhere;
        }
        *first = path;
        Self::Path(normal(parts))
    }
}

/// Returns the parts without a literal beside another one.
fn joined(parts: Vec<Part>) -> Vec<Part> {
    let mut out: Vec<Part> = Vec::new();
    for part in parts {
        match (out.last_mut(), part) {
            (Some(Part::Literal(text)), Part::Literal(more)) => text.push_str(&more),
            (_, part) => out.push(part),
        }
    }
    out
}

/// Returns the path and the query as browsers send them: without a fragment and without `.` and
/// `..`, and percent-encoded where they must be.
fn normal(parts: Vec<Part>) -> String {
    let (mut path, mut query) = (String::new(), None::<String>);
    for part in parts {
        match (part, &mut query) {
            (Part::Variable(variable), Some(query)) => query.push_str(&variable),
            (Part::Variable(variable), None) => path.push_str(&variable),
            (Part::Literal(text), _) => {
                let text: String =
                    text.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
                let (text, is_end) = match text.split_once('#') {
                    Some((text, _)) => (text.to_owned(), true),
                    None => (text, false),
                };
                match &mut query {
                    Some(query) => query.push_str(&encoded(&text, QUERY)),
                    None => {
                        let (before, behind) = match text.split_once('?') {
                            Some((before, behind)) => (before, Some(behind)),
                            None => (&*text, None),
                        };
                        path.push_str(&encoded(&before.replace('\\', "/"), PATH));
                        query = behind.map(|behind| encoded(behind, QUERY));
                    }
                }
                if is_end {
                    break;
                }
            }
        }
    }
    let path = without_dots(&path);
    match query {
        Some(query) if !query.is_empty() => format!("{path}?{query}"),
        _ => path,
    }
}

/// Returns the path without the segments `.` and `..`.
fn without_dots(path: &str) -> String {
    let is_one = |segment: &str| matches!(&*segment.to_ascii_lowercase(), "." | "%2e");
    let is_two =
        |segment: &str| matches!(&*segment.to_ascii_lowercase(), ".." | ".%2e" | "%2e." | "%2e%2e");
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<_> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
    for (index, segment) in segments.iter().enumerate() {
        let is_last = index + 1 == segments.len();
        if is_two(segment) {
            kept.pop();
        } else if !is_one(segment) {
            kept.push(segment);
            continue;
        }
        if is_last {
            kept.push("");
        }
    }
    let slash = if path.starts_with("${") { "" } else { "/" };
    format!("{slash}{}", kept.join("/"))
}

/// Returns the text percent-encoded.
fn encoded(text: &str, set: &'static AsciiSet) -> String {
    let encoded = utf8_percent_encode(text.trim_end_matches('\0'), set).to_string();
    // `${` would be a variable of the scenario.
    encoded.replace("${", "$${")
}

/// Returns the text as a form has it: `application/x-www-form-urlencoded`.
pub(super) fn form_encoded(text: &str) -> String {
    utf8_percent_encode(text, FORM).to_string().replace("%20", "+")
}

/// What a query has percent-encoded (URL Standard, the special-query percent-encode set).
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'\'');

/// What a path has percent-encoded (URL Standard, the path percent-encode set).
const PATH: &AsciiSet = &QUERY.remove(b'\'').add(b'?').add(b'`').add(b'{').add(b'}');

/// What a form has percent-encoded (URL Standard, the form percent-encode set).
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'*').remove(b'-').remove(b'.').remove(b'_');

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str, base: &str) -> Address {
        Address::of(vec![Part::Literal(url.to_owned())], base)
    }

    /// The paths are those that Artillery 2.0.34 has sent.
    #[test]
    fn a_url_is_sent_as_browsers_send_it() {
        for (url, base, sent) in [
            ("/items", "http://a:1", "/items"),
            ("/items", "http://a:1/api/", "/api//items"),
            ("http://a:1/items", "http://a:1/api", "/items"),
            ("http://a", "http://a:80", "/"),
            ("/../up/./x//y", "http://a", "/up/x//y"),
            ("/a/..", "http://a", "/"),
            ("/a b/ü?x=ä\"<>|^`{}#frag", "http://a", "/a%20b/%C3%BC?x=%C3%A4%22%3C%3E|^`{}"),
            (
                "/path|^`{}'~!$&()*+,;=:@[]\\x?q=|^`{}'~!$&()*+,;=:@[]\\/?",
                "http://a",
                "/path|^%60%7B%7D'~!$&()*+,;=:@[]/x?q=|^`{}%27~!$&()*+,;=:@[]\\/?",
            ),
            ("/${x}?${x}", "http://a", "/$%7Bx%7D?$${x}"),
        ] {
            assert_eq!(of(url, base), Address::Path(sent.to_owned()), "{url} of {base}");
        }
        assert_eq!(of("noslash", "http://a"), Address::Invalid);
        assert_eq!(of("http://b/", "http://a"), Address::Elsewhere);
        assert_eq!(of("https://a/", "http://a"), Address::Elsewhere);
        assert_eq!(of("https://a:443/x", "https://a"), Address::Path("/x".to_owned()));
    }

    #[test]
    fn a_path_may_begin_with_a_variable() {
        let parts = vec![Part::Variable("${raw(p)}".to_owned()), Part::Literal("?a b".to_owned())];
        let path = Address::of(parts, "http://a/api");
        assert_eq!(path, Address::Path("/api${raw(p)}?a%20b".to_owned()));
        let path = Address::of(vec![Part::Variable("${raw(p)}".to_owned())], "http://a");
        assert_eq!(path, Address::Path("${raw(p)}".to_owned()));
    }

    #[test]
    fn a_query_is_that_of_a_form() {
        assert_eq!(form_encoded("~*'()!-_. x"), "%7E*%27%28%29%21-_.+x");
    }
}
