//! What needs both ends of a test: the recorder that joins their counts, and the labs.
//!
//! [`recorder`] watches a run and writes its run file. [`labs`] lists the bundled experiments and
//! [`run`] runs one: both ends are processes of this same program, and the report puts what they
//! did beside what the original article says.

mod calibrate;
pub mod ceiling;
mod connscale;
mod demo;
mod erlang;
mod fast_connect;
mod fast_receive;
pub mod handshake;
mod haskell_chat;
pub mod isolate;
mod knee;
mod lab;
mod machine;
mod measure;
mod message_window;
mod phoenix_2m;
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

pub use lab::{LabError, LabInfo, LabOptions, LabProgress, labs, run};
pub use report::{LabReport, LabTable, NextCommand, RowDiagnosis};
