//! The options of a server: each with its meaning, unit and default.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use throng_driver::{SocketOptions, fdtable};
use throng_tls::TlsServerOptions;

/// The options of a server: where it listens, and its limits.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The address to listen on, IPv4 or IPv6. An IPv6 address, `[::]` too, accepts IPv6 only. With
    /// port 0 the kernel chooses one port for all cores. Default `127.0.0.1:0`.
    pub listen: SocketAddr,
    /// The number of cores. Default: one for each CPU, or as many as `connections_max` needs where
    /// fd tables are private and smaller than it, whichever is more.
    pub cores: Option<usize>,
    /// The way accepted connections reach their core. Default [`AcceptTopology::Reuseport`].
    pub accept: AcceptTopology,
    /// Established connections that may wait in the accept queue of each listening socket; the
    /// kernel clamps it to [`Limit::SOMAXCONN`](throng_measure::Limit::SOMAXCONN). Default 4,096.
    pub backlog: u32,
    /// The maximum of connections over all cores. Further ones wait in the kernel's accept queue.
    /// Default and upper bound: what the fd tables of all cores hold.
    pub connections_max: Option<usize>,
    /// Time without received bytes after which a connection is closed, at most 8.4 ms (a tick of
    /// the wheel) late. Nothing is received from a slow reader; it counts as active while it takes
    /// some of the bytes that wait for it. Default: never.
    pub idle_timeout: Option<Duration>,
    /// The send buffer of each connection in bytes; the kernel clamps it to `net.core.wmem_max`,
    /// then doubles it. Default: the kernel's, which grows by itself.
    pub sndbuf_bytes: Option<u32>,
    /// The receive buffer of each connection in bytes; the kernel clamps it to `net.core.rmem_max`,
    /// then doubles it. Default: the kernel's, which grows by itself.
    pub rcvbuf_bytes: Option<u32>,
    /// Bytes that may wait in this process for one peer that does not read. Beyond this, the
    /// connection is reset. Two things do not count: the bytes that one call of the handler adds
    /// while nothing waits, up to eight times as many; and one publication of any length, which all
    /// its readers share. Default 1 MiB.
    pub pending_bytes_max: usize,
    /// Time for a closing connection to deliver the bytes that wait for it. Default 5 s.
    pub close_timeout: Duration,
    /// Messages from other cores and threads that may wait for a core. Beyond this,
    /// [`send_message`](crate::ServerHandle::send_message) refuses. Default 4,096.
    pub mailbox_max: usize,
    /// True to give every core an fd table of its own, where the machine allows it. Each then holds
    /// as many connections as the limit of fds allows, and no two cores wait for one table's lock,
    /// which at high accept rates costs more than half of the CPU. Default false.
    ///
    /// **With such tables an fd is valid on one thread only.** A handler must then use no fd that
    /// was opened outside its own methods: no `File`, socket or pipe that `make` captured, none
    /// from a message, no logger that writes to a file. Fds that were open when the server started
    /// are closed on the cores, and every use fails with EBADF. An fd that another thread opens
    /// later has a number that may be a connection's on the core: writing to it writes into that
    /// connection. Standard output and standard error stay open. If in doubt, leave it off, or let
    /// the handler send data to another thread that writes it.
    pub private_fds: bool,
    /// TLS of all connections. No handler sees it: each kind of server can have it. Default: none,
    /// the connections are plain.
    pub tls: Option<TlsServerOptions>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            cores: None,
            accept: AcceptTopology::default(),
            backlog: 4_096,
            connections_max: None,
            idle_timeout: None,
            sndbuf_bytes: None,
            rcvbuf_bytes: None,
            pending_bytes_max: 1 << 20,
            close_timeout: Duration::from_secs(5),
            mailbox_max: 4_096,
            private_fds: false,
            tls: None,
        }
    }
}

impl ServerOptions {
    /// Returns the options of accepted sockets.
    pub(crate) fn socket_options(&self) -> SocketOptions {
        SocketOptions {
            nodelay: true,
            sndbuf_bytes: self.sndbuf_bytes,
            rcvbuf_bytes: self.rcvbuf_bytes,
            arrival_stamps: false,
        }
    }
}

