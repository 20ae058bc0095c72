//! Servers that share topics over the bus within the process, on real sockets.

mod nodes;

mod bus_faults;
mod channels;
mod chat;
