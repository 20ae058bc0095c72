//! An agent's part of one run: its stage, its link to the coordinator, and what it has measured.

use std::collections::VecDeque;
use std::time::Duration;

use throng_base::Instant;
use throng_base::units::show_duration;
use throng_bus::Name;
use throng_load::peers::AHEAD_MAX;

use crate::agent_action::{AgentAction, Publish};
use crate::envelope::encode;
use crate::link::Link;
use crate::message::{AgentFacts, AgentMessage, Envelope, HeldRun, LoadReport, Order, RunKey};
use crate::request::AgentAnswer;
use crate::subjects::GroupSubjects;
use crate::within::{self, MESSAGE_BYTES_MAX};

/// An agent's part of one run.
#[derive(Debug)]
pub(crate) struct AgentRun {
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
    /// Coordinators whose run this was before, the last [`SUPERSEDED_MAX`] of them.
    superseded: VecDeque<Name>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No order has come as a whole.
    New,
    /// It gets ready, or is ready.
    Preparing,
    /// The load runs.
    Running,
    /// The load has ended at this moment.
    Ended(Instant),
    /// The run will not begin.
    Abandoned,
}

/// Where a run belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunPlace {
    /// The agent makes it.
    Active,
    /// The agent is free for another run, and keeps what it has of this one.
    Shelf,
    /// The agent forgets it.
    Nowhere,
}

impl AgentRun {
    /// Creates the run of a coordinator that was heard now.
    pub(crate) fn new(key: RunKey, now: Instant) -> Self {
        Self {
            key,
            link: Link::new(MESSAGE_BYTES_MAX),
            stage: Stage::New,
            started_us: None,
            heard: now,
            reports: 0,
            totals: None,
            failure: None,
            superseded: VecDeque::new(),
        }
    }

    pub(crate) fn key(&self) -> &RunKey {
        &self.key
    }

    /// Returns what the agent says about it.
    pub(crate) fn describe(&self, now: Instant) -> HeldRun {
        HeldRun {
            key: self.key.clone(),
            started_us: self.started_us,
            silent_ms: self.silence(now).as_millis().try_into().unwrap_or(u64::MAX),
            is_delivered: self.is_delivered(),
        }
    }

    /// Reports whether a packet with this key is one of the run's. Another coordinator takes the
    /// run over by its first packet, if it may.
    pub(crate) fn admits(&mut self, key: &RunKey, now: Instant) -> bool {
        if self.key == *key {
            return true;
        }
        let is_free = match self.stage {
            Stage::New | Stage::Preparing | Stage::Abandoned => false,
            Stage::Running => self.is_orphan(now),
            // The one before has all of it, or is silent.
            Stage::Ended(_) => self.is_delivered() || self.is_orphan(now),
        };
        // One that comes back late does not get the run back.
        if self.key.run != key.run || !is_free || self.superseded.contains(&key.coordinator) {
            return false;
        }
        let before = std::mem::replace(&mut self.key, key.clone());
        if self.superseded.len() == SUPERSEDED_MAX {
            self.superseded.pop_front();
        }
        self.superseded.push_back(before.coordinator);
        self.link.change_sender();
        true
    }

    /// Takes a packet of its coordinator. Returns what the process has to do; nothing once the load
    /// has ended, because the process may make another run then.
    pub(crate) fn on_packet(&mut self, packet: &[u8], now: Instant) -> Vec<AgentAction> {
        self.heard = now;
        let messages = match self.link.on_packet(packet) {
            Ok(messages) => messages,
            Err(why) => return Vec::from_iter(self.refuse(&why, now)),
        };
        messages.iter().filter_map(|message| self.on_message(message, now)).collect()
    }

    fn on_message(&mut self, message: &[u8], now: Instant) -> Option<AgentAction> {
        let order = match within::read(message, MESSAGE_BYTES_MAX) {
            Ok(order) => order,
            Err(why) => return self.refuse(&why, now),
        };
        match (self.stage, order) {
            (Stage::New, Order::Prepare(order)) => {
                self.stage = Stage::Preparing;
                Some(AgentAction::Prepare(order))
            }
            // Nothing of this run is left here.
            (Stage::New, _) | (Stage::Preparing, Order::Abandon) => {
                self.stage = Stage::Abandoned;
                None
            }
            (Stage::Preparing, Order::Start(order)) => {
                let start_at = Instant::from_nanos(order.at_us.saturating_mul(1_000));
                let ahead = start_at.since(now);
                if ahead > AHEAD_MAX {
                    let ahead = show_duration(Duration::from_secs(ahead.as_secs()));
                    let most = show_duration(AHEAD_MAX);
                    let why = format!(
                        "its start was ordered for {ahead} from now: {most} at most; is a clock \
                         wrong?"
                    );
                    self.fail(why, now);
                    return None;
                }
                self.stage = Stage::Running;
                self.started_us = Some(order.at_us);
                Some(AgentAction::Start(order))
            }
            (Stage::Running | Stage::Ended(_), Order::Resume) => {
                self.deliver_totals();
                None
            }
            (Stage::Running, Order::Steer(steering)) => Some(AgentAction::Steer(steering)),
            (Stage::Running, Order::Peers(orders)) => Some(AgentAction::Hear(orders)),
            _ => None,
        }
    }

