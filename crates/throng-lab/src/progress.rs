//! The progress of a lab's run.

use throng_measure::Interval;
use throng_run::test_bed::TestBedProgress;

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
    /// An event of the row's run.
    Run(TestBedProgress<'a>),
}

/// Returns a `progress` that drops the events of intervals. A load that runs as fast as it can
/// makes a generator late, so these events say nothing.
pub(crate) fn without_events(
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> impl FnMut(LabProgress<'_>) {
    |event| match event {
        LabProgress::Run(TestBedProgress::Interval { row, interval, previous, seconds }) => {
            let interval = &Interval { events: Vec::new(), ..interval.clone() };
            let event = TestBedProgress::Interval { row, interval, previous, seconds };
            progress(LabProgress::Run(event));
        }
        other => progress(other),
    }
}
