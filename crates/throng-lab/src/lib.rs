//! The labs: bundled experiments with both ends on one machine.
//!
//! [`labs`] lists the experiments and [`run`] runs one: server and generator are processes of this
//! program, and the report compares their results with those of the original article.

mod broadcasts;
mod catalogue;
mod connect_limit;
mod demo;
mod erlang;
mod error;
mod experiment;
mod fast_receive;
pub mod handshake;
mod knee;
mod lab;
mod lateness;
mod machine;
mod measure;
mod message_window;
mod options;
mod progress;
mod reconcile;
mod recovery;
mod report;
mod restart_deliveries;
mod run_facts;
mod run_watch;
mod sized_scenario;
mod stressgrid_100k;
mod throughput;
mod user_cost;

pub use catalogue::{labs, run};
pub use error::LabError;
pub use options::{LabInfo, LabOptions};
pub use progress::LabProgress;
pub use report::{LabReport, LabTable, NextCommand};
