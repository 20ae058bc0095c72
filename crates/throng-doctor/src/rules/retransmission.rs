//! The symptom of a dropped segment: its sender waits, and sends it again.
//!
//! The kernel sets these waits: it retransmits a SYN after one second (RFC 6298, section 2) and
//! data after 200 ms at the earliest. Both are long compared with anything else on one machine or
//! in one data centre.

use throng_measure::{ErrorKey, ErrorKind, Evidence, Operation, Severity};

use crate::history::Sample;
use crate::run_view::RunView;

/// The strongest effect of dropped segments on a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Symptom {
    pub(super) severity: Severity,
    pub(super) evidence: Evidence,
}

impl From<Symptom> for Evidence {
    fn from(symptom: Symptom) -> Self {
        symptom.evidence
    }
}

/// Returns the symptom of connects that waited for a second SYN, still wait, or were given up.
pub(super) fn by_connects(run: &RunView<'_>) -> Option<Symptom> {
    let unanswered = |sample: &Sample| {
        let failed = &sample.load()?.connect_failed;
        Some(UNANSWERED.iter().map(|why| failed.get(why)).sum::<u64>() as i64)
    };
    if let Some(failed) = run.growth_of("load.connect_failed", unanswered) {
        return Some(Symptom { severity: Severity::Stopped, evidence: failed.evidence() });
    }
    let waiting = |sample: &Sample| Some(waiting(run, sample)? as i64);
    if let Some(last) = run.samples().last().and_then(waiting)
        && last > 0
    {
        let peak = run.peak_of("load.connects_waiting", waiting)?;
        return Some(Symptom { severity: Severity::Stopped, evidence: peak.evidence() });
    }
    slowest(run, "load.connect_us.max", SYN_AGAIN_US, |sample| {
        // For a WebSocket only the TCP handshake counts: the upgrade waits for the server program.
        sample.latency(Operation::Tcp).or(sample.latency(Operation::Connect)).max_us
    })
}

/// Returns the symptom of messages that waited for a retransmission or were given up, and of
/// connections that were reset.
pub(super) fn by_messages(run: &RunView<'_>) -> Option<Symptom> {
    // If half of all answers take as long anyway, retransmissions do not explain the slow ones.
    lost_messages(run).or_else(|| if are_usually_late(run) { None } else { late_messages(run) })
}

/// Returns the graver symptom of connects and messages.
pub(super) fn by_anything(run: &RunView<'_>) -> Option<Symptom> {
    graver([by_messages(run), by_connects(run)])
}

/// Returns the symptom of a cause that delays every segment, so that all answers may be late.
pub(super) fn by_everything(run: &RunView<'_>) -> Option<Symptom> {
    let messages = lost_messages(run).or_else(|| late_messages(run));
    graver([messages, by_connects(run)])
}

/// Returns the graver of two symptoms.
fn graver(found: [Option<Symptom>; 2]) -> Option<Symptom> {
    found.into_iter().flatten().max_by_key(|symptom| symptom.severity)
}

/// Returns the growth of messages that timed out and of connections that were reset.
fn lost_messages(run: &RunView<'_>) -> Option<Symptom> {
    let lost = |sample: &Sample| {
        let errors = &sample.load()?.errors;
        let is_loss = |kind: &str| {
            let key = ErrorKey::parse(kind);
            key.is_time_out() || key.kind == Some(ErrorKind::ResetByPeer)
        };
        let lost = errors.0.iter().filter(|(kind, _)| is_loss(kind)).map(|(_, count)| count);
        Some(lost.sum::<u64>() as i64)
    };
    let lost = run.growth_of("load.errors", lost)?;
    Some(Symptom { severity: Severity::Stopped, evidence: lost.evidence() })
}

/// Returns the slowest answer, if it waited for a retransmission.
pub(super) fn late_messages(run: &RunView<'_>) -> Option<Symptom> {
    slowest(run, "load.message_us.max", DATA_AGAIN_US, |sample| {
        sample.latency(Operation::Message).max_us.max(sample.latency(Operation::Push).max_us)
    })
}

/// Reports whether half of all answers take as long as a retransmission.
fn are_usually_late(run: &RunView<'_>) -> bool {
    let answers =
        |sample: &Sample| sample.latency(Operation::Message).or(sample.latency(Operation::Push));
    let is_usual = |sample: &&Sample| answers(sample).p50_us >= DATA_AGAIN_US;
    let answered = run.samples().iter().filter(|sample| answers(sample).count > 0);
    answered.clone().filter(is_usual).count() * 2 > answered.count()
}

