//! Takes in one interval after the other and ends in a [`Summary`]; holds no interval back.

use std::collections::BTreeMap;

use super::rates::{Cpu, MachineCpu, Step, cores_used, cost, rate_mean, rate_most};
use super::{
    ArrivalsSummary, BroadcastSummary, ConnectSummary, GeneratorSummary, HeartbeatSummary,
    JoinSummary, MEMORY_CONNECTIONS_MIN, MachineSummary, MessageSummary, PushSummary, RunSummary,
    SCHEMA, ServerSummary, Summary, UsersSummary,
};
use crate::runfile::{Ceiling, End, EndReason, Header};
use crate::validity::{Facts, LAG_DEGRADED_US};
use crate::{
    EventKind, Histogram, Interval, LatencySummary, LoadInterval, MachineUse, Merge, ProbeReport,
    ProcessUse, ServerSnapshot, Validity,
};

/// A summary in the making. The generator feeds it as it writes the run file; a reader as it reads one.
#[derive(Debug, Default)]
pub struct SummaryFold {
    run: RunSummary,
    ceiling: Option<Ceiling>,
    end_ms: u64,
    steps: Vec<Step>,
    load: Load,
    machine: Option<MachineUse>,
    server: Option<Server>,
    interrupted: bool,
    paused_ms: u64,
    ports_exhausted: u64,
    fds_exhausted: u64,
}

impl SummaryFold {
    /// Begins with the first line.
    pub fn new(header: &Header) -> Self {
        let run = RunSummary {
            target: header.target.clone(),
            scenario: header.scenario.path.clone(),
            started: header.started.clone(),
            throng_version: header.throng_version.clone(),
            end: None,
        };
        Self { run, ceiling: header.ceiling.clone(), ..Self::default() }
    }

    /// Takes in the next interval.
    pub fn add(&mut self, interval: &Interval) {
        // Counters count from the start: where lines are missing, what they grew by took the whole gap.
        let gap_ms = interval.at_ms.saturating_sub(self.end_ms);
        let span_ms = interval.span_ms.max(gap_ms);
        let mut step = Step { span_ms, ..Step::default() };
        self.end_ms = self.end_ms.max(interval.at_ms);
        if let Some(load) = &interval.load {
            self.load.add(load, &mut step);
        }
        step.leaving = self.load.last.is_leaving();
        self.paused_ms += if self.load.last.paused { span_ms } else { 0 };
        if let Some(machine) = &interval.machine {
            if let Some(last) = self.machine.as_ref().filter(|last| span_ms > 0 && *last != machine)
            {
                step.machine_cpu = Some(MachineCpu {
                    busy_us: machine.cpu_busy_us.saturating_sub(last.cpu_busy_us),
                    idle_us: machine.cpu_idle_us.saturating_sub(last.cpu_idle_us),
                    stolen_us: machine.cpu_stolen_us.saturating_sub(last.cpu_stolen_us),
                });
            }
            self.machine = Some(machine.clone());
        }
        if let Some(server) = &interval.server {
            match &mut self.server {
                Some(seen) => seen.add(interval.at_ms, server, &mut step),
                None => self.server = Some(Server::first(interval.at_ms, server)),
            }
        }
        for event in &interval.events {
            match event.kind {
                EventKind::PortsExhausted { .. } => self.ports_exhausted += 1,
                EventKind::GeneratorFdsExhausted { .. } => self.fds_exhausted += 1,
                EventKind::Interrupted { .. } => self.interrupted = true,
                _ => {}
            }
        }
        self.steps.push(step);
    }

    /// The summary of a run that is over, or of what there is of it so far. `lines_lost` are those that the
    /// run file lacks.
    pub fn finish(&self, end: Option<EndReason>, lines_lost: u64) -> Summary {
        self.summary(end, lines_lost, false)
    }

    /// The summary of a run file that was read to its end.
    pub fn finish_read(&self, end: Option<&End>, lines_torn: u64) -> Summary {
        // A line that could not be written whole is both lost to the writer and torn to the reader.
        let lines_lost = end.map_or(0, |end| end.lines_lost).max(lines_torn);
        self.summary(end.map(|end| end.reason), lines_lost, end.is_none())
    }

