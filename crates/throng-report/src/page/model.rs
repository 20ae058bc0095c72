//! A page, as its JSON has it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use throng_measure::runfile::RunHeader;

use super::heat::PackedHeatMap;

/// The schema of a page's data.
pub const SCHEMA: &str = "throng.page/1";

/// The data of a page. Field names are short where they repeat for each row.
#[derive(Debug, Serialize)]
pub struct Page<'a> {
    pub(super) schema: &'static str,
    pub(super) header: &'a RunHeader,
    /// The summary as `--json` writes it, with thresholds and diagnosis.
    pub(super) summary: &'a Value,
    /// Warnings about the run file itself.
    pub(super) warnings: &'a [String],
    /// Intervals that one row covers.
    pub(super) intervals_per_row: u64,
    /// The end of each row and its series, as [packed](super::packed) text.
    pub(super) columns: BTreeMap<&'a str, String>,
    pub(super) heat: BTreeMap<&'static str, PackedHeatMap>,
    /// Of each operation, pairs of a percentage and the latency that it does not exceed.
    pub(super) curves: BTreeMap<&'static str, Vec<(f64, u64)>>,
    pub(super) phases: &'a [PagePhase],
    pub(super) events: &'a [PageEvent],
    /// Events that are not shown, because there are too many.
    pub(super) events_left_out: u64,
}

impl Page<'_> {
    /// Leaves out the heat maps: a page of several runs does not draw them.
    #[must_use]
    pub fn without_heat(mut self) -> Self {
        self.heat.clear();
        self
    }
}

/// How the values of a series combine when rows are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeriesKind {
    /// The growth of a counter in the row: growths add up.
    Growth,
    /// The amount at the end of the row: the last one stays.
    Gauge,
    /// The largest value of the row: the largest stays.
    Most,
}

/// A phase of the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PagePhase {
    /// When it began.
    pub from_ms: u64,
    /// Its name, as in the run file.
    pub name: String,
    /// True if the load was paused with `throng ctl pause`.
    pub paused: bool,
}

/// An event and its sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PageEvent {
    pub(super) at_ms: u64,
    pub(super) text: String,
}
