//! The impact on a run, whatever its cause.
//!
//! A busy machine, a thread at its limit, a quota that takes effect: none of them is a finding
//! without an impact on the run. There is one if connects or messages failed, answers were slow,
//! the generator itself was late, or a threshold was missed.

use throng_measure::validity::{DOUBTFUL_INVALID, LAG_DEGRADED_US};
use throng_measure::{
    AnswerGap, ErrorClass, ErrorKey, ErrorKind, Evidence, Grade, LoadInterval, Operation, Severity,
};
use throng_report::render::micros;

use crate::counted::counted;
use crate::cpu_waits::CpuWaits;
use crate::history::Sample;
use crate::missed_thresholds::MissedThreshold;
use crate::run_view::RunView;

/// The gravest effect on a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Impact {
    /// Severity: failures, and a generator that is far too late, make numbers worthless; waiting
    /// makes them large.
    pub severity: Severity,
    /// Time of the first effect, in milliseconds.
    pub first_ms: u64,
    /// Time of the last effect, in milliseconds.
    pub last_ms: u64,
    /// Description, such as `1.2k connects or messages failed`.
    pub what: String,
    /// Evidence in numbers.
    pub evidence: Evidence,
}

impl From<Impact> for Evidence {
    fn from(impact: Impact) -> Self {
        impact.evidence
    }
}

/// Returns the impact while the load was on, or `None` if everything was done, on time and within
/// the thresholds.
pub fn impact(run: &RunView<'_>) -> Option<Impact> {
    let slowness = slowness(run, timed(), run.longest_gap());
    gravest([failures(run, is_of_target), lateness(run), slowness, missed(run, |_| true)])
}

/// Returns the impact that a server can have. Connects for which the generator itself had no fd,
/// port, memory or epoll watch never reached it.
pub(crate) fn impact_of_server(run: &RunView<'_>) -> Option<Impact> {
    let slowness = slowness(run, timed(), run.longest_gap());
    let failures = failures(run, |kind| is_of_target(kind) && !OWN_ERRORS.contains(&kind));
    gravest([failures, lateness(run), slowness, missed(run, |_| true)])
}

/// Returns the impact that the run's waits for a CPU explain. A server that refuses, closes, resets
/// or gives a wrong answer does not do so for lack of CPU time. Nor does one whose answers are
/// later than the measured waits can make them.
pub(crate) fn impact_of_waiting(run: &RunView<'_>) -> Option<Impact> {
    let waits = CpuWaits::of(run);
    let is_explained = |operation: &Operation| {
        let late = late(run, *operation).map(|now| (now, now.latency(*operation).p99_us));
        // A connect whose SYN was dropped is late by a second, however short the wait was.
        *operation == Operation::Connect || waits.explain_most(&late.collect::<Vec<_>>())
    };
    let is_late = |missed: &MissedThreshold| {
        let is_other = missed.is_about_errors() || missed.is_about_status_share();
        let operation = timed().find(|operation| missed.latency() == Some(operation.name()));
        !is_other && operation.is_none_or(|operation| is_explained(&operation))
    };
    let gap = run.longest_gap().filter(|gap| waits.explain_silence(gap.from_ms, gap.to_ms));
    let time_outs = match waits.explain_most(&time_outs(run)) {
        true => is_time_out,
        false => is_connect_time_out,
    };
    gravest([
        failures(run, time_outs),
        lateness(run),
        slowness(run, timed().filter(|operation| is_explained(operation)), gap),
        missed(run, is_late),
    ])
}

/// Returns the first of the gravest.
fn gravest(found: [Option<Impact>; 4]) -> Option<Impact> {
    found.into_iter().flatten().rev().max_by_key(|impact| impact.severity)
}

/// Reports whether an error of this kind is a wait for the target that was given up.
pub(crate) fn is_time_out(kind: &str) -> bool {
    is_of_target(kind) && ErrorKey::parse(kind).is_time_out()
}

/// Reports whether an error of this kind is a connect that had no answer in time.
fn is_connect_time_out(kind: &str) -> bool {
    ErrorKey::parse(kind).is_connect_time_out()
}

/// Reports whether an error of this kind is a connect or a message that failed. A wait for other
/// users is neither.
fn is_of_target(kind: &str) -> bool {
    !ErrorKey::parse(kind).is(ErrorClass::Users)
}

