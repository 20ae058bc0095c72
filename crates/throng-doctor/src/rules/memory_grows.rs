//! The server's memory grew, though the load did not: perhaps a leak.

use throng_measure::{
    Endpoint, Evidence, Finding, Metric, ProcessMetric, RunEventKind, Severity, Side,
};
use throng_report::render::{bytes, count, rate};

use super::{Rule, RuleTrait, memory_runs_out};
use crate::counted::connections;
use crate::history::Sample;
use crate::outages::events;
use crate::run_view::RunView;
use crate::steady_load::SteadyLoad;
use crate::trend::Trend;

pub(super) const RULE: Rule = Rule::new("memory_grows", find).with(&[RuleTrait::NotOfDelays]);

/// Looks at the server's resident memory while the load stays the same. A heap that fills up to the
/// next collection, or a cache that fills, slows down its growth; a leak does not. A runtime with a
/// collector fills its heap first: until then what it would keep is not known.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let samples = while_it_ran(run);
    let held = SteadyLoad::of_samples(samples);
    let is_held = held.is_some();
    let steady = held.or_else(|| SteadyLoad::of_arrivals(samples))?;
    let samples = steady.samples;
    let trend = growth(run, samples)?;
    let heap = Heap::of(run);
    if heap.explains(&trend) || (!is_held && is_of_connections(samples, &trend)) {
        return None;
    }
    let unit = run.summary.unit_of_work();
    let (first, last) = (samples.first()?, samples.last()?);
    let messages = answered(last).saturating_sub(answered(first));
    let each = match messages {
        0 => String::new(),
        messages => format!(", {} a {unit}", bytes(trend.by() / messages as f64)),
    };
    let ends = match (ended_ms(run), memory_runs_out::left(run, last).filter(|left| *left > 0)) {
        (Some(ms), _) => format!(" Its process ended at {} s.", count(ms as f64 / 1000.0)),
        (None, Some(left)) => format!(
            " At this rate the {} that its machine has left last for {}.",
            bytes(left as f64),
            show_long(left as f64 / trend.per_second)
        ),
        (None, None) => String::new(),
    };
    let load = match is_held {
        true => format!("{} and ", connections(steady.level.connections)),
        false => String::new(),
    };
    let text = format!(
        "The server's memory grew by {} a second{each}, at a constant load of {load}{} {unit}s. It \
         was {} at {} s and {} at {} s.{ends} A leak keeps what each {unit} or connection leaves; \
         a cache without a limit does the same.",
        bytes(trend.per_second),
        rate(steady.level.messages_per_s),
        bytes(trend.from),
        count(trend.from_ms as f64 / 1000.0),
        bytes(trend.to),
        count(trend.to_ms as f64 / 1000.0),
    );
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(Severity::Noted)
        .with_confidence(0.7)
        .with_evidence([Evidence {
            counter: ProcessMetric::RSS_BYTES.server.to_string(),
            from: trend.from.round(),
            to: trend.to.round(),
            at_ms: trend.from_ms,
        }])
        .remedied_by(
            "hold the load for longer: if the memory still grows, compare two heap dumps of the \
             server, and find the list, map or cache that never forgets",
        );
    Some(finding)
}

/// Returns the growth of the resident memory in these samples, if it is large and goes on.
fn growth(run: &RunView<'_>, samples: &[Sample]) -> Option<Trend> {
    let resident =
        |sample: &Sample| run.value(Endpoint::Server, sample, ProcessMetric::RSS_BYTES.server);
    let points: Option<Vec<_>> = samples
        .iter()
        .map(|sample| Some((sample.interval.at_ms, resident(sample)? as f64)))
        .collect();
    let points = points?;
    let trend = Trend::of(&points).filter(Trend::is_steady_growth)?;
    let half = points.len() / 2;
    let [before, after] =
        [&points[..=half], &points[half..]].map(|part| part[part.len() - 1].1 - part[0].1);
    let is_much = trend.by() >= GROWTH_MIN_BYTES && trend.by() >= trend.from * GROWTH_SHARE;
    (is_much && after >= before * LASTING_SHARE).then_some(trend)
}

fn answered(sample: &Sample) -> u64 {
    sample.load().map_or(0, |load| load.counters.requests_answered())
}

/// Returns the samples in which the server's first process ran.
fn while_it_ran<'a>(run: &RunView<'a>) -> &'a [Sample] {
    let samples = run.samples();
    let Some(ms) = ended_ms(run) else { return samples };
    let end = samples.iter().position(|sample| sample.interval.at_ms >= ms);
    &samples[..end.unwrap_or(samples.len())]
}

