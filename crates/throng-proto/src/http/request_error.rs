//! The errors of a request that the server cannot read.

use std::fmt;

/// An error that makes a request unreadable. The start of the next request is then unknown, so the
/// connection must close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The head is not HTTP.
    Malformed,
    /// The head is not UTF-8. Obsolete text in header values is legal, but refused.
    NotUtf8,
    /// An HTTP/1.1 request without exactly one `host` field.
    Host,
    /// A `content-length` that is not a number, occurs twice, or stands beside a
    /// `transfer-encoding`.
    ContentLength,
    /// A body of unknown length (`transfer-encoding: chunked`).
    LengthRequired,
    /// A body longer than `body_bytes_max`, or any body at a path that accepts none.
    BodyTooLarge,
    /// A request line longer than `head_bytes_max`.
    TargetTooLong,
    /// A head longer than `head_bytes_max`, or with more than 64 fields.
    HeadTooLarge,
    /// A `transfer-encoding` other than chunked.
    TransferEncoding,
    /// A version other than HTTP/1.0 and HTTP/1.1.
    Version,
    /// A request that did not arrive whole within `handshake_timeout_ms`.
    Timeout,
}

impl RequestError {
    /// Returns the HTTP status of the response.
    pub const fn status(self) -> u16 {
        match self {
            Self::Malformed | Self::NotUtf8 | Self::Host | Self::ContentLength => 400,
            Self::Timeout => 408,
            Self::LengthRequired => 411,
            Self::BodyTooLarge => 413,
            Self::TargetTooLong => 414,
            Self::HeadTooLarge => 431,
            Self::TransferEncoding => 501,
            Self::Version => 505,
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the head is not HTTP/1.1 (RFC 9112 section 2.1)",
            Self::NotUtf8 => "the head is not UTF-8",
            Self::Host => "an HTTP/1.1 request needs exactly one host field (RFC 9112 section 3.2)",
            Self::ContentLength => "the length of the body is ambiguous (RFC 9112 section 6.3)",
            Self::LengthRequired => {
                "a body needs a content-length field (RFC 9110 section 15.5.12)"
            }
            Self::BodyTooLarge => "the body is longer than body_bytes_max at this path",
            Self::TargetTooLong => "the target is longer than head_bytes_max",
            Self::HeadTooLarge => "the head is longer than head_bytes_max or has too many fields",
            Self::TransferEncoding => {
                "the transfer-encoding is not supported (RFC 9112 section 6.1)"
            }
            Self::Version => "the version is neither HTTP/1.0 nor HTTP/1.1",
            Self::Timeout => "the request did not arrive within handshake_timeout_ms",
        })
    }
}

impl std::error::Error for RequestError {}
