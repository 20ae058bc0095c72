//! The lab `fast-connect`: at which rate of new connections do time-outs begin?

use std::time::Duration;

use serde::Serialize;
use throng_base::units::show_duration;
use throng_report::render::{count, micros, or_dash, rate};
use throng_report::validity::LAG_INVALID_US;
use throng_report::{Interval, LoadInterval, Metric, Summary};

use crate::calibrate::{CalibrationOutcome, calibrate};
use crate::error::LabError;
use crate::lab::Lab;
use crate::measure::{
    counter_growth, failures, latency, steps, timeouts, valid_until, validity_until,
};
use crate::options::LabInfo;
use crate::progress::LabProgress;
use crate::report::{LabReport, LabTable, SCHEMA};
use crate::test_bed::{LoadSpec, NextStep, ServerSpec};

pub(crate) const INFO: LabInfo = LabInfo {
    name: "fast-connect",
    article: "Fast TCP sockets (Erlang Central): accepting connections",
    summary: "ever more arrivals; each user connects, sends, waits for the answer, closes: the \
              rate at which time-outs begin",
    takes_rate: false,
};

/// The lab's result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct FastConnectResult {
    /// The growth of the arrival rate per second.
    slope: f64,
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
    overflows: Option<u64>,
    server_cpu_us: Option<f64>,
    load_cpu_us: Option<f64>,
    machine_busy_share: Option<f64>,
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

pub(crate) fn run(
    lab: &Lab<'_>,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    let seconds = lab.options.seconds.unwrap_or(40);
    let of = 1 + usize::from(lab.options.users.is_none());
    // `--users` is the total of arrivals. A rate that grows from 0 to R in T seconds has R T / 2.
    let (rate_end, capacity, stopped) = match lab.options.users {
        Some(users) => (2.0 * users as f64 / seconds as f64, None, false),
        None => {
            let CalibrationOutcome { rate, interrupted } =
                calibrate(lab, &user(TIMEOUT), of, progress)?;
            (RATE_END_TIMES * rate.unwrap_or(1_000.0), rate, interrupted)
        }
    };
    // All connections that arrive within a time-out may be open at once.
    let open = (rate_end * (TIMEOUT.as_secs_f64() + 1.0)) as u64;
    lab.check_fits(open)?;
    let text = scenario(rate_end.round() as u64, Duration::from_secs(seconds), None, TIMEOUT);
    progress(LabProgress::Row { name: ROW, number: of, of, seconds });
    let cores = lab.machine.cores_for(open);
    let server = lab.test_bed.serve(ServerSpec::new(ROW, "ok", cores))?;
    let spec = LoadSpec::tcp(ROW, &text, seconds);
    let mut watch = RateWatch::new(TIMEOUT);
    let mut run = lab.test_bed.load(&spec, &server.endpoint, progress, |interval| {
        watch.add(interval);
        // More load would show nothing new, and the machine is overloaded.
        if stopped || watch.end.is_some() { NextStep::Stop } else { NextStep::Continue }
    })?;
    run.interrupted |= stopped;
    server.stop();

    let slope = rate_end / seconds as f64;
    let found = find(&run.file.intervals, TIMEOUT, valid_until(&run.file));
    let found = FastConnectResult { slope, ..found };
    let until_ms = if found.end == RateLimit::None { u64::MAX } else { found.end_ms };
    let validity = validity_until(&run.file, until_ms);
    let summary = Summary::of(&run.file);
    let server = summary.server.as_ref();
    let found = FastConnectResult {
        overflows: counter_growth(&run.file.intervals, Metric::TCPEXT_LISTEN_OVERFLOWS),
        server_cpu_us: server.and_then(|server| server.cpu_us_per_connection),
        load_cpu_us: summary.generator.cpu_us_per_connect,
        machine_busy_share: summary.machine.cpu_busy_share,
        ..found
    };
    Ok(LabReport {
        schema: SCHEMA,
        diagnoses: Vec::new(),
        lab: INFO.name,
        article: INFO.article,
        setup: format!(
            "arrivals from 0 to {}{} in {seconds} s ({} more each second; the article: 44.4/s), \
             time-out {}, on {} CPUs",
            rate(rate_end),
            capacity_note(capacity),
            rate(slope),
            show_duration(TIMEOUT),
            lab.machine.cpus
        ),
        tables: vec![table(&found)],
        verdict: verdict(&found),
        notes: validity.reasons,
        grade: validity.grade,
        interrupted: run.interrupted,
        rows: serde_json::to_value([&found]).expect("rows are plain data"),
        kept: None,
        next: Vec::new(),
    })
}

