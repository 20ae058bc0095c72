//! The generator itself was late: it measured its own delay.

use throng_measure::validity::LAG_DEGRADED_US;
use throng_measure::{Endpoint, Evidence, Finding, Grade, Metric, ProcessMetric, Side};
use throng_report::render::micros;

use super::{Rule, RuleTrait, server_slow};
use crate::cpus::{CpuUse, FULL_SHARE, mean, shares, whole_percent};
use crate::history::Sample;
use crate::impact::lateness_severity;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("generator_saturated", find).with(&[
    RuleTrait::LacksCpu,
    RuleTrait::OwnDelays,
    RuleTrait::OnlyDelays,
]);

/// Lag counts only steps that do not depend on the server, so the delay is the generator's alone.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let generator = &run.summary.generator;
    let late = generator.lag_us.p99;
    if generator.lag_grade == Grade::Valid {
        return None;
    }
    let samples = run.samples();
    let first = samples.iter().find(|sample| is_late(sample))?;
    let short = Shortage::of(run);
    let so = match generator.by_kernels_clock {
        // Reading late does not raise a latency, sending late does.
        Some(share) if share > 0.99 => "latencies exceed the server's by up to that",
        _ => "the numbers describe the generator, not the server",
    };
    let finding = Finding::new(
        RULE.id,
        Side::Client,
        format!(
            "The generator was late by {} (p99 over the run): {}. It did not send on time, so \
             {so}.{}",
            micros(late),
            short.cause,
            short.detail
        ),
    )
    .with_severity(lateness_severity(run))
    .with_confidence(match server_slow::RULE.find(run) {
        Some(_) => CONFIDENCE_BESIDE_A_SLOW_SERVER,
        None => 1.0,
    })
    .with_evidence([Evidence {
        counter: "load.lag_us.p99".to_owned(),
        from: samples.iter().find(|sample| sample.lag.count > 0)?.lag.p99_us as f64,
        to: first.lag.p99_us as f64,
        at_ms: first.interval.at_ms,
    }])
    .with_evidence(
        short.gauge.and_then(|gauge| Some(run.peak(Endpoint::Client, gauge)?.evidence())),
    )
    .remedied_by(short.remedy_for(run));
    Some(finding)
}

/// Reports whether the generator was late in this interval.
fn is_late(sample: &Sample) -> bool {
    sample.lag.p99_us > LAG_DEGRADED_US
}

/// What the generator lacked while it was late.
struct Shortage {
    cause: String,
    /// Further sentence, with a space before it.
    detail: String,
    /// Gauge that shows the shortage.
    gauge: Option<Metric>,
    remedy: &'static str,
    /// True if the remedy is a smaller load.
    asks_for_less: bool,
}

impl Shortage {
    /// Returns what to do. A generator that did hardly any of what it can do is not late because of
    /// the load.
    fn remedy_for(&self, run: &RunView<'_>) -> &'static str {
        let share = run.summary.generator.ceiling_share;
        match share.is_some_and(|share| share < LIGHT_LOAD_SHARE_MAX) {
            true if self.asks_for_less => LIGHT_LOAD_REMEDY,
            _ => self.remedy,
        }
    }

    fn of(run: &RunView<'_>) -> Self {
        let mut uses = CpuUse::of(run, Endpoint::Client);
        let late: Vec<u64> = run
            .samples()
            .iter()
            .filter(|sample| is_late(sample))
            .map(|sample| sample.interval.at_ms)
            .collect();
        uses.retain(|used| late.contains(&used.at_ms));
        let Some(used) = mean(&uses) else { return Self::unknown() };
        let client = used.client.unwrap_or_default();
        let detail = format!(" CPU use: {}.", shares(run, &used));
        let busiest = client.busiest.unwrap_or(0.0);
        let delayed = client.most_delayed.unwrap_or(0.0);
        if used.taken_share() > FULL_SHARE {
            let server = used.server.map_or(0.0, |server| server.taken);
            let others = used.strangers(run).unwrap_or(0.0);
            let remedy = if others > used.busy * 0.5 {
                "stop the other programs on its machine (see them with: top -o %CPU), or give it a \
                 machine of its own"
            } else if run.header.target_is_here && server > used.busy * 0.3 {
                "give the generator a machine of its own, or lower the load"
            } else {
                "lower the load, or spread the load over more machines"
            };
            Self {
                cause: "its machine had no CPU time left".to_owned(),
                detail,
                gauge: None,
                remedy,
                asks_for_less: true,
            }
        } else if delayed > DELAYED_MIN {
            Self {
                cause: format!(
                    "one of its threads waited for a CPU {} of the time",
                    whole_percent(delayed)
                ),
                detail,
                gauge: Some(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.client),
                remedy: "let it use more CPUs (taskset, cpuset, quota), or stop other programs on \
                         its machine",
                asks_for_less: false,
            }
        } else if busiest > BUSY_MIN {
            let cores = run
                .samples()
                .iter()
                .filter_map(Sample::load)
                .map(|load| load.cores)
                .max()
                .unwrap_or(0);
            Self {
                cause: format!(
                    "one of its {cores} event loops was busy for {} of the time",
                    whole_percent(busiest)
                ),
                detail,
                gauge: Some(ProcessMetric::BUSIEST_THREAD_PERMILLE.client),
                remedy: "give it more event loops (--cores), or lower the load",
                asks_for_less: true,
            }
        } else {
            Self { cause: "no shortage of CPU time was seen".to_owned(), detail, ..Self::unknown() }
        }
    }

    fn unknown() -> Self {
        Self {
            cause: "it had more work than it could do".to_owned(),
            detail: String::new(),
            gauge: None,
            remedy: "lower the load, give it more CPUs (--cores), or move it to a machine of its \
                     own",
            asks_for_less: true,
        }
    }
}

/// The confidence that the run suffered from it where answers are later than it can make them: less
/// than that of a slow server.
const CONFIDENCE_BESIDE_A_SLOW_SERVER: f64 = 0.3;

/// The share of what the generator can do below which a smaller load would change nothing.
const LIGHT_LOAD_SHARE_MAX: f64 = 0.25;

/// What to do about a generator that is late under a light load.
const LIGHT_LOAD_REMEDY: &str = "repeat the run on a machine that does nothing else: the load is a \
                                 small part of what this generator can do, so something else \
                                 delayed it (other programs, a pause of the machine, swapping)";

/// The smallest delay that matters: a thread that waits a tenth of the time for a CPU is late by
/// that.
const DELAYED_MIN: f64 = 0.10;

/// The load above which an event loop has no time left to be punctual.
const BUSY_MIN: f64 = 0.85;

#[cfg(test)]
mod tests {
    use throng_measure::runfile::Ceiling;
    use throng_measure::{ArrivalLatencies, Operation, Severity};

