//! What the grade of a run follows from.

use throng_measure::runfile::RunEndReason;
use throng_measure::validity::{ShownLatency, ValidityFacts};
use throng_measure::{CueWaits, ErrorKind, LatencySummary, Operation};

use super::SummaryFold;
use crate::Summary;
use crate::summary::rates::{IntervalGrowth, rate_most};
use crate::summary::{ArrivalsSummary, OperationSummary};

impl SummaryFold {
    /// Returns the facts of a run, its latencies and what its file lacks apart.
    pub(super) fn validity_facts(
        &self,
        end: Option<RunEndReason>,
        end_missing: bool,
        interrupted: bool,
        arrivals: &ArrivalsSummary,
    ) -> ValidityFacts {
        let last = &self.load.last;
        let counters = &last.counters;
        let failed = |one, other| last.connect_failed.get(one) + last.connect_failed.get(other);
        let goes_on = end.is_none() && !end_missing;
        ValidityFacts {
            intervals: self.load.intervals,
            imported_from: self.run.imported.as_ref().map(|imported| imported.describe()),
            lag_us: LatencySummary::from(&self.load.lag),
            lag_most_at_ms: self.load.lag_most_at_ms,
            arrivals_are_known: self.load.arrivals_are_known(),
            by_kernels_clock: self.load.by_kernels_clock(),
            answers: counters.messages_answered,
            answers_doubtful: counters.answers_doubtful,
            answers_out_of_step: counters.answers_out_of_step,
            answers_after_greeting: counters.answers_after_greeting,
            http_answers: counters.http_answers(),
            http_unasked: last.errors.get(ErrorKind::HttpUnasked),
            arrivals_intended: arrivals.intended,
            arrivals_achieved: arrivals.achieved,
            turns_intended: counters.turns_intended,
            turns_missed: self.load.turns_missed(),
            // A port chosen by the kernel fails with the first errno, a port that was named with
            // the second.
            ports_exhausted: failed("EADDRNOTAVAIL", "EADDRINUSE").max(self.ports_exhausted),
            fds_exhausted: failed("EMFILE", "ENFILE").max(self.fds_exhausted),
            watches_exhausted: last.connect_failed.get("ENOSPC"),
            memory_exhausted: failed("ENOMEM", "ENOBUFS"),
            // While the run goes on, a probe that was just due is not missing yet.
            probes_intended: match goes_on {
                true => self.load.probes_due_before.min(self.load.probes_due()),
                false => self.load.probes_due(),
            },
            probes_sent: last.probe.sent,
            // During the run, and in a file without a last line, deliveries are in flight.
            deliveries_unaccounted: match end {
                Some(_) => last.probe.outstanding(),
                None => 0,
            },
            machines_missing: self.machines_lost.clone(),
            ceiling_share: self.ceiling_share(),
            // While the run goes on, those that are awaited may still come; after a request to end
            // it, they might have come later.
            cues_unopened: match goes_on || interrupted {
                true => Vec::new(),
                false => last.cues.iter().filter_map(CueWaits::describe_unopened).collect(),
            },
            ..ValidityFacts::default()
        }
    }

    /// Returns the latencies that were measured (judged, until the answers arrived, and until they
    /// were read), each with what the thresholds judge of it.
    pub(super) fn shown_latencies(&self, summary: &Summary) -> Vec<ShownLatency> {
        let timed = summary.operations().filter(|(_, of)| of.judged_us.count > 0);
        let shown = timed.map(|(operation, of)| {
            let name = operation.name();
            let OperationSummary { judged_us: us, latency_us: arrived_us, seen_us, .. } = of;
            let judged = self.thresholds.iter().filter_map(|threshold| threshold.latency());
            let judged = judged.filter(|(of, _)| of == name).map(|(_, stat)| stat.name()).collect();
            ShownLatency { name, us, arrived_us, seen_us, judged }
        });
        shown.collect()
    }

    /// Returns the share of the generator's ceiling that the busiest second used; `None` if no
    /// ceiling was measured or nothing was done.
    pub(super) fn ceiling_share(&self) -> Option<f64> {
        let ceiling = self.ceiling.as_ref()?;
        let total = |of: &dyn Fn(&IntervalGrowth) -> u64| {
            self.growths.iter().fold(0_u64, |sum, growth| sum.saturating_add(of(growth)))
        };
        let requested =
            total(&|growth| self.messages(growth).saturating_add(growth.ok[Operation::Join]))
                .saturating_add(self.load.last.counters.heartbeats_answered);
        let received = total(&|growth| growth.received_by_users);
        if received > UNREQUESTED_LEAST && received / UNREQUESTED_TIMES > requested {
            // Unrequested messages take CPU time too, and the calibration did not measure their
            // maximum.
            return None;
        }
        let each_us = |per_s: Option<f64>| per_s.filter(|n| *n > 0.0).map_or(0.0, |n| 1e6 / n);
        let (connect_us, message_us) =
            (each_us(ceiling.connects_per_s), each_us(ceiling.messages_per_s));
        let resumed_us = match each_us(ceiling.resumed_per_s) {
            0.0 => connect_us,
            us => us,
        };
        let taken_us = |growth: &IntervalGrowth| {
            let resumed = if ceiling.over_tls { growth.resumed } else { 0 };
            growth.ok[Operation::Connect].saturating_sub(resumed) as f64 * connect_us
                + resumed as f64 * resumed_us
                + self.messages(growth) as f64 * message_us
        };
        rate_most(&self.growths, |growth| taken_us(growth).round() as u64)
            .map(|us_per_s| us_per_s / 1e6)
    }
}

/// A run is about unrequested messages if there are so many of them for each requested one, …
const UNREQUESTED_TIMES: u64 = 2;
/// … and at least this many.
const UNREQUESTED_LEAST: u64 = 1_000;

#[cfg(test)]
mod tests;
