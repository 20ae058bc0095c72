//! k6: the JSON of `--summary-export` and of `handleSummary`: one number or a few for each metric
//! of a whole run.
//!
//! The run file has one interval. Percentiles are those that k6 computed. A trend has no number of
//! values: it is that of the counter which grows with it.

use std::collections::BTreeMap;

use serde::Deserialize;
use throng_measure::runfile::RunEnd;
use throng_measure::{LatencyStats, LoadInterval, StepInterval};

use super::counted_lines::{CountedLines, approximated, fate_of, not_needed, not_supported};
use super::json_place::{key_place, place, problem};
use super::log_importer::LogImporter;
use super::run_draft::{RUN_MS_MAX, RunDraft, header};
use crate::fidelity::Fidelity;
use crate::row::Row;
use crate::source::Source;
use crate::translator::Translator;

pub(crate) const K6_SUMMARY: LogImporter = LogImporter {
    tool: "k6",
    reads: "summary of k6 (--summary-export or handleSummary)",
    recognises,
    read,
};

fn recognises(source: &Source<'_>) -> bool {
    let text = source.text.trim_start();
    let is_k6 = ["\"iterations\"", "\"http_reqs\"", "\"ws_sessions\"", "\"root_group\""]
        .iter()
        .any(|key| text.contains(key));
    text.starts_with('{') && text.contains("\"metrics\"") && is_k6
}

fn read(translator: &mut Translator<'_>) -> Option<Vec<u8>> {
    let text = translator.source.text;
    let summary: K6Summary = match serde_json::from_str(text) {
        Ok(summary) => summary,
        Err(error) => {
            let span = place(text, error.line(), error.column());
            let label = format!("expected the JSON of k6's summary: {}", problem(&error));
            return translator.fail(&span, "this summary of k6 cannot be read", label);
        }
    };
    let mut lines = CountedLines::default();
    let Some(ms) = summary.duration_ms() else {
        let label = "expected `state.testRunDurationMs`, or a counter with `count` and `rate`";
        return translator.fail(&(0..0), "this summary does not say how long the run took", label);
    };
    let mut header = header(&translator.source, "k6", FORMAT, None);
    header.users_planned = summary.number("vus_max", "max").map_or(0, |n| n as u64);
    let mut draft = RunDraft::new(&header, PHASE);
    let load = summary.interval(text, &mut lines);
    draft.add(ms, load);
    lines.add("start", &(0..0), || approximated("the summary does not say when the run began"));
    lines.report(translator);
    draft.finish(Some(RunEnd::default()))
}

/// A summary in either form.
#[derive(Debug, Deserialize)]
struct K6Summary {
    metrics: BTreeMap<String, SummaryMetric>,
    #[serde(default)]
    state: Option<State>,
}

#[derive(Debug, Deserialize)]
struct State {
    #[serde(rename = "testRunDurationMs", default)]
    duration_ms: Option<f64>,
}

/// A metric. `handleSummary` has the numbers in `values`, `--summary-export` beside one another.
#[derive(Debug, Deserialize)]
struct SummaryMetric {
    #[serde(default)]
    values: Option<BTreeMap<String, serde_json::Value>>,
    #[serde(flatten)]
    rest: BTreeMap<String, serde_json::Value>,
}

impl SummaryMetric {
    fn number(&self, key: &str) -> Option<f64> {
        let value = self.values.as_ref().unwrap_or(&self.rest).get(key)?;
        value.as_f64().filter(|number| *number >= 0.0)
    }

    /// Returns the statistics of a trend in milliseconds.
    fn stats(&self, count: u64) -> Option<LatencyStats> {
        let us = |key: &str| self.number(key).map(|ms| ms * 1_000.0);
        let percentiles = [
            ("p50", ["med", "p(50)"]),
            ("p90", ["p(90)", ""]),
            ("p95", ["p(95)", ""]),
            ("p99", ["p(99)", ""]),
            ("p999", ["p(99.9)", ""]),
        ];
        let known = percentiles
            .into_iter()
            .filter_map(|(name, keys)| Some((name.to_owned(), keys.into_iter().find_map(us)?)));
        Some(LatencyStats {
            count,
            mean_us: us("avg")?,
            deviation_us: None,
            min_us: us("min"),
            max_us: us("max"),
            percentiles_us: known.collect(),
        })
    }
}

impl K6Summary {
    fn number(&self, metric: &str, key: &str) -> Option<f64> {
        self.metrics.get(metric)?.number(key)
    }

    fn count(&self, metric: &str) -> u64 {
        self.number(metric, "count").map_or(0, |count| count as u64)
    }

