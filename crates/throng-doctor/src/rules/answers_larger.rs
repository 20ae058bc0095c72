//! The server's answers became larger and larger, though the load did not change.

use throng_measure::{Evidence, Finding, Severity, Side};
use throng_report::render::{bytes, count};

use super::{Rule, latency_grows};
use crate::history::Sample;
use crate::run_view::RunView;
use crate::steady_load::SteadyLoad;
use crate::trend::Trend;

pub(super) const RULE: Rule =
    Rule::new("answers_larger", find).explains(&["latency_grows", "memory_grows", "server_slow"]);

/// Looks at the bytes that arrive for each answer: a list without a page, a history that each
/// answer repeats. Messages to all users would count too, so a run with many of them is left out.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let message = &run.summary.message;
    if message.unasked > message.answered {
        return None;
    }
    let steady = SteadyLoad::of(run).or_else(|| SteadyLoad::of_arrivals(run.samples()))?;
    let points = steady.samples.windows(2).filter_map(|pair| each_answer(&pair[0], &pair[1]));
    let trend = Trend::of(&points.collect::<Vec<_>>()).filter(Trend::is_steady_growth)?;
    if trend.by() < BYTES_MIN || trend.to < trend.from * TIMES_MIN {
        return None;
    }
    let text = format!(
        "The server's answers became larger at a constant load: {} each at {} s, {} at {} s. Each \
         holds more than the one before, such as a list or a history that grows.",
        bytes(trend.from),
        count(trend.from_ms as f64 / 1000.0),
        bytes(trend.to),
        count(trend.to_ms as f64 / 1000.0)
    );
    let is_felt = latency_grows::grows(run);
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(if is_felt { Severity::Slowed } else { Severity::Noted })
        .with_confidence(0.8)
        .with_evidence([Evidence {
            counter: "load.core.bytes_received".to_owned(),
            from: trend.from.round(),
            to: trend.to.round(),
            at_ms: trend.from_ms,
        }])
        .remedied_by(
            "compare an early answer with a late one (throng try, or curl), and limit what each \
             holds: pages, a largest number of entries, only what is new",
        );
    Some(finding)
}

/// Returns the bytes that arrived in an interval for each answer.
fn each_answer(before: &Sample, now: &Sample) -> Option<(u64, f64)> {
    let (from, to) = (before.load()?, now.load()?);
    let answers = to.counters.since(&from.counters).requests_answered();
    let bytes = to.core.bytes_received.saturating_sub(from.core.bytes_received);
    (answers >= ANSWERS_MIN).then_some((now.interval.at_ms, bytes as f64 / answers as f64))
}

/// The fewest answers of an interval.
const ANSWERS_MIN: u64 = 10;

/// The smallest growth of an answer, in bytes, and in times.
const BYTES_MIN: f64 = 1_024.0;
const TIMES_MIN: f64 = 1.25;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    /// A run whose answers have so many bytes in each second.
    fn sized(each: impl Fn(u64) -> u64) -> Run {
        Run::quiet().loaded(move |load, second| {
            load.core.bytes_received = (1..=second).map(|second| 1_000 * each(second)).sum();
        })
    }

    #[test]
    fn answers_that_become_larger_are_told_with_their_sizes() {
        let run = sized(|second| 14_000 + 6_000 * second);
        let found = run.speaks(&RULE);
        assert!(
            found.text.starts_with(
                "The server's answers became larger at a constant load: 48.8 KiB each at 6 s, \
                 72.3 KiB at 10 s."
            ),
            "{found}"
        );
        run.check_all(&["answers_larger"]);
    }

    #[test]
    fn answers_of_one_size_noise_and_broadcasts_are_none() {
        sized(|_| 14_000).is_silent(&RULE);
        sized(|second| 14_000 + 400 * (second % 3)).is_silent(&RULE);
        let rooms = sized(|second| 14_000 + 6_000 * second);
        rooms
            .loaded(|load, second| load.counters.messages_unasked = 20_000 * second)
            .is_silent(&RULE);
    }
}
