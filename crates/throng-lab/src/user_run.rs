//! What the labs of one row with many users have in common: both ends, what a user costs, how a broadcast went.

use std::time::Duration;

use serde::Serialize;
use throng_report::render::{bytes, count, micros, or_dash};
use throng_report::{Interval, ProbeReport, Summary};

use crate::error::LabError;
use crate::lab::Lab;
use crate::measure::{MANY, MemoryEach};
use crate::options::LabInfo;
use crate::progress::LabProgress;
use crate::report::{LabReport, LabTable, SCHEMA};
use crate::test_bed::{FinishedRun, LoadSpec, NextStep, ServerSpec};
use crate::throughput::Throughput;

/// A server, and a load of users against it.
pub(crate) struct UserRunSpec<'a> {
    pub(crate) row: &'a str,
    /// What `throng serve` is to be.
    pub(crate) handler: &'a str,
    /// [`crate::test_bed::TCP`], [`crate::test_bed::CHAT`] or [`crate::test_bed::CHANNELS`].
    pub(crate) target: &'a str,
    pub(crate) scenario: &'a str,
    /// The most that are connected at one time.
    pub(crate) users: u64,
    pub(crate) seconds: u64,
    /// After how long a silence the server closes a connection; none for the handler's default.
    pub(crate) idle_timeout: Option<Duration>,
}

/// Runs both ends; `each` sees every interval and may end the load early.
pub(crate) fn run_users(
    lab: &Lab<'_>,
    spec: &UserRunSpec<'_>,
    progress: &mut dyn FnMut(LabProgress<'_>),
    each: impl FnMut(&Interval) -> NextStep,
) -> Result<(FinishedRun, Summary), LabError> {
    let UserRunSpec { row, seconds, .. } = *spec;
    lab.begin_row(row, seconds, progress);
    let cores = lab.machine.cores_for(spec.users);
    let server = ServerSpec::new(row, spec.handler, cores);
    let server = lab.test_bed.serve(ServerSpec { idle_timeout: spec.idle_timeout, ..server })?;
    let load = LoadSpec { target: spec.target, ..LoadSpec::tcp(row, spec.scenario, seconds) };
    let run = lab.test_bed.load(&load, &server.endpoint, progress, each)?;
    server.stop();
    let summary = Summary::of(&run.file);
    Ok((run, summary))
}

/// A lab's report: what it ran, what it found, and how far the run can be trusted.
pub(crate) fn report<T: Serialize>(
    info: &LabInfo,
    setup: String,
    (tables, verdict): (Vec<LabTable>, Vec<String>),
    (run, summary): (&FinishedRun, &Summary),
    found: &T,
) -> LabReport {
    LabReport {
        schema: SCHEMA,
        diagnoses: Vec::new(),
        lab: info.name,
        article: info.article,
        setup,
        tables,
        verdict,
        notes: summary.validity.reasons.iter().cloned().chain(summary.overdue()).collect(),
        grade: summary.validity.grade,
        interrupted: run.interrupted,
        rows: serde_json::to_value([found]).expect("what was found is plain data"),
        kept: None,
        next: Vec::new(),
    }
}

/// What a user costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct UserCost {
    /// Users per CPU of this machine, which both ends share.
    pub(crate) users_per_cpu: f64,
    /// Resident memory of the server.
    pub(crate) server_bytes_each: Option<f64>,
    /// Resident memory of the generator.
    pub(crate) load_bytes_each: Option<f64>,
    /// By how much the memory that is used on the machine grew, per user: both ends, and the kernel's part.
    pub(crate) machine_bytes_each: Option<f64>,
    /// CPU of the server until the last of them was there and everything was said, in microseconds.
    pub(crate) server_cpu_us_each: Option<f64>,
    /// The same of the generator.
    pub(crate) load_cpu_us_each: Option<f64>,
}

