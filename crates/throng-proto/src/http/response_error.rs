//! The errors of a response that a client cannot read.

use super::reader::FIELDS_MAX;
use super::response_limits::{BODY_BYTES_MAX, HEAD_BYTES_MAX, INTERIM_RESPONSES_MAX};
use crate::HeldTooMuch;

/// An error that makes a response unreadable: a fault of the server, or a limit of the client. The
/// start of the next response is then unknown, so the connection must close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// The head is not HTTP.
    #[error("the head is not HTTP/1.1 (RFC 9112 section 4)")]
    Malformed,
    /// A head longer than [`HEAD_BYTES_MAX`], or with more than 64 fields. Trailers count too.
    #[error("the head exceeds head_bytes_max ({HEAD_BYTES_MAX}) or {FIELDS_MAX} fields")]
    HeadTooLarge,
    /// More than [`INTERIM_RESPONSES_MAX`] interim responses (1xx) before the response.
    #[error("more than interim_responses_max ({INTERIM_RESPONSES_MAX}) interim responses (1xx)")]
    TooManyInterim,
    /// A body longer than [`BODY_BYTES_MAX`] that the client must keep as a whole.
    #[error("the body exceeds body_bytes_max ({BODY_BYTES_MAX})")]
    BodyTooLarge,
    /// More of a response than the [`HeldBudget`](crate::HeldBudget) of its core has room for.
    #[error("{HeldTooMuch}")]
    HeldTooMuch,
    /// A `content-length` that is not a number, differs from another one, or stands beside a
    /// `transfer-encoding`.
    #[error("the length of the body is ambiguous (RFC 9112 section 6.3)")]
    ContentLength,
    /// A `transfer-encoding` other than `chunked`, or one of HTTP/1.0.
    #[error("the transfer-encoding is not `chunked` (RFC 9112 section 6.1)")]
    TransferEncoding,
    /// A chunk that is malformed.
    #[error("a chunk is malformed (RFC 9112 section 7.1)")]
    Chunk,
    /// The status 101, which no request has asked for.
    #[error("status 101, and no upgrade was asked for (RFC 9110 section 15.2.2)")]
    SwitchedProtocols,
}

impl ResponseError {
    /// Reports whether the response exceeds a limit of the client.
    pub const fn is_limit(self) -> bool {
        matches!(
            self,
            Self::HeadTooLarge | Self::TooManyInterim | Self::BodyTooLarge | Self::HeldTooMuch
        )
    }

    /// Returns the header field that is wrong; `None` if the error is none of a field.
    pub const fn field(self) -> Option<&'static str> {
        match self {
            Self::ContentLength => Some("content-length"),
            Self::TransferEncoding => Some("transfer-encoding"),
            Self::Malformed
            | Self::HeadTooLarge
            | Self::TooManyInterim
            | Self::BodyTooLarge
            | Self::HeldTooMuch
            | Self::Chunk
            | Self::SwitchedProtocols => None,
        }
    }
}

impl From<HeldTooMuch> for ResponseError {
    fn from(_: HeldTooMuch) -> Self {
        Self::HeldTooMuch
    }
}
