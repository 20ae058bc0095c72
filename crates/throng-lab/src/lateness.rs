//! Deliveries that are late: up to how many a second do messages arrive in time?

use serde::Serialize;
use throng_measure::runfile::RunFile;
use throng_measure::{Interval, LoadInterval, Operation};
use throng_run::rates::steps;
use throng_run::test_bed::NextStep;

use crate::knee::{KneeWatch, Point, describe, knee};
use crate::measure::valid_until;
use crate::message_window::MessageWindow;
use crate::run_watch::{LabServer, RunWatch};
use crate::sized_scenario::SizedScenario;

/// The growth of the deliveries, and where they became late.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Lateness {
    /// The growing part of the run, in at most five windows.
    parts: Vec<MessageWindow>,
    /// p99 of the deliveries in the worst of them.
    delivery_p99_us_most: Option<u64>,
    /// Deliveries per second that were due before they became late; none if they never did.
    late_from: Option<f64>,
    /// The moment until which neither deliveries nor the generator were late; none if that is the
    /// end of the load.
    in_time_until_ms: Option<u64>,
    /// True when the generator was late first.
    is_the_generators: bool,
    /// What late means.
    rule: String,
}

/// The messages of a run that grow from `from_ms` to `to_ms`, each for `members` users: the
/// parameters `grows_from`, `grows` and `members`.
#[derive(Clone, Copy)]
struct Deliveries {
    members: u64,
    from_ms: u64,
    to_ms: u64,
}

impl Deliveries {
    fn of(sized: &SizedScenario) -> Self {
        let ms = |name: &str| (1000.0 * sized.param(name)) as u64;
        let from_ms = ms("grows_from");
        let members = sized.param("members") as u64;
        Self { members, from_ms, to_ms: from_ms + ms("grows") }
    }

    /// Returns the point of an interval, in deliveries: each message goes to every member of its
    /// room. A second without a delivered probe does not show the delay; that of its delivery does.
    fn point(
        self,
        interval: &Interval,
        before: &LoadInterval,
        now: &LoadInterval,
    ) -> Option<Point> {
        let seconds = interval.span_ms.max(1) as f64 / 1000.0;
        let grown = now.counters.since(&before.counters);
        let delivery = now.latency(Operation::Broadcast);
        let is_within = interval.at_ms >= self.from_ms + interval.span_ms;
        (is_within && !now.is_leaving() && !delivery.is_empty()).then(|| Point {
            at_ms: interval.at_ms,
            intended_rate: (grown.turns_intended * self.members) as f64 / seconds,
            rate: grown.messages_received as f64 / seconds,
            p99_us: Some(delivery.percentile(99.0)),
        })
    }
}

/// Ends the load when messages are certainly late.
pub(crate) struct LatenessWatch(KneeWatch<PointOf>);

type PointOf = Box<dyn Fn(&Interval, &LoadInterval, &LoadInterval) -> Option<Point>>;

impl LatenessWatch {
    pub(crate) fn new(sized: &SizedScenario) -> Self {
        let deliveries = Deliveries::of(sized);
        Self(KneeWatch::new(Box::new(move |interval, before, now| {
            deliveries.point(interval, before, now)
        })))
    }
}

impl RunWatch for LatenessWatch {
    fn add(&mut self, interval: &Interval, _: &mut LabServer<'_>) -> NextStep {
        self.0.add(interval)
    }
}

/// Finds where the deliveries of a run became late, or its generator.
pub(crate) fn lateness(run: &RunFile, sized: &SizedScenario) -> Lateness {
    let deliveries = Deliveries::of(sized);
    let Deliveries { from_ms: from, to_ms: to, .. } = deliveries;
    // Each part has at least two seconds.
    let parts = ((to - from) / 2000).clamp(1, PARTS_MOST);
    let at = |i: u64| from + (to - from) * i / parts;
    let part = |i: u64| MessageWindow::between(&run.intervals, at(i), at(i + 1));
    let parts: Vec<_> = (0..parts).filter_map(part).collect();
    let points: Vec<_> = steps(&run.intervals)
        .filter(|(interval, ..)| interval.at_ms <= to)
        .filter_map(|(interval, before, now, _)| deliveries.point(interval, before, now))
        .collect();
    let knee = knee(&points).map(|knee| (knee.at_ms.saturating_sub(1), knee.rate));
    let due_until = |until_ms: u64| {
        let before = points.iter().filter(|point| point.at_ms <= until_ms);
        before.map(|point| point.intended_rate).fold(0.0, f64::max)
    };
    let late = valid_until(run).map(|until_ms| (until_ms, due_until(until_ms)));
    let is_the_generators = late.is_some_and(|late| knee.is_none_or(|knee| late.0 < knee.0));
    let first = if is_the_generators { late } else { knee };
    Lateness {
        delivery_p99_us_most: parts.iter().filter_map(|part| part.delivery_p99_us).max(),
        parts,
        late_from: first.map(|(_, rate)| rate),
        in_time_until_ms: first.map(|(until_ms, _)| until_ms),
        is_the_generators,
        rule: describe(),
    }
}

const PARTS_MOST: u64 = 5;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::experiment::tests::verdict;

    #[test]
    fn late_messages_are_in_the_verdict_with_both_rates() {
        let mut row =
            json!({"users": 1000, "joined_most": 1000, "members": 500, "late_from": 60_000.0});
        let sentences = verdict("one-room", &row);
        assert!(
            sentences.contains("up to 60k/s deliveries, 120/s messages to 500 users"),
            "{sentences}"
        );
        row["is_the_generators"] = true.into();
        let sentences = verdict("many-rooms", &row);
        assert!(sentences.contains("beyond that the generator itself is late"), "{sentences}");
        row["late_from"] = json!(null);
        let sentences = verdict("one-room", &row);
        assert!(sentences.contains("to the end of the load"), "{sentences}");
    }
}
