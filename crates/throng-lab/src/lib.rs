//! The parts that need both server and generator: the recorder that joins their counters, the
//! calibration, the watch of a server's host, and the labs.
//!
//! [`recorder`] watches a run and writes its run file. [`labs`] lists the bundled experiments and
//! [`run`] runs one: server and generator are processes of this program, and the report compares
//! their results with those of the original article.

mod calibrate;
mod catalogue;
pub mod ceiling;
mod connscale;
mod demo;
mod erlang;
mod error;
mod fast_connect;
mod fast_receive;
pub mod handshake;
mod haskell_chat;
pub mod header;
pub mod isolate;
mod knee;
mod lab;
mod machine;
mod measure;
mod message_window;
mod options;
mod phoenix_2m;
mod progress;
mod reconcile;
mod reconnect_storm;
pub mod recorder;
mod report;
mod rooms;
mod simulated_chat;
mod stressgrid_100k;
mod test_bed;
mod throughput;
mod user_run;
pub mod watch;

pub use catalogue::{labs, run};
pub use error::LabError;
pub use options::{LabInfo, LabOptions};
pub use progress::LabProgress;
pub use report::{LabReport, LabTable, NextCommand, RowDiagnosis};
