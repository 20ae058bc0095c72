//! Results of the probes, over all cores.

use std::collections::BTreeMap;
use std::time::Duration;

use throng_measure::{LoadInterval, Merge, Operation, ProbeCounters, ProbeReport};

use crate::generator::ProbeTally;
use crate::program::Probe;

/// Adds up the cores' tallies of each probe.
#[derive(Debug, Default)]
pub(super) struct Probes {
    every: Duration,
    totals: ProbeCounters,
    /// The latest probes.
    current: BTreeMap<u32, ProbeProgress>,
    /// Last probe that is folded into `totals`: tallies up to it are no longer kept apart.
    folded_up_to: u32,
}

/// A probe's results so far.
#[derive(Debug, Default)]
struct ProbeProgress {
    tally: ProbeTally,
    /// True if it has changed in this interval.
    changed: bool,
}

impl Probes {
    pub(super) fn new(probe: Option<&Probe>) -> Self {
        Self { every: probe.map_or(Duration::ZERO, |probe| probe.every), ..Self::default() }
    }

    /// Goes on from these counters over all probes.
    pub(super) fn go_on_from(&mut self, totals: &ProbeCounters) {
        self.totals = totals.clone();
    }

    /// Adds what one core has measured since its previous hand-over.
    pub(super) fn add_tallies(&mut self, tallies: &[ProbeTally], interval: &mut LoadInterval) {
        for tally in tallies {
            interval.times[Operation::Broadcast].merge(&tally.latency);
            interval.arrival[Operation::Broadcast].merge(&tally.arrival);
            self.totals.merge(&tally.counters);
            if tally.number <= self.folded_up_to {
                continue;
            }
            let progress = self.current.entry(tally.number).or_default();
            progress.changed = true;
            let sum = &mut progress.tally;
            sum.number = tally.number;
            sum.counters.merge(&tally.counters);
            sum.arrival.merge(&tally.arrival);
            sum.first_and_last_us = merge_extremes(sum.first_and_last_us, tally.first_and_last_us);
        }
    }

    /// Reports all probes that have changed, and folds the oldest into the totals.
    pub(super) fn report(&mut self, interval: &mut LoadInterval) {
        interval.probe = self.totals.clone();
        let every_ms = self.every.as_millis() as u64;
        for (number, progress) in &mut self.current {
            if std::mem::take(&mut progress.changed) {
                let ProbeTally { counters, arrival, first_and_last_us, .. } = &progress.tally;
                let number = u64::from(*number);
                interval.probes.push(ProbeReport::of(
                    number,
                    every_ms.saturating_mul(number),
                    counters.clone(),
                    arrival,
                    *first_and_last_us,
                ));
            }
        }
        while let Some(oldest) = self.current.first_entry() {
            let is_settled = oldest.get().tally.counters.outstanding() == 0;
            let number = *oldest.key();
            match self.current.len() {
                0..=PROBES_KEPT_MIN => break,
                ..=PROBES_KEPT_MAX if !is_settled => break,
                _ => _ = self.current.remove(&number),
            }
            self.folded_up_to = number;
        }
    }
}

fn merge_extremes(one: Option<(u64, u64)>, other: Option<(u64, u64)>) -> Option<(u64, u64)> {
    match (one, other) {
        (Some((first, last)), Some((other_first, other_last))) => {
            Some((first.min(other_first), last.max(other_last)))
        }
        (one, other) => one.or(other),
    }
}

/// Probes that are kept apart: at least, and at most while they have outstanding deliveries.
const PROBES_KEPT_MIN: usize = 64;
const PROBES_KEPT_MAX: usize = 1_000;
