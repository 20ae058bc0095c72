//! Connections that the kernel has established and the server has not accepted.

use throng_report::Evidence;

use crate::case::{Case, End};
use crate::history::Moment;

/// That there were some, for longer than between two looks: in the accept queue, or by what the two ends count.
pub(super) fn unserved(case: &Case<'_>) -> Option<Evidence> {
    let queued = |moment: &Moment| case.value(End::Server, moment, "listener.accept_queue");
    let missing = |moment: &Moment| {
        let connected = moment.load()?.counters.connected;
        Some(connected.saturating_sub(open(moment)?) as i64)
    };
    let lasts = |value: &dyn Fn(&Moment) -> Option<i64>| {
        case.moments().windows(2).any(|pair| pair.iter().all(|moment| value(moment) > Some(0)))
    };
    let peak = if lasts(&queued) {
        case.peak_of("listener.accept_queue", queued)
    } else if lasts(&missing) {
        case.peak_of("load.connected - server.open", missing)
    } else {
        None
    };
    peak.map(|peak| peak.evidence())
}

/// What a throng server says of itself.
pub(super) fn open(moment: &Moment) -> Option<u64> {
    Some(moment.interval.server.as_ref()?.counters.open)
}

#[cfg(test)]
mod tests {
    use throng_report::ServerSnapshot;

    use super::super::fixture::Run;
    use super::*;

    fn of(run: &Run) -> Option<String> {
        let (history, summary) = run.whole();
        unserved(&Case::new(&history, &summary)).map(|evidence| evidence.counter)
    }

    /// The server has all but `missing` of the connections at the seconds that `at` names.
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
        let queued = Run::quiet().with("listener.accept_queue", 7);
        assert_eq!(of(&queued).unwrap(), "listener.accept_queue");
        assert_eq!(of(&serving(7, |second| second > 5)).unwrap(), "load.connected - server.open");
    }

    #[test]
    fn a_moment_in_which_the_ends_were_asked_one_after_the_other_is_none() {
        assert_eq!(of(&serving(7, |second| second == 5)), None);
    }
}
