//! A response.

use std::io::Write as _;
use std::mem::MaybeUninit;

use crate::http::Headers;
use crate::http::reader::FIELDS_MAX;

/// The head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The HTTP status: 101, 200, 403, ...
    pub status: u16,
    /// The header fields.
    pub headers: Headers<'a>,
}

impl Response<'_> {
    /// Returns the head as text, for people: the reason phrase is not that of the server.
    pub fn head(&self) -> String {
        let fields = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let fields: String = fields.collect();
        format!("HTTP/1.1 {} {}\r\n{fields}\r\n", self.status, reason_phrase(self.status))
    }
}

/// Appends a complete response to `out`. It adds `content-length` and `connection` to `headers`.
/// Line breaks in a header become blanks, so that no header can inject another.
pub fn write_response(
    status: u16,
    headers: &[(&str, &str)],
    body: &[u8],
    keep_alive: bool,
    out: &mut Vec<u8>,
) {
    let persistence = if keep_alive { Persistence::KeepAlive } else { Persistence::Close };
    write_response_head(status, headers, body.len(), persistence, out);
    out.extend_from_slice(body);
}

/// The fate of the connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    KeepAlive,
    Close,
}

/// Appends the head of a response whose body has `length` bytes.
pub(crate) fn write_response_head(
    status: u16,
    headers: &[(&str, &str)],
    length: usize,
    persistence: Persistence,
    out: &mut Vec<u8>,
) {
    let _ = write!(out, "HTTP/1.1 {status} {}\r\n", reason_phrase(status));
    write_fields(headers, out);
    // RFC 9110 section 8.6: these two have no body and no `content-length`.
    if status != 204 && status != 304 {
        let _ = write!(out, "content-length: {length}\r\n");
    }
    if persistence == Persistence::Close {
        out.extend_from_slice(b"connection: close\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends header fields, with line breaks replaced by blanks.
pub(crate) fn write_fields(headers: &[(&str, &str)], out: &mut Vec<u8>) {
    let without_line_break = |byte: u8| if byte == b'\r' || byte == b'\n' { b' ' } else { byte };
    for (name, value) in headers {
        out.extend(name.bytes().map(without_line_break));
        out.extend_from_slice(b": ");
        out.extend(value.bytes().map(without_line_break));
        out.extend_from_slice(b"\r\n");
    }
}

/// Parses the head of a response at the start of `bytes`, and returns it with its length; `None`
/// while it is incomplete.
pub(crate) fn parse_response(bytes: &[u8]) -> Result<Option<(Response<'_>, usize)>, ()> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let length = match config.parse_response_with_uninit_headers(&mut parsed, bytes, &mut fields) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(()),
    };
    let status = parsed.code.ok_or(())?;
    let head = simdutf8::basic::from_utf8(&bytes[..length]).map_err(|_| ())?;
    let lines = head.trim_start_matches(['\r', '\n']).split_once('\n').map_or("", |(_, rest)| rest);
    Ok(Some((Response { status, headers: Headers::new(lines) }, length)))
}

/// Returns the reason phrase of a status, for the statuses of RFC 9110 section 15 that this project
/// uses.
const fn reason_phrase(status: u16) -> &'static str {
    match status {
        101 => "Switching Protocols",
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        410 => "Gone",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, headers: &[(&str, &str)], body: &str, keep_alive: bool, expected: &str) {
        let mut out = Vec::new();
        write_response(status, headers, body.as_bytes(), keep_alive, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn responses_carry_their_length_and_whether_the_connection_stays() {
        check(
            200,
            &[("content-type", "text/plain")],
            "hello",
            true,
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nhello",
        );
        check(
            403,
            &[],
            "",
            false,
            "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        );
        check(204, &[], "", true, "HTTP/1.1 204 No Content\r\n\r\n");
    }

    #[test]
    fn a_header_cannot_inject_another() {
        check(
            302,
            &[("location", "/a\r\nset-cookie: b")],
            "",
            true,
            "HTTP/1.1 302 Found\r\nlocation: /a  set-cookie: b\r\ncontent-length: 0\r\n\r\n",
        );
    }

    #[test]
    fn a_head_is_parsed_when_it_is_complete() {
        let bytes = b"HTTP/1.1 403 No\r\na: b\r\n\r\nbody";
        for cut in 0..bytes.len() - 4 {
            assert_eq!(parse_response(&bytes[..cut]), Ok(None), "{cut}");
        }
        let (response, length) = parse_response(bytes).unwrap().unwrap();
        assert_eq!((response.status, response.headers.get("A"), length), (403, Some("b"), 25));
        assert_eq!(parse_response(b"ICY 200 OK\r\n\r\n"), Err(()));
    }
}
