//! The coordinator's side of the protocol. Pure: time and messages are arguments.

use std::collections::BTreeMap;
use std::time::Duration;

use throng_base::Instant;
use throng_load::peers::{PeerMessage, PeerOrder};
use throng_load::schedule::MachineShare;

use crate::agent::Publish;
use crate::clock_offset::ClockOffset;
use crate::envelope::{decode, encode};
use crate::link::Link;
use crate::message::{
    AgentFacts, AgentMessage, Envelope, Hello, LoadReport, Order, Question, Readiness, RunKey,
    RunOrder, StartOrder, Steering,
};
use crate::subjects::GroupSubjects;

/// A coordinator: it finds the agents of its group, orders some of them to make a run, and takes
/// their reports.
#[derive(Debug)]
pub struct Coordinator {
    key: RunKey,
    subjects: GroupSubjects,
    known: BTreeMap<String, KnownAgent>,
    members: Vec<Member>,
}

/// An agent that has said who it is.
#[derive(Clone, Debug)]
pub struct KnownAgent {
    /// What it said last.
    pub hello: Hello,
    /// How far its clock is from this one, once it has answered a question.
    pub offset: Option<ClockOffset>,
    /// The moment at which it was heard last.
    pub heard: Instant,
    /// Another process that had the same name at the same time.
    pub rival: Option<AgentFacts>,
}

/// An agent that makes a part of the run.
#[derive(Debug)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// What it said about itself.
    pub facts: AgentFacts,
    /// Its cores among those of all members.
    pub share: MachineShare,
    /// What is known of it.
    pub state: MemberState,
    /// The beginning of the run on the clock of this machine, and how wrong it may be there.
    pub offset: ClockOffset,
    link: Link,
    heard: Instant,
}

/// The state of a member.
#[derive(Clone, Debug, PartialEq)]
pub enum MemberState {
    /// It gets ready.
    Preparing,
    /// It is ready.
    Ready(Box<Readiness>),
    /// It does not make the run, for this reason.
    Refused(String),
    /// It runs.
    Running,
    /// Its load has ended, and everything is here.
    Ended,
    /// Its load has ended unexpectedly, for this reason.
    Failed(String),
}

/// What a member says while it runs.
#[derive(Clone, Debug)]
pub enum MemberNews {
    /// What it has measured.
    Report(Box<LoadReport>),
    /// What its cores say to those of others.
    Peers(Vec<PeerMessage>),
}

impl Coordinator {
    /// Creates a coordinator that knows no agent.
    pub fn new(key: RunKey, subjects: GroupSubjects) -> Self {
        Self { key, subjects, known: BTreeMap::new(), members: Vec::new() }
    }

    /// Returns the run.
    pub fn key(&self) -> &RunKey {
        &self.key
    }

    /// Returns the agents of the group, by their names.
    pub fn known(&self) -> &BTreeMap<String, KnownAgent> {
        &self.known
    }

    /// Returns the agents that make the run, in the order of their cores.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Asks all agents who they are, and what time it is.
    pub fn ask(&self, now: Instant, publish: Publish<'_>) {
        let asker = self.key.coordinator.clone();
        let question = Question { asker, asked_us: now.as_nanos() / 1_000 };
        let bytes = serde_json::to_vec(&question).expect("a question is JSON");
        publish(&self.subjects.questions(), bytes);
    }

    /// Orders an agent to make a part of the run.
    ///
    /// # Panics
    /// It is not known, or has not told its time.
    pub fn prepare(&mut self, name: &str, order: RunOrder, now: Instant) {
        let known = &self.known[name];
        let mut link = Link::keeping();
        let share = order.share;
        link.send(&Order::Prepare(order.into()));
        let offset = known.offset.expect("it has told its time");
        let (facts, state) = (known.hello.facts.clone(), MemberState::Preparing);
        let name = name.to_owned();
        self.members.push(Member { name, facts, share, state, offset, link, heard: now });
    }

    /// Takes over an agent that makes this run for a coordinator that is gone. Returns the moment
    /// at which the run began; `None` if the agent has nothing of the run.
    pub fn resume(&mut self, name: &str, share: MachineShare, now: Instant) -> Option<Instant> {
        let mut link = Link::keeping();
        link.send(&Order::Resume);
        let known = self
            .known
            .get(name)
            .filter(|known| known.hello.busy.as_ref().is_some_and(|busy| busy.run == self.key.run));
        let offset = known.and_then(|known| known.offset);
        let started_us = known.and_then(|known| known.hello.started_us);
        let began = offset
            .zip(started_us)
            .map(|(offset, us)| Instant::from_nanos(offset.here(us).saturating_mul(1_000)));
        let state = match began {
            Some(_) => MemberState::Running,
            None => MemberState::Failed("it has nothing of this run".to_owned()),
        };
        let facts = known.map(|known| known.hello.facts.clone()).unwrap_or_default();
        let offset = offset.unwrap_or(ClockOffset { ahead_us: 0, error_us: 0 });
        let name = name.to_owned();
        self.members.push(Member { name, facts, share, state, offset, link, heard: now });
        began
    }

    /// Starts all members at the moment `at` of this machine's clock.
    pub fn start(&mut self, at: Instant, run: u64, setup: &[Vec<u8>]) {
        for member in &mut self.members {
            let at_us = member.offset.there(at.as_nanos() / 1_000);
            member.link.send(&Order::Start(StartOrder { at_us, run, setup: setup.to_vec() }));
            member.state = MemberState::Running;
        }
    }

