//! The samples of a run, and their medians.

use super::client::ClientResult;
use super::generator;
use super::peer::{BARE, RANCH_PLAIN, is_comparable_ranch};
use super::workload::{Workload, WorkloadLimits};
use std::collections::BTreeMap;

/// The sample of one peer under one workload in one round. An operation is a connection or a
/// message.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Sample {
    pub(super) peer: &'static str,
    #[serde(serialize_with = "by_name")]
    pub(super) workload: Workload,
    pub(super) round: u32,
    pub(super) server_us: f64,
    pub(super) client_us: f64,
    /// The time of all CPUs together, for each operation.
    pub(super) machine_us: f64,
    /// The share of all CPUs that neither server nor client used: the work of other programs, and a
    /// measure of noise.
    pub(super) foreign_share: f64,
    pub(super) offered: f64,
    pub(super) rate: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// The last delivery of a broadcast message: the median over the messages.
    pub(super) last_us: f64,
    /// The server's memory for each connection that was opened and left idle.
    pub(super) memory_bytes: Option<f64>,
    pub(super) errors: u64,
}

impl Sample {
    pub(super) fn new(
        peer: &'static str,
        workload: Workload,
        round: u32,
        measured: &ClientResult,
    ) -> Self {
        let summary = &measured.summary;
        let each = |ns: u64| ns as f64 / 1e3 / summary.done as f64;
        let client_ns = summary.cpu_us * 1_000;
        let foreign_ns = measured.machine_busy_ns.saturating_sub(measured.server_ns + client_ns);
        Self {
            peer,
            workload,
            round,
            server_us: each(measured.server_ns),
            client_us: each(client_ns),
            machine_us: each(measured.machine_busy_ns),
            foreign_share: foreign_ns as f64 / measured.machine_total_ns.max(1) as f64,
            offered: summary.offered,
            rate: summary.rate,
            p50_us: summary.p50_us,
            p99_us: summary.p99_us,
            last_us: summary.last_us,
            memory_bytes: measured.server_grew_bytes.map(|grew| grew as f64 / summary.done as f64),
            errors: summary.errors.sum(),
        }
    }
}

/// The medians of one peer under one workload.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Row {
    pub(super) peer: &'static str,
    #[serde(serialize_with = "by_name")]
    pub(super) workload: Workload,
    pub(super) rounds: usize,
    pub(super) server_us: f64,
    pub(super) server_us_least: f64,
    pub(super) server_us_most: f64,
    pub(super) client_us: f64,
    pub(super) machine_us: f64,
    pub(super) foreign_share: f64,
    pub(super) offered: f64,
    pub(super) rate: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) last_us: f64,
    pub(super) memory_bytes: Option<f64>,
    pub(super) errors: u64,
    /// The server's CPU relative to the bare loop's: the median of the ratios within each round.
    pub(super) to_bare: Option<f64>,
    /// The rate relative to the bare loop's, computed in the same way.
    pub(super) rate_to_bare: Option<f64>,
    /// The server's CPU relative to Ranch with its defaults.
    pub(super) to_ranch: Option<f64>,
    /// The server's CPU relative to the cheapest shape of Ranch that answers as soon as it can.
    pub(super) to_ranch_best: Option<f64>,
}

impl Row {
    /// Reports whether the server kept up with the offered rate. A server that falls behind works
    /// in larger batches, so its CPU per operation is lower than it would be at the offered rate.
    pub(super) fn kept_up(&self) -> bool {
        self.offered == 0.0 || self.rate >= 0.97 * self.offered
    }
}

/// All results of one run.
#[derive(Debug, serde::Serialize)]
pub(super) struct Report {
    pub(super) rounds: u32,
    /// The selected workloads.
    #[serde(serialize_with = "by_names")]
    pub(super) workloads: Vec<Workload>,
    pub(super) limits: WorkloadLimits,
    /// A sentence for each missing peer, with the reason.
    pub(super) missing: Vec<String>,
    /// A sentence for each failed sample, with the reason.
    pub(super) failed: Vec<String>,
    pub(super) samples: Vec<Sample>,
    pub(super) generators: Vec<generator::Sample>,
    /// The cost of a WebSocket user for each generator.
    pub(super) users: Vec<generator::users::Sample>,
}

impl Report {
    pub(super) fn new(
        limits: WorkloadLimits,
        rounds: u32,
        workloads: Vec<Workload>,
        missing: Vec<String>,
    ) -> Self {
        let (failed, samples, generators, users) = Default::default();
        Self { rounds, workloads, limits, missing, failed, samples, generators, users }
    }

    pub(super) fn add_failure(&mut self, why: String) {
        eprintln!("failed: {why}");
        self.failed.push(why);
    }

