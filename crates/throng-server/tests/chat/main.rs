//! The chat: every client receives every message, and no client can block the others.

#[path = "../support/mod.rs"]
mod support;

mod simulated;
mod sockets;
mod wire;
