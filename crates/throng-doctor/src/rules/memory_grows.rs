//! The server's memory grew, though the load did not: perhaps a leak.

use throng_report::render::{bytes, count, rate};
use throng_report::{Endpoint, Evidence, Finding, ProcessMetric, Severity, Side};

use super::{Rule, RuleTrait, memory_runs_out};
use crate::counted::connections;
use crate::history::Sample;
use crate::run_view::RunView;
use crate::steady_load::SteadyLoad;
use crate::trend::Trend;

pub(super) const RULE: Rule = Rule::new("memory_grows", find).with(&[RuleTrait::NotOfDelays]);

/// Looks at the server's resident memory while the connections stay the same. A heap that fills up
/// to the next collection, or a cache that fills, slows down its growth; a leak does not.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let steady = SteadyLoad::of(run)?;
    let samples = steady.samples;
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
    if !is_much || after < before * LASTING_SHARE {
        return None;
    }
    let answered =
        |sample: &Sample| sample.load().map_or(0, |load| load.counters.requests_answered());
    let (first, last) = (samples.first()?, samples.last()?);
    let messages = answered(last).saturating_sub(answered(first));
    let each = match messages {
        0 => String::new(),
        messages => {
            format!(", {} a {}", bytes(trend.by() / messages as f64), run.summary.unit_of_work())
        }
    };
    let left = memory_runs_out::left(run, last).filter(|left| *left > 0);
    let ends = left.map_or_else(String::new, |left| {
        let seconds = left as f64 / trend.per_second;
        format!(
            " At this rate the {} that its machine has left last for {}.",
            bytes(left as f64),
            show_long(seconds)
        )
    });
    let text = format!(
        "The server's memory grew by {} a second{each}, at a constant load of {} and \
         {} {}s. It was {} at {} s and {} at {} s.{ends} A leak keeps what each {} or \
         connection leaves; a cache without a limit does the same.",
        bytes(trend.per_second),
        connections(steady.level.connections),
        rate(steady.level.messages_per_s),
        run.summary.unit_of_work(),
        bytes(trend.from),
        count(trend.from_ms as f64 / 1000.0),
        bytes(trend.to),
        count(trend.to_ms as f64 / 1000.0),
        run.summary.unit_of_work(),
    );
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(Severity::Noted)
        .with_confidence(0.7)
        .with_evidence([Evidence {
            counter: ProcessMetric::RSS_BYTES.server.to_string(),
            from: trend.from,
            to: trend.to,
            at_ms: trend.from_ms,
        }])
        .remedied_by(
            "hold the load for longer: if the memory still grows, compare two heap dumps of the \
             server, and find the list, map or cache that never forgets",
        );
    Some(finding)
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

/// The smallest growth, as a share of the memory at the beginning.
const GROWTH_SHARE: f64 = 0.10;

/// The least growth in the second half, as a share of that in the first.
const LASTING_SHARE: f64 = 0.5;

#[cfg(test)]
mod tests {
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
            interval.kernel.set(throng_report::Metric::MEMORY_TOTAL_BYTES, 8 << 30);
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
