//! The preflight put to the test: with a limit made small, as many connections as it accepts are really held, and one more is refused.
//!
//! Each test makes one limit small where that harms nobody: in a network namespace of its own, by `prlimit`, in a control group, or,
//! for what is the machine's own, under the lock of [`Machinewide`](machinewide::Machinewide) for a few seconds.

mod bench;
mod doctor;
mod fds;
mod groups;
#[path = "../walls/stage.rs"]
#[allow(dead_code, reason = "the walls use the rest of it")]
mod machinewide;
mod ports;
mod shared;

/// What a wall gives back.
type Provoked = Result<serde_json::Value, String>;
