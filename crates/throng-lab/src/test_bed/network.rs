//! The network of the two ends: the machine's own, a namespace with a larger table of connections, or one for each end.

use std::cell::{OnceCell, RefCell};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command};
use std::time::Duration;

use throng_report::render::count;

use crate::isolate::{self, Isolation, RoomyNamespace};

/// Where both ends are started.
#[derive(Debug, Default)]
pub(super) struct Network {
    isolation: Option<Isolation>,
    roomy: OnceCell<RoomyNamespace>,
    /// What a reader of the report should know about it.
    note: RefCell<Option<String>>,
}

impl Network {
    pub(super) fn new(isolation: Option<Isolation>) -> Self {
        Self { isolation, ..Self::default() }
    }

    pub(super) fn is_isolated(&self) -> bool {
        self.isolation.is_some()
    }

    /// Takes a namespace with a larger table of connections where `sockets` would users the machine's, which has
    /// `buckets`. Where that cannot be, or `may_move` forbids it, says what it costs.
    pub(super) fn use_larger_table(&self, sockets: u64, buckets: u64, may_move: bool) {
        if self.is_isolated() || self.roomy.get().is_some() || !is_crowded(sockets, buckets) {
            return;
        }
        let user_run = format!(
            "{} sockets share the {} buckets of this machine's TCP hash, {:.1} in each, and connects cost more",
            count(sockets as f64),
            count(buckets as f64),
            sockets as f64 / buckets as f64
        );
        let note = match may_move.then(|| RoomyNamespace::new(sockets)) {
            Some(Ok(roomy)) => {
                let note = format!(
                    "in a network namespace whose TCP hash has {} buckets, as this machine's {} would be crowded \
                     (--no-namespace stays in it)",
                    count(roomy.buckets as f64),
                    count(buckets as f64),
                );
                _ = self.roomy.set(roomy);
                note
            }
            Some(Err(isolate::IsolateError::Unshare(_))) => {
                format!(
                    "{user_run} ({MUCH_DEARER}): as root, the lab takes a namespace with enough of them"
                )
            }
            Some(Err(error)) => format!("{user_run} ({MUCH_DEARER}): {error}"),
            None => format!("{user_run} ({MUCH_DEARER})"),
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

    /// Whether a server at the ends' own `addr` accepts a connection within `timeout`; one in a namespace of its own
    /// cannot be asked.
    pub(super) fn accepts(&self, addr: SocketAddr, timeout: Duration) -> bool {
        let connect = move || TcpStream::connect_timeout(&addr, timeout).is_ok();
        self.roomy.get().map_or_else(connect, |roomy| roomy.run(connect))
    }

    /// Where a server is to listen.
    pub(super) fn listen_at(&self, port: u16) -> SocketAddr {
        match self.isolation {
            Some(_) => SocketAddr::from((isolate::SERVER_ADDRESS, port)),
            None => SocketAddr::from(([127, 0, 0, 1], port)),
        }
    }
}

/// Whether each packet's search for its socket becomes long; the preflight has the same limit.
fn is_crowded(sockets: u64, buckets: u64) -> bool {
    buckets > 0 && sockets > SOCKETS_PER_BUCKET * buckets
}

const SOCKETS_PER_BUCKET: u64 = 4;
/// As measured with eight in each (`docs/numbers.md`).
const MUCH_DEARER: &str = "three times as much with 8 in each";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_crowded_beyond_four_sockets_a_bucket() {
        assert!(!is_crowded(4_000, 1_000) && is_crowded(4_001, 1_000));
        assert!(!is_crowded(4_001, 0), "of an unknown table nothing is known");
    }

    #[test]
    fn who_stays_is_told_what_it_costs() {
        let network = Network::default();
        network.use_larger_table(4_000, 1_000, false);
        assert_eq!(network.note(), None);
        network.use_larger_table(8_000, 1_000, false);
        let note = network.note().unwrap();
        assert!(
            note.contains("8k sockets share the 1k buckets") && note.contains("8.0 in each"),
            "{note}"
        );
    }

    #[test]
    fn root_takes_a_namespace_and_both_ends_are_in_it() {
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
        let ends = (namespace(Network::spawn_server), namespace(Network::spawn_generator));
        assert_eq!(ends.0, ends.1);
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        assert_ne!(ends.0.trim(), own.to_str().unwrap());
    }
}
