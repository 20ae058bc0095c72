//! The real server and the real generator against each other, on virtual time.

mod accounts;
mod latency;
mod limits;
mod pair;
