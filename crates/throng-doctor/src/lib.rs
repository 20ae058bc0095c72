//! Kernel facts in: limits, sysctls, counters, control groups, listeners.
//!
//! Parsers are pure (`parse(&str)`), one file of the kernel each; [`Root`] says where that file is
//! read; [`Fact`] keeps "unknown, because …" apart from zero. [`Sampler`] reads once a second what a
//! run records, [`Facts`] reads once what does not change meanwhile.
//!
//! Conclusions out: a [`History`] keeps what a run recorded, [`rules`] look at it as a [`Case`], and [`diagnose`] ranks what
//! they find and says it in one sentence.

pub mod cgroup;
pub mod conntrack;
pub mod cpu;
mod cpus;
mod diagnosis;
mod fact;
pub mod files;
mod gaps;
mod headroom;
mod history;
mod impact;
mod kernels;
pub mod limits;
mod listeners;
mod machine_facts;
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
pub mod rules;
mod run_view;
mod sampler;
pub mod slabinfo;
pub mod sockstat;
pub mod softnet;
pub mod status;
mod syn_recv;
pub mod sysctl;
pub mod tcp_hash;
mod text;
mod trouble_counters;
mod verdict;

pub use diagnosis::diagnose;
pub use fact::{Fact, ParseFailure, Reason, Unknown};
pub use headroom::{Headroom, headroom};
pub use history::{History, Quantiles, Sample};
pub use impact::{Impact, impact};
pub use listeners::{ListenerReader, ListenerSummary};
pub use machine_facts::{MachineFacts, SYSCTLS};
pub use owner::listening_process;
pub use proc_root::{KeptFile, ProcRoot};
pub use run_view::{Endpoint, Growth, LoadLevel, Peak, RunView};
pub use sampler::{KernelSample, ProcessSample, Sampler, SamplerOptions, WatchedProcess};
pub use syn_recv::SynRecvMeter;
pub use trouble_counters::{trouble_between, trouble_counters};

/// A tree under `tests/data`.
#[cfg(test)]
fn recorded_root(kernel: &str) -> ProcRoot {
    ProcRoot::new(format!("{}/tests/data/{kernel}", env!("CARGO_MANIFEST_DIR")))
}

/// A file of such a tree.
#[cfg(test)]
fn recorded(kernel: &str, path: &str) -> String {
    recorded_root(kernel).text(path).into_result().expect(path)
}
