//! The data of the page that draws a search.

use std::io::{self, Write};

use serde::Serialize;
use throng_base::units::brief_share;

use crate::render::{bound_verdict, search_sentence, search_warning, show_value};
use crate::search::{SearchBracket, SearchOutcome, SearchRecord, SearchRules, SearchRun};
use crate::threshold::{self, Measurand};
use crate::{Threshold, page};

/// The schema of a search's page.
const SCHEMA: &str = "throng.search/1";

/// A search and its figures as text, as JSON.
#[derive(Debug, Serialize)]
pub struct SearchPage<'a> {
    schema: &'static str,
    search: &'a SearchRecord,
    /// The result in one sentence.
    sentence: String,
    /// The verdict of the run that bounds the result.
    why: Option<String>,
    /// What is missing in the file.
    warning: Option<String>,
    /// The largest value that met the SLO, so far if the search has not ended.
    found: Option<f64>,
    found_shown: Option<String>,
    /// A chart for each condition of the SLO, in their order.
    conditions: Vec<Figure>,
    /// A chart for each kind of load that any run reached.
    reached: Vec<Figure>,
    /// What the page shows of each run, in the order of the runs.
    runs: Vec<PageRun>,
}

/// A figure that each run has.
#[derive(Debug, Serialize)]
struct Figure {
    /// The name that a threshold begins with.
    name: String,
    /// The condition as it was written; nothing for a load that is only reached.
    condition: Option<String>,
    /// `us`, `count`, `per_second`, `share` or `bytes`.
    unit: &'static str,
    limit: Option<f64>,
}

#[derive(Debug, Serialize)]
struct PageRun {
    value: String,
    mark: RunMark,
    usage: Option<String>,
}

/// How a run is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum RunMark {
    Met,
    Missed,
    /// The run decides nothing alone: it is invalid, or close to its limit.
    Doubtful,
}

impl<'a> SearchPage<'a> {
    /// Returns the page of a search.
    pub fn new(record: &'a SearchRecord) -> Self {
        let SearchBracket { found, .. } = record.bracket();
        let mut reached: Vec<_> = record.runs.iter().flat_map(|run| run.reached.keys()).collect();
        reached.sort_unstable();
        reached.dedup();
        let runs = record.runs.iter().map(|run| PageRun {
            value: show_value(record, run.run.value),
            mark: RunMark::of(&record.header.rules, &run.run),
            usage: run.run.usage.map(brief_share),
        });
        Self {
            schema: SCHEMA,
            search: record,
            sentence: search_sentence(record),
            why: bound_verdict(record),
            warning: search_warning(record),
            found,
            found_shown: found.map(|found| show_value(record, found)),
            conditions: record.header.slo.iter().map(|text| Figure::of_condition(text)).collect(),
            reached: reached.into_iter().map(|name| Figure::reached(name)).collect(),
            runs: runs.collect(),
        }
    }

    /// Writes `template` with the data in it: one file that needs no network.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn html(&self, template: &str, output: impl Write) -> io::Result<()> {
        page::html(template, self, output)
    }
}

impl Figure {
    fn of_condition(text: &str) -> Self {
        let name = threshold::split(text).0.to_owned();
        let condition = Some(text.to_owned());
        // The file may be of a version that knows more names.
        match text.parse::<Threshold>() {
            Ok(known) => {
                let (unit, limit) = (known.unit(), Some(known.limit()));
                Self { name, condition, unit, limit }
            }
            Err(_) => Self { name, condition, unit: "count", limit: None },
        }
    }

    fn reached(name: &str) -> Self {
        let known = Measurand::named(name, &(0..name.len()));
        let unit = known.map_or("count", |known| known.unit());
        Self { name: name.to_owned(), condition: None, unit, limit: None }
    }
}

impl RunMark {
    fn of(rules: &SearchRules, run: &SearchRun) -> Self {
        match run.outcome {
            _ if !rules.is_clear(run) => Self::Doubtful,
            SearchOutcome::Met => Self::Met,
            SearchOutcome::Missed | SearchOutcome::Invalid => Self::Missed,
        }
    }
}
