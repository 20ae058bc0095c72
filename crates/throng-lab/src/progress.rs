//! The progress of a lab's run.

use std::path::Path;

use throng_measure::Interval;
use throng_measure::runfile::{RunEnd, RunHeader};

/// An event of a running lab.
#[derive(Debug)]
pub enum LabProgress<'a> {
    /// A sentence to show: how to steer the run, or what the lab leaves out and why.
    Note(&'a str),
    /// A row of the table begins.
    Row {
        /// The row's name: `reuseport`.
        name: &'a str,
        /// The row's number, from 1.
        number: usize,
        /// The number of rows.
        of: usize,
        /// Seconds that the row should take.
        seconds: u64,
    },
    /// A run of the row begins.
    RunBegin {
        /// The first line of its run file.
        header: &'a RunHeader,
        /// The control socket of its generator.
        control: &'a Path,
    },
    /// The run is over.
    RunEnd {
        /// The last line of its run file; none when the generator was killed.
        end: Option<&'a RunEnd>,
        /// Lines of the file that could not be read.
        lines_torn: u64,
    },
    /// An interval of the row's run is recorded.
    Interval {
        /// The row's name.
        row: &'a str,
        /// The measurements.
        interval: &'a Interval,
        /// The interval before it.
        previous: Option<&'a Interval>,
        /// Seconds that the row should take.
        seconds: u64,
    },
}

/// Returns a `progress` that drops the events of intervals. A load that runs as fast as it can
/// makes a generator late, so these events say nothing.
pub(crate) fn without_events(
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> impl FnMut(LabProgress<'_>) {
    |event| match event {
        LabProgress::Interval { row, interval, previous, seconds } => {
            let interval = &Interval { events: Vec::new(), ..interval.clone() };
            progress(LabProgress::Interval { row, interval, previous, seconds });
        }
        other => progress(other),
    }
}
