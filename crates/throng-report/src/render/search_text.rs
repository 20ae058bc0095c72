//! The report of a search as text and as Markdown: the result, its reason, and the knee.

use std::fmt::Write;

use throng_base::units::{brief_count, brief_duration, brief_share};

use super::table::{Align, Table};
use crate::search::{RecordedRun, SearchEnd, SearchRecord, SearchResult};
use crate::threshold;

/// Returns the report of a search as text.
pub fn search_text(record: &SearchRecord) -> String {
    let mut out = search_sentence(record);
    if let Some(why) = bound_verdict(record) {
        let _ = write!(out, "\n  {why}");
    }
    let mut rows = rows(record).into_iter();
    let mut table = Table::with_head(rows.next().unwrap_or_default()).aligned(&align(record));
    rows.for_each(|row| {
        table.row(row);
    });
    format!("{out}\n\n{table}")
}

fn align(record: &SearchRecord) -> Vec<Align> {
    let figures = 1 + record.header.slo.len();
    let mut align = vec![Align::Right; figures];
    align.extend([Align::Left; 3]);
    align
}

/// Returns the report of a search as Markdown.
pub fn search_markdown(record: &SearchRecord) -> String {
    let mut out = format!("**{}**\n", search_sentence(record));
    if let Some(why) = bound_verdict(record) {
        let _ = write!(out, "\n{why}\n");
    }
    for (index, row) in rows(record).iter().enumerate() {
        let cells: Vec<_> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = write!(out, "\n| {} |", cells.join(" | "));
        if index == 0 {
            let _ = write!(out, "\n|{}", "---|".repeat(row.len()));
        }
    }
    out
}

/// Returns the result in one sentence.
pub fn search_sentence(record: &SearchRecord) -> String {
    let header = &record.header;
    let slo = header.slo.join(", ");
    let Some(SearchResult { found, bound, end }) = record.end else {
        return format!("the search for {} with {slo} has not ended", header.knob);
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

/// Returns the verdict of the run that bounds the result.
fn bound_verdict(record: &SearchRecord) -> Option<String> {
    let bound = record.end?.bound?;
    let run = record.runs.iter().find(|run| run.run.value == bound)?;
    Some(format!("at {}: {}", show_value(record, bound), run.verdict))
}

/// Returns the header and a row for each value, in their order.
fn rows(record: &SearchRecord) -> Vec<Vec<String>> {
    let mut header = vec![record.header.knob.clone()];
    header.extend(record.header.slo.iter().map(|slo| threshold::split(slo).0.to_owned()));
    header.extend(["outcome", "grade", "of the limit"].map(str::to_owned));
    let mut runs: Vec<_> = record.runs.iter().collect();
    runs.sort_by(|one, other| one.run.value.total_cmp(&other.run.value));
    let mut rows = vec![header];
    rows.extend(runs.into_iter().map(|run| row(record, run)));
    rows
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

/// Shows a value of the knob with its unit.
pub fn show_value(record: &SearchRecord, value: f64) -> String {
    match &*record.header.unit {
        "s" => brief_duration(std::time::Duration::from_secs_f64(value.clamp(0.0, 1e9))),
        unit if value.fract() == 0.0 && value < 1e15 => {
            format!("{}{unit}", brief_count(value))
        }
        unit => format!("{value}{unit}"),
    }
}

/// Length of the longest bar.
const BAR_COLUMNS: f64 = 24.0;

/// Usage of the longest bar.
const USAGE_MAX: f64 = 2.0;
