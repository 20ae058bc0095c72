//! Incidents that affect all users at once: no user was answered, or the target went away.
//!
//! A core notes the moments of its own users. [`gap_of_all`] and [`outage_of_all`] combine those of
//! all cores: if one core received answers, the target did not stand still.

use throng_base::Instant;
use throng_report::{AnswerGap, Outage};

/// A time span on the clock of the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    from: Instant,
    to: Instant,
}

impl Span {
    fn nanos(self) -> u64 {
        self.to.since(self.from).as_nanos() as u64
    }

    /// Returns the part that two spans have in common.
    fn common(self, other: Self) -> Self {
        let from = self.from.max(other.from);
        Self { from, to: self.to.min(other.to).max(from) }
    }
}

/// Incidents of one core in the current interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Incidents {
    /// The last answer to any user.
    last_answer: Option<Instant>,
    /// The longest time in which a user waited and none was answered.
    waiting: Option<Span>,
    /// The longest time in which no user was answered, with or without one that waited.
    unanswered: Option<Span>,
    /// The first connection that the target closed unexpectedly.
    lost: Option<Instant>,
    /// The first and the last refused connect.
    refused: Option<Span>,
    /// The first successful connect after a lost connection or a refused connect.
    back: Option<Instant>,
    /// True if a connection was lost or refused and no connect has succeeded since.
    is_away: bool,
}

impl Incidents {
    /// Notes an answer that was complete at `at`, to a request that had waited since `asked`.
    pub(super) fn answered(&mut self, at: Instant, asked: Instant) {
        let last = self.last_answer.unwrap_or(asked);
        longer(&mut self.waiting, Span { from: last.max(asked).min(at), to: at });
        longer(&mut self.unanswered, Span { from: last.min(at), to: at });
        self.last_answer = Some(last.max(at));
    }

    /// Notes an unasked message: the target is alive.
    pub(super) fn unasked_received(&mut self, at: Instant) {
        self.answered(at, at);
    }

    /// Notes a connection that the target closed unexpectedly.
    pub(super) fn count_lost_connection(&mut self, at: Instant) {
        self.lost.get_or_insert(at);
        self.is_away = true;
    }

    /// Notes a refused connect.
    pub(super) fn connect_refused(&mut self, at: Instant) {
        self.refused.get_or_insert(Span { from: at, to: at }).to = at;
        self.is_away = true;
    }

    /// Notes a successful connect.
    pub(super) fn connect_succeeded(&mut self, at: Instant) {
        if std::mem::take(&mut self.is_away) {
            self.back.get_or_insert(at);
        }
    }

    /// Returns the state that the next interval needs: the last answer, and whether the target is
    /// away.
    pub(super) fn for_next_interval(&self) -> Self {
        let Self { last_answer, is_away, .. } = *self;
        Self { last_answer, is_away, ..Self::default() }
    }

    /// Returns the longest part of `span` in which this core received no answer.
    fn gap_within(&self, span: Span) -> Option<Span> {
        // A gap that has not ended may be the longest.
        let since_last = self.last_answer.map(|from| Span { from, to: span.to.max(from) });
        let spans = [self.unanswered, since_last].into_iter().flatten();
        spans.map(|free| free.common(span)).max_by_key(|common| common.nanos())
    }
}

fn longer(longest: &mut Option<Span>, span: Span) {
    if longest.is_none_or(|longest| span.nanos() > longest.nanos()) {
        *longest = Some(span);
    }
}

/// Returns the longest time in which users of some core waited and no core received an answer, in
/// milliseconds since `began`; `None` if it is shorter than [`GAP_NANOS_MIN`].
pub(crate) fn gap_of_all(cores: &[Incidents], began: Instant) -> Option<AnswerGap> {
    let of_one = |(n, core): (usize, &Incidents)| {
        let waiting = core.waiting?;
        let others = cores.iter().enumerate().filter(|(other, _)| *other != n);
        // A core that never received an answer has no users that could show one.
        let of_all = others.fold(waiting, |gap, (_, other)| other.gap_within(gap).unwrap_or(gap));
        (of_all.nanos() >= GAP_NANOS_MIN).then_some(of_all)
    };
    let longest = cores.iter().enumerate().filter_map(of_one).max_by_key(|gap| gap.nanos())?;
    let [from_ms, to_ms] = [longest.from, longest.to].map(|at| millis(began, at));
    Some(AnswerGap { from_ms, to_ms })
}

