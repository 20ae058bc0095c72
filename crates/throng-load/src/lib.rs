//! The generator: scenario, program, users, pace, source addresses.

pub mod program;
pub mod scenario;
pub mod schedule;
