//! A search as CSV: a row for each run and condition.

use std::fmt::Write as _;

use super::csv::quoted;
use crate::search::SearchRecord;

/// Returns a search as CSV (RFC 4180, with plain line feeds). What was not measured is empty.
/// Values of the knob are in its unit, measured values in the unit of the condition: microseconds,
/// bytes, a count, a rate per second or a share.
pub fn search_csv(record: &SearchRecord) -> String {
    let mut out = "run,knob,value,outcome,grade,usage,condition,measured,met,run_file\n".to_owned();
    let or_nothing = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for (index, run) in record.runs.iter().enumerate() {
        let grade = run.grade.map_or_else(String::new, |grade| grade.to_string());
        for (at, condition) in record.header.slo.iter().enumerate() {
            let judged = run.judgements.get(at);
            let _ = writeln!(
                out,
                "{},{},{},{},{grade},{},{},{},{},{}",
                index + 1,
                quoted(&record.header.knob),
                run.run.value,
                run.run.outcome,
                or_nothing(run.run.usage),
                quoted(condition),
                or_nothing(judged.and_then(|judged| judged.value)),
                judged.map_or_else(String::new, |judged| judged.met.to_string()),
                quoted(&run.run_file),
            );
        }
    }
    out
}