    /// Gives the run up, because its coordinator says what none can say. A load that runs ends.
    pub(crate) fn refuse(&mut self, why: &str, now: Instant) -> Option<AgentAction> {
        let why = format!("it refuses a message of the coordinator: {why}");
        match self.stage {
            Stage::New => {
                self.send(&AgentMessage::CannotRun(why));
                self.stage = Stage::Abandoned;
                None
            }
            Stage::Preparing => {
                self.send(&AgentMessage::CannotRun(why));
                None
            }
            Stage::Running => {
                self.fail(why, now);
                Some(AgentAction::CutShort)
            }
            Stage::Ended(_) | Stage::Abandoned => None,
        }
    }

    /// Sends what is due, to a coordinator that may be away.
    pub(crate) fn send_due(
        &mut self,
        facts: &AgentFacts,
        subjects: &GroupSubjects,
        now: Instant,
        publish: Publish<'_>,
    ) {
        let subject = subjects.to_coordinator(&self.key.coordinator, &facts.name);
        let envelope = Envelope {
            key: self.key.clone(),
            agent: facts.name.clone(),
            incarnation: facts.incarnation.clone(),
        };
        self.link.send_due(now, |packet| publish(&subject, encode(&envelope, &packet)));
    }

    pub(crate) fn send(&mut self, message: &AgentMessage) {
        self.link.send(message);
    }

    /// Delivers what the load has measured. Gives the report its number.
    pub(crate) fn report(&mut self, mut report: LoadReport, now: Instant) {
        self.reports += 1;
        report.number = self.reports;
        let mut totals = report.totals();
        // The totals have every core, also one that was too busy to answer.
        for core in self.totals.take().into_iter().flat_map(|before| before.cores) {
            if totals.cores.iter().all(|known| known.core_id != core.core_id) {
                totals.cores.push(core);
            }
        }
        self.totals = Some(totals);
        let is_last = report.is_last;
        self.send(&AgentMessage::Report(report.into()));
        if is_last {
            self.end(now);
        }
    }

    /// Says why the load has ended before its time. What follows from the first reason is none.
    pub(crate) fn fail(&mut self, why: String, now: Instant) {
        if self.failure.is_none() {
            self.failure = Some(why.clone());
            self.send(&AgentMessage::Failed(why));
        }
        self.end(now);
    }

    fn end(&mut self, now: Instant) {
        if !matches!(self.stage, Stage::Ended(_)) {
            self.stage = Stage::Ended(now);
        }
    }

    /// Ends a run whose coordinator is away. Returns what becomes of it: a load that is
    /// [`AgentAnswer::Stopping`] runs, and the process has to end it.
    /// One that has not begun is forgotten.
    pub(crate) fn stop(&mut self, now: Instant) -> AgentAnswer {
        let now_us = now.as_nanos() / 1_000;
        let has_begun = self.started_us.is_some_and(|started_us| started_us <= now_us);
        match self.stage {
            Stage::Running if !has_begun => {
                self.stage = Stage::Abandoned;
                AgentAnswer::Forgotten
            }
            Stage::New | Stage::Preparing | Stage::Abandoned => {
                self.stage = Stage::Abandoned;
                AgentAnswer::Forgotten
            }
            Stage::Running => AgentAnswer::Stopping,
            Stage::Ended(_) => AgentAnswer::LoadEnded,
        }
    }

    /// Delivers all totals to the coordinator that has taken the run over.
    fn deliver_totals(&mut self) {
        if let Some(totals) = &self.totals {
            self.link.send(&AgentMessage::Report(totals.clone().into()));
        }
        if let Some(why) = &self.failure {
            self.link.send(&AgentMessage::Failed(why.clone()));
        }
    }

    /// Reports whether the coordinator has kept everything that was sent.
    pub(crate) fn is_delivered(&self) -> bool {
        self.link.is_empty()
    }

    /// Reports whether the coordinator is away.
    pub(crate) fn is_orphan(&self, now: Instant) -> bool {
        self.silence(now) > COORDINATOR_SILENT_AFTER
    }

    /// Reports whether the agent no longer waits for the coordinator.
    pub(crate) fn is_left_alone(&self, now: Instant) -> bool {
        self.silence(now) > COORDINATOR_LOST_AFTER
    }

    /// Returns where a run belongs that is active.
    pub(crate) fn place(&self, now: Instant) -> RunPlace {
        match self.stage {
            Stage::New | Stage::Preparing if self.is_left_alone(now) => RunPlace::Nowhere,
            Stage::New | Stage::Preparing | Stage::Running => RunPlace::Active,
            Stage::Ended(_) if self.is_delivered() || self.is_left_alone(now) => RunPlace::Shelf,
            Stage::Ended(_) if self.is_expired(now) => RunPlace::Shelf,
            Stage::Ended(_) => RunPlace::Active,
            Stage::Abandoned => RunPlace::Nowhere,
        }
    }

    /// Reports whether its results have been kept for long enough.
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        matches!(self.stage, Stage::Ended(at) if now.since(at) > RESULTS_KEPT)
    }

    fn silence(&self, now: Instant) -> Duration {
        now.since(self.heard)
    }
}

/// Coordinators before the present one that an agent knows.
const SUPERSEDED_MAX: usize = 64;
/// Time without a word of the coordinator after which another one may take its run over.
pub(crate) const COORDINATOR_SILENT_AFTER: Duration = Duration::from_secs(3);
/// Time without a word of the coordinator after which an agent that is ready forgets the run, and
/// one whose load has ended is free for another run.
const COORDINATOR_LOST_AFTER: Duration = Duration::from_secs(15);
/// Time for which an agent keeps the results of a run, from its end.
const RESULTS_KEPT: Duration = Duration::from_secs(3_600);