    fn summary(&self, end: Option<EndReason>, lines_lost: u64, end_missing: bool) -> Summary {
        let Load { last, errors, .. } = &self.load;
        let counters = &last.counters;
        let interrupted = self.interrupted || end == Some(EndReason::Interrupted);
        let missing = self.load.users_missing(interrupted);
        let achieved = counters.users_started.min(counters.users_intended);
        let intended = achieved + missing;
        let arrivals = ArrivalsSummary { intended, achieved, ratio: ratio(achieved, intended) };
        let lag_us = LatencySummary::from(&self.load.lag);
        let failed = |one, other| last.connect_failed.get(one) + last.connect_failed.get(other);
        let facts = Facts {
            intervals: self.load.intervals,
            lag_us_p99: lag_us.p99,
            arrivals_intended: arrivals.intended,
            arrivals_achieved: arrivals.achieved,
            turns_intended: counters.turns_intended,
            turns_missed: self.load.turns_missed(),
            lines_lost,
            end_missing,
            // The kernel's choice fails with the first, a port that was named with the second.
            ports_exhausted: failed("EADDRNOTAVAIL", "EADDRINUSE").max(self.ports_exhausted),
            fds_exhausted: failed("EMFILE", "ENFILE").max(self.fds_exhausted),
            probes_intended: last.probe.intended.saturating_sub(last.probe.skipped),
            probes_sent: last.probe.sent,
            // While the run goes on, and in a file without an end, deliveries are under way.
            deliveries_unaccounted: match end {
                Some(_) => last.probe.outstanding(),
                None => 0,
            },
            ceiling_share: self.ceiling_share(),
        };
        Summary {
            schema: SCHEMA.to_owned(),
            run: RunSummary { end, ..self.run.clone() },
            duration_s: self.end_ms as f64 / 1000.0,
            paused_s: self.paused_ms as f64 / 1000.0,
            validity: Validity::of(&facts),
            users: UsersSummary {
                intended,
                started: counters.users_started,
                iterations: counters.iterations,
                finished: counters.users_finished,
                failed: counters.users_failed,
                connected_most: self.load.memory.count_most,
                active_most: self.load.active_most,
                joined_most: self.load.joined_most,
                waiting: counters.users_waiting,
                waiting_us_most: counters.users_waiting_us_most,
            },
            connect: ConnectSummary {
                intended: counters.connects_started + missing,
                ok: counters.connects_ok,
                failed: last.connect_failed.clone(),
                rate_most: rate_most(&self.steps, |step| step.connects),
                rate_mean: rate_mean(&self.steps, |step| step.connects),
                latency_us: (&self.load.connect).into(),
                tcp_latency_us: (&self.load.tcp).into(),
            },
            message: MessageSummary {
                sent: counters.messages_sent,
                answered: counters.messages_answered,
                intended_rate: rate_mean(&self.steps, |step| step.turns_intended),
                rate_most: rate_most(&self.steps, |step| self.plain_messages(step)),
                rate_mean: rate_mean(&self.steps, |step| self.plain_messages(step)),
                latency_us: (&self.load.message).into(),
                received: counters.messages_received,
                received_rate_most: rate_most(&self.steps, |step| step.heard),
            },
            join: self.join(),
            push: self.push(),
            heartbeat: self.heartbeat(),
            broadcast: self.broadcast(),
            errors: errors.clone(),
            arrivals,
            generator: self.generator(lag_us),
            machine: self.machine(),
            server: self.server.as_ref().map(|server| server.summary(&self.steps)),
            classes: last.classes.clone(),
        }
    }

    fn join(&self) -> Option<JoinSummary> {
        let counters = &self.load.last.counters;
        (counters.joins_started > 0).then(|| JoinSummary {
            started: counters.joins_started,
            ok: counters.joins_ok,
            failed: counters.joins_failed,
            rate_most: rate_most(&self.steps, |step| step.joins),
            rate_mean: rate_mean(&self.steps, |step| step.joins),
            latency_us: (&self.load.join).into(),
        })
    }

