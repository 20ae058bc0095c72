//! The process of an agent: connects the protocol with a bus, a clock and a load.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use throng_base::Instant;
use throng_bus::{Bus, BusError, BusMonitor, BusSubscription, Name};
use throng_driver::{Clock, utc_now};
use throng_load::peers::bounds::PeerBounds;
use throng_load::run::{CommonStart, RunningLoad};
use throng_measure::RunEventKind;
use throng_run::recorder::{KernelProbe, LiveKernel};

use crate::agent::Agent;
use crate::agent_action::AgentAction;
use crate::agent_calibration::FirstCalibration;
use crate::agent_note::{AgentLog, AgentNote};
use crate::allowed_targets::AllowedTargets;
use crate::message::{AgentFacts, LoadReport, RunKey, RunOrder, StartOrder, Steering};
use crate::preparation::{Prepared, prepare};
use crate::request::{AgentAnswer, AgentWish, Answer, Request};
use crate::subjects::GroupSubjects;
use crate::within::{self, REQUEST_BYTES_MAX};

/// The process of an agent.
pub struct AgentProcess {
    agent: Agent,
    subjects: GroupSubjects,
    bus: Arc<dyn Bus>,
    questions: BusSubscription,
    orders: BusSubscription,
    requests: BusSubscription,
    log: AgentLog,
    /// The process that has asked this one to end.
    end_asker: Option<Name>,
    /// True if the load that runs is ramped down because this process ends.
    is_cut_short: bool,
    /// Source addresses of this machine's connections; the usual ones if there are none.
    sources: Vec<IpAddr>,
    /// Targets that it loads, whatever an order says.
    targets: AllowedTargets,
    /// What goes on until the first run.
    calibration: Option<FirstCalibration>,
    work: Work,
}

/// What the process does.
enum Work {
    Idle,
    /// Another thread prepares the run.
    Preparing {
        prepared: Receiver<Result<Prepared, String>>,
        stop: Arc<AtomicBool>,
    },
    Ready(Box<Prepared>),
    Running(Box<RunningPart>),
}

/// The agent's part of a run.
struct RunningPart {
    load: RunningLoad,
    /// What its cores can hear of others.
    bounds: PeerBounds,
    kernel: LiveKernel,
    start_at: Instant,
    interval: Duration,
    /// The end of the interval.
    report_at: Instant,
    is_paused: bool,
    /// True once its users leave.
    is_leaving: bool,
    /// What happened beside the load, for the next report.
    events: Vec<RunEventKind>,
    /// CPU time of the process when the run began, in user mode and in the kernel: an agent makes
    /// many runs.
    cpu_us_before: Option<(u64, u64)>,
}

impl AgentProcess {
    /// Connects an agent with its group.
    ///
    /// # Errors
    /// The bus is away.
    pub fn new(
        facts: AgentFacts,
        subjects: GroupSubjects,
        bus: Arc<dyn Bus>,
        sources: Vec<IpAddr>,
    ) -> Result<Self, BusError> {
        let questions = bus.subscribe(&subjects.questions())?;
        let orders = bus.subscribe(&subjects.to_agent(&facts.name))?;
        let requests = bus.subscribe(&subjects.requests(&facts.name))?;
        Ok(Self {
            agent: Agent::new(facts, subjects.clone()),
            subjects,
            bus,
            questions,
            orders,
            requests,
            log: AgentLog::default(),
            end_asker: None,
            is_cut_short: false,
            sources,
            targets: AllowedTargets::default(),
            calibration: None,
            work: Work::Idle,
        })
    }

    /// Sets the targets that the agent loads [default: those that need no permission on its
    /// machine]. No order overrides it.
    #[must_use]
    pub fn with_targets(mut self, targets: AllowedTargets) -> Self {
        self.targets = targets;
        self
    }

    /// Begins to measure what the machine can do at most, for about `length`. The agent tells it
    /// once it is known. A run that comes before that ends the measuring.
    #[must_use]
    pub fn calibrating(mut self, length: Duration) -> Self {
        self.calibration = FirstCalibration::start(self.agent.facts(), length);
        self
    }

