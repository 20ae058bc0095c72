//! The violations of the protocol by a peer.

use std::fmt;

use crate::http::RequestError;

/// The reason why a connection failed. The session has appended the close frame or the HTTP
/// response that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A request that the server cannot read. The session has appended the response with its
    /// status.
    Http(RequestError),
    /// More than `head_bytes_max` bytes after a request whose response is not out yet.
    DataBeforeResponse,
    /// The server's response is not HTTP.
    ResponseInvalid,
    /// The head of the server's response is longer than `head_bytes_max`.
    ResponseHeadTooLong,
    /// The server's response is 101, but not to a WebSocket upgrade.
    ResponseUpgrade,
    /// The value of `sec-websocket-accept` does not match the key.
    ResponseKey,
    /// The server chose a subprotocol that was not offered.
    ResponseSubprotocol,
    /// The server chose an extension that was not offered, or several.
    ResponseExtension,
    /// The parameters that the server chose for permessage-deflate are illegal, or do not fit the
    /// offer.
    ResponseDeflate,
    /// A reserved bit without the extension that defines it.
    ReservedBit,
    /// A reserved opcode.
    ReservedOpcode,
    /// A client's frame without a mask.
    Unmasked,
    /// A server's frame with a mask.
    Masked,
    /// A length that fits a shorter form, or exceeds 2^63.
    Length,
    /// A fragmented control frame.
    ControlFragmented,
    /// A control frame of more than 125 bytes.
    ControlTooLong,
    /// A continuation frame without a message to continue.
    Continuation,
    /// The start of a message inside another message.
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
    /// A message that inflates by more than `inflate_ratio_max`.
    InflateRatio,
    /// More of a message than the [`HeldBudget`](crate::HeldBudget) of its core has room for.
    HeldTooMuch,
    /// A message that has begun and is not complete within `message_timeout_ms`.
    MessageTimeout,
    /// No answer to a close frame within `close_timeout_ms`.
    CloseTimeout,
}

impl Violation {
    /// Returns the close code (RFC 6455 section 7.4.1). A close frame carries it if a frame was
    /// wrong. Before the upgrade an HTTP status is sent instead, and after a close frame nothing.
    pub const fn code(self) -> u16 {
        match self {
            Self::FrameTooLarge
            | Self::MessageTooLarge
            | Self::InflateRatio
            | Self::HeldTooMuch => 1009,
            Self::NotUtf8 | Self::NotDeflate => 1007,
            Self::MessageTimeout => 1008,
            Self::CloseTimeout => 1006,
            _ => 1002,
        }
    }

    /// Reports whether the peer exceeded a limit of this endpoint by the size of its messages.
    pub const fn is_too_large(self) -> bool {
        matches!(self, Self::FrameTooLarge | Self::MessageTooLarge | Self::HeldTooMuch)
    }

    /// Returns the header field of a server's response that is wrong, in lower case.
    pub const fn field(self) -> Option<&'static str> {
        match self {
            Self::ResponseUpgrade => Some("upgrade"),
            Self::ResponseKey => Some("sec-websocket-accept"),
            Self::ResponseSubprotocol => Some("sec-websocket-protocol"),
            Self::ResponseExtension | Self::ResponseDeflate => Some("sec-websocket-extensions"),
            _ => None,
        }
    }

    /// Describes the violation, with the section that forbids it.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Http(_) => "the request cannot be read",
            Self::DataBeforeResponse => {
                "the client sent data before the response (RFC 6455 section 4.1)"
            }
            Self::ResponseInvalid => "the response is not HTTP (RFC 6455 section 4.2.2)",
            Self::ResponseHeadTooLong => {
                "the head of the response is longer than head_bytes_max (RFC 6455 section 4.2.2)"
            }
            Self::ResponseUpgrade => {
                "the response upgrades to another protocol (RFC 6455 section 4.1)"
            }
            Self::ResponseKey => {
                "sec-websocket-accept does not match the key (RFC 6455 section 4.1)"
            }
            Self::ResponseSubprotocol => {
                "the response has a subprotocol that was not offered (RFC 6455 section 4.1)"
            }
            Self::ResponseExtension => {
                "the response has an extension that was not offered (RFC 7692 section 7.1)"
            }
            Self::ResponseDeflate => {
                "a parameter of permessage-deflate in the response does not fit the offer (RFC \
                 7692 section 7.1)"
            }
            Self::ReservedBit => "a reserved bit is set (RFC 6455 section 5.2)",
            Self::ReservedOpcode => "an opcode is reserved (RFC 6455 section 5.2)",
            Self::Unmasked => "a client's frame has no mask (RFC 6455 section 5.1)",
            Self::Masked => "a server's frame has a mask (RFC 6455 section 5.1)",
            Self::Length => "a length is not in its shortest form (RFC 6455 section 5.2)",
            Self::ControlFragmented => "a control frame is fragmented (RFC 6455 section 5.5)",
            Self::ControlTooLong => "a control frame is too long (RFC 6455 section 5.5)",
            Self::Continuation => {
                "a continuation frame has no message to continue (RFC 6455 section 5.4)"
            }
            Self::Interleaved => "a message begins inside another (RFC 6455 section 5.4)",
            Self::NotUtf8 => "a text is not UTF-8 (RFC 6455 section 8.1)",
            Self::NotDeflate => "a message cannot be inflated (RFC 7692 section 7.2.2)",
            Self::CloseCode => "the code of a close frame is not valid (RFC 6455 section 7.4)",
            Self::FrameTooLarge => {
                "a frame is larger than frame_bytes_max (RFC 6455 section 7.4.1)"
            }
            Self::MessageTooLarge => {
                "a message is larger than message_bytes_max (RFC 6455 section 7.4.1)"
            }
            Self::InflateRatio => {
                "a message inflates by more than inflate_ratio_max (RFC 6455 section 7.4.1)"
            }
            Self::HeldTooMuch => {
                "the messages that have begun exceed held_bytes_max (RFC 6455 section 7.4.1)"
            }
            Self::MessageTimeout => {
                "a message was not complete within message_timeout_ms (RFC 6455 section 7.4.1)"
            }
            Self::CloseTimeout => "a close frame was not answered (RFC 6455 section 7.1.2)",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(fault) => fault.fmt(f),
            other => f.write_str(other.description()),
        }
    }
}

impl std::error::Error for Violation {}