/// Returns the time at which the server's process ended.
fn ended_ms(run: &RunView<'_>) -> Option<u64> {
    events(run).find_map(|(at_ms, event)| match event {
        RunEventKind::ServerProcessEnded { .. } => Some(at_ms),
        _ => None,
    })
}

/// Reports whether more connections explain most of a growth.
fn is_of_connections(samples: &[Sample], trend: &Trend) -> bool {
    let connected = |sample: &Sample| sample.load().map_or(0, |load| load.counters.connected);
    let ends = samples.first().zip(samples.last());
    let more = ends.map_or(0, |(first, last)| connected(last).saturating_sub(connected(first)));
    more as f64 * CONNECTION_BYTES * 2.0 >= trend.by()
}

/// What a runtime's collector leaves in its heap before it collects.
enum Heap {
    /// Memory is freed at once, or nothing is known.
    Exact,
    /// The heap may grow by so many bytes.
    By(f64),
    /// The heap may grow by so many bytes, or double.
    Doubles(f64),
    /// The heap may grow to so many bytes.
    UpTo(f64),
}

impl Heap {
    fn of(run: &RunView<'_>) -> Self {
        // A program of any name may be one of these runtimes.
        let program = events(run).find_map(|(_, event)| match event {
            RunEventKind::ServerProcess { program, runtime, .. } => {
                Some(runtime.as_deref().unwrap_or(program))
            }
            _ => None,
        });
        let total = |now| run.value(Endpoint::Server, now, Metric::MEMORY_TOTAL_BYTES);
        let total = run.samples().iter().find_map(total);
        match program.unwrap_or_default() {
            // By default, a heap may take a quarter of the machine's memory.
            "java" | "dotnet" => Self::UpTo(total.map_or(f64::MAX, |total| total as f64 / 4.0)),
            "node" | "nodejs" | "MainThread" | "node-MainThread" | "deno" | "bun" => {
                Self::By(YOUNG_BYTES)
            }
            "beam.smp" | "go" | "ruby" => Self::Doubles(YOUNG_BYTES),
            program if program.starts_with("puma") => Self::Doubles(YOUNG_BYTES),
            _ => Self::Exact,
        }
    }

    /// Reports whether garbage that is not collected yet explains a growth.
    fn explains(&self, trend: &Trend) -> bool {
        match self {
            Self::Exact => false,
            Self::By(bytes) => trend.by() < *bytes,
            Self::Doubles(bytes) => trend.by() < *bytes || trend.to < trend.from * DOUBLE,
            Self::UpTo(bytes) => trend.to < *bytes,
        }
    }
}

