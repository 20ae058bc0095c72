//! `throng doctor --for N`: turns flags into requirements, and the preflight into an exit code.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use clap::{Args, ValueEnum};
use throng_doctor::preflight::{
    MachineRole, PortChoice, PortRequirements, Preflight, Requirements, preflight,
};
use throng_load::scenario::{Protocol, Reach, Target};
use throng_machine::{MachineLimits, ProcRoot};

use super::{apply, sysctl};
use crate::commands::run::sources;
use crate::{Exit, Failure, output, quantity};

/// The preflight's flags.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Check whether this machine can hold this many connections, limit by limit
    #[arg(long = "for", value_name = "N", value_parser = quantity::count)]
    connections: Option<usize>,
    /// Roles on this machine [default: both, or client for a target elsewhere]
    #[arg(long, requires = "connections")]
    role: Option<RoleFlag>,
    /// Address that connections go to; repeatable
    #[arg(long, value_name = "URL", requires = "connections")]
    target: Vec<Target>,
    /// Connect from this address, or from all addresses of a network; repeatable
    #[arg(long, value_name = "ADDR[/PREFIX]", requires = "connections",
        value_parser = sources::parse)]
    source: Vec<sources::Network>,
    /// Connects per second at the peak [default: all within a minute]
    #[arg(long, value_name = "N", requires = "connections", value_parser = quantity::count)]
    rate: Option<usize>,
    /// Event loops of server and generator each [default: one per CPU, more if the connections need
    /// their fd tables]
    #[arg(long, value_name = "N", requires = "connections", value_parser = quantity::cores)]
    cores: Option<usize>,
    /// Raise the sysctls that are short, as root, and print how to undo it
    #[arg(long, requires = "connections", conflicts_with_all = ["sysctl", "json"])]
    apply: bool,
    /// Print the necessary changes as a file for /etc/sysctl.d
    #[arg(long, requires = "connections", conflicts_with = "json")]
    sysctl: bool,
}

/// A role of this machine, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoleFlag {
    /// Connections arrive here
    Server,
    /// Connections start here
    Client,
    /// Both at once, as in `throng lab`
    Both,
}

impl Flags {
    /// Reports whether a preflight is requested.
    pub(super) fn is_requested(&self) -> bool {
        self.connections.is_some()
    }

    /// Checks the process `pid`, whose server listens on `port`.
    pub(super) fn run(&self, pid: u32, port: Option<u16>, json: bool) -> Result<Exit, Failure> {
        let requirements = self.requirements(port)?;
        let check = || preflight(&requirements, &MachineLimits::read(&ProcRoot::default(), pid));
        let answer = check();
        if self.apply {
            apply::apply(&answer, check)
        } else if self.sysctl {
            output::say(sysctl::file(&answer));
            Ok(exit(&answer))
        } else if json {
            output::say_json(&PreflightJson {
                verdict: answer.verdict(),
                fits: answer.fits(),
                holds: answer.holds(),
                answer: &answer,
            });
            Ok(exit(&answer))
        } else {
            output::say(answer.to_string());
            Ok(exit(&answer))
        }
    }

    fn requirements(&self, port: Option<u16>) -> Result<Requirements, Failure> {
        let targets = self.addresses()?;
        let is_here = |target: &SocketAddr| throng_run::header::is_local(target.ip());
        let elsewhere = !targets.is_empty() && !targets.iter().all(is_here);
        let role = match self.role {
            Some(RoleFlag::Server) => MachineRole::Server,
            Some(RoleFlag::Client) => MachineRole::Client,
            Some(RoleFlag::Both) => MachineRole::Both,
            None if elsewhere => MachineRole::Client,
            None => MachineRole::Both,
        };
        let sources = sources::addresses(&self.source)?;
        let connections = self.connections.unwrap_or(1) as u64;
        let mut requirements = Requirements::new(connections, role);
        let protocols = self.target.iter().map(|target| Protocol::of(target.scheme));
        if let Some(bytes) = protocols.map(|protocol| protocol.user_bytes).max() {
            requirements.user_bytes = bytes;
        }
        requirements.cores = self.cores.map(|cores| cores as u64);
        if let Some(rate) = self.rate {
            requirements.connects_per_s = rate as f64;
        }
        if role != MachineRole::Client {
            requirements.listens = match port {
                Some(port) => vec![SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)],
                None if targets.is_empty() => vec![DEFAULT_LISTEN],
                None => targets.clone(),
            };
        }
        let is_loopback = |target: &SocketAddr| Reach::of(target.ip()) == Reach::Loopback;
        let on_loopback =
            role == MachineRole::Both && targets.iter().all(|t| is_loopback(t) && t.is_ipv4());
        requirements.ports = (role != MachineRole::Server).then(|| PortRequirements {
            addresses: sources.len().max(1) as u64,
            addresses_grow: sources.is_empty() && on_loopback,
            on_loopback,
            targets: targets.len().max(1) as u64,
            chosen: PortChoice::Kernel,
            time_wait: TIME_WAIT,
        });
        Ok(requirements)
    }

    /// Returns the targets' addresses, all of one family, as in `throng run`.
    fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        let mut all: Vec<SocketAddr> = Vec::new();
        for target in &self.target {
            for host in target.hosts() {
                let found = (host, target.port).to_socket_addrs();
                let found = found.map_err(|error| {
                    Failure::new(format!("the name {host} has no address: {error}"))
                })?;
                all.extend(found);
            }
        }
        all.sort();
        all.dedup();
        if all.iter().any(SocketAddr::is_ipv4) {
            all.retain(SocketAddr::is_ipv4);
        }
        Ok(all)
    }
}

/// Returns the exit code, 0 or 2.
pub(super) fn exit(answer: &Preflight) -> Exit {
    if answer.fits() { Exit::Met } else { Exit::CannotRun }
}

/// The object of `--json`.
#[derive(serde::Serialize)]
struct PreflightJson<'a> {
    verdict: String,
    fits: bool,
    /// The most connections that all known limits allow.
    holds: Option<u64>,
    #[serde(flatten)]
    answer: &'a Preflight,
}

/// The default listening address of `throng serve`.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5555);
const TIME_WAIT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: Flags,
        /// A flag that conflicts with others.
        #[arg(long)]
        json: bool,
    }

    fn requirements(target: &str) -> Requirements {
        let line = ["throng", "--for", "10", "--target", target];
        let Line { flags, json } = Line::try_parse_from(line).unwrap();
        assert!(!json);
        flags.requirements(None).unwrap()
    }

    #[test]
    fn a_target_on_this_machine_has_both_ends_here_whatever_its_address() {
        assert_eq!(requirements("tcp://127.0.0.1:5555").role, MachineRole::Both);
        assert_eq!(
            requirements("tcp://192.0.2.1:5555").role,
            MachineRole::Client,
            "no machine has that address"
        );
        // The address that packets would leave from; none is sent.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let own = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr());
        let Some(own) = own.ok().map(|addr| addr.ip()).filter(|addr| !addr.is_loopback()) else {
            return println!("skipped: this machine has no address but loopback");
        };
        let both = requirements(&format!("tcp://{own}:5555"));
        assert_eq!(both.role, MachineRole::Both);
        assert!(!both.ports.unwrap().addresses_grow, "it is not of 127.0.0.0/8");
    }
}
