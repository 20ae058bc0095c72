//! The real generator against a server of Phoenix Channels that misbehaves by the script, on virtual time: what it did
//! wrong must be found, exactly and under its own name.

mod asks;
mod heartbeats;
mod probes;
mod server;
mod world;
