//! The client session: one request at a time, and its response.

use std::io::Write;

use throng_base::Instant;

use super::reader::FIELDS_MAX;
use super::response_head::{BodyFraming, HeadShape, ParsedHead, ResponseHead};
use super::response_limits::{BODY_BYTES_MAX, BODY_EXCERPT_BYTES_MAX};
use super::response_reader::{PartialResponse, ResponseNeeds, ResponseReader};
use super::{Response, ResponseError, write_fields};
use crate::websocket::Scratch;
use crate::{Input, Session};

/// An event from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpEvent<'a> {
    /// The response to the request is complete.
    Response(HttpResponse<'a>),
    /// The response cannot be read: close the connection. Holds its first bytes.
    Failed(ResponseError, &'a [u8]),
    /// Bytes arrived for which there is no request: close the connection (RFC 9112 section 9.2).
    Unasked(&'a [u8]),
}

/// A complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpResponse<'a> {
    /// Its head.
    pub head: Response<'a>,
    /// Its body: all of it, or if the caller does not need it, the first
    /// [`BODY_EXCERPT_BYTES_MAX`].
    pub body: &'a [u8],
    /// The length of the whole body.
    pub body_bytes: u64,
    /// True if the connection may carry another request.
    pub keep_alive: bool,
    /// The fields of the head that are not UTF-8, and were read as ISO 8859-1 (RFC 9110 section
    /// 5.5): a bit each, from the lowest on.
    pub latin1_fields: u64,
    /// Bytes that came with the response and stand behind its end. No request asked for them, so
    /// the start of the next response is unknown.
    pub surplus: &'a [u8],
}

/// A request without its body.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequestHead<'a> {
    /// `GET`, `POST`, ...
    pub method: &'a str,
    /// The request target: `/login?user=7`.
    pub path_and_query: &'a str,
    /// The `host` header: name or address, and the port unless it is 80.
    pub host: &'a str,
    /// The length of the body; `None` for a request without a body.
    pub content_length: Option<usize>,
}

/// The state of a client connection: 16 bytes. It owns heap memory only while a response is
/// incomplete.
///
/// It has no deadline: the caller decides how long a response may take.
#[derive(Debug, Default)]
pub struct HttpClient {
    phase: Phase,
}

#[derive(Debug, Default)]
enum Phase {
    /// No request waits for its response.
    #[default]
    Idle,
    /// No byte of the response has arrived.
    Awaiting(ResponseNeeds),
    Reading(Box<ResponseReader>),
}

/// A response whose body the end of the connection has ended.
#[derive(Debug)]
pub struct FinishedResponse(Box<ResponseReader>);

impl HttpClient {
    /// Creates a session without a request.
    pub const fn new() -> Self {
        Self { phase: Phase::Idle }
    }

    /// Expects the response to a request that the caller has sent. `keeps_body` if it needs the
    /// whole body.
    pub fn expect(&mut self, method: &str, keeps_body: bool) {
        self.phase = Phase::Awaiting(ResponseNeeds { head_only: method == "HEAD", keeps_body });
    }

    /// Reports whether a part of the response has arrived.
    pub const fn has_begun(&self) -> bool {
        matches!(self.phase, Phase::Reading(_))
    }

    /// Returns what has arrived of an incomplete response; `None` if no byte has.
    pub fn part(&self) -> Option<PartialResponse<'_>> {
        match &self.phase {
            Phase::Reading(reading) => Some(reading.part()),
            Phase::Idle | Phase::Awaiting(_) => None,
        }
    }

    /// Ends the input, after the server's FIN. Returns the response if it lasts until the end of
    /// the connection; any other is incomplete.
    pub fn finish(&mut self) -> Option<FinishedResponse> {
        match &self.phase {
            Phase::Reading(reading) if reading.ends_with_connection() => {}
            _ => return None,
        }
        match std::mem::take(&mut self.phase) {
            Phase::Reading(reading) => Some(FinishedResponse(reading)),
            Phase::Idle | Phase::Awaiting(_) => None,
        }
    }
}

impl HttpResponse<'_> {
    /// Reports whether a text of the head's field with this index, from 0, has the bytes that the
    /// server sent. Others are for people alone: the server would not know them.
    pub fn is_verbatim(&self, field: usize, text: &str) -> bool {
        self.latin1_fields >> field.min(FIELDS_MAX - 1) & 1 == 0 || text.is_ascii()
    }
}

impl FinishedResponse {
    /// Returns the response.
    pub fn response(&self) -> Option<HttpResponse<'_>> {
        response_of(&self.0.bytes, self.0.head?, self.0.body_bytes)
    }
}

