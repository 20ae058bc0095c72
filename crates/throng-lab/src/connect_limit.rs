//! The limit of a rate of arrivals: at which rate do time-outs begin?

use std::time::Duration;

use serde::Serialize;
use throng_measure::validity::LAG_INVALID_US;
use throng_measure::{Interval, LoadInterval, Operation};
use throng_run::rates::steps;
use throng_run::test_bed::NextStep;

use crate::measure::{failures, latency, timeouts, valid_until};
use crate::run_facts::RunFacts;
use crate::run_watch::{LabServer, RunWatch};
use crate::sized_scenario::SizedScenario;

/// The best rate before its limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ConnectLimit {
    /// The rate of the best second before the arrival of the first user that timed out.
    rate_most: Option<f64>,
    /// p99 of the connects up to the best second.
    connect_p99_us: u64,
    /// p99 of the answers up to the best second.
    message_p99_us: u64,
    /// The limit of the rate.
    end: RateLimit,
    /// The moment of the limit, in milliseconds since the run began.
    end_ms: u64,
    timeouts: u64,
    failed: u64,
}

/// The limit of the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum RateLimit {
    /// No limit: the load reached its end.
    #[default]
    None,
    /// Connects or answers timed out.
    Timeouts,
    /// Other failures: no port, no fd, a reset.
    Failures,
    /// The generator itself was late.
    Generator,
}

/// Watches the intervals for the limit of the rate.
#[derive(Debug)]
pub(crate) struct ConnectLimitWatch {
    /// The users' time-out.
    timeout: Duration,
    before: Option<LoadInterval>,
    /// The moment since which the generator has been behind, in milliseconds.
    behind_since_ms: Option<u64>,
    seconds_behind: u32,
    /// The limit, and the moment from which arrivals no longer count, in milliseconds.
    end: Option<(RateLimit, u64)>,
}

impl RunWatch for ConnectLimitWatch {
    /// Ends the load at the limit: more load would show nothing new, and the machine is overloaded.
    fn add(&mut self, interval: &Interval, _: &mut LabServer<'_>) -> NextStep {
        self.see(interval);
        if self.end.is_some() { NextStep::Stop } else { NextStep::Continue }
    }
}

impl ConnectLimitWatch {
    /// Returns the watch of users whose time-out is the parameter `timeout`.
    pub(crate) fn new(sized: &SizedScenario) -> Self {
        Self::with_timeout(timeout(sized))
    }

    fn with_timeout(timeout: Duration) -> Self {
        Self { timeout, before: None, behind_since_ms: None, seconds_behind: 0, end: None }
    }

    /// Adds an interval. The generator has fallen behind if it was late, or started too few users,
    /// in two consecutive seconds: another program may have caused a single one. One time-out or
    /// failure is enough.
    fn see(&mut self, interval: &Interval) {
        let Some(now) = &interval.load else { return };
        let Some(before) = self.before.replace(now.clone()) else { return };
        if self.end.is_some() {
            return;
        }
        let began_ms = interval.at_ms.saturating_sub(interval.span_ms);
        if is_behind(&before, now) {
            self.seconds_behind += 1;
            self.behind_since_ms.get_or_insert(began_ms);
        } else {
            self.seconds_behind = 0;
            self.behind_since_ms = None;
        }
        self.end = if timeouts(now) > timeouts(&before) {
            // The first user that timed out arrived one time-out earlier.
            let waited_ms = self.timeout.as_millis() as u64;
            Some((RateLimit::Timeouts, began_ms.saturating_sub(waited_ms)))
        } else if failures(now) > failures(&before) {
            Some((RateLimit::Failures, began_ms))
        } else if self.seconds_behind >= SECONDS_BEHIND {
            self.behind_since_ms.map(|since_ms| (RateLimit::Generator, since_ms))
        } else {
            None
        };
    }
}