/// Returns when the target went away and came back, in milliseconds since `began`; `None` if it did
/// neither.
pub(crate) fn outage_of_all(cores: &[Incidents], began: Instant) -> Option<Outage> {
    let first = |of: fn(&Incidents) -> Option<Instant>| {
        cores.iter().filter_map(of).min().map(|at| millis(began, at))
    };
    let last = cores.iter().filter_map(|core| core.refused).map(|span| span.to).max();
    let outage = Outage {
        lost_ms: first(|core| core.lost),
        refused_ms: first(|core| core.refused.map(|span| span.from)),
        refused_last_ms: last.map(|at| millis(began, at)),
        back_ms: first(|core| core.back),
    };
    (outage != Outage::default()).then_some(outage)
}

fn millis(began: Instant, at: Instant) -> u64 {
    at.micros_since(began) / 1000
}

/// Shortest time without an answer that is reported.
const GAP_NANOS_MIN: u64 = 20_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// A core that received answers at these moments, each asked for 1 ms before.
    fn answering(moments: impl IntoIterator<Item = u64>) -> Incidents {
        let mut core = Incidents::default();
        moments.into_iter().for_each(|ms| core.answered(at(ms), at(ms - 1)));
        core
    }

    fn gap(cores: &[Incidents]) -> Option<(u64, u64)> {
        gap_of_all(cores, at(0)).map(|gap| (gap.from_ms, gap.to_ms))
    }

    #[test]
    fn a_time_without_answers_counts_from_when_a_user_waited() {
        let mut core = answering([100, 110]);
        core.answered(at(900), at(300));
        assert_eq!(gap(&[core]), Some((300, 900)));
        // No user waited.
        assert_eq!(gap(&[answering([100, 110, 900])]), None);
        let mut core = answering([100]);
        core.unasked_received(at(600));
        core.answered(at(900), at(50));
        assert_eq!(gap(&[core]), Some((600, 900)), "what comes unasked is a sign of life");
    }

    #[test]
    fn an_answer_on_another_core_ends_it() {
        let mut one = answering([100]);
        one.answered(at(2_100), at(110));
        let mut other = answering((10..=210).map(|n| n * 10));
        assert_eq!(gap(&[one, other]), None);
        // The other core stood still for a part of it.
        other = answering((10..=60).map(|n| n * 10));
        other.answered(at(1_400), at(650));
        assert_eq!(gap(&[one, other]), Some((600, 1_400)));
        // The other core has not received an answer since.
        let silent = answering((10..=60).map(|n| n * 10));
        assert_eq!(gap(&[one, silent]), Some((600, 2_100)));
        // No user of that core ever sent a request.
        assert_eq!(gap(&[one, Incidents::default()]), Some((110, 2_100)));
    }

    #[test]
    fn the_last_answer_goes_on_into_the_next_interval() {
        let mut core = answering([100, 900]).for_next_interval();
        core.answered(at(3_000), at(200));
        assert_eq!(gap(&[core]), Some((900, 3_000)));
    }

    #[test]
    fn an_outage_is_from_the_first_loss_to_the_first_connect_after_it() {
        let mut core = Incidents::default();
        core.connect_succeeded(at(100));
        assert_eq!(outage_of_all(&[core], at(0)), None);
        core.count_lost_connection(at(4_200));
        core.connect_refused(at(4_900));
        core.connect_refused(at(5_400));
        let mut other = Incidents::default();
        other.count_lost_connection(at(4_150));
        other.connect_refused(at(5_500));
        other.connect_succeeded(at(5_700));
        core.connect_succeeded(at(5_650));
        core.connect_succeeded(at(5_800));
        let expected = Outage {
            lost_ms: Some(4_150),
            refused_ms: Some(4_900),
            refused_last_ms: Some(5_500),
            back_ms: Some(5_650),
        };
        assert_eq!(outage_of_all(&[core, other], at(0)), Some(expected));
        // The target comes back in the next interval.
        let mut away = Incidents::default();
        away.count_lost_connection(at(10));
        let mut next = away.for_next_interval();
        next.connect_succeeded(at(40));
        assert_eq!(outage_of_all(&[next], at(0)).and_then(|outage| outage.back_ms), Some(40));
    }
}
