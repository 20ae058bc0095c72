//! Many machines, for real: a NATS server, two servers and three agents, each in a network
//! namespace of its own, and the faults that a fleet meets.
//!
//! Each test makes its own hosts ([`hosts`]) and its own fleet ([`fleet`]), and asserts on the sums
//! of the run file ([`sums`]). Nothing waits for a time: each step waits for what it needs. Without
//! root or without `nats-server`, the tests are skipped, and say so.

mod fleet;
mod hosts;
mod process;
mod sums;

mod equality;
mod faults;
mod refusals;
