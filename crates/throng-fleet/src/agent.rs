//! An agent's side of the protocol. Pure: time and messages are arguments.

use std::collections::VecDeque;

use throng_base::Instant;
use throng_load::peers::PeerMessage;

use crate::agent_action::{AgentAction, Publish};
use crate::agent_note::AgentNote;
use crate::agent_run::{AgentRun, RunPlace};
use crate::envelope::decode;
use crate::link::KEEP_ALIVE;
use crate::message::{
    AgentCalibration, AgentFacts, AgentMessage, Envelope, HeldRun, Hello, LoadReport, Question,
    Readiness, RunKey,
};
use crate::request::AgentAnswer;
use crate::run_shelf::RunShelf;
use crate::subjects::GroupSubjects;
use crate::within::{self, REQUEST_BYTES_MAX};

/// An agent: it says who it is, takes the orders of one coordinator at a time, and delivers what it
/// measured.
///
/// It goes on with a run whose coordinator is away. A run that has ended and is delivered, or whose
/// coordinator has been silent for 15 s, goes to a shelf of the last four: the agent is free for
/// another run, and delivers what is on the shelf to its coordinator, or to one that takes the run
/// over, for an hour. An agent that only got ready for a run forgets it when the coordinator is
/// silent for 15 s.
#[derive(Debug)]
pub struct Agent {
    facts: AgentFacts,
    calibration: Option<AgentCalibration>,
    subjects: GroupSubjects,
    run: Option<AgentRun>,
    shelf: RunShelf,
    /// The runs that were forgotten last, at most [`LEFT_RUNS_MAX`]: their late packets begin
    /// nothing.
    left: VecDeque<RunKey>,
    hello_due: Instant,
    actions: VecDeque<AgentAction>,
}

impl Agent {
    /// Creates an idle agent.
    pub fn new(facts: AgentFacts, subjects: GroupSubjects) -> Self {
        Self {
            facts,
            calibration: None,
            subjects,
            run: None,
            shelf: RunShelf::default(),
            left: VecDeque::new(),
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
        self.run.as_ref().map(AgentRun::key)
    }

    /// Returns a run that has ended and of which a coordinator has not fetched everything.
    pub fn undelivered(&self) -> Option<&RunKey> {
        self.shelf.undelivered()
    }

    /// Reports whether a coordinator is there that has not acknowledged everything.
    pub fn is_delivering(&self, now: Instant) -> bool {
        self.run.as_ref().is_some_and(|run| !run.is_delivered()) || self.shelf.is_delivering(now)
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
            if let Ok(question) = within::read::<Question>(payload, REQUEST_BYTES_MAX) {
                self.say_hello(Some(question), now, publish);
            }
            return;
        }
        let Some((envelope, packet)) = decode(payload) else { return };
        let Envelope { key, agent, incarnation } = envelope;
        let is_mine = agent == self.facts.name && incarnation == self.facts.incarnation;
        if !is_mine || self.left.contains(&key) {
            return;
        }
        let is_busy = self.run.is_some();
        let held = match &mut self.run {
            Some(run) if run.key().run == key.run => Some(run),
            _ => self.shelf.find(&key.run),
        };
        let actions = match held {
            Some(run) => run.admits(&key, now).then(|| run.on_packet(packet, now)),
            None if is_busy => None,
            None => Some(self.run.insert(AgentRun::new(key, now)).on_packet(packet, now)),
        };
        match actions {
            Some(actions) => self.actions.extend(actions),
            // It learns from this who has the agent.
            None => self.say_hello(None, now, publish),
        }
    }

    /// Sends what is due, and puts away a run that is over.
    pub fn tick(&mut self, now: Instant, publish: Publish<'_>) {
        if self.hello_due <= now {
            self.say_hello(None, now, publish);
        }
        let said = self.shelf.send_due(&self.facts, &self.subjects, now, publish);
        self.actions.extend(said);
        for run in self.shelf.take_expired(now) {
            self.forget(&run, "it ended an hour ago");
        }
        let Some(run) = &mut self.run else { return };
        run.send_due(&self.facts, &self.subjects, now, publish);
        let place = run.place(now);
        let Some(run) = self.run.take_if(|_| place != RunPlace::Active) else { return };
        self.actions.push_back(AgentAction::Abandon);
        self.hello_due = now;
        if place == RunPlace::Nowhere {
            return self.leave(run.key().clone());
        }
        if !run.is_delivered() {
            let note = AgentNote::Kept(run.key().run.to_string());
            self.actions.push_back(AgentAction::Say(note));
        }
        if let Some(gone) = self.shelf.add(run) {
            self.forget(&gone, "later runs take its place");
        }
    }

    /// Stops the agent's part of a run whose coordinator is away. What it has measured stays for a
    /// successor; a run whose load has not begun is forgotten.
    pub(crate) fn stop(&mut self, run: &str, now: Instant) -> AgentAnswer {
        let Some(made) = self.run.as_mut().filter(|made| made.key().run == run) else {
            return AgentAnswer::NotMade;
        };
        if !made.is_orphan(now) {
            return AgentAnswer::Coordinated { coordinator: made.key().coordinator.clone() };
        }
        let answer = made.stop(now);
        if answer == AgentAnswer::Stopping {
            self.actions.push_back(AgentAction::CutShort);
        }
        answer
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
    pub fn report(&mut self, report: LoadReport, now: Instant) {
        if let Some(run) = &mut self.run {
            run.report(report, now);
        }
    }

    /// Says what the cores have said to those of other agents.
    pub fn tell_peers(&mut self, messages: Vec<PeerMessage>) {
        self.send(&AgentMessage::Peers(messages));
    }

    /// Says why the load has ended before its time.
    pub fn failed(&mut self, why: String, now: Instant) {
        if let Some(run) = &mut self.run {
            run.fail(why, now);
        }
    }

    /// Gives the run up, because its coordinator says what none can say. Returns what the process
    /// has to do.
    pub(crate) fn refuse(&mut self, why: &str, now: Instant) -> Option<AgentAction> {
        self.run.as_mut().and_then(|run| run.refuse(why, now))
    }

    fn send(&mut self, message: &AgentMessage) {
        if let Some(run) = &mut self.run {
            run.send(message);
        }
    }

    /// Forgets a run that was on the shelf.
    fn forget(&mut self, run: &AgentRun, why: &'static str) {
        if !run.is_delivered() {
            let note = AgentNote::Forgotten { run: run.key().run.to_string(), why };
            self.actions.push_back(AgentAction::Say(note));
        }
        self.leave(run.key().clone());
    }

    fn leave(&mut self, key: RunKey) {
        if self.left.len() == LEFT_RUNS_MAX {
            self.left.pop_front();
        }
        self.left.push_back(key);
    }

    fn say_hello(&mut self, answers: Option<Question>, now: Instant, publish: Publish<'_>) {
        let busy: Option<HeldRun> = self.run.as_ref().map(|run| run.describe(now));
        let hello = Hello {
            facts: self.facts.clone(),
            calibration: self.calibration.clone(),
            busy,
            kept: self.shelf.describe(now),
            answers,
            now_us: now.as_nanos() / 1_000,
        };
        let bytes = serde_json::to_vec(&hello).expect("a hello is JSON");
        publish(&self.subjects.hello(&self.facts.name), bytes);
        self.hello_due = now + KEEP_ALIVE;
    }
}

/// Forgotten runs of which late packets are ignored: more than may be forgotten while a packet is
/// on its way.
const LEFT_RUNS_MAX: usize = 8;
