//! WebSocket (RFC 6455), both roles, with permessage-deflate (RFC 7692).
//!
//! `websocket/README.md` describes the path of a byte. [`WebSocketServer`] speaks HTTP/1.1 until it
//! accepts an upgrade request; [`WebSocketClient`] sends such a request. After the upgrade both use
//! the same endpoint: frames in, messages out.

mod client;
mod context;
mod deflate;
mod endpoint;
mod extension;
mod frame;
mod header;
mod inflate;
mod limits;
mod mask;
mod opening_handshake;
mod read;
mod reassembly;
mod scratch;
mod server;
mod upgrade;
mod violation;

pub use client::{ClientEvent, ClientHandshake, WebSocketClient};
pub use deflate::Deflater;
pub use extension::{ClientWindowOffer, DeflateAgreement, DeflateOffer};
pub use frame::{Opcode, encode_deflated, encode_fragment, encode_frame};
pub use limits::WebSocketLimits;
pub use scratch::Scratch;
pub use server::{ResponseOutcome, ServerEvent, WebSocketServer};
pub use upgrade::{Refusal, UpgradeRequest, offered_subprotocols};
pub use violation::Violation;
