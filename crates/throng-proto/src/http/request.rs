//! What a client asks for.

use crate::http::Headers;

/// A whole request. It borrows the bytes that it came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// `GET`, `POST`, ... as it was written.
    pub method: &'a str,
    /// Path and query as they were written.
    pub target: &'a str,
    /// The header fields.
    pub headers: Headers<'a>,
    /// The body; empty for none.
    pub body: &'a [u8],
}

impl<'a> Request<'a> {
    /// The target up to its query.
    pub fn path(&self) -> &'a str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }

    /// What follows the first `?` of the target.
    pub fn query(&self) -> Option<&'a str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// The value of the first header field of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers.get(name)
    }
}
