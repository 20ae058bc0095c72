//! The errors of a frame: the peer's fault when it is decoded, the caller's when it is encoded.

use std::fmt;

/// A frame that is not a message. Phoenix closes such a connection with code 1011.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameDecodeError {
    /// The text is not JSON (RFC 8259).
    Json {
        /// The expected or the found text.
        what: &'static str,
        /// The offset in the text, in bytes.
        at: usize,
    },
    /// The text is JSON, but not a message of this version.
    Shape(&'static str),
    /// A binary frame is truncated, of an unknown kind, or has a name that is not UTF-8.
    Binary(&'static str),
}

impl fmt::Display for FrameDecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json { what, at } => write!(f, "not JSON at byte {at}: {what}"),
            Self::Shape(what) => write!(f, "not a Phoenix message: {what}"),
            Self::Binary(what) => write!(f, "not a Phoenix binary frame: {what}"),
        }
    }
}

impl std::error::Error for FrameDecodeError {}

/// A frame that cannot be encoded. Nothing was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameEncodeError {
    /// A field is longer than 255 bytes: a binary frame has one byte for its length.
    FieldTooLong {
        /// The name of the field.
        field: &'static str,
        /// The length in bytes.
        bytes: usize,
    },
    /// A binary payload in V1, which has no binary frames.
    BinaryInV1,
}

impl fmt::Display for FrameEncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FieldTooLong { field, bytes } => {
                write!(f, "{field} has {bytes} bytes; a binary frame permits at most 255")
            }
            Self::BinaryInV1 => f.write_str("a binary payload needs vsn 2.0.0"),
        }
    }
}

impl std::error::Error for FrameEncodeError {}
