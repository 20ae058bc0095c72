//! Text for people: tables, the final report, the progress line of an interval. No colours.
//!
//! The data modules of this crate do not import this one. Numbers become text in
//! [`throng_base::units`]; the short names here are for the crates that fill tables.

mod brief;
mod check;
mod compare;
mod escape;
mod head;
mod latency_table;
mod machines;
mod markdown;
mod notes;
mod operations;
mod outcome;
mod probes;
mod progress;
mod report;
mod search_text;
mod table;
mod wrap;

pub use brief::render_text;
pub use check::check_text;
pub use compare::{compare_markdown, compare_text};
pub use escape::{escape, escape_document, escape_json, escape_lines, is_unsafe};
pub(crate) use latency_table::{known_statistics, latencies, steps};
pub(crate) use machines::{MACHINES_NOTE, machines};
pub(crate) use markdown::{escaped, markdown_cell, markdown_table};
pub(crate) use notes::{imported_note, retries_note};
pub(crate) use outcome::{measurement, outcome};
pub(crate) use probes::probes;
pub use progress::{broadcast_progress, paused, progress_line};
pub(crate) use report::{by_name, costs, statuses};
pub use report::{findings, render_details, statuses_text};
pub use search_text::{
    bound_verdict, search_markdown, search_sentence, search_text, search_warning, show_value,
};
pub use table::{Align, Table, or_dash};
pub use throng_base::units::{
    brief_bytes as bytes, brief_count as count, brief_micros as micros, brief_rate as rate,
    brief_share as percent,
};
pub use wrap::wrap;
