//! A server that is slow for a short time when it starts. A median does not show that: a part of
//! its interval was fast.

use throng_measure::{Endpoint, Finding, Severity, Side};
use throng_report::render::{count, micros};

use super::super::{known_delays, server_stalled};
use super::{
    CONNECTS_FEW, FAST_MIN, Level, RULE, SAME_TIMES, TIMES_MIN, WARM_UP, most, slow_min_us,
};
use crate::cpus::{CpuUse, INTERVALS_MIN};
use crate::median::median;
use crate::run_view::{LoadLevel, RunView};
use crate::steady_load::answers;

/// Returns the finding for a server whose slow answers are all in its first seconds.
pub(super) fn find(run: &RunView<'_>, all: &[Level<'_>]) -> Option<Finding> {
    let slow_us = slow_min_us(run);
    let (cold, warm) = all.split_at(all.iter().position(|level| level.p99_us < slow_us)?);
    let (first, last) = (cold.first()?, cold.last()?);
    let worst_us = cold.iter().map(|level| level.p99_us).max()?;
    let later_us = median(warm.iter().map(|level| level.p99_us))?;
    let is_short = last.end_ms().saturating_sub(first.begin_ms()) <= COLD_MS_MOST;
    let is_felt =
        worst_us >= WAIT_US || run.thresholds.answer_us().is_some() || cold.len() >= INTERVALS_MIN;
    let is_apart = worst_us >= later_us.saturating_mul(TIMES_MIN);
    let stays_fast = warm.len() >= FAST_MIN && warm.iter().all(|level| level.p99_us < slow_us);
    let grows = |of: fn(&LoadLevel) -> f64| most(cold, of) > most(warm, of) * SAME_TIMES;
    if !is_short || !is_felt || !is_apart || !stays_fast || grows(|load| load.messages_per_s) {
        return None;
    }
    let late: Vec<_> = cold.iter().map(|level| (level.sample, level.p99_us)).collect();
    let lacks_cpu = known_delays::lacks_cpu(run, &late) && !computes_alone(run, cold);
    if lacks_cpu
        || known_delays::explain_without_cpu(run, &late)
        || server_stalled::RULE.find(run).is_some()
    {
        return None;
    }
    let connects = grows(|load| (load.connects_per_s - CONNECTS_FEW).max(0.0));
    let (load, or, remedy) = match connects {
        true => (
            ", while its users connected, and fast from then on",
            "each connect costs it much",
            WARM_UP_OR_RAMP,
        ),
        false => (" and fast from then on, at the same load", "more instances start", WARM_UP),
    };
    let text = format!(
        "The server was slow until {} s{load}: its answers took {}, then {} (p99). It starts \
         slowly: its caches are cold, it compiles its code, or {or}.",
        count(last.end_ms() as f64 / 1000.0),
        micros(worst_us),
        micros(later_us)
    );
    let (kind, _) = answers(first.sample);
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(Severity::Slowed)
        .with_confidence(if connects { 0.6 } else { 0.75 })
        .shown_by(&format!("load.{kind}_us.p99"), worst_us as f64, later_us as f64, first.end_ms());
    Some(finding.remedied_by(remedy))
}

/// Reports whether hardly any other program used the server's CPUs in these intervals: what the
/// server then lacks, it takes from itself.
fn computes_alone(run: &RunView<'_>, levels: &[Level<'_>]) -> bool {
    let uses = CpuUse::of(run, Endpoint::Server);
    let mut of_levels = levels.iter().map(|level| {
        let used = uses.iter().find(|used| used.at_ms == level.end_ms())?;
        let ends = [Some(used.server?), used.client].into_iter().flatten();
        let others = used.busy + used.stolen - ends.map(|end| end.taken).sum::<f64>();
        Some(others / used.cpus)
    });
    of_levels.all(|others| others.is_some_and(|share| share <= OTHERS_SHARE_MOST))
}