impl UserCost {
    /// Of the most users that were connected at one time.
    pub(crate) fn of(intervals: &[Interval], summary: &Summary, cpus: u64) -> Self {
        let users = summary.users.connected_most;
        let memory = MemoryEach::of(intervals, summary);
        let each = |us: Option<u64>| us.filter(|_| users > 0).map(|us| us as f64 / users as f64);
        let load = |interval: &Interval| interval.load.as_ref().map(|load| load.process.cpu_us());
        Self {
            users_per_cpu: users as f64 / cpus.max(1) as f64,
            server_bytes_each: memory.server,
            load_bytes_each: memory.load,
            machine_bytes_each: memory.machine,
            server_cpu_us_each: each(intervals.iter().filter_map(server_cpu_us).max()),
            load_cpu_us_each: each(intervals.iter().filter_map(load).max()),
        }
    }

    /// Users per gigabyte of the server's own memory.
    pub(crate) fn users_per_server_gb(&self) -> Option<f64> {
        self.server_bytes_each.map(|bytes| GB / bytes)
    }

    /// Users per gigabyte of the machine: both ends, and the kernel's part.
    pub(crate) fn users_per_machine_gb(&self) -> Option<f64> {
        self.machine_bytes_each.map(|bytes| GB / bytes)
    }

    /// Adds the rows of a table `["", "here", "the article"]`; `article` says what it has for per CPU, per gigabyte
    /// and bytes of the server.
    pub(crate) fn rows(&self, table: &mut LabTable, article: [&str; 3]) {
        let [per_cpu, per_gb, server] = article;
        let number = |n: Option<f64>| or_dash(n, count);
        for (name, here, article) in [
            ("users per core", count(self.users_per_cpu), per_cpu),
            ("users per GB of the server", number(self.users_per_server_gb()), per_gb),
            ("users per GB of the machine", number(self.users_per_machine_gb()), ""),
            ("server memory each", or_dash(self.server_bytes_each, bytes), server),
            ("generator memory each", or_dash(self.load_bytes_each, bytes), ""),
            ("machine memory a pair", or_dash(self.machine_bytes_each, bytes), ""),
        ] {
            table.row([name.to_owned(), here, article.to_owned()]);
        }
    }

    /// Adds what both ends used of the CPU over the run, where users do little else than to come.
    pub(crate) fn cpu_rows(&self, table: &mut LabTable) {
        let us = |us: Option<f64>| or_dash(us, |us| format!("{us:.1} µs"));
        for (name, here) in [
            ("server CPU each, over the run", us(self.server_cpu_us_each)),
            ("generator CPU each, over the run", us(self.load_cpu_us_each)),
        ] {
            table.row([name.to_owned(), here, String::new()]);
        }
    }
}

/// CPU that the server had used by the end of the interval, since its process began.
pub(crate) fn server_cpu_us(interval: &Interval) -> Option<u64> {
    interval.server.as_ref().map(|server| server.process.cpu_us())
}

/// First, half, 99 % and last of a broadcast's deliveries, as cells of a table.
pub(crate) fn delivery_cells(probe: &ProbeReport) -> [String; 4] {
    [probe.first_us, probe.p50_us, probe.p99_us, probe.last_us].map(|us| or_dash(us, micros))
}

/// What the probes say, in a sentence: whether everybody had each of them, and what was wrong otherwise.
pub(crate) fn delivery_sentence(probes: &[ProbeReport]) -> String {
    let sum = |of: fn(&ProbeReport) -> u64| probes.iter().map(of).sum::<u64>();
    let heard = probes.iter().filter(|probe| probe.counters.delivered > 0).count();
    if heard == 0 {
        return "No broadcast reached anybody.".to_owned();
    }
    let faults: Vec<_> = [
        ("missing", sum(|probe| probe.counters.missing)),
        ("twice", sum(|probe| probe.counters.duplicates)),
        ("out of order", sum(|probe| probe.counters.out_of_order)),
    ]
    .into_iter()
    .filter(|(_, n)| *n > 0)
    .map(|(what, n)| format!("{n} {what}"))
    .collect();
    let left = match sum(|probe| probe.counters.left) {
        0 => String::new(),
        left => format!(" ({left} had left before it came)"),
    };
    match faults.is_empty() {
        true => format!(
            "Each of {heard} broadcasts reached everybody who was there, once and in order{left}."
        ),
        false => format!(
            "Of {} deliveries of {heard} broadcasts: {}{left}.",
            sum(|probe| probe.counters.expected),
            faults.join(", ")
        ),
    }
}

