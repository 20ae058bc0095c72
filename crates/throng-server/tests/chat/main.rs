//! The chat: every client receives every message, and no client can block the others.

// The tests of shared topics use the rest.
#[allow(dead_code)]
#[path = "../support/client.rs"]
mod client;
#[path = "../support/mod.rs"]
mod support;

mod simulated;
mod sockets;
mod wire;
