//! The requirements of a run on a machine.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Serialize;
use throng_driver::KERNEL_LIMITS;
use throng_measure::Limit;

/// A number of connections, their rates and their resources.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirements {
    /// Concurrent connections.
    pub connections: u64,
    /// Sides of them that run on this machine.
    pub role: MachineRole,
    /// Cores of each side, or `None` for as many as the fd tables need.
    pub cores: Option<u64>,
    /// Bytes that a program keeps for a connection on each side that runs here.
    pub user_bytes: u64,
    /// Most bytes that all users hold at times: messages that are not complete, those that the
    /// server does not take, and what they keep of its answers.
    pub held_bytes: u64,
    /// Most bytes of compressed messages that the generator keeps for a connection, because later
    /// ones may refer to them.
    pub context_bytes: u64,
    /// Highest rate of connects.
    pub connects_per_s: f64,
    /// Connections that close each second; each stays in TIME-WAIT for a while.
    pub ends_per_s: f64,
    /// Backlog that the server requests for each listener.
    pub backlog: u64,
    /// Addresses that the server listens on, if they are known.
    pub listens: Vec<SocketAddr>,
    /// Source addresses and ports of the connections, or `None` if another machine chooses them.
    pub ports: Option<PortRequirements>,
    /// True if the connections run in network namespaces of their own, without connection tracking.
    pub isolated: bool,
    /// Limits against which a connection of the generator's driver counts.
    pub client_limits: &'static [Limit],
    /// Bytes that the generator's driver keeps for a connection, or `None` if that is a socket of
    /// the kernel.
    pub client_connection_bytes: Option<u64>,
}

impl Requirements {
    /// Creates requirements for `connections` over raw TCP, opened within a minute, that stay open.
    pub fn new(connections: u64, role: MachineRole) -> Self {
        Self {
            connections,
            role,
            cores: None,
            user_bytes: TCP_USER_BYTES,
            held_bytes: 0,
            context_bytes: 0,
            connects_per_s: (connections as f64 / FILL_TIME.as_secs_f64()).min(CONNECTS_PER_S_MOST),
            ends_per_s: 0.0,
            backlog: BACKLOG,
            listens: Vec::new(),
            ports: None,
            isolated: false,
            client_limits: KERNEL_LIMITS,
            client_connection_bytes: None,
        }
    }

    /// Reports whether the connections count against `limit`. A server's are sockets of the kernel.
    pub(super) fn counts_against(&self, limit: Limit) -> bool {
        self.accepts() || self.client_limits.contains(&limit)
    }

    /// Returns the number of sides on this machine.
    pub(super) fn ends(&self) -> u64 {
        match self.role {
            MachineRole::Server | MachineRole::Client => 1,
            MachineRole::Both => 2,
        }
    }

    /// Reports whether this machine accepts the connections.
    pub(super) fn accepts(&self) -> bool {
        self.role != MachineRole::Client
    }
}

/// The sides of the connections that run on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MachineRole {
    /// The server.
    Server,
    /// The generator.
    Client,
    /// Server and generator.
    Both,
}

impl MachineRole {
    /// Returns a phrase that follows "connections" in a sentence.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Server => " to a server here",
            Self::Client => " from here",
            Self::Both => " with client and server here",
        }
    }

    /// Returns a phrase for a table's note.
    pub(super) fn each(self) -> &'static str {
        match self {
            Self::Server | Self::Client => "",
            Self::Both => " for each side",
        }
    }
}

/// The addresses and ports of the connections, as far as this machine chooses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRequirements {
    /// Source addresses.
    pub addresses: u64,
    /// True if addresses are added as needed: this machine has all of 127.0.0.0/8.
    pub addresses_grow: bool,
    /// True if they are in 127.0.0.0/8.
    pub on_loopback: bool,
    /// Target addresses and ports.
    pub targets: u64,
    /// Source of the ports.
    pub chosen: PortChoice,
    /// Time for which the port of a closed connection cannot be used again.
    pub time_wait: Duration,
}

/// The program that chooses source ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortChoice {
    /// Kernel, from its range of local ports.
    Kernel,
    /// Generator, from these.
    Generator(RangeInclusive<u16>),
}

/// Bytes that one throng program keeps for an idle connection over raw TCP.
const TCP_USER_BYTES: u64 = 256;
/// The default backlog of `throng serve`.
const BACKLOG: u64 = 4_096;
/// The time in which all connections open if no rate is given, …
const FILL_TIME: Duration = Duration::from_secs(60);
/// … and the highest rate that follows from it: more than one machine can open.
const CONNECTS_PER_S_MOST: f64 = 100_000.0;
