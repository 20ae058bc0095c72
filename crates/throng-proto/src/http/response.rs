//! What a server answers.

use crate::http::Headers;

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// 101, 200, 403, ...
    pub status: u16,
    /// The header fields.
    pub headers: Headers<'a>,
}

/// Appends a whole answer to `out`. `content-length` and `connection` are written here; `headers` are the rest.
pub fn write_response(
    _status: u16,
    _headers: &[(&str, &str)],
    _body: &[u8],
    _keep_alive: bool,
    _out: &mut Vec<u8>,
) {
    todo!()
}
