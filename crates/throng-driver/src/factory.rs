//! The maker of drivers, and what its drivers can hold.

use std::ops::RangeInclusive;
use std::time::Duration;

use throng_measure::Limit;

use crate::fdtable::{self, FdTables};
use crate::{Driver, EpollDriver, Errno, ThreadLink, process};

/// Maker of the drivers of a set of cores: see [`spawn`](crate::spawn).
pub trait DriverFactory: Clone + Send + Sync + 'static {
    /// Driver of one core, whose set exchanges messages of type `M`.
    type Driver<M: Send + 'static>: Driver<Message = M>;

    /// Returns what the drivers can hold on this machine now.
    fn capacity(&self) -> DriverCapacity;

    /// Makes the driver of one core, on the core's own thread.
    ///
    /// # Errors
    /// The machine lacks something that every core needs. Then no core runs.
    fn make<M: Send + 'static>(&self, link: ThreadLink<M>) -> Result<Self::Driver<M>, Errno>;
}

/// What the drivers of one factory can hold, and what their connections take of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct DriverCapacity {
    /// Connections of the cores.
    pub room: CoreRoom,
    /// Source ports, or `None` if connections have none that can run out.
    pub ports: Option<SourcePorts>,
    /// Bytes that the driver and the kernel keep for an idle connection. `None` if that is a socket
    /// of the kernel, whose size depends on the machine.
    pub connection_bytes: Option<u64>,
    /// Limits of the machine against which a connection counts. A connect that fails with the error
    /// of one of them has reached it.
    pub limits: &'static [Limit],
}

/// Number of connections that cores hold, as far as their driver limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreRoom {
    /// Each connection is an fd in one of these tables.
    FdTables(FdTables),
    /// Each core holds this many.
    Each(u64),
    /// Memory alone limits it.
    Unlimited,
}

/// Source ports that the connections of one source address take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePorts {
    /// Ports that the driver chooses from.
    pub range: RangeInclusive<u16>,
    /// Time for which the port of a closed connection cannot be used again.
    pub remote_time_wait: Duration,
    /// The same time if both ends are on the loopback network.
    pub loopback_time_wait: Duration,
}

impl SourcePorts {
    /// Returns the time for which the port of a closed connection cannot be used again.
    pub fn time_wait(&self, on_loopback: bool) -> Duration {
        if on_loopback { self.loopback_time_wait } else { self.remote_time_wait }
    }
}

impl DriverCapacity {
    /// Returns the most connections that so many cores hold; `u64::MAX` without a limit.
    pub fn connections(&self, cores: usize) -> u64 {
        match self.room {
            CoreRoom::FdTables(tables) => tables.connections(cores),
            CoreRoom::Each(most) => most.saturating_mul(cores as u64),
            CoreRoom::Unlimited => u64::MAX,
        }
    }

    /// Returns the fewest cores that hold `connections`, at least one for each CPU. Returns the
    /// number of CPUs if no number of cores holds them.
    pub fn cores_for(&self, connections: u64, cpus: usize) -> usize {
        let fits = |cores: &usize| self.connections(*cores) >= connections;
        (cpus..fdtable::CORES_MAX).find(fits).unwrap_or(cpus)
    }

    /// Reports whether each core has an fd table of its own.
    pub fn private_fds(&self) -> bool {
        matches!(self.room, CoreRoom::FdTables(tables) if tables.private)
    }

    /// Returns the limit that a connect which fails with `errno` has reached.
    pub fn limit_reached(&self, errno: Errno) -> Option<Limit> {
        Limit::of_errno(errno.name()).filter(|limit| self.limits.contains(limit))
    }
}

/// Maker of [`EpollDriver`]s.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epoll;

impl DriverFactory for Epoll {
    type Driver<M: Send + 'static> = EpollDriver<M>;

    fn capacity(&self) -> DriverCapacity {
        let (remote_time_wait, loopback_time_wait) = process::time_waits();
        let range = process::local_port_range();
        DriverCapacity {
            room: CoreRoom::FdTables(FdTables::of_this_process()),
            ports: Some(SourcePorts { range, remote_time_wait, loopback_time_wait }),
            connection_bytes: None,
            limits: KERNEL_LIMITS,
        }
    }

    fn make<M: Send + 'static>(&self, link: ThreadLink<M>) -> Result<EpollDriver<M>, Errno> {
        EpollDriver::new(link)
    }
}

/// Limits against which a socket of the kernel counts that epoll watches.
pub const KERNEL_LIMITS: &[Limit] = &[
    Limit::FDS,
    Limit::FILES,
    Limit::EPOLL_WATCHES,
    Limit::PORTS,
    Limit::TIME_WAIT,
    Limit::TCP_MEMORY,
    Limit::TCP_HASH,
    Limit::CONNTRACK,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity(room: CoreRoom) -> DriverCapacity {
        DriverCapacity { room, ports: None, connection_bytes: None, limits: &[Limit::FDS] }
    }

    #[test]
    fn cores_are_as_many_as_hold_the_connections() {
        let tables = |private| capacity(CoreRoom::FdTables(FdTables { limit: 20_000, private }));
        assert_eq!(tables(true).cores_for(200_000, 2), 11);
        assert_eq!(tables(true).cores_for(1_000, 2), 2);
        assert_eq!(tables(false).cores_for(200_000, 2), 2, "more cores do not help");
        assert_eq!(capacity(CoreRoom::Each(100)).cores_for(1_000, 2), 10);
        assert_eq!(capacity(CoreRoom::Unlimited).cores_for(u64::MAX, 2), 2);
    }

    #[test]
    fn a_connect_reaches_only_limits_of_its_driver() {
        let capacity = capacity(CoreRoom::Unlimited);
        assert_eq!(capacity.limit_reached(Errno::TABLE_FULL), Some(Limit::FDS));
        assert_eq!(capacity.limit_reached(Errno::ADDR_NOT_AVAILABLE), None);
        assert_eq!(capacity.limit_reached(Errno::TIMED_OUT), None);
    }
}
