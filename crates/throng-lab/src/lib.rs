//! The parts that need both server and generator: the recorder that joins their counters, the
//! calibration, the watch of a server's host, and the labs.
//!
//! [`recorder`] watches a run and writes its run file. [`labs`] lists the bundled experiments and
//! [`run`] runs one: server and generator are processes of this program, and the report compares
//! their results with those of the original article.

mod broadcasts;
mod catalogue;
pub mod ceiling;
mod connect_limit;
mod demo;
mod erlang;
mod error;
mod experiment;
mod fast_receive;
pub mod handshake;
pub mod header;
pub mod isolate;
mod knee;
mod lab;
mod lateness;
mod machine;
mod measure;
mod message_window;
mod options;
pub mod permission;
mod progress;
pub mod rates;
mod reconcile;
pub mod recorder;
mod recovery;
mod report;
mod restart_deliveries;
mod run_content;
mod run_facts;
mod run_preflight;
mod run_watch;
mod sized_scenario;
mod stressgrid_100k;
pub mod test_bed;
mod throughput;
mod user_cost;
pub mod watch;

pub use catalogue::{labs, run};
pub use error::LabError;
pub use options::{LabInfo, LabOptions};
pub use progress::LabProgress;
pub use recorder::facts::{boot_id, net_namespace};
pub use report::{LabReport, LabTable, NextCommand};
pub use run_content::{RunContent, RunResult};
pub use run_preflight::run_preflight;
