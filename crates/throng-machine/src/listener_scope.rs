//! The listeners of one server among all listeners of a network namespace.
//!
//! A port alone names no server: two servers can listen on one port of two addresses, and on `::1`
//! beside `127.0.0.1`. A connection reaches the listeners at its own address, or else those at all
//! addresses (`inet_lookup_listener`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use throng_driver::netlink::ListenerState;

/// The listeners that a sample is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListenerScope {
    /// All listeners of the namespace.
    #[default]
    All,
    /// The listeners on these ports, at any address.
    Ports(Vec<u16>),
    /// The listeners that connections to these addresses reach.
    Targets(Vec<SocketAddr>),
}

impl ListenerScope {
    /// Returns the scope of `ports`; no ports means all listeners.
    pub fn of_ports(ports: Vec<u16>) -> Self {
        if ports.is_empty() { Self::All } else { Self::Ports(ports) }
    }

    /// Returns the ports of the scope; none means any port.
    pub fn ports(&self) -> Vec<u16> {
        let mut ports = match self {
            Self::All => Vec::new(),
            Self::Ports(ports) => ports.clone(),
            Self::Targets(targets) => targets.iter().map(SocketAddr::port).collect(),
        };
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Returns those of `all` listeners that are in the scope.
    pub fn select(&self, all: &[ListenerState]) -> Vec<ListenerState> {
        let is_mine = |listener: &&ListenerState| match self {
            Self::All => true,
            Self::Ports(ports) => ports.contains(&listener.addr.port()),
            Self::Targets(targets) => targets.iter().any(|target| reaches(*target, listener, all)),
        };
        all.iter().filter(is_mine).copied().collect()
    }

    /// Returns a test for the local address of a connection: whether the connection belongs to a
    /// listener in the scope, given `all` listeners.
    pub fn connections<'a>(&self, all: &'a [ListenerState]) -> impl Fn(SocketAddr) -> bool + 'a {
        let mine = self.select(all);
        // A server may have a listener for each core: one of each address is enough.
        let mut addresses: Vec<(&ListenerState, bool)> = Vec::new();
        for listener in all {
            if addresses.iter().all(|(known, _)| known.addr != listener.addr) {
                addresses.push((listener, mine.contains(listener)));
            }
        }
        move |local| {
            let fitting = addresses.iter().filter_map(|(one, mine)| Some((fit(local, one)?, mine)));
            fitting.max_by_key(|(fit, _)| *fit).is_some_and(|(_, mine)| *mine)
        }
    }
}

/// Returns the listeners on a target's port that connections to the target do not reach, if no
/// listener gets these connections.
pub fn listeners_elsewhere(target: SocketAddr, all: &[ListenerState]) -> Vec<ListenerState> {
    if all.iter().any(|listener| reaches(target, listener, all)) {
        return Vec::new();
    }
    all.iter().filter(|listener| listener.addr.port() == target.port()).copied().collect()
}

/// Reports whether connections to `target` reach `listener`, one of `all`.
fn reaches(target: SocketAddr, listener: &ListenerState, all: &[ListenerState]) -> bool {
    let fit = fit(target, listener);
    fit.is_some() && fit == all.iter().filter_map(|other| self::fit(target, other)).max()
}

/// How closely a listener's address fits that of a connection. The closest fit gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// All addresses of IPv6 and IPv4, for a connection of IPv4.
    BothVersions,
    /// All addresses of the same version.
    AnyAddress,
    /// The same address.
    Exact,
}

