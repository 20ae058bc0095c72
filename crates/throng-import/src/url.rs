//! URLs, and the parts of them that a scenario needs.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// A target in the file: `https://shop.example:8443/api`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url<'a> {
    pub(crate) scheme: &'a str,
    /// Host and port.
    pub(crate) authority: &'a str,
    /// Path and query.
    pub(crate) path: &'a str,
}

impl<'a> Url<'a> {
    /// Splits a URL into its parts.
    pub(crate) fn split(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.trim().split_once("://")?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        // A path may be a variable: `http://shop${raw(next)}`.
        let end = rest
            .find("${raw(")
            .filter(|at| is_end_of_server(&rest[..*at]))
            .map_or(end, |at| end.min(at));
        let (authority, path) = rest.split_at(end);
        let is_known = ["http", "https", "ws", "wss"].contains(&scheme);
        (is_known && !authority.is_empty()).then_some(Self { scheme, authority, path })
    }

    /// Returns the path of a base, to which paths are added.
    fn folder(&self) -> &'a str {
        self.path.trim_end_matches('/')
    }

    /// Returns host and port, without the default port.
    fn server(&self) -> &str {
        let port = if self.is_secure() { ":443" } else { ":80" };
        self.authority.strip_suffix(port).unwrap_or(self.authority)
    }

    /// Reports whether the server is to be reached over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        matches!(self.scheme, "https" | "wss")
    }
}

/// Reports whether a server is whole: a variable behind it is none of its parts.
fn is_end_of_server(text: &str) -> bool {
    text.ends_with(|c: char| c.is_ascii_alphanumeric() || c == ']')
}

/// Returns host and port as a URL has them: an address of IPv6 in brackets.
pub(crate) fn server_name(host: &str, port: impl std::fmt::Display) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Returns the path of `url` on the server of `base`; `None` if it is of another server.
pub(crate) fn path_of(url: &str, base: &str) -> Option<String> {
    let base = Url::split(base);
    if let Some(absolute) = Url::split(url) {
        let is_same = base.is_some_and(|base| {
            base.server() == absolute.server() && base.is_secure() == absolute.is_secure()
        });
        let path = if absolute.path.starts_with('/') || absolute.path.starts_with("${raw(") {
            absolute.path.to_owned()
        } else {
            format!("/{}", absolute.path)
        };
        return is_same.then(|| encode_path(&path));
    }
    if url.starts_with("${") || url.contains("://") {
        return None;
    }
    let folder = base.map_or("", |base| base.folder());
    let sign = if url.starts_with('/') || url.is_empty() && !folder.is_empty() { "" } else { "/" };
    Some(encode_path(&format!("{folder}{sign}{url}")))
}

/// Returns the path with blanks and letters beyond ASCII percent-encoded, outside of `${...}`.
fn encode_path(path: &str) -> String {
    let mut rest = path.split('#').next().unwrap_or_default();
    let mut out = String::new();
    while let Some((begin, length)) =
        rest.find("${").and_then(|begin| Some((begin, rest[begin..].find('}')? + 1)))
    {
        out.extend(utf8_percent_encode(&rest[..begin], PATH));
        out.push_str(&rest[begin..begin + length]);
        rest = &rest[begin + length..];
    }
    out.extend(utf8_percent_encode(rest, PATH));
    out
}

/// What a path has percent-encoded.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_its_slash_at_the_end() {
        for (url, base, path) in [
            ("http://a/b/", "http://a", Some("/b/")),
            ("http://a/b/?c=/", "http://a:80/x/", Some("/b/?c=/")),
            ("http://a", "http://a/x", Some("/")),
            ("/b/", "http://a/x/", Some("/x/b/")),
            ("http://c/b/", "http://a", None),
        ] {
            assert_eq!(path_of(url, base).as_deref(), path, "{url} of {base}");
        }
    }

    #[test]
    fn an_address_of_ipv6_has_brackets() {
        assert_eq!(server_name("::1", 80), "[::1]:80");
        assert_eq!(server_name("shop", 80), "shop:80");
    }

    #[test]
    fn a_url_is_a_path_on_the_target() {
        for (url, base, expected) in [
            ("/items", "http://a:1", Some("/items")),
            ("items?n=1", "http://a:1/", Some("/items?n=1")),
            ("/items", "http://a:1/api/", Some("/api/items")),
            ("http://a:1/items", "http://a:1/api", Some("/items")),
            ("http://a:1", "http://a:1", Some("/")),
            ("http://a/items", "http://a:80", Some("/items")),
            ("http://b/items", "http://a:1", None),
            ("https://a/items", "http://a", None),
            ("https://a:443/items", "wss://a", Some("/items")),
            ("${next}", "http://a:1", None),
            ("http://a:1${raw(next)}", "http://a:1", Some("${raw(next)}")),
            ("http://a:${raw(env.PORT)}/b", "http://a:1", None),
            ("/a b/${x y}#top", "http://a:1", Some("/a%20b/${x y}")),
        ] {
            assert_eq!(path_of(url, base).as_deref(), expected, "{url} of {base}");
        }
    }
}