    /// Works until `is_ended` says so, or another process asks it to end; gives `note` what
    /// happens. A run that goes on is ramped down then, and delivered as far as that takes no
    /// longer than [`END_TIMEOUT`].
    pub fn work(&mut self, is_ended: impl Fn() -> bool, mut note: impl FnMut(AgentNote)) {
        let mut end_at: Option<Instant> = None;
        let mut bus_monitor = BusMonitor::new();
        let mut news = vec![self.joined()];
        loop {
            for it in news.drain(..) {
                self.log.add(&utc_now(), &it.to_string());
                note(it);
            }
            let now = Clock.now();
            if end_at.is_none() && (is_ended() || self.end_asker.is_some()) {
                end_at = Some(now + END_TIMEOUT);
                self.is_cut_short = matches!(self.work, Work::Running(_));
                self.steer(Steering::RampDown);
                self.drop_what_has_not_begun(now);
                let asker = self.end_asker.as_ref().map(Name::to_string);
                news.extend(asker.map(AgentNote::AskedToEnd));
            }
            if end_at.is_some_and(|at| at <= now || !self.has_work()) {
                break;
            }
            self.receive(TURN);
            while let Some(action) = self.agent.next_action() {
                self.act(action, &mut |it| news.push(it));
            }
            self.proceed(&mut |it| news.push(it));
            let bus = Arc::clone(&self.bus);
            news.extend(bus_monitor.changes(&*bus).into_iter().map(AgentNote::Bus));
            self.agent
                .tick(Clock.now(), &mut |subject, bytes| bus.publish(subject, &bytes).is_ok());
        }
        if let Some(calibration) = self.calibration.take() {
            _ = calibration.end();
        }
        news.into_iter().for_each(note);
        if let Some(asker) = &self.end_asker {
            self.answer(asker, AgentAnswer::Ended);
        }
    }

    /// Drops a load whose beginning is still to come.
    fn drop_what_has_not_begun(&mut self, now: Instant) {
        if let Work::Running(part) = &self.work
            && now < part.start_at
        {
            self.work = Work::Idle;
            self.is_cut_short = false;
            self.agent.failed("it was ended before its load began".into(), now);
        }
    }

    fn joined(&self) -> AgentNote {
        let facts = self.agent.facts();
        let (agent, group) = (facts.name.to_string(), self.subjects.group().to_owned());
        AgentNote::Joined { agent, group, cpus: facts.cpus }
    }

    /// Reports whether a load runs, or something is not delivered.
    fn has_work(&self) -> bool {
        matches!(self.work, Work::Running(_)) || self.agent.is_delivering(Clock.now())
    }

    /// Takes the messages that come within `patience`.
    fn receive(&mut self, patience: Duration) {
        let bus = Arc::clone(&self.bus);
        let mut publish = |subject: &str, bytes: Vec<u8>| bus.publish(subject, &bytes).is_ok();
        // Questions are answered at once: the time that one waits makes the offset less certain.
        let mut question = self.questions.next_within(patience);
        while let Ok(Some(message)) = question {
            let now = Clock.now();
            self.agent.on_message(&message.subject, &message.payload, now, &mut publish);
            question = self.questions.try_next();
        }
        while let Ok(Some(message)) = self.orders.try_next() {
            let now = Clock.now();
            self.agent.on_message(&message.subject, &message.payload, now, &mut publish);
        }
        while let Ok(Some(message)) = self.requests.try_next() {
            self.on_request(&message.payload);
        }
    }

    /// Takes a request of another process. What is no request to this process is ignored.
    fn on_request(&mut self, payload: &[u8]) {
        let request = within::read(payload, REQUEST_BYTES_MAX);
        let Ok(Request { asker, incarnation, wish }) = request else { return };
        if incarnation != self.agent.facts().incarnation {
            return;
        }
        let answer = match wish {
            AgentWish::Log { lines_max } => AgentAnswer::Log(self.log.last(lines_max)),
            AgentWish::End { force } => self.on_end(&asker, force),
            AgentWish::Stop { run } => self.agent.stop(&run, Clock.now()),
        };
        self.answer(&asker, answer);
    }

    /// Ends, unless that would cost a run or its results and `force` is false.
    fn on_end(&mut self, asker: &Name, force: bool) -> AgentAnswer {
        if !force && self.end_asker.is_none() {
            if let Some(RunKey { run, .. }) = self.agent.run() {
                return AgentAnswer::Busy { run: run.clone() };
            }
            if let Some(RunKey { run, .. }) = self.agent.undelivered() {
                return AgentAnswer::Keeps { run: run.clone() };
            }
        }
        self.end_asker = Some(asker.clone());
        AgentAnswer::Ending
    }

