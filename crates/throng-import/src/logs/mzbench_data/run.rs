//! What MZBench has counted so far, and the interval of a moment.

use std::collections::BTreeMap;

use throng_report::{LatencyStats, LoadCounters, LoadInterval};

use super::super::count::count_of;
use super::super::counted_lines::CountedLines;
use super::MetricValue;
use super::metric::{ANSWERED, MetricUse};
use crate::translator::Translator;

/// The run so far.
#[derive(Debug)]
pub(super) struct MzbenchRun {
    /// Whether the worker is the tcp_worker.
    is_tcp: bool,
    /// The total of each counter.
    totals: BTreeMap<String, u64>,
    /// Answered requests at the moment before.
    answered_before: u64,
    /// Datapoints of the latency since the moment before, in milliseconds.
    latency: BTreeMap<String, f64>,
}

impl MzbenchRun {
    pub(super) fn new(is_tcp: bool) -> Self {
        let (totals, latency) = (BTreeMap::new(), BTreeMap::new());
        Self { is_tcp, totals, answered_before: 0, latency }
    }

    /// Adds the values of a moment.
    pub(super) fn add(
        &mut self,
        translator: &mut Translator<'_>,
        lines: &mut CountedLines,
        values: &[MetricValue<'_>],
    ) {
        let has_mean = values.iter().any(|value| value.metric == "latency.mean");
        for MetricValue { span, metric, value } in values {
            let what = MetricUse::of(metric, self.is_tcp);
            lines.add(&what.kind(metric), span, || what.fate(has_mean));
            if let MetricUse::Latency(datapoint) = what {
                self.latency.insert(datapoint.to_owned(), *value);
            }
            if !what.is_counter() {
                continue;
            }
            let Some(total) = count_of(*value) else {
                let label = "expected a whole number, not less than zero";
                translator.mistake(span, format!("`{metric}` is no count"), label);
                continue;
            };
            let before = self.totals.entry((*metric).to_owned()).or_default();
            if total < *before {
                let title = format!("the total of `{metric}` fell from {before} to {total}");
                let label = "data of two runs in one file? Import each by itself";
                translator.mistake(span, title, label);
            }
            *before = total;
        }
    }

    /// Returns the interval that ends with the values so far.
    pub(super) fn interval(&mut self, phase: &str) -> LoadInterval {
        let started = self.sum(MetricUse::WorkersStarted);
        let ended = self.sum(MetricUse::WorkersEnded).min(started);
        let failed = self.sum(MetricUse::WorkersFailed).min(ended);
        let (ok, errors) = (self.sum(MetricUse::Answered), self.sum(MetricUse::Failed));
        let expected = ok.saturating_add(errors);
        let mut load = LoadInterval {
            phase: phase.to_owned(),
            counters: LoadCounters {
                users_intended: started,
                users_started: started,
                iterations: started,
                users_finished: ended - failed,
                users_failed: failed,
                users_active: started - ended,
                messages_sent: expected,
                messages_expected: expected,
                messages_answered: ok,
                messages_failed: errors,
                ..LoadCounters::default()
            },
            ..LoadInterval::default()
        };
        if errors > 0 {
            load.errors.add("request_error", errors);
        }
        let latency = std::mem::take(&mut self.latency);
        let count = self.totals.get(ANSWERED).copied().unwrap_or(0);
        let grown = count.saturating_sub(std::mem::replace(&mut self.answered_before, count));
        if let Some(stats) = stats(&latency, grown) {
            load.latency_stats.insert("message".to_owned(), stats);
        }
        load
    }

    /// Reports whether all workers had ended; `None` if the data do not say it.
    pub(super) fn is_over(&self) -> Option<bool> {
        let started = self.sum(MetricUse::WorkersStarted);
        (started > 0).then(|| self.sum(MetricUse::WorkersEnded) >= started)
    }

    fn sum(&self, what: MetricUse<'_>) -> u64 {
        let wanted =
            self.totals.iter().filter(|(name, _)| MetricUse::of(name, self.is_tcp) == what);
        wanted.fold(0, |sum, (_, total)| sum.saturating_add(*total))
    }
}

/// Returns the statistics of `count` latencies with these datapoints; `None` without a mean.
fn stats(datapoints: &BTreeMap<String, f64>, count: u64) -> Option<LatencyStats> {
    let us = |name: &str| datapoints.get(name).map(|ms| ms * 1_000.0).filter(|us| *us >= 0.0);
    let percentiles = ["50", "75", "90", "95", "99", "999"];
    let known = percentiles.into_iter().filter_map(|name| Some((format!("p{name}"), us(name)?)));
    let mean_us = us("mean").filter(|_| count > 0)?;
    Some(LatencyStats {
        count,
        mean_us,
        deviation_us: None,
        min_us: us("min"),
        max_us: us("max"),
        percentiles_us: known.collect(),
    })
}
