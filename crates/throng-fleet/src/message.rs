//! The messages between the coordinator of a run and its agents.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use throng_bus::{Name, Text};
use throng_load::generator::CoreStats;
use throng_load::peers::{PeerMessage, PeerOrder};
use throng_load::schedule::MachineShare;
use throng_measure::runfile::Ceiling;
use throng_measure::{
    EndpointFacts, KernelCounters, MachineUse, ProcessUse, ProgramUse, RunEventKind,
};
use throng_report::render::rate;

use crate::scenario_bundle::ScenarioBundle;
use crate::shared_limit::SharedLimit;
use crate::within::{self, LABELS_MAX};

/// What an agent is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFacts {
    /// Its name, which no other agent of its group has.
    pub name: Name,
    /// Tells this process from one that had the name before.
    pub incarnation: Name,
    /// Name of its machine.
    pub host: Name,
    /// Labels that its user gave it: `eu`, `large`.
    #[serde(deserialize_with = "within::few::<_, _, LABELS_MAX>")]
    pub labels: Vec<Name>,
    /// Its version of throng.
    pub version: Text,
    /// CPUs that it may use.
    #[serde(deserialize_with = "within::cpus")]
    pub cpus: usize,
    /// Memory of its machine in bytes, if it is known.
    #[serde(default, deserialize_with = "within::some_count")]
    pub memory_bytes: Option<u64>,
    /// Open files that one of its threads may have.
    #[serde(deserialize_with = "within::count")]
    pub fds: u64,
    /// Connections over TCP that the limits of its machine allow, if they are known.
    pub capacity: Option<AgentCapacity>,
    /// Id of the machine's running kernel: agents with the same one share its CPUs.
    pub boot_id: Option<Text>,
    /// Its network namespace: agents with the same one share its counters.
    pub net_namespace: Option<Text>,
    /// Process id.
    pub pid: u32,
}

/// The connections that the limits of an agent's machine allow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCapacity {
    /// Number of connections.
    #[serde(deserialize_with = "within::count")]
    pub connections: u64,
    /// The limit that allows no more.
    pub limit: Text,
}

/// What an agent's machine can do at most, as it measured last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentCalibration {
    /// Protocol and kind of messages that it measured: `tcp, answered`.
    pub traffic: Text,
    /// The maximum.
    pub ceiling: Ceiling,
}

/// Shows it for people: `21k/s connects, 95k/s messages (tcp, answered)`.
impl fmt::Display for AgentCalibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ceiling { connects_per_s, messages_per_s, .. } = &self.ceiling;
        let rates = [(connects_per_s, "connects"), (messages_per_s, "messages")];
        let rates = rates.into_iter().filter_map(|(n, what)| Some((n.as_ref()?, what)));
        for (index, (n, what)) in rates.enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}{} {what}", rate(*n))?;
        }
        write!(f, " ({})", self.traffic)
    }
}

/// What an agent says about itself, once a second and to each coordinator that asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The agent.
    pub facts: AgentFacts,
    /// What it can do at most, once it is measured.
    pub calibration: Option<AgentCalibration>,
    /// The run that it makes.
    pub busy: Option<HeldRun>,
    /// Runs that have ended, and of which it still has results or totals. An agent of an earlier
    /// version does not tell them.
    #[serde(default, deserialize_with = "within::few::<_, _, KEPT_RUNS_MAX>")]
    pub kept: Vec<HeldRun>,
    /// The question that it answers.
    pub answers: Option<Question>,
    /// Its monotonic clock, in microseconds.
    pub now_us: u64,
}

impl Hello {
    /// Returns what the agent has of this run, which it makes or has made.
    pub fn part_of(&self, run: &str) -> Option<&HeldRun> {
        self.busy.iter().chain(&self.kept).find(|held| held.key.run == run)
    }

    /// Reports whether the agent makes this run, or keeps something of it.
    pub fn has_of(&self, run: &str) -> bool {
        self.part_of(run).is_some()
    }
}

/// A run that an agent makes, or has made and keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldRun {
    /// The run, and the coordinator that has it now.
    #[serde(flatten)]
    pub key: RunKey,
    /// Its beginning on the agent's monotonic clock, in microseconds, once it has begun.
    #[serde(default)]
    pub started_us: Option<u64>,
    /// Time since the last word of its coordinator, in milliseconds.
    #[serde(default)]
    pub silent_ms: u64,
    /// True if its coordinator has fetched everything: what is kept are the totals.
    #[serde(default)]
    pub is_delivered: bool,
}

/// A question to all agents who they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Who asks.
    pub asker: Name,
    /// The asker's monotonic clock, in microseconds.
    pub asked_us: u64,
}

/// A run of several machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunKey {
    /// Id of the run.
    pub run: Name,
    /// The coordinator's process: the name of its machine, and a number.
    pub coordinator: Name,
}

