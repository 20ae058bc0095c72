//! Phoenix Channels: what both ends write and read, as text (V1, V2), as binary frames (V2) and as long-poll bodies.
//!
//! The codec is pure: text or bytes in, a [`Message`] that borrows them out; encoders append to the caller's buffer.
//! What a message means (who may join, what is answered) is the server's business. `phoenix/README.md` tells the
//! whole story of a message.

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
    broadcast, channel_closed, channel_crashed, decode_binary, decode_text, push, push_around,
    reply,
};
pub use vsn::{UnknownVsn, Vsn};
