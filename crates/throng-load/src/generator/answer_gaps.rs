//! Gaps in the answers: times in which requests waited and none of them was answered.
//!
//! A core notes the spans without an answer to its own users. [`gap_of_all`] combines those of all
//! cores: if one core received answers, the target did not stand still.
//!
//! What happened in a span is known only after it. The first answer may be to a late request, while
//! others waited from the beginning: each later answer shows from when its request waited. An
//! answer that arrived while the core was away is read after younger ones, and splits the span in
//! which it arrived. Messages that no request asked for neither end a gap nor begin one.

use serde::{Deserialize, Serialize};
use throng_base::Instant;
use throng_measure::AnswerGap;

/// Spans of one core without an answer to its users.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct AnswerGaps {
    /// The last answer to any user.
    last_answer: Option<Instant>,
    spans: [Option<UnansweredSpan>; SPANS_MAX],
}

/// A span without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct UnansweredSpan {
    span: Span,
    /// The moment since which a request waited that was answered at the end or later.
    asked: Instant,
    /// True if it belongs to the interval before and nothing new is known of it.
    is_reported: bool,
}

/// A time span on the clock of the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Span {
    from: Instant,
    to: Instant,
}

impl AnswerGaps {
    /// Notes an answer that was complete at `at`, to a request that had waited since `asked`.
    pub(super) fn answered(&mut self, at: Instant, asked: Instant) {
        let asked = asked.min(at);
        let last = self.last_answer.unwrap_or(asked);
        self.split(at, asked);
        for unanswered in self.spans.iter_mut().flatten() {
            if asked < unanswered.asked && unanswered.span.to <= at {
                let waiting = unanswered.waiting();
                unanswered.asked = asked;
                unanswered.is_reported &= unanswered.waiting() == waiting;
            }
        }
        if last < at {
            self.keep(UnansweredSpan {
                span: Span { from: last, to: at },
                asked,
                is_reported: false,
            });
        }
        self.last_answer = Some(last.max(at));
    }

    /// Returns the state that the next interval needs: the last answer, and the spans of this
    /// interval, of which later answers may tell more.
    pub(super) fn for_next_interval(&self) -> Self {
        let spans = self.spans.map(|kept| {
            kept.filter(|kept| !kept.is_reported)
                .map(|kept| UnansweredSpan { is_reported: true, ..kept })
        });
        Self { last_answer: self.last_answer, spans }
    }

    /// Moves all moments to another clock.
    pub(super) fn move_moments(&mut self, moved: impl Fn(Instant) -> Instant) {
        for UnansweredSpan { span, asked, .. } in self.spans.iter_mut().flatten() {
            *span = Span { from: moved(span.from), to: moved(span.to) };
            *asked = moved(*asked);
        }
        self.last_answer = self.last_answer.map(moved);
    }

    /// Splits the span in which an answer arrived that is read only now.
    fn split(&mut self, at: Instant, asked: Instant) {
        let is_within = |kept: &UnansweredSpan| kept.span.from < at && at < kept.span.to;
        let Some(slot) = self.spans.iter_mut().find(|kept| kept.as_ref().is_some_and(is_within))
        else {
            return;
        };
        let Some(whole) = slot.take() else { return };
        let [before, after] = [(whole.span.from, at), (at, whole.span.to)];
        let part = |(from, to), asked| UnansweredSpan { span: Span { from, to }, asked, ..whole };
        self.keep(part(before, whole.asked.min(asked)));
        self.keep(part(after, whole.asked));
    }

    /// Keeps a span in the place of the one in which a request waited for the shortest time.
    fn keep(&mut self, unanswered: UnansweredSpan) {
        if unanswered.span.nanos() < GAP_NANOS_MIN {
            return;
        }
        let waited =
            |kept: &Option<UnansweredSpan>| kept.map_or(0, |kept| 1 + kept.waiting().nanos());
        if let Some(slot) = self.spans.iter_mut().min_by_key(|kept| waited(kept)) {
            *slot = Some(unanswered);
        }
    }

    /// Returns the longest part of `span` in which this core received no answer, or `None` if it
    /// never received one.
    fn within(&self, span: Span) -> Option<Span> {
        // A span that has not ended may be the longest.
        let last = self.last_answer?;
        let since_last = Span { from: last, to: span.to.max(last) };
        let spans = self.spans.iter().flatten().map(|kept| kept.span);
        let parts = spans.chain([since_last]).map(|free| free.common(span));
        parts.max_by_key(|common| common.nanos())
    }

    /// Returns the spans of this interval in which a request waited.
    fn waiting(&self) -> impl Iterator<Item = Span> {
        self.spans.iter().flatten().filter(|kept| !kept.is_reported).map(UnansweredSpan::waiting)
    }
}

