//! A run as a file for other programs: JSON, CSV, Markdown, JUnit XML, the summary and the
//! annotations of a step of GitHub Actions, and GitLab's code quality report. The page is in
//! [`page`](crate::page), the text in [`render`](crate::render).
//!
//! Each function is pure: it takes what was measured, and returns or writes text.

mod annotations;
mod code_quality;
mod csv;
mod format;
mod github;
mod json;
mod junit;
mod markdown;
mod problem;
mod run_export;
mod search_csv;
mod search_page;

pub use annotations::{annotation, warning_annotation};
pub use csv::CsvExport;
pub use format::ReportFormat;
pub use github::STEP_SUMMARY_BYTES_MAX;
pub use json::json;
pub use run_export::RunExport;
pub use search_csv::search_csv;
pub use search_page::SearchPage;

#[cfg(test)]
mod tests;
