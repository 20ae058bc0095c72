//! The configuration that all cores of a server share. It does not change while the server runs.

use std::sync::mpsc::SyncSender;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::SocketOptions;
use throng_measure::RunEvent;

use crate::AcceptTopology;

/// The options as the cores use them. [`RunningServer`](crate::RunningServer) makes it from its
/// options; the simulation makes its own.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The way accepted connections reach their core.
    pub accept: AcceptTopology,
    /// Established connections that may wait in the accept queue.
    pub backlog: u32,
    /// Options of accepted sockets.
    pub sockets: SocketOptions,
    /// Time without received bytes after which a connection is closed.
    pub idle_timeout: Option<Duration>,
    /// The number of permits that the cores share: at most as many as their fd tables hold, without
    /// one listener each.
    pub connections_max: usize,
    /// True if the fd tables set `connections_max`: reaching it is then reported as a full table.
    pub limited_by_fds: bool,
    /// The queue that events go to.
    pub events: Option<SyncSender<RunEvent>>,
    /// The time zero of events.
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