/// Reports whether an error of this kind is a wait for an answer that was given up.
pub(crate) fn is_unanswered(kind: &str) -> bool {
    ErrorKind::unanswered().any(|unanswered| unanswered.name() == kind)
}

/// Returns the intervals in which users gave up waiting for an answer, with the usual time-out.
pub(crate) fn time_outs<'a>(run: &RunView<'a>) -> Vec<(&'a Sample, u64)> {
    let given_up = |sample: &Sample| failed(sample, is_unanswered);
    let steps = run.steps().filter(|(before, now)| given_up(now) > given_up(before));
    steps.map(|(_, now)| (now, TIMEOUT_US)).collect()
}

/// Returns the connects and messages that failed in these ways, if they are more than one in a
/// thousand: of millions a few always fail. If a threshold allows no errors, any failure counts.
fn failures(run: &RunView<'_>, counts: fn(&str) -> bool) -> Option<Impact> {
    let growth = run.load_growth_of("load.failures", |load| failed_in(load, counts))?;
    let attempts = run.counted().map_or(0, |load| {
        let done = &load.counters;
        done.connect_steps_ended() + done.requests_begun() + done.joins_started
    });
    if growth.by().saturating_mul(FAILURES_ONE_IN) < attempts && !run.thresholds.no_errors() {
        return None;
    }
    let failed = |sample: &Sample| failed(sample, counts);
    let in_it = |(before, now): (&Sample, &Sample)| failed(now) > failed(before);
    // Those of the interval in which users leave are behind the last one of the load.
    let last_ms = last_ms(run, in_it).unwrap_or(growth.began_ms);
    Some(Impact {
        severity: Severity::Stopped,
        first_ms: growth.began_ms,
        last_ms,
        what: format!(
            "{} failed",
            counted(
                growth.by(),
                &format!("connect or {}", run.summary.unit_of_work()),
                &format!("connects or {}s", run.summary.unit_of_work())
            )
        ),
        evidence: growth.evidence(),
    })
}

/// Returns the failed connects and the errors of connections of these kinds together.
pub(crate) fn failed(sample: &Sample, counts: fn(&str) -> bool) -> Option<u64> {
    Some(failed_in(sample.load()?, counts))
}

fn failed_in(load: &LoadInterval, counts: fn(&str) -> bool) -> u64 {
    let all = load.connect_failed.0.iter().chain(&load.errors.0);
    all.filter(|(kind, _)| counts(kind)).map(|(_, count)| count).sum()
}

/// Returns the impact of a generator that was late over the whole run.
fn lateness(run: &RunView<'_>) -> Option<Impact> {
    let late_us = run.summary.generator.lag_us.p99;
    if run.summary.generator.lag_grade == Grade::Valid {
        return None;
    }
    let is_late = |sample: &Sample| sample.lag.p99_us > LAG_DEGRADED_US;
    let first = run.samples().iter().find(|sample| is_late(sample))?;
    let before = run.samples().iter().find(|sample| sample.lag.count > 0)?;
    Some(Impact {
        severity: lateness_severity(run),
        first_ms: first.interval.at_ms,
        last_ms: last_ms(run, |(_, now)| is_late(now))?,
        what: format!("the generator was late by {} (p99)", micros(late_us)),
        evidence: Evidence {
            counter: "load.lag_us.p99".to_owned(),
            from: before.lag.p99_us as f64,
            to: first.lag.p99_us as f64,
            at_ms: first.interval.at_ms,
        },
    })
}

/// Reports whether the generator's own lateness explains most of these answers: their intervals,
/// and how long they took. At least half of an answer's time must be that lateness.
pub(crate) fn lag_explains(run: &RunView<'_>, late: &[(&Sample, u64)]) -> bool {
    let generator = &run.summary.generator;
    let explained = late.iter().filter(|(_, us)| generator.lag_us.p99.saturating_mul(2) >= *us);
    generator.lag_grade != Grade::Valid && explained.count() * 2 >= late.len()
}

/// Returns the severity of a late generator: it made the numbers worse, or worthless.
pub(crate) fn lateness_severity(run: &RunView<'_>) -> Severity {
    let summary = run.summary;
    let is_doubted = summary.message.doubtful_share() > DOUBTFUL_INVALID;
    let is_void = summary.validity.grade == Grade::Invalid && !is_doubted;
    if summary.generator.lag_grade == Grade::Invalid || is_void {
        Severity::Stopped
    } else {
        Severity::Slowed
    }
}

