//! The progress of a load.

use std::path::Path;

use throng_measure::Interval;
use throng_measure::runfile::{RunEnd, RunHeader};

/// An event of a load.
#[derive(Debug)]
pub enum TestBedProgress<'a> {
    /// The run begins.
    Begin {
        /// The first line of its run file.
        header: &'a RunHeader,
        /// The control socket of its generator.
        control: &'a Path,
    },
    /// An interval is recorded.
    Interval {
        /// The name of the row.
        row: &'a str,
        /// The measurements.
        interval: &'a Interval,
        /// The interval before it.
        previous: Option<&'a Interval>,
        /// Seconds that the row should take.
        seconds: u64,
    },
    /// The run is over.
    End {
        /// The last line of its run file; none when the generator was killed.
        end: Option<&'a RunEnd>,
        /// Lines of the file that could not be read.
        lines_torn: u64,
    },
}
