//! Requests out of a stream of bytes.

use std::mem::MaybeUninit;

use crate::Input;
use crate::grow;
use crate::http::headers::{has_member, members};
use crate::http::request::path_of;
use crate::http::{Fault, Headers, Request};

/// Header fields in one head; the parser's table of them is on the stack.
pub(crate) const FIELDS_MAX: usize = 64;

/// How long a request may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds<'a> {
    pub(crate) head_bytes_max: usize,
    pub(crate) body_bytes_max: usize,
    /// The one path at which a request may have a body; none for every path.
    pub(crate) body_path: Option<&'a str>,
}

impl Bounds<'_> {
    /// How long the body of a request to `target` may be.
    fn body_bytes_max(&self, target: &str) -> usize {
        match self.body_path {
            Some(path) if path != path_of(target) => 0,
            _ => self.body_bytes_max,
        }
    }
}

/// What was received and cannot be read yet: a request that is not whole, or what is behind one that is not answered.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    bytes: Vec<u8>,
    /// Head and body together, once the head is whole.
    length: Option<usize>,
}

/// What the client expects of the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResponseExpectation {
    /// The connection stays open.
    pub(crate) keep_alive: bool,
    /// The answer to `HEAD` has no body.
    pub(crate) head_only: bool,
    /// HTTP/1.1, which can be upgraded.
    pub(crate) is_11: bool,
}

/// The next request of `input`, if it is whole: lent from there if it arrived whole, else from `whole`. All of `input` is
/// consumed and kept in `partial` otherwise.
pub(crate) fn read_request<'a, 'i: 'a>(
    partial: &mut Partial,
    input: &mut Input<'i>,
    whole: &'a mut Vec<u8>,
    bounds: Bounds<'_>,
    out: &mut Vec<u8>,
) -> Result<Option<(Request<'a>, ResponseExpectation)>, Fault> {
    let known = partial.bytes.len();
    if known == 0 {
        let shape = measure(input.peek(), bounds)?;
        if let Some(shape) = shape.filter(|shape| shape.length() <= input.peek().len()) {
            return build(input.take(shape.length()), shape).map(Some);
        }
        partial.expect(shape, out);
        partial.keep(input.take_all());
        return Ok(None);
    }
    let received = known + input.peek().len();
    partial.keep(input.peek());
    // A head is looked at anew for each receive, so that a bad one fails as soon as it can: even byte by
    // byte that is cheaper than receiving. A body is waited for.
    if partial.length.is_some_and(|length| received < length) {
        input.take_all();
        return Ok(None);
    }
    let shape = match measure(&partial.bytes, bounds)? {
        Some(shape) if shape.length() <= received => shape,
        shape => {
            input.take_all();
            partial.expect(shape, out);
            return Ok(None);
        }
    };
    let length = shape.length();
    if length >= known {
        input.take(length - known);
        partial.bytes.truncate(length);
        *whole = std::mem::take(partial).bytes;
    } else {
        // Several requests were kept while an answer was awaited.
        partial.bytes.truncate(known);
        whole.clear();
        whole.extend(partial.bytes.drain(..length));
    }
    build(whole, shape).map(Some)
}

impl Partial {
    /// Keeps bytes for later, and says how many there are now.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> usize {
        grow::append(&mut self.bytes, bytes, self.length.unwrap_or(usize::MAX));
        self.bytes.len()
    }

    /// All that is kept, which is then nothing.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(self).bytes
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Remembers the length of the whole, and tells a client that waits with its body to send it.
    fn expect(&mut self, shape: Option<Shape>, out: &mut Vec<u8>) {
        if let Some(shape) = shape {
            self.length = Some(shape.length());
            if shape.continues {
                out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
        }
    }
}

/// What a head says of itself.
#[derive(Clone, Copy)]
struct Shape {
    head: usize,
    body: usize,
    awaited: ResponseExpectation,
    continues: bool,
}

impl Shape {
    const fn length(&self) -> usize {
        self.head + self.body
    }
}

