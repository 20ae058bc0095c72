//! The thresholds that a run missed.

use throng_measure::Operation;
use throng_measure::http_status::StatusRange;
use throng_report::{Judgement, Threshold};

/// The thresholds that a run missed, in the form that rules need.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MissedThresholds {
    missed: Vec<MissedThreshold>,
}

/// A threshold that was missed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MissedThreshold {
    /// Name of the metric, such as `message.p99`.
    pub(crate) name: String,
    /// Measured value for people, such as `51.2 ms`.
    pub(crate) measured: String,
    /// Measured value in the unit of the run file, or `None` if nothing was measured.
    pub(crate) value: Option<f64>,
    /// Threshold as it was written, such as `< 10ms`.
    pub(crate) condition: String,
    /// True if the run measured less than the threshold asks for, false if it measured more.
    pub(crate) asks_for_more: bool,
    /// True if the threshold limits failures.
    limits_failures: bool,
    /// Latency that the threshold limits, such as `message`, and the limit in microseconds.
    pub(crate) latency: Option<(String, u64)>,
}

impl MissedThresholds {
    /// Selects the missed ones from the judgements of all thresholds.
    pub(crate) fn of(judgements: &[Judgement]) -> Self {
        let missed = judgements.iter().filter(|judgement| !judgement.met);
        Self { missed: missed.filter_map(MissedThreshold::of).collect() }
    }

    /// Returns the missed thresholds, in the order of the scenario.
    pub(crate) fn missed(&self) -> &[MissedThreshold] {
        &self.missed
    }

    /// Returns the longest time that `kind`, such as `message`, may take, if a threshold on it was
    /// missed.
    pub(crate) fn latency_us(&self, kind: &str) -> Option<u64> {
        let limits = self.missed.iter().filter_map(|missed| missed.latency.as_ref());
        limits.filter(|(of, _)| of == kind).map(|(_, us)| *us).min()
    }

    /// Returns the shortest time that an answer of any kind may take, if a threshold on one was
    /// missed.
    pub(crate) fn answer_us(&self) -> Option<u64> {
        Operation::requests().filter_map(|of| self.latency_us(of.name())).min()
    }

    /// Reports whether a threshold on errors, failed connects or failed users was missed.
    pub(crate) fn no_errors(&self) -> bool {
        self.missed.iter().any(MissedThreshold::is_about_errors)
    }
}

impl MissedThreshold {
    fn of(judgement: &Judgement) -> Option<Self> {
        let threshold: Threshold = judgement.threshold.parse().ok()?;
        // A latency of one class is one of its operation.
        let class = threshold.name().len() - threshold.name_without_class().len();
        let latency = threshold.latency_most().map(|(of, us)| (of[class..].to_owned(), us));
        Some(Self {
            name: threshold.name().to_owned(),
            measured: judgement.measured.clone(),
            value: judgement.value,
            condition: threshold.condition().to_owned(),
            asks_for_more: threshold.asks_for_more_than(judgement.value.unwrap_or(0.0)),
            limits_failures: threshold.limits_failures(),
            latency,
        })
    }

    /// Returns the kind of latency that the threshold limits, such as `message`.
    pub(crate) fn latency(&self) -> Option<&str> {
        self.latency.as_ref().map(|(of, _)| of.as_str())
    }

    /// Reports whether the threshold is on errors, failed connects, failed users, the errors of a
    /// step with a name, or limits answers with a status of 300 or more.
    pub(crate) fn is_about_errors(&self) -> bool {
        self.limits_failures && (self.statuses().is_none() || !self.asks_for_more)
    }

    /// Reports whether the run missed the threshold by the statuses of its answers: their share is
    /// not larger or smaller because answers take longer.
    pub(crate) fn is_about_status_share(&self) -> bool {
        self.statuses().is_some() && self.condition.ends_with('%')
    }

    /// Returns the statuses of answers that the threshold is about, expected or not.
    pub(crate) fn statuses(&self) -> Option<StatusRange> {
        StatusRange::named(self.name.strip_prefix("http.")?)
    }

    /// Describes it, such as `message.p99 51.2 ms, required < 10ms`.
    pub(crate) fn describe(&self) -> String {
        match self.value {
            Some(_) => format!("{} {}, required {}", self.name, self.measured, self.condition),
            None => format!("{} could not be measured, required {}", self.name, self.condition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(threshold: &str, value: Option<f64>, measured: &str) -> Judgement {
        let (threshold, measured) = (threshold.to_owned(), measured.to_owned());
        Judgement { threshold, met: false, value, measured }
    }

    #[test]
    fn a_missed_threshold_is_described_with_its_value_and_its_limit() {
        let thresholds = MissedThresholds::of(&[
            judged("message.p99 < 10ms", Some(51_200.0), "51.2 ms"),
            judged("message.p90 < 8ms", Some(50_000.0), "50.0 ms"),
            judged("push.p99 < 1s", None, "nothing"),
            judged("class.api.http.p99 < 5ms", Some(9_000.0), "9.00 ms"),
            Judgement { met: true, ..judged("connect.p99 < 1ms", Some(1.0), "1 µs") },
        ]);
        let words: Vec<_> = thresholds.missed().iter().map(MissedThreshold::describe).collect();
        assert_eq!(
            words,
            [
                "message.p99 51.2 ms, required < 10ms",
                "message.p90 50.0 ms, required < 8ms",
                "push.p99 could not be measured, required < 1s",
                "class.api.http.p99 9.00 ms, required < 5ms",
            ]
        );
        assert_eq!(
            (thresholds.latency_us("message"), thresholds.latency_us("connect")),
            (Some(8_000), None)
        );
        assert_eq!(thresholds.latency_us("http"), Some(5_000), "of any class");
        assert!(!thresholds.no_errors());
    }

    #[test]
    fn thresholds_about_errors_are_known() {
        let check = |name: &str, is_one: bool| {
            let thresholds =
                MissedThresholds::of(&[judged(&format!("{name} < 1"), Some(3.0), "3")]);
            assert_eq!(thresholds.no_errors(), is_one, "{name}");
        };
        check("errors", true);
        check("errors.closed_by_peer", true);
        check("connect.failed.ECONNREFUSED", true);
        check("users.failed", true);
        check("http.5xx", true);
        check("http.429", true);
        check("errors.http_status.429", true);
        check("step.login.errors", true);
        check("class.api.http.failed", true);
        check("class.api.http.ok", false);
        check("users.waiting", false);
        check("http.2xx", false);
        check("http.200", false);
        check("step.errors.p99", false);
    }

    #[test]
    fn a_threshold_that_asks_for_more_answers_is_not_about_errors() {
        for threshold in ["http.2xx >= 5k", "http.200 == 10", "http.302 >= 10"] {
            let thresholds = MissedThresholds::of(&[judged(threshold, Some(3.0), "3")]);
            assert!(!thresholds.no_errors(), "{threshold}");
        }
    }
}
