//! Incidents that affect all users at once: no user was answered, or the target went away.
//!
//! A core notes the moments of its own users. [`gap_of_all`] and [`outage_of_all`] combine those of
//! all cores.

use serde::{Deserialize, Serialize};
use throng_base::Instant;
use throng_measure::{AnswerGap, Outage};

use super::answer_gaps::{self, AnswerGaps};

/// Incidents of one core in the current interval.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Incidents {
    gaps: AnswerGaps,
    /// The first connection that the target closed unexpectedly.
    lost: Option<Instant>,
    /// The first and the last refused connect.
    refused: Option<Refusals>,
    /// The first successful connect after a lost connection or a refused connect.
    back: Option<Instant>,
    /// True if a connection was lost or refused and no connect has succeeded since.
    is_away: bool,
}

/// The moments of the first and of the last refused connect.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Refusals {
    first: Instant,
    last: Instant,
}

impl Incidents {
    /// Notes an answer that was complete at `at`, to a request that had waited since `asked`.
    pub(super) fn answered(&mut self, at: Instant, asked: Instant) {
        self.gaps.answered(at, asked);
    }

    /// Notes a connection that the target closed unexpectedly.
    pub(super) fn count_lost_connection(&mut self, at: Instant) {
        self.lost.get_or_insert(at);
        self.is_away = true;
    }

    /// Notes a refused connect.
    pub(super) fn connect_refused(&mut self, at: Instant) {
        self.refused.get_or_insert(Refusals { first: at, last: at }).last = at;
        self.is_away = true;
    }

    /// Notes a successful connect.
    pub(super) fn connect_succeeded(&mut self, at: Instant) {
        if std::mem::take(&mut self.is_away) {
            self.back.get_or_insert(at);
        }
    }

    /// Moves all moments to another clock.
    pub(super) fn move_moments(&mut self, moved: impl Fn(Instant) -> Instant + Copy) {
        self.gaps.move_moments(moved);
        for at in [&mut self.lost, &mut self.back].into_iter().flatten() {
            *at = moved(*at);
        }
        if let Some(Refusals { first, last }) = &mut self.refused {
            (*first, *last) = (moved(*first), moved(*last));
        }
    }

    /// Returns the state that the next interval needs: what is known of gaps, and whether the
    /// target is away.
    pub(super) fn for_next_interval(&self) -> Self {
        let Self { gaps, is_away, .. } = *self;
        Self { gaps: gaps.for_next_interval(), is_away, ..Self::default() }
    }
}

/// Returns the longest time in which users of some core waited and no core received an answer, in
/// milliseconds since `began`; `None` if it is short.
pub(crate) fn gap_of_all(cores: &[Incidents], began: Instant) -> Option<AnswerGap> {
    answer_gaps::gap_of_all(cores.iter().map(|core| &core.gaps), began)
}

/// Returns when the target went away and came back, in milliseconds since `began`; `None` if it did
/// neither.
pub(crate) fn outage_of_all(cores: &[Incidents], began: Instant) -> Option<Outage> {
    let first = |of: fn(&Incidents) -> Option<Instant>| {
        cores.iter().filter_map(of).min().map(|at| millis(began, at))
    };
    let last = cores.iter().filter_map(|core| core.refused).map(|refused| refused.last).max();
    let outage = Outage {
        lost_ms: first(|core| core.lost),
        refused_ms: first(|core| core.refused.map(|refused| refused.first)),
        refused_last_ms: last.map(|at| millis(began, at)),
        back_ms: first(|core| core.back),
    };
    (outage != Outage::default()).then_some(outage)
}

fn millis(began: Instant, at: Instant) -> u64 {
    at.micros_since(began) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
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