/// The longest time in which a server that starts is slow.
const COLD_MS_MOST: u64 = 3_000;

/// The wait from which the answers of a single interval count.
const WAIT_US: u64 = 1_000_000;

/// The largest share of the CPUs that others use where a server lacks only its own.
const OTHERS_SHARE_MOST: f64 = 0.2;

const WARM_UP_OR_RAMP: &str = "warm the server up before the load that counts (a first phase with \
                               little load); if a second run at once is as slow at first, connects \
                               cost it much: let users come more slowly (a longer ramp)";

#[cfg(test)]
mod tests {
    use throng_measure::{Operation, ProcessMetric};

    use super::super::super::fixture::Run;
    use super::super::tests::paced;
    use super::*;
    use crate::missed_thresholds::MissedThresholds;

    /// A run that misses a threshold, whose users come in the first second. One in fifty of its
    /// answers takes this long, and the others are fast.
    fn rarely(us: impl Fn(u64) -> u64) -> Run {
        paced(|_| 2_000).loaded(move |load, second| {
            if second > 0 {
                load.times[Operation::Message].record_n(us(second), 20);
            }
        })
    }

    fn judged(run: &Run) -> Option<Finding> {
        let (history, summary) = run.whole();
        let threshold = "message.max < 100ms".parse::<throng_report::Threshold>().unwrap();
        let thresholds = MissedThresholds::of(&[threshold.judge(&summary)]);
        RULE.find(&RunView::judged(&history, &summary, &thresholds))
    }

    #[test]
    fn a_server_whose_first_second_is_slow_starts_cold() {
        let cold = |second| if second == 1 { 800_000 } else { 2_000 };
        let found = judged(&rarely(cold)).expect("a cold start");
        let begin = "The server was slow until 1 s, while its users connected, and fast from then \
                     on: its answers took 8";
        assert!(found.text.starts_with(begin), "{found}");
        assert!(found.remedy.contains("a longer ramp"), "{found}");
        // Users arrive all the time.
        let arriving = rarely(cold).loaded(|load, second| {
            load.counters.connects_ok = 200 * second;
            load.counters.connected = 0;
        });
        let found = judged(&arriving).expect("a cold start");
        assert!(
            found.text.contains("until 1 s and fast from then on, at the same load"),
            "{found}"
        );
        assert!(!found.remedy.contains("ramp"), "{found}");
        // What is asked in the first second is answered in the second.
        let late = rarely(|second| if second <= 2 { 800_000 } else { 2_000 });
        let late = late.loaded(|load, second| {
            load.counters.messages_answered = if second == 1 { 500 } else { 1_000 * second };
        });
        assert!(judged(&late).expect("a cold start").text.contains("until 2 s, while its users"));
        // It is slow once more.
        let again = rarely(|second| if second % 5 == 1 { 800_000 } else { 2_000 });
        assert_eq!(judged(&again), None);
        // Fewer messages are sent when it is fast.
        let more = rarely(cold).loaded(|load, second| {
            load.counters.messages_sent += 500 * second.min(1);
        });
        assert_eq!(judged(&more), None);
    }

    #[test]
    fn a_server_that_takes_the_cpu_from_itself_when_it_starts_is_cold() {
        let starved = |by_others: bool| {
            let cold = rarely(|second| if second == 1 { 800_000 } else { 2_000 });
            cold.changed(move |interval, second| {
                let full = u64::from(second >= 1);
                let machine = interval.machine.as_mut().unwrap();
                machine.cpu_busy_us += 1_600_000 * full;
                machine.cpu_idle_us -= 1_600_000 * full;
                let servers = if by_others { 0 } else { 1_600_000 * full };
                interval.kernel.set(ProcessMetric::CPU_US.server, servers as i64);
                let delayed = if second == 1 { 900 } else { 0 };
                interval.kernel.set(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.server, delayed);
            })
        };
        judged(&starved(false)).expect("a cold start");
        assert_eq!(judged(&starved(true)), None);
    }
}