/// Formats a time of minutes, hours or days.
fn show_long(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3_600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

/// The smallest growth over the steady load: less is the noise of an allocator.
const GROWTH_MIN_BYTES: f64 = 8_388_608.0;

/// The memory of a connection, at most: more is no connection's.
const CONNECTION_BYTES: f64 = 65_536.0;

/// The garbage of a young generation, at most: V8 collects three spaces of 16 MiB before it keeps
/// more.
const YOUNG_BYTES: f64 = 40.0 * 1_048_576.0;

/// How many times as large a heap becomes before it is collected.
const DOUBLE: f64 = 2.0;

/// The smallest growth, as a share of the memory at the beginning.
const GROWTH_SHARE: f64 = 0.10;

/// The least growth in the second half, as a share of that in the first.
const LASTING_SHARE: f64 = 0.5;

#[cfg(test)]
mod tests {
    use throng_measure::RunEvent;

    use super::super::fixture::Run;
    use super::*;

    /// A run whose server has this much memory in each second.
    fn holding(mib: impl Fn(u64) -> f64) -> Run {
        Run::quiet().changed(move |interval, second| {
            let bytes = (mib(second) * 1_048_576.0) as i64;
            interval.kernel.set(ProcessMetric::RSS_BYTES.server, bytes);
        })
    }

    #[test]
    fn memory_that_grows_at_a_constant_load_is_a_leak_with_its_pace_and_its_end() {
        let leak = holding(|second| 100.0 + 8.0 * second as f64).changed(|interval, _| {
            interval.kernel.set(throng_measure::Metric::MEMORY_TOTAL_BYTES, 8 << 30);
        });
        let found = leak.speaks(&RULE);
        assert!(
            found.text.starts_with(
                "The server's memory grew by 8.00 MiB a second, 8.39 kB a message, at a constant \
                 load of 1k connections and 1k/s messages."
            ) || found.text.starts_with("The server's memory grew by 8.00 MiB a second"),
            "{found}"
        );
        assert!(found.text.contains("It was 140 MiB at 5 s and 180 MiB at 10 s"), "{found}");
        assert_eq!(found.severity, Severity::Noted);
        leak.check_all(&["memory_grows"]);
        let verdict = leak.verdict();
        assert!(
            verdict.starts_with("Nothing stopped it: the plan was met")
                && verdict.contains("Next: the server's memory grew by 8.00 MiB a second"),
            "{verdict}"
        );
    }

    fn named(run: Run, program: &'static str) -> Run {
        in_runtime(run, program, None)
    }

    fn in_runtime(run: Run, program: &'static str, runtime: Option<&'static str>) -> Run {
        run.changed(move |interval, second| {
            if second == 1 {
                let event = RunEventKind::ServerProcess {
                    pid: 7,
                    program: program.to_owned(),
                    runtime: runtime.map(str::to_owned),
                };
                interval.events.push(RunEvent::new(500, event));
            }
            interval.kernel.set(Metric::MEMORY_TOTAL_BYTES, 4 << 30);
        })
    }

    #[test]
    fn a_heap_that_its_collector_has_not_collected_is_no_leak() {
        let grows = |each_second: f64| holding(move |second| 60.0 + each_second * second as f64);
        named(grows(9.6), "java").is_silent(&RULE);
        named(grows(300.0), "java").speaks(&RULE);
        named(grows(2.0), "node").is_silent(&RULE);
        named(grows(2.0), "python3").speaks(&RULE);
        named(grows(10.0), "node-MainThread").speaks(&RULE);
        named(grows(2.0), "beam.smp").is_silent(&RULE);
    }

    #[test]
    fn a_program_with_a_name_of_its_own_is_known_by_its_runtime() {
        let grows = |each_second: f64| holding(move |second| 60.0 + each_second * second as f64);
        let shop = |each_second, runtime| in_runtime(grows(each_second), "shop", runtime);
        shop(9.6, None).speaks(&RULE);
        shop(9.6, Some("dotnet")).is_silent(&RULE);
        shop(300.0, Some("dotnet")).speaks(&RULE);
        // It collects when its heap has doubled.
        shop(9.6, Some("go")).is_silent(&RULE);
        in_runtime(arriving(18.0), "shop", Some("go")).speaks(&RULE);
    }

    /// A run with 300 users a second, each of which connects, is answered and leaves.
    fn arriving(mib_each_second: f64) -> Run {
        holding(move |second| 50.0 + mib_each_second * second as f64).loaded(|load, second| {
            load.counters.connected = 2 + second * 7 % 5;
            load.counters.messages_sent = 300 * second;
            load.counters.messages_answered = 300 * second;
        })
    }

    #[test]
    fn a_leak_shows_under_arrivals_and_when_the_process_ends_afterwards() {
        let run = arriving(18.0);
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server's memory grew by 18.0 MiB a second, 61.4 KiB a message, at a constant load \
             of 300/s messages"
        );
        assert!(found.evidence.iter().all(|shown| shown.to.fract() == 0.0), "{found}");
        let ended = run.changed(|interval, second| {
            if second == 9 {
                let event = RunEventKind::ServerProcessEnded { pid: 7, program: "go".into() };
                interval.events.push(RunEvent::new(8_400, event));
            }
            if second > 8 {
                interval.kernel.set(ProcessMetric::RSS_BYTES.server, 0);
            }
        });
        assert!(ended.speaks(&RULE).text.contains("Its process ended at 8.4"));
        // Each of 90 more connections a second has some memory.
        let held = arriving(5.0).loaded(|load, second| load.counters.connected = 90 * second);
        held.is_silent(&RULE);
    }

    #[test]
    fn memory_of_connections_a_heap_that_fills_and_noise_are_none() {
        // It grows only while connections open.
        holding(|second| 100.0 + 20.0 * second.min(5) as f64).is_silent(&RULE);
        // It grows less and less.
        holding(|second| 300.0 - 600.0 / (second + 1) as f64).is_silent(&RULE);
        // A collection frees it.
        holding(|second| 100.0 + 12.0 * (second % 3) as f64).is_silent(&RULE);
        holding(|second| 100.0 + 0.5 * second as f64).is_silent(&RULE);
    }
}
