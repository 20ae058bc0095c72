//! The comparison of runs: what changed, and how far chance can explain it.
//!
//! The sides of a comparison are called A, B, C; A is the baseline. A side is one run, or several
//! repeats of one. Each [`CompareRun`] has the summary of its run and a [`RunSample`], which keeps
//! the run in at most [`GROUPS_MAX`] groups of intervals.
//!
//! - *Values* are those that thresholds compare: a latency includes the waits that no answer ended.
//!   Over repeats, a percentile is that of all their answers together, and never a mean of
//!   percentiles. The largest latency is that of all runs, and anything else their mean.
//! - *Intervals with repeats* (two runs or more on both sides) are of Student's t, with Welch's
//!   degrees of freedom. The standard error of a percentile comes from leaving out one run at a
//!   time. Such an interval covers the difference from run to run.
//! - *Intervals without repeats* come from a block bootstrap over the groups of intervals of each
//!   run. Neighbours are alike, so blocks of them are drawn and not single ones. Such an interval
//!   says nothing about the difference from run to run.
//! - An interval of a ratio is computed with logarithms. That of a latency is widened by the width
//!   of a cell of its histogram: 1 µs, and from 2 ms on 0.1 %.
//! - A maximum has no interval: what was not measured decides it. What is known only at the end of
//!   a run (memory, the most users) has one with repeats alone.

mod bootstrap;
mod comparison;
mod estimate;
mod figure;
mod mismatch;
mod page;
mod percent;
mod regression;
mod sample;
mod side;

pub use comparison::{Comparison, Conclusion, FigureChange, FigureRow, IntervalMethod, SCHEMA};
pub use mismatch::Mismatch;
pub use page::{ComparePage, SCHEMA as PAGE_SCHEMA};
pub use regression::{Regression, RegressionResult};
pub use sample::{GROUPS_MAX, RunSample};
pub use side::{CompareRun, ComparisonSide, RunOfSide};
