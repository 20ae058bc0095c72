//! Answers took longer and longer, though the load did not grow.

use throng_measure::{Endpoint, Evidence, Finding, ProcessMetric, Severity, Side};
use throng_report::render::{count, micros, rate};

use super::{Rule, RuleTrait, retransmits};
use crate::counted::connections;
use crate::cpu_waits::CpuWaits;
use crate::history::Sample;
use crate::impact::{TIMEOUT_US, lag_explains};
use crate::run_view::RunView;
use crate::steady_load::{SteadyLoad, answers};
use crate::trend::Trend;

pub(super) const RULE: Rule = Rule::new("latency_grows", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::LacksCpu, RuleTrait::OnlyDelays])
    .explains(&["server_slow", "hot_core", "server_cpu_saturated", "proxy_saturated"]);

/// Looks at the medians while users and rate stay the same: a cause that grows with time, or with
/// what was sent before, such as a table that is scanned. A queue at a full server makes answers
/// late too, but then users do not get on with their turns.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let steady = SteadyLoad::of(run)?;
    let samples = steady.in_time();
    let trend = growth(run, &samples)?;
    if is_explained(run, &samples) {
        return None;
    }
    let seconds = |ms: u64| count(ms as f64 / 1000.0);
    let us = |us: f64| micros(us as u64);
    let (why, remedy) = reason(run, &samples);
    let left_s = (TIMEOUT_US as f64 - trend.to) / trend.per_second;
    let ends = if left_s > 0.0 {
        format!(
            " At this rate they take {}, after which users usually give up, in another {}.",
            micros(TIMEOUT_US),
            us(left_s * 1e6)
        )
    } else {
        String::new()
    };
    let text = format!(
        "The server's answers took longer and longer at a constant load of {} and {} \
         {}s: {} at {} s, {} at {} s (p50). That is {} more each second.{ends} {why}",
        connections(steady.level.connections),
        rate(steady.level.messages_per_s),
        run.summary.unit_of_work(),
        us(trend.from),
        seconds(trend.from_ms),
        us(trend.to),
        seconds(trend.to_ms),
        us(trend.per_second)
    );
    let (kind, _) = answers(samples.last()?);
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(Severity::Slowed)
        .with_confidence(0.8)
        .with_evidence([Evidence {
            counter: format!("load.{kind}_us.p50"),
            from: trend.from,
            to: trend.to,
            at_ms: trend.from_ms,
        }])
        .remedied_by(remedy);
    Some(finding)
}

/// Returns the growth of the medians in these intervals, if it is steady and large enough.
fn growth(run: &RunView<'_>, samples: &[&Sample]) -> Option<Trend> {
    let medians = samples.iter().filter_map(|sample| {
        let (_, quantiles) = answers(sample);
        (quantiles.count >= ANSWERS_MIN).then_some((sample.interval.at_ms, quantiles.p50_us as f64))
    });
    let trend = Trend::of(&medians.collect::<Vec<_>>()).filter(Trend::is_steady_growth)?;
    let is_small = trend.by() < growth_min_us(run) || trend.to < trend.from * TIMES_MIN;
    (!is_small).then_some(trend)
}

/// Reports whether answers took longer and longer at a constant load, whatever the reason.
pub(super) fn grows(run: &RunView<'_>) -> bool {
    SteadyLoad::of(run).is_some_and(|steady| growth(run, &steady.in_time()).is_some())
}

/// Returns the growth that counts: less if a latency threshold was missed.
fn growth_min_us(run: &RunView<'_>) -> f64 {
    run.thresholds
        .answer_us()
        .map_or(GROWTH_MIN_US, |us| (us as f64 / 2.0).clamp(1_000.0, GROWTH_MIN_US))
}

/// Reports whether something else than the server is known that makes answers late.
fn is_explained(run: &RunView<'_>, samples: &[&Sample]) -> bool {
    let medians = || samples.iter().map(|sample| (*sample, answers(sample).1.p50_us));
    let most_us = medians().map(|(_, us)| us).max().unwrap_or(0);
    // A short wait explains the answers before they grew.
    let late: Vec<_> = medians().filter(|(_, us)| us * 2 >= most_us).collect();
    lag_explains(run, &late)
        || has_no_time(run, samples)
        || retransmits::RULE.find(run).is_some()
        || CpuWaits::of(run).explain_medians(&late)
}

/// Reports whether a thread of the server had no time left from the beginning: the queue before it
/// grows.
fn has_no_time(run: &RunView<'_>, samples: &[&Sample]) -> bool {
    let gauge = ProcessMetric::BUSIEST_THREAD_PERMILLE.server;
    let busy = samples.iter().filter_map(|sample| run.value(Endpoint::Server, sample, gauge));
    let busy: Vec<i64> = busy.collect();
    let full = busy.iter().filter(|permille| **permille >= NO_TIME_PERMILLE).count();
    !busy.is_empty() && full * 5 >= busy.len() * 4
}

