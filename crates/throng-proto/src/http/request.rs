//! A request.

use crate::http::Headers;

/// A complete request. It borrows the bytes that it arrived in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The method as written: `GET`, `POST`, ...
    pub method: &'a str,
    /// Path and query as written, with scheme and authority if the client wrote them.
    pub target: &'a str,
    /// The header fields.
    pub headers: Headers<'a>,
    /// The body; empty if there is none.
    pub body: &'a [u8],
}

impl<'a> Request<'a> {
    /// Returns the target up to its query, without scheme and authority (RFC 9112 section 3.2.2).
    /// Not decoded.
    pub fn path(&self) -> &'a str {
        path_of(self.target)
    }

    /// Returns the part of the target after the first `?`. [`crate::http::query_pairs`] parses it.
    pub fn query(&self) -> Option<&'a str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// Returns the value of the first header field with this name, compared without case.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers.get(name)
    }
}

/// Returns the path of a target; see [`Request::path`].
pub(super) fn path_of(target: &str) -> &str {
    let target = target.split_once('?').map_or(target, |(path, _)| path);
    if target.starts_with('/') {
        return target;
    }
    match target.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_and_query_are_parts_of_the_target() {
        let check = |target, path, query| {
            let request = Request { method: "GET", target, headers: Headers::default(), body: b"" };
            assert_eq!((request.path(), request.query()), (path, query), "{target}");
        };
        check("/", "/", None);
        check("/socket/websocket?vsn=2.0.0&a=/b?c", "/socket/websocket", Some("vsn=2.0.0&a=/b?c"));
        check("http://host:80/a?b", "/a", Some("b"));
        check("http://host", "/", None);
        check("/go/http://host/a", "/go/http://host/a", None);
        check("*", "*", None);
    }
}
