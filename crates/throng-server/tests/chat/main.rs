//! The chat: everyone hears everyone, and nobody can keep the others from it.

#[path = "../support/mod.rs"]
mod support;

mod simulated;
mod sockets;
mod wire;