/// Returns a sentence about what grows, and the remedy.
fn reason(run: &RunView<'_>, samples: &[&Sample]) -> (&'static str, &'static str) {
    let used = |sample: &Sample| run.value(Endpoint::Server, sample, ProcessMetric::CPU_US.server);
    let points: Option<Vec<(u64, f64)>> = samples
        .windows(2)
        .map(|pair| {
            let ms = pair[1].interval.at_ms.saturating_sub(pair[0].interval.at_ms).max(1);
            let cpus = (used(pair[1])? - used(pair[0])?) as f64 / ms as f64 / 1000.0;
            Some((pair[1].interval.at_ms, cpus))
        })
        .collect();
    let Some(points) = points else {
        return (
            "Its CPU use is unknown.",
            "find on its machine what grows with time: a list, a table, a queue, its memory",
        );
    };
    let computes = Trend::of(&points).is_some_and(|trend| {
        trend.is_steady_growth() && trend.by() >= CPUS_MIN && trend.to >= trend.from * TIMES_MIN
    });
    if computes {
        (
            "Its CPU use grew with them: it computes more for each message, such as for a list \
             that it searches.",
            "profile it late in a run (perf top, or the profiler of its language), and find the \
             list or table that grows with each message or connection",
        )
    } else {
        (
            "Its CPU use did not grow: it waits longer and longer, for a database, a disk, or a \
             queue of its own.",
            "find what it waits for (its own trace, slow queries of its database, the length of \
             its queues) early and late in a run, and what grew in between",
        )
    }
}

/// The fewest answers in an interval whose median means something.
const ANSWERS_MIN: u64 = 10;

/// The smallest growth of the median: half of what a person notices.
const GROWTH_MIN_US: f64 = 50_000.0;

/// How many times as long an answer takes at the end.
const TIMES_MIN: f64 = 1.5;

/// The run time from which a thread has no time left, in thousandths of the time.
const NO_TIME_PERMILLE: i64 = 920;

/// The smallest growth of CPU use, in CPUs.
const CPUS_MIN: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;
    use throng_measure::Operation;

    /// A run whose answers take this much longer in each second.
    fn growing(us: u64) -> Run {
        Run::quiet().growing(ProcessMetric::CPU_US.server, 0, 20_000, 0).loaded(
            move |load, second| {
                load.times[Operation::Message].clear();
                load.times[Operation::Message].record_n(1_000 + us * second, 1_000);
            },
        )
    }

    #[test]
    fn answers_that_take_longer_each_second_are_told_with_their_pace_and_their_end() {
        let found = growing(60_000).speaks(&RULE);
        assert!(
            found.text.starts_with(
                "The server's answers took longer and longer at a constant load of 1k connections \
                 and 1k/s messages: 301 ms at 5 s, 60"
            ),
            "{found}"
        );
        assert!(found.text.contains("That is 60.0 ms more each second. At this rate"), "{found}");
        assert!(found.text.contains("usually give up, in another 73"), "{found}");
        assert!(found.text.contains("CPU use did not grow"), "{found}");
        growing(60_000).check_all(&["latency_grows", "server_slow"]);
    }

    #[test]
    fn a_server_that_computes_more_and_more_is_told_from_one_that_waits() {
        let run = growing(60_000).changed(|interval, second| {
            let cpu_us = (30_000 * second * second) as i64;
            interval.kernel.set(ProcessMetric::CPU_US.server, cpu_us);
        });
        assert!(run.speaks(&RULE).text.contains("computes more for each message"));
        let mut unseen = growing(60_000);
        unseen.header.target_is_here = false;
        assert!(unseen.speaks(&RULE).text.contains("CPU use is unknown"));
    }

    #[test]
    fn a_little_growth_a_jump_more_users_and_late_turns_are_none() {
        growing(5_000).is_silent(&RULE);
        let jump = Run::quiet().loaded(|load, second| {
            load.times[Operation::Message].clear();
            load.times[Operation::Message]
                .record_n(if second > 7 { 400_000 } else { 1_000 }, 1_000);
        });
        jump.is_silent(&RULE);
        growing(60_000)
            .loaded(|load, second| load.counters.connected = 90 * second)
            .is_silent(&RULE);
        let queue = growing(60_000).loaded(|load, second| {
            load.counters.turns_intended = 1_500 * second;
            load.counters.turns_started = 1_000 * second;
        });
        queue.is_silent(&RULE);
        // One stall, after which the users catch up.
        let stalled = growing(60_000).loaded(|load, second| {
            load.counters.turns_intended = 1_000 * second;
            load.counters.turns_started = 1_000 * second - 500 * u64::from(second == 8);
        });
        stalled.speaks(&RULE);
        growing(60_000).loaded(|load, _| load.lag.record_n(400_000, 900)).is_silent(&RULE);
        let busy = ProcessMetric::BUSIEST_THREAD_PERMILLE.server;
        growing(60_000).with(busy, 990).is_silent(&RULE);
        growing(60_000).growing(busy, 500, 50, 0).speaks(&RULE);
        // Waits for a CPU delay the median only where they go on throughout.
        let waiting = |permille| {
            let delayed = ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.server;
            growing(20_000).with(busy, 330).with(delayed, permille)
        };
        waiting(150).speaks(&RULE);
        waiting(400).is_silent(&RULE);
    }
}
