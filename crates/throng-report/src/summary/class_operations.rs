//! The operations of the classes of users that a threshold is about: what a summary has of each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throng_measure::{
    Histogram, LatencyTotal, LoadInterval, Operation, OperationCounts, OperationInterval,
    PerOperation,
};

use super::clocks::Clocks;
use super::operations::OperationSummary;
use super::rates::{BestRate, MeanRate};

/// The numbers of the operations that users of a class have begun.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClassSummary {
    /// `None` of an operation that no user has begun.
    #[serde(serialize_with = "super::operation_summary::serialize")]
    pub operations: PerOperation<Option<OperationSummary>>,
}

/// The operations of all these classes so far.
#[derive(Debug, Default)]
pub(super) struct ClassFolds(BTreeMap<String, PerOperation<OperationFold>>);

/// An operation of a class so far.
#[derive(Debug, Default)]
struct OperationFold {
    last: OperationCounts,
    seen: Histogram,
    arrived: Histogram,
    unanswered: Histogram,
    best: BestRate,
    mean: MeanRate,
}

impl ClassFolds {
    /// Adds the operations of the next interval, whose counters grew for `grown_us`.
    pub(super) fn add(&mut self, load: &LoadInterval, grown_us: u64) {
        for (class, operations) in &load.class_operations {
            if self.0.len() >= CLASSES_MAX && !self.0.contains_key(class) {
                continue;
            }
            let folds = self.0.entry(class.clone()).or_default();
            for (operation, fold) in folds.iter_mut() {
                fold.add(&operations[operation], grown_us, load.is_leaving());
            }
        }
    }

    /// Returns the summary of each class.
    pub(super) fn summaries(&self) -> BTreeMap<String, ClassSummary> {
        let summary = |(class, folds): (&String, &PerOperation<OperationFold>)| {
            let operations = PerOperation::of(|operation| folds[operation].summary());
            (class.clone(), ClassSummary { operations })
        };
        self.0.iter().map(summary).collect()
    }

    /// Returns the histograms behind each latency, by its name in thresholds.
    pub(super) fn latencies(&self) -> impl Iterator<Item = (String, LatencyTotal)> {
        self.0.iter().flat_map(|(class, folds)| {
            folds.iter().map(move |(operation, fold)| {
                (name_of(class, operation), fold.clocks().total(&fold.unanswered))
            })
        })
    }
}

impl OperationFold {
    fn add(&mut self, of: &OperationInterval, grown_us: u64, is_leaving: bool) {
        let grown = of.counts.since(self.last).ok;
        self.best.add(grown, grown_us, is_leaving);
        self.mean.add(grown, grown_us, is_leaving);
        self.seen.merge(&of.latency);
        self.arrived.merge(of.best());
        self.unanswered.merge(&of.unanswered);
        self.last = of.counts;
    }

    fn clocks(&self) -> Clocks<'_> {
        Clocks { seen: &self.seen, arrived: &self.arrived }
    }

    fn summary(&self) -> Option<OperationSummary> {
        let OperationCounts { started, ok, failed, waiting, .. } = self.last;
        let is_used = started > 0 || !self.seen.is_empty() || !self.unanswered.is_empty();
        is_used.then(|| OperationSummary {
            started,
            ok,
            failed,
            waiting,
            rate_most: self.best.per_second(),
            rate_mean: self.mean.per_second(),
            latency_us: self.clocks().latency_us(),
            seen_us: (&self.seen).into(),
            unanswered_us: (&self.unanswered).into(),
            judged_us: self.clocks().judged_us(&self.unanswered),
        })
    }
}

/// Returns the name of an operation of a class in thresholds: `class.api.http`.
pub(crate) fn name_of(class: &str, operation: Operation) -> String {
    format!("class.{class}.{operation}")
}

/// The most classes that are kept: a run has no more in a line of its file that readers take.
const CLASSES_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Summary, SummaryFold, Threshold};
    use throng_measure::Interval;
    use throng_measure::runfile::RunHeader;

    /// Returns a run of three seconds with 200 requests of the class `api.v2` in each, of which one
    /// fails and one takes a second.
    fn run() -> Summary {
        let mut fold = SummaryFold::new(&RunHeader::default());
        for second in 1..=3 {
            let counts = OperationCounts {
                started: 201 * second,
                ok: 200 * second,
                failed: second,
                ..OperationCounts::default()
            };
            let mut http = OperationInterval { counts, ..OperationInterval::default() };
            http.latency.record_n(300, 199);
            http.latency.record_us(1_000_000);
            http.arrival = http.latency.clone();
            http.unanswered.record_us(5_000_000);
            let mut operations = PerOperation::default();
            operations[Operation::Http] = http;
            let class_operations = [("api.v2".to_owned(), operations)].into();
            let load = Some(LoadInterval { class_operations, ..LoadInterval::default() });
            let (at_ms, span_ms) = (1_000 * second, 1_000);
            fold.add(&Interval { at_ms, span_ms, load, ..Interval::default() });
        }
        fold.finish(None, 0)
    }

    #[track_caller]
    fn check(threshold: &str, met: bool, measured: &str) {
        let judgement = threshold.parse::<Threshold>().unwrap().judge(&run());
        assert_eq!((judgement.met, judgement.measured.as_str()), (met, measured), "{threshold}");
    }

    #[test]
    fn thresholds_judge_any_figure_of_an_operation_of_a_class() {
        check("class.api.v2.http.p50 < 1ms", true, "300 µs");
        check("class.api.v2.http.p99.2 < 2s", true, "at least 1.00 s");
        check("class.api.v2.http.max < 1s", false, "at least 5.00 s");
        check("class.api.v2.http.ok == 600", true, "600");
        check("class.api.v2.http.failed == 0", false, "3");
        check("class.api.v2.http.unanswered == 3", true, "3");
        check("class.api.v2.http.rate_mean >= 200/s", true, "200/s");
        check("class.api.v2.http.rate_most <= 200/s", true, "200/s");
        check("class.api.v2.join.p99 < 1s", false, "nothing");
        check("class.chat.http.p99 < 1s", false, "nothing");
        check("class.chat.http.failed == 0", false, "nothing");
    }

    #[test]
    fn a_summary_with_classes_comes_back_from_json() {
        let summary = Summary { latencies: BTreeMap::new(), ..run() };
        let json = serde_json::to_string(&summary).unwrap();
        assert_eq!(serde_json::from_str::<Summary>(&json).unwrap(), summary);
        assert!(json.contains(r#""class_operations":{"api.v2":{"http":{"started":603,"#), "{json}");
    }
}
