//! Events for the first error of each kind. The counters have their numbers.

use std::collections::BTreeSet;

use throng_report::{ErrorExchange, RunEventKind};

/// First errors that are not reported yet, and the kinds seen so far.
#[derive(Debug, Default)]
pub(super) struct FirstErrors {
    kinds: BTreeSet<String>,
    unreported: Vec<RunEventKind>,
}

impl FirstErrors {
    /// Adds the samples of one core. Ignores kinds that another core has reported before.
    pub(super) fn add_samples(&mut self, samples: &mut Vec<ErrorExchange>) {
        for exchange in samples.drain(..) {
            if self.kinds.insert(exchange.kind.clone()) {
                self.unreported.push(RunEventKind::FirstError(exchange));
            }
        }
    }

    /// Returns the events that have not been returned before.
    pub(super) fn take_events(&mut self) -> Vec<RunEventKind> {
        std::mem::take(&mut self.unreported)
    }
}

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
}
