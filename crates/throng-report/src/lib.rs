//! What was measured: histograms, counters, snapshots, the run file, and findings.
//!
//! One [`Interval`] a second holds everything both ends and the kernel said; the run file is those
//! lines; every number that anybody is shown is rendered from it.

pub mod histogram;
pub mod snapshot;

pub use histogram::{Histogram, LatencySummary};
pub use snapshot::*;
