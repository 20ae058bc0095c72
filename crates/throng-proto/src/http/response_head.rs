//! The head of a response as a client reads it: where the body ends, and what follows it.

use std::mem::MaybeUninit;

use super::headers::{has_list_member, list_members};
use super::reader::FIELDS_MAX;
use super::response_limits::HEAD_BYTES_MAX;
use super::{Headers, Response, ResponseError};

/// A complete head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResponseHead<'a> {
    pub(super) response: Response<'a>,
    /// Its length in bytes.
    pub(super) length: usize,
    pub(super) framing: BodyFraming,
    /// True if the connection may carry another request after the body.
    pub(super) keep_alive: bool,
}

/// A complete head at the start of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParsedHead<'a> {
    Utf8(ResponseHead<'a>),
    /// A head of this length that is not UTF-8. Its values have bytes from 0x80 on, which stand for
    /// characters of ISO 8859-1 (RFC 9110 section 5.5).
    Latin1 {
        length: usize,
    },
}

/// What is known of a head that has been parsed, apart from its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadShape {
    pub(super) status: u16,
    /// Beginning of its fields.
    pub(super) fields_at: usize,
    pub(super) length: usize,
    pub(super) keep_alive: bool,
    /// Its fields that are not UTF-8, and were read as ISO 8859-1: a bit each, from the lowest on.
    pub(super) latin1_fields: u64,
}

/// The end of a body (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFraming {
    /// After this many bytes.
    Length(u64),
    /// After the last chunk.
    Chunked,
    /// At the end of the connection.
    UntilClose,
}

impl<'a> ResponseHead<'a> {
    /// Parses the head at the start of `bytes`; returns `None` while it is incomplete. With
    /// `head_only`, the request was `HEAD`, whose response has no body.
    pub(super) fn parse(
        bytes: &'a [u8],
        head_only: bool,
    ) -> Result<Option<ParsedHead<'a>>, ResponseError> {
        Self::parse_within(bytes, head_only, HEAD_BYTES_MAX)
    }

    /// Parses a head of at most `bytes_max`.
    pub(super) fn parse_within(
        bytes: &'a [u8],
        head_only: bool,
        bytes_max: usize,
    ) -> Result<Option<ParsedHead<'a>>, ResponseError> {
        let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
        let mut parsed = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        let read = config.parse_response_with_uninit_headers(&mut parsed, bytes, &mut fields);
        let length = match read {
            Ok(httparse::Status::Complete(length)) if length <= bytes_max => length,
            Ok(httparse::Status::Partial) if bytes.len() <= bytes_max => return Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => {
                return Err(ResponseError::HeadTooLarge);
            }
            Err(_) => return Err(ResponseError::Malformed),
        };
        let status = parsed.code.ok_or(ResponseError::Malformed)?;
        let is_http_11 = parsed.version == Some(1);
        let Ok(head) = simdutf8::basic::from_utf8(&bytes[..length]) else {
            return Ok(Some(ParsedHead::Latin1 { length }));
        };
        let lines = head.trim_start_matches(['\r', '\n']).split_once('\n');
        let headers = Headers::new(lines.map_or("", |(_, rest)| rest));
        let framing = framing(headers, is_http_11)?;
        let has_body = !head_only && status >= 200 && status != 204 && status != 304;
        let framing = if has_body { framing } else { BodyFraming::Length(0) };
        let closes = headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("connection"))
            .any(|(_, value)| has_list_member(value, "close"));
        let keep_alive = is_http_11 && !closes && framing != BodyFraming::UntilClose;
        let response = Response { status, headers };
        Ok(Some(ParsedHead::Utf8(Self { response, length, framing, keep_alive })))
    }

    /// Returns what finds its parts in its bytes again.
    pub(super) const fn shape(&self) -> HeadShape {
        let Response { status, headers } = self.response;
        let fields_at = self.length - headers.lines().len();
        let (length, keep_alive) = (self.length, self.keep_alive);
        HeadShape { status, fields_at, length, keep_alive, latin1_fields: 0 }
    }
}

impl HeadShape {
    /// Returns the response whose head is at the start of `bytes`: those that were parsed.
    pub(super) fn response(self, bytes: &[u8]) -> Option<Response<'_>> {
        let fields = simdutf8::basic::from_utf8(bytes.get(self.fields_at..self.length)?).ok()?;
        Some(Response { status: self.status, headers: Headers::new(fields) })
    }
}

/// Returns where a body ends by its fields.
fn framing(headers: Headers<'_>, is_http_11: bool) -> Result<BodyFraming, ResponseError> {
    let (mut length, mut is_chunked) = (None, None);
    for (name, value) in headers.iter() {
        if name.eq_ignore_ascii_case("content-length") {
            // The same length twice is legal (RFC 9110 section 8.6).
            for member in value.split(',') {
                let number = number(member.trim_ascii()).ok_or(ResponseError::ContentLength)?;
                if length.replace(number).is_some_and(|other| other != number) {
                    return Err(ResponseError::ContentLength);
                }
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            for coding in list_members(value) {
                if is_chunked.is_some() || !coding.eq_ignore_ascii_case("chunked") {
                    return Err(ResponseError::TransferEncoding);
                }
                is_chunked = Some(());
            }
        }
    }
    match (length, is_chunked) {
        (Some(_), Some(())) => Err(ResponseError::ContentLength),
        (None, Some(())) if !is_http_11 => Err(ResponseError::TransferEncoding),
        (None, Some(())) => Ok(BodyFraming::Chunked),
        (Some(length), None) => Ok(BodyFraming::Length(length)),
        (None, None) => Ok(BodyFraming::UntilClose),
    }
}

/// Parses digits only: no sign, no blank.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}
