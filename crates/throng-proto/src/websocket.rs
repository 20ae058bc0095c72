//! WebSocket (RFC 6455), both roles, with permessage-deflate (RFC 7692).

mod client;
mod deflate;
mod frame;
mod limits;
mod scratch;
mod server;
mod upgrade;
mod violation;

pub use client::{Client, ClientEvent, ClientHandshake};
pub use deflate::Deflater;
pub use frame::{Opcode, encode_deflated, encode_frame};
pub use limits::Limits;
pub use scratch::Scratch;
pub use server::{Server, ServerEvent};
pub use upgrade::{Refusal, Upgrade, offered_subprotocols};
pub use violation::Violation;
