//! Artillery 2: the JSON of `artillery run --output FILE`: counters, and statistics of durations,
//! of each period of ten seconds and of the whole run.
//!
//! Percentiles are those that Artillery computed, of each period by itself. The file has no values.
//! `docs/importing/logs.md` has a table of all metrics.

mod metric;
mod run;

use std::collections::BTreeMap;

use serde::Deserialize;
use throng_measure::LatencyStats;
use throng_measure::runfile::RunEnd;

use super::counted_lines::{CountedLines, not_needed, not_supported};
use super::json_place::{key_place, place, problem};
use super::log_importer::LogImporter;
use super::run_draft::{RunDraft, header, mistake_of_length};
use super::utc::UtcTime;
use crate::fidelity::Fidelity;
use crate::source::Source;
use crate::translator::Translator;
use metric::{CounterUse, SummaryUse};
use run::ArtilleryRun;

pub(crate) const ARTILLERY_REPORT: LogImporter = LogImporter {
    tool: "artillery",
    reads: "report of Artillery 2 (artillery run --output)",
    recognises,
    read,
};

fn recognises(source: &Source<'_>) -> bool {
    let text = source.text.trim_start();
    let has = |key: &str| text.contains(key);
    let is_artillery = has("\"vusers.created\"") || has(OLD_KEY);
    text.starts_with('{') && has("\"aggregate\"") && is_artillery
}

fn read(translator: &mut Translator<'_>) -> Option<Vec<u8>> {
    let text = translator.source.text;
    let report: ArtilleryReport = match serde_json::from_str(text) {
        Ok(report) => report,
        Err(error) => {
            let span = place(text, error.line(), error.column());
            let label =
                format!("expected the JSON of `artillery run --output`: {}", problem(&error));
            return translator.fail(&span, "this report of Artillery cannot be read", label);
        }
    };
    if report.aggregate.counters.is_empty() && text.contains(OLD_KEY) {
        let label = "expected `counters` and `summaries`, as Artillery 2 writes them";
        return translator.fail(&key_place(text, "scenariosCreated"), OLD, label);
    }
    let mut lines = CountedLines::default();
    report.report(translator, &mut lines);
    let timeline = report.timeline(translator)?;
    let mut header = header(&translator.source, "artillery", FORMAT, Some(timeline.began));
    if let Some(imported) = &mut header.imported
        && report.intermediate.len() > 1
    {
        imported.latency_stats = ArtilleryRun::whole(&report.aggregate);
    }
    let mut draft = RunDraft::new(&header, PHASE);
    let mut run = ArtilleryRun::default();
    let mut rest = timeline.ends.into_iter().peekable();
    while let Some((at_ms, period)) = rest.next() {
        run.add(period);
        if rest.peek().is_none_or(|(next, _)| *next > at_ms) {
            draft.add(at_ms, run.interval(PHASE, rest.peek().is_none()));
        }
    }
    lines.report(translator);
    translator.mistakes.is_empty().then_some(())?;
    draft.finish(Some(RunEnd::default()))
}

#[derive(Debug, Deserialize)]
struct ArtilleryReport {
    aggregate: Period,
    #[serde(default)]
    intermediate: Vec<Period>,
}

/// The metrics of a period, or of the whole run.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Period {
    counters: BTreeMap<String, Option<f64>>,
    rates: BTreeMap<String, serde_json::Value>,
    summaries: BTreeMap<String, ArtilleryStats>,
    /// When the period began, in milliseconds since 1970: a number or a text.
    period: serde_json::Value,
    first_metric_at: Option<f64>,
    last_metric_at: Option<f64>,
}

/// Statistics of a duration, in milliseconds.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ArtilleryStats {
    count: Option<f64>,
    mean: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
}

impl ArtilleryStats {
    /// Returns the statistics, if there are values and their mean is known.
    fn known(&self) -> Option<LatencyStats> {
        let us = |ms: Option<f64>| ms.filter(|ms| *ms >= 0.0).map(|ms| ms * 1_000.0);
        let percentiles = self.percentiles().into_iter();
        Some(LatencyStats {
            count: self.count.filter(|count| *count >= 1.0)? as u64,
            mean_us: us(self.mean)?,
            deviation_us: None,
            min_us: us(self.min),
            max_us: us(self.max),
            percentiles_us: percentiles
                .filter_map(|(name, ms)| Some((name.to_owned(), us(ms)?)))
                .collect(),
        })
    }

    fn percentiles(&self) -> [(&'static str, Option<f64>); 5] {
        let Self { p50, p90, p95, p99, p999, .. } = *self;
        [("p50", p50), ("p90", p90), ("p95", p95), ("p99", p99), ("p999", p999)]
    }
}

impl Period {
    /// Returns when the period began, in milliseconds since 1970.
    fn began_ms(&self) -> Option<i64> {
        let text = self.period.as_str().and_then(|text| text.parse().ok());
        text.or_else(|| self.period.as_i64()).filter(|ms| MOMENTS_MS.contains(ms))
    }

    fn first_ms(&self) -> Option<i64> {
        moment_ms(self.first_metric_at)
    }

