//! The errors of a frame: the peer's fault when it is decoded, the caller's when it is encoded.

/// A frame that is not a message. Phoenix closes such a connection with code 1011.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameDecodeError {
    /// The text is not JSON (RFC 8259).
    #[error("not JSON at byte {at}: {what}")]
    Json {
        /// The expected or the found text.
        what: &'static str,
        /// The offset in the text, in bytes.
        at: usize,
    },
    /// The text is JSON, but not a message of this version.
    #[error("not a Phoenix message: {0}")]
    Shape(&'static str),
    /// A binary frame is truncated, of an unknown kind, or has a name that is not UTF-8.
    #[error("not a Phoenix binary frame: {0}")]
    Binary(&'static str),
}

/// A frame that cannot be encoded. Nothing was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameEncodeError {
    /// A field is longer than 255 bytes: a binary frame has one byte for its length.
    #[error("{field} has {bytes} bytes; a binary frame permits at most 255")]
    FieldTooLong {
        /// The name of the field.
        field: &'static str,
        /// The length in bytes.
        bytes: usize,
    },
    /// A binary payload in V1, which has no binary frames.
    #[error("a binary payload needs vsn 2.0.0")]
    BinaryInV1,
}