    fn answer(&self, asker: &str, answer: AgentAnswer) {
        let incarnation = self.agent.facts().incarnation.clone();
        let bytes = serde_json::to_vec(&Answer { incarnation, answer }).expect("lines are JSON");
        // An answer that is lost is asked for again.
        let subject = self.subjects.answer(asker, &self.agent.facts().name);
        _ = self.bus.publish(&subject, &bytes);
    }

    fn act(&mut self, action: AgentAction, note: &mut impl FnMut(AgentNote)) {
        match action {
            AgentAction::Prepare(order) => {
                let run = self.agent.run().map(|key| key.run.to_string()).unwrap_or_default();
                note(AgentNote::Preparing(run));
                self.work = self.prepare(*order);
            }
            AgentAction::Start(order) => self.start(&order, note),
            AgentAction::Steer(steering) => self.steer(steering),
            AgentAction::Hear(orders) => {
                let now = Clock.now();
                let Work::Running(part) = &self.work else { return };
                let since = now.since(part.start_at);
                let wrong = orders.iter().find_map(|order| part.bounds.check(order, since).err());
                match wrong {
                    None => orders.into_iter().for_each(|order| part.load.hear(order)),
                    Some(why) => {
                        if let Some(action) = self.agent.refuse(&why, now) {
                            self.act(action, note);
                        }
                    }
                }
            }
            AgentAction::Abandon => {
                // A load that still runs ends with its cores.
                if let Work::Preparing { stop, .. } = &self.work {
                    stop.store(true, Relaxed);
                }
                self.work = Work::Idle;
                note(AgentNote::Idle);
            }
            AgentAction::CutShort => {
                self.drop_what_has_not_begun(Clock.now());
                // A load whose plan is over is complete.
                if let Work::Running(part) = &mut self.work
                    && !part.is_leaving
                {
                    part.events.push(RunEventKind::Interrupted { by: STOPPED_BY.to_owned() });
                }
                self.steer(Steering::RampDown);
            }
            AgentAction::Say(it) => note(it),
        }
    }

    fn prepare(&mut self, order: RunOrder) -> Work {
        let (done, prepared) = mpsc::channel();
        let (stop, sources) = (Arc::<AtomicBool>::default(), self.sources.clone());
        let targets = self.targets.clone();
        let is_stopped = Arc::clone(&stop);
        let first = self.calibration.take();
        let run = move || {
            // Two at a time would disturb each other.
            if let Some(first) = first {
                _ = first.end();
            }
            _ = done.send(prepare(&order, sources, &targets, is_stopped));
        };
        // Without a thread, the channel ends, which is an error of its own.
        _ = std::thread::Builder::new().name("prepare".into()).spawn(run);
        Work::Preparing { prepared, stop }
    }

    fn start(&mut self, order: &StartOrder, note: &mut impl FnMut(AgentNote)) {
        let Work::Ready(prepared) = std::mem::replace(&mut self.work, Work::Idle) else {
            return self.agent.failed("it was started before it was ready".into(), Clock.now());
        };
        let start_at = Instant::from_nanos(order.at_us.saturating_mul(1_000));
        let now = Clock.now();
        if start_at < now {
            let late = now.since(start_at);
            return self.agent.failed(format!("its start was ordered {late:.1?} too late"), now);
        }
        note(AgentNote::Starting(start_at.since(now)));
        let Prepared { mut scenario, mut plan, share, interval, kernel, .. } = *prepared;
        plan.give_setup(&mut scenario, &order.setup);
        let bounds = PeerBounds::new(share, plan.program().cues());
        plan.begin_together(CommonStart { at: start_at, run: order.run });
        match RunningLoad::start(plan) {
            Ok(load) => {
                let kernel = kernel.open();
                let report_at = start_at;
                let part = RunningPart {
                    load,
                    bounds,
                    kernel,
                    start_at,
                    interval,
                    report_at,
                    is_paused: false,
                    is_leaving: false,
                    events: Vec::new(),
                    cpu_us_before: None,
                };
                self.work = Work::Running(part.into());
            }
            Err(error) => self.agent.failed(error.to_string(), now),
        }
    }

