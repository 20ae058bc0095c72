//! A part of a page: what it has more than a reader that was there before.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::heat::HeatColumn;
use super::model::{PageEvent, PagePhase};

/// A reader's place in a page that grows. As text, it is five numbers: `120.120000.1.1.4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCursor {
    /// Intervals that the reader has.
    pub(super) intervals: u64,
    /// The end of the last of them.
    pub(super) at_ms: u64,
    /// Intervals that a row covers. A page whose rows were merged must be read anew.
    pub(super) per_row: u64,
    /// Intervals that a column of a heat map covers.
    pub(super) per_column: u64,
    /// Events that the reader has.
    pub(super) events: u64,
}

/// What a page has more than at a reader's place.
#[derive(Debug, Serialize)]
pub struct PagePart<'a> {
    /// The reader's next place.
    #[serde(serialize_with = "as_text")]
    pub cursor: PageCursor,
    /// The first row of the part. The reader drops this row and later ones that it has.
    pub(super) from: usize,
    /// The ends of the rows, in milliseconds.
    pub(super) at_ms: &'a [i64],
    /// The values of the rows; a series without a value in them is left out.
    pub(super) columns: BTreeMap<&'a str, &'a [Option<i64>]>,
    pub(super) heat: BTreeMap<&'static str, HeatPart<'a>>,
    /// All phases.
    pub(super) phases: &'a [PagePhase],
    /// The events that the reader lacks.
    pub(super) events: &'a [PageEvent],
    pub(super) events_left_out: u64,
}

/// The last columns of a heat map.
#[derive(Debug, Serialize)]
pub(super) struct HeatPart<'a> {
    /// The first of the columns. The reader drops this column and later ones that it has.
    pub(super) from: usize,
    pub(super) cells_per_octave: u32,
    pub(super) intervals_per_column: u64,
    pub(super) columns: &'a [HeatColumn],
}

fn as_text<S: serde::Serializer>(cursor: &PageCursor, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(cursor)
}

impl fmt::Display for PageCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { intervals, at_ms, per_row, per_column, events } = self;
        write!(f, "{intervals}.{at_ms}.{per_row}.{per_column}.{events}")
    }
}

impl FromStr for PageCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut numbers = text.split('.').map(|number| number.parse().map_err(|_| ()));
        let mut next = || numbers.next().unwrap_or(Err(()));
        let cursor = Self {
            intervals: next()?,
            at_ms: next()?,
            per_row: next()?,
            per_column: next()?,
            events: next()?,
        };
        if numbers.next().is_some() { Err(()) } else { Ok(cursor) }
    }
}
