//! Adds one interval after the other and ends in a [`Summary`]; stores no interval.

mod load;
mod validity_facts;

use std::collections::BTreeMap;

use throng_measure::runfile::{Ceiling, RunEnd, RunEndReason, RunHeader};
use throng_measure::validity::{Grade, MissingMachine, ValidityFacts};
use throng_measure::{
    Histogram, Interval, LatencyStats, LatencySummary, LatencyTotal, Operation, PerOperation,
    RunEventKind, Validity,
};

use load::LoadFold;

use super::class_operations::ClassFolds;
use super::clocks::Clocks;
use super::exchanges::ExchangeFold;
use super::foreign::ForeignFold;
use super::growth::GrowthFold;
use super::interval_growths::IntervalGrowths;
use super::machines::MachinesFold;
use super::operations::is_plain;
use super::rates::{IntervalGrowth, MachineCpu, cores_used, cost, rate_mean, rate_most};
use super::server::ServerFold;
use super::step_summary::StepFolds;
use super::{
    ArrivalsSummary, BroadcastSummary, ConnectSummary, CueSummary, DeflateSummary,
    GeneratorSummary, HeartbeatSummary, HttpSummary, LimitSummary, MachineSummary, MessageSummary,
    OperationSummary, RulesSummary, RunSummary, SCHEMA, StepSummary, Summary, TurnsSummary,
    UsersSummary,
};
use crate::Threshold;

/// A summary under construction. The generator feeds it while it writes the run file; a reader
/// while it reads one.
#[derive(Debug, Default)]
pub struct SummaryFold {
    run: RunSummary,
    ceiling: Option<Ceiling>,
    growth: GrowthFold,
    growths: IntervalGrowths,
    named: StepFolds,
    by_class: ClassFolds,
    load: LoadFold,
    server: Option<ServerFold>,
    foreign: ForeignFold,
    exchanges: ExchangeFold,
    planned_ms: Option<u64>,
    /// The source of the request to end, and its time.
    interrupted: Option<(String, u64)>,
    thresholds: Vec<Threshold>,
    paused_ms: u64,
    ports_exhausted: u64,
    fds_exhausted: u64,
    /// Machines of the run that are lost.
    machines_lost: Vec<MissingMachine>,
    /// What each machine of a fleet did.
    machines: MachinesFold,
}

impl SummaryFold {
    /// Starts a summary from the first line.
    pub fn new(header: &RunHeader) -> Self {
        let run = RunSummary {
            target: header.target.clone(),
            scenario: header.scenario.path.clone(),
            started: header.started.clone(),
            throng_version: header.throng_version.clone(),
            imported: header.imported.clone(),
            tls_unverified: header.tls_unverified,
            tls_resume: header.tls_resume,
            end: None,
            incomplete: None,
            lines_lost: 0,
        };
        let (ceiling, planned_ms) = (header.ceiling.clone(), header.planned_ms);
        let machines = MachinesFold::new(&header.machines);
        Self { run, ceiling, planned_ms, machines, ..Self::default() }
    }

    /// Sets the thresholds that will judge the run: a percentile that a threshold compares must be
    /// the target's.
    pub fn judge_by(&mut self, thresholds: &[Threshold]) {
        self.thresholds = thresholds.to_vec();
    }

