//! The load generator.
//!
//! A [`Scenario`](scenario::Scenario) is read from YAML and compiled into a
//! [`Program`](program::Program). A [`LoadPlan`](run::LoadPlan) checks it against the [`capacity`]
//! of this machine and chooses [`source`] addresses. A [`RunningLoad`](run::RunningLoad) runs the
//! plan: each core runs a [`Generator`](generator::Generator), which starts users by its share of
//! the [`schedule`] and takes them through the program. [`fleet_demand`] says what all machines of
//! a run must do together.

pub mod capacity;
pub mod cues;
mod excerpt;
pub mod fleet_demand;
pub mod generator;
mod held;
pub mod peers;
pub mod program;
pub mod protocols;
pub mod run;
pub mod scenario;
pub mod schedule;
pub mod source;
mod steps;
mod user;

pub use held::{HELD_BYTES_EACH, HELD_BYTES_MAX, held_bytes_max};
