//! Many machines make one run: agents, which run the load, and a coordinator, which orders it and
//! records it.
//!
//! [`Agent`] and [`Coordinator`] are the two sides of the protocol: pure state machines, which take
//! time and messages as arguments. [`AgentProcess`] and [`CoordinatorProcess`] connect them with a
//! bus, a clock and a load. An [`Observer`] beside the server publishes what it samples there;
//! [`BusWatch`] brings that to the recorder of a run. The link between the two loses nothing while
//! the bus is away. A [`Requester`] asks agents for something outside a run.

mod agent;
mod agent_action;
mod agent_calibration;
mod agent_facts;
mod agent_note;
mod agent_process;
mod agent_run;
mod allowed_targets;
mod bus_message;
mod clock_offset;
mod coordinator;
mod coordinator_process;
mod envelope;
mod fleet_load;
mod fleet_state;
mod known_agent;
mod link;
mod machine_plan;
mod machine_totals;
mod machines;
pub mod message;
mod names;
mod observation;
mod observer;
mod preparation;
mod report_bounds;
mod request;
mod requester;
mod run_shelf;
mod scenario_bundle;
mod shared_limit;
pub mod shared_limits;
mod subjects;
#[cfg(test)]
mod tests;
mod within;

pub use agent::Agent;
pub use agent_action::{AgentAction, Publish};
pub use agent_facts::{host_name, process_name, random_id, version};
pub use agent_note::AgentNote;
pub use agent_process::{AgentProcess, END_TIMEOUT};
pub use allowed_targets::{AllowedTargets, TargetNetwork};
pub use bus_message::kinds_of_message;
pub use clock_offset::ClockOffset;
pub use coordinator::{AGENT_LOST_AFTER, Coordinator, Member, MemberNews, MemberState};
pub use coordinator_process::{CoordinatorProcess, NotReady, START_AFTER};
pub use fleet_load::{FleetKernel, FleetLoad};
pub use fleet_state::LOST_WAIT;
pub use known_agent::KnownAgent;
pub use link::KEEP_ALIVE;
pub use machine_plan::{CEILING_SHARE, MachineCapacity, MachinePart, MachinePlan, PlanLimit};
pub use observation::{BusWatch, Observers};
pub use observer::{Observer, ObserverFacts, ObserverHello};
pub use preparation::assess;
pub use request::{LOG_LINE_BYTES_MAX, LOG_LINES_MAX, LogLine};
pub use requester::{ANSWER_PATIENCE, AgentEnd, AgentStop, END_PATIENCE, Requester};
pub use scenario_bundle::ScenarioBundle;
pub use shared_limit::SharedLimit;
pub use subjects::GroupSubjects;
pub use within::{LABELS_MAX, MESSAGE_BYTES_MAX, NAMES_MAX};
