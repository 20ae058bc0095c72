//! The vocabulary of every other crate: time as an argument, the connection table, timers,
//! a seeded generator of random numbers, and the units that people write.
//!
//! Nothing here opens a socket, reads a clock or starts a thread.

pub mod heap;
pub mod prng;
pub mod slab;
pub mod time;
pub mod units;
pub mod wheel;

pub use prng::Prng;
pub use slab::{Key, Slab};
pub use time::Instant;
