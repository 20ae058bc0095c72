//! What the exporters take.

use throng_measure::Diagnosis;
use throng_measure::runfile::RunHeader;

use crate::{Judgement, Summary};

/// What is known of a run at its end, for export.
#[derive(Clone, Copy, Debug)]
pub struct RunExport<'a> {
    /// The first line of the run file.
    pub header: &'a RunHeader,
    /// The summary of all intervals.
    pub summary: &'a Summary,
    /// The results of the thresholds.
    pub judgements: &'a [Judgement],
    /// What stopped or slowed the run.
    pub diagnosis: &'a Diagnosis,
    /// Warnings about the run file itself.
    pub warnings: &'a [String],
}
