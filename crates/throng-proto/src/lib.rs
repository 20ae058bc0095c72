//! Protocols without sockets or clocks: bytes and time go in, events and bytes come out.

mod grow;
pub mod http;
mod input;
pub mod phoenix;
mod raw;
mod session;
pub mod websocket;

pub use input::Input;
pub use raw::Raw;
pub use session::Session;
