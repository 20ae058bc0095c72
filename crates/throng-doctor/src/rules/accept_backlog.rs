//! Connections that the kernel has established and the server has not accepted.

use throng_measure::{Endpoint, Evidence, LoadCounters, Metric};

use crate::history::Sample;
use crate::run_view::RunView;

/// Returns evidence that connections waited for longer than one interval: in the accept queue, or
/// as the difference of the counts of client and server.
pub(super) fn accept_backlog(run: &RunView<'_>) -> Option<Evidence> {
    let queued =
        |sample: &Sample| run.value(Endpoint::Server, sample, Metric::LISTENER_ACCEPT_QUEUE);
    let missing = |sample: &Sample| {
        let connected = sample.load()?.counters.connected;
        Some(connected.saturating_sub(open(sample)?) as i64)
    };
    let waits = |sample: &Sample| queued(sample) > Some(0);
    // Client and server are read one after the other: what opens and closes in a whole interval is
    // far more than what does so between the two reads.
    let misses = |before: &Sample, now: &Sample| {
        Some(missing(now)? > i64::try_from(opened_and_closed(before, now)?).unwrap_or(i64::MAX))
    };
    let samples = run.samples();
    let peak = if samples.windows(2).any(|pair| pair.iter().all(waits)) {
        run.peak_of(Metric::LISTENER_ACCEPT_QUEUE.name(), queued)
    } else if samples.windows(3).any(|three| {
        misses(&three[0], &three[1]) == Some(true) && misses(&three[1], &three[2]) == Some(true)
    }) {
        run.peak_of("load.connected - server.open", missing)
    } else {
        None
    };
    peak.map(|peak| peak.evidence())
}

/// Returns how many connections opened and closed between two samples: if as many opened as closed,
/// the number of open connections does not show it.
pub(super) fn opened_and_closed(before: &Sample, now: &Sample) -> Option<u64> {
    let (before, now) = (&before.load()?.counters, &now.load()?.counters);
    let closed = |load: &LoadCounters| load.connects_ok.saturating_sub(load.connected);
    Some(now.connects_ok.abs_diff(before.connects_ok) + closed(now).abs_diff(closed(before)))
}

/// Returns the number of open connections that a throng server reports.
pub(super) fn open(sample: &Sample) -> Option<u64> {
    Some(sample.interval.server.as_ref()?.counters.open)
}

#[cfg(test)]
mod tests {
    use throng_measure::ServerSnapshot;

    use super::super::fixture::Run;
    use super::*;

    fn of(run: &Run) -> Option<String> {
        let (history, summary) = run.whole();
        accept_backlog(&RunView::new(&history, &summary)).map(|evidence| evidence.counter)
    }

    /// A run whose server has all but `missing` of the connections in the seconds where `at` is
    /// true.
    fn serving(missing: u64, at: fn(u64) -> bool) -> Run {
        Run::quiet().changed(move |interval, second| {
            let mut server = ServerSnapshot::default();
            let connected = interval.load.as_ref().unwrap().counters.connected;
            let missing = if at(second) { missing } else { 0 };
            server.counters.open = connected.saturating_sub(missing);
            interval.server = Some(server);
        })
    }

    #[test]
    fn who_waits_is_seen_in_the_queue_and_in_the_counts() {
        assert_eq!(of(&Run::quiet()), None);
        let queued = Run::quiet().with(Metric::LISTENER_ACCEPT_QUEUE, 7);
        assert_eq!(of(&queued).unwrap(), Metric::LISTENER_ACCEPT_QUEUE.name());
        assert_eq!(of(&serving(7, |second| second > 5)).unwrap(), "load.connected - server.open");
    }

    #[test]
    fn what_comes_while_the_ends_are_asked_is_not_missing() {
        // In the first five seconds, 200 connections open each second.
        assert_eq!(of(&serving(150, |second| second < 6)), None);
        assert!(of(&serving(250, |second| second > 0)).is_some());
    }

    #[test]
    fn a_moment_in_which_the_ends_were_asked_one_after_the_other_is_none() {
        assert_eq!(of(&serving(7, |second| second == 5)), None);
    }
}