fn capacity_note(capacity: Option<f64>) -> String {
    capacity.map_or_else(String::new, |capacity| {
        format!(", {RATE_END_TIMES} times the {} of a calibration,", rate(capacity))
    })
}

/// Returns the article's scenario with arrivals up to `rate_end`.
fn scenario(rate_end: u64, span: Duration, most: Option<&str>, timeout: Duration) -> String {
    let most = most.map_or_else(String::new, |most| format!("      most: {most}\n"));
    let (span, user) = (show_duration(span), user(timeout));
    format!(
        "target: tcp://127.0.0.1:4444
load:
  - arrivals:
      rate: {{from: 0/s, to: {rate_end}/s}}
      for: {span}
{most}      spacing: even
user:
{user}on_error: stop
"
    )
}

/// Returns the steps of each user.
fn user(timeout: Duration) -> String {
    let timeout = show_duration(timeout);
    format!(
        "  - connect: {{timeout: {timeout}}}
  - send: \"I'm requesting the service\"
  - expect: {{text: ok, timeout: {timeout}}}
  - close
"
    )
}

/// Watches the intervals for the limit of the rate.
#[derive(Debug)]
struct RateWatch {
    /// The users' time-out.
    timeout: Duration,
    before: Option<LoadInterval>,
    /// The moment since which the generator has been behind, in milliseconds.
    behind_since_ms: Option<u64>,
    seconds_behind: u32,
    /// The limit, and the moment from which arrivals no longer count, in milliseconds.
    end: Option<(RateLimit, u64)>,
}

impl RateWatch {
    fn new(timeout: Duration) -> Self {
        Self { timeout, before: None, behind_since_ms: None, seconds_behind: 0, end: None }
    }

