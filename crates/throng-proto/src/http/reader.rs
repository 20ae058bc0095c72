//! The reader that finds requests in a stream of bytes.

use std::mem::MaybeUninit;

use crate::Input;
use crate::grow;
use crate::http::headers::{has_list_member, list_members};
use crate::http::request::path_of;
use crate::http::{Headers, Request, RequestError};

/// Most header fields in one head. The parser's table of them is on the stack.
pub(crate) const FIELDS_MAX: usize = 64;

/// The size limits of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLimits<'a> {
    pub(crate) head_bytes_max: usize,
    pub(crate) body_bytes_max: usize,
    /// The only path at which a request may have a body; `None` allows bodies at every path.
    pub(crate) body_path: Option<&'a str>,
}

impl RequestLimits<'_> {
    /// Returns the most bytes that the body of a request to `target` may have.
    fn body_bytes_max(&self, target: &str) -> usize {
        match self.body_path {
            Some(path) if path != path_of(target) => 0,
            _ => self.body_bytes_max,
        }
    }
}

/// Received bytes that the server cannot read yet: an incomplete request, or data that follows a
/// request without a response.
#[derive(Debug, Default)]
pub(crate) struct PendingInput {
    bytes: Vec<u8>,
    /// The length of head and body together, once the head is complete.
    length: Option<usize>,
}

/// The properties of the response that the request determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResponseExpectation {
    /// The connection stays open after the response.
    pub(crate) keep_alive: bool,
    /// The request is `HEAD`, so the response has no body.
    pub(crate) head_only: bool,
    /// The request is HTTP/1.1, which the server can upgrade.
    pub(crate) is_http_11: bool,
}

/// Returns the next request of `input` if it is complete. A request that arrives whole borrows
/// `input`; any other borrows `reassembled`. An incomplete request is consumed and kept in
/// `pending`.
pub(crate) fn read_request<'a, 'i: 'a>(
    pending: &mut PendingInput,
    input: &mut Input<'i>,
    reassembled: &'a mut Vec<u8>,
    limits: RequestLimits<'_>,
    out: &mut Vec<u8>,
) -> Result<Option<(Request<'a>, ResponseExpectation)>, RequestError> {
    let pending_bytes = pending.bytes.len();
    if pending_bytes == 0 {
        let framing = parse_head(input.peek(), limits)?;
        if let Some(framing) = framing.filter(|framing| framing.length() <= input.peek().len()) {
            return build_request(input.take(framing.length()), framing).map(Some);
        }
        pending.set_framing(framing, out);
        pending.append(input.take_all());
        return Ok(None);
    }
    let received = pending_bytes + input.peek().len();
    pending.append(input.peek());
    // The head is parsed again after each receive, so that a bad head fails as early as possible:
    // even byte by byte that is cheaper than the receive itself. The body is not parsed.
    if pending.length.is_some_and(|length| received < length) {
        input.take_all();
        return Ok(None);
    }
    let framing = match parse_head(&pending.bytes, limits)? {
        Some(framing) if framing.length() <= received => framing,
        framing => {
            input.take_all();
            pending.set_framing(framing, out);
            return Ok(None);
        }
    };
    let length = framing.length();
    if length >= pending_bytes {
        input.take(length - pending_bytes);
        pending.bytes.truncate(length);
        *reassembled = std::mem::take(pending).bytes;
    } else {
        // Several requests arrived before the last response.
        pending.bytes.truncate(pending_bytes);
        reassembled.clear();
        reassembled.extend(pending.bytes.drain(..length));
    }
    build_request(reassembled, framing).map(Some)
}

impl PendingInput {
    /// Appends bytes and returns how many are kept now.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> usize {
        grow::append(&mut self.bytes, bytes, self.length.unwrap_or(usize::MAX));
        self.bytes.len()
    }

    /// Takes out all kept bytes.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(self).bytes
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Stores the length of the complete request. Sends `100 Continue` to a client that expects it
    /// before it sends the body.
    fn set_framing(&mut self, framing: Option<RequestFraming>, out: &mut Vec<u8>) {
        if let Some(framing) = framing {
            self.length = Some(framing.length());
            if framing.expects_continue {
                out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
        }
    }
}

