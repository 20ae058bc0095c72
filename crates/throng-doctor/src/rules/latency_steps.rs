//! Answers were slow until some moment and fast from then on, or the reverse, at the same load.

mod cold_start;

use throng_measure::{Finding, Severity, Side};
use throng_report::render::{count, micros};

use super::{Rule, RuleTrait, known_delays};
use crate::history::Sample;
use crate::median::median;
use crate::run_view::{LoadLevel, RunView};
use crate::steady_load::answers;

pub(super) const RULE: Rule = Rule::new("latency_steps", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::LacksCpu, RuleTrait::OnlyDelays])
    .explains(&["server_slow", "slow_instance"]);

/// Looks for one step between two levels of the median. A server that starts slowly has cold
/// caches, compiles, or waits for more instances. One that becomes slow meets something that began
/// at that moment. A step that the load makes is none.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let all: Vec<Level<'_>> = run.steps().filter_map(Level::of).collect();
    step(run, &all).or_else(|| cold_start::find(run, &all))
}

/// Returns the finding for one step of the median.
fn step(run: &RunView<'_>, all: &[Level<'_>]) -> Option<Finding> {
    let step = Step::of(all)?;
    let late: Vec<_> = step.slow.iter().map(|level| (level.sample, level.p50_us)).collect();
    let is_felt = step.slow_us() >= slow_min_us(run);
    if !is_felt || known_delays::explain(run, &late) {
        return None;
    }
    let at = format!("{} s", count(step.at_ms() as f64 / 1000.0));
    let (slow, fast) = (micros(step.slow_us()), micros(step.fast_us()));
    let (text, remedy) = if step.is_slow_first {
        (
            format!(
                "The server was slow until {at} and fast from then on, at the same load: its \
                 answers took {slow}, then {fast} (p50). It starts slowly: its caches are cold, it \
                 compiles its code, or more instances start."
            ),
            WARM_UP,
        )
    } else {
        (
            format!(
                "The server was fast until {at} and slow from then on, at the same load: its \
                 answers took {fast}, then {slow} (p50). Something began at that moment and did \
                 not end."
            ),
            "look in the logs of the server, and of what it calls, for what began then: a job, a \
             full cache or disk, an index that is gone, an instance that is missing",
        )
    };
    let (kind, _) = answers(step.slow.first()?.sample);
    let (from, to) = match step.is_slow_first {
        true => (step.slow_us(), step.fast_us()),
        false => (step.fast_us(), step.slow_us()),
    };
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(Severity::Slowed)
        .with_confidence(0.8)
        .shown_by(&format!("load.{kind}_us.p50"), from as f64, to as f64, step.at_ms())
        .remedied_by(remedy);
    Some(finding)
}

/// Returns the time from which answers are slow: less if a latency threshold was missed.
fn slow_min_us(run: &RunView<'_>) -> u64 {
    run.thresholds.answer_us().map_or(SLOW_US, |us| us.min(SLOW_US))
}

/// An interval with enough answers for a median.
#[derive(Clone, Copy)]
struct Level<'a> {
    sample: &'a Sample,
    p50_us: u64,
    p99_us: u64,
    load: LoadLevel,
}

impl<'a> Level<'a> {
    fn of((before, now): (&'a Sample, &'a Sample)) -> Option<Self> {
        let (_, quantiles) = answers(now);
        let load = LoadLevel::of((before, now));
        (quantiles.count >= ANSWERS_MIN).then_some(Self {
            sample: now,
            p50_us: quantiles.p50_us,
            p99_us: quantiles.p99_us,
            load,
        })
    }

    fn begin_ms(&self) -> u64 {
        self.end_ms().saturating_sub(self.sample.interval.span_ms)
    }

    fn end_ms(&self) -> u64 {
        self.sample.interval.at_ms
    }
}

/// A run in two parts: a slow one and a fast one.
struct Step<'l, 'a> {
    slow: &'l [Level<'a>],
    fast: &'l [Level<'a>],
    is_slow_first: bool,
}

impl<'l, 'a> Step<'l, 'a> {
    /// Returns the step, if each interval of one part is several times as slow as each of the
    /// other. The interval of the step itself may be between them.
    fn of(all: &'l [Level<'a>]) -> Option<Self> {
        let places = || 1..all.len();
        let mut steps = places().map(|at| (at, at)).chain(places().map(|at| (at, at + 1)));
        steps.find_map(|(end, begin)| {
            let (first, last) = (&all[..end], all.get(begin..)?);
            let is_slow_first = first.first()?.p50_us > last.first()?.p50_us;
            let (slow, fast) = if is_slow_first { (first, last) } else { (last, first) };
            let step = Self { slow, fast, is_slow_first };
            step.is_one().then_some(step)
        })
    }

    fn is_one(&self) -> bool {
        let is_long = self.fast.len() >= FAST_MIN
            && self.slow.len() >= if self.is_slow_first { 1 } else { FAST_MIN };
        is_long && is_apart(self.slow, self.fast) && self.is_at_the_same_load()
    }

    /// Reports whether the load does not make it slow: where it is slow, there are no more messages
    /// than where it is fast, and no more connections. Users that connect are work of another kind.
    fn is_at_the_same_load(&self) -> bool {
        let usual = median(self.fast.iter().map(|level| level.load.connects_per_s));
        let usual = usual.unwrap_or(0.0) * SAME_TIMES;
        let mut quiet = self.slow.to_vec();
        quiet.retain(|level| level.load.connects_per_s <= usual + CONNECTS_FEW);
        let grows = |of: fn(&LoadLevel) -> f64| most(&quiet, of) > most(self.fast, of) * SAME_TIMES;
        quiet.len() * 2 >= self.slow.len()
            && !grows(|load| load.messages_per_s)
            && (self.is_slow_first || !grows(|load| load.connections as f64))
    }

    /// Returns the time of the step: the end of the last interval before it.
    fn at_ms(&self) -> u64 {
        let before = if self.is_slow_first { self.slow } else { self.fast };
        before.last().map_or(0, |level| level.sample.interval.at_ms)
    }

    fn slow_us(&self) -> u64 {
        usual_us(self.slow)
    }

    fn fast_us(&self) -> u64 {
        usual_us(self.fast)
    }
}