/// Reports whether the generator did not start the users that were due in time.
fn is_behind(before: &LoadInterval, now: &LoadInterval) -> bool {
    let grown = now.counters.since(&before.counters);
    let (due, began) = (grown.users_intended as f64, grown.users_started as f64);
    let is_short = due >= DUE_MIN && began < BEGUN_SHARE_LEAST * due;
    is_short || now.lag.percentile(99.0) > LAG_INVALID_US
}

/// Finds the limit of a run whose users' time-out is the parameter `timeout`.
pub(crate) fn connect_limit(facts: &RunFacts<'_>) -> ConnectLimit {
    find(facts.intervals(), timeout(facts.sized), valid_until(facts.run))
}

fn timeout(sized: &SizedScenario) -> Duration {
    Duration::from_secs_f64(sized.param("timeout"))
}

/// Finds the best rate before the limit of [`ConnectLimitWatch`], or before the generator was late,
/// if that is earlier.
fn find(intervals: &[Interval], timeout: Duration, valid_until_ms: Option<u64>) -> ConnectLimit {
    let mut found = ConnectLimit::default();
    let mut watch = ConnectLimitWatch::with_timeout(timeout);
    intervals.iter().for_each(|interval| watch.see(interval));
    let last = intervals.last().and_then(|interval| interval.load.as_ref());
    found.timeouts = last.map_or(0, timeouts);
    found.failed = last.map_or(0, failures);
    let (mut limit, mut end_ms) = watch.end.unwrap_or((RateLimit::None, u64::MAX));
    if let Some(valid_until_ms) = valid_until_ms.filter(|ms| *ms < end_ms) {
        (limit, end_ms) = (RateLimit::Generator, valid_until_ms);
    }
    found.end = limit;
    found.end_ms = end_ms.min(intervals.last().map_or(0, |interval| interval.at_ms));
    let mut best_at_ms = 0;
    for (interval, before, now, seconds) in steps(intervals) {
        if interval.at_ms > end_ms || interval.span_ms < WHOLE_SECOND_MS {
            continue;
        }
        let answered = now.counters.messages_answered - before.counters.messages_answered;
        let per_second = answered as f64 / seconds;
        if found.rate_most.is_none_or(|most| per_second > most) && answered > 0 {
            found.rate_most = Some(per_second);
            best_at_ms = interval.at_ms;
        }
    }
    let good = || intervals.iter().filter(|interval| interval.at_ms <= best_at_ms);
    found.connect_p99_us = latency(good(), |load| load.latency(Operation::Connect)).p99;
    found.message_p99_us = latency(good(), |load| load.latency(Operation::Message)).p99;
    found
}

