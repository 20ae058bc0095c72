//! WebSocket sessions, driven as an engine drives them: bytes and time in, events and bytes out.

mod client;
mod frames;
mod http;
mod peer;
mod properties;
mod support;
