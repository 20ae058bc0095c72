//! The labs and the two ends of a run, with real processes.

mod both_ends;
mod common;
mod facts;
mod handshakes;
mod isolate;
mod labs;
