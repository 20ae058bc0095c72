//! A machine with an agent whose load is invented: each second, each core counts and measures.

use std::time::Duration;

use throng_base::{Instant, Prng};
use throng_load::generator::CoreStats;
use throng_measure::{KernelCounters, Metric, Operation, RunEventKind};

use crate::agent::Agent;
use crate::agent_action::{AgentAction, Publish};
use crate::agent_note::AgentNote;
use crate::agent_process::STOPPED_BY;
use crate::message::{AgentFacts, LoadReport, Readiness};
use crate::subjects::GroupSubjects;

/// A machine of the fleet.
pub(super) struct Site {
    pub(super) agent: Agent,
    /// Microseconds by which its clock is ahead.
    pub(super) ahead_us: i64,
    /// True while its process is stopped.
    pub(super) is_paused: bool,
    /// True while its last core is too busy to answer: the core does nothing, and reports lack it.
    pub(super) has_busy_core: bool,
    /// What its reports have measured, the first of them first.
    pub(super) measured: Vec<ReportSums>,
    /// Reports of a run.
    pub(super) reports_planned: usize,
    /// What its kernel counts: with each report, an accept queue overflows once.
    kernel: KernelCounters,
    /// Actions that its process was asked for.
    pub(super) prepared: usize,
    /// What its process was asked to say.
    pub(super) said: Vec<AgentNote>,
    /// What its next report says.
    events: Vec<RunEventKind>,
    load: Option<Load>,
    prng: Prng,
}

/// What one report says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportSums {
    /// Connects so far.
    pub(super) connects: u64,
    /// Latencies that are measured in its interval.
    pub(super) latencies: u64,
}

struct Load {
    cores: Vec<CoreStats>,
    /// Beginning on the machine's own clock; none before it is ordered.
    start_at: Option<Instant>,
    report_at: Instant,
}

impl Site {
    pub(super) fn new(name: &str, incarnation: &str, ahead_us: i64, seed: u64) -> Self {
        let facts = AgentFacts {
            name: super::name(name),
            incarnation: super::name(incarnation),
            host: super::name(&format!("host-{name}")),
            cpus: 2,
            fds: 20_000,
            version: crate::version(),
            ..AgentFacts::default()
        };
        let subjects = GroupSubjects::new("test").expect("a name");
        let mut kernel = KernelCounters::default();
        kernel.set(Metric::TCPEXT_LISTEN_OVERFLOWS, 1_000);
        Self {
            agent: Agent::new(facts, subjects),
            ahead_us,
            is_paused: false,
            has_busy_core: false,
            measured: Vec::new(),
            reports_planned: 20,
            kernel,
            prepared: 0,
            said: Vec::new(),
            events: Vec::new(),
            load: None,
            prng: Prng::new(seed),
        }
    }

    /// Returns the time of its clock.
    pub(super) fn clock(&self, now: Instant) -> Instant {
        Instant::from_nanos(now.as_nanos().saturating_add_signed(self.ahead_us * 1_000))
    }

    /// Sets its clock.
    pub(super) fn step_clock(&mut self, by_us: i64) {
        self.ahead_us += by_us;
    }

    pub(super) fn take(&mut self, subject: &str, payload: &[u8], now: Instant, out: Publish<'_>) {
        let now = self.clock(now);
        self.agent.on_message(subject, payload, now, out);
    }

    /// Lets its first core count more than any core can.
    pub(super) fn lie(&mut self) {
        if let Some(load) = &mut self.load {
            load.cores[0].counters.messages_sent = u64::MAX;
        }
    }

    /// Does what is due.
    pub(super) fn turn(&mut self, now: Instant, out: Publish<'_>) {
        let now = self.clock(now);
        while let Some(action) = self.agent.next_action() {
            match action {
                AgentAction::Prepare(order) => {
                    self.prepared += 1;
                    let cores = (0..order.share.cores()).map(|core| CoreStats::new(core, 1));
                    let cores = cores.collect();
                    self.load = Some(Load { cores, start_at: None, report_at: Instant::FAR });
                    self.agent.ready(Readiness::default());
                }
                AgentAction::Start(order) => {
                    let start_at = Instant::from_nanos(order.at_us * 1_000);
                    match &mut self.load {
                        Some(load) if start_at > now => {
                            load.start_at = Some(start_at);
                            load.report_at = start_at + INTERVAL;
                        }
                        _ => self.agent.failed("its start was ordered too late".into(), now),
                    }
                }
                AgentAction::Abandon => self.load = None,
                AgentAction::CutShort => self.cut_short(now),
                AgentAction::Say(note) => self.said.push(note),
                AgentAction::Steer(_) | AgentAction::Hear(_) => {}
            }
        }
        if self.load.as_ref().is_some_and(|load| load.report_at <= now) {
            self.report(now);
        }
        self.agent.tick(now, out);
    }

    /// Ends the load, as a process that is asked to stop it does.
    fn cut_short(&mut self, now: Instant) {
        if self.load.as_ref().is_some_and(|load| load.report_at < Instant::FAR) {
            self.reports_planned = self.measured.len() + 1;
            self.events.push(RunEventKind::Interrupted { by: STOPPED_BY.to_owned() });
            self.report(now);
        }
    }

    fn report(&mut self, now: Instant) {
        let Some(Load { cores, start_at: Some(start_at), report_at }) = &mut self.load else {
            return;
        };
        let mut measured = ReportSums::default();
        let answering = cores.len() - usize::from(self.has_busy_core);
        for core in &mut cores[..answering] {
            *core = core.totals();
            core.taken_at = now;
            let connects = self.prng.below(30);
            for _ in 0..connects {
                core.times[Operation::Connect].record_us(1 + self.prng.below(5_000));
            }
            core.counters.connects_ok += connects;
            core.counters.users_started += connects;
            core.counters.users_active = 3;
            measured.latencies += connects;
        }
        measured.connects = cores.iter().map(|core| core.counters.connects_ok).sum();
        self.measured.push(measured);
        while *report_at <= now {
            *report_at += INTERVAL;
        }
        let overflows = self.kernel.get(Metric::TCPEXT_LISTEN_OVERFLOWS).unwrap_or_default();
        self.kernel.set(Metric::TCPEXT_LISTEN_OVERFLOWS, overflows + 1);
        let is_last = self.measured.len() == self.reports_planned;
        if is_last {
            cores.iter_mut().for_each(|core| core.counters.users_active = 0);
            *report_at = Instant::FAR;
        }
        let report = LoadReport {
            at_us: now.micros_since(*start_at),
            start_nanos: start_at.as_nanos(),
            cores: cores[..answering].to_vec(),
            kernel: self.kernel.clone(),
            is_last,
            events: std::mem::take(&mut self.events),
            ..LoadReport::default()
        };
        self.agent.report(report, now);
    }
}

const INTERVAL: Duration = Duration::from_secs(1);
