//! A coordinator's process and the run file that it writes.

use std::time::Duration;

use throng_base::Instant;
use throng_load::run::LoadPlan;
use throng_load::schedule::MachineShare;
use throng_measure::{LoadInterval, RunEventKind};

use super::name;
use crate::agent_action::Publish;
use crate::coordinator::{Coordinator, MemberState};
use crate::fleet_state::FleetState;
use crate::message::{RunKey, RunOrder};
use crate::scenario_bundle::ScenarioBundle;
use crate::subjects::GroupSubjects;

/// A process that coordinates a run and records it.
pub(super) struct Recorder {
    pub(super) state: FleetState,
    pub(super) is_bus_away: bool,
    /// True while its process is stopped.
    pub(super) is_paused: bool,
    /// True if its disk is full.
    pub(super) is_disk_full: bool,
    /// End of the present interval.
    record_at: Instant,
}

/// A line of the run file.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) load: LoadInterval,
    pub(super) events: Vec<RunEventKind>,
}

impl Recorder {
    pub(super) fn new(run: &str, coordinator: &str) -> Self {
        let subjects = GroupSubjects::new("test").expect("a name");
        let key = RunKey { run: name(run), coordinator: name(coordinator) };
        Self {
            state: FleetState::new(Coordinator::new(key, subjects)),
            is_bus_away: false,
            is_paused: false,
            is_disk_full: false,
            record_at: Instant::FAR,
        }
    }

    /// Orders these agents to get ready, with so many cores each.
    pub(super) fn prepare(&mut self, plan: &PlannedRun, now: Instant) {
        let shares = MachineShare::deal(&plan.cores);
        for (name, share) in plan.names.iter().zip(shares) {
            let order = RunOrder {
                scenario: plan.bundle.clone(),
                target: None,
                seed: 1,
                share,
                interval_ms: 1_000,
                calibrate_ms: None,
                force: false,
                is_allowed: false,
            };
            self.state.coordinator.prepare(name, order, now);
        }
    }

    /// Returns the members that do not make the run, with the reasons.
    pub(super) fn refusals(&self) -> Vec<(String, String)> {
        let members = self.state.coordinator.members().iter();
        let refusal = |member: &crate::coordinator::Member| match &member.state {
            MemberState::Refused(why) => Some((member.name.to_string(), why.clone())),
            _ => None,
        };
        members.filter_map(refusal).collect()
    }

    pub(super) fn is_ready(&self) -> bool {
        let mut members = self.state.coordinator.members().iter();
        members.all(|member| matches!(member.state, MemberState::Ready(_)))
    }

    pub(super) fn start(&mut self, plan: &PlannedRun, now: Instant) {
        let at = now + Duration::from_secs(4);
        self.state.start(&plan.load, at, 7, &[]);
        self.record_at = at + REPORTS_AFTER;
    }

    /// Takes the run over. Returns false if no agent has anything of it.
    pub(super) fn resume(&mut self, plan: &PlannedRun, file: &[Line], now: Instant) -> bool {
        let shares = MachineShare::deal(&plan.cores);
        let mut began = None;
        for (name, share) in plan.names.iter().zip(shares) {
            let moment = self.state.coordinator.resume(name, share, now);
            began = began.into_iter().chain(moment).min();
        }
        let Some(began) = began else { return false };
        // It reads the file.
        let lines: Vec<LoadInterval> = file
            .iter()
            .map(|line| serde_json::to_string(&line.load).expect("a line is JSON"))
            .map(|text| serde_json::from_str(&text).expect("it is a line"))
            .collect();
        self.state.go_on(&plan.load, began, lines.iter());
        true
    }

    /// Begins to record a run that was taken over.
    pub(super) fn go_on(&mut self, now: Instant) {
        self.record_at = now + Duration::from_secs(1);
    }

    /// Does what is due. Returns true if a line is due.
    pub(super) fn turn(&mut self, now: Instant, out: Publish<'_>) -> bool {
        self.state.listened(!self.is_bus_away, now);
        self.state.send(now, out);
        self.record_at <= now
    }

    /// Ends the interval.
    pub(super) fn line(&mut self, now: Instant) -> Line {
        self.record_at = now + Duration::from_secs(1);
        let load = self.state.snapshot(now);
        Line { load, events: self.state.events() }
    }
}

/// What a run is made of.
pub(super) struct PlannedRun {
    pub(super) load: LoadPlan,
    pub(super) bundle: ScenarioBundle,
    pub(super) names: Vec<String>,
    pub(super) cores: Vec<usize>,
}

/// Time between the end of an interval on the agents and here.
const REPORTS_AFTER: Duration = Duration::from_millis(400);
