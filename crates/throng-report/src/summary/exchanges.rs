//! The exchanges of a run: the first error of each kind, and the times of its kind.

use std::collections::BTreeMap;

use crate::exchange::{ErrorExchange, ErrorTimes, ExchangeSummary};
use crate::{LoadInterval, RunEvent, RunEventKind, Tally};

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
            let entry = self.times.entry(kind.clone()).or_insert(*times);
            *entry = entry.joined(*times);
        }
    }

    pub(super) fn add_event(&mut self, event: &RunEvent) {
        if let RunEventKind::FirstError(exchange) = &event.kind {
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
                ExchangeSummary {
                    exchange: exchange.clone(),
                    first_ms: times.first_ms,
                    last_ms: times.last_ms,
                }
            })
            .collect();
        let count = |kind: &str| errors.get(kind) + connects.get(kind);
        all.sort_by_key(|shown| std::cmp::Reverse(count(&shown.exchange.kind)));
        all
    }
}