    /// Adds the next interval.
    pub fn add(&mut self, interval: &Interval) {
        let growth = self.growth.add(interval);
        if let Some(load) = &interval.load {
            self.load.add(load, interval.at_ms, growth.span_ms);
            self.named.add(load, growth.grown_us);
            self.by_class.add(load, growth.grown_us);
            self.exchanges.add_load(load);
            self.machines.add(load);
        }
        if self.load.last.paused {
            self.paused_ms = self.paused_ms.saturating_add(growth.span_ms);
        }
        if let Some(server) = &interval.server {
            match &mut self.server {
                Some(seen) => seen.add(server),
                None => self.server = Some(ServerFold::first(server)),
            }
        }
        self.foreign.add(interval, self.load.last.counters.connected);
        for event in &interval.events {
            self.exchanges.add_event(event);
            self.machines.add_event(event);
            match event.kind {
                RunEventKind::PortsExhausted { .. } => self.ports_exhausted += 1,
                RunEventKind::GeneratorFdsExhausted { .. } => self.fds_exhausted += 1,
                RunEventKind::AgentLost { ref agent, percent, from_ms, .. } => {
                    let name = agent.clone();
                    self.machines_lost.push(MissingMachine { name, percent, from_ms });
                }
                RunEventKind::AgentBack { ref agent } => {
                    self.machines_lost.retain(|lost| lost.name != *agent);
                }
                RunEventKind::Interrupted { ref by } => {
                    self.interrupted.get_or_insert_with(|| (by.clone(), event.at_ms));
                }
                _ => {}
            }
        }
        self.growths.add(growth);
    }

    /// Returns the summary of a run that is over, or of the run so far. `lines_lost` is the number
    /// of lines that are missing in the run file.
    pub fn finish(&self, end: Option<RunEndReason>, lines_lost: u64) -> Summary {
        self.summary(end, lines_lost, 0, false)
    }

    /// Returns the summary of a run file that was read to its end.
    pub fn finish_read(&self, end: Option<&RunEnd>, lines_torn: u64) -> Summary {
        let lines_lost = end.map_or(0, |end| end.lines_lost);
        self.summary(end.map(|end| end.reason), lines_lost, lines_torn, end.is_none())
    }

    fn summary(
        &self,
        end: Option<RunEndReason>,
        lines_lost: u64,
        lines_torn: u64,
        end_missing: bool,
    ) -> Summary {
        let LoadFold { last, errors, .. } = &self.load;
        let counters = &last.counters;
        let interrupted = self.interrupted.is_some() || end == Some(RunEndReason::Interrupted);
        let missing = self.load.users_missing(interrupted);
        let achieved = counters.users_started.min(counters.users_intended);
        let intended = achieved + missing;
        // A log of another tool does not say how many users should have started.
        let is_known = self.run.imported.is_none() || missing > 0;
        let ratio = ratio(achieved, intended).filter(|_| is_known);
        let arrivals = ArrivalsSummary { intended, achieved, ratio };
        let lag_us = LatencySummary::from(&self.load.lag);
        let (connect, message) = (self.connect(missing), self.message());
        let plain = |of: Operation| is_plain(of).then(|| self.operation(of)).flatten();
        let (plain, broadcast) = (PerOperation::of(plain), self.broadcast());
        let http = self.operation(Operation::Http).map(|of| HttpSummary::of(last, of));
        let of_users = Summary { connect, message, plain, http, broadcast, ..Summary::default() };
        let facts = ValidityFacts {
            latencies: self.shown_latencies(&of_users),
            // A line that could not be written whole is lost for the writer and torn for the
            // reader.
            lines_lost: lines_lost.max(lines_torn),
            end_missing,
            ..self.validity_facts(end, end_missing, interrupted, &arrivals)
        };
        let (steps, step_latencies) = self.named_steps();
        let is_known = self.run.imported.is_none();
        let lag_grade = if is_known { Grade::Valid } else { Grade::Degraded };
        let lag_grade = facts.lag_grade().map_or(lag_grade, |(grade, _)| grade);
        let on_time = ValidityFacts { lag_us: LatencySummary::default(), ..facts.clone() };
        let grade_without_lag = Validity::of(&on_time).grade;
        Summary {
            schema: SCHEMA.to_owned(),
            run: RunSummary {
                end,
                incomplete: self.incomplete(end, end_missing),
                lines_lost,
                ..self.run.clone()
            },
            duration_s: self.growth.end_ms() as f64 / 1000.0,
            paused_s: self.paused_ms as f64 / 1000.0,
            validity: Validity::of(&facts),
            users: self.users(intended),
            deflate: DeflateSummary::of(&last.counters),
            heartbeat: self.heartbeat(),
            on_message: self.on_message(),
            steps,
            errors: errors.clone(),
            exchanges: self.exchanges.summary(errors, &last.connect_failed),
            arrivals,
            turns: self.turns(),
            cues: CueSummary::of(last),
            limits: last.limits.iter().map(LimitSummary::from).collect(),
            generator: GeneratorSummary { lag_grade, grade_without_lag, ..self.generator(lag_us) },
            machines: self.machines.summaries(),
            machine: self.machine(),
            server: self.server.as_ref().map(|server| server.summary(&self.growths)),
            foreign_server: self.foreign.costs(&self.growths, |growth| self.messages(growth)),
            classes: last.classes.clone(),
            class_operations: self.by_class.summaries(),
            latency_stats: self.latency_stats(),
            latencies: self
                .kinds()
                .chain(step_latencies)
                .chain(self.by_class.latencies())
                .collect(),
            ..of_users
        }
    }

