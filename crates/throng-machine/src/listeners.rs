//! Listeners and their queues, by `sock_diag`.

use std::collections::BTreeSet;

use throng_driver::netlink::{Diag, DiagError, DiagSocket, Family, ListenerState, States};

use crate::fact::{Fact, ParseFailure, Reason, Unknown};
use crate::listener_scope::ListenerScope;

/// The sampled listeners, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerSummary {
    /// Number of listening sockets: one for each core with SO_REUSEPORT.
    pub listeners: u64,
    /// Connections that wait to be accepted, over all listeners.
    pub accept_queue: u64,
    /// Connections that wait to be accepted at the fullest listener.
    pub accept_queue_most: u64,
    /// Listeners at which connections wait, while another of the same address has none.
    pub behind: u64,
    /// Smallest backlog.
    pub backlog: u64,
    /// Listeners with a full queue: the next connection is dropped.
    pub full: u64,
    /// Handshakes that the listeners dropped since they were opened, or `None` if the kernel does
    /// not say it of each.
    pub drops: Option<u64>,
}

impl ListenerSummary {
    /// Sums up `listeners`.
    pub fn of(listeners: &[ListenerState]) -> Self {
        let mut summary = Self { drops: Some(0), ..Self::default() };
        for listener in listeners {
            let (queue, backlog) = (u64::from(listener.accept_queue), u64::from(listener.backlog));
            summary.backlog =
                if summary.listeners == 0 { backlog } else { summary.backlog.min(backlog) };
            summary.listeners += 1;
            summary.accept_queue += queue;
            summary.accept_queue_most = summary.accept_queue_most.max(queue);
            let has_none = |other: &ListenerState| other.accept_queue == 0;
            let mut twins = listeners.iter().filter(|other| other.addr == listener.addr);
            summary.behind += u64::from(queue > 0 && twins.any(has_none));
            summary.full += u64::from(queue > backlog);
            summary.drops = summary.drops.zip(listener.drops).map(|(all, n)| all + u64::from(n));
        }
        summary.drops = summary.drops.filter(|_| summary.listeners > 0);
        summary
    }
}

/// A reader of listeners of both IP versions, with its socket. Without IPv6 in the kernel there are
/// none of IPv6.
#[derive(Debug, Default)]
pub struct ListenerReader {
    socket: Option<DiagSocket>,
}

impl ListenerReader {
    /// Returns all listeners of this network namespace.
    pub fn listeners(&mut self) -> Fact<Vec<ListenerState>> {
        self.query(|socket| {
            let mut found = socket.listeners(Family::V4)?;
            found.extend(socket.listeners(Family::V6)?);
            Ok(found)
        })
    }

    /// Counts connections in SYN-RECV at those of `listeners` that are in `scope`. It walks all
    /// sockets of the namespace, once for each IP version with such a listener: see
    /// [`SocketCountMeter`](crate::SocketCountMeter). Without a listener there are no half-open
    /// connections.
    pub fn syn_recv(&mut self, listeners: &[ListenerState], scope: &ListenerScope) -> Fact<u64> {
        self.count(listeners, States::SYN_RECV, scope)
    }

    /// Counts established connections of those of `listeners` that are in `scope`. It costs more
    /// than [`Self::syn_recv`]: besides the walk, the kernel describes each connection on the
    /// scope's ports.
    pub fn established(&mut self, listeners: &[ListenerState], scope: &ListenerScope) -> Fact<u64> {
        self.count(listeners, States::ESTABLISHED, scope)
    }

    fn count(
        &mut self,
        listeners: &[ListenerState],
        states: States,
        scope: &ListenerScope,
    ) -> Fact<u64> {
        let families = families(&scope.select(listeners));
        let (ports, is_mine) = (scope.ports(), scope.connections(listeners));
        self.query(|socket| {
            let mut count = 0;
            for family in families {
                count += socket.count(family, states, &ports, &is_mine)?;
            }
            Ok(count)
        })
    }

    /// Gives each accepted connection of those of `listeners` that are in `scope`, if it may have
    /// unread bytes. It costs as much as [`Self::established`].
    pub fn accepted(
        &mut self,
        listeners: &[ListenerState],
        scope: &ListenerScope,
        mut each: impl FnMut(&Diag),
    ) -> Fact<()> {
        let families = families(&scope.select(listeners));
        let (ports, is_mine) = (scope.ports(), scope.connections(listeners));
        self.query(|socket| {
            for family in families {
                // A connection in an accept queue has no inode yet.
                socket.each(family, States::READABLE, &ports, |connection| {
                    if connection.inode != 0 && is_mine(connection.local) {
                        each(connection);
                    }
                })?;
            }
            Ok(())
        })
    }

