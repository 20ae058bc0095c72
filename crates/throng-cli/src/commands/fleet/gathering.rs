//! How a command finds the agents of a group.

use std::sync::Arc;
use std::time::Duration;

use throng_bus::Bus;
use throng_fleet::message::RunKey;
use throng_fleet::{CoordinatorProcess, process_name, random_id};

use crate::Failure;
use crate::bus::BusFlags;

/// Joins a group, to ask its agents who they are. `name` is shown in the lists of the NATS server.
pub(super) fn join(bus: &BusFlags, name: &str) -> Result<CoordinatorProcess, Failure> {
    join_over(bus.connect(name)?, bus)
}

/// Joins a group over a bus that is connected.
pub(super) fn join_over(
    connected: Arc<dyn Bus>,
    bus: &BusFlags,
) -> Result<CoordinatorProcess, Failure> {
    // It makes no run.
    let key = RunKey { run: random_id(), coordinator: process_name() };
    CoordinatorProcess::join(connected, bus.subjects(), key)
        .map_err(|error| Failure::new(format!("--bus: {error}")))
}

/// Says that no agent answered, why, and what to do.
pub(crate) fn no_agents(bus: &BusFlags, fleet: &CoordinatorProcess) -> String {
    if let Some(denial) = fleet.denial() {
        return format!("--bus: {denial}");
    }
    let group = &bus.bus_group;
    format!(
        "no agent of the group `{group}` answered on the bus\n  start one on each machine: throng \
         agent --bus {}",
        bus.bus.as_deref().map_or("URL", |url| url.split('@').next_back().unwrap_or(url))
    )
}

/// Time in which agents answer.
pub(crate) const GATHER_TIME: Duration = Duration::from_millis(2_000);