    fn push(&self) -> Option<PushSummary> {
        let counters = &self.load.last.counters;
        (counters.pushes_sent > 0).then(|| PushSummary {
            sent: counters.pushes_sent,
            ok: counters.pushes_ok,
            failed: counters.pushes_failed,
            rate_most: rate_most(&self.steps, |step| step.pushes),
            rate_mean: rate_mean(&self.steps, |step| step.pushes),
            latency_us: (&self.load.push).into(),
        })
    }

    fn heartbeat(&self) -> Option<HeartbeatSummary> {
        let counters = &self.load.last.counters;
        (counters.heartbeats_sent > 0).then_some(HeartbeatSummary {
            sent: counters.heartbeats_sent,
            answered: counters.heartbeats_answered,
            missed: counters.heartbeats_missed,
        })
    }

    fn broadcast(&self) -> Option<BroadcastSummary> {
        let counters = &self.load.last.probe;
        let probes = &self.load.probes;
        (counters.intended > 0).then(|| BroadcastSummary {
            counters: counters.clone(),
            latency_us: (&self.load.broadcast).into(),
            first_us: probes.values().filter_map(|probe| probe.first_us).min(),
            last_us: probes.values().filter_map(|probe| probe.last_us).max(),
            probes: probes.values().cloned().collect(),
        })
    }

    fn generator(&self, lag_us: LatencySummary) -> GeneratorSummary {
        let cpu = Step::load_cpu;
        GeneratorSummary {
            cpu_us_per_connect: cost(&self.steps, |step| step.connects, cpu),
            cpu_us_per_message: cost(&self.steps, |step| self.messages(step), cpu),
            rss_bytes_per_user: self.load.memory.bytes_each(),
            lag_us,
            cores: self.load.last.cores,
            cpu_cores_used: cores_used(&self.steps, cpu),
            ceiling_share: self.ceiling_share(),
        }
    }

    /// How much of what the generator can do the busiest second took; `None` where no ceiling was measured or nothing was done.
    fn ceiling_share(&self) -> Option<f64> {
        let ceiling = self.ceiling.as_ref()?;
        let asked_for = self.steps.iter().map(|step| self.messages(step) + step.joins).sum::<u64>()
            + self.load.last.counters.heartbeats_answered;
        let heard = self.steps.iter().map(|step| step.heard).sum::<u64>();
        if heard > UNASKED_LEAST && heard / UNASKED_TIMES > asked_for {
            // What comes unasked takes the CPUs too, and how much of it they could do was not measured.
            return None;
        }
        let each_us = |per_s: Option<f64>| per_s.filter(|n| *n > 0.0).map_or(0.0, |n| 1e6 / n);
        let (connect_us, message_us) =
            (each_us(ceiling.connects_per_s), each_us(ceiling.messages_per_s));
        let taken_us = |step: &Step| {
            step.connects as f64 * connect_us + self.messages(step) as f64 * message_us
        };
        rate_most(&self.steps, |step| taken_us(step).round() as u64).map(|us_per_s| us_per_s / 1e6)
    }

    fn machine(&self) -> MachineSummary {
        let Some(last) = &self.machine else { return MachineSummary::default() };
        let MachineCpu { busy_us, idle_us, stolen_us } =
            MachineCpu::of(&self.steps).unwrap_or_default();
        let cpu = Step::machine_busy;
        MachineSummary {
            cpus: last.cpus,
            cpu_busy_share: ratio(busy_us, busy_us + idle_us + stolen_us),
            cpu_stolen_share: ratio(stolen_us, busy_us + idle_us + stolen_us),
            cpu_us_per_connect: cost(&self.steps, |step| step.connects, cpu),
            cpu_us_per_message: cost(&self.steps, |step| self.messages(step), cpu),
        }
    }