    use super::super::fixture::Run;
    use super::*;

    fn late(us: u64) -> Run {
        Run::quiet()
            .loaded(move |load, second| load.lag.record_n(us, if second > 5 { 900 } else { 0 }))
    }

    #[test]
    fn a_generator_that_is_late_is_reported() {
        let found = late(250_000).speaks(&RULE);
        assert_eq!((found.severity, found.evidence[0].at_ms), (Severity::Stopped, 6_000));
        assert_eq!(late(30_000).speaks(&RULE).severity, Severity::Slowed);
    }

    #[test]
    fn the_shortage_is_named() {
        let check = |run: Run, cause: &str, remedy: &str| {
            let found = run.speaks(&RULE);
            assert!(found.first_sentence().ends_with(cause), "{found}");
            assert!(found.remedy.contains(remedy), "{found}");
        };
        let full = late(30_000).changed(|interval, second| {
            let machine = interval.machine.as_mut().unwrap();
            (machine.cpu_busy_us, machine.cpu_idle_us) = (1_990_000 * second, 10_000 * second);
        });
        let full = full.growing(ProcessMetric::CPU_US.server, 0, 20_000, 0);
        let by_others = full.find(&RULE).unwrap();
        assert!(by_others.remedy.starts_with("stop the other programs"), "{by_others}");
        let own = full.loaded(|load, second| load.process.cpu_user_us = 1_800_000 * second);
        check(own, "its machine had no CPU time left", "more machines");
        check(
            late(30_000).with(ProcessMetric::BUSIEST_THREAD_PERMILLE.client, 970),
            "one of its 2 event loops was busy for 97 % of the time",
            "--cores",
        );
        check(
            late(30_000).with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.client, 400),
            "one of its threads waited for a CPU 40 % of the time",
            "taskset",
        );
        check(late(30_000), "no shortage of CPU time was seen", "lower the load");
    }

    #[test]
    fn a_light_load_is_not_to_be_lowered() {
        let with = |per_s| {
            let mut run = late(30_000);
            run.header.ceiling = Some(Ceiling { messages_per_s: per_s, ..Ceiling::default() });
            run.speaks(&RULE).remedy
        };
        assert!(with(Some(100_000.0)).starts_with("repeat the run on a machine that does nothing"));
        assert!(with(Some(2_000.0)).starts_with("lower the load"));
        assert!(with(None).starts_with("lower the load"));
    }

    #[test]
    fn a_generator_on_time_is_not() {
        Run::quiet().is_silent(&RULE);
        late(9_000).is_silent(&RULE);
    }

    #[test]
    fn lateness_that_is_a_small_part_of_what_was_measured_is_not() {
        let answered_after = |us: u64| {
            late(30_000).loaded(move |load, _| {
                for operation in [Operation::Connect, Operation::Message] {
                    load.times[operation].clear();
                    load.times[operation].record_n(us, 1_000);
                }
                load.arrival = ArrivalLatencies::default();
                for operation in [Operation::Connect, Operation::Message] {
                    load.arrival[operation].record_n(us, 1_000);
                }
            })
        };
        answered_after(900_000).is_silent(&RULE);
        let found = answered_after(90_000).speaks(&RULE);
        let so = "latencies exceed the server's by up to that";
        assert!(found.text.contains(so), "{found}");
    }
}
