//! The data of the page that draws a comparison.

use std::io::{self, Write};

use serde::Serialize;

use super::Comparison;
use crate::page::{self, Page};

/// The schema of a comparison's page.
pub const SCHEMA: &str = "throng.compare/1";

/// A comparison and the charts of its runs, as JSON.
#[derive(Debug, Serialize)]
pub struct ComparePage<'a> {
    schema: &'static str,
    comparison: &'a Comparison,
    /// The page of each run, in the order of the sides and of their runs.
    runs: Vec<Page<'a>>,
}

impl<'a> ComparePage<'a> {
    /// Returns the page of `comparison`; `runs` are the pages of all its runs, in order.
    pub fn new(comparison: &'a Comparison, runs: Vec<Page<'a>>) -> Self {
        let runs = runs.into_iter().map(Page::without_heat).collect();
        Self { schema: SCHEMA, comparison, runs }
    }

    /// Writes `template` with the data in it: one file that needs no network.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn html(&self, template: &str, output: impl Write) -> io::Result<()> {
        page::html(template, self, output)
    }
}
