//! What people look at: a run as a page, live or saved, and in a terminal.
//!
//! Everything here shows a [`RunContent`], which takes the intervals of a run while they are
//! recorded, or from a run file.

mod clip;
pub mod dashboard;
pub mod http;
pub mod metrics;
pub mod terminal;
pub mod top;

use std::io::{self, Write};

use throng_report::compare::{ComparePage, Comparison};
use throng_report::export::SearchPage;
use throng_report::page::{self, PageBuilder};
use throng_report::search::SearchRecord;
use throng_run::{RunContent, RunResult};

/// Writes the page of a run: one HTML file with its data. Without [`RunContent::with_page`] it has
/// no charts.
///
/// # Errors
/// `out` cannot be written.
pub fn write_page(
    content: &RunContent,
    result: &RunResult,
    out: &mut impl Write,
) -> io::Result<()> {
    let none = PageBuilder::new();
    let builder = content.page().unwrap_or(&none);
    let summary = result.json();
    page::html(PAGE, &builder.page(content.header(), &summary, content.warnings()), out)
}

/// Writes the page of a comparison: one HTML file with its data. `runs` are all runs of its sides,
/// in order, read with [`RunContent::with_page`].
///
/// # Errors
/// `out` cannot be written.
pub fn write_compare_page(
    comparison: &Comparison,
    runs: &[(RunContent, RunResult)],
    out: &mut impl Write,
) -> io::Result<()> {
    let none = PageBuilder::new();
    let summaries: Vec<_> = runs.iter().map(|(_, result)| result.json()).collect();
    let pages = runs.iter().zip(&summaries).map(|((content, _), summary)| {
        let builder = content.page().unwrap_or(&none);
        builder.page(content.header(), summary, content.warnings())
    });
    ComparePage::new(comparison, pages.collect()).html(PAGE, out)
}

/// Writes the page of a search for a limit: one HTML file with its data.
///
/// # Errors
/// `out` cannot be written.
pub fn write_search_page(record: &SearchRecord, out: &mut impl Write) -> io::Result<()> {
    SearchPage::new(record).html(PAGE, out)
}

/// The page that draws a run, or one that says how to build it.
const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/ui.html"));
