//! The real server and the real generator against worlds with faults, on virtual time.

mod answers;
mod channels;
mod ends;
mod linux;
mod network;
mod schedule;
mod whole;
mod wire;
