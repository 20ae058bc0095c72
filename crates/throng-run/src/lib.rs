//! What makes a run: the recorder that joins the counters of both ends, the calibration, the watch
//! of a server's host, and the processes and network namespaces of runs on one machine.
//!
//! [`recorder`] watches a run and writes its run file. Beforehand, [`run_preflight()`] compares the
//! run with the limits of the machine, and [`ceiling`] measures what the generator can do.

pub mod ceiling;
pub mod header;
pub mod isolate;
pub mod permission;
pub mod rates;
pub mod recorder;
mod run_content;
mod run_preflight;
pub mod test_bed;
pub mod watch;

pub use recorder::facts::{boot_id, net_namespace};
pub use run_content::{RunContent, RunResult};
pub use run_preflight::run_preflight;
