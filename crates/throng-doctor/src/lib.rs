//! Facts of the kernel, and conclusions from them.
//!
//! Facts in: limits, sysctls, counters, control groups, listeners. Parsers are pure
//! (`parse(&str)`), one kernel file each. [`ProcRoot`] reads the files; [`Fact`] keeps "unknown,
//! because …" apart from zero. [`Sampler`] reads once a second what a run records, [`MachineFacts`]
//! reads once what does not change.
//!
//! Conclusions out: a [`History`] keeps what a run recorded, [`rules`] look at it as a [`RunView`],
//! and [`diagnose`] ranks their findings and sums them up in one sentence.

pub mod cgroup;
pub mod conntrack;
mod counted;
pub mod cpu;
mod cpu_waits;
mod cpus;
mod diagnosis;
mod endpoint_facts;
mod fact;
pub mod fds;
pub mod files;
mod finding_machines;
mod first_error;
mod fleet_machines;
mod gaps;
mod headroom;
mod history;
mod impact;
mod import_verdict;
mod kernels;
pub mod limits;
mod listener_scope;
mod listeners;
mod loss_onset;
mod machine_facts;
mod median;
pub mod meminfo;
mod missed_thresholds;
pub mod netdev;
pub mod netstat;
mod other_programs;
mod outages;
pub mod owner;
pub mod plan;
pub mod ports;
pub mod preflight;
pub mod pressure;
mod proc_root;
pub mod process;
mod progress;
pub mod rules;
mod run_view;
mod runtime;
mod sampler;
pub mod slabinfo;
mod socket_count_meter;
pub mod sockstat;
pub mod softnet;
pub mod status;
mod steady_load;
pub mod sysctl;
pub mod tcp_hash;
mod text;
mod thread_kind;
mod trend;
mod trouble_counters;
mod two_modes;
mod verdict;

pub use diagnosis::{diagnose, diagnose_without_load};
pub use endpoint_facts::endpoint_facts;
pub use fact::{Fact, ParseFailure, Reason, Unknown};
pub use headroom::{Headroom, headroom};
pub use history::{History, Quantiles, Sample};
pub use impact::{Impact, impact};
pub use listener_scope::{ListenerScope, listeners_elsewhere};
pub use listeners::{ListenerReader, ListenerSummary};
pub use machine_facts::MachineFacts;
pub use owner::listening_process;
pub use proc_root::{KeptFile, ProcRoot};
pub use run_view::{LoadLevel, RunView};
pub use runtime::runtime;
pub use sampler::{KernelSample, ProcessSample, Sampler, SamplerOptions, WatchedProcess};
pub use socket_count_meter::SocketCountMeter;
pub use trouble_counters::{trouble_between, trouble_counters, troubles_of_kernel};

/// Returns the `/proc` root of a recorded tree in `tests/data`.
#[cfg(test)]
fn recorded_root(kernel: &str) -> ProcRoot {
    ProcRoot::new(format!("{}/tests/data/{kernel}", env!("CARGO_MANIFEST_DIR")))
}

/// Returns a file of such a tree.
#[cfg(test)]
fn recorded(kernel: &str, path: &str) -> String {
    recorded_root(kernel).text(path).into_result().expect(path)
}
