//! The kernel's hash table of TCP sockets: its buckets, and the sockets that share them.
//!
//! The kernel finds the socket of every packet along one bucket's chain. The table is made at boot,
//! with at most 524,288 buckets unless the kernel's command line sets another size. Since Linux 6.1
//! a network namespace can have a table of its own.

use crate::fact::{Fact, ParseFailure, Unknown};
use crate::proc_root::ProcRoot;
use crate::sockstat;

/// A table and its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpHash {
    /// Number of buckets.
    pub buckets: u64,
    /// Sockets in the table: of the namespace if the table is its own, else of the whole machine.
    pub sockets: u64,
    /// True if the calling thread's network namespace shares the table with others.
    pub is_shared: bool,
}

impl TcpHash {
    /// Returns the sockets for each bucket, on average.
    pub fn load(&self) -> f64 {
        self.sockets as f64 / self.buckets.max(1) as f64
    }
}

/// Reads the table of the calling thread's network namespace. It is unknown before Linux 6.1, which
/// does not report it.
pub fn tcp_hash(root: &ProcRoot) -> Fact<TcpHash> {
    let read = || -> Result<TcpHash, Unknown> {
        let entries = root.sysctl(ENTRIES).into_result()?;
        let in_use = root.read("proc/thread-self/net/sockstat", sockstat::parse).into_result()?;
        if entries == 0 {
            return Err(Unknown::new(ENTRIES, ParseFailure("a number of buckets")));
        }
        // The kernel negates the size if the table is not the namespace's own.
        let is_shared = entries < 0;
        let sockets = if is_shared { in_use.tcp_alloc } else { in_use.tcp_in_use };
        let sockets = sockets.saturating_add(in_use.tcp_time_wait);
        Ok(TcpHash { buckets: entries.unsigned_abs(), sockets, is_shared })
    };
    read().into()
}

/// The sysctl with the number of buckets.
const ENTRIES: &str = "net.ipv4.tcp_ehash_entries";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded_root;

    fn machine(entries: &str) -> Fact<TcpHash> {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/sys/net/ipv4/tcp_ehash_entries", entries);
        write(
            "proc/thread-self/net/sockstat",
            "sockets: used 9\nTCP: inuse 60 orphan 0 tw 40 alloc 460 mem 1\nUDP: inuse 0 mem 0\n",
        );
        tcp_hash(&ProcRoot::new(dir.path()))
    }

    #[test]
    fn an_own_table_holds_the_namespaces_sockets_and_a_shared_one_all() {
        let own = machine("100\n").into_result().unwrap();
        assert_eq!(own, TcpHash { buckets: 100, sockets: 100, is_shared: false });
        let shared = machine("-100\n").into_result().unwrap();
        assert_eq!(shared, TcpHash { buckets: 100, sockets: 500, is_shared: true });
        assert_eq!(shared.load(), 5.0);
        assert!(machine("0\n").known().is_none());
    }

    #[test]
    fn an_old_kernel_does_not_report_its_table() {
        assert!(tcp_hash(&recorded_root("linux-4.19")).known().is_none());
        assert!(tcp_hash(&recorded_root("linux-6.18")).known().is_some());
    }
}
