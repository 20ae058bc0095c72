//! The exchanges of a run: the first error of each kind, and the times of its kind.

use std::collections::BTreeMap;

use throng_measure::exchange::{ErrorExchange, ErrorTimes, ExchangeSummary};
use throng_measure::{LoadInterval, RunEvent, RunEventKind, Tally};

/// The exchanges so far, by kind.
#[derive(Debug, Default)]
pub(super) struct ExchangeFold {
    /// The first error of each kind, with the moment of its event.
    first: BTreeMap<String, (u64, ErrorExchange)>,
    times: BTreeMap<String, ErrorTimes>,
}

impl ExchangeFold {
    pub(super) fn add_load(&mut self, load: &LoadInterval) {
        for (kind, times) in &load.error_times {
            if self.times.len() >= KINDS_MAX && !self.times.contains_key(kind) {
                continue;
            }
            let entry = self.times.entry(kind.clone()).or_insert(*times);
            *entry = entry.joined(*times);
        }
    }

    pub(super) fn add_event(&mut self, event: &RunEvent) {
        if let RunEventKind::FirstError(exchange) = &event.kind
            && self.first.len() < KINDS_MAX
        {
            let entry = self.first.entry(exchange.kind.clone());
            entry.or_insert_with(|| (event.at_ms, exchange.clone()));
        }
    }

    /// Returns the exchanges, the most frequent kind first.
    pub(super) fn summary(&self, errors: &Tally, connects: &Tally) -> Vec<ExchangeSummary> {
        let mut all: Vec<_> = self
            .first
            .iter()
            .map(|(kind, (at_ms, exchange))| {
                let event = ErrorTimes { first_ms: *at_ms, last_ms: *at_ms };
                // A file of an older version has no times.
                let times = self.times.get(kind).copied().unwrap_or(event);
                ExchangeSummary { exchange: exchange.clone(), times }
            })
            .collect();
        let count = |kind: &str| errors.get(kind) + connects.get(kind);
        all.sort_by_key(|shown| std::cmp::Reverse(count(&shown.exchange.kind)));
        all
    }
}

/// Kinds of errors that are kept: a run file from outside may name any number of them.
const KINDS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn first(kind: &str, at_ms: u64) -> RunEvent {
        let exchange = ErrorExchange { kind: kind.to_owned(), ..Default::default() };
        RunEvent::new(at_ms, RunEventKind::FirstError(exchange))
    }

    fn interval(kind: &str, first_ms: u64, last_ms: u64) -> LoadInterval {
        let times = [(kind.to_owned(), ErrorTimes { first_ms, last_ms })];
        LoadInterval { error_times: times.into(), ..Default::default() }
    }

    #[test]
    fn a_kind_has_its_first_exchange_and_the_times_of_all_intervals() {
        let mut fold = ExchangeFold::default();
        [("rare", 900), ("often", 1_000)].iter().for_each(|(k, at)| fold.add_event(&first(k, *at)));
        fold.add_load(&interval("often", 120, 900));
        fold.add_load(&interval("often", 1_100, 1_900));
        let errors = Tally([("often".to_owned(), 9), ("rare".to_owned(), 1)].into());
        let shown = fold.summary(&errors, &Tally::default());
        let times: Vec<_> = shown
            .iter()
            .map(|shown| (shown.exchange.kind.as_str(), shown.times.first_ms, shown.times.last_ms))
            .collect();
        // A file without times has that of the event.
        assert_eq!(times, [("often", 120, 1_900), ("rare", 900, 900)]);
    }

    #[test]
    fn a_file_with_many_kinds_is_bounded() {
        let mut fold = ExchangeFold::default();
        for n in 0..2 * KINDS_MAX {
            fold.add_event(&first(&n.to_string(), 0));
            fold.add_load(&interval(&n.to_string(), 0, 1));
        }
        assert_eq!((fold.first.len(), fold.times.len()), (KINDS_MAX, KINDS_MAX));
    }
}