/// A packet of the link between a coordinator and an agent, and what it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The run.
    pub key: RunKey,
    /// The agent.
    pub agent: Name,
    /// The process of the agent.
    pub incarnation: Name,
}

/// A coordinator's order to an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Get ready for a run.
    Prepare(Box<RunOrder>),
    /// Begin at this moment.
    Start(StartOrder),
    /// Deliver what the coordinator before this one has not kept, and all totals.
    Resume,
    /// Change the load.
    Steer(Steering),
    /// Tell cores what cores of other agents say.
    Peers(Vec<PeerOrder>),
    /// Forget the run, which will not begin.
    Abandon,
}

/// A run, as one agent makes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOrder {
    /// The scenario.
    pub scenario: ScenarioBundle,
    /// Target in place of the scenario's.
    pub target: Option<String>,
    /// Seed of everything random.
    pub seed: u64,
    /// The agent's cores among those of all agents.
    pub share: MachineShare,
    /// Time between two reports, in milliseconds.
    pub interval_ms: u64,
    /// Time for measuring the agent's capacity, in milliseconds; none to leave that out.
    pub calibrate_ms: Option<u64>,
    /// True to run although a limit is insufficient.
    pub force: bool,
    /// True if the owner of a foreign target has allowed to load it.
    pub is_allowed: bool,
}

/// The beginning of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartOrder {
    /// The beginning of the first phase on the agent's monotonic clock, in microseconds.
    pub at_us: u64,
    /// Number of the run, the same for all agents.
    pub run: u64,
    /// Values that the steps of `setup` have stored.
    pub setup: Vec<Vec<u8>>,
}

/// A change of a running load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Steering {
    /// Start so many more users.
    AddUsers(#[serde(deserialize_with = "within::count")] u64),
    /// Stop so many users.
    StopUsers(#[serde(deserialize_with = "within::count")] u64),
    /// Start no users until [`Steering::Resume`].
    Pause,
    /// Go on.
    Resume,
    /// Stop all users.
    RampDown,
}

/// What an agent says to its coordinator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum AgentMessage {
    /// It is ready for the run.
    Ready(Box<Readiness>),
    /// It cannot make the run, for this reason.
    CannotRun(#[serde(deserialize_with = "within::reason")] String),
    /// What it has measured.
    Report(Box<LoadReport>),
    /// What its cores say to those of other agents.
    Peers(Vec<PeerMessage>),
    /// Its load has ended unexpectedly, for this reason.
    Failed(#[serde(deserialize_with = "within::reason")] String),
}

/// An agent that is ready, and what it found about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Readiness {
    /// Addresses of the target.
    #[serde(deserialize_with = "within::few::<_, _, TARGETS_MAX>")]
    pub targets: Vec<SocketAddr>,
    /// The limit that refuses its part of the run, with what to do; none if it fits.
    #[serde(deserialize_with = "within::some_reason")]
    pub refusal: Option<String>,
    /// Limits at which connections may fail.
    #[serde(deserialize_with = "within::reasons")]
    pub warnings: Vec<String>,
    /// Connections that its part of the run has at most.
    #[serde(deserialize_with = "within::count")]
    pub connections: u64,
    /// Connections that it can hold.
    #[serde(deserialize_with = "within::some_count")]
    pub capacity: Option<u64>,
    /// The limit that allows no more.
    #[serde(deserialize_with = "within::some_line")]
    pub capacity_limit: Option<String>,
    /// Limits that it has once with all agents of its machine.
    #[serde(default, deserialize_with = "within::few::<_, _, SHARED_LIMITS_MAX>")]
    pub shared_limits: Vec<SharedLimit>,
    /// The maximum of its load, if it was measured.
    pub ceiling: Option<Ceiling>,
    /// The reason why that was not measured.
    #[serde(deserialize_with = "within::some_reason")]
    pub uncalibrated: Option<String>,
    /// True if the target is an address of its machine.
    pub target_is_here: bool,
    /// Facts about its machine by name.
    pub machine: BTreeMap<String, String>,
    /// Its limits.
    pub client_facts: Option<EndpointFacts>,
}

/// What an agent has measured in one interval.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LoadReport {
    /// Its number in the run, from 1. What was measured in a report counts once.
    pub number: u64,
    /// Its end on the agent's monotonic clock, in microseconds since the beginning of the run.
    pub at_us: u64,
    /// Beginning of the run on the agent's monotonic clock, in nanoseconds: that of the moments in
    /// `cores`.
    pub start_nanos: u64,
    /// Stats of its cores.
    #[serde(deserialize_with = "within::few::<_, _, MACHINE_CORES_MAX>")]
    pub cores: Vec<CoreStats>,
    /// True while the load is paused.
    pub paused: bool,
    /// Its process.
    pub process: ProcessUse,
    /// CPU time of each core's thread, in microseconds.
    pub cpu_us_per_core: Vec<u64>,
    /// CPU time of its machine.
    pub machine: Option<MachineUse>,
    /// Counters of its kernel.
    pub kernel: KernelCounters,
    /// Other programs that used its CPUs.
    #[serde(deserialize_with = "within::few::<_, _, PROGRAMS_MAX>")]
    pub programs: Vec<ProgramUse>,
    /// What happened.
    #[serde(deserialize_with = "within::few::<_, _, EVENTS_MAX>")]
    pub events: Vec<RunEventKind>,
    /// True for the last one: the load has ended.
    pub is_last: bool,
}