/// Returns the impact of slow operations, and of a time without answers.
fn slowness(
    run: &RunView<'_>,
    operations: impl Iterator<Item = Operation>,
    gap: Option<AnswerGap>,
) -> Option<Impact> {
    let slow = operations.filter_map(|operation| slow(run, operation));
    slow.chain(gap.and_then(silence)).min_by_key(|impact| impact.first_ms)
}

/// Returns the impact of a time without any answer.
fn silence(gap: AnswerGap) -> Option<Impact> {
    (gap.length_ms() >= GAP_MS).then(|| Impact {
        severity: Severity::Slowed,
        first_ms: gap.from_ms,
        last_ms: gap.to_ms,
        what: format!("no user got an answer for {}", micros(gap.length_ms() * 1000)),
        evidence: gap_evidence(gap),
    })
}

/// Returns a gap in the answers as evidence of a finding.
pub(crate) fn gap_evidence(gap: AnswerGap) -> Evidence {
    Evidence {
        counter: "load.answer_gap".to_owned(),
        from: gap.from_ms as f64,
        to: gap.to_ms as f64,
        at_ms: gap.from_ms,
    }
}

/// Returns the impact of the first missed threshold that `counts`.
fn missed(run: &RunView<'_>, counts: impl Fn(&MissedThreshold) -> bool) -> Option<Impact> {
    let missed = run.thresholds.missed().iter().find(|missed| counts(missed))?;
    let first_ms = run.steps().next().map_or(0, |(_, now)| now.interval.at_ms);
    let last_ms = run.samples().last()?.interval.at_ms;
    Some(Impact {
        severity: Severity::Slowed,
        first_ms,
        last_ms,
        what: match missed.value {
            Some(_) => format!("{} was {}", missed.name, missed.measured),
            None => format!("{} could not be measured", missed.name),
        },
        evidence: Evidence {
            counter: missed.name.clone(),
            from: 0.0,
            to: missed.value.unwrap_or(0.0),
            at_ms: first_ms,
        },
    })
}

/// Returns the operations whose slowness is an impact. Those that take long by nature come last.
pub(crate) fn timed() -> impl Iterator<Item = Operation> {
    let mut operations = Operation::BY_WEIGHT;
    operations.sort_by_key(|operation| operation.slow_us());
    operations.into_iter()
}

/// Returns the intervals in which an operation takes long. If a threshold on it was missed, values
/// beyond that threshold are long, however few they are.
fn late<'a>(run: &RunView<'a>, operation: Operation) -> impl Iterator<Item = &'a Sample> + use<'a> {
    let threshold_us = run.thresholds.latency_us(operation.name());
    let slow_us = threshold_us.map_or(operation.slow_us(), |us| us.min(operation.slow_us()));
    let count_min = if threshold_us.is_some() { 1 } else { SLOW_COUNT_MIN };
    run.samples().iter().filter(move |sample| {
        let quantiles = sample.latency(operation);
        quantiles.count >= count_min && quantiles.p99_us > slow_us
    })
}

/// Returns the impact of one slow operation. If a threshold on it was missed, however short a time
/// of long values has one.
fn slow(run: &RunView<'_>, operation: Operation) -> Option<Impact> {
    let is_missed = run.thresholds.latency_us(operation.name()).is_some();
    let slow: Vec<_> = late(run, operation).collect();
    if slow.len() < if is_missed { 1 } else { SLOW_INTERVALS_MIN } {
        return None;
    }
    let (first, last) = (slow.first()?, slow.last()?);
    let worst = slow.iter().map(|sample| sample.latency(operation).p99_us).max()?;
    let before = run.samples().iter().find(|sample| sample.latency(operation).count > 0)?;
    let plural = operation.plural();
    Some(Impact {
        severity: Severity::Slowed,
        first_ms: first.interval.at_ms,
        last_ms: last.interval.at_ms,
        what: format!("{plural} took up to {} (p99 of an interval)", micros(worst)),
        evidence: Evidence {
            counter: format!("load.{operation}_us.p99"),
            from: before.latency(operation).p99_us as f64,
            to: worst as f64,
            at_ms: first.interval.at_ms,
        },
    })
}

