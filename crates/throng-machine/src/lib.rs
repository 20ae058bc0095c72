//! Facts of a machine: limits, sysctls, counters, control groups, listeners.
//!
//! Parsers are pure (`parse(&str)`), one kernel file each. [`ProcRoot`] reads the files; [`Fact`]
//! keeps "unknown, because …" apart from zero. [`Sampler`] reads once a second what a run records,
//! [`MachineFacts`] reads once what does not change, and [`MachineLimits`] what a preflight needs.

pub mod cgroup;
pub mod conntrack;
pub mod cpu;
mod endpoint_facts;
mod fact;
pub mod fds;
pub mod files;
pub mod limits;
mod listener_scope;
mod listeners;
mod machine_facts;
pub mod machine_limits;
pub mod meminfo;
pub mod netdev;
pub mod netstat;
pub mod owner;
pub mod ports;
pub mod pressure;
mod proc_root;
pub mod process;
mod runtime;
mod sampler;
pub mod slabinfo;
mod socket_count_meter;
pub mod sockstat;
pub mod softnet;
pub mod status;
pub mod sysctl;
pub mod tcp_hash;
mod text;
mod thread_kind;

pub use endpoint_facts::endpoint_facts;
pub use fact::{Fact, ParseFailure, Reason, Unknown};
pub use listener_scope::{ListenerScope, listeners_elsewhere};
pub use listeners::{ListenerReader, ListenerSummary};
pub use machine_facts::MachineFacts;
pub use machine_limits::MachineLimits;
pub use owner::listening_process;
pub use proc_root::{KeptFile, ProcRoot};
pub use runtime::runtime;
pub use sampler::{KernelSample, ProcessSample, Sampler, SamplerOptions, WatchedProcess};
pub use socket_count_meter::SocketCountMeter;
pub use thread_kind::ThreadKind;

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