/// The consecutive late seconds after which the generator has fallen behind.
const SECONDS_BEHIND: u32 = 2;
/// The least share of the due users that must start.
const BEGUN_SHARE_LEAST: f64 = 0.95;
/// The least users due for which that share is meaningful.
const DUE_MIN: f64 = 100.0;
/// The shortest interval with a meaningful rate.
const WHOLE_SECOND_MS: u64 = 500;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::tests::verdict;
    use throng_measure::ErrorKind;

    /// Returns seconds with these answers, time-outs and refused connects.
    fn run(seconds: &[(u64, u64, u64)]) -> Vec<Interval> {
        let mut total = LoadInterval::default();
        let mut intervals = vec![Interval { load: Some(total.clone()), ..Default::default() }];
        for (i, (answered, timed_out, refused)) in seconds.iter().enumerate() {
            total.counters.messages_answered += answered;
            total.errors.add(ErrorKind::ExpectTimeout, *timed_out);
            total.connect_failed.add("ECONNREFUSED", *refused);
            total.counters.connects_failed += refused;
            let load = Some(total.clone());
            intervals.push(Interval {
                at_ms: 1000 * (i as u64 + 1),
                span_ms: 1000,
                load,
                ..Default::default()
            });
        }
        intervals
    }

    #[track_caller]
    fn check(seconds: &[(u64, u64, u64)], rate_most: Option<f64>, end: RateLimit, end_ms: u64) {
        let found = find(&run(seconds), Duration::from_secs(1), None);
        assert_eq!((found.rate_most, found.end, found.end_ms), (rate_most, end, end_ms));
    }

    #[test]
    fn the_best_second_before_the_first_time_out_s_arrival_counts() {
        check(
            &[(100, 0, 0), (200, 0, 0), (300, 0, 0), (400, 5, 0), (900, 0, 0)],
            Some(200.0),
            RateLimit::Timeouts,
            2000,
        );
    }

    #[test]
    fn a_run_without_failures_ends_with_its_load() {
        check(&[(100, 0, 0), (200, 0, 0), (150, 0, 0)], Some(200.0), RateLimit::None, 3000);
    }

    #[test]
    fn other_failures_count_from_when_they_happen() {
        check(&[(100, 0, 0), (200, 0, 0), (300, 0, 7)], Some(200.0), RateLimit::Failures, 2000);
    }

    #[test]
    fn a_late_generator_is_named_and_not_the_server() {
        let mut intervals = run(&[(100, 0, 0), (200, 0, 0), (300, 0, 0), (400, 0, 0)]);
        intervals[3].load.as_mut().unwrap().lag.record_us(150_000);
        let found = find(&intervals, Duration::from_secs(1), None);
        assert_eq!(
            (found.rate_most, found.end),
            (Some(400.0), RateLimit::None),
            "one second is none"
        );
        intervals[4].load.as_mut().unwrap().lag.record_us(150_000);
        let found = find(&intervals, Duration::from_secs(1), None);
        assert_eq!((found.rate_most, found.end), (Some(200.0), RateLimit::Generator));
        let sentences = verdict("fast-connect", &found);
        assert!(sentences.contains("the generator itself fell behind at 2 s"), "{sentences}");
    }

    #[test]
    fn a_generator_that_starts_too_few_users_has_fallen_behind() {
        let mut intervals = run(&[(100, 0, 0), (200, 0, 0), (300, 0, 0), (400, 0, 0)]);
        let counts = [(0, 0), (1000, 1000), (3000, 2950), (6000, 5600), (10_000, 8_000)];
        for (interval, (due, began)) in intervals.iter_mut().zip(counts) {
            let counters = &mut interval.load.as_mut().unwrap().counters;
            (counters.users_intended, counters.users_started) = (due, began);
        }
        let found = find(&intervals, Duration::from_secs(1), None);
        assert_eq!((found.rate_most, found.end), (Some(200.0), RateLimit::Generator));
        assert_eq!(found.end_ms, 2000);
    }

    #[test]
    fn seconds_after_the_generator_was_late_do_not_count() {
        let run = run(&[(100, 0, 0), (200, 0, 0), (300, 0, 0), (400, 5, 0)]);
        let found = find(&run, Duration::from_secs(1), Some(1_500));
        assert_eq!((found.rate_most, found.end_ms), (Some(100.0), 1_500));
        assert_eq!(found.end, RateLimit::Generator);
        let found = find(&run, Duration::from_secs(1), Some(3_500));
        assert_eq!((found.end, found.end_ms), (RateLimit::Timeouts, 2_000), "that was earlier");
    }

    #[test]
    fn a_server_that_never_answers_has_no_rate() {
        check(&[(0, 0, 0), (0, 9, 0)], None, RateLimit::Timeouts, 0);
        let sentences = verdict("fast-connect", &ConnectLimit::default());
        assert!(sentences.contains("there is no rate"), "{sentences}");
    }

    #[test]
    fn the_verdict_names_the_limit_and_compares_with_the_article() {
        let sentences = verdict(
            "fast-connect",
            &serde_json::json!({
                "rate_most": 16_000.0,
                "end": "timeouts",
                "end_ms": 31_000,
                "machine_busy_share": 0.97,
                "overflows": 12,
            }),
        );
        for text in
            ["16k/s without time-outs", "after 31 s", "97 %", "overflowed 12 times", "0.5 times"]
        {
            assert!(sentences.contains(text), "no {text:?} in {sentences}");
        }
    }
}
