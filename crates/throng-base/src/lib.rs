//! Basic types of all other crates: time as an argument, the connection table, timers, a seeded
//! random number generator, quantities with units, files of a limited length, and the characters
//! that no text from outside may bring to a terminal.
//!
//! Nothing here opens a socket, reads a clock or starts a thread.

pub mod heap;
pub mod input_file;
pub mod prng;
pub mod slab;
pub mod time;
pub mod units;
mod unsafe_character;
pub mod wheel;

pub use prng::Prng;
pub use slab::{Key, Slab};
pub use time::Instant;
pub use unsafe_character::is_unsafe;