/// Checks the head at the start of `bytes`; nothing while it is not whole.
fn measure(bytes: &[u8], bounds: Bounds<'_>) -> Result<Option<Shape>, Fault> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut []);
    let head = match parsed.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(httparse::Status::Complete(head)) if head <= bounds.head_bytes_max => head,
        Ok(httparse::Status::Partial) if bytes.len() <= bounds.head_bytes_max => return Ok(None),
        Ok(_) => {
            let line = bytes.iter().take(bounds.head_bytes_max).any(|&byte| byte == b'\n');
            return Err(if line { Fault::HeadTooLarge } else { Fault::TargetTooLong });
        }
        Err(httparse::Error::TooManyHeaders) => return Err(Fault::HeadTooLarge),
        Err(httparse::Error::Version) => return Err(Fault::Version),
        Err(_) => return Err(Fault::Malformed),
    };
    let is_11 = parsed.version == Some(1);
    let body_bytes_max = bounds.body_bytes_max(parsed.path.unwrap_or_default()) as u64;
    let mut shape = Shape {
        head,
        body: 0,
        awaited: ResponseExpectation {
            keep_alive: is_11,
            head_only: parsed.method == Some("HEAD"),
            is_11,
        },
        continues: false,
    };
    let (mut hosts, mut length, mut coding) = (0, None, None);
    for field in parsed.headers.iter() {
        let value = || str::from_utf8(field.value).map_err(|_| Fault::NotUtf8);
        match field.name.len() {
            4 if field.name.eq_ignore_ascii_case("host") => hosts += 1,
            6 if field.name.eq_ignore_ascii_case("expect") => {
                shape.continues = is_11 && value()?.eq_ignore_ascii_case("100-continue");
            }
            10 if field.name.eq_ignore_ascii_case("connection") => {
                shape.awaited.keep_alive &= !has_member(value()?, "close");
            }
            14 if field.name.eq_ignore_ascii_case("content-length") => {
                let number = number(value()?).ok_or(Fault::ContentLength)?;
                if length.replace(number).is_some() {
                    return Err(Fault::ContentLength);
                }
            }
            17 if field.name.eq_ignore_ascii_case("transfer-encoding") => coding = Some(value()?),
            _ => {}
        }
    }
    match (length, coding) {
        _ if is_11 && hosts != 1 => Err(Fault::Host),
        (Some(_), Some(_)) => Err(Fault::ContentLength),
        (None, Some(coding)) if members(coding).all(|one| one.eq_ignore_ascii_case("chunked")) => {
            Err(Fault::LengthRequired)
        }
        (None, Some(_)) => Err(Fault::TransferEncoding),
        (Some(body), None) if body > body_bytes_max => Err(Fault::BodyTooLarge),
        (length, None) => {
            shape.body = length.unwrap_or(0) as usize;
            Ok(Some(shape))
        }
    }
}

/// The request in `bytes`, which are exactly those that were measured.
fn build(bytes: &[u8], shape: Shape) -> Result<(Request<'_>, ResponseExpectation), Fault> {
    let (head, body) = bytes.split_at(shape.head);
    let head = simdutf8::basic::from_utf8(head).map_err(|_| Fault::NotUtf8)?;
    let (line, lines) =
        head.trim_start_matches(['\r', '\n']).split_once('\n').ok_or(Fault::Malformed)?;
    let mut words = line.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(Fault::Malformed);
    };
    let headers = Headers::new(lines);
    Ok((Request { method, target, headers, body }, shape.awaited))
}