/// Reports whether the fastest interval of the slow part is several times as slow as the slowest of
/// the fast part.
fn is_apart(slow: &[Level<'_>], fast: &[Level<'_>]) -> bool {
    let least = slow.iter().map(|level| level.p50_us).min().unwrap_or(0);
    let most = fast.iter().map(|level| level.p50_us).max().unwrap_or(u64::MAX);
    least >= most.saturating_mul(TIMES_MIN)
}

/// Returns the largest value of these intervals' load.
fn most(levels: &[Level<'_>], of: fn(&LoadLevel) -> f64) -> f64 {
    levels.iter().map(|level| of(&level.load)).fold(0.0, f64::max)
}

fn usual_us(levels: &[Level<'_>]) -> u64 {
    median(levels.iter().map(|level| level.p50_us)).unwrap_or(0)
}

/// The fewest answers in an interval whose median means something.
const ANSWERS_MIN: u64 = 10;

/// How many times as slow the slow part is.
const TIMES_MIN: u64 = 4;

/// The fewest intervals of a fast part, and of a slow part that does not end.
const FAST_MIN: usize = 3;

/// The remedy for a cold start.
const WARM_UP: &str = "warm the server up before the load that counts (a first phase with little \
                       load), or find what it loads, compiles or connects at first";

/// The time that is slow: what a person notices.
const SLOW_US: u64 = 100_000;

/// How many times as much is the same load, and the connects a second that are always few.
const SAME_TIMES: f64 = 1.2;
const CONNECTS_FEW: f64 = 10.0;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::super::{latency_grows, server_stalled};
    use super::*;
    use throng_measure::Operation;

    /// A run whose users are all there after a second, with this median in each second.
    pub(super) fn paced(us: impl Fn(u64) -> u64) -> Run {
        Run::quiet().loaded(move |load, second| {
            let connects = 1_000 * second.min(1);
            load.counters.connects_ok = connects;
            load.counters.connected = connects;
            load.times[Operation::Message].clear();
            if second > 0 {
                load.times[Operation::Message].record_n(us(second), 1_000);
            }
        })
    }

    #[test]
    fn a_server_that_starts_cold_is_told_with_its_moment() {
        let run = paced(|second| if second <= 5 { 400_000 } else { 2_000 });
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server was slow until 5 s and fast from then on, at the same load: its answers \
             took 400 ms, then 2.00 ms (p50)"
        );
        assert!(found.remedy.contains("warm the server up"), "{found}");
        run.is_silent(&server_stalled::RULE);
        run.check_all(&["latency_steps", "server_slow"]);
        // The interval of the step has some of each.
        let within = paced(|second| match second {
            0..=3 => 400_000,
            4 => 90_000,
            _ => 2_000,
        });
        assert!(within.speaks(&RULE).text.contains("until 3 s"));
    }

    #[test]
    fn a_server_that_becomes_slow_is_told_with_its_moment() {
        let run = paced(|second| if second <= 5 { 2_000 } else { 400_000 });
        let begin = "The server was fast until 5 s and slow from then on, at the same load";
        assert!(run.speaks(&RULE).text.starts_with(begin));
        run.is_silent(&latency_grows::RULE);
        run.check_all(&["latency_steps", "server_slow"]);
    }

    #[test]
    fn a_step_that_the_load_makes_a_pause_and_a_small_step_are_none() {
        // Users are still connecting while it is slow.
        let ramp =
            paced(|second| if second <= 4 { 400_000 } else { 2_000 }).loaded(|load, second| {
                load.counters.connects_ok = 200 * second.min(5);
                load.counters.connected = 200 * second.min(5);
            });
        ramp.is_silent(&RULE);
        let more =
            paced(|second| if second <= 5 { 2_000 } else { 400_000 }).loaded(|load, second| {
                load.counters.messages_sent += 2_000 * second.saturating_sub(5);
            });
        more.is_silent(&RULE);
        paced(|second| if second == 5 { 400_000 } else { 2_000 }).is_silent(&RULE);
        paced(|second| if second <= 5 { 20_000 } else { 2_000 }).is_silent(&RULE);
        paced(|second| 100_000 * second).is_silent(&RULE);
    }
}
