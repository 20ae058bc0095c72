//! What is made of the measurements of a run: summary, thresholds, comparisons, searches, text,
//! pages and exports.
//!
//! Every number on a screen is rendered from a run file of [`throng_measure`].
//!
//! ```
//! use throng_measure::Interval;
//! use throng_measure::runfile::{self, RunEnd, RunFileWriter, RunHeader};
//! use throng_report::{Summary, Threshold, render};
//!
//! let mut writer = RunFileWriter::create(Vec::new(), &RunHeader::default())?;
//! let _ = writer.interval(&Interval { at_ms: 1000, span_ms: 1000, ..Interval::default() });
//! let _ = writer.end(&RunEnd::default());
//!
//! let file = runfile::read(&mut writer.into_inner().as_slice())?;
//! let summary = Summary::of(&file);
//! let threshold: Threshold = "errors < 10".parse()?;
//! println!("{}", render::render_text(&summary, &[threshold.judge(&summary)], None));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod compare;
pub mod exit;
pub mod export;
pub mod page;
pub mod render;
pub mod search;
pub mod summary;
pub mod threshold;

pub use exit::RunExit;
pub use summary::{Summary, SummaryFold};
pub use threshold::{Judgement, Threshold};
