//! The errors of a request that the server cannot read.

/// An error that makes a request unreadable. The start of the next request is then unknown, so the
/// connection must close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The head is not HTTP.
    #[error("the head is not HTTP/1.1 (RFC 9112 section 2.1)")]
    Malformed,
    /// The head is not UTF-8. Obsolete text in header values is legal, but refused.
    #[error("the head is not UTF-8")]
    NotUtf8,
    /// An HTTP/1.1 request without exactly one `host` field.
    #[error("an HTTP/1.1 request needs exactly one host field (RFC 9112 section 3.2)")]
    Host,
    /// A `content-length` that is not a number, occurs twice, or stands beside a
    /// `transfer-encoding`.
    #[error("the length of the body is ambiguous (RFC 9112 section 6.3)")]
    ContentLength,
    /// A body of unknown length (`transfer-encoding: chunked`).
    #[error("a body needs a content-length field (RFC 9110 section 15.5.12)")]
    LengthRequired,
    /// A body longer than `body_bytes_max`, or any body at a path that accepts none.
    #[error("the body is longer than body_bytes_max at this path")]
    BodyTooLarge,
    /// A request line longer than `head_bytes_max`.
    #[error("the target is longer than head_bytes_max")]
    TargetTooLong,
    /// A head longer than `head_bytes_max`, or with more than 64 fields.
    #[error("the head is longer than head_bytes_max or has too many fields")]
    HeadTooLarge,
    /// A `transfer-encoding` other than chunked.
    #[error("the transfer-encoding is not supported (RFC 9112 section 6.1)")]
    TransferEncoding,
    /// A version other than HTTP/1.0 and HTTP/1.1.
    #[error("the version is neither HTTP/1.0 nor HTTP/1.1")]
    Version,
    /// A request that did not arrive whole within `handshake_timeout_ms`.
    #[error("the request did not arrive within handshake_timeout_ms")]
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
