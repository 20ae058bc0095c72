//! The content of a run: what was measured, and what follows from it.

use std::io::BufRead;

use serde_json::Value;
use throng_doctor::{History, diagnose};
use throng_load::scenario::Scenario;
use throng_measure::runfile::{
    ReadError, RunEnd, RunEndReason, RunFileReader, RunHeader, ScenarioSource,
};
use throng_measure::{Diagnosis, Interval, Validity};
use throng_report::export::{self, RunExport};
use throng_report::page::PageBuilder;
use throng_report::render::{render_details, render_text};
use throng_report::{Judgement, RunExit, Summary, SummaryFold, Threshold};

/// The content of a run that is being recorded, or of a run file. It keeps sums, and of single
/// intervals only the series of the diagnosis and of a page.
#[derive(Debug)]
pub struct RunContent {
    header: RunHeader,
    thresholds: Vec<Threshold>,
    fold: SummaryFold,
    history: History,
    /// The data of the page, if one is drawn.
    page: Option<PageBuilder>,
    warnings: Vec<String>,
}

/// What follows from a run, or from its part so far.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The summary of all intervals.
    pub summary: Summary,
    /// The result of each threshold, in the scenario's order.
    pub judgements: Vec<Judgement>,
    /// What stopped or slowed the run.
    pub diagnosis: Diagnosis,
}

impl RunContent {
    /// Starts with the first line of a run.
    pub fn new(header: RunHeader, thresholds: Vec<Threshold>) -> Self {
        let mut fold = SummaryFold::new(&header);
        fold.judge_by(&thresholds);
        let history = History::new(header.clone());
        Self { header, thresholds, fold, history, page: None, warnings: Vec::new() }
    }

    /// Starts with the first line of a run. The thresholds are those of the scenario in it, if this
    /// version can parse it.
    pub fn of_header(header: RunHeader) -> Self {
        let ScenarioSource { path, source } = &header.scenario;
        let thresholds = Scenario::parse_thresholds(source, path).unwrap_or_default();
        Self::new(header, thresholds)
    }

    /// Keeps what a page draws, too. It costs about a fifth of the time of reading.
    pub fn with_page(mut self) -> Self {
        self.page = Some(PageBuilder::new());
        self
    }

    /// Reads a run file of any length, line by line. A file without its last line is that of a run
    /// that was killed or is still running.
    ///
    /// # Errors
    /// The input cannot be read, or is no run file.
    pub fn read(input: impl BufRead, with_page: bool) -> Result<(Self, RunResult), ReadError> {
        Self::read_each(input, with_page, |_| {})
    }

    /// Reads a run file as [`Self::read`] does, and calls `each` with every interval.
    ///
    /// # Errors
    /// The input cannot be read, or is no run file.
    pub fn read_each(
        input: impl BufRead,
        with_page: bool,
        each: impl FnMut(&Interval),
    ) -> Result<(Self, RunResult), ReadError> {
        let reader = RunFileReader::open(input)?;
        let content = Self::of_header(reader.header().clone());
        let content = if with_page { content.with_page() } else { content };
        content.read_rest(reader, each)
    }

    /// Reads a run file and judges the run by `thresholds`, in place of those of its scenario.
    ///
    /// # Errors
    /// The input cannot be read, or is no run file.
    pub fn judge_by(
        input: impl BufRead,
        thresholds: Vec<Threshold>,
    ) -> Result<RunResult, ReadError> {
        let reader = RunFileReader::open(input)?;
        let content = Self::new(reader.header().clone(), thresholds);
        content.read_rest(reader, |_| {}).map(|(_, result)| result)
    }

    /// Reads what comes after the first line.
    fn read_rest(
        mut self,
        mut reader: RunFileReader<impl BufRead>,
        mut each: impl FnMut(&Interval),
    ) -> Result<(Self, RunResult), ReadError> {
        while let Some(interval) = reader.next_interval()? {
            self.add(&interval);
            each(&interval);
        }
        self.warnings = reader.warnings().to_vec();
        let result = self.finish_read(reader.end(), reader.lines_torn());
        Ok((self, result))
    }

