//! Servers that share topics over the bus within the process, on real sockets.

#[path = "../support/client.rs"]
#[allow(dead_code)]
mod client;
mod nodes;
#[path = "../support/mod.rs"]
mod support;
#[path = "../chat/wire.rs"]
#[allow(dead_code)]
mod wire;

mod bus_faults;
mod channels;
mod chat;
