//! One network namespace for both ends, as the machine's own but for its table of TCP connections, which is large enough.
//!
//! Each packet looks for its socket along one bucket of that table. The machine's own is made when it boots, and is crowded
//! where a lab holds very many connections; a namespace of its own may have a larger one (Linux 6.1 and later).

use std::fs;
use std::io;
use std::process::{Child, Command};

use super::IsolateError;
use super::namespace::Namespace;

/// The namespace, until it is dropped and its processes have ended.
#[derive(Debug)]
pub(crate) struct RoomyNamespace {
    namespace: Namespace,
    /// Buckets of its table.
    pub(crate) buckets: u64,
}

impl RoomyNamespace {
    /// Makes one for so many sockets at a time. Needs root and `ip` of iproute2.
    pub(crate) fn new(sockets: u64) -> Result<Self, IsolateError> {
        let buckets = sockets.next_power_of_two().min(BUCKETS_MAX);
        let namespace = Namespace::new("lab", buckets)?;
        namespace.ip("link set lo up\n")?;
        for name in INHERITED {
            // One that this kernel does not have is none of the namespace's either.
            if let Ok(value) = fs::read_to_string(format!("/proc/sys/{name}")) {
                namespace.set_sysctl(name, value.trim().to_owned())?;
            }
        }
        match namespace.buckets() {
            Some(has) if has == buckets => Ok(Self { namespace, buckets }),
            _ => Err(IsolateError::Setup(
                "this kernel has one table of connections for all namespaces".to_owned(),
            )),
        }
    }

    /// Starts a process in it.
    pub(crate) fn spawn(&self, command: Command) -> io::Result<Child> {
        self.namespace.spawn(command)
    }

    /// Does something in it.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        self.namespace.run(job)
    }
}

/// The most that the kernel makes is 2^24; this is enough for eight million connections, in 32 MiB.
const BUCKETS_MAX: u64 = 1 << 22;

/// What an administrator may have set for TCP on this machine; a new namespace begins with the kernel's own values.
const INHERITED: [&str; 11] = [
    "net/core/somaxconn",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/ip_local_reserved_ports",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_fin_timeout",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_max_tw_buckets",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_syncookies",
    "net/ipv4/tcp_tw_reuse",
    "net/ipv4/tcp_wmem",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_the_machine_but_for_its_table() {
        let roomy = match RoomyNamespace::new(3_000) {
            Ok(roomy) => roomy,
            Err(error) => return println!("skipped: {error}"),
        };
        assert_eq!(roomy.buckets, 4_096);
        let read = || INHERITED.map(|name| fs::read_to_string(format!("/proc/sys/{name}")).ok());
        assert_eq!(roomy.run(read), read());
        let served = roomy.run(|| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
            std::net::TcpStream::connect(listener.local_addr()?).map(drop)
        });
        assert!(served.is_ok(), "loopback works: {served:?}");
    }
}