    fn steer(&mut self, steering: Steering) {
        let Work::Running(part) = &mut self.work else { return };
        match steering {
            Steering::AddUsers(count) => part.load.add_users(count),
            Steering::StopUsers(count) => part.load.stop_users(count),
            Steering::Pause => part.load.pause(),
            Steering::Resume => part.load.resume(),
            Steering::RampDown => part.load.ramp_down(),
        }
        match steering {
            Steering::Pause => part.is_paused = true,
            Steering::Resume => part.is_paused = false,
            _ => {}
        }
    }

    /// Goes on with the work: takes what is prepared, and reports what is measured.
    fn proceed(&mut self, note: &mut impl FnMut(AgentNote)) {
        let now = Clock.now();
        if let Some(first) = self.calibration.take_if(|first| first.is_over()) {
            match first.end() {
                Ok(calibration) => {
                    note(AgentNote::Calibrated(calibration.clone()));
                    self.agent.set_calibration(calibration);
                }
                Err(why) => note(AgentNote::NotCalibrated(why)),
            }
        }
        match &mut self.work {
            Work::Idle | Work::Ready(_) => {}
            Work::Preparing { prepared, .. } => {
                let done = match prepared.try_recv() {
                    Err(TryRecvError::Empty) => return,
                    Err(TryRecvError::Disconnected) => Err("its preparation panicked".to_owned()),
                    Ok(done) => done,
                };
                match done {
                    Ok(prepared) => {
                        note(AgentNote::Ready);
                        if let Some(calibration) = prepared.calibration.clone() {
                            self.agent.set_calibration(calibration);
                        }
                        self.agent.ready(prepared.readiness.clone());
                        self.work = Work::Ready(prepared.into());
                    }
                    Err(why) => {
                        note(AgentNote::CannotRun(why.clone()));
                        self.agent.cannot_run(why);
                        self.work = Work::Idle;
                    }
                }
            }
            Work::Running(part) => {
                let messages = part.load.take_peer_messages();
                if !messages.is_empty() {
                    self.agent.tell_peers(messages);
                }
                if now < part.report_at {
                    return;
                }
                let report = part.report(now);
                let is_last = report.is_last;
                if is_last && self.is_cut_short {
                    // Before the last report, which would end the run as if it were complete.
                    self.agent.failed("it was ended before its load was over".into(), now);
                }
                self.agent.report(report, now);
                let Work::Running(part) = &self.work else { return };
                if part.load.is_broken() {
                    let why = "a core of its generator ended unexpectedly";
                    self.agent.failed(why.into(), now);
                } else if !is_last {
                    return;
                }
                self.is_cut_short = false;
                note(AgentNote::Ended);
                if let Work::Running(part) = std::mem::replace(&mut self.work, Work::Idle) {
                    part.load.join();
                }
            }
        }
    }
}

impl RunningPart {
    /// Ends the interval.
    fn report(&mut self, now: Instant) -> LoadReport {
        let mut cores = Vec::new();
        let interval = self.load.snapshot_of_cores(|stats| cores.push(stats.clone()));
        self.is_leaving = interval.is_leaving();
        let mut process = interval.process;
        let now_us = (process.cpu_user_us, process.cpu_system_us);
        let (user_us, system_us) = *self.cpu_us_before.get_or_insert(now_us);
        process.cpu_user_us = process.cpu_user_us.saturating_sub(user_us);
        process.cpu_system_us = process.cpu_system_us.saturating_sub(system_us);
        let is_first_error = |event: &RunEventKind| matches!(event, RunEventKind::FirstError(_));
        let mut events = self.load.events();
        events.append(&mut self.events);
        // The coordinator finds these among the stats.
        events.retain(|event| !is_first_error(event));
        let reading = self.kernel.sample();
        while self.report_at <= now {
            self.report_at += self.interval;
        }
        LoadReport {
            // The agent counts them.
            number: 0,
            at_us: now.micros_since(self.start_at),
            start_nanos: self.start_at.as_nanos(),
            cores,
            paused: self.is_paused,
            process,
            cpu_us_per_core: interval.cpu_us_per_core,
            machine: reading.machine,
            kernel: reading.counters,
            programs: reading.programs,
            events,
            is_last: self.load.is_finished(),
        }
    }
}

/// The command of another process that ends a run without its coordinator.
pub(crate) const STOPPED_BY: &str = "throng fleet stop";
/// Time for which the process waits for a message before it looks at its other work.
const TURN: Duration = Duration::from_millis(5);
/// Time in which a process that was asked to end ramps its load down and delivers.
pub const END_TIMEOUT: Duration = Duration::from_secs(15);
