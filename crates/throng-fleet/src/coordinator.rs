//! The coordinator's side of the protocol. Pure: time and messages are arguments.

use std::collections::BTreeMap;
use std::time::Duration;

use throng_base::Instant;
use throng_bus::Name;
use throng_load::peers::{AHEAD_MAX, PeerMessage, PeerOrder};
use throng_load::schedule::MachineShare;

use crate::agent_action::Publish;
use crate::clock_offset::ClockOffset;
use crate::envelope::{decode, encode};
use crate::known_agent::KnownAgent;
use crate::link::Link;
use crate::message::{
    AgentFacts, AgentMessage, Envelope, Hello, LoadReport, Order, Question, Readiness, RunKey,
    RunOrder, StartOrder, Steering,
};
use crate::names::KnownNames;
use crate::subjects::{GroupSubjects, speaker};
use crate::within::{self, CORE_MESSAGE_BYTES_MAX, HELLO_BYTES_MAX, MESSAGE_BYTES_MAX};

/// A coordinator: it finds the agents of its group, orders some of them to make a run, and takes
/// their reports.
#[derive(Debug)]
pub struct Coordinator {
    key: RunKey,
    subjects: GroupSubjects,
    known: KnownNames<KnownAgent>,
    members: Vec<Member>,
}

/// An agent that makes a part of the run.
#[derive(Debug)]
pub struct Member {
    /// Its name.
    pub name: Name,
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
    /// True while no process of it is known: the run was taken over while it was away.
    is_absent: bool,
    /// True once a message of it was refused: nothing that it says counts any more.
    is_refused: bool,
}

