//! The server: its kinds, handlers and topics, on virtual time and on real sockets.
//!
//! `fds` and `private_fds` are targets of their own, because they use up or replace the fd table of
//! their process.

mod accept;
mod channels;
mod chat;
mod client;
mod fairness;
mod fanout;
mod handler;
mod inspect;
mod publish;
mod shared_topics;
mod simulated;
mod steering;
#[path = "../support/mod.rs"]
mod support;
mod wire;
