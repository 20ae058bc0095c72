//! The first and the last moment of each kind of error in an interval.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throng_base::Instant;
use throng_measure::ErrorTimes;

use super::error_name::ErrorName;

/// Moments of the errors of one core since the previous hand-over.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ErrorLog(Vec<ErrorMoments>);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ErrorMoments {
    name: ErrorName,
    first: Instant,
    last: Instant,
}

impl ErrorLog {
    /// Notes an error.
    pub(super) fn note(&mut self, name: ErrorName, now: Instant) {
        if let Some(moments) = self.0.iter_mut().find(|moments| moments.name == name) {
            moments.last = now;
        } else if has_room(self.0.iter().map(|moments| moments.name), name) {
            self.0.push(ErrorMoments { name, first: now, last: now });
        }
    }

    /// Moves all moments to another clock.
    pub(super) fn move_moments(&mut self, moved: impl Fn(Instant) -> Instant) {
        for moments in &mut self.0 {
            (moments.first, moments.last) = (moved(moments.first), moved(moments.last));
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds the moments to `times`, in milliseconds of the cores' clock.
    pub(crate) fn add_to(&self, times: &mut BTreeMap<String, ErrorTimes>) {
        for ErrorMoments { name, first, last } in &self.0 {
            let [first_ms, last_ms] =
                [first, last].map(|at| at.micros_since(Instant::ZERO) / 1_000);
            let own = ErrorTimes { first_ms, last_ms };
            let entry = times.entry(name.to_string()).or_insert(own);
            *entry = entry.joined(own);
        }
    }
}

/// Reports whether `name` has room beside those that are `known`. The server decides how many
/// statuses there are, so that these get a few places only.
pub(super) fn has_room(known: impl Iterator<Item = ErrorName> + Clone, name: ErrorName) -> bool {
    let is_status = |name: &ErrorName| matches!(name, ErrorName::HttpStatus(_));
    let has_place = !is_status(&name) || known.clone().filter(is_status).count() < STATUSES_MAX;
    has_place && known.count() < KINDS_MAX
}

/// The most kinds of errors of a core: more than there are, close codes and statuses apart.
const KINDS_MAX: usize = 64;
/// The most unexpected statuses among them.
pub(crate) const STATUSES_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::user::{ConnectFailure, ErrorKind};

    #[test]
    fn the_cores_of_a_generator_have_one_first_and_one_last_error() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let (mut one, mut other) = (ErrorLog::default(), ErrorLog::default());
        let mismatch = ErrorName::Kind(ErrorKind::ExpectMismatch);
        [3_000, 4_000].into_iter().for_each(|ms| one.note(mismatch, at(ms)));
        [2_500, 3_500].into_iter().for_each(|ms| other.note(mismatch, at(ms)));
        other.note(ErrorName::Connect(ConnectFailure::Http(401)), at(100));
        let mut times = BTreeMap::new();
        [one, other].iter().for_each(|log| log.add_to(&mut times));
        let shown: Vec<_> =
            times.iter().map(|(kind, at)| (kind.as_str(), at.first_ms, at.last_ms)).collect();
        assert_eq!(
            shown,
            [
                (ErrorKind::ExpectMismatch.name(), 2_500, 4_000),
                (&ErrorKind::UpgradeStatus.with(401), 100, 100)
            ]
        );
    }
    #[test]
    fn many_statuses_hide_no_other_kind() {
        let mut log = ErrorLog::default();
        (400..500).for_each(|status| log.note(ErrorName::HttpStatus(status), Instant::ZERO));
        log.note(ErrorName::Kind(ErrorKind::HttpTimeout), Instant::ZERO);
        let mut times = BTreeMap::new();
        log.add_to(&mut times);
        assert!(times.contains_key(ErrorKind::HttpTimeout.name()), "{times:?}");
        assert_eq!(times.len(), STATUSES_MAX + 1);
    }
}
