//! One network namespace for server and generator. It is like the machine's own, except for a TCP
//! hash table that is large enough.
//!
//! The kernel searches one bucket of that table for each packet's socket. The machine's table has a
//! fixed size from boot, and is crowded where a lab holds very many connections. A new namespace
//! may have a larger table (Linux 6.1 and later).

use std::fs;
use std::io;
use std::process::{Child, Command};

use throng_machine::sysctl::sysctl_path;
use throng_measure::Limit;

use super::error::IsolateError;
use super::namespace::Namespace;

/// The namespace. It exists until this value is dropped and its processes have ended.
#[derive(Debug)]
pub(crate) struct RoomyNamespace {
    namespace: Namespace,
    /// Buckets of the namespace's table.
    pub(crate) buckets: u64,
}

impl RoomyNamespace {
    /// Creates a namespace for `sockets` simultaneous sockets. Needs root and `ip` of iproute2.
    pub(crate) fn new(sockets: u64) -> Result<Self, IsolateError> {
        let buckets = sockets.next_power_of_two().min(BUCKETS_MAX);
        let namespace = Namespace::new("lab", buckets)?;
        namespace.ip("link set lo up\n")?;
        for name in INHERITED {
            // A sysctl that this kernel lacks does not exist in the namespace either.
            if let Ok(value) = fs::read_to_string(format!("/{}", sysctl_path(name))) {
                namespace.set_sysctl(name, value.trim().to_owned())?;
            }
        }
        match namespace.buckets() {
            Some(has) if has == buckets => Ok(Self { namespace, buckets }),
            _ => Err(IsolateError::Setup(
                "this kernel has one TCP hash table for all namespaces".to_owned(),
            )),
        }
    }

    /// Starts a process in the namespace.
    pub(crate) fn spawn(&self, command: Command) -> io::Result<Child> {
        self.namespace.spawn(command)
    }

    /// Runs `job` on the namespace's thread and returns its result.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        self.namespace.run(job)
    }
}

/// The most buckets: enough for eight million connections, in 32 MiB. The kernel allows 2^24.
const BUCKETS_MAX: u64 = 1 << 22;

/// TCP sysctls that an administrator may have set on this machine. A new namespace begins with the
/// kernel's defaults.
const INHERITED: [&str; 11] = [
    Limit::SOMAXCONN.name(),
    Limit::PORTS.name(),
    Limit::RESERVED_PORTS.name(),
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fin_timeout",
    Limit::SYN_BACKLOG.name(),
    Limit::TIME_WAIT.name(),
    "net.ipv4.tcp_rmem",
    Limit::SYNCOOKIES.name(),
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_is_like_the_machine_except_for_its_table() {
        let roomy = match RoomyNamespace::new(3_000) {
            Ok(roomy) => roomy,
            Err(error) => return println!("skipped: {error}"),
        };
        assert_eq!(roomy.buckets, 4_096);
        let read =
            || INHERITED.map(|name| fs::read_to_string(format!("/{}", sysctl_path(name))).ok());
        assert_eq!(roomy.run(read), read());
        let served = roomy.run(|| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
            std::net::TcpStream::connect(listener.local_addr()?).map(drop)
        });
        assert!(served.is_ok(), "loopback works: {served:?}");
    }
}
