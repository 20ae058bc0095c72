//! Phoenix Channels: the messages of client and server, as text (V1, V2), as binary frames (V2) and
//! as long-poll bodies.
//!
//! The codec is pure: the decoders take text or bytes and return a [`PhoenixMessage`] that borrows
//! them; the encoders append to the caller's buffer. The server decides the meaning of a message:
//! who may join, and what the reply is. `phoenix/README.md` describes the path of a message.

pub mod client;
pub mod json;
pub mod longpoll;
pub mod names;

mod binary;
mod decimal;
mod error;
mod message;
mod server;
mod text;
mod vsn;

pub use decimal::Decimal;
pub use error::{FrameDecodeError, FrameEncodeError};
pub use message::{FrameKind, PhoenixMessage, PhoenixPayload};
pub use server::{
    broadcast, channel_closed, channel_crashed, decode_binary, decode_text, push,
    push_without_payload, reply,
};
pub use vsn::{UnknownVsn, Vsn};
