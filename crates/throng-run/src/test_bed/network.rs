//! The network of server and generator: the machine's own, one namespace with a larger TCP hash
//! table, or a namespace for each.

use std::cell::{OnceCell, RefCell};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command};
use std::time::Duration;

use throng_report::render::count;

use crate::isolate::{self, Isolation, RoomyNamespace};

/// The network in which server and generator start.
#[derive(Debug, Default)]
pub(super) struct Network {
    isolation: Option<Isolation>,
    roomy: OnceCell<RoomyNamespace>,
    /// The address on which the server listens, if it was chosen.
    listen: Option<IpAddr>,
    /// A note on the network for the report.
    note: RefCell<Option<String>>,
}

impl Network {
    pub(super) fn new(isolation: Option<Isolation>, listen: Option<IpAddr>) -> Self {
        Self { isolation, listen, ..Self::default() }
    }

    pub(super) fn is_isolated(&self) -> bool {
        self.isolation.is_some()
    }

    /// Takes a namespace with a larger TCP hash table if `sockets` would crowd the machine's table
    /// of `buckets`. Notes the cost where that fails, or where `may_move` is false.
    pub(super) fn use_larger_table(&self, sockets: u64, buckets: u64, may_move: bool) {
        if self.is_isolated() || self.roomy.get().is_some() || !is_crowded(sockets, buckets) {
            return;
        }
        let crowded = format!(
            "{} sockets share the {} buckets of this machine's TCP hash, {:.1} per bucket, and \
             connects cost more",
            count(sockets as f64),
            count(buckets as f64),
            sockets as f64 / buckets as f64
        );
        let note = match may_move.then(|| RoomyNamespace::new(sockets)) {
            Some(Ok(roomy)) => {
                let note = format!(
                    "in a network namespace whose TCP hash has {} buckets, because this machine's \
                     {} would be crowded (--no-namespace stays in this namespace)",
                    count(roomy.buckets as f64),
                    count(buckets as f64),
                );
                _ = self.roomy.set(roomy);
                note
            }
            Some(Err(isolate::IsolateError::Unshare(_))) => {
                format!("{crowded} ({COST}): run the lab as root to give it a larger TCP hash")
            }
            Some(Err(error)) => format!("{crowded} ({COST}): {error}"),
            None => format!("{crowded} ({COST})"),
        };
        self.note.replace(Some(note));
    }

    pub(super) fn note(&self) -> Option<String> {
        self.note.borrow().clone()
    }

    pub(super) fn spawn_server(&self, mut command: Command) -> io::Result<Child> {
        match (&self.isolation, self.roomy.get()) {
            (Some(isolation), _) => isolation.spawn_server(command),
            (None, Some(roomy)) => roomy.spawn(command),
            (None, None) => command.spawn(),
        }
    }

    pub(super) fn spawn_generator(&self, mut command: Command) -> io::Result<Child> {
        match (&self.isolation, self.roomy.get()) {
            (Some(isolation), _) => isolation.spawn_generator(command),
            (None, Some(roomy)) => roomy.spawn(command),
            (None, None) => command.spawn(),
        }
    }

    /// Reports whether a server at `addr` accepts a connection within `timeout`. It cannot reach
    /// the server of an isolated lab.
    pub(super) fn accepts(&self, addr: SocketAddr, timeout: Duration) -> bool {
        let connect = move || TcpStream::connect_timeout(&addr, timeout).is_ok();
        self.roomy.get().map_or_else(connect, |roomy| roomy.run(connect))
    }

    /// Returns the address for a server to listen on. Each of several nodes has one of its own.
    pub(super) fn listen_at(&self, node: Option<u8>, port: u16) -> SocketAddr {
        let address = match (node, &self.isolation, self.listen) {
            (Some(node), _, _) => Ipv4Addr::new(127, 0, 0, node).into(),
            (None, Some(_), _) => IpAddr::from(isolate::SERVER_ADDRESS),
            (None, None, Some(listen)) => listen,
            (None, None, None) => Ipv4Addr::LOCALHOST.into(),
        };
        SocketAddr::new(address, port)
    }
}

/// Reports whether the search for a packet's socket becomes long. The preflight has the same limit.
fn is_crowded(sockets: u64, buckets: u64) -> bool {
    buckets > 0 && sockets > SOCKETS_PER_BUCKET * buckets
}

const SOCKETS_PER_BUCKET: u64 = 4;
/// The cost, as measured with eight sockets per bucket (`docs/numbers.md`).
const COST: &str = "three times as much with 8 per bucket";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_crowded_beyond_four_sockets_a_bucket() {
        assert!(!is_crowded(4_000, 1_000) && is_crowded(4_001, 1_000));
        assert!(!is_crowded(4_001, 0), "the size of the table is unknown");
    }

    #[test]
    fn a_crowded_table_is_noted_with_its_cost() {
        let network = Network::default();
        network.use_larger_table(4_000, 1_000, false);
        assert_eq!(network.note(), None);
        network.use_larger_table(8_000, 1_000, false);
        let note = network.note().unwrap();
        assert!(
            note.contains("8k sockets share the 1k buckets") && note.contains("8.0 per bucket"),
            "{note}"
        );
    }

    #[test]
    fn root_takes_a_namespace_for_server_and_generator() {
        let network = Network::default();
        network.use_larger_table(8_000, 1_000, true);
        let note = network.note().unwrap();
        if network.roomy.get().is_none() {
            assert!(note.contains("three times as much"), "{note}");
            return println!("skipped: {note}");
        }
        assert!(note.contains("has 8.19k buckets") && note.contains("--no-namespace"), "{note}");
        let namespace = |spawn: fn(&Network, Command) -> io::Result<Child>| {
            let mut command = Command::new("readlink");
            command.arg("/proc/self/ns/net").stdout(std::process::Stdio::piped());
            let output = spawn(&network, command).unwrap().wait_with_output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let server = namespace(Network::spawn_server);
        assert_eq!(server, namespace(Network::spawn_generator));
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        assert_ne!(server.trim(), own.to_str().unwrap());
    }
}
