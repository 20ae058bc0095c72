//! What a server is told: every option with its meaning, unit and default.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use throng_driver::{SocketOptions, fdtable};

/// How a server listens and what it allows.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where to listen, IPv4 or IPv6; an IPv6 address, `[::]` too, takes IPv6 alone. Port 0 lets the kernel choose;
    /// every core then uses the same one. Default `127.0.0.1:0`.
    pub listen: SocketAddr,
    /// How many cores run. Default: one for each CPU, or as many as `connections_max` needs where fd tables are
    /// private and smaller than it, whichever is more.
    pub cores: Option<usize>,
    /// How accepted connections find their core. Default [`Accept::Reuseport`].
    pub accept: AcceptTopology,
    /// Established connections that may wait for accept, for each listening socket; the kernel clamps it to
    /// `net.core.somaxconn`. Default 4,096.
    pub backlog: u32,
    /// Connections over all cores; never exceeded. Further ones wait in the kernel's accept queue.
    /// Default and upper bound: what the fd tables of all cores hold.
    pub connections_max: Option<usize>,
    /// A connection of which nothing was heard for this long is closed, at most 8.4 ms (a tick of the wheel) later. One that is
    /// slow is not received from, and counts as heard of while it takes some of the bytes that wait for it.
    /// Default: never.
    pub idle_timeout: Option<Duration>,
    /// Send buffer of each connection in bytes; the kernel clamps it to `net.core.wmem_max`, then doubles it. Default: the
    /// kernel's, which grows by itself.
    pub sndbuf_bytes: Option<u32>,
    /// Receive buffer of each connection in bytes; the kernel clamps it to `net.core.rmem_max`, then doubles it. Default:
    /// the kernel's, which grows by itself.
    pub rcvbuf_bytes: Option<u32>,
    /// Bytes that may wait in this process for one peer that does not read; beyond, it is reset. What one call of the
    /// handler adds while nothing waits is beside it, up to eight times as much; so is one publication, which all its
    /// readers share, however long it is. Default 1 MiB.
    pub pending_bytes_max: usize,
    /// How long a connection that closes may take to deliver what waits for it. Default 5 s.
    pub close_timeout: Duration,
    /// Messages from elsewhere that wait for a core; beyond, [`send_message`](crate::ServerHandle::send_message)
    /// refuses. Default 4,096.
    pub mailbox_max: usize,
    /// Whether every core has an fd table of its own, where the machine allows it. Each then holds as
    /// many connections as RLIMIT_NOFILE allows, and no two cores wait for one table's lock, which at
    /// high accept rates costs more than half of the CPU. Default false.
    ///
    /// **With such tables an fd is good on one thread only.** A handler must then use no fd that was
    /// opened outside its own methods: no `File`, socket or pipe that `make` captured, none that comes
    /// in a message, no logger that writes to a file. What was open when the server started is closed
    /// on the cores, and every use fails with EBADF. What is opened later on another thread has a
    /// number that may be a connection's here: writing to it writes into that connection. Standard
    /// output and standard error stay as they are. Where in doubt, leave it off, or let the handler
    /// send what it has to write to another thread.
    pub private_fds: bool,
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
        }
    }
}

impl ServerOptions {
    pub(crate) fn socket_options(&self) -> SocketOptions {
        SocketOptions {
            nodelay: true,
            sndbuf_bytes: self.sndbuf_bytes,
            rcvbuf_bytes: self.rcvbuf_bytes,
            arrival_stamps: false,
        }
    }
}

/// How accepted connections find their core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcceptTopology {
    /// Every core has a listening socket of its own (SO_REUSEPORT); the kernel's hash spreads connects over them.
    #[default]
    Reuseport,
    /// One listening socket which all cores watch: an acceptor and a registry for each core.
    Shared,
    /// One listening socket, an acceptor for each core, and one registry for all that every accept waits for. It
    /// hands connections out in turn. Slow by design: it is there to be compared with.
    Dispatch,
}

impl AcceptTopology {
    /// As it is written on the command line and in reports.
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

/// The size of a server: what was asked for, brought together with what the fd tables hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) cores: usize,
    pub(crate) connections_max: usize,
    /// Whether the fd tables, rather than the option, set `connections_max`.
    pub(crate) limited_by_fds: bool,
}

impl Size {
    /// `fds` is the limit of one table; `private` says whether every core has one.
    pub(crate) fn of(options: &ServerOptions, cpus: usize, fds: usize, private: bool) -> Self {
        let room =
            |cores| if private { connections_per_table(fds, cores).saturating_mul(cores) } else { connections_per_table(fds, cores) };
        let cores = match (options.cores, options.connections_max) {
            (Some(cores), _) => cores.max(1),
            (None, Some(wanted)) if private => cores_for(wanted, cpus, room),
            (None, _) => cpus,
        };
        let room = room(cores);
        match options.connections_max {
            // With one table for the whole process nobody knows how much of it is left: EMFILE will tell.
            Some(wanted) if wanted <= room || !private => {
                Self { cores, connections_max: wanted, limited_by_fds: false }
            }
            _ => Self { cores, connections_max: room, limited_by_fds: true },
        }
    }
}

/// The fewest cores, from `cpus` up, whose tables hold `wanted` connections, or as many as hold the most: every core
/// costs every table a few fds.
fn cores_for(wanted: usize, cpus: usize, room: impl Fn(usize) -> usize) -> usize {
    let mut cores = cpus;
    while room(cores) < wanted && room(cores + 1) > room(cores) {
        cores += 1;
    }
    cores
}

/// Connections that fit into one table beside the listener.
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
