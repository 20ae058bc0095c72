//! Protocols without sockets or clocks: bytes and time go in, events and bytes come out.

mod input;
mod raw;
mod session;

pub use input::Input;
pub use raw::Raw;
pub use session::Session;