    /// Returns the length of the run: k6 divides counts by it.
    fn duration_ms(&self) -> Option<u64> {
        let said = self.state.as_ref().and_then(|state| state.duration_ms);
        let counted = || {
            self.metrics.values().find_map(|metric| {
                let (count, rate) = metric.number("count").zip(metric.number("rate"))?;
                (count > 0.0 && rate > 0.0).then(|| 1_000.0 * count / rate)
            })
        };
        let ms = said.or_else(counted)?;
        ((1.0..RUN_MS_MAX as f64).contains(&ms)).then(|| ms.round() as u64)
    }

    /// Returns the interval of the whole run.
    fn interval(&self, text: &str, lines: &mut CountedLines) -> LoadInterval {
        let mut load = LoadInterval { phase: PHASE.to_owned(), ..LoadInterval::default() };
        let counters = &mut load.counters;
        let requests = self.count("http_reqs");
        // `http_req_failed` is a rate of failures: what passes has failed.
        let failed = self.metrics.get("http_req_failed");
        let failed = failed.and_then(|metric| {
            let of_all = || Some((metric.number("value")? * requests as f64).round());
            metric.number("passes").or_else(of_all)
        });
        let failed = failed.map_or(0, |failed| failed as u64).min(requests);
        (counters.http_started, counters.http_failed) = (requests, failed);
        counters.http_ok = requests - failed;
        let (iterations, dropped) = (self.count("iterations"), self.count("dropped_iterations"));
        counters.users_intended = iterations.saturating_add(dropped);
        counters.users_started = iterations;
        counters.iterations = iterations;
        counters.users_finished = iterations;
        counters.users_active = self.number("vus", "max").map_or(0, |most| most as u64);
        counters.messages_sent = self.count("ws_msgs_sent");
        counters.messages_received = self.count("ws_msgs_received");
        load.core.bytes_sent = self.count("data_sent");
        load.core.bytes_received = self.count("data_received");
        if failed > 0 {
            load.errors.add("http_req_failed", failed);
        }
        let checks = self.number("checks", "fails").map_or(0, |fails| fails as u64);
        if checks > 0 {
            load.errors.add("check_failed", checks);
        }
        for (name, metric) in &self.metrics {
            let fate = self.latency(&mut load, name, metric);
            lines.add(name, &key_place(text, name), || fate);
        }
        load
    }

    /// Adds what a metric has of a latency, and returns what the report says of the metric.
    fn latency(
        &self,
        load: &mut LoadInterval,
        name: &str,
        metric: &SummaryMetric,
    ) -> (Fidelity, String) {
        let (latency, count) = match name {
            "http_req_duration" => ("http", self.count("http_reqs")),
            "ws_connecting" => {
                let connects = self.count("ws_sessions");
                load.counters.connects_started = connects;
                load.counters.connects_ok = connects;
                ("connect", connects)
            }
            "iteration_duration" => ("step.iteration", self.count("iterations")),
            "ws_session_duration" => ("step.session", self.count("ws_sessions")),
            name if COUNTED.contains(&name) || Row::of(METRICS, name).is_some() => {
                return fate_of(METRICS, name);
            }
            name if name.starts_with("http_req_") => {
                return not_needed("a part of http_req_duration or before it, or a tag of it");
            }
            _ => {
                return not_supported(
                    "the summary does not say how many values it has, or it is no time of k6's own",
                );
            }
        };
        let Some(stats) = metric.stats(count).filter(|stats| stats.count > 0) else {
            return not_supported("the summary has no mean or no number of values of it");
        };
        if let Some(step) = latency.strip_prefix("step.") {
            let (name, ok) = (step.to_owned(), count);
            load.steps.push(StepInterval { name, ok, ..StepInterval::default() });
        }
        load.latency_stats.insert(latency.to_owned(), stats);
        fate_of(METRICS, name)
    }
}

/// The kind of log.
const FORMAT: &str = "k6 summary";
/// What the run file calls the load.
const PHASE: &str = "load of k6";
/// Metrics of which the run file has the number.
const COUNTED: [&str; 6] =
    ["http_reqs", "data_sent", "data_received", "ws_msgs_sent", "ws_msgs_received", "vus_max"];

/// Metrics that the run file has nearly as they are, or that say what others say.
const METRICS: &[Row] = rows! {
    "http_req_duration" Approximated "" => "of all requests, those that failed included";
    "ws_connecting" Approximated "" =>
        "a session of ws_sessions is a connect: the summary does not say which failed";
    "vus" Approximated "" => "the most of it, at the end of the run";
    "iterations" "dropped_iterations" Approximated "" => "an iteration is an arrival";
    "http_req_failed" Approximated "" => "an error of this name: the summary has no statuses";
    "checks" Approximated "" => "a check that failed is an error, check_failed";
    "ws_sessions" NotNeeded "" => "the number of ws_connecting";
};
