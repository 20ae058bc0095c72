//! What every core of a server knows, and none changes.

use std::sync::mpsc::SyncSender;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::SocketOptions;
use throng_report::RunEvent;

use crate::AcceptTopology;

/// The options as the cores need them. [`Server`](crate::Server) makes one out of its options; the simulation makes
/// its own.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// How connections find their core.
    pub accept: AcceptTopology,
    /// Established connections that may wait for accept.
    pub backlog: u32,
    /// Options of accepted sockets.
    pub sockets: SocketOptions,
    /// A connection of which nothing is heard for so long is closed.
    pub idle_timeout: Option<Duration>,
    /// How many permits the cores share; at most as many as their fd tables hold beside a listener each.
    pub connections_max: usize,
    /// Whether it is the fd tables that set `connections_max`: then reaching it is told as a full table.
    pub limited_by_fds: bool,
    /// Where events go.
    pub events: Option<SyncSender<RunEvent>>,
    /// The moment from which events count.
    pub epoch: Instant,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            accept: AcceptTopology::default(),
            backlog: 4_096,
            sockets: SocketOptions::default(),
            idle_timeout: None,
            connections_max: usize::MAX,
            limited_by_fds: false,
            events: None,
            epoch: Instant::ZERO,
        }
    }
}
