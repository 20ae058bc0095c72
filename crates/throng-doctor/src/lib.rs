//! Kernel facts in: limits, sysctls, counters, control groups, listeners.
//!
//! Parsers are pure (`parse(&str)`), one file of the kernel each; [`Root`] says where that file is
//! read; [`Fact`] keeps "unknown, because …" apart from zero. [`Sampler`] reads once a second what a
//! run records, [`Facts`] reads once what does not change meanwhile.
//!
//! Conclusions out: a [`History`] keeps what a run recorded, [`rules`] look at it as a [`Case`], and [`diagnose`] ranks what
//! they find and says it in one sentence.

mod asked;
mod case;
pub mod cgroup;
pub mod conntrack;
pub mod cpu;
mod cpus;
mod diagnosis;
mod fact;
mod facts;
pub mod files;
mod gaps;
mod harm;
mod headroom;
mod history;
mod kernels;
pub mod limits;
mod listeners;
pub mod meminfo;
mod moved;
pub mod netdev;
pub mod netstat;
mod others;
mod outages;
pub mod owner;
pub mod plan;
pub mod ports;
pub mod preflight;
pub mod pressure;
pub mod process;
mod root;
pub mod rules;
mod sampler;
pub mod slabinfo;
pub mod sockstat;
pub mod softnet;
pub mod status;
mod syn_recv;
pub mod sysctl;
pub mod tcp_hash;
mod text;
mod verdict;

pub use case::{Case, End, Growth, Load, Peak};
pub use diagnosis::diagnose;
pub use fact::{Fact, Malformed, Reason, Why};
pub use facts::{Facts, SYSCTLS};
pub use harm::{Harm, harm};
pub use headroom::{Headroom, headroom};
pub use history::{History, Moment, Spread};
pub use listeners::{ListenerReader, ListenerSummary};
pub use moved::{moved, moved_between};
pub use owner::listening_process;
pub use root::{KeptFile, Root};
pub use sampler::{KernelSample, ProcessSample, Sampler, SamplerOptions, Watched};
pub use syn_recv::SynRecvMeter;

/// A tree under `tests/data`.
#[cfg(test)]
fn recorded_root(kernel: &str) -> Root {
    Root::new(format!("{}/tests/data/{kernel}", env!("CARGO_MANIFEST_DIR")))
}

/// A file of such a tree.
#[cfg(test)]
fn recorded(kernel: &str, path: &str) -> String {
    recorded_root(kernel).text(path).into_result().expect(path)
}
