//! An agent's side of the protocol. Pure: time and messages are arguments.

use std::collections::VecDeque;
use std::time::Duration;

use throng_base::Instant;
use throng_load::peers::{PeerMessage, PeerOrder};

use crate::envelope::{decode, encode};
use crate::link::{KEEP_ALIVE, Link};
use crate::message::{
    AgentCalibration, AgentFacts, AgentMessage, Envelope, Hello, LoadReport, Order, Question,
    Readiness, RunKey, RunOrder, StartOrder, Steering,
};
use crate::subjects::GroupSubjects;

/// Publishes a message under a subject. Returns false if the bus refuses it.
pub type Publish<'a> = &'a mut dyn FnMut(&str, Vec<u8>) -> bool;

/// An agent: it says who it is, takes the orders of one coordinator at a time, and delivers what it
/// measured.
///
/// It goes on with a run whose coordinator is away, and keeps what it measured until it is
/// acknowledged, at most for an hour. The totals of its last run it keeps until the next one
/// begins, for a coordinator that takes the run over. An agent that only got ready for a run
/// forgets it when the coordinator is silent for 15 s.
#[derive(Debug)]
pub struct Agent {
    facts: AgentFacts,
    calibration: Option<AgentCalibration>,
    subjects: GroupSubjects,
    run: Option<AgentRun>,
    /// The last run, of which everything is delivered.
    kept: Option<AgentRun>,
    /// The run that was left last: its late packets begin nothing.
    left: Option<RunKey>,
    hello_due: Instant,
    actions: VecDeque<AgentAction>,
}

/// What the process of an agent has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentAction {
    /// Plan the run, check its limits and measure the machine; then call [`Agent::ready`] or
    /// [`Agent::cannot_run`].
    Prepare(Box<RunOrder>),
    /// Start the load; then call [`Agent::report`] at the end of each interval.
    Start(StartOrder),
    /// Change the load.
    Steer(Steering),
    /// Tell the cores what those of other agents say.
    Hear(Vec<PeerOrder>),
    /// Forget the run.
    Abandon,
}

#[derive(Debug)]
struct AgentRun {
    key: RunKey,
    link: Link,
    stage: Stage,
    /// The beginning of the load, in microseconds.
    started_us: Option<u64>,
    /// The last packet of the coordinator.
    heard: Instant,
    /// Reports so far.
    reports: u64,
    /// The last report, without what was measured in its interval.
    totals: Option<LoadReport>,
    /// Why the load has ended before its time.
    failure: Option<String>,
    /// Coordinators whose run this was before.
    superseded: Vec<String>,
    /// True until the coordinator that has taken the run over asks for the totals.
    is_asked_for_totals: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It gets ready, or is ready.
    Preparing,
    /// The load runs.
    Running,
    /// The load has ended at this moment, and not everything is delivered.
    Ended(Instant),
    /// The run will not begin.
    Abandoned,
}

impl Agent {
    /// Creates an idle agent.
    pub fn new(facts: AgentFacts, subjects: GroupSubjects) -> Self {
        Self {
            facts,
            calibration: None,
            subjects,
            run: None,
            kept: None,
            left: None,
            hello_due: Instant::ZERO,
            actions: VecDeque::new(),
        }
    }

    /// Returns the facts about the agent.
    pub fn facts(&self) -> &AgentFacts {
        &self.facts
    }

    /// Tells from now on what the agent can do at most.
    pub fn set_calibration(&mut self, calibration: AgentCalibration) {
        self.calibration = Some(calibration);
        self.hello_due = Instant::ZERO;
    }

    /// Returns the run that the agent makes.
    pub fn run(&self) -> Option<&RunKey> {
        self.run.as_ref().map(|run| &run.key)
    }

