//! The machines that a fleet needs, with cores, memory, addresses, ports and packets, from the
//! costs of one connection and one message.
//!
//! This is arithmetic alone: all facts about machines are arguments. Every [`Line`] carries its
//! formula with the numbers filled in, so that a reader can check it. [`plan`] is about servers
//! with very many clients, [`mesh()`] about nodes that connect to each other.

mod apportion;
mod assumptions;
mod costs;
mod fleet;
mod line;
mod mesh;
mod show;

use serde::Serialize;

pub use costs::{Cost, CostSource, Costs, EndCosts};
pub use fleet::{Fleet, FleetSide};
pub use line::{Amount, Line};
pub use mesh::{Mesh, MeshLimit, MeshRow, NodeConnections, Scope, mesh};

/// The load of a fleet, and its machines.
#[derive(Clone, Debug)]
pub struct FleetSpec {
    /// Concurrent connections.
    pub connections: u64,
    /// Messages a second of all clients together; the server answers each.
    pub messages_per_s: f64,
    /// Payload of a message, in bytes.
    pub message_bytes: u64,
    /// Seconds between two broadcasts to all clients, or `None` without broadcasts.
    pub broadcast_every_s: Option<f64>,
    /// Connects a second of all clients together, or `None` if the rate does not matter.
    pub connects_per_s: Option<f64>,
    /// Size of each machine.
    pub machine: FleetMachine,
    /// Server addresses that clients connect to, each with one port. Default: one for each server.
    pub target_addresses: Option<u64>,
    /// Ports that a client machine has for each pair of its own address and a server address.
    pub ports: u64,
}

/// A machine of the fleet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleetMachine {
    /// Memory, in bytes.
    pub memory_bytes: f64,
    /// Number of CPUs.
    pub cores: f64,
    /// Network capacity in each direction, in bits a second.
    pub nic_bits_per_s: f64,
    /// True if the network capacity was given and not assumed.
    pub nic_is_known: bool,
}

/// The machines that a fleet needs.
#[derive(Clone, Debug, Serialize)]
pub struct FleetPlan {
    /// Machines that hold the connections.
    pub servers: Fleet,
    /// Machines that make the connections in a test.
    pub generators: Fleet,
    /// Addresses and ports.
    pub addresses: Vec<Line>,
    /// Time of a broadcast to all clients, and of their connects.
    pub time: Vec<Line>,
    /// Assumptions of the plan, the weakest first.
    pub assumptions: Vec<String>,
}

/// Computes the machines that a fleet needs.
pub fn plan(spec: &FleetSpec, costs: &Costs) -> FleetPlan {
    let servers = Fleet::new(FleetSide::Server, spec, &costs.server, costs.kernel_bytes);
    let generators = Fleet::new(FleetSide::Generator, spec, &costs.generator, costs.kernel_bytes);
    FleetPlan {
        addresses: fleet::addresses(spec, &servers, &generators),
        time: fleet::time(spec, costs, &servers, &generators),
        assumptions: assumptions::of(spec, costs, &servers),
        servers,
        generators,
    }
}

/// The share of a machine's memory that may be used: the rest is for the system and for data in
/// socket buffers.
pub(crate) const MEMORY_SHARE: f64 = 0.8;
/// The share of the CPUs that may be used: above it, latency grows.
pub(crate) const CPU_SHARE: f64 = 0.7;
/// The share of a network interface that may be used.
pub(crate) const NIC_SHARE: f64 = 0.7;

#[cfg(test)]
mod tests;