fn fit(target: SocketAddr, listener: &ListenerState) -> Option<Fit> {
    if target.port() != listener.addr.port() {
        return None;
    }
    // A socket of IPv6 shows an IPv4 address as `::ffff:127.0.0.1`.
    let target = target.ip().to_canonical();
    match (listener.addr.ip().to_canonical(), target) {
        (listens, target) if listens == target => Some(Fit::Exact),
        (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(_))
        | (IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V6(_)) => Some(Fit::AnyAddress),
        (IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(_)) if listener.v6_only != Some(true) => {
            Some(Fit::BothVersions)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(addr: &str) -> ListenerState {
        let (addr, v6_only) = match addr.strip_suffix(" v6only") {
            Some(addr) => (addr, Some(true)),
            None => (addr, None),
        };
        let addr = addr.parse().unwrap();
        ListenerState { addr, accept_queue: 0, backlog: 1, inode: 1, uid: 0, drops: None, v6_only }
    }

    fn select(target: &str, all: &[&str]) -> Vec<String> {
        let all: Vec<_> = all.iter().map(|addr| listener(addr)).collect();
        let scope = ListenerScope::Targets(vec![target.parse().unwrap()]);
        scope.select(&all).iter().map(|listener| listener.addr.to_string()).collect()
    }

    #[test]
    fn a_connection_reaches_its_own_address_before_all_addresses() {
        let check = |target: &str, all: &[&str], expected: &[&str]| {
            assert_eq!(select(target, all), expected, "{target} {all:?}");
        };
        check("127.0.0.1:80", &["127.0.0.1:80", "127.0.0.2:80"], &["127.0.0.1:80"]);
        check("127.0.0.1:80", &["[::1]:80", "127.0.0.1:80"], &["127.0.0.1:80"]);
        check("127.0.0.1:80", &["0.0.0.0:80", "127.0.0.1:80"], &["127.0.0.1:80"]);
        check("127.0.0.2:80", &["0.0.0.0:80", "127.0.0.1:80"], &["0.0.0.0:80"]);
        check("127.0.0.1:80", &["[::]:80", "127.0.0.2:80"], &["[::]:80"]);
        check("127.0.0.1:80", &["[::]:80", "0.0.0.0:80"], &["0.0.0.0:80"]);
        check("127.0.0.1:80", &["[::]:80 v6only", "0.0.0.0:81"], &[]);
        check("[::1]:80", &["[::]:80 v6only", "0.0.0.0:80"], &["[::]:80"]);
        check("[::1]:80", &["127.0.0.1:80", "0.0.0.0:80"], &[]);
        check("127.0.0.1:80", &["[::ffff:127.0.0.1]:80"], &["[::ffff:127.0.0.1]:80"]);
        // One socket for each worker.
        check("127.0.0.1:80", &["0.0.0.0:80", "0.0.0.0:80"], &["0.0.0.0:80", "0.0.0.0:80"]);
    }

    #[test]
    fn a_connection_belongs_to_the_listener_that_it_reached() {
        let all = ["0.0.0.0:80", "127.0.0.1:80", "[::]:80"].map(listener);
        let takes = |target: &str, local: &str| {
            let scope = ListenerScope::Targets(vec![target.parse().unwrap()]);
            scope.connections(&all)(local.parse().unwrap())
        };
        assert!(takes("127.0.0.1:80", "127.0.0.1:80"));
        assert!(!takes("127.0.0.1:80", "127.0.0.2:80"), "it reached the other listener");
        assert!(takes("10.0.0.1:80", "127.0.0.2:80"), "the listener has all other addresses");
        assert!(takes("[::1]:80", "[::2]:80") && !takes("[::1]:80", "127.0.0.1:80"));
        assert!(!takes("127.0.0.1:80", "127.0.0.1:81"));
        let ports = ListenerScope::of_ports(vec![80]);
        assert!(ports.connections(&all)("127.0.0.2:80".parse().unwrap()));
        assert!(!ports.connections(&all)("127.0.0.2:81".parse().unwrap()), "a client's port");
    }

    #[test]
    fn a_port_that_is_served_at_another_address_only_is_found() {
        let all = ["[::1]:80", "127.0.0.2:80", "127.0.0.1:81"].map(listener);
        let elsewhere = |target: &str| {
            let found = listeners_elsewhere(target.parse().unwrap(), &all);
            found.iter().map(|listener| listener.addr.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(elsewhere("127.0.0.1:80"), ["[::1]:80", "127.0.0.2:80"]);
        assert_eq!(elsewhere("127.0.0.1:81"), [""; 0], "a listener has it");
        assert_eq!(elsewhere("127.0.0.1:82"), [""; 0]);
    }
}