    /// Returns the steps with a name, and their histograms by the names of thresholds.
    fn named_steps(&self) -> (Vec<StepSummary>, Vec<(String, LatencyTotal)>) {
        let summaries = self.named.summaries();
        let named = |(step, total): (StepSummary, LatencyTotal)| {
            let name = format!("step.{}", step.name);
            (step, (name, total))
        };
        summaries.into_iter().map(named).unzip()
    }

    /// Returns the histograms of each kind of latency.
    fn kinds(&self) -> impl Iterator<Item = (String, LatencyTotal)> {
        let lag = &self.load.lag;
        let lag = Clocks { seen: lag, arrived: lag }.total(&Histogram::new());
        let operations = Operation::ALL.map(|operation| {
            let total = self.clocks(operation).total(&self.load.times.unanswered[operation]);
            (operation.name().to_owned(), total)
        });
        operations.into_iter().chain([("generator.lag".to_owned(), lag)])
    }

    /// Returns the latencies of an operation by both clocks.
    fn clocks(&self, operation: Operation) -> Clocks<'_> {
        Clocks { seen: &self.load.times[operation], arrived: &self.load.arrival[operation] }
    }

    /// Returns the reason why the run ended before its plan did.
    fn incomplete(&self, end: Option<RunEndReason>, end_missing: bool) -> Option<String> {
        match end {
            Some(RunEndReason::Interrupted) => {
                let (by, at_ms) = match &self.interrupted {
                    Some((by, at_ms)) => (by.as_str(), *at_ms),
                    None => ("a request", self.growth.end_ms()),
                };
                let of = self.planned_ms.map(|ms| format!(" of its {}", seconds(ms)));
                Some(format!("{by} ended it after {}{}", seconds(at_ms), of.unwrap_or_default()))
            }
            Some(RunEndReason::Failed) => Some("the generator failed".to_owned()),
            None if end_missing => Some(
                "its file has no last line: the generator was killed or is still running"
                    .to_owned(),
            ),
            Some(
                RunEndReason::Finished
                | RunEndReason::TargetLost
                | RunEndReason::Unreached
                | RunEndReason::Unknown,
            )
            | None => None,
        }
    }

    fn users(&self, intended: u64) -> UsersSummary {
        let counters = &self.load.last.counters;
        UsersSummary {
            intended,
            started: counters.users_started,
            iterations: counters.iterations,
            finished: counters.users_finished,
            failed: counters.users_failed,
            cut: counters.users_cut,
            connected_most: self.load.memory.count_most,
            active_most: self.load.active_most,
            joined_most: self.load.joined_most,
            waiting: counters.users_waiting,
            waiting_us_most: counters.users_waiting_us_most,
        }
    }

    /// Returns the statistics of latencies without values, with the percentiles of the whole run
    /// where the log has them.
    fn latency_stats(&self) -> BTreeMap<String, LatencyStats> {
        let mut joined = self.load.latency_stats.clone();
        let whole = self.run.imported.iter().flat_map(|imported| &imported.latency_stats);
        for (name, whole) in whole {
            if let Some(stats) = joined.get_mut(name) {
                stats.percentiles_us.clone_from(&whole.percentiles_us);
            }
        }
        joined
    }

    /// Summarizes the connects; `missing` users should have begun, each with a connect.
    fn connect(&self, missing: u64) -> ConnectSummary {
        let LoadFold { last, times, .. } = &self.load;
        let counters = &last.counters;
        let [connect, tcp] = [Operation::Connect, Operation::Tcp].map(|of| self.clocks(of));
        // An arrival of another tool, an iteration or a virtual user, is no connect.
        let missing = if self.run.imported.is_some() { 0 } else { missing };
        ConnectSummary {
            intended: counters.connects_started + missing,
            ok: counters.connects_ok,
            failed: last.connect_failed.clone(),
            waiting: counters.connects_waiting,
            upgrades_waiting: counters.upgrades_waiting,
            tls_resumed: counters.tls_resumed,
            rate_most: rate_most(&self.growths, |growth| growth.ok[Operation::Connect]),
            rate_mean: rate_mean(&self.growths, |growth| growth.ok[Operation::Connect]),
            latency_us: connect.latency_us(),
            seen_us: connect.seen.into(),
            tcp_latency_us: tcp.latency_us(),
            unanswered_us: (&times.unanswered[Operation::Connect]).into(),
            judged_us: connect.judged_us(&times.unanswered[Operation::Connect]),
            tcp_judged_us: tcp.judged_us(&times.unanswered[Operation::Tcp]),
        }
    }

    fn message(&self) -> MessageSummary {
        let LoadFold { last, times, .. } = &self.load;
        let counters = &last.counters;
        let clocks = self.clocks(Operation::Message);
        MessageSummary {
            sent: counters.messages_sent,
            sends_waiting: counters.sends_waiting,
            expected: counters.messages_expected,
            answered: counters.messages_answered,
            failed: counters.messages_failed,
            waiting: counters.messages_waiting,
            intended_rate: rate_mean(&self.growths, |growth| growth.turns_intended),
            rate_most: rate_most(&self.growths, |growth| self.plain_messages(growth)),
            rate_mean: rate_mean(&self.growths, |growth| self.plain_messages(growth)),
            latency_us: clocks.latency_us(),
            seen_us: clocks.seen.into(),
            from_send_us: (&self.load.times.from_send).into(),
            unanswered_us: (&times.unanswered[Operation::Message]).into(),
            judged_us: clocks.judged_us(&times.unanswered[Operation::Message]),
            doubtful: counters.answers_doubtful,
            out_of_step: counters.answers_out_of_step,
            unasked: counters.messages_unasked,
            received: counters.messages_received,
            received_rate_most: rate_most(&self.growths, |growth| growth.received_by_users),
        }
    }

    fn turns(&self) -> Option<TurnsSummary> {
        let counters = &self.load.last.counters;
        (counters.turns_intended > 0).then_some(TurnsSummary {
            intended: counters.turns_intended,
            started: counters.turns_started,
            failed: counters.turns_failed,
            waiting: counters.turns_waiting,
        })
    }

    /// Returns the numbers of an operation; `None` if none has begun.
    fn operation(&self, operation: Operation) -> Option<OperationSummary> {
        let LoadFold { last, times, .. } = &self.load;
        let counts = operation.counts(&last.counters).filter(|counts| counts.started > 0)?;
        let (clocks, unanswered) = (self.clocks(operation), &times.unanswered[operation]);
        Some(OperationSummary {
            started: counts.started,
            ok: counts.ok,
            failed: counts.failed,
            waiting: counts.waiting,
            rate_most: rate_most(&self.growths, |growth| growth.ok[operation]),
            rate_mean: rate_mean(&self.growths, |growth| growth.ok[operation]),
            latency_us: clocks.latency_us(),
            seen_us: clocks.seen.into(),
            unanswered_us: unanswered.into(),
            judged_us: clocks.judged_us(unanswered),
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

    fn on_message(&self) -> Option<RulesSummary> {
        let counters = &self.load.last.counters;
        (counters.rules_matched > 0).then_some(RulesSummary {
            matched: counters.rules_matched,
            sent: counters.rules_sent,
            blocked: counters.rules_blocked,
        })
    }

    fn broadcast(&self) -> Option<BroadcastSummary> {
        let counters = &self.load.last.probe;
        let probes = &self.load.probes;
        let clocks = self.clocks(Operation::Broadcast);
        (counters.intended > 0).then(|| BroadcastSummary {
            counters: counters.clone(),
            latency_us: clocks.latency_us(),
            seen_us: clocks.seen.into(),
            first_us: probes.values().filter_map(|probe| probe.first_us).min(),
            last_us: probes.values().filter_map(|probe| probe.last_us).max(),
            probes: probes.values().cloned().collect(),
        })
    }

    fn generator(&self, lag_us: LatencySummary) -> GeneratorSummary {
        let cpu = IntervalGrowth::load_cpu;
        GeneratorSummary {
            cpu_us_per_connect: cost(&self.growths, |growth| growth.ok[Operation::Connect], cpu),
            cpu_us_per_message: cost(&self.growths, |growth| self.messages(growth), cpu),
            rss_bytes_per_user: self.load.memory.bytes_each(),
            lag_us,
            lag_most_at_s: self.load.lag_most_at_ms.map(|ms| ms as f64 / 1000.0),
            by_kernels_clock: self.load.by_kernels_clock(),
            cores: self.load.last.cores,
            cpu_cores_used: cores_used(&self.growths, cpu),
            ceiling_share: self.ceiling_share(),
            ceiling_over_tls: self.ceiling.as_ref().is_some_and(|ceiling| ceiling.over_tls),
            ..GeneratorSummary::default()
        }
    }

    fn machine(&self) -> MachineSummary {
        let Some(last) = self.growth.machine() else { return MachineSummary::default() };
        let MachineCpu { busy_us, idle_us, stolen_us } =
            MachineCpu::of(&self.growths).unwrap_or_default();
        let cpu = IntervalGrowth::machine_busy;
        let all_us = busy_us.saturating_add(idle_us).saturating_add(stolen_us);
        MachineSummary {
            cpus: last.cpus,
            cpu_busy_share: ratio(busy_us, all_us),
            cpu_stolen_share: ratio(stolen_us, all_us),
            cpu_us_per_connect: cost(&self.growths, |growth| growth.ok[Operation::Connect], cpu),
            cpu_us_per_message: cost(&self.growths, |growth| self.messages(growth), cpu),
        }
    }

    /// Returns the answers, or the sends in a run without an answer; and the pushes.
    fn messages(&self, growth: &IntervalGrowth) -> u64 {
        let others = Operation::messages().filter(|of| *of != Operation::Message);
        others.map(|of| growth.ok[of]).fold(self.plain_messages(growth), u64::saturating_add)
    }

    /// Returns the answers, or the sends in a run without an answer.
    fn plain_messages(&self, growth: &IntervalGrowth) -> u64 {
        match self.load.last.counters.messages_answered {
            0 => growth.sent,
            _ => growth.ok[Operation::Message],
        }
    }
}

/// Writes seconds: `3.2 s`, and from ten on without decimals.
fn seconds(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{:.1} s", ms as f64 / 1000.0),
        _ => format!("{:.0} s", ms as f64 / 1000.0),
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests;
