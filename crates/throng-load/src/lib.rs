//! The generator: scenario, program, users, pace, source addresses.

pub mod capacity;
pub mod generator;
pub mod program;
pub mod run;
pub mod scenario;
pub mod schedule;
pub mod source;
