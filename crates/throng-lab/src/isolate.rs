//! Each end of a lab in a network namespace of its own: own counters, own sysctls, own TCP hash table.
//!
//! ```text
//!   namespace "server"                        namespace "generator"
//!   198.18.0.1/15  veth-server ------------ veth-load  198.18.1.1 … 198.18.1.64 /15
//! ```
//!
//! The namespaces have no names, and the veth pair is made inside them: the host never sees it. They
//! live as long as the lab's two [`Namespace`] threads and the processes that were started in them. These
//! processes end when their standard input does, which the kernel closes with the lab, whichever
//! way it ends. So there is nothing to clean up after a crash, and no list of what to clean up.

mod namespace;
mod roomy;

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::process::{Child, Command};

use throng_driver::Errno;

use namespace::Namespace;
pub(crate) use roomy::RoomyNamespace;

/// The two namespaces and the veth pair between them, until it is dropped and its processes have ended.
#[derive(Debug)]
pub struct Isolation {
    server: Namespace,
    generator: Namespace,
}

impl Isolation {
    /// Makes both namespaces for `users` connections at a time. Needs root and `ip` of iproute2.
    pub fn new(users: u64) -> Result<Self, IsolateError> {
        let buckets = users.max(BUCKETS_MIN).next_power_of_two().min(BUCKETS_MAX);
        let server = Namespace::new("lab-server", buckets)?;
        let load = Namespace::new("lab-load", buckets)?;
        server.ip(&format!(
            "link set lo up\n\
             link add {SERVER_LINK} type veth peer name {LOAD_LINK} netns {}\n\
             addr add {SERVER_ADDRESS}/15 dev {SERVER_LINK}\n\
             link set {SERVER_LINK} up\n",
            load.path()
        ))?;
        let addresses: String =
            sources().map(|address| format!("addr add {address}/15 dev {LOAD_LINK}\n")).collect();
        load.ip(&format!("link set lo up\n{addresses}link set {LOAD_LINK} up\n"))?;
        for (sysctl, value) in SERVER_SYSCTLS {
            server.set_sysctl(sysctl, value)?;
        }
        for (sysctl, value) in LOAD_SYSCTLS {
            load.set_sysctl(sysctl, value)?;
        }
        Ok(Self { server, generator: load })
    }

    /// Starts a process in the server's namespace.
    pub fn spawn_server(&self, command: Command) -> io::Result<Child> {
        self.server.spawn(command)
    }

    /// Starts a process in the generator's namespace.
    pub fn spawn_generator(&self, command: Command) -> io::Result<Child> {
        self.generator.spawn(command)
    }
}

/// Where the server listens in an isolated lab.
pub const SERVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// The generator's source addresses in an isolated lab: 64 times 64,512 ports.
pub fn sources() -> impl Iterator<Item = Ipv4Addr> {
    (1..=64).map(|host| Ipv4Addr::new(198, 18, 1, host))
}

/// Why there are no namespaces.
#[derive(Debug)]
pub enum IsolateError {
    /// `ip` is not installed.
    NoIp,
    /// The kernel refuses a namespace.
    Unshare(Errno),
    /// `ip` or a sysctl failed.
    Setup(String),
}

impl fmt::Display for IsolateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unshare(Errno::PERMISSION) => f.write_str(
                "--isolate makes network namespaces, which needs root (in a container, CAP_SYS_ADMIN): run it with sudo",
            ),
            Self::NoIp => f.write_str("--isolate needs the command `ip`: apt-get install iproute2"),
            Self::Unshare(errno) => write!(f, "--isolate: the kernel refuses a network namespace: {errno}"),
            Self::Setup(what) => write!(f, "--isolate: {what}"),
        }
    }
}

impl std::error::Error for IsolateError {}

const SERVER_LINK: &str = "veth-server";
const LOAD_LINK: &str = "veth-load";

/// The kernel's own table has 262,144 buckets on a machine with 24 GB.
const BUCKETS_MIN: u64 = 1 << 16;
const BUCKETS_MAX: u64 = 1 << 22;

/// The accept and SYN queues hold what a server asks for, up to these.
const SERVER_SYSCTLS: [(&str, &str); 2] =
    [("net/core/somaxconn", "65535"), ("net/ipv4/tcp_max_syn_backlog", "65535")];

/// The client closes first, so TIME-WAIT is on its side: ports come back as soon as that is safe.
const LOAD_SYSCTLS: [(&str, &str); 4] = [
    ("net/ipv4/ip_local_port_range", "1024 65535"),
    ("net/ipv4/tcp_tw_reuse", "1"),
    ("net/ipv4/tcp_fin_timeout", "10"),
    ("net/ipv4/tcp_max_syn_backlog", "65535"),
];

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn the_ends_reach_each_other_and_the_host_sees_neither() {
        let isolation = match Isolation::new(1000) {
            Ok(isolation) => isolation,
            Err(error) => return println!("skipped: {error}"),
        };
        let links = std::fs::read_to_string("/proc/net/dev").unwrap();
        assert!(!links.contains(SERVER_LINK) && !links.contains(LOAD_LINK), "{links}");
        let mut route = Command::new("ip");
        route.args(["route", "get", &SERVER_ADDRESS.to_string(), "from", "198.18.1.64"]);
        route.stdout(Stdio::piped());
        let output = isolation.spawn_generator(route).unwrap().wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(LOAD_LINK), "{text}");
    }
}