    /// Answers, or sends in a run that got none; and pushes.
    fn messages(&self, step: &Step) -> u64 {
        step.pushes + self.plain_messages(step)
    }

    /// Answers, or sends in a run that got none.
    fn plain_messages(&self, step: &Step) -> u64 {
        match self.load.last.counters.messages_answered {
            0 => step.sent,
            _ => step.answered,
        }
    }
}

/// So many messages that nobody asked for, for each that somebody did, …
const UNASKED_TIMES: u64 = 2;
/// … and at least so many, are what a run is about.
const UNASKED_LEAST: u64 = 1_000;

/// What the generator said so far.
#[derive(Debug, Default)]
struct Load {
    intervals: u64,
    /// The last that it said, without its histograms.
    last: LoadInterval,
    errors: crate::Tally,
    connect: Histogram,
    tcp: Histogram,
    message: Histogram,
    join: Histogram,
    push: Histogram,
    broadcast: Histogram,
    lag: Histogram,
    /// The latest report of each probe.
    probes: BTreeMap<u64, ProbeReport>,
    joined_most: u64,
    active_most: u64,
    memory: Memory,
    /// By how many turns the backlog grew while the generator was late.
    backlog_grown_late: u64,
    /// Users that should have begun and had not, on the last line before everybody began to leave.
    missing_before_leaving: u64,
}

impl Load {
    fn add(&mut self, load: &LoadInterval, step: &mut Step) {
        let (before, now) = (&self.last.counters, &load.counters);
        let grown = now.since(before);
        step.connects = grown.connects_ok;
        step.sent = grown.messages_sent;
        step.answered = grown.messages_answered;
        step.joins = grown.joins_ok;
        step.pushes = grown.pushes_ok;
        step.heard = grown.messages_received;
        step.turns_intended = grown.turns_intended;
        // The process lives as long as the run: before the first line it had used nothing that counts.
        let cpu_us = load.process.cpu_us().saturating_sub(self.last.process.cpu_us());
        step.load_cpu_us = (load.process.pid != 0 && step.span_ms > 0).then_some(cpu_us);

        if load.lag.percentile(99.0) > LAG_DEGRADED_US {
            self.backlog_grown_late += backlog(now).saturating_sub(backlog(before));
        }
        self.connect.merge(&load.connect);
        self.tcp.merge(&load.tcp);
        self.message.merge(&load.message);
        self.join.merge(&load.join);
        self.push.merge(&load.push);
        self.broadcast.merge(&load.broadcast);
        self.lag.merge(&load.lag);
        self.probes.extend(load.probes.iter().map(|probe| (probe.number, probe.clone())));
        self.joined_most = self.joined_most.max(now.joined);
        self.active_most = self.active_most.max(now.users_active);
        self.memory.add(now.connected, &load.process);
        self.errors = load.errors.clone();
        if now.connects_failed > 0 {
            self.errors.0.insert("connect".to_owned(), now.connects_failed);
        }
        self.intervals += u64::from(step.span_ms > 0);
        if !load.is_leaving() {
            self.missing_before_leaving = missing(now);
        }
        self.last = load.without_measured();
    }

    /// Users that should have begun and did not. A schedule that was interrupted goes on saying who should
    /// have begun by now, but nobody is missed who was not missed before.
    fn users_missing(&self, interrupted: bool) -> u64 {
        let now = missing(&self.last.counters);
        match interrupted && self.last.is_leaving() {
            true => now.min(self.missing_before_leaving),
            false => now,
        }
    }

    /// Turns that the generator kept from starting, and that did not start later.
    fn turns_missed(&self) -> u64 {
        backlog(&self.last.counters).min(self.backlog_grown_late)
    }
}

fn missing(counters: &crate::LoadCounters) -> u64 {
    counters.users_intended.saturating_sub(counters.users_started)
}

fn backlog(counters: &crate::LoadCounters) -> u64 {
    counters.turns_intended.saturating_sub(counters.turns_started)
}

