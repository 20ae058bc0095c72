//! The outcome of a recorded run.

use throng_measure::runfile::RunEnd;

use crate::RunResult;

/// The outcome of a recorded run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The summary, the thresholds and the diagnosis of the whole run.
    pub result: RunResult,
    /// The last line of the run file.
    pub end: RunEnd,
    /// The last error of the run file, even if a later line was written again.
    pub run_file_error: Option<String>,
}
