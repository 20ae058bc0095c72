//! The report of a search as text and as Markdown: the result, its reason, and the knee.

use std::fmt::Write;

use throng_base::units::{brief_duration, brief_share, plural, show_count};
use throng_measure::validity::Grade;

use super::escape::escape_lines;
use super::markdown::{escaped, markdown_table};
use super::table::{Align, Table};
use crate::search::{
    RecordedRun, SearchBracket, SearchEnd, SearchOutcome, SearchRecord, SearchResult,
};
use crate::threshold;

/// Returns the report of a search as text.
pub fn search_text(record: &SearchRecord) -> String {
    let mut out = search_sentence(record);
    if let Some(why) = bound_verdict(record) {
        let _ = write!(out, "\n  {why}");
    }
    if let Some(warning) = search_warning(record) {
        let _ = write!(out, "\n  {warning}");
    }
    let why_degraded = why_degraded(record).map_or_else(String::new, |line| line + "\n");
    // The names in the file of another user must not steer the terminal.
    escape_lines(&format!("{out}\n\n{}{why_degraded}", table(record)))
}

/// Returns the command that says why a run is degraded.
fn why_degraded(record: &SearchRecord) -> Option<String> {
    let is_degraded = |run: &&RecordedRun| run.grade == Some(Grade::Degraded);
    let run = record.runs.iter().rev().find(is_degraded)?;
    Some(format!("why a run is degraded: throng report {}", run.run_file))
}

/// Returns the report of a search as Markdown.
pub fn search_markdown(record: &SearchRecord) -> String {
    let mut out = format!("**{}**\n", escaped(&search_sentence(record)));
    for line in bound_verdict(record).into_iter().chain(search_warning(record)) {
        let _ = write!(out, "\n{}\n", escaped(&line));
    }
    format!("{out}\n{}", markdown_table(&table(record)))
}

/// Returns the result in one sentence.
pub fn search_sentence(record: &SearchRecord) -> String {
    let header = &record.header;
    let slo = header.slo.join(", ");
    let Some(SearchResult { found, bound, end }) = record.end else {
        return format!(
            "the search for {} with {slo} has not ended{}",
            header.knob,
            so_far(record)
        );
    };
    let knob = &header.knob;
    let above =
        bound.map_or(String::new(), |bound| format!("; {} did not", show_value(record, bound)));
    let Some(found) = found else {
        let least = bound.map_or(String::new(), |bound| show_value(record, bound));
        return format!("no {knob} met {slo}, not even {least}");
    };
    let found = show_value(record, found);
    match end {
        SearchEnd::Found | SearchEnd::Least => format!("{knob} {found} met {slo}{above}"),
        SearchEnd::Most => format!("{knob} {found}, the most that was allowed, met {slo}"),
        SearchEnd::Steps => {
            format!("{knob} {found} met {slo}{above}; all steps were used before it was exact")
        }
        SearchEnd::Generator => {
            format!("{knob} {found} met {slo}; beyond it the limit is the generator's")
        }
        SearchEnd::NotRecovered => format!(
            "{knob} {found} met {slo} at first, and no longer after larger values: the server did \
             not recover"
        ),
    }
}

/// Returns what a search without an end knows.
fn so_far(record: &SearchRecord) -> String {
    let SearchBracket { found, bound } = record.bracket();
    match [found, bound].map(|value| value.map(|value| show_value(record, value))) {
        [Some(found), Some(bound)] => format!("; so far {found} met it and {bound} did not"),
        [Some(found), None] => format!("; so far {found} met it"),
        [None, Some(bound)] => format!("; so far {bound} did not meet it"),
        [None, None] => String::new(),
    }
}

/// Returns what is missing in the file of a search.
pub fn search_warning(record: &SearchRecord) -> Option<String> {
    let lines = record.lines_torn;
    (lines > 0)
        .then(|| format!("{lines} {} of the file cannot be read", plural(lines, "line", "lines")))
}

