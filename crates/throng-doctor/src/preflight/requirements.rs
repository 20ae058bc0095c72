//! What is asked of a machine.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Serialize;

/// So many connections, and how they come about.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirements {
    /// Open at once.
    pub connections: u64,
    /// Which ends of them are on this machine.
    pub role: MachineRole,
    /// Cores of each end, where they are given; else as many as the fd tables need.
    pub cores: Option<u64>,
    /// What a program keeps of a connection, at each end that is here.
    pub user_bytes: u64,
    /// How fast they are opened at the steepest.
    pub connects_per_s: f64,
    /// How many end each second, each of which stays in TIME-WAIT for a while.
    pub ends_per_s: f64,
    /// Connections that may wait for accept, for each listener, as the server asks for it.
    pub backlog: u64,
    /// Where the server listens, if that is known: its port, and the address where that is named.
    pub listens: Vec<SocketAddr>,
    /// Addresses and ports that connections leave from; none where they are somebody else's.
    pub ports: Option<PortRequirements>,
    /// Whether the connections run in namespaces of their own, in which nothing is tracked.
    pub isolated: bool,
}

impl Requirements {
    /// `connections` over raw TCP within a minute, which stay.
    pub fn new(connections: u64, role: MachineRole) -> Self {
        Self {
            connections,
            role,
            cores: None,
            user_bytes: TCP_USER_BYTES,
            connects_per_s: (connections as f64 / FILL_TIME.as_secs_f64()).min(CONNECTS_PER_S_MOST),
            ends_per_s: 0.0,
            backlog: BACKLOG,
            listens: Vec::new(),
            ports: None,
            isolated: false,
        }
    }

    /// Ends that are on this machine.
    pub(super) fn ends(&self) -> u64 {
        match self.role {
            MachineRole::Server | MachineRole::Client => 1,
            MachineRole::Both => 2,
        }
    }

    /// Whether connections are accepted here.
    pub(super) fn accepts(&self) -> bool {
        self.role != MachineRole::Client
    }

    /// What one throng program keeps of an idle connection over raw TCP, at most.
    pub const TCP_USER_BYTES: u64 = TCP_USER_BYTES;
    /// The same for a WebSocket whose user has joined a topic.
    pub const WEBSOCKET_USER_BYTES: u64 = 300;
}

/// Which ends of the connections are on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MachineRole {
    /// The server.
    Server,
    /// The generator.
    Client,
    /// Both.
    Both,
}

impl MachineRole {
    /// As it follows "connections" in a sentence.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Server => " to a server here",
            Self::Client => " from here",
            Self::Both => " with both ends here",
        }
    }

    /// As a table's note says it.
    pub(super) fn each(self) -> &'static str {
        match self {
            Self::Server | Self::Client => "",
            Self::Both => " at each end",
        }
    }
}

/// The four numbers that name a connection, as far as they are this machine's to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRequirements {
    /// Source addresses.
    pub addresses: u64,
    /// Whether more addresses are taken as they are needed: 127.0.0.0/8 is all this machine's.
    pub addresses_grow: bool,
    /// Whether they are of 127.0.0.0/8, where this machine has them all.
    pub on_loopback: bool,
    /// Addresses and ports that are connected to.
    pub targets: u64,
    /// Which ports connections leave from.
    pub chosen: PortChoice,
    /// How long the port of a closed connection cannot be used again.
    pub time_wait: Duration,
}

/// Who chooses the ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortChoice {
    /// The kernel, from `net.ipv4.ip_local_port_range`.
    Kernel,
    /// The generator, from these.
    Generator(RangeInclusive<u16>),
}

const TCP_USER_BYTES: u64 = 256;
/// The backlog of `throng serve`.
const BACKLOG: u64 = 4_096;
/// Who says nothing of a rate is taken to open all connections within this time,
const FILL_TIME: Duration = Duration::from_secs(60);
/// and at most so many a second, which is more than one machine opens.
const CONNECTS_PER_S_MOST: f64 = 100_000.0;
