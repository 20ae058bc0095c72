//! A run of many users: the common part of the labs with one row. It starts server and generator,
//! computes a user's cost, and summarises the broadcasts.

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

/// The options of a server and of a load of users against it.
pub(crate) struct UserRunSpec<'a> {
    pub(crate) row: &'a str,
    /// The kind of server for `throng serve`.
    pub(crate) handler: &'a str,
    /// [`crate::test_bed::TCP`], [`crate::test_bed::CHAT`] or [`crate::test_bed::CHANNELS`].
    pub(crate) target: &'a str,
    pub(crate) scenario: &'a str,
    /// The most users that are connected at one time.
    pub(crate) users: u64,
    pub(crate) seconds: u64,
    /// The time after which the server closes an idle connection; none for the handler's default.
    pub(crate) idle_timeout: Option<Duration>,
}

/// Runs server and generator. Calls `each` with every interval; it may end the load early.
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

/// Returns the report of a lab with one row, whose numbers are `found`.
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
        rows: serde_json::to_value([found]).expect("a row is plain data"),
        kept: None,
        next: Vec::new(),
    }
}

/// The cost of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct UserCost {
    /// Users per CPU of this machine, which server and generator share.
    pub(crate) users_per_cpu: f64,
    /// Resident memory of the server per user.
    pub(crate) server_bytes_each: Option<f64>,
    /// Resident memory of the generator per user.
    pub(crate) load_bytes_each: Option<f64>,
    /// Growth of the machine's used memory per user: server, generator and kernel.
    pub(crate) machine_bytes_each: Option<f64>,
    /// CPU time of the server per user over the run, in microseconds.
    pub(crate) server_cpu_us_each: Option<f64>,
    /// CPU time of the generator per user over the run, in microseconds.
    pub(crate) load_cpu_us_each: Option<f64>,
}

impl UserCost {
    /// Computes the cost for the most users that were connected at one time.
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

    /// Returns the users per gigabyte of the server's memory.
    pub(crate) fn users_per_server_gb(&self) -> Option<f64> {
        self.server_bytes_each.map(|bytes| GB / bytes)
    }

    /// Returns the users per gigabyte of the machine's memory: server, generator and kernel.
    pub(crate) fn users_per_machine_gb(&self) -> Option<f64> {
        self.machine_bytes_each.map(|bytes| GB / bytes)
    }

    /// Adds the rows to a table `["", "here", "the article"]`. `article` has the article's figures
    /// for users per core, users per gigabyte and the server's bytes per user.
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

    /// Adds the CPU time of server and generator over the run, for labs whose users do little but
    /// arrive.
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

/// Returns the CPU time of the server's process up to the end of the interval.
pub(crate) fn server_cpu_us(interval: &Interval) -> Option<u64> {
    interval.server.as_ref().map(|server| server.process.cpu_us())
}

/// Returns the delays of a broadcast's first, median, 99 % and last delivery as cells of a table.
pub(crate) fn delivery_cells(probe: &ProbeReport) -> [String; 4] {
    [probe.first_us, probe.p50_us, probe.p99_us, probe.last_us].map(|us| or_dash(us, micros))
}

/// Returns a sentence about the broadcasts: every user received each of them, or the faults.
pub(crate) fn delivery_sentence(probes: &[ProbeReport]) -> String {
    let sum = |of: fn(&ProbeReport) -> u64| probes.iter().map(of).sum::<u64>();
    let delivered = probes.iter().filter(|probe| probe.counters.delivered > 0).count();
    if delivered == 0 {
        return "No broadcast reached a user.".to_owned();
    }
    let faults: Vec<_> = [
        ("missing", sum(|probe| probe.counters.missing)),
        ("duplicated", sum(|probe| probe.counters.duplicates)),
        ("out of order", sum(|probe| probe.counters.out_of_order)),
    ]
    .into_iter()
    .filter(|(_, n)| *n > 0)
    .map(|(fault, n)| format!("{n} {fault}"))
    .collect();
    let left = match sum(|probe| probe.counters.left) {
        0 => String::new(),
        left => format!(" ({left} had left before the delivery)"),
    };
    if faults.is_empty() {
        return format!(
            "Each of {delivered} broadcasts reached every user who was there, once and in \
             order{left}."
        );
    }
    format!(
        "{} deliveries of {delivered} broadcasts were due: {}{left}.",
        sum(|probe| probe.counters.expected),
        faults.join(", ")
    )
}

/// Returns a sentence with the errors by kind; none without errors.
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

/// Returns the arrivals per second: the `rate` of the options, or a share of the machine's
/// throughput. With very many users, no cache holds a user's memory, and the heartbeats of the
/// connected users take much of the CPUs (`docs/numbers.md`).
pub(crate) fn arrivals_per_second(users: u64, throughput: &Throughput, rate: Option<u64>) -> u64 {
    let share = if users > MANY { ARRIVALS_OF_MANY } else { ARRIVALS };
    rate.unwrap_or_else(|| throughput.connects_at(share))
}

/// Returns a lab's default users: `per_cpu` for each CPU, as far as they fit and arrive within
/// [`COMING_SECONDS`].
pub(crate) fn users_by_default(lab: &Lab<'_>, per_cpu: u64, throughput: &Throughput) -> u64 {
    let arrivals = arrivals_per_second(0, throughput, lab.options.rate);
    lab.users_or((per_cpu * lab.machine.cpus).min(arrivals.saturating_mul(COMING_SECONDS)))
}

/// Returns the time that a broadcast to `users` may take, in whole seconds. The labs leave this
/// time between two broadcasts.
pub(crate) fn broadcast_seconds(users: u64, throughput: &Throughput) -> u64 {
    users.div_ceil(throughput.messages_at(DELIVERIES)).max(1)
}

const GB: f64 = 1e9;
/// The arrivals for each connect that the machine can do.
const ARRIVALS: f64 = 0.35;
/// The arrivals for each connect that the machine can do, with more than [`MANY`] users.
const ARRIVALS_OF_MANY: f64 = 0.2;
/// The most seconds in which a lab's default users arrive.
const COMING_SECONDS: u64 = 25;
/// Deliveries for each answered message that the machine can do: about half of its limit.
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
    fn broadcasts_that_reached_every_user_get_one_sentence() {
        let sentence = delivery_sentence(&[probe(10, 10, 0, 0), probe(20, 19, 0, 1)]);
        assert_eq!(
            sentence,
            "Each of 2 broadcasts reached every user who was there, once and in order (1 had \
             left before the delivery)."
        );
    }

    #[test]
    fn faults_of_broadcasts_are_counted() {
        let mut twice = probe(20, 20, 0, 0);
        twice.counters.duplicates = 3;
        let sentence = delivery_sentence(&[probe(10, 8, 2, 0), twice]);
        let expected = "30 deliveries of 2 broadcasts were due: 2 missing, 3 duplicated.";
        assert_eq!(sentence, expected);
        assert_eq!(delivery_sentence(&[probe(10, 0, 10, 0)]), "No broadcast reached a user.");
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
