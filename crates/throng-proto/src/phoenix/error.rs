//! What can be wrong with a frame: the peer's fault while decoding, the caller's while encoding.

use std::fmt;

/// The peer sent what is no message. Phoenix closes such a connection with code 1011.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameDecodeError {
    /// The text is not JSON (RFC 8259).
    Json {
        /// What was expected or found.
        what: &'static str,
        /// The byte of the text at which that was seen.
        at: usize,
    },
    /// It is JSON, but no message of this version.
    Shape(&'static str),
    /// A binary frame that is cut short, of an unknown kind, or with a name that is not UTF-8.
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

/// The caller asked for a frame that cannot be written; nothing was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameEncodeError {
    /// A field of a binary frame has a length of one byte: at most 255 bytes.
    FieldTooLong {
        /// Which field.
        field: &'static str,
        /// Its length in bytes.
        bytes: usize,
    },
    /// V1 has no binary frames.
    BinaryInV1,
}

impl fmt::Display for FrameEncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FieldTooLong { field, bytes } => {
                write!(f, "{field} of {bytes} bytes in a binary frame: at most 255")
            }
            Self::BinaryInV1 => f.write_str("a binary payload needs vsn 2.0.0"),
        }
    }
}

impl std::error::Error for FrameEncodeError {}