/// What failed, by kind, in a sentence; none where nothing did.
pub(crate) fn errors_sentence(summary: &Summary) -> Option<String> {
    if summary.errors.total() == 0 {
        return None;
    }
    let kinds = summary.errors.0.iter().map(|(kind, n)| format!("{kind} {n}"));
    let connects = summary.connect.failed.0.iter().map(|(kind, n)| format!("{kind} {n}"));
    let connects = match summary.connect.failed.total() {
        0 => String::new(),
        _ => format!(" (connects: {})", connects.collect::<Vec<_>>().join(", ")),
    };
    Some(format!("Errors: {}{connects}.", kinds.collect::<Vec<_>>().join(", ")))
}

/// How many come in a second: those that were asked for, or a share of what the machine does. Where very many are held, each of
/// them finds its memory in no cache, and the heartbeats of those that are there take much of the CPUs (`docs/numbers.md`).
pub(crate) fn arrivals_per_second(users: u64, does: &Throughput, asked: Option<u64>) -> u64 {
    let share = if users > MANY { ARRIVALS_OF_MANY } else { ARRIVALS };
    asked.unwrap_or_else(|| does.connects_at(share))
}

/// How many users a lab has of itself: so many a CPU, as far as they fit and come within [`COMING_SECONDS`].
pub(crate) fn users_by_default(lab: &Lab<'_>, per_cpu: u64, does: &Throughput) -> u64 {
    let arrivals = arrivals_per_second(0, does, lab.options.rate);
    lab.users_or((per_cpu * lab.machine.cpus).min(arrivals.saturating_mul(COMING_SECONDS)))
}

/// How long a broadcast to `users` may take, in seconds, rounded up: two broadcasts are not under way at one time.
pub(crate) fn broadcast_seconds(users: u64, does: &Throughput) -> u64 {
    users.div_ceil(does.messages_at(DELIVERIES)).max(1)
}

const GB: f64 = 1e9;
/// Shares of the connects that the machine does.
const ARRIVALS: f64 = 0.35;
const ARRIVALS_OF_MANY: f64 = 0.2;
const COMING_SECONDS: u64 = 25;
/// Deliveries of broadcasts for each answered message that the machine does, by half of what it can.
const DELIVERIES: f64 = 0.6;

#[cfg(test)]
mod tests {
    use throng_report::ProbeCounters;

    use super::*;

    fn probe(expected: u64, delivered: u64, missing: u64, left: u64) -> ProbeReport {
        let counters =
            ProbeCounters { expected, delivered, missing, left, ..ProbeCounters::default() };
        ProbeReport { counters, ..ProbeReport::default() }
    }

    #[test]
    fn a_broadcast_that_reached_everybody_is_said_to() {
        let said = delivery_sentence(&[probe(10, 10, 0, 0), probe(20, 19, 0, 1)]);
        assert_eq!(
            said,
            "Each of 2 broadcasts reached everybody who was there, once and in order (1 had left before it came)."
        );
    }

    #[test]
    fn what_was_wrong_with_broadcasts_is_counted() {
        let mut twice = probe(20, 20, 0, 0);
        twice.counters.duplicates = 3;
        let said = delivery_sentence(&[probe(10, 8, 2, 0), twice]);
        assert_eq!(said, "Of 30 deliveries of 2 broadcasts: 2 missing, 3 twice.");
        assert_eq!(delivery_sentence(&[probe(10, 0, 10, 0)]), "No broadcast reached anybody.");
    }

    #[test]
    fn errors_are_named_by_kind() {
        let mut summary = Summary::default();
        assert_eq!(errors_sentence(&summary), None);
        summary.errors.add("connect", 2);
        summary.errors.add("join_timeout", 1);
        summary.connect.failed.add("ECONNREFUSED", 2);
        assert_eq!(
            errors_sentence(&summary).unwrap(),
            "Errors: connect 2, join_timeout 1 (connects: ECONNREFUSED 2)."
        );
    }
}
