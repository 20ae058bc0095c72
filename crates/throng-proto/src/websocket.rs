//! WebSocket (RFC 6455), both roles, with permessage-deflate (RFC 7692).
//!
//! `websocket/README.md` tells the path of a byte. [`Server`] speaks HTTP/1.1 until a request is accepted as a
//! WebSocket; [`Client`] asks for one. From then on both are one link: frames in, messages out.

mod client;
mod deflate;
mod extension;
mod frame;
mod header;
mod inflate;
mod limits;
mod link;
mod mask;
mod opening;
mod read;
mod reassembly;
mod scratch;
mod server;
mod upgrade;
mod violation;

pub use client::{ClientEvent, ClientHandshake, WebSocketClient};
pub use deflate::Deflater;
pub use frame::{Opcode, encode_deflated, encode_fragment, encode_frame};
pub use limits::WebSocketLimits;
pub use scratch::Scratch;
pub use server::{AnswerHead, ServerEvent, WebSocketServer};
pub use upgrade::{Refusal, UpgradeRequest, offered_subprotocols};
pub use violation::Violation;