    /// Returns the rows of the table: workloads in their order, peers in the order of the table.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for workload in Workload::ALL {
            let best = self.best_ranch(workload);
            for peer in self.peers(workload) {
                rows.push(self.row(peer, workload, best));
            }
        }
        rows
    }

    pub(super) fn json(&self) -> String {
        #[derive(serde::Serialize)]
        struct JsonReport<'a> {
            schema: u32,
            rows: Vec<Row>,
            #[serde(flatten)]
            report: &'a Report,
        }
        let whole = JsonReport { schema: 1, rows: self.rows(), report: self };
        serde_json::to_string_pretty(&whole).expect("numbers and names always serialise")
    }

    fn row(&self, peer: &'static str, workload: Workload, best: Option<&'static str>) -> Row {
        let samples = self.samples_of(peer, workload);
        let each = |value: fn(&Sample) -> f64| median(samples.iter().map(|s| value(s)).collect());
        let server = || samples.iter().map(|s| s.server_us);
        Row {
            peer,
            workload,
            rounds: samples.len(),
            server_us: each(|s| s.server_us),
            server_us_least: server().fold(f64::INFINITY, f64::min),
            server_us_most: server().fold(0.0, f64::max),
            client_us: each(|s| s.client_us),
            machine_us: each(|s| s.machine_us),
            foreign_share: each(|s| s.foreign_share),
            offered: each(|s| s.offered),
            rate: each(|s| s.rate),
            p50_us: each(|s| s.p50_us),
            p99_us: each(|s| s.p99_us),
            last_us: each(|s| s.last_us),
            memory_bytes: median_of_some(samples.iter().filter_map(|s| s.memory_bytes)),
            errors: samples.iter().map(|s| s.errors).sum(),
            to_bare: self.ratio(peer, BARE, workload, |s| s.server_us),
            rate_to_bare: self.ratio(peer, BARE, workload, |s| s.rate),
            to_ranch: self.ratio(peer, RANCH_PLAIN, workload, |s| s.server_us),
            to_ranch_best: best.and_then(|best| self.ratio(peer, best, workload, |s| s.server_us)),
        }
    }

    /// Returns the median of the ratios within each round: samples that are close in time see the
    /// same state of the machine.
    fn ratio(
        &self,
        peer: &str,
        other: &str,
        workload: Workload,
        value: fn(&Sample) -> f64,
    ) -> Option<f64> {
        let others: BTreeMap<u32, f64> =
            self.samples_of(other, workload).iter().map(|s| (s.round, value(s))).collect();
        let of_peer = self.samples_of(peer, workload);
        median_of_some(of_peer.iter().filter_map(|s| Some(value(s) / others.get(&s.round)?)))
    }

    fn best_ranch(&self, workload: Workload) -> Option<&'static str> {
        self.peers(workload)
            .into_iter()
            .filter(|peer| is_comparable_ranch(peer))
            .map(|peer| {
                let costs = self.samples_of(peer, workload).iter().map(|s| s.server_us).collect();
                (median(costs), peer)
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, peer)| peer)
    }

    fn peers(&self, workload: Workload) -> Vec<&'static str> {
        super::peer::all()
            .into_iter()
            .map(|peer| peer.name)
            .filter(|peer| !self.samples_of(peer, workload).is_empty())
            .collect()
    }

    fn samples_of(&self, peer: &str, workload: Workload) -> Vec<&Sample> {
        self.samples.iter().filter(|s| s.peer == peer && s.workload == workload).collect()
    }
}

/// Returns the middle value, or the mean of the middle two; 0 without values.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// Returns the median; `None` without values.
pub(super) fn median_of_some(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| median(values))
}

fn by_name<S: serde::Serializer>(workload: &Workload, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(workload.name())
}

fn by_names<S: serde::Serializer>(all: &[Workload], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(all.iter().map(|workload| workload.name()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn sample(peer: &'static str, round: u32, server_us: f64) -> Sample {
        Sample {
            peer,
            workload: Workload::ChurnSaturated,
            round,
            server_us,
            client_us: 20.0,
            machine_us: 60.0,
            foreign_share: 0.01,
            offered: 0.0,
            rate: 1_000.0,
            p50_us: 10.0,
            p99_us: 20.0,
            last_us: 0.0,
            memory_bytes: None,
            errors: 0,
        }
    }

    pub(in super::super) fn report(samples: Vec<Sample>) -> Report {
        let limits = WorkloadLimits {
            connections_per_s: 50_000.0,
            messages_per_s: 200_000.0,
            websockets_per_s: 20_000.0,
        };
        let mut report = Report::new(limits, 3, vec![Workload::ChurnSaturated], vec![]);
        report.samples = samples;
        report
    }

    #[test]
    fn a_median_needs_no_order() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0]), 2.5);
        assert_eq!(median(vec![]), 0.0);
    }

    #[test]
    fn a_ratio_is_taken_within_each_round() {
        // The machine was half as fast in the second round; the ratio of medians would be 1.5.
        let report = report(vec![
            sample(BARE, 0, 10.0),
            sample("throng", 0, 11.0),
            sample(BARE, 1, 20.0),
            sample("throng", 1, 22.0),
            sample(BARE, 2, 10.0),
            sample("throng", 2, 11.0),
        ]);
        let row = report.rows().into_iter().find(|row| row.peer == "throng").unwrap();
        assert!((row.to_bare.unwrap() - 1.1).abs() < 1e-9);
        assert_eq!((row.server_us_least, row.server_us_most), (11.0, 22.0));
        assert_eq!(row.to_ranch, None);
    }

    #[test]
    fn memory_is_the_median_of_the_samples_that_have_it() {
        let mut held = sample(BARE, 0, 1.0);
        held.memory_bytes = Some(120.0);
        let report = report(vec![held, sample(BARE, 1, 1.0)]);
        assert_eq!(report.rows()[0].memory_bytes, Some(120.0));
    }

    #[test]
    fn the_best_ranch_is_the_cheapest_that_does_not_sleep() {
        let report = report(vec![
            sample("throng", 0, 30.0),
            sample(RANCH_PLAIN, 0, 100.0),
            sample("ranch/listeners", 0, 60.0),
            sample("ranch/sleep", 0, 10.0),
        ]);
        let row = report.rows().into_iter().find(|row| row.peer == "throng").unwrap();
        assert!((row.to_ranch.unwrap() - 0.3).abs() < 1e-9);
        assert!((row.to_ranch_best.unwrap() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn falling_short_of_the_offered_rate_is_noticed() {
        let mut late = sample(BARE, 0, 1.0);
        late.offered = 1_100.0;
        assert!(!report(vec![late]).rows()[0].kept_up());
        assert!(report(vec![sample(BARE, 0, 1.0)]).rows()[0].kept_up());
    }
}
