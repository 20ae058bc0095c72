//! Events for the first error of each kind. The counters have their numbers.

use std::collections::BTreeSet;

use throng_measure::{ErrorExchange, ErrorKey, ErrorKind, RunEventKind};

use crate::generator::STATUSES_MAX;

/// First errors that are not reported yet, and the kinds seen so far.
#[derive(Debug, Default)]
pub(super) struct FirstErrors {
    kinds: BTreeSet<String>,
    unreported: Vec<RunEventKind>,
}

impl FirstErrors {
    /// Adds the samples of one core. Ignores kinds that another core has reported before, and
    /// statuses beyond the first few.
    pub(super) fn add_samples(&mut self, samples: &mut Vec<ErrorExchange>) {
        for exchange in samples.drain(..) {
            if self.has_room(&exchange.kind) && self.kinds.insert(exchange.kind.clone()) {
                self.unreported.push(RunEventKind::FirstError(exchange));
            }
        }
    }

    fn has_room(&self, kind: &str) -> bool {
        let is_status = |kind: &str| ErrorKey::parse(kind).kind == Some(ErrorKind::HttpStatus);
        let statuses = || self.kinds.iter().filter(|kind| is_status(kind)).count();
        self.kinds.len() < KINDS_MAX && (!is_status(kind) || statuses() < STATUSES_MAX)
    }

    /// Returns the events that have not been returned before.
    pub(super) fn take_events(&mut self) -> Vec<RunEventKind> {
        std::mem::take(&mut self.unreported)
    }
}

/// Kinds of errors that are told at most: many more than a scenario meets.
const KINDS_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_reported_once_however_many_cores_have_met_it() {
        let sample = |kind: &str, got: &str| ErrorExchange {
            kind: kind.to_owned(),
            expected: "`ok`".to_owned(),
            got: got.to_owned(),
            ..ErrorExchange::default()
        };
        let mut shown = FirstErrors::default();
        shown.add_samples(&mut vec![sample("a", "1"), sample("b", "2")]);
        shown.add_samples(&mut vec![sample("a", "3")]);
        let got: Vec<_> = shown.take_events().iter().map(ToString::to_string).collect();
        assert_eq!(
            got,
            ["first a: expected `ok`, received 1", "first b: expected `ok`, received 2"]
        );
        shown.add_samples(&mut vec![sample("b", "4")]);
        assert_eq!(shown.take_events(), []);
    }
    #[test]
    fn a_run_has_the_answers_of_a_few_statuses_however_many_cores_it_has() {
        let sample = |status| ErrorExchange {
            kind: ErrorKind::HttpStatus.with(status),
            ..ErrorExchange::default()
        };
        let mut shown = FirstErrors::default();
        for core in 0..4 {
            shown.add_samples(&mut (400..408).map(|status| sample(status + core * 8)).collect());
        }
        assert_eq!(shown.take_events().len(), STATUSES_MAX);
    }

    #[test]
    fn made_up_kinds_are_bounded() {
        let kind = |n: usize| ErrorExchange { kind: n.to_string(), ..ErrorExchange::default() };
        let mut shown = FirstErrors::default();
        (0..5).for_each(|round| {
            shown.add_samples(&mut (0..900).map(|n| kind(1_000 * round + n)).collect());
        });
        assert_eq!(shown.take_events().len(), KINDS_MAX);
    }
}