/// Returns the verdict of the run that bounds the result: the last one of its value that did not
/// meet the SLO.
pub fn bound_verdict(record: &SearchRecord) -> Option<String> {
    let bound = record.bracket().bound?;
    let is_bound =
        |run: &&RecordedRun| run.run.value == bound && run.run.outcome != SearchOutcome::Met;
    let run = record.runs.iter().rfind(is_bound)?;
    Some(format!("at {}: {}", show_value(record, bound), run.verdict))
}

/// Returns a row for each run, in the order of the values.
fn table(record: &SearchRecord) -> Table {
    let mut align = vec![Align::Right; 1 + record.header.slo.len()];
    align.extend([Align::Left; 3]);
    let mut header = vec![record.header.knob.clone()];
    header.extend(record.header.slo.iter().map(|slo| threshold::split(slo).0.to_owned()));
    header.extend(["outcome", "grade", "of the limit"].map(str::to_owned));
    let mut runs: Vec<_> = record.runs.iter().collect();
    runs.sort_by(|one, other| one.run.value.total_cmp(&other.run.value));
    let mut table = Table::with_head(header).aligned(&align);
    runs.into_iter().for_each(|run| table.row(row(record, run)));
    table
}

fn row(record: &SearchRecord, run: &RecordedRun) -> Vec<String> {
    let mut row = vec![show_value(record, run.run.value)];
    for index in 0..record.header.slo.len() {
        let measured = run.judgements.get(index).map(|judgement| judgement.measured.clone());
        row.push(measured.unwrap_or_else(|| "-".to_owned()));
    }
    row.push(run.run.outcome.to_string());
    row.push(run.grade.map_or_else(|| "-".to_owned(), |grade| grade.to_string()));
    row.push(run.run.usage.map_or(String::new(), bar));
    row
}

/// Shows a usage as a bar that ends at twice the limit, and in per cent.
fn bar(usage: f64) -> String {
    let length = (usage.clamp(0.0, USAGE_MAX) * BAR_COLUMNS / USAGE_MAX).round() as usize;
    let more = if usage > USAGE_MAX { "…" } else { "" };
    format!("{}{more} {}", "█".repeat(length.max(1)), brief_share(usage))
}

/// Shows a value of the knob with its unit and all of its digits, since values of one search may
/// differ by little.
pub fn show_value(record: &SearchRecord, value: f64) -> String {
    match &*record.header.unit {
        "s" => brief_duration(std::time::Duration::from_secs_f64(value.clamp(0.0, 1e9))),
        unit if value.fract() == 0.0 && (0.0..1e15).contains(&value) => {
            format!("{}{unit}", show_count(value as u64))
        }
        unit => format!("{value}{unit}"),
    }
}

/// Length of the longest bar.
const BAR_COLUMNS: f64 = 24.0;

/// Usage of the longest bar.
const USAGE_MAX: f64 = 2.0;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::search::SearchRun;

    #[test]
    fn values_that_differ_by_little_are_shown_with_all_their_digits() {
        let record = crate::search::tests::record();
        let shown = [900.0, 1_600.0, 1_604.0, 12_500.0, 12_501.0, 1.5];
        let shown = shown.map(|value| show_value(&record, value));
        assert_eq!(shown, ["900", "1.6k", "1604", "12.5k", "12501", "1.5"]);
    }

    #[test]
    fn the_report_of_a_degraded_run_is_named() {
        let mut record = crate::search::tests::record();
        assert!(!search_text(&record).contains("degraded"));
        record.push(RecordedRun {
            run: SearchRun { value: 50.0, outcome: SearchOutcome::Met, usage: None },
            grade: Some(Grade::Degraded),
            judgements: Vec::new(),
            reached: BTreeMap::new(),
            verdict: "met".to_owned(),
            run_file: "find.50.jsonl".to_owned(),
        });
        let text = search_text(&record);
        assert!(text.contains("\nwhy a run is degraded: throng report find.50.jsonl"), "{text}");
    }
}