impl UnansweredSpan {
    /// Returns the part in which a request waited.
    fn waiting(&self) -> Span {
        let Span { from, to } = self.span;
        Span { from: from.max(self.asked).min(to), to }
    }
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

/// Returns the longest time in which users of some core waited and no core received an answer, in
/// milliseconds since `began`; `None` if it is shorter than [`GAP_NANOS_MIN`].
pub(super) fn gap_of_all<'a>(
    cores: impl Iterator<Item = &'a AnswerGaps> + Clone,
    began: Instant,
) -> Option<AnswerGap> {
    let of_all = |(n, waiting): (usize, Span)| {
        let others = cores.clone().enumerate().filter(|(other, _)| *other != n);
        // A core that never received an answer has no users that could show one.
        others.fold(waiting, |gap, (_, other)| other.within(gap).unwrap_or(gap))
    };
    let waiting = cores.clone().enumerate();
    let waiting = waiting.flat_map(|(n, core)| core.waiting().map(move |span| (n, span)));
    let longest = waiting.map(of_all).max_by_key(|gap| gap.nanos())?;
    let millis = |at: Instant| at.micros_since(began) / 1000;
    (longest.nanos() >= GAP_NANOS_MIN)
        .then(|| AnswerGap { from_ms: millis(longest.from), to_ms: millis(longest.to) })
}

/// Shortest time without an answer that is reported.
const GAP_NANOS_MIN: u64 = 20_000_000;

/// The most spans of an interval that are kept. One is reported; others may turn out to be longer
/// than they seem, and show that another core received no answer either.
const SPANS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// A core that received answers at these moments, each asked for 1 ms before.
    fn answering(moments: impl IntoIterator<Item = u64>) -> AnswerGaps {
        let mut core = AnswerGaps::default();
        moments.into_iter().for_each(|ms| core.answered(at(ms), at(ms - 1)));
        core
    }

    fn gap(cores: &[AnswerGaps]) -> Option<(u64, u64)> {
        gap_of_all(cores.iter(), at(0)).map(|gap| (gap.from_ms, gap.to_ms))
    }

    #[test]
    fn a_time_without_answers_counts_from_when_a_user_waited() {
        let mut core = answering([100, 110]);
        core.answered(at(900), at(300));
        assert_eq!(gap(&[core]), Some((300, 900)));
        // No user waited.
        assert_eq!(gap(&[answering([100, 110, 900])]), None);
    }

    #[test]
    fn the_first_answer_after_it_may_be_to_a_late_request() {
        let mut core = answering([100, 110]);
        core.answered(at(2_110), at(2_050));
        assert_eq!(gap(&[core]), Some((2_050, 2_110)));
        core.answered(at(2_111), at(900));
        core.answered(at(2_112), at(120));
        core.answered(at(2_113), at(1_500));
        assert_eq!(gap(&[core]), Some((120, 2_110)));
        // A request from before the last answer waited for all of it.
        core.answered(at(2_114), at(90));
        assert_eq!(gap(&[core]), Some((110, 2_110)));
    }

    #[test]
    fn what_arrived_while_the_core_was_away_is_no_gap() {
        // It was away from 110 to 900 ms, and reads the youngest answer first.
        let mut core = answering([100, 110]);
        core.answered(at(890), at(120));
        assert_eq!(gap(&[core]), Some((120, 890)));
        for ms in [400, 130, 880, 150, 870, 410, 600] {
            core.answered(at(ms), at(120));
        }
        assert_eq!(gap(&[core]), Some((600, 870)));
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
        assert_eq!(gap(&[one, AnswerGaps::default()]), Some((110, 2_100)));
    }

    #[test]
    fn another_core_may_be_idle_for_longer_at_another_time() {
        let mut one = answering((1..=50).map(|n| n * 10));
        one.answered(at(900), at(510));
        one = (91..=300).fold(one, |mut one, n| {
            one.answered(at(n * 10), at(n * 10 - 1));
            one
        });
        let other = answering([490, 905, 3_000]);
        assert_eq!(gap(&[one, other]), Some((510, 900)));
    }

    #[test]
    fn the_last_answer_goes_on_into_the_next_interval() {
        let mut core = answering([100, 900]).for_next_interval();
        core.answered(at(3_000), at(200));
        assert_eq!(gap(&[core]), Some((900, 3_000)));
    }

    #[test]
    fn an_interval_that_ends_in_the_midst_of_the_answers_cuts_nothing() {
        let mut core = answering([100]);
        core.answered(at(1_999), at(1_900));
        assert_eq!(gap(&[core]), Some((1_900, 1_999)));
        core = core.for_next_interval();
        assert_eq!(gap(&[core]), None);
        core.answered(at(2_001), at(1_950));
        assert_eq!(gap(&[core]), None, "nothing new is known");
        core.answered(at(2_002), at(150));
        assert_eq!(gap(&[core]), Some((150, 1_999)));
        // The interval after that has nothing to do with it.
        core = core.for_next_interval().for_next_interval();
        core.answered(at(2_010), at(120));
        assert_eq!(gap(&[core]), None);
    }

    #[test]
    fn cores_that_end_an_interval_at_different_moments_lose_nothing() {
        let mut one = answering([100]);
        one.answered(at(1_995), at(120));
        let mut other = answering([90]);
        // One has reported its answers, the other reads its own a little later.
        one = one.for_next_interval();
        other = other.for_next_interval();
        other.answered(at(2_003), at(95));
        one.answered(at(2_004), at(2_000));
        assert_eq!(gap(&[one, other]), Some((100, 1_995)));
    }
}
