//! Basic types of all other crates: time as an argument, the connection table, timers, a seeded
//! random number generator, and quantities with units.
//!
//! Nothing here opens a socket, reads a clock or starts a thread.

pub mod heap;
pub mod input_file;
pub mod prng;
pub mod slab;
pub mod time;
pub mod units;
pub mod wheel;

pub use prng::Prng;
pub use slab::{Key, Slab};
pub use time::Instant;
