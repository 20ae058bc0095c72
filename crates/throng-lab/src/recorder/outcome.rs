//! The outcome of a recorded run.

use throng_report::runfile::RunEnd;
use throng_report::{Diagnosis, Judgement, RunExit, Summary};

/// The outcome of a recorded run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The summary of the whole run.
    pub summary: Summary,
    /// The result of each threshold, in the order of the options.
    pub judgements: Vec<Judgement>,
    /// The diagnosis: what stopped or slowed the run.
    pub diagnosis: Diagnosis,
    /// The last line of the run file.
    pub end: RunEnd,
    /// The last error of the run file, even if a later line was written again.
    pub run_file_error: Option<String>,
}

impl Outcome {
    /// Returns the result that decides the exit code.
    pub fn exit(&self) -> RunExit {
        RunExit::of(&self.summary, &self.judgements)
    }
}
