//! Why a request cannot be read.

use std::fmt;

/// What is wrong with a request. After any of them the connection is of no use: nobody knows where the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The head is not HTTP.
    Malformed,
    /// The head is not UTF-8. Obsolete text in header values is legal and refused all the same.
    NotUtf8,
    /// HTTP/1.1 without exactly one `host`.
    Host,
    /// A `content-length` that is no number, or several, or one beside a `transfer-encoding`.
    ContentLength,
    /// A body of unknown length (`transfer-encoding: chunked`).
    LengthRequired,
    /// A body longer than `body_bytes_max`, or any at a path that takes none.
    BodyTooLarge,
    /// A request line longer than `head_bytes_max`.
    TargetTooLong,
    /// A head longer than `head_bytes_max`, or of more than 64 fields.
    HeadTooLarge,
    /// A `transfer-encoding` other than chunked.
    TransferEncoding,
    /// Neither HTTP/1.0 nor HTTP/1.1.
    Version,
    /// The request did not arrive in time.
    Timeout,
}

impl Fault {
    /// The status of the answer.
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

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the head is not HTTP/1.1 (RFC 9112 section 2.1)",
            Self::NotUtf8 => "the head is not UTF-8",
            Self::Host => "there must be one host field (RFC 9112 section 3.2)",
            Self::ContentLength => "the length of the body is not clear (RFC 9112 section 6.3)",
            Self::LengthRequired => "a body needs a content-length here (RFC 9110 section 15.5.12)",
            Self::BodyTooLarge => "the body is longer than body_bytes_max allows at this path",
            Self::TargetTooLong => "the target is longer than head_bytes_max",
            Self::HeadTooLarge => "the head is longer than head_bytes_max or has too many fields",
            Self::TransferEncoding => "this transfer-encoding is not known (RFC 9112 section 6.1)",
            Self::Version => "the version is neither HTTP/1.0 nor HTTP/1.1",
            Self::Timeout => "the request did not arrive within handshake_timeout_ms",
        })
    }
}

impl std::error::Error for Fault {}
