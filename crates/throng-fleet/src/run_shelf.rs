//! Runs that have ended at an agent, which is free for another run.
//!
//! Each still has a link of its own. What a coordinator has not fetched goes to it as soon as it
//! is heard again; what it has fetched stays for a successor, which may have lost it.

use throng_base::Instant;

use crate::agent_action::{AgentAction, Publish};
use crate::agent_note::AgentNote;
use crate::agent_run::AgentRun;
use crate::message::{AgentFacts, HeldRun, RunKey};
use crate::subjects::GroupSubjects;

/// The last runs of an agent, at most [`SHELF_RUNS_MAX`].
#[derive(Debug, Default)]
pub(crate) struct RunShelf {
    /// The one that has ended first is the first.
    runs: Vec<ShelvedRun>,
}

#[derive(Debug)]
struct ShelvedRun {
    run: AgentRun,
    /// True if everything was delivered when it was looked at last.
    is_delivered: bool,
}

impl RunShelf {
    /// Adds a run that has ended. Returns the one that goes for it, if there are too many: the
    /// oldest that is delivered, or else the oldest.
    pub(crate) fn add(&mut self, run: AgentRun) -> Option<AgentRun> {
        let is_full = self.runs.len() == SHELF_RUNS_MAX;
        let delivered = self.runs.iter().position(|shelved| shelved.run.is_delivered());
        let gone = is_full.then(|| self.runs.remove(delivered.unwrap_or(0)).run);
        let is_delivered = run.is_delivered();
        self.runs.push(ShelvedRun { run, is_delivered });
        gone
    }

    /// Returns the run with this id.
    pub(crate) fn find(&mut self, run: &str) -> Option<&mut AgentRun> {
        self.runs.iter_mut().map(|shelved| &mut shelved.run).find(|it| it.key().run == run)
    }

    /// Returns a run that is not delivered.
    pub(crate) fn undelivered(&self) -> Option<&RunKey> {
        self.runs.iter().map(|it| &it.run).find(|run| !run.is_delivered()).map(AgentRun::key)
    }

    /// Reports whether something is being delivered: a coordinator that is there has not all of it.
    pub(crate) fn is_delivering(&self, now: Instant) -> bool {
        self.runs.iter().any(|it| !it.run.is_delivered() && !it.run.is_left_alone(now))
    }

    /// Returns what the agent says about them.
    pub(crate) fn describe(&self, now: Instant) -> Vec<HeldRun> {
        self.runs.iter().map(|shelved| shelved.run.describe(now)).collect()
    }

    /// Sends what is due to coordinators that are there: the others cost nothing. Returns what to
    /// say about runs that are delivered now.
    pub(crate) fn send_due(
        &mut self,
        facts: &AgentFacts,
        subjects: &GroupSubjects,
        now: Instant,
        publish: Publish<'_>,
    ) -> Vec<AgentAction> {
        let mut delivered = Vec::new();
        for ShelvedRun { run, is_delivered } in &mut self.runs {
            if !run.is_delivered() && !run.is_left_alone(now) {
                run.send_due(facts, subjects, now, publish);
            }
            let was_delivered = std::mem::replace(is_delivered, run.is_delivered());
            if *is_delivered && !was_delivered {
                delivered.push(AgentAction::Say(AgentNote::Delivered(run.key().run.to_string())));
            }
        }
        delivered
    }

    /// Removes the runs that have been kept for long enough, and returns them.
    pub(crate) fn take_expired(&mut self, now: Instant) -> Vec<AgentRun> {
        let is_expired = |shelved: &mut ShelvedRun| shelved.run.is_expired(now);
        self.runs.extract_if(.., is_expired).map(|shelved| shelved.run).collect()
    }
}

/// Runs that an agent keeps after their ends. Each may have all its reports, some kilobytes a
/// second.
const SHELF_RUNS_MAX: usize = 4;