    /// Adds the next interval.
    pub fn add(&mut self, interval: &Interval) {
        self.fold.add(interval);
        self.history.add(interval);
        if let Some(page) = &mut self.page {
            page.add(interval);
        }
    }

    /// Returns the first line of the run.
    pub fn header(&self) -> &RunHeader {
        &self.header
    }

    /// Returns what follows from the run so far. A threshold whose value is not measured yet is not
    /// missed: the diagnosis does not know it.
    pub fn so_far(&self) -> RunResult {
        let summary = self.fold.finish(None, 0);
        let is_known = |threshold: &&Threshold| !threshold.is_unmeasured(&summary);
        let judge = |threshold: &Threshold| threshold.judge(&summary);
        let known: Vec<_> = self.thresholds.iter().filter(is_known).map(judge).collect();
        let diagnosis = diagnose(&self.history, &summary, &known);
        let judgements = self.thresholds.iter().map(judge).collect();
        RunResult { summary, judgements, diagnosis }
    }

    /// Returns what follows from a run that is over. `lines_lost` is the number of lines that are
    /// missing in the run file.
    pub fn finish(&self, reason: RunEndReason, lines_lost: u64) -> RunResult {
        self.result(self.fold.finish(Some(reason), lines_lost))
    }

    /// Returns what follows from a run file that was read to its end. `end` is its last line.
    pub fn finish_read(&self, end: Option<&RunEnd>, lines_torn: u64) -> RunResult {
        self.result(self.fold.finish_read(end, lines_torn))
    }

    /// Returns the validity of a run that is over.
    pub fn validity(&self, reason: RunEndReason, lines_lost: u64) -> Validity {
        self.fold.finish(Some(reason), lines_lost).validity
    }

    fn result(&self, summary: Summary) -> RunResult {
        let judge = |threshold: &Threshold| threshold.judge(&summary);
        let judgements: Vec<_> = self.thresholds.iter().map(judge).collect();
        let diagnosis = diagnose(&self.history, &summary, &judgements);
        RunResult { summary, judgements, diagnosis }
    }

    /// Returns what the reader of the run file warned of.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the run and what follows from it, for the exporters.
    pub fn export<'a>(&'a self, result: &'a RunResult) -> RunExport<'a> {
        RunExport {
            header: &self.header,
            summary: &result.summary,
            judgements: &result.judgements,
            diagnosis: &result.diagnosis,
            warnings: &self.warnings,
        }
    }

    /// Returns what a page draws, after [`Self::with_page`].
    pub fn page(&self) -> Option<&PageBuilder> {
        self.page.as_ref()
    }
}

impl RunResult {
    /// Returns the summary as JSON, with the judgements of the thresholds and the diagnosis: what
    /// `--json` writes.
    pub fn json(&self) -> Value {
        export::json(&self.summary, &self.judgements, &self.diagnosis)
    }

    /// Returns the report as text, on one screen.
    pub fn text(&self) -> String {
        render_text(&self.summary, &self.judgements, Some(&self.diagnosis))
    }

    /// Returns everything that is known of the run as text.
    pub fn details(&self) -> String {
        render_details(&self.summary, &self.judgements, Some(&self.diagnosis))
    }

    /// Returns the result that decides the exit code.
    pub fn exit(&self) -> RunExit {
        RunExit::of(&self.summary, &self.judgements)
    }
}

#[cfg(test)]
mod tests {
    use throng_measure::LoadInterval;

    use super::*;

    #[test]
    fn what_is_not_measured_yet_is_missed_only_when_the_run_is_over() {
        let thresholds = vec!["broadcast.p99 < 100ms".parse().unwrap()];
        let mut content = RunContent::new(RunHeader::default(), thresholds);
        for second in 0..3 {
            let load = Some(LoadInterval::default());
            let span_ms = if second == 0 { 0 } else { 1_000 };
            content.add(&Interval { at_ms: second * 1_000, span_ms, load, ..Interval::default() });
        }
        let so_far = content.so_far();
        assert!(!so_far.diagnosis.verdict.contains("Missed"), "{}", so_far.diagnosis.verdict);
        assert_eq!(so_far.judgements.len(), 1);
        let over = content.finish(RunEndReason::Finished, 0);
        assert!(over.diagnosis.verdict.starts_with("Missed: broadcast.p99"));
    }
}