/// The length of a request, and its effects on the response.
#[derive(Clone, Copy)]
struct RequestFraming {
    head_bytes: usize,
    body_bytes: usize,
    expectation: ResponseExpectation,
    expects_continue: bool,
}

impl RequestFraming {
    const fn length(&self) -> usize {
        self.head_bytes + self.body_bytes
    }
}

/// Parses and checks the head at the start of `bytes`; returns `None` while it is incomplete.
fn parse_head(
    bytes: &[u8],
    limits: RequestLimits<'_>,
) -> Result<Option<RequestFraming>, RequestError> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut []);
    let head = match parsed.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(httparse::Status::Complete(head)) if head <= limits.head_bytes_max => head,
        Ok(httparse::Status::Partial) if bytes.len() <= limits.head_bytes_max => return Ok(None),
        Ok(_) => {
            let line = bytes.iter().take(limits.head_bytes_max).any(|&byte| byte == b'\n');
            return Err(if line {
                RequestError::HeadTooLarge
            } else {
                RequestError::TargetTooLong
            });
        }
        Err(httparse::Error::TooManyHeaders) => return Err(RequestError::HeadTooLarge),
        Err(httparse::Error::Version) => return Err(RequestError::Version),
        Err(_) => return Err(RequestError::Malformed),
    };
    let is_http_11 = parsed.version == Some(1);
    let body_bytes_max = limits.body_bytes_max(parsed.path.unwrap_or_default()) as u64;
    let mut framing = RequestFraming {
        head_bytes: head,
        body_bytes: 0,
        expectation: ResponseExpectation {
            keep_alive: is_http_11,
            head_only: parsed.method == Some("HEAD"),
            is_http_11,
        },
        expects_continue: false,
    };
    let (mut hosts, mut length, mut coding) = (0, None, None);
    for field in parsed.headers.iter() {
        let value = || str::from_utf8(field.value).map_err(|_| RequestError::NotUtf8);
        match field.name.len() {
            4 if field.name.eq_ignore_ascii_case("host") => hosts += 1,
            6 if field.name.eq_ignore_ascii_case("expect") => {
                framing.expects_continue =
                    is_http_11 && value()?.eq_ignore_ascii_case("100-continue");
            }
            10 if field.name.eq_ignore_ascii_case("connection") => {
                framing.expectation.keep_alive &= !has_list_member(value()?, "close");
            }
            14 if field.name.eq_ignore_ascii_case("content-length") => {
                let number = number(value()?).ok_or(RequestError::ContentLength)?;
                if length.replace(number).is_some() {
                    return Err(RequestError::ContentLength);
                }
            }
            17 if field.name.eq_ignore_ascii_case("transfer-encoding") => coding = Some(value()?),
            _ => {}
        }
    }
    match (length, coding) {
        _ if is_http_11 && hosts != 1 => Err(RequestError::Host),
        (Some(_), Some(_)) => Err(RequestError::ContentLength),
        (None, Some(coding))
            if list_members(coding).all(|one| one.eq_ignore_ascii_case("chunked")) =>
        {
            Err(RequestError::LengthRequired)
        }
        (None, Some(_)) => Err(RequestError::TransferEncoding),
        (Some(body), None) if body > body_bytes_max => Err(RequestError::BodyTooLarge),
        (length, None) => {
            framing.body_bytes = length.unwrap_or(0) as usize;
            Ok(Some(framing))
        }
    }
}