    fn last_ms(&self) -> Option<i64> {
        moment_ms(self.last_metric_at)
    }
}

/// When a run began, and its periods, each with its end in milliseconds after that.
struct Timeline<'a> {
    began: UtcTime,
    ends: Vec<(u64, &'a Period)>,
}

impl ArtilleryReport {
    /// Returns the periods in their order. A report without periods has one: the whole run.
    fn timeline(&self, translator: &mut Translator<'_>) -> Option<Timeline<'_>> {
        let text = translator.source.text;
        let mut periods = Vec::new();
        for period in &self.intermediate {
            let Some(began) = period.began_ms() else {
                let label = "expected `period`: milliseconds since 1970";
                let span = key_place(text, "intermediate");
                return translator.fail(&span, "a period does not say when it began", label);
            };
            periods.push((began, period));
        }
        periods.sort_by_key(|(began, _)| *began);
        let steps = periods.windows(2).map(|pair| pair[1].0 - pair[0].0);
        let length = steps.filter(|ms| *ms > 0).min().unwrap_or(PERIOD_MS);
        if periods.is_empty() {
            periods.push((self.aggregate.first_ms().unwrap_or_default(), &self.aggregate));
        }
        let first = periods.first()?;
        let firsts = [self.aggregate.first_ms(), first.1.first_ms(), Some(first.0)];
        let began = firsts.into_iter().flatten().find(|ms| *ms > 0);
        let last = periods.last()?.1;
        let ended = [self.aggregate.last_ms(), last.last_ms()].into_iter().flatten().max();
        let Some((began, ended)) = began.zip(ended).filter(|(began, ended)| began < ended) else {
            let label = "expected `firstMetricAt` and `lastMetricAt` in `aggregate`";
            let span = key_place(text, "aggregate");
            return translator.fail(&span, "this report does not say how long the run took", label);
        };
        let last_at = periods.last()?.0;
        let ends = periods.into_iter().map(|(at, period)| {
            let end = if at == last_at { ended.max(at + 1) } else { at + length };
            (u64::try_from(end - began).unwrap_or(0), period)
        });
        let ends: Vec<_> = ends.collect();
        let longest = ends.iter().map(|(end, _)| *end).max().unwrap_or(0);
        if let Some((title, label)) = mistake_of_length(longest) {
            return translator.fail(&key_place(text, "aggregate"), title, label);
        }
        Some(Timeline { began: UtcTime(began * 1_000), ends })
    }

    /// Reports what becomes of each metric, and mistakes of counters.
    fn report(&self, translator: &mut Translator<'_>, lines: &mut CountedLines) {
        let text = translator.source.text;
        for (name, total) in &self.aggregate.counters {
            let (kind, fate) = CounterUse::of(name).fate(name);
            let span = key_place(text, name);
            lines.add(kind, &span, || fate);
            let sum: f64 =
                self.intermediate.iter().filter_map(|p| p.counters.get(name)?.as_ref()).sum();
            let is_used = CounterUse::of(name) != CounterUse::Unused;
            if is_used && !self.intermediate.is_empty() && Some(sum) != *total {
                let why = format!("the periods have {sum}, the whole run {}", total.unwrap_or(0.0));
                lines.add(&format!("sum of {name}"), &span, || (Fidelity::Suspicious, why));
            }
        }
        let counters = self.intermediate.iter().chain([&self.aggregate]).flat_map(|p| &p.counters);
        for (name, value) in counters {
            let value = value.unwrap_or(0.0);
            let is_count = value >= 0.0 && value.fract() == 0.0;
            if !is_count && CounterUse::of(name) != CounterUse::Unused {
                let label = "expected a whole number, not less than zero";
                return translator.mistake(
                    &key_place(text, name),
                    format!("`{name}` is {value}"),
                    label,
                );
            }
        }
        if !self.aggregate.rates.is_empty() {
            let why = "a rate is a counter divided by a time";
            lines.add("rates", &key_place(text, "rates"), || not_needed(why));
        }
        for (name, stats) in &self.aggregate.summaries {
            let span = key_place(text, name);
            let of = SummaryUse::of(name);
            if stats.known().is_none() && of.is_used() {
                let why = "it has no mean, as reports of early versions of Artillery 2";
                lines.add(name, &span, || not_supported(why));
                continue;
            }
            lines.add(of.kind(name), &span, || of.fate());
        }
    }
}

fn moment_ms(ms: Option<f64>) -> Option<i64> {
    ms.map(|ms| ms as i64).filter(|ms| MOMENTS_MS.contains(ms))
}

/// The kind of log.
const FORMAT: &str = "artillery report";
/// What the run file calls the load.
const PHASE: &str = "load of artillery";
/// The length of a period, where the report has one only.
const PERIOD_MS: i64 = 10_000;
/// Moments from 1970 to the year 9999.
const MOMENTS_MS: std::ops::Range<i64> = 1..253_402_300_800_000;
/// A key of reports of Artillery 1.
const OLD_KEY: &str = "\"scenariosCreated\"";
const OLD: &str = "this report is of Artillery 1";