impl HttpRequestHead<'_> {
    /// Appends the head to `out`, up to its own fields. The caller appends further fields with
    /// [`write_field`], an empty line, and the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.method.as_bytes());
        out.push(b' ');
        // Bytes that would end the target are removed.
        out.extend(self.path_and_query.split(['\r', '\n', ' ']).flat_map(str::bytes));
        out.extend_from_slice(b" HTTP/1.1\r\n");
        write_field("host", self.host, out);
        if let Some(length) = self.content_length {
            // A buffer takes all that is written to it.
            let _ = write!(out, "content-length: {length}\r\n");
        }
    }
}

/// Appends a header field, with line breaks replaced by blanks.
pub fn write_field(name: &str, value: &str, out: &mut Vec<u8>) {
    write_fields(&[(name, value)], out);
}

impl Session for HttpClient {
    type Event<'a> = HttpEvent<'a>;
    type Scratch = Scratch;

    fn next<'a, 'i: 'a>(
        &mut self,
        _now: Instant,
        input: &mut Input<'i>,
        scratch: &'a mut Scratch,
        _out: &mut Vec<u8>,
    ) -> Option<HttpEvent<'a>> {
        if input.is_empty() {
            return None;
        }
        let needs = match &self.phase {
            Phase::Idle => return Some(HttpEvent::Unasked(input.take_all())),
            Phase::Awaiting(needs) => *needs,
            Phase::Reading(_) => return self.read_on(input, scratch),
        };
        match ResponseHead::parse(input.peek(), needs.head_only) {
            Ok(Some(ParsedHead::Utf8(head))) if is_whole(&head, needs, input.peek().len()) => {
                let BodyFraming::Length(body_bytes) = head.framing else { return None };
                let (shape, length) = (head.shape(), head.length + body_bytes as usize);
                let bytes: &'a [u8] = input.take(length);
                self.phase = Phase::Idle;
                finish_input(response_of(bytes, shape, body_bytes), input)
            }
            _ => {
                self.phase =
                    Phase::Reading(Box::new(ResponseReader::new(needs, &scratch.buffers.held)));
                self.read_on(input, scratch)
            }
        }
    }
}

impl HttpClient {
    /// Reads a response that does not arrive in one piece.
    #[cold]
    fn read_on<'a, 'i: 'a>(
        &mut self,
        input: &mut Input<'i>,
        scratch: &'a mut Scratch,
    ) -> Option<HttpEvent<'a>> {
        let Phase::Reading(reading) = &mut self.phase else { return None };
        let read = reading.read(input);
        if let Ok(false) = read {
            return None;
        }
        let mut reading = match std::mem::take(&mut self.phase) {
            Phase::Reading(reading) => *reading,
            Phase::Idle | Phase::Awaiting(_) => return None,
        };
        scratch.buffers.shrink();
        let reassembled = &mut scratch.buffers.reassembled;
        *reassembled = reading.bytes.take();
        match read {
            Err(error) => {
                input.take_all();
                let excerpt = reassembled.len().min(BODY_EXCERPT_BYTES_MAX);
                Some(HttpEvent::Failed(error, &reassembled[..excerpt]))
            }
            Ok(_) => {
                finish_input(response_of(reassembled, reading.head?, reading.body_bytes), input)
            }
        }
    }
}

/// Completes a response. Bytes behind it answer no request, and the connection cannot be used
/// again.
fn finish_input<'a, 'i: 'a>(
    response: Option<HttpResponse<'a>>,
    input: &mut Input<'i>,
) -> Option<HttpEvent<'a>> {
    let surplus = input.take_all();
    let keeps = surplus.is_empty();
    response.map(|response| {
        let keep_alive = response.keep_alive && keeps;
        HttpEvent::Response(HttpResponse { keep_alive, surplus, ..response })
    })
}

/// Reports whether a response is complete in its first `received` bytes, and is passed on as it is.
fn is_whole(head: &ResponseHead<'_>, needs: ResponseNeeds, received: usize) -> bool {
    let body_bytes = match head.framing {
        BodyFraming::Length(length) => length,
        BodyFraming::Chunked | BodyFraming::UntilClose => return false,
    };
    let fits = body_bytes <= BODY_EXCERPT_BYTES_MAX as u64
        || needs.keeps_body && body_bytes <= BODY_BYTES_MAX as u64;
    head.response.status >= 200 && fits && body_bytes <= (received - head.length) as u64
}

/// Returns the response whose head and kept body are `bytes`.
fn response_of(bytes: &[u8], head: HeadShape, body_bytes: u64) -> Option<HttpResponse<'_>> {
    let body = &bytes[head.length..];
    let HeadShape { keep_alive, latin1_fields, .. } = head;
    let head = head.response(bytes)?;
    Some(HttpResponse { head, body, body_bytes, keep_alive, latin1_fields, surplus: &[] })
}

const _: () = assert!(FIELDS_MAX <= 64, "each field has a bit");
const _: () = assert!(size_of::<HttpClient>() <= 16, "a user's protocol is small");

#[cfg(test)]
mod tests;