impl LoadReport {
    /// Returns the totals alone, without what was measured in the interval.
    pub fn totals(&self) -> Self {
        let cores = self.cores.iter().map(CoreStats::totals).collect();
        Self { cores, programs: Vec::new(), events: Vec::new(), ..self.clone() }
    }
}

/// Runs that an agent says it keeps, at most: it keeps four.
const KEPT_RUNS_MAX: usize = 16;
/// Addresses of a target at most.
const TARGETS_MAX: usize = 4_096;
/// Limits that an agent shares at most.
const SHARED_LIMITS_MAX: usize = 16;
/// Cores of an agent at most.
const MACHINE_CORES_MAX: usize = 1 << 13;
/// Programs that a report names at most.
const PROGRAMS_MAX: usize = 100;
/// Events of one report at most.
const EVENTS_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn hello() -> Hello {
        Hello {
            facts: AgentFacts { name: name("a"), cpus: 1, ..AgentFacts::default() },
            calibration: None,
            busy: None,
            kept: Vec::new(),
            answers: None,
            now_us: 1,
        }
    }

    #[test]
    fn a_hello_tells_the_capacity_and_the_calibration() {
        let mut hello = hello();
        let limit = Text::cut("ports");
        hello.facts.capacity = Some(AgentCapacity { connections: 28_232, limit });
        let ceiling = Ceiling { connects_per_s: Some(21_000.0), ..Ceiling::default() };
        hello.calibration = Some(AgentCalibration { traffic: Text::cut("tcp, answered"), ceiling });
        let bytes = serde_json::to_vec(&hello).unwrap();
        assert_eq!(serde_json::from_slice::<Hello>(&bytes).unwrap(), hello);
        let calibration = hello.calibration.unwrap();
        assert_eq!(calibration.to_string(), "21k/s connects (tcp, answered)");
    }

    #[test]
    fn a_hello_of_an_agent_that_tells_neither_is_one() {
        let mut value = serde_json::to_value(hello()).unwrap();
        value.as_object_mut().unwrap().remove("calibration");
        value["facts"].as_object_mut().unwrap().remove("capacity");
        assert_eq!(serde_json::from_value::<Hello>(value).unwrap(), hello());
    }

    #[test]
    fn a_hello_of_another_version_is_one_and_tells_its_version() {
        let mut value = serde_json::to_value(hello()).unwrap();
        let fields = value.as_object_mut().unwrap();
        fields.remove("kept");
        fields.insert("keeps".into(), serde_json::Value::Null);
        let busy = serde_json::json!({"run": "r", "coordinator": "c"});
        fields.insert("busy".into(), busy);
        let hello = serde_json::from_value::<Hello>(value).unwrap();
        assert!(hello.has_of("r") && hello.kept.is_empty());
    }

    #[test]
    fn a_hello_with_a_text_or_a_number_that_no_agent_has_is_none() {
        let mut good = hello();
        good.calibration = Some(AgentCalibration::default());
        good.facts.capacity = Some(AgentCapacity { connections: 1, limit: Text::default() });
        let good = serde_json::to_value(good).unwrap();
        let title = "x\u{1b}]0;PWNED\u{7}";
        let change = |path: &str, wrong: serde_json::Value| {
            let mut value = good.clone();
            *value.pointer_mut(path).unwrap() = wrong;
            serde_json::from_value::<Hello>(value).unwrap_err().to_string()
        };
        for path in ["name", "incarnation", "host", "version"] {
            let error = change(&format!("/facts/{path}"), title.into());
            assert!(error.contains("is no name") || error.contains("\\u{1b}"), "{error}");
        }
        for path in ["/calibration/traffic", "/facts/capacity/limit"] {
            assert!(change(path, "\u{202e}".into()).contains("\\u{202e}"), "{path}");
        }
        change("/facts/labels", vec![title].into());
        change("/facts/labels", vec!["a"; LABELS_MAX + 1].into());
        change("/facts/boot_id", title.into());
        for path in ["memory_bytes", "fds", "capacity/connections"] {
            change(&format!("/facts/{path}"), u64::MAX.into());
        }
        change("/facts/cpus", (1_u64 << 60).into());
        let held = serde_json::json!({"run": title, "coordinator": "c"});
        change("/busy", held.clone());
        change("/kept", vec![held].into());
        let kept = serde_json::json!({"run": "r", "coordinator": "c"});
        change("/kept", vec![kept; KEPT_RUNS_MAX + 1].into());
    }
}
