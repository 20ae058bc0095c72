//! The real server and the real generator, on virtual time.

mod accounts;
mod latency;
mod limits;
mod pair;