    /// Returns the inodes of up to some sockets of this network namespace that their peers have
    /// closed and their processes have not. It walks all sockets, as [`Self::syn_recv`] does.
    pub fn close_wait(&mut self) -> Fact<BTreeSet<u64>> {
        self.query(|socket| {
            let mut found = BTreeSet::new();
            for family in [Family::V4, Family::V6] {
                socket.each(family, States::CLOSE_WAIT, &[], |connection| {
                    if connection.inode != 0 && found.len() < CLOSE_WAIT_MAX {
                        found.insert(u64::from(connection.inode));
                    }
                })?;
            }
            Ok(found)
        })
    }

    /// Returns up to some connections of this network namespace whose local port is `port` and that
    /// belong to a process. It walks all sockets, as [`Self::syn_recv`] does.
    pub fn connections_on(&mut self, port: u16) -> Fact<Vec<Diag>> {
        self.query(|socket| {
            let mut found =
                socket.sockets(Family::V4, States::CONNECTIONS, port, CONNECTIONS_MAX)?;
            found.extend(socket.sockets(Family::V6, States::CONNECTIONS, port, CONNECTIONS_MAX)?);
            found.retain(|connection| connection.inode != 0);
            Ok(found)
        })
    }

    /// Runs a query on the socket, which it opens first if necessary.
    fn query<T>(&mut self, query: impl FnOnce(&mut DiagSocket) -> Result<T, DiagError>) -> Fact<T> {
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => match DiagSocket::open() {
                Ok(socket) => socket,
                Err(error) => return Fact::Unknown(why(error)),
            },
        };
        let answer = query(&mut socket);
        self.socket = Some(socket);
        answer.map_err(why).into()
    }
}

/// Returns the kernel's tables that have connections of `listeners`. Those of IPv4 to a listener of
/// both versions are in the table of IPv6.
fn families(listeners: &[ListenerState]) -> Vec<Family> {
    let has = |v4: bool| listeners.iter().any(|listener| listener.addr.is_ipv4() == v4);
    let of = |(family, v4)| has(v4).then_some(family);
    [(Family::V4, true), (Family::V6, false)].into_iter().filter_map(of).collect()
}

/// Converts an error of `sock_diag` into a reason.
fn why(error: DiagError) -> Unknown {
    let reason = match error {
        DiagError::Open(errno) | DiagError::Send(errno) | DiagError::Refused(errno) => {
            match std::io::Error::from(errno) {
                refused if refused.kind() == std::io::ErrorKind::PermissionDenied => {
                    Reason::Refused
                }
                missing if missing.kind() == std::io::ErrorKind::NotFound => Reason::Missing,
                _ => Reason::Failed(error.to_string()),
            }
        }
        DiagError::Malformed(_) => ParseFailure("an answer of inet_diag").into(),
        DiagError::Receive(_) => Reason::Failed(error.to_string()),
    };
    Unknown::new(SOURCE, reason)
}

/// The most connections on one port that are read.
const CONNECTIONS_MAX: usize = 1_024;

/// The most sockets in CLOSE-WAIT that are read.
const CLOSE_WAIT_MAX: usize = 100_000;

/// The name of `sock_diag` as the source of a fact.
const SOURCE: &str = "sock_diag";

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(addr: &str, accept_queue: u32, backlog: u32) -> ListenerState {
        let addr = addr.parse().unwrap();
        ListenerState {
            addr,
            accept_queue,
            backlog,
            inode: 1,
            uid: 0,
            drops: Some(20),
            v6_only: None,
        }
    }

    #[test]
    fn listeners_are_summed_up() {
        let all = [
            listener("127.0.0.1:5555", 3, 128),
            listener("127.0.0.1:5555", 0, 128),
            listener("[::]:5555", 65, 64),
            listener("0.0.0.0:22", 9, 10),
        ];
        let mine = ListenerScope::Ports(vec![5555]).select(&all);
        assert_eq!(
            ListenerSummary::of(&mine),
            ListenerSummary {
                listeners: 3,
                accept_queue: 68,
                accept_queue_most: 65,
                behind: 1,
                backlog: 64,
                full: 1,
                drops: Some(60),
            }
        );
        assert_eq!(ListenerSummary::of(&all).listeners, 4);
        assert_eq!(ListenerSummary::of(&[]), ListenerSummary::default());
    }
}
