//! The chat: every client receives every message, and no client can block the others.

mod simulated;
mod sockets;
