//! What a peer did wrong.

use std::fmt;

use crate::http::Fault;

/// Why a connection failed. The close frame or the HTTP status that says so has been appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Something that is not the HTTP which a server can read. Its status was answered.
    Http(Fault),
    /// More than `head_bytes_max` behind a request whose answer is not out yet.
    Impatient,
    /// The server's answer is not HTTP, or its head is longer than `head_bytes_max`.
    Answer,
    /// The server answers 101, but not to this upgrade.
    AnswerUpgrade,
    /// `sec-websocket-accept` is not the answer to the key.
    AnswerKey,
    /// The server chose a subprotocol that was not offered.
    AnswerSubprotocol,
    /// The server chose an extension or a parameter that was not offered.
    AnswerExtension,
    /// A reserved bit without the extension that gives it a meaning.
    ReservedBit,
    /// An opcode without a meaning.
    ReservedOpcode,
    /// A client's frame without a mask.
    Unmasked,
    /// A server's frame with a mask.
    Masked,
    /// A length that fits a shorter form, or is beyond 2^63.
    Length,
    /// A control frame in fragments.
    ControlFragmented,
    /// A control frame of more than 125 bytes.
    ControlTooLong,
    /// A continuation of nothing.
    Continuation,
    /// A message begins inside another.
    Interleaved,
    /// A text or a close reason that is not UTF-8.
    NotUtf8,
    /// A compressed message that cannot be inflated.
    NotDeflate,
    /// A close frame of one byte, or with a code that no endpoint may send.
    CloseCode,
    /// A frame larger than `frame_bytes_max`.
    FrameTooLarge,
    /// A message larger than `message_bytes_max`, inflated or not.
    MessageTooLarge,
    /// A message that has begun and is not whole within `message_timeout_ms`.
    MessageTimeout,
    /// No answer to a close frame within `close_timeout_ms`.
    CloseTimeout,
}

impl Violation {
    /// The close code that says so (RFC 6455 section 7.4.1). It is on the wire for whatever a frame did
    /// wrong; before the upgrade an HTTP status is, and after a close frame nothing.
    pub const fn code(self) -> u16 {
        match self {
            Self::FrameTooLarge | Self::MessageTooLarge => 1009,
            Self::NotUtf8 | Self::NotDeflate => 1007,
            Self::MessageTimeout => 1008,
            Self::CloseTimeout => 1006,
            _ => 1002,
        }
    }

    /// What happened, and where it is forbidden.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Http(_) => "the request cannot be read",
            Self::Impatient => "the client sent more before it was answered (RFC 6455 section 4.1)",
            Self::Answer => "the answer is not HTTP or too long (RFC 6455 section 4.2.2)",
            Self::AnswerUpgrade => "the answer upgrades to something else (RFC 6455 section 4.1)",
            Self::AnswerKey => "sec-websocket-accept does not match the key (RFC 6455 section 4.1)",
            Self::AnswerSubprotocol => "the subprotocol was not offered (RFC 6455 section 4.1)",
            Self::AnswerExtension => "the extension was not offered so (RFC 7692 section 7.1)",
            Self::ReservedBit => "a reserved bit is set (RFC 6455 section 5.2)",
            Self::ReservedOpcode => "an opcode is reserved (RFC 6455 section 5.2)",
            Self::Unmasked => "a client's frame has no mask (RFC 6455 section 5.1)",
            Self::Masked => "a server's frame has a mask (RFC 6455 section 5.1)",
            Self::Length => "a length is not in its shortest form (RFC 6455 section 5.2)",
            Self::ControlFragmented => "a control frame is fragmented (RFC 6455 section 5.5)",
            Self::ControlTooLong => "a control frame is too long (RFC 6455 section 5.5)",
            Self::Continuation => "a continuation continues nothing (RFC 6455 section 5.4)",
            Self::Interleaved => "a message begins inside another (RFC 6455 section 5.4)",
            Self::NotUtf8 => "a text is not UTF-8 (RFC 6455 section 8.1)",
            Self::NotDeflate => "a message cannot be inflated (RFC 7692 section 7.2.2)",
            Self::CloseCode => "a close frame has no legal code (RFC 6455 section 7.4)",
            Self::FrameTooLarge => {
                "a frame is larger than frame_bytes_max (RFC 6455 section 7.4.1)"
            }
            Self::MessageTooLarge => {
                "a message is larger than message_bytes_max (RFC 6455 section 7.4.1)"
            }
            Self::MessageTimeout => {
                "a message was not whole within message_timeout_ms (RFC 6455 section 7.4.1)"
            }
            Self::CloseTimeout => "a close frame was not answered (RFC 6455 section 7.1.2)",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(fault) => fault.fmt(f),
            other => f.write_str(other.sentence()),
        }
    }
}

impl std::error::Error for Violation {}
