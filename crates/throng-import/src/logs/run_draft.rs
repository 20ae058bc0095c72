//! The run file that an importer writes.

use std::collections::BTreeMap;

use throng_measure::runfile::{ImportedFrom, RunEnd, RunFileWriter, RunHeader, ScenarioSource};
use throng_measure::{Interval, LoadInterval};
use throng_report::SummaryFold;

use super::utc::UtcTime;
use crate::source::Source;

/// A run file in memory.
#[derive(Debug)]
pub(crate) struct RunDraft {
    writer: Option<RunFileWriter<Vec<u8>>>,
    fold: SummaryFold,
    at_ms: u64,
}

impl RunDraft {
    /// Starts with the header, and an interval of no length: nothing was done before the run.
    pub(crate) fn new(header: &RunHeader, phase: &str) -> Self {
        let writer = RunFileWriter::create(Vec::new(), header).ok();
        let mut draft = Self { writer, fold: SummaryFold::new(header), at_ms: 0 };
        draft.add(0, LoadInterval { phase: phase.to_owned(), ..LoadInterval::default() });
        draft
    }

    /// Adds the interval from the end of the one before to `at_ms` after the beginning of the run.
    pub(crate) fn add(&mut self, at_ms: u64, load: LoadInterval) {
        let span_ms = at_ms.saturating_sub(self.at_ms);
        let grown_us = span_ms.saturating_mul(1_000);
        let load = Some(LoadInterval { grown_us, ..load });
        let interval = Interval { at_ms, span_ms, load, ..Interval::default() };
        self.at_ms = at_ms;
        self.fold.add(&interval);
        if let Some(writer) = &mut self.writer {
            // Memory takes every line.
            let _ = writer.interval(&interval);
        }
    }

    /// Returns the run file. One without an `end` is that of a run that was killed.
    pub(crate) fn finish(mut self, end: Option<RunEnd>) -> Option<Vec<u8>> {
        if let Some(end) = end {
            let validity = self.fold.finish(Some(end.reason), 0).validity;
            let _ = self.writer.as_mut()?.end(&RunEnd { validity, ..end });
        }
        Some(self.writer?.into_inner())
    }
}

/// Returns what is wrong with moments that are `ms` apart, as a title and a label: no run takes so
/// long, and no reader of run files believes it.
pub(crate) fn mistake_of_length(ms: u64) -> Option<(&'static str, &'static str)> {
    (ms > RUN_MS_MAX).then_some((
        "this log has moments that are more than a year apart",
        "expected those of one run: two logs in one file? Import each by itself",
    ))
}

/// The longest run: a year.
pub(crate) const RUN_MS_MAX: u64 = 365 * 86_400_000;

/// Returns the first line of the run of a log. `format` is the kind of the log: `tsung.log`.
pub(crate) fn header(
    source: &Source<'_>,
    tool: &str,
    format: &str,
    began: Option<UtcTime>,
) -> RunHeader {
    let file = source.name.to_owned();
    RunHeader {
        started: began.map(|began| began.to_string()).unwrap_or_default(),
        throng_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: ["throng", "import-log", source.name].map(str::to_owned).into(),
        scenario: ScenarioSource { path: file.clone(), source: String::new() },
        target_is_here: false,
        imported: Some(ImportedFrom {
            tool: tool.to_owned(),
            version: None,
            format: format.to_owned(),
            file,
            latency_stats: BTreeMap::new(),
        }),
        ..RunHeader::default()
    }
}
