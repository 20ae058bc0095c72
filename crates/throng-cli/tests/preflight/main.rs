//! A test of the preflight. Under a lowered limit, a run holds as many connections as the preflight
//! accepts, and one more is refused.
//!
//! Each test lowers one limit without harm to others: in its own network namespace, by `prlimit`,
//! in a control group, or, for a limit of the whole machine, under the lock of
//! [`Machinewide`](machinewide::Machinewide) for a few seconds.

mod bench;
mod doctor;
mod fds;
mod groups;
#[path = "../causes/stage.rs"]
#[allow(dead_code, reason = "walls and diseases use the rest of it")]
mod machinewide;
mod ports;
mod shared;

/// The result of a wall.
type Provoked = Result<serde_json::Value, String>;