/// Digits and nothing else: no sign, no blank.
fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // A number beyond 2^64 is as much too large as any other.
    Some(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds<'_> = Bounds { head_bytes_max: 200, body_bytes_max: 20, body_path: None };

    /// What is read out of `pieces`, received one after the other: `METHOD target body keep-alive` each, then the fault.
    fn read(pieces: &[&[u8]]) -> (Vec<String>, Option<Fault>, String) {
        let (mut partial, mut whole, mut out) = (Partial::default(), Vec::new(), Vec::new());
        let mut requests = Vec::new();
        for piece in pieces {
            let mut bytes = piece.to_vec();
            let mut input = Input::new(&mut bytes);
            loop {
                match read_request(&mut partial, &mut input, &mut whole, BOUNDS, &mut out) {
                    Ok(Some((request, awaited))) => requests.push(format!(
                        "{} {} {} {}{}",
                        request.method,
                        request.target,
                        String::from_utf8_lossy(request.body),
                        awaited.keep_alive,
                        request
                            .headers
                            .iter()
                            .map(|(n, v)| format!(" {n}={v}"))
                            .collect::<String>()
                    )),
                    Ok(None) => break,
                    Err(fault) => return (requests, Some(fault), String::from_utf8(out).unwrap()),
                }
            }
            assert!(input.is_empty(), "what is not whole is kept");
        }
        if requests.is_empty() {
            assert!(!partial.is_empty());
        }
        (requests, None, String::from_utf8(out).unwrap())
    }

    #[track_caller]
    fn check(bytes: &str, expected: &[&str], fault: Option<Fault>) {
        let bytes = bytes.as_bytes();
        let (requests, found, _) = read(&[bytes]);
        assert_eq!(
            (&requests[..], found),
            (&expected.iter().map(|&one| one.to_owned()).collect::<Vec<_>>()[..], fault)
        );
        // An interpreter is given a few of the cuts.
        for cut in (1..bytes.len()).step_by(if cfg!(miri) { 17 } else { 1 }) {
            let (requests, found, _) = read(&[&bytes[..cut], &bytes[cut..]]);
            assert_eq!((requests.len(), found), (expected.len(), fault), "cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let (requests, found, _) = read(&single);
        assert_eq!(
            (&requests[..], found),
            (&expected.iter().map(|&one| one.to_owned()).collect::<Vec<_>>()[..], fault)
        );
    }

    #[test]
    fn requests_follow_one_another() {
        check("GET / HTTP/1.1\r\nHost: a\r\n\r\n", &["GET /  true Host=a"], None);
        check(
            "\r\nGET /a?b HTTP/1.1\r\nHost: a\r\n\r\nPOST /c HTTP/1.1\r\nhost: a\r\nContent-Length: 5\r\n\r\nhelloHEAD / HTTP/1.1\nHost: a\n\n",
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
    fn bad_heads_are_told_apart() {
        check("hello\r\n\r\n", &[], Some(Fault::Malformed));
        check("GET / HTTP/1.1\r\nno colon\r\n\r\n", &[], Some(Fault::Malformed));
        check("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", &[], Some(Fault::Malformed));
        check("GET / HTTP/1.1\r\nHost : a\r\n\r\n", &[], Some(Fault::Malformed));
        check("GET / HTTP/2.0\r\nHost: a\r\n\r\n", &[], Some(Fault::Version));
        check("GET / HTTP/1.1\r\n\r\n", &[], Some(Fault::Host));
        check("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", &[], Some(Fault::Host));
        assert_eq!(
            read(&[b"GET / HTTP/1.1\r\nHost: a\r\nX: \xff\r\n\r\n"]).1,
            Some(Fault::NotUtf8)
        );
    }

    #[test]
    fn bodies_of_unclear_length_are_refused() {
        let post = |fields: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
        check(&post("Content-Length: 1x"), &[], Some(Fault::ContentLength));
        check(&post("Content-Length: +1"), &[], Some(Fault::ContentLength));
        check(&post("Content-Length: 1\r\nContent-Length: 1"), &[], Some(Fault::ContentLength));
        check(
            &post("Content-Length: 1\r\nTransfer-Encoding: chunked"),
            &[],
            Some(Fault::ContentLength),
        );
        check(&post("Transfer-Encoding: chunked"), &[], Some(Fault::LengthRequired));
        check(&post("Transfer-Encoding: gzip, chunked"), &[], Some(Fault::TransferEncoding));
        check(&post("Content-Length: 21"), &[], Some(Fault::BodyTooLarge));
        check(&post("Content-Length: 99999999999999999999999"), &[], Some(Fault::BodyTooLarge));
    }

    #[test]
    fn where_bodies_have_one_path_any_other_takes_none() {
        let bounds = Bounds { body_path: Some("/poll"), ..BOUNDS };
        let fault = |target: &str, length: usize| {
            let head =
                format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
            measure(head.as_bytes(), bounds).err()
        };
        for target in ["/poll", "/poll?a=b", "http://a/poll?a"] {
            assert_eq!((fault(target, 20), fault(target, 21)), (None, Some(Fault::BodyTooLarge)));
        }
        for target in ["/", "/polls", "/poll/", "/?/poll", "/POLL", "http://a/"] {
            assert_eq!((fault(target, 0), fault(target, 1)), (None, Some(Fault::BodyTooLarge)));
        }
    }

    #[test]
    fn long_heads_are_refused_before_they_end() {
        let long = "x".repeat(300);
        check(&format!("GET /{long}"), &[], Some(Fault::TargetTooLong));
        check(&format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), &[], Some(Fault::TargetTooLong));
        check(&format!("GET / HTTP/1.1\r\nHost: {long}"), &[], Some(Fault::HeadTooLarge));
        check(&format!("GET / HTTP/1.1\r\nHost: {long}\r\n\r\n"), &[], Some(Fault::HeadTooLarge));
        let fields = "a:\r\n".repeat(65);
        let wide = Bounds { head_bytes_max: 8_192, body_bytes_max: 0, body_path: None };
        let head = format!("GET / HTTP/1.1\r\n{fields}\r\n");
        assert_eq!(measure(head.as_bytes(), wide).err(), Some(Fault::HeadTooLarge));
    }

    #[test]
    fn a_client_that_waits_with_its_body_is_told_to_send_it_once() {
        let head =
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
        let (requests, fault, out) = read(&[&head[..10], &head[10..], b"he", b"llo"]);
        assert_eq!((requests.len(), fault), (1, None));
        assert_eq!(out, "HTTP/1.1 100 Continue\r\n\r\n");
    }
}