/// Returns the connects that started a second before `now` or earlier and have no result yet.
fn waiting(run: &RunView<'_>, now: &Sample) -> Option<u64> {
    let then_ms = now.interval.at_ms.checked_sub(SYN_AGAIN_US / 1000)?;
    let then = run.samples().iter().rev().find(|sample| sample.interval.at_ms <= then_ms)?;
    let (then, now) = (&then.load()?.counters, &now.load()?.counters);
    let decided = now.connects_ok + now.connects_failed;
    Some(then.connects_started.saturating_sub(decided))
}

/// Returns the slowest value, if it is long enough to have waited for a retransmission.
fn slowest(
    run: &RunView<'_>,
    name: &str,
    again_us: u64,
    max_us: impl Fn(&Sample) -> u64,
) -> Option<Symptom> {
    let slow = || run.samples().iter().filter(|sample| max_us(sample) >= again_us);
    let first = slow().next()?;
    let before = run.samples().iter().map(&max_us).find(|us| *us > 0)?;
    let evidence = Evidence {
        counter: name.to_owned(),
        from: before as f64,
        to: slow().map(&max_us).max()? as f64,
        at_ms: first.interval.at_ms,
    };
    Some(Symptom { severity: Severity::Slowed, evidence })
}

/// The kinds of failure of a connect whose SYN got no answer.
const UNANSWERED: [&str; 3] = [ErrorKind::ConnectTimeout.name(), "ETIMEDOUT", "EHOSTUNREACH"];

/// A second, less the precision of a histogram and of an interval's length.
const SYN_AGAIN_US: u64 = 950_000;

/// 200 ms, less the same precision.
const DATA_AGAIN_US: u64 = 190_000;

/// The share of retransmitted segments above which the network explains late answers by itself.
pub(super) const MUCH_ONE_IN: u64 = 200;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    fn connects(run: &Run) -> Option<Severity> {
        let (history, summary) = run.whole();
        by_connects(&RunView::new(&history, &summary)).map(|symptom| symptom.severity)
    }

    #[test]
    fn a_quiet_run_has_no_symptom() {
        let (history, summary) = Run::quiet().whole();
        assert_eq!(by_anything(&RunView::new(&history, &summary)), None);
    }

    #[test]
    fn a_connect_that_took_a_second_was_slowed() {
        let late = |us| {
            Run::quiet().loaded(move |load, second| {
                load.times[Operation::Connect].record_n(us, u32::from(second == 4));
            })
        };
        assert_eq!(connects(&late(1_030_000)), Some(Severity::Slowed));
        assert_eq!(connects(&late(600_000)), None, "no SYN waits that long");
    }

    #[test]
    fn answers_that_all_take_long_were_not_made_late_by_a_few_segments() {
        let messages = |late: u32, early: u32| {
            let run = Run::quiet().loaded(move |load, _| {
                load.times[Operation::Message].clear();
                load.times[Operation::Message].record_n(400_000, late);
                load.times[Operation::Message].record_n(300, early);
            });
            let (history, summary) = run.whole();
            by_messages(&RunView::new(&history, &summary)).map(|symptom| symptom.severity)
        };
        assert_eq!(messages(20, 1_000), Some(Severity::Slowed));
        assert_eq!(messages(1_000, 20), None);
    }

    #[test]
    fn the_upgrade_of_a_websocket_may_take_as_long_as_it_likes() {
        let slow = Run::quiet().loaded(|load, _| {
            load.times[Operation::Connect].record_n(2_000_000, 10);
            load.times[Operation::Tcp].record_n(300, 10);
        });
        assert_eq!(connects(&slow), None);
    }

    #[test]
    fn connects_that_still_wait_at_the_end_were_stopped() {
        let waiting = |since: u64| {
            Run::quiet().loaded(move |load, second| {
                load.counters.connects_started += if second >= since { 20 } else { 0 };
            })
        };
        assert_eq!(connects(&waiting(4)), Some(Severity::Stopped));
        assert_eq!(connects(&waiting(10)), None, "they have waited for less than a second");
    }

    #[test]
    fn what_fails_for_another_reason_was_not_retransmitted() {
        let failing = |why: &'static str| {
            Run::quiet()
                .loaded(move |load, second| load.connect_failed.add(why, second.saturating_sub(5)))
        };
        assert_eq!(connects(&failing("timeout")), Some(Severity::Stopped));
        assert_eq!(connects(&failing("ECONNREFUSED")), None);
    }
}
