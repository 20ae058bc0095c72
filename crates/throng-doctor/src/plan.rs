//! What a fleet takes: machines, cores, memory, addresses, ports and packets, from what one connection and one message cost.
//!
//! Arithmetic alone: everything that is known of machines comes in as an argument. Every [`Line`] carries its formula with
//! the numbers put in, so that whoever doubts it can do it again. [`plan`] is about servers with very many clients,
//! [`mesh()`] about nodes that connect to each other.

mod apportion;
mod assumptions;
mod costs;
mod fleet;
mod formula;
mod line;
mod mesh;
mod show;

use serde::Serialize;

pub use costs::{Cost, CostSource, Costs, EndCosts};
pub use fleet::{Fleet, FleetSide};
pub use formula::{FormulaError, LinearFormula};
pub use line::{Amount, Line};
pub use mesh::{Mesh, MeshLimit, MeshRow, Scope, mesh};

/// What is to be held, and on what.
#[derive(Clone, Debug)]
pub struct FleetSpec {
    /// Connections at once.
    pub connections: u64,
    /// Messages a second in all, each from a client and answered.
    pub messages_per_s: f64,
    /// The payload of each.
    pub message_bytes: u64,
    /// Seconds between two messages to everybody; none when there are none.
    pub broadcast_every_s: Option<f64>,
    /// Connects a second in all, while they come; none when nobody is in a hurry.
    pub connects_per_s: Option<f64>,
    /// What each machine is.
    pub machine: FleetMachine,
    /// Addresses of the servers that clients connect to, each with one port. Default: one a server.
    pub target_addresses: Option<u64>,
    /// Ports that a client's machine has for each pair of its own address and one of the servers'.
    pub ports: u64,
}

/// A machine of the fleet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleetMachine {
    /// Memory.
    pub memory_bytes: f64,
    /// CPUs.
    pub cores: f64,
    /// What its network carries, each way.
    pub nic_bits_per_s: f64,
    /// Whether somebody said what its network carries.
    pub nic_is_known: bool,
}

/// What it takes.
#[derive(Clone, Debug, Serialize)]
pub struct FleetPlan {
    /// The machines that hold the connections.
    pub servers: Fleet,
    /// The machines that make them, in a test.
    pub generators: Fleet,
    /// Of addresses and ports.
    pub addresses: Vec<Line>,
    /// Of a message to everybody, and of everybody's arrival.
    pub time: Vec<Line>,
    /// What all of it rests on, the weakest first.
    pub assumptions: Vec<String>,
}

/// Works it out.
pub fn plan(ask: &FleetSpec, costs: &Costs) -> FleetPlan {
    let servers = Fleet::new(FleetSide::Server, ask, &costs.server, costs.kernel_bytes);
    let generators = Fleet::new(FleetSide::Generator, ask, &costs.generator, costs.kernel_bytes);
    FleetPlan {
        addresses: fleet::addresses(ask, &servers, &generators),
        time: fleet::time(ask, costs, &servers, &generators),
        assumptions: assumptions::of(ask, costs, &servers),
        servers,
        generators,
    }
}

/// How full a machine's memory may be: the rest is the system's, and what waits in sockets' buffers.
pub(crate) const MEMORY_SHARE: f64 = 0.8;
/// How busy CPUs may be: beyond that, latency is what grows.
pub(crate) const CPU_SHARE: f64 = 0.7;
/// How busy a network interface may be.
pub(crate) const NIC_SHARE: f64 = 0.7;

#[cfg(test)]
mod tests;