/// Builds the request from `bytes`, which are exactly as long as `framing` says.
fn build_request(
    bytes: &[u8],
    framing: RequestFraming,
) -> Result<(Request<'_>, ResponseExpectation), RequestError> {
    let (head, body) = bytes.split_at(framing.head_bytes);
    let head = simdutf8::basic::from_utf8(head).map_err(|_| RequestError::NotUtf8)?;
    let (line, lines) =
        head.trim_start_matches(['\r', '\n']).split_once('\n').ok_or(RequestError::Malformed)?;
    let mut words = line.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(RequestError::Malformed);
    };
    let headers = Headers::new(lines);
    Ok((Request { method, target, headers, body }, framing.expectation))
}

/// Parses digits only: no sign, no blank.
fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // A number beyond 2^64 exceeds the limit like any other large number.
    Some(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RequestLimits<'_> =
        RequestLimits { head_bytes_max: 200, body_bytes_max: 20, body_path: None };

    /// Reads `pieces`, received one after the other. Returns `METHOD target body keep-alive` for
    /// each request, then the error.
    fn read(pieces: &[&[u8]]) -> (Vec<String>, Option<RequestError>, String) {
        let (mut pending, mut reassembled, mut out) =
            (PendingInput::default(), Vec::new(), Vec::new());
        let mut requests = Vec::new();
        for piece in pieces {
            let mut bytes = piece.to_vec();
            let mut input = Input::new(&mut bytes);
            loop {
                match read_request(&mut pending, &mut input, &mut reassembled, LIMITS, &mut out) {
                    Ok(Some((request, expectation))) => requests.push(format!(
                        "{} {} {} {}{}",
                        request.method,
                        request.target,
                        String::from_utf8_lossy(request.body),
                        expectation.keep_alive,
                        request
                            .headers
                            .iter()
                            .map(|(n, v)| format!(" {n}={v}"))
                            .collect::<String>()
                    )),
                    Ok(None) => break,
                    Err(error) => return (requests, Some(error), String::from_utf8(out).unwrap()),
                }
            }
            assert!(input.is_empty(), "the bytes of an incomplete request are kept");
        }
        if requests.is_empty() {
            assert!(!pending.is_empty());
        }
        (requests, None, String::from_utf8(out).unwrap())
    }

    #[track_caller]
    fn check(bytes: &str, expected: &[&str], error: Option<RequestError>) {
        let bytes = bytes.as_bytes();
        let (requests, found, _) = read(&[bytes]);
        assert_eq!(
            (&requests[..], found),
            (&expected.iter().map(|&one| one.to_owned()).collect::<Vec<_>>()[..], error)
        );
        // Miri runs a few of the cuts.
        for cut in (1..bytes.len()).step_by(if cfg!(miri) { 17 } else { 1 }) {
            let (requests, found, _) = read(&[&bytes[..cut], &bytes[cut..]]);
            assert_eq!((requests.len(), found), (expected.len(), error), "cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let (requests, found, _) = read(&single);
        assert_eq!(
            (&requests[..], found),
            (&expected.iter().map(|&one| one.to_owned()).collect::<Vec<_>>()[..], error)
        );
    }

    #[test]
    fn requests_follow_one_another() {
        check("GET / HTTP/1.1\r\nHost: a\r\n\r\n", &["GET /  true Host=a"], None);
        check(
            "\r\nGET /a?b HTTP/1.1\r\nHost: a\r\n\r\n\
             POST /c HTTP/1.1\r\nhost: a\r\nContent-Length: 5\r\n\r\nhello\
             HEAD / HTTP/1.1\nHost: a\n\n",
            &[
                "GET /a?b  true Host=a",
                "POST /c hello true host=a Content-Length=5",
                "HEAD /  true Host=a",
            ],
            None,
        );
        check(
            "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: foo, Close\r\n\r\n",
            &["OPTIONS *  false Host=a Connection=foo, Close"],
            None,
        );
        check("GET / HTTP/1.0\r\n\r\n", &["GET /  false"], None);
    }

    #[test]
    fn each_bad_head_has_its_own_error() {
        check("hello\r\n\r\n", &[], Some(RequestError::Malformed));
        check("GET / HTTP/1.1\r\nno colon\r\n\r\n", &[], Some(RequestError::Malformed));
        check("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", &[], Some(RequestError::Malformed));
        check("GET / HTTP/1.1\r\nHost : a\r\n\r\n", &[], Some(RequestError::Malformed));
        check("GET / HTTP/2.0\r\nHost: a\r\n\r\n", &[], Some(RequestError::Version));
        check("GET / HTTP/1.1\r\n\r\n", &[], Some(RequestError::Host));
        check("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", &[], Some(RequestError::Host));
        assert_eq!(
            read(&[b"GET / HTTP/1.1\r\nHost: a\r\nX: \xff\r\n\r\n"]).1,
            Some(RequestError::NotUtf8)
        );
    }

    #[test]
    fn bodies_of_unclear_length_are_refused() {
        let post = |fields: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
        check(&post("Content-Length: 1x"), &[], Some(RequestError::ContentLength));
        check(&post("Content-Length: +1"), &[], Some(RequestError::ContentLength));
        check(
            &post("Content-Length: 1\r\nContent-Length: 1"),
            &[],
            Some(RequestError::ContentLength),
        );
        check(
            &post("Content-Length: 1\r\nTransfer-Encoding: chunked"),
            &[],
            Some(RequestError::ContentLength),
        );
        check(&post("Transfer-Encoding: chunked"), &[], Some(RequestError::LengthRequired));
        check(&post("Transfer-Encoding: gzip, chunked"), &[], Some(RequestError::TransferEncoding));
        check(&post("Content-Length: 21"), &[], Some(RequestError::BodyTooLarge));
        check(
            &post("Content-Length: 99999999999999999999999"),
            &[],
            Some(RequestError::BodyTooLarge),
        );
    }

    #[test]
    fn with_one_body_path_every_other_path_refuses_bodies() {
        let limits = RequestLimits { body_path: Some("/poll"), ..LIMITS };
        let error = |target: &str, length: usize| {
            let head =
                format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
            parse_head(head.as_bytes(), limits).err()
        };
        for target in ["/poll", "/poll?a=b", "http://a/poll?a"] {
            assert_eq!(
                (error(target, 20), error(target, 21)),
                (None, Some(RequestError::BodyTooLarge))
            );
        }
        for target in ["/", "/polls", "/poll/", "/?/poll", "/POLL", "http://a/"] {
            assert_eq!(
                (error(target, 0), error(target, 1)),
                (None, Some(RequestError::BodyTooLarge))
            );
        }
    }

    #[test]
    fn long_heads_are_refused_before_they_end() {
        let long = "x".repeat(300);
        check(&format!("GET /{long}"), &[], Some(RequestError::TargetTooLong));
        check(
            &format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"),
            &[],
            Some(RequestError::TargetTooLong),
        );
        check(&format!("GET / HTTP/1.1\r\nHost: {long}"), &[], Some(RequestError::HeadTooLarge));
        check(
            &format!("GET / HTTP/1.1\r\nHost: {long}\r\n\r\n"),
            &[],
            Some(RequestError::HeadTooLarge),
        );
        let fields = "a:\r\n".repeat(65);
        let wide = RequestLimits { head_bytes_max: 8_192, body_bytes_max: 0, body_path: None };
        let head = format!("GET / HTTP/1.1\r\n{fields}\r\n");
        assert_eq!(parse_head(head.as_bytes(), wide).err(), Some(RequestError::HeadTooLarge));
    }

    #[test]
    fn an_expected_continue_is_sent_once() {
        let head =
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
        let (requests, error, out) = read(&[&head[..10], &head[10..], b"he", b"llo"]);
        assert_eq!((requests.len(), error), (1, None));
        assert_eq!(out, "HTTP/1.1 100 Continue\r\n\r\n");
    }
}
