//! The real server and the real generator, on virtual time.

mod accounts;
mod cues;
mod latency;
mod limits;
mod machines;
mod pair;
mod rates;
mod tls;
