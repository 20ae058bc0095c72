//! Network protocols without sockets or clocks (sans-IO).
//!
//! A [`Session`] receives bytes and the time, and returns events. The bytes that it sends are
//! appended to the caller's buffer. The protocols are [`Raw`] TCP, HTTP/1.1 ([`http`]), WebSocket
//! ([`websocket`]), and Phoenix Channels ([`phoenix`]).

mod grow;
mod held;
pub mod http;
mod input;
pub mod phoenix;
mod raw;
mod session;
mod transport;
mod transport_error;
pub mod websocket;

pub use held::{HeldBudget, HeldTooMuch};
pub use input::Input;
pub use raw::Raw;
pub use session::Session;
pub use transport::{
    OpenedRecords, SocketTransport, TransportFactory, TransportKey, TransportRole, TransportStatus,
};
pub use transport_error::TransportError;