/// What the server said so far; it may have been restarted in between.
#[derive(Debug)]
struct Server {
    /// The first that this process said.
    first: ServerSnapshot,
    last: ServerSnapshot,
    /// When that was.
    heard_ms: u64,
    /// What its predecessors did in this run.
    before: crate::ServerCounters,
    errors_before: crate::Tally,
    memory: Memory,
    registry_mailbox_most: u64,
}

impl Server {
    fn first(at_ms: u64, server: &ServerSnapshot) -> Self {
        let mut memory = Memory::default();
        memory.add(server.counters.open, &server.process);
        Self {
            first: server.clone(),
            last: server.clone(),
            heard_ms: at_ms,
            before: Default::default(),
            errors_before: Default::default(),
            memory,
            registry_mailbox_most: server.counters.registry_mailbox_most,
        }
    }

    fn add(&mut self, at_ms: u64, server: &ServerSnapshot, step: &mut Step) {
        if server.process.pid != self.last.process.pid {
            self.before = self.counters();
            self.errors_before = self.accept_errors();
            // A process that begins within the run begins at zero.
            self.first = ServerSnapshot::default();
            self.last = ServerSnapshot::default();
        }
        let grown = server.counters.since(&self.last.counters);
        step.accepted = grown.accepted;
        step.received = grown.messages_received;
        let cpu_us = server.process.cpu_us().saturating_sub(self.last.process.cpu_us());
        let span_ms = at_ms.saturating_sub(self.heard_ms);
        step.server_cpu = (span_ms > 0).then_some(Cpu { span_ms, us: cpu_us });
        self.heard_ms = at_ms;
        self.memory.add(server.counters.open, &server.process);
        self.registry_mailbox_most =
            self.registry_mailbox_most.max(server.counters.registry_mailbox_most);
        self.last = server.clone();
    }

    fn counters(&self) -> crate::ServerCounters {
        let mut counters = self.before.clone();
        counters.merge(&self.last.counters.since(&self.first.counters));
        counters.open = self.last.counters.open;
        counters.paused_cores = self.last.counters.paused_cores;
        counters.registry_mailbox_most = self.registry_mailbox_most;
        counters
    }

    fn accept_errors(&self) -> crate::Tally {
        let mut errors = self.errors_before.clone();
        for (errno, n) in &self.last.accept_errors.0 {
            errors.add(errno, n.saturating_sub(self.first.accept_errors.get(errno)));
        }
        errors
    }

    fn summary(&self, steps: &[Step]) -> ServerSummary {
        let cpu = |step: &Step| step.server_cpu;
        ServerSummary {
            accept: self.last.accept.clone(),
            handler: self.last.handler.clone(),
            cores: self.last.cores,
            counters: self.counters(),
            open_most: self.memory.count_most,
            accept_errors: self.accept_errors(),
            cpu_us_per_connection: cost(steps, |step| step.accepted, cpu),
            cpu_us_per_message: cost(steps, |step| step.received, cpu),
            rss_bytes_per_connection: self.memory.bytes_each(),
            cpu_cores_used: cores_used(steps, cpu),
        }
    }
}

/// Memory that a process had grown by when it held the most connections.
#[derive(Debug, Default)]
struct Memory {
    count_most: u64,
    grown_bytes: u64,
    known: bool,
}

impl Memory {
    fn add(&mut self, count: u64, process: &ProcessUse) {
        let grown_bytes = process.rss_bytes.saturating_sub(process.rss_bytes_at_start);
        if count > self.count_most {
            self.grown_bytes = grown_bytes;
        } else if count == self.count_most {
            // The same connections held for longer: memory may have followed a little later.
            self.grown_bytes = self.grown_bytes.max(grown_bytes);
        }
        if count >= self.count_most {
            self.known = process.rss_bytes > 0 && process.rss_bytes_at_start > 0;
        }
        self.count_most = self.count_most.max(count);
    }

    fn bytes_each(&self) -> Option<f64> {
        let known = self.known && self.count_most >= MEMORY_CONNECTIONS_MIN;
        known.then(|| self.grown_bytes as f64 / self.count_most as f64)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests;