/// The way accepted connections reach their core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcceptTopology {
    /// Every core has a listening socket of its own (SO_REUSEPORT). The kernel spreads connects
    /// over them by a hash.
    #[default]
    Reuseport,
    /// One listening socket, which all cores watch. Each core has an acceptor and a registry.
    Shared,
    /// One listening socket, an acceptor for each core, and one registry that every accept waits
    /// for. It assigns connections to cores in turn. Slow by design: it exists for comparison.
    Dispatch,
}

impl AcceptTopology {
    /// Returns the name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reuseport => "reuseport",
            Self::Shared => "shared",
            Self::Dispatch => "dispatch",
        }
    }
}

impl std::fmt::Display for AcceptTopology {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for AcceptTopology {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Reuseport, Self::Shared, Self::Dispatch]
            .into_iter()
            .find(|accept| accept.name() == text)
            .ok_or_else(|| format!("`{text}` is not one of reuseport, shared, dispatch"))
    }
}

/// The size of a server: the requested size, limited by what the fd tables hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) cores: usize,
    pub(crate) connections_max: usize,
    /// True if the fd tables, not the option, set `connections_max`.
    pub(crate) limited_by_fds: bool,
}

impl Size {
    /// Computes the size. `fds` is the limit of one table; `private` is true if every core has one.
    pub(crate) fn of(options: &ServerOptions, cpus: usize, fds: usize, private: bool) -> Self {
        let room = |cores| {
            if private {
                connections_per_table(fds, cores).saturating_mul(cores)
            } else {
                connections_per_table(fds, cores)
            }
        };
        let cores = match (options.cores, options.connections_max) {
            (Some(cores), _) => cores.max(1),
            (None, Some(requested)) if private => cores_for(requested, cpus, room),
            (None, _) => cpus,
        };
        let room = room(cores);
        match options.connections_max {
            // With one table for the process, the free part of it is unknown: EMFILE will report
            // it.
            Some(requested) if requested <= room || !private => {
                Self { cores, connections_max: requested, limited_by_fds: false }
            }
            _ => Self { cores, connections_max: room, limited_by_fds: true },
        }
    }
}

/// Returns the fewest cores, `cpus` at least, whose tables hold `requested` connections, or the
/// number of cores that holds the most: every core costs every table a few fds.
fn cores_for(requested: usize, cpus: usize, room: impl Fn(usize) -> usize) -> usize {
    let mut cores = cpus;
    while room(cores) < requested && room(cores + 1) > room(cores) {
        cores += 1;
    }
    cores
}

/// Returns the number of connections that fit into one table beside the listener.
fn connections_per_table(fds: usize, cores: usize) -> usize {
    fdtable::usable(fds, cores).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(cores: Option<usize>, max: Option<usize>, fds: usize, private: bool) -> Size {
        let options = ServerOptions { cores, connections_max: max, ..ServerOptions::default() };
        Size::of(&options, 2, fds, private)
    }

    #[test]
    fn small_tables_make_for_more_cores() {
        let one = connections_per_table(20_000, 11);
        assert_eq!(size(None, Some(200_000), 20_000, true).cores, 200_000usize.div_ceil(one));
        assert_eq!(size(None, Some(10_000), 20_000, true).cores, 2);
        assert_eq!(size(None, Some(200_000), 20_000, false).cores, 2);
    }

    #[test]
    fn private_tables_bound_the_connections() {
        let size = size(Some(2), Some(200_000), 20_000, true);
        assert_eq!(size.connections_max, 2 * connections_per_table(20_000, 2));
        assert!(size.limited_by_fds);
    }

    #[test]
    fn what_no_number_of_cores_holds_is_held_as_far_as_possible() {
        let most = (2..400).map(|cores| cores * connections_per_table(1_024, cores)).max();
        let size = size(None, Some(10_000_000), 1_024, true);
        assert_eq!(Some(size.connections_max), most);
    }

    #[test]
    fn an_accept_topology_is_read_as_it_is_written() {
        assert_eq!("shared".parse(), Ok(AcceptTopology::Shared));
        assert!("ranch".parse::<AcceptTopology>().unwrap_err().contains("dispatch"));
    }
}
