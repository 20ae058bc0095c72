//! Steps with a name, and transactions: what a summary has of each.

use serde::{Deserialize, Serialize};
use throng_measure::STEP_NAMES_MAX;
use throng_measure::{Histogram, LatencySummary, LatencyTotal, LoadInterval, StepInterval};

use super::clocks::Clocks;
use super::rates::MeanRate;

/// The steps, or transactions, of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepSummary {
    /// The name in the scenario.
    pub name: String,
    /// Steps that ended as the scenario expects.
    pub ok: u64,
    /// Steps that an error ended, or that an earlier error made impossible.
    pub errors: u64,
    /// Steps in progress when their user was stopped.
    pub waiting: u64,
    /// Steps ended ok per second.
    pub rate_mean: Option<f64>,
    /// Time from the intended moment until the answer arrived; for a transaction, until its last
    /// step ended.
    pub latency_us: LatencySummary,
    /// Time from the intended moment until the generator read the answer: larger if it read late.
    pub seen_us: LatencySummary,
    /// Waits for an answer that never came.
    pub unanswered_us: LatencySummary,
    /// `latency_us` and `unanswered_us` combined, as a threshold compares it.
    pub judged_us: LatencySummary,
}

impl StepSummary {
    /// Returns the errors as a share of the steps that ended; `None` if none ended.
    pub fn error_share(&self) -> Option<f64> {
        let ended = self.ok.saturating_add(self.errors).saturating_add(self.waiting);
        (ended > 0).then(|| self.errors as f64 / ended as f64)
    }
}

/// The steps of one name so far.
#[derive(Debug, Default)]
pub(super) struct StepFold {
    last: StepInterval,
    seen: Histogram,
    arrived: Histogram,
    unanswered: Histogram,
    rate: MeanRate,
}

/// The steps of all names so far, in the order of the run file.
#[derive(Debug, Default)]
pub(super) struct StepFolds(Vec<StepFold>);

impl StepFolds {
    /// Adds the steps of the next interval, whose counters grew for `grown_us`.
    pub(super) fn add(&mut self, load: &LoadInterval, grown_us: u64) {
        for step in &load.steps {
            let Some(fold) = self.of(&step.name) else { continue };
            let grown = step.ok.saturating_sub(fold.last.ok);
            fold.rate.add(grown, grown_us, load.is_leaving());
            fold.seen.merge(&step.latency);
            fold.arrived.merge(step.best());
            fold.unanswered.merge(&step.unanswered);
            fold.last = step.without_measured();
        }
    }

    fn of(&mut self, name: &str) -> Option<&mut StepFold> {
        let known = self.0.iter().position(|fold| fold.last.name == name);
        let at = known.unwrap_or(self.0.len());
        if at >= STEP_NAMES_MAX {
            return None;
        }
        if known.is_none() {
            let last = StepInterval { name: name.to_owned(), ..StepInterval::default() };
            self.0.push(StepFold { last, ..StepFold::default() });
        }
        self.0.get_mut(at)
    }

    /// Returns the summary of each name.
    pub(super) fn summaries(&self) -> Vec<(StepSummary, LatencyTotal)> {
        let summary = |fold: &StepFold| {
            let clocks = Clocks { seen: &fold.seen, arrived: &fold.arrived };
            let StepInterval { name, ok, errors, waiting, .. } = &fold.last;
            let summary = StepSummary {
                name: name.clone(),
                ok: *ok,
                errors: *errors,
                waiting: *waiting,
                rate_mean: fold.rate.per_second(),
                latency_us: clocks.latency_us(),
                seen_us: (&fold.seen).into(),
                unanswered_us: (&fold.unanswered).into(),
                judged_us: clocks.judged_us(&fold.unanswered),
            };
            (summary, clocks.total(&fold.unanswered))
        };
        self.0.iter().map(summary).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Summary, SummaryFold, Threshold};
    use throng_measure::runfile::RunHeader;
    use throng_measure::{Interval, Operation};