    /// Reports whether the agent has something that the coordinator has not acknowledged.
    pub fn has_undelivered(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !run.link.is_empty())
    }

    /// Returns what the process has to do next.
    pub fn next_action(&mut self) -> Option<AgentAction> {
        self.actions.pop_front()
    }

    /// Takes a message that came under `subject`. What is no message of this version is ignored.
    pub fn on_message(
        &mut self,
        subject: &str,
        payload: &[u8],
        now: Instant,
        publish: Publish<'_>,
    ) {
        if subject == self.subjects.questions() {
            if let Ok(question) = serde_json::from_slice::<Question>(payload) {
                self.say_hello(Some(question), now, publish);
            }
            return;
        }
        let Some((envelope, packet)) = decode(payload) else { return };
        let Envelope { key, agent, incarnation } = envelope;
        let is_mine = agent == self.facts.name && incarnation == self.facts.incarnation;
        if !is_mine || self.left.as_ref() == Some(&key) {
            return;
        }
        if self.run.is_none() {
            self.run = self.kept.take_if(|kept| kept.key.run == key.run);
        }
        if let Some(run) = self.run.as_mut().filter(|run| run.key != key) {
            if !run.may_change_to(&key, now) {
                // It learns from this who has the agent.
                self.say_hello(None, now, publish);
                return;
            }
            run.change_coordinator(key.clone());
        }
        let run = self.run.get_or_insert_with(|| AgentRun::new(key, now));
        run.heard = now;
        for message in run.link.on_packet(packet).unwrap_or_default() {
            let action = match serde_json::from_slice(&message) {
                Ok(Order::Prepare(order)) => {
                    self.kept = None;
                    AgentAction::Prepare(order)
                }
                Ok(Order::Start(order)) => {
                    run.stage = Stage::Running;
                    run.started_us = Some(order.at_us);
                    AgentAction::Start(order)
                }
                Ok(Order::Resume) => {
                    run.deliver_totals();
                    continue;
                }
                Ok(Order::Steer(steering)) => AgentAction::Steer(steering),
                Ok(Order::Peers(orders)) => AgentAction::Hear(orders),
                Ok(Order::Abandon) => {
                    if run.stage == Stage::Preparing {
                        run.stage = Stage::Abandoned;
                    }
                    continue;
                }
                Err(error) => {
                    let why = format!("it does not understand the coordinator: {error}");
                    run.link.send(&AgentMessage::CannotRun(why));
                    continue;
                }
            };
            self.actions.push_back(action);
        }
    }

    /// Sends what is due, and forgets a run that is over.
    pub fn tick(&mut self, now: Instant, publish: Publish<'_>) {
        if self.hello_due <= now {
            self.say_hello(None, now, publish);
        }
        let Some(run) = &mut self.run else { return };
        let subject = self.subjects.to_coordinator(&run.key.coordinator);
        let envelope = Envelope {
            key: run.key.clone(),
            agent: self.facts.name.clone(),
            incarnation: self.facts.incarnation.clone(),
        };
        run.link.send_due(now, |packet| publish(&subject, encode(&envelope, &packet)));
        if !run.is_over(now) {
            return;
        }
        self.left = Some(run.key.clone());
        self.kept = self.run.take().filter(|run| matches!(run.stage, Stage::Ended(_)));
        self.actions.push_back(AgentAction::Abandon);
        self.hello_due = now;
    }

    /// Says that the agent is ready for its run.
    pub fn ready(&mut self, readiness: Readiness) {
        self.send(&AgentMessage::Ready(readiness.into()));
    }

    /// Says why the agent cannot make its run.
    pub fn cannot_run(&mut self, why: String) {
        self.send(&AgentMessage::CannotRun(why));
    }

    /// Delivers what the load has measured. Gives the report its number.
    pub fn report(&mut self, mut report: LoadReport, now: Instant) {
        let Some(run) = &mut self.run else { return };
        run.reports += 1;
        report.number = run.reports;
        run.totals = Some(report.totals());
        let is_last = report.is_last;
        self.send(&AgentMessage::Report(report.into()));
        if is_last {
            self.end(now);
        }
    }

    /// Says what the cores have said to those of other agents.
    pub fn tell_peers(&mut self, messages: Vec<PeerMessage>) {
        self.send(&AgentMessage::Peers(messages));
    }

    /// Says why the load has ended before its time.
    pub fn failed(&mut self, why: String, now: Instant) {
        if let Some(run) = &mut self.run {
            run.failure = Some(why.clone());
        }
        self.send(&AgentMessage::Failed(why));
        self.end(now);
    }

    fn end(&mut self, now: Instant) {
        if let Some(run) = &mut self.run
            && !matches!(run.stage, Stage::Ended(_))
        {
            run.stage = Stage::Ended(now);
        }
    }

    fn send(&mut self, message: &AgentMessage) {
        if let Some(run) = &mut self.run {
            run.link.send(message);
        }
    }

    fn say_hello(&mut self, answers: Option<Question>, now: Instant, publish: Publish<'_>) {
        let latest = self.run.as_ref().or(self.kept.as_ref());
        let hello = Hello {
            facts: self.facts.clone(),
            calibration: self.calibration.clone(),
            busy: self.run().cloned(),
            keeps: self.kept.as_ref().map(|run| run.key.clone()),
            started_us: latest.and_then(|run| run.started_us),
            answers,
            now_us: now.as_nanos() / 1_000,
        };
        let bytes = serde_json::to_vec(&hello).expect("a hello is JSON");
        publish(&self.subjects.hellos(), bytes);
        self.hello_due = now + KEEP_ALIVE;
    }
}