    /// Adds an interval. The generator has fallen behind if it was late, or started too few users,
    /// in two consecutive seconds: another program may have caused a single one. One time-out or
    /// failure is enough.
    fn add(&mut self, interval: &Interval) {
        let Some(now) = &interval.load else { return };
        let Some(before) = self.before.replace(now.clone()) else { return };
        if self.end.is_some() {
            return;
        }
        let began_ms = interval.at_ms - interval.span_ms;
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

/// Finds the best rate before the limit of [`RateWatch`], or before the generator was late, if that
/// is earlier.
fn find(
    intervals: &[Interval],
    timeout: Duration,
    valid_until_ms: Option<u64>,
) -> FastConnectResult {
    let mut found = FastConnectResult::default();
    let mut watch = RateWatch::new(timeout);
    intervals.iter().for_each(|interval| watch.add(interval));
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
    found.connect_p99_us = latency(good(), |load| load.latencies().connect).p99;
    found.message_p99_us = latency(good(), |load| load.latencies().message).p99;
    found
}

fn table(found: &FastConnectResult) -> LabTable {
    let mut table = LabTable::new(
        "The highest rate without time-outs",
        ["server", "rate", "connect p99", "answer p99", "its CPU, each"],
    );
    let dash = || "-".to_owned();
    table.row([
        "here: throng serve ok".to_owned(),
        or_dash(found.rate_most, rate),
        micros(found.connect_p99_us),
        micros(found.message_p99_us),
        or_dash(found.server_cpu_us, |us| format!("{us:.1} µs")),
    ]);
    for (server, article) in ARTICLE {
        table.row([format!("the article: {server}"), rate(article), dash(), dash(), dash()]);
    }
    table
}

/// Returns the sentences of the verdict.
fn verdict(found: &FastConnectResult) -> Vec<String> {
    let Some(most) = found.rate_most else {
        return vec![
            "No user had an answer before the first failure: there is no rate to report."
                .to_owned(),
        ];
    };
    let at = format!("{:.0} s", found.end_ms as f64 / 1000.0);
    let mut sentences = vec![match found.end {
        RateLimit::None => format!(
            "{} and no time-out: the load ended before the server's limit. Offer more with --users \
             (the total of arrivals) or a longer --seconds.",
            rate(most)
        ),
        RateLimit::Timeouts => format!(
            "{} without time-outs; the first users that timed out arrived after {at}.",
            rate(most)
        ),
        RateLimit::Failures => format!(
            "{} until connections began to fail at {at}, with errors other than time-outs.",
            rate(most)
        ),
        RateLimit::Generator => format!(
            "{} until the generator itself fell behind at {at}: the server may be able to do more \
             than this machine can offer.",
            rate(most)
        ),
    }];
    if let Some(busy) = found.machine_busy_share
        && busy >= BUSY
        && found.end != RateLimit::None
    {
        sentences.push(format!(
            "The machine's CPUs were busy {:.0} % of the time with server and generator on it: CPU \
             was the limit.",
            busy * 100.0
        ));
    }
    if let Some(overflows) = found.overflows.filter(|n| *n > 0) {
        sentences.push(format!("The accept queue overflowed {} times.", count(overflows as f64)));
    }
    let best = ARTICLE
        .iter()
        .copied()
        .fold(("", 0.0), |best, row| if row.1 > best.1 { row } else { best });
    sentences.push(format!(
        "That is {:.1} times the article's best ({} with {}), on other hardware: compare the \
         servers side by side with `make bench`.",
        most / best.1,
        rate(best.1),
        best.0
    ));
    sentences
}

/// The article's results.
const ARTICLE: [(&str, f64); 5] = [
    ("Ranch as it comes", 11_000.0),
    ("Ranch, sleep for a time-out", 24_000.0),
    ("gen_tcp, one acceptor", 18_000.0),
    ("gen_tcp, sleep for a time-out", 23_000.0),
    ("gen_tcp, three acceptors", 32_000.0),
];

const ROW: &str = "throng";
/// The last arrival rate as a multiple of the machine's capacity, so that the limit lies in the
/// run.
const RATE_END_TIMES: f64 = 1.5;
/// The consecutive late seconds after which the generator has fallen behind.
const SECONDS_BEHIND: u32 = 2;
/// The least share of the due users that must start.
const BEGUN_SHARE_LEAST: f64 = 0.95;
/// The least users due for which that share is meaningful.
const DUE_MIN: f64 = 100.0;
/// The time-out. The charts of the article show time-outs at one second; its worker's own is five.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The shortest interval with a meaningful rate.
const WHOLE_SECOND_MS: u64 = 500;
/// The share of busy time above which CPU was the limit.
const BUSY: f64 = 0.85;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::assert_same_scenario;

    #[test]
    fn the_article_s_sizes_give_the_bundled_scenario() {
        let bundled = include_str!("../../../labs/fast-connect.yaml");
        let text = scenario(42_164, Duration::from_secs(949), Some("20M"), Duration::from_secs(5));
        assert_same_scenario(&text, bundled);
    }

    /// Returns seconds with these answers, time-outs and refused connects.
    fn run(seconds: &[(u64, u64, u64)]) -> Vec<Interval> {
        let mut total = LoadInterval::default();
        let mut intervals = vec![Interval { load: Some(total.clone()), ..Default::default() }];
        for (i, (answered, timed_out, refused)) in seconds.iter().enumerate() {
            total.counters.messages_answered += answered;
            total.errors.add("expect_timeout", *timed_out);
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
        assert!(verdict(&found)[0].contains("the generator itself fell behind at 2 s"));
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
        let sentences = verdict(&FastConnectResult::default());
        assert!(sentences[0].contains("there is no rate"), "{sentences:?}");
    }

    #[test]
    fn the_verdict_names_the_limit_and_compares_with_the_article() {
        let found = FastConnectResult {
            rate_most: Some(16_000.0),
            end: RateLimit::Timeouts,
            end_ms: 31_000,
            machine_busy_share: Some(0.97),
            overflows: Some(12),
            ..FastConnectResult::default()
        };
        let sentences = verdict(&found).join("\n");
        for text in
            ["16k/s without time-outs", "after 31 s", "97 %", "overflowed 12 times", "0.5 times"]
        {
            assert!(sentences.contains(text), "no {text:?} in {sentences}");
        }
    }
}
