//! The real generator against a scripted server of Phoenix Channels that misbehaves, on virtual
//! time. The generator must report each fault exactly, and under its own name.

mod heartbeats;
mod probes;
mod requests;
mod server;
mod world;
