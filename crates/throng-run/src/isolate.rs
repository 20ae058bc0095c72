//! Network namespaces for a lab's server and generator: each has its own counters, sysctls and TCP
//! hash table.
//!
//! ```text
//!   namespace "server"                        namespace "generator"
//!   198.18.0.1/15  veth-server ------------ veth-load  198.18.1.1 … 198.18.1.64 /15
//! ```
//!
//! The namespaces have no names, and the veth pair is created inside them: the host never sees it.
//! They live as long as the lab's two namespace threads and the processes started in them.
//! These processes end when their standard input closes, and the kernel closes it however the lab
//! ends. So a crash leaves nothing to clean up.

mod error;
mod namespace;
mod roomy;

use std::io;
use std::net::Ipv4Addr;
use std::process::{Child, Command};

use throng_measure::Limit;

pub use error::IsolateError;
use namespace::Namespace;
pub(crate) use roomy::RoomyNamespace;

/// The two namespaces and the veth pair between them. They exist until this value is dropped and
/// their processes have ended.
#[derive(Debug)]
pub struct Isolation {
    server: Namespace,
    generator: Namespace,
}

impl Isolation {
    /// Creates both namespaces for `users` simultaneous connections. Needs root and `ip` of
    /// iproute2.
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

/// The address on which the server listens in an isolated lab.
pub const SERVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// Returns the generator's source addresses in an isolated lab: 64 times 64,512 ports.
pub fn sources() -> impl Iterator<Item = Ipv4Addr> {
    (1..=64).map(|host| Ipv4Addr::new(198, 18, 1, host))
}

const SERVER_LINK: &str = "veth-server";
const LOAD_LINK: &str = "veth-load";

/// The fewest and the most buckets of a namespace's TCP hash table. The machine's own table has
/// 262,144 buckets with 24 GB of memory.
const BUCKETS_MIN: u64 = 1 << 16;
const BUCKETS_MAX: u64 = 1 << 22;

/// The upper limits of the accept and SYN queues, which a server then sizes itself.
const SERVER_SYSCTLS: [(&str, &str); 2] =
    [(Limit::SOMAXCONN.name(), "65535"), (Limit::SYN_BACKLOG.name(), "65535")];

/// The sysctls of the generator's namespace. The client closes first, so it has the sockets in
/// TIME-WAIT: these settings free its ports as soon as that is safe.
const LOAD_SYSCTLS: [(&str, &str); 4] = [
    (Limit::PORTS.name(), "1024 65535"),
    ("net.ipv4.tcp_tw_reuse", "1"),
    ("net.ipv4.tcp_fin_timeout", "10"),
    (Limit::SYN_BACKLOG.name(), "65535"),
];

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn server_and_generator_reach_each_other_and_the_host_sees_neither() {
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