impl Member {
    fn new(
        name: Name,
        facts: AgentFacts,
        share: MachineShare,
        (state, offset, link): (MemberState, ClockOffset, Link),
        heard: Instant,
    ) -> Self {
        let (is_absent, is_refused) = (false, false);
        Self { name, facts, share, state, offset, link, heard, is_absent, is_refused }
    }
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
        Self { key, subjects, known: KnownNames::default(), members: Vec::new() }
    }

    /// Returns the run.
    pub fn key(&self) -> &RunKey {
        &self.key
    }

    /// Returns the agents of the group, by their names.
    pub fn known(&self) -> &BTreeMap<String, KnownAgent> {
        self.known.known()
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
        let known = self.known.get(name).expect("it is known");
        let share = order.share;
        let mut link = Link::keeping(message_bytes_max(share));
        let state = match link.try_send(&Order::Prepare(order.into())) {
            Ok(()) => MemberState::Preparing,
            Err(why) => MemberState::Refused(why),
        };
        let offset = known.offset.expect("it has told its time");
        let facts = known.hello.facts.clone();
        let name = facts.name.clone();
        self.members.push(Member::new(name, facts, share, (state, offset, link), now));
    }

    /// Takes over an agent that makes this run for a coordinator that is gone. Returns the moment
    /// at which the run began; `None` if the agent is away, or has nothing of the run: then it
    /// counts as lost until it says that it has.
    pub fn resume(&mut self, name: &str, share: MachineShare, now: Instant) -> Option<Instant> {
        let mut link = Link::keeping(message_bytes_max(share));
        link.send(&Order::Resume);
        let known = self.known.get(name).filter(|known| known.hello.has_of(&self.key.run));
        let offset = known.and_then(|known| known.offset);
        let part = known.and_then(|known| known.hello.part_of(&self.key.run));
        let started_us = part.and_then(|part| part.started_us);
        let began = offset
            .zip(started_us)
            .map(|(offset, us)| Instant::from_nanos(offset.here(us).saturating_mul(1_000)))
            .filter(|began| *began <= now + AHEAD_MAX);
        let is_absent = known.is_none();
        let facts = known.map(|known| known.hello.facts.clone()).unwrap_or_default();
        let offset = offset.unwrap_or(ClockOffset { ahead_us: 0, error_us: 0 });
        // No agent has a name that is none: it stays away.
        let (name, state) = (Name::new(name).unwrap_or_default(), MemberState::Running);
        let member = Member::new(name, facts, share, (state, offset, link), now);
        self.members.push(Member { is_absent, ..member });
        began
    }

    /// Orders all members to forget the run, which will not begin.
    pub fn abandon(&mut self) {
        self.members.iter_mut().for_each(|member| member.link.send(&Order::Abandon));
    }

    /// Reports whether a member has not received all orders.
    pub fn has_unheard(&self) -> bool {
        self.members.iter().any(|member| !member.link.is_empty())
    }

    /// Starts all members at the moment `at` of this machine's clock.
    pub fn start(&mut self, at: Instant, run: u64, setup: &[Vec<u8>]) {
        for member in &mut self.members {
            let known = self.known.get(&member.name);
            let known =
                known.filter(|known| known.hello.facts.incarnation == member.facts.incarnation);
            // What the last answers show: its clock may have drifted while it got ready.
            member.offset = known.and_then(|known| known.offset).unwrap_or(member.offset);
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
        if self.subjects.is_hello(subject) {
            if let Ok(hello) = within::read::<Hello>(payload, HELLO_BYTES_MAX)
                && hello.facts.name == speaker(subject)
            {
                self.on_hello(hello, now);
            }
            return Vec::new();
        }
        let Some((envelope, packet)) = decode(payload) else { return Vec::new() };
        let Envelope { key, agent, incarnation } = envelope;
        if agent != speaker(subject) {
            return Vec::new();
        }
        let from =
            |member: &Member| member.name == agent && member.facts.incarnation == incarnation;
        let Some(index) = self.members.iter().position(from).filter(|_| key == self.key) else {
            return Vec::new();
        };
        let member = &mut self.members[index];
        if member.is_refused {
            return Vec::new();
        }
        member.heard = now;
        let mut all = Vec::new();
        let outcome = member.link.on_packet(packet).and_then(|messages| {
            for message in messages {
                all.extend(member.on_message(&message)?.map(|news| (index, news)));
            }
            Ok(())
        });
        if let Err(why) = outcome {
            self.refuse(index, &why);
        }
        all
    }

    /// Gives a member up that has said what no agent can say. Its load ends, and nothing that it
    /// says counts from now on.
    pub fn refuse(&mut self, member: usize, why: &str) {
        let member = &mut self.members[member];
        member.is_refused = true;
        member.state = MemberState::Failed(format!("its message was refused: {why}"));
        member.link.send(&Order::Steer(Steering::RampDown));
    }

    /// Sends what is due.
    pub fn tick(&mut self, now: Instant, publish: Publish<'_>) {
        for member in self.members.iter_mut().filter(|member| !member.is_absent()) {
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

    /// Excuses so much of the silence of all members: nothing could be heard in that time.
    pub fn excuse_silence(&mut self, time: Duration, now: Instant) {
        for member in &mut self.members {
            let silence = now.since(member.heard);
            member.heard += silence.min(time);
        }
    }

    /// Returns why a member is lost whose load has not ended: it has been silent for
    /// [`AGENT_LOST_AFTER`], or another process has its name and it is silent.
    pub fn why_lost(&self, member: usize, now: Instant) -> Option<String> {
        let member = &self.members[member];
        if matches!(member.state, MemberState::Ended | MemberState::Failed(_)) {
            return None;
        }
        if member.is_absent() {
            return Some("it is away, or has nothing of this run".to_owned());
        }
        let silence = now.since(member.heard);
        let known = self.known.get(&member.name);
        let is_other =
            |known: &&KnownAgent| known.hello.facts.incarnation != member.facts.incarnation;
        // Two processes of one name may live at the same time: then the right one is not silent.
        if let Some(other) = known.filter(is_other)
            && silence > OTHER_PROCESS_AFTER
        {
            let pid = other.hello.facts.pid;
            return Some(format!("its process has ended, and pid {pid} has its name now"));
        }
        if silence <= AGENT_LOST_AFTER {
            return None;
        }
        let taken = known.and_then(|known| known.hello.part_of(&self.key.run));
        Some(match taken.filter(|part| part.key != self.key) {
            Some(part) => format!("{} has taken the run over", part.key.coordinator),
            None => "it no longer answers".to_owned(),
        })
    }

    fn on_hello(&mut self, hello: Hello, now: Instant) {
        let Hello { facts, busy, answers, now_us, .. } = &hello;
        let asked = answers.as_ref().filter(|question| question.asker == self.key.coordinator);
        let offset = asked.and_then(|question| {
            ClockOffset::of_answer(question.asked_us, *now_us, now.as_nanos() / 1_000)
        });
        for member in self.members.iter_mut().filter(|member| member.name == facts.name) {
            let other = busy.as_ref().filter(|busy| busy.key != self.key);
            if let Some(other) = other
                && member.state == MemberState::Preparing
            {
                let why = format!("it makes the run {} now", other.key.run);
                member.state = MemberState::Refused(why);
            }
        }
        for member in self.members.iter_mut().filter(|member| member.name == facts.name) {
            if member.is_absent() && hello.has_of(&self.key.run) {
                (member.facts, member.heard) = (facts.clone(), now);
                member.is_absent = false;
            }
        }
        let known = self.known.get(&facts.name);
        let is_same = |known: &&KnownAgent| known.hello.facts.incarnation == facts.incarnation;
        let before = known.filter(is_same);
        let mut has_stepped = before.is_some_and(|before| before.has_stepped);
        let before = before.and_then(|before| Some((before.offset?, now.since(before.offset_at))));
        let is_fresh = |known: &&KnownAgent| now.since(known.heard) < AGENT_LOST_AFTER;
        let rival = match known.filter(is_fresh) {
            Some(known) if !is_same(&known) => Some(known.hello.facts.clone()),
            Some(known) => known.rival.clone(),
            None => None,
        };
        let offset = match (before, offset) {
            (Some((before, age)), Some(new)) if before.contradicts(new, age) => {
                has_stepped = true;
                Some(new)
            }
            (Some((before, age)), Some(new)) => Some(before.after(age).better(new)),
            (before, new) => new.or(before.map(|(before, age)| before.after(age))),
        };
        let name = facts.name.clone();
        let heard = now;
        let known = KnownAgent { hello, offset, offset_at: now, has_stepped, heard, rival };
        let members = &self.members;
        let stays = |name: &str| members.iter().any(|member| member.name == name);
        self.known.insert(&name, known, now, stays);
    }
}

impl Member {
    /// Reports whether no process of it is known: the run was taken over while it was away.
    pub fn is_absent(&self) -> bool {
        self.is_absent
    }

    /// Takes a message; returns what is new in it, beside the state of the member.
    ///
    /// # Errors
    /// No agent can say this.
    fn on_message(&mut self, message: &[u8]) -> Result<Option<MemberNews>, String> {
        match within::read(message, message_bytes_max(self.share))? {
            AgentMessage::Ready(readiness) => self.state = MemberState::Ready(readiness),
            AgentMessage::CannotRun(why) => self.state = MemberState::Refused(why),
            AgentMessage::Failed(why) => self.state = MemberState::Failed(why),
            AgentMessage::Report(report) => {
                // The last report of a load that failed is no end of it.
                if report.is_last && !matches!(self.state, MemberState::Failed(_)) {
                    self.state = MemberState::Ended;
                }
                return Ok(Some(MemberNews::Report(report)));
            }
            AgentMessage::Peers(messages) => return Ok(Some(MemberNews::Peers(messages))),
        }
        Ok(None)
    }
}

/// Bytes of a message of an agent with this share at most.
fn message_bytes_max(share: MachineShare) -> usize {
    CORE_MESSAGE_BYTES_MAX * (1 + share.cores()).min(MESSAGE_BYTES_MAX / CORE_MESSAGE_BYTES_MAX)
}

/// Silence of a process after which another one that has its name is its successor.
const OTHER_PROCESS_AFTER: Duration = Duration::from_secs(2);
/// Silence after which an agent counts as lost.
pub const AGENT_LOST_AFTER: Duration = Duration::from_secs(5);
