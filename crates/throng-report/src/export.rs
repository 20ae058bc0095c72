//! A run as a file for other programs: JSON, CSV, Markdown, JUnit XML, and a step of GitHub
//! Actions. The page is in [`page`](crate::page), the text in [`render`](crate::render).
//!
//! Each function is pure: what was measured

mod csv;
mod format;
mod github;
mod json;
mod junit;
mod markdown;

pub use csv::CsvExport;
pub use format::ReportFormat;
pub use github::STEP_SUMMARY_BYTES_MAX;
pub use json::json;

use crate::runfile::RunHeader;
use crate::{Diagnosis, Judgement, Summary};

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

#[cfg(test)]
mod tests;