    /// Returns a run of three seconds: 1,000 greetings a second that take `us`, of which one in a
    /// hundred takes ten times as long and one a second is not answered for five seconds.
    fn run(us: u64) -> Summary {
        let mut fold = SummaryFold::new(&RunHeader::default());
        for second in 1..=3_u64 {
            let mut greeting = StepInterval {
                name: "greeting".to_owned(),
                ok: 1_000 * second,
                errors: second,
                ..StepInterval::default()
            };
            greeting.latency.record_n(us + 5, 990);
            greeting.latency.record_n(10 * us, 10);
            greeting.arrival.record_n(us, 990);
            greeting.arrival.record_n(10 * us, 10);
            greeting.unanswered.record_us(5_000_000);
            let mut checkout =
                StepInterval { name: "checkout".to_owned(), waiting: 7, ..greeting.clone() };
            checkout.arrival = Histogram::new();
            let load = LoadInterval { steps: vec![greeting, checkout], ..LoadInterval::default() };
            let (at_ms, load) = (1_000 * second, Some(load));
            fold.add(&Interval { at_ms, span_ms: 1_000, load, ..Interval::default() });
        }
        fold.finish(None, 0)
    }

    #[track_caller]
    fn check(threshold: &str, met: bool, measured: &str) {
        let judgement = threshold.parse::<Threshold>().unwrap().judge(&run(200));
        assert_eq!((judgement.met, judgement.measured.as_str()), (met, measured), "{threshold}");
    }

    #[test]
    fn counters_are_those_of_the_last_line_and_histograms_add_up() {
        let summary = run(200);
        let [greeting, checkout] = &summary.steps[..] else { panic!("{:?}", summary.steps) };
        assert_eq!((greeting.name.as_str(), greeting.ok, greeting.errors), ("greeting", 3_000, 3));
        assert_eq!((greeting.latency_us.p50, greeting.seen_us.p50), (200, 205));
        assert_eq!((greeting.latency_us.count, greeting.unanswered_us.count), (3_000, 3));
        assert_eq!(greeting.rate_mean, Some(1_000.0));
        assert_eq!((checkout.waiting, checkout.latency_us.p50), (7, 205), "it has one clock");
    }

    #[test]
    fn thresholds_judge_any_figure_of_a_step() {
        check("step.greeting.p50 < 1ms", true, "200 µs");
        check("step.greeting.p95 < 1ms", true, "200 µs");
        check("step.greeting.p98.9 < 1ms", true, "200 µs");
        check("step.greeting.p98.96 < 1ms", false, "at least 2.00 ms");
        check("step.greeting.p99.5 <= 2ms", true, "2.00 ms");
        check("step.greeting.p99.95 < 1s", false, "at least 5.00 s");
        check("step.greeting.max < 1s", false, "at least 5.00 s");
        check("step.greeting.ok == 3000", true, "3000");
        check("step.greeting.errors == 0", false, "3");
        check("step.greeting.errors < 0.1%", true, "0.0999%");
        check("step.greeting.unanswered == 3", true, "3");
        check("step.checkout.waiting == 7", true, "7");
        check("step.greeting.rate_mean >= 1000/s", true, "1k/s");
        check("step.farewell.p95 < 1s", false, "nothing");
        check("step.farewell.errors == 0", false, "nothing");
    }

    #[test]
    fn any_percentile_of_a_kind_is_computed_from_the_histogram() {
        let mut fold = SummaryFold::new(&RunHeader::default());
        let mut load = LoadInterval::default();
        (1..=100_000).for_each(|us| load.times[Operation::Message].record_us(us));
        load.counters.messages_answered = 100_000;
        fold.add(&Interval { at_ms: 1, span_ms: 1, load: Some(load), ..Interval::default() });
        let summary = fold.finish(None, 0);
        for (name, about) in [("p12.5", 12_500.0), ("p75", 75_000.0), ("p99.99", 99_990.0)] {
            let threshold: Threshold = format!("message.{name} < 1s").parse().unwrap();
            let value = threshold.judge(&summary).value.unwrap();
            assert!((value / about - 1.0).abs() < 0.002, "{name}: {value}");
        }
    }

    #[test]
    fn a_file_with_more_names_than_a_scenario_may_have_is_read_as_far_as_that() {
        let mut fold = SummaryFold::new(&RunHeader::default());
        let step = |n: usize| StepInterval { name: format!("s{n}"), ..StepInterval::default() };
        let steps = (0..STEP_NAMES_MAX + 9).map(step).collect();
        let load = Some(LoadInterval { steps, ..LoadInterval::default() });
        fold.add(&Interval { at_ms: 1_000, span_ms: 1_000, load, ..Interval::default() });
        assert_eq!(fold.finish(None, 0).steps.len(), STEP_NAMES_MAX);
    }
}
