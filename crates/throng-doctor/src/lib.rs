//! Conclusions from facts. All of it is pure: `throng-machine` reads the facts.
//!
//! Before a run, the [`preflight`] compares its requirements with the limits of a machine. After
//! it, a [`History`] keeps what the run recorded, [`rules`] look at it as a [`RunView`], and
//! [`diagnose`] ranks their findings and sums them up in one sentence.

mod counted;
mod cpu_waits;
mod cpus;
mod diagnosis;
mod finding_machines;
mod first_error;
mod fleet_machines;
mod gaps;
mod headroom;
mod history;
mod impact;
mod import_verdict;
mod kernels;
mod loss_onset;
mod median;
mod missed_thresholds;
mod other_programs;
mod outages;
pub mod plan;
pub mod preflight;
mod progress;
pub mod rules;
mod run_view;
mod steady_load;
mod target_tls;
mod trend;
mod trouble_counters;
mod two_modes;
mod verdict;

pub use diagnosis::{diagnose, diagnose_without_load};
pub use headroom::{Headroom, headroom};
pub use history::{History, Quantiles, Sample};
pub use impact::{Impact, impact};
pub use run_view::{LoadLevel, RunView};
pub use trouble_counters::{trouble_between, trouble_counters, troubles_of_kernel};

/// Returns the `/proc` root of a recorded machine.
#[cfg(test)]
fn recorded_root(kernel: &str) -> throng_machine::ProcRoot {
    throng_machine::ProcRoot::new(format!(
        "{}/../throng-machine/tests/data/{kernel}",
        env!("CARGO_MANIFEST_DIR")
    ))
}