impl AgentRun {
    fn new(key: RunKey, now: Instant) -> Self {
        Self {
            key,
            link: Link::new(),
            stage: Stage::Preparing,
            started_us: None,
            heard: now,
            reports: 0,
            totals: None,
            failure: None,
            superseded: Vec::new(),
            is_asked_for_totals: false,
        }
    }

    /// Reports whether the coordinator of `key` may take the run over.
    fn may_change_to(&self, key: &RunKey, now: Instant) -> bool {
        let is_orphan = match self.stage {
            Stage::Preparing | Stage::Abandoned => false,
            Stage::Running => now.since(self.heard) > COORDINATOR_SILENT_AFTER,
            // The one before has all of it, or is silent.
            Stage::Ended(_) => {
                self.link.is_empty() || now.since(self.heard) > COORDINATOR_SILENT_AFTER
            }
        };
        // One that comes back late does not get the run back.
        self.key.run == key.run && is_orphan && !self.superseded.contains(&key.coordinator)
    }

    fn change_coordinator(&mut self, key: RunKey) {
        let before = std::mem::replace(&mut self.key, key);
        self.superseded.push(before.coordinator);
        self.link.change_sender();
        self.is_asked_for_totals = true;
    }

    /// Delivers all totals to the coordinator that has taken the run over.
    fn deliver_totals(&mut self) {
        self.is_asked_for_totals = false;
        if let Some(totals) = &self.totals {
            self.link.send(&AgentMessage::Report(totals.clone().into()));
        }
        if let Some(why) = &self.failure {
            self.link.send(&AgentMessage::Failed(why.clone()));
        }
    }

    /// Reports whether there is nothing more to do for it.
    fn is_over(&self, now: Instant) -> bool {
        let is_silent = now.since(self.heard) > COORDINATOR_LOST_AFTER;
        match self.stage {
            Stage::Preparing => is_silent,
            Stage::Running => false,
            Stage::Ended(at) => {
                let is_delivered = self.link.is_empty() && (!self.is_asked_for_totals || is_silent);
                is_delivered || now.since(at) > RESULTS_KEPT
            }
            Stage::Abandoned => true,
        }
    }
}

/// Time without a word of the coordinator after which another one may take its run over.
const COORDINATOR_SILENT_AFTER: Duration = Duration::from_secs(3);
/// Time without a word of the coordinator after which an agent that is ready forgets the run.
const COORDINATOR_LOST_AFTER: Duration = Duration::from_secs(15);
/// Time for which an agent keeps the results of a run whose coordinator is away.
const RESULTS_KEPT: Duration = Duration::from_secs(3_600);