/// Returns the last interval for which `suffers` is true, given it and the one before.
fn last_ms(run: &RunView<'_>, suffers: impl Fn((&Sample, &Sample)) -> bool) -> Option<u64> {
    let steps = run.steps().filter(|(before, now)| suffers((before, now)));
    steps.map(|(_, now)| now.interval.at_ms).last()
}

/// The kinds of failed connects for which the generator had no fd, port, memory or epoll watch.
const OWN_ERRORS: [&str; 7] =
    ["ENOSPC", "EMFILE", "ENFILE", "ENOMEM", "ENOBUFS", "EADDRNOTAVAIL", "EADDRINUSE"];

/// The usual time-out of an `expect`: how long users waited that gave up.
pub(crate) const TIMEOUT_US: u64 = 5_000_000;

/// The share of failures, one in so many attempts, below which they have no impact.
pub(crate) const FAILURES_ONE_IN: u64 = 1_000;

/// The shortest gap with an impact: when users wait for so long and none is answered, the server
/// stands still.
pub(crate) const GAP_MS: u64 = 1_000;

/// The fewest values for a percentile: of fewer, it is one of them.
const SLOW_COUNT_MIN: u64 = 20;

/// The fewest slow intervals with an impact: a single one is another program on the machine, or a
/// large allocation, and not a limit.
const SLOW_INTERVALS_MIN: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::fixture::Run;

    fn of(run: &Run) -> Option<Impact> {
        let (history, summary) = run.whole();
        impact(&RunView::new(&history, &summary))
    }

    #[test]
    fn a_quiet_run_suffers_nothing() {
        assert_eq!(of(&Run::quiet()), None);
    }

    #[test]
    fn failures_count_from_one_in_a_thousand() {
        let failing = |each_second| {
            Run::quiet().loaded(move |load, second| {
                load.errors.add(ErrorKind::ClosedByPeer, each_second * second.saturating_sub(4));
            })
        };
        assert_eq!(of(&failing(1)), None, "6 of 11,000");
        let found = of(&failing(100)).unwrap();
        assert_eq!(
            (found.severity, found.first_ms, found.last_ms),
            (Severity::Stopped, 5_000, 10_000)
        );
        assert_eq!(found.what, "600 connects or messages failed");
    }

    #[test]
    fn a_wait_for_other_users_is_no_connect_and_no_message_that_failed() {
        let waiting = |kind: ErrorKind| {
            of(&Run::quiet().loaded(move |load, second| load.errors.add(kind, 100 * second)))
        };
        assert_eq!(waiting(ErrorKind::CueTimeout), None);
        assert!(waiting(ErrorKind::JoinTimeout).is_some());
        let [cue, join] = [ErrorKind::CueTimeout, ErrorKind::JoinTimeout].map(ErrorKind::name);
        assert!(!is_time_out(cue) && is_time_out(join));
    }

    #[test]
    fn what_the_generator_could_not_open_says_nothing_of_the_server() {
        let failing = |errno: &'static str| {
            let run = Run::quiet()
                .loaded(move |load, second| load.connect_failed.add(errno, 100 * second));
            let (history, summary) = run.whole();
            let run = RunView::new(&history, &summary);
            (impact(&run).is_some(), impact_of_server(&run).is_some())
        };
        assert_eq!(failing("ENOSPC"), (true, false));
        assert_eq!(failing("ECONNREFUSED"), (true, true));
    }

    #[test]
    fn answers_are_slow_when_they_are_for_two_intervals() {
        let slow = |seconds: u64| {
            Run::quiet().loaded(move |load, second| {
                if (6..6 + seconds).contains(&second) {
                    load.times[Operation::Message].record_n(400_000, 100);
                }
            })
        };
        assert_eq!(of(&slow(1)), None);
        let found = of(&slow(3)).unwrap();
        assert_eq!(
            (found.severity, found.first_ms, found.last_ms),
            (Severity::Slowed, 6_000, 8_000)
        );
        assert_eq!(found.evidence.counter, "load.message_us.p99");
    }

    #[test]
    fn a_generator_that_is_late_is_harm_too() {
        let late = Run::quiet().loaded(|load, _| load.lag.record_n(250_000, 900));
        assert_eq!(of(&late).unwrap().severity, Severity::Stopped);
    }
}