    /// Changes the load of one member.
    pub fn steer(&mut self, member: usize, steering: Steering) {
        self.members[member].link.send(&Order::Steer(steering));
    }

    /// Tells cores of one member what those of others say.
    pub fn tell_peers(&mut self, member: usize, orders: Vec<PeerOrder>) {
        self.members[member].link.send(&Order::Peers(orders));
    }

    /// Takes a message that came under `subject`. Returns the news that came with it, each with the
    /// index of its member.
    pub fn on_message(
        &mut self,
        subject: &str,
        payload: &[u8],
        now: Instant,
    ) -> Vec<(usize, MemberNews)> {
        if subject == self.subjects.hellos() {
            if let Ok(hello) = serde_json::from_slice::<Hello>(payload) {
                self.on_hello(hello, now);
            }
            return Vec::new();
        }
        let Some((envelope, packet)) = decode(payload) else { return Vec::new() };
        let Envelope { key, agent, incarnation } = envelope;
        let from =
            |member: &Member| member.name == agent && member.facts.incarnation == incarnation;
        let Some(index) = self.members.iter().position(from).filter(|_| key == self.key) else {
            return Vec::new();
        };
        let member = &mut self.members[index];
        member.heard = now;
        let messages = member.link.on_packet(packet).unwrap_or_default();
        let news = messages.into_iter().filter_map(|message| member.on_message(&message));
        news.map(|news| (index, news)).collect()
    }

    /// Sends what is due.
    pub fn tick(&mut self, now: Instant, publish: Publish<'_>) {
        for member in &mut self.members {
            let subject = self.subjects.to_agent(&member.name);
            let envelope = Envelope {
                key: self.key.clone(),
                agent: member.name.clone(),
                incarnation: member.facts.incarnation.clone(),
            };
            member.link.send_due(now, |packet| publish(&subject, encode(&envelope, &packet)));
        }
    }

    /// Lets all agents forget what has arrived from them: it is written.
    pub fn keep(&mut self) {
        self.members.iter_mut().for_each(|member| member.link.keep());
    }

    /// Reports whether a member does not know yet that something of it was kept.
    pub fn has_unsaid(&self) -> bool {
        self.members.iter().any(|member| member.link.has_unsaid())
    }

    /// Reports whether a member has been silent for [`AGENT_LOST_AFTER`] although its load has not
    /// ended, or another process has its name now.
    pub fn is_lost(&self, member: usize, now: Instant) -> bool {
        let member = &self.members[member];
        let is_over = matches!(member.state, MemberState::Ended | MemberState::Failed(_));
        let known = self.known.get(&member.name);
        let is_other =
            |known: &KnownAgent| known.hello.facts.incarnation != member.facts.incarnation;
        !is_over && (now.since(member.heard) > AGENT_LOST_AFTER || known.is_some_and(is_other))
    }

    fn on_hello(&mut self, hello: Hello, now: Instant) {
        let Hello { facts, busy, answers, now_us, .. } = &hello;
        let asked = answers.as_ref().filter(|question| question.asker == self.key.coordinator);
        let offset = asked.and_then(|question| {
            ClockOffset::of_answer(question.asked_us, *now_us, now.as_nanos() / 1_000)
        });
        for member in self.members.iter_mut().filter(|member| member.name == facts.name) {
            let is_taken = busy.as_ref().is_some_and(|run| *run != self.key);
            if is_taken && member.state == MemberState::Preparing {
                let other = busy.as_ref().map_or("", |run| run.run.as_str());
                member.state = MemberState::Refused(format!("it makes the run {other} now"));
            }
        }
        let known = self.known.get(&facts.name);
        let is_same = |known: &&KnownAgent| known.hello.facts.incarnation == facts.incarnation;
        let before = known.filter(is_same).and_then(|known| known.offset);
        let is_fresh = |known: &&KnownAgent| now.since(known.heard) < AGENT_LOST_AFTER;
        let rival = match known.filter(is_fresh) {
            Some(known) if !is_same(&known) => Some(known.hello.facts.clone()),
            Some(known) => known.rival.clone(),
            None => None,
        };
        let offset = match (before, offset) {
            (Some(before), Some(new)) => Some(before.better(new)),
            (before, new) => new.or(before),
        };
        let name = facts.name.clone();
        self.known.insert(name, KnownAgent { hello, offset, heard: now, rival });
    }
}

impl Member {
    /// Takes a message; returns what is new in it, beside the state of the member.
    fn on_message(&mut self, message: &[u8]) -> Option<MemberNews> {
        match serde_json::from_slice(message) {
            Ok(AgentMessage::Ready(readiness)) => self.state = MemberState::Ready(readiness),
            Ok(AgentMessage::CannotRun(why)) => self.state = MemberState::Refused(why),
            Ok(AgentMessage::Failed(why)) => self.state = MemberState::Failed(why),
            Ok(AgentMessage::Report(report)) => {
                if report.is_last {
                    self.state = MemberState::Ended;
                }
                return Some(MemberNews::Report(report));
            }
            Ok(AgentMessage::Peers(messages)) => return Some(MemberNews::Peers(messages)),
            Err(error) => {
                self.state = MemberState::Failed(format!("its message is not understood: {error}"));
            }
        }
        None
    }
}

/// Silence after which an agent counts as lost.
pub const AGENT_LOST_AFTER: Duration = Duration::from_secs(5);
