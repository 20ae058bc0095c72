//! A planned run: the target is resolved, the sources are chosen, the capacity is known.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::{Errno, SocketOptions};
use throng_proto::TransportFactory;
use throng_tls::{KeyLogSink, SeenServer};

use super::collect::Collector;
use super::driver::LoadDriver;
use super::tls::{self, TargetWatch};
use crate::capacity::{Capacity, Demand, loopback_sources};
use crate::generator::TraceOptions;
use crate::held::{held_bytes_max, most_held};
use crate::program::Program;
use crate::scenario::{Reach, Scenario, ScenarioLoad, Target};
use crate::schedule::MachineShare;
use crate::source::SourcePlan;
use crate::steps::send::SEND_BYTES_MAX;

/// Options of a run that the command line may set.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Target in place of the scenario's.
    pub target: Option<Target>,
    /// Number of cores. Default: one for each CPU, or as many as the driver needs for the
    /// connections.
    pub cores: Option<usize>,
    /// Share of this machine in a run of several machines. It decides the number of cores.
    pub share: Option<MachineShare>,
    /// Source addresses. Default: for a target on this machine as many of 127.0.0.0/8 as needed,
    /// otherwise the driver's choice.
    pub sources: Vec<IpAddr>,
    /// Source ports that the generator assigns itself. Default: the driver chooses them at connect.
    pub source_ports: Option<RangeInclusive<u16>>,
    /// Seed of everything random. Default 1, so that runs are repeatable.
    pub seed: Option<u64>,
    /// Options of the sockets.
    pub sockets: SocketOptions,
    /// Driver of the cores. Default: the kernel's sockets, by epoll.
    pub driver: LoadDriver,
    /// Transport of all connections, below the protocol. Default: TLS if the target is over it,
    /// otherwise none.
    pub transport: Option<TransportFactory>,
    /// Receiver of the secrets of connections over TLS, for Wireshark. Default: none.
    pub key_log: Option<KeyLogSink>,
}

/// A planned run: its target is resolved and its capacity known.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// Target of the run, with path and query.
    pub target: Target,
    /// Addresses of the target.
    pub targets: Vec<SocketAddr>,
    /// Demand of the run and capacity of this machine.
    pub capacity: Capacity,
    /// Source addresses and ports of the connections.
    pub sources: SourcePlan,
    /// Length of all phases.
    pub length: Duration,
    pub(super) program: Program,
    pub(super) load: ScenarioLoad,
    pub(super) options: SocketOptions,
    pub(super) driver: LoadDriver,
    pub(super) transport: Option<TransportFactory>,
    /// Share of the connects over TLS that offer a session; `None` if they are plain.
    resume: Option<f64>,
    /// What the connections see of a target over TLS.
    pub(super) target_tls: TargetWatch,
    pub(super) seed: u64,
    /// Number of the first user.
    pub(super) first_user: u64,
    pub(super) share: Option<MachineShare>,
    /// The common beginning of a run of several machines.
    pub(super) common: Option<CommonStart>,
    pub(super) trace: Option<TraceOptions>,
}

/// What all machines of a run begin with.
#[derive(Clone, Copy, Debug)]
pub struct CommonStart {
    /// Beginning of the first phase, on this machine's monotonic clock.
    pub at: Instant,
    /// Number of the run, by which its probes are told from those of other runs.
    pub run: u64,
}

/// Error of planning or starting a run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The target's name has no address.
    #[error(
        "the name {host} has no address: {error}; correct the target's name, or check the resolver \
         (getent hosts {host})"
    )]
    Resolve {
        /// The name: that of a host of the target.
        host: String,
        /// Error text of the resolver.
        error: String,
    },
    /// The options contradict the scenario or each other; the text says how.
    #[error("{0}")]
    Options(String),
    /// The kernel refused a resource that every core needs.
    #[error("cannot start the generator's cores: {0}")]
    Start(Errno),
}

impl LoadPlan {
    /// Plans a run of `scenario`. The caller checks the capacity. What does not fit fails when it
    /// is tried, for instance a connect that gets no fd or no port.
    ///
    /// # Errors
    /// When the target cannot be resolved, or the options contradict the scenario.
    pub fn new(scenario: &Scenario, options: &LoadOptions) -> Result<Self, LoadError> {
        let scenario = &with_target(scenario, options.target.as_ref())?;
        let targets = resolve(&scenario.target)?;
        let program = Program::compile(scenario);
        let demand = Demand::of(&program, &scenario.load);
        let demand = options.share.map_or(demand, |share| demand.of_share(share));
        let on_loopback = targets.iter().all(|target| Reach::of(target.ip()) == Reach::Loopback);
        let driver = options.driver.capacity();
        let time_wait =
            driver.ports.as_ref().map_or(Duration::ZERO, |ports| ports.time_wait(on_loopback));
        let sources = match (&options.sources[..], &options.source_ports) {
            ([], None) => match &driver.ports {
                Some(ports) if on_loopback && targets.iter().all(SocketAddr::is_ipv4) => {
                    loopback_sources(demand, &ports.range, time_wait)
                }
                _ => SourcePlan::Any,
            },
            // On loopback the target's address is also this machine's.
            ([], Some(ports)) if on_loopback => {
                SourcePlan::Explicit([targets[0].ip()].into(), ports.clone())
            }
            ([], Some(_)) => {
                let what = "source ports need source addresses: name them with `--source`";
                return Err(LoadError::Options(what.to_owned()));
            }
            (addresses, None) => SourcePlan::Late(addresses.into()),
            (addresses, Some(ports)) => SourcePlan::Explicit(addresses.into(), ports.clone()),
        };
        let port_range =
            options.source_ports.clone().or(driver.ports.as_ref().map(|ports| ports.range.clone()));
        let ports = port_range.as_ref().map_or(u64::MAX, |range| sources.ports(range));
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let cores = options
            .share
            .map(MachineShare::cores)
            .or(options.cores)
            .unwrap_or_else(|| driver.cores_for(demand.connections, cpus));
        let seen = SeenServer::default();
        let capacity = Capacity {
            demand,
            cores,
            driver,
            addresses: sources.addresses(),
            ports: ports.saturating_mul(targets.len() as u64),
            port_range,
            time_wait,
        };
        Ok(Self {
            target: scenario.target.clone(),
            targets,
            capacity,
            sources,
            length: scenario.load.length(),
            program,
            load: scenario.load.clone(),
            options: options.sockets,
            driver: options.driver.clone(),
            transport: match &options.transport {
                Some(transport) => Some(transport.clone()),
                None => tls::transport(scenario, options.key_log.clone(), seen.clone())?,
            },
            resume: scenario.target.is_secure.then(|| scenario.tls.resume_share()),
            target_tls: TargetWatch::new(scenario, seen),
            seed: options.seed.unwrap_or(1),
            first_user: 0,
            share: options.share,
            common: None,
            trace: None,
        })
    }

    /// Watches users during the run.
    pub fn watch_users(&mut self, trace: TraceOptions) {
        self.trace = Some(trace);
    }

    /// Lets the run begin together with that of other machines.
    pub fn begin_together(&mut self, start: CommonStart) {
        self.common = Some(start);
    }

    /// Reports whether the connections are over TLS, and any certificate is taken for the right
    /// one.
    pub fn is_unverified(&self) -> bool {
        self.program.unverified_at().is_some()
    }

    /// Returns the share of the connects that offer to resume a session of TLS, if there is one;
    /// `None` if they are plain.
    pub fn resume_share(&self) -> Option<f64> {
        self.resume
    }

    /// Returns the compiled program of the users.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the most bytes that the users of this machine hold at times: what the target sends,
    /// as far as its cores let them, and large messages that the target does not take.
    pub fn held_bytes_most(&self) -> u64 {
        let Capacity { demand, cores, .. } = &self.capacity;
        let of = self.share.map_or(*cores, MachineShare::of);
        let each_core = held_bytes_max(&self.program, &self.load, of);
        let received = most_held(&self.program, demand.connections, *cores, each_core);
        // Smaller ones fit into the buffers of their sockets.
        let sent = match self.program.message_bytes_max() {
            bytes if bytes > SEND_BYTES_MAX => demand.connections.saturating_mul(bytes as u64),
            _ => 0,
        };
        received.saturating_add(sent)
    }

    /// Returns the most bytes of contexts of compressed messages that each user keeps, as far as
    /// the cores let them. [`Self::held_bytes_most`] has them, too.
    pub fn context_bytes(&self) -> u64 {
        let held = self.held_bytes_most() / self.capacity.demand.connections.max(1);
        self.program.context_bytes().min(held)
    }

    /// Reports whether the target's own address and port are among the sources.
    pub(super) fn self_connect_possible(&self) -> bool {
        let Some(ports) = &self.capacity.port_range else { return false };
        self.targets
            .iter()
            .any(|target| ports.contains(&target.port()) && self.sources.includes(target.ip()))
    }

    /// Returns a collector for the stats of so many cores that run the plan.
    pub fn collector(&self, cores: usize) -> Collector {
        let mut phases = self.phase_names();
        phases.push(throng_measure::LEAVING.to_owned());
        let program = &self.program;
        let classes = program.classes().iter().map(|class| class.name.clone()).collect();
        let addresses = self.targets.clone();
        Collector::new(cores, phases, classes, addresses, program.probe())
            .with_steps(program.step_names())
            .with_judged_classes(program.judged_classes())
            .with_limits(program.limits())
            .with_cues(program.cues())
    }

    /// Returns the names of the phases in reports.
    pub fn phase_names(&self) -> Vec<String> {
        self.load.pieces().into_iter().map(|piece| piece.name).collect()
    }

    /// Returns the load in a line: the names of the phases, each repeated part once.
    pub fn load_outline(&self) -> String {
        self.load.outline()
    }
}

/// Returns the scenario with another target. If that target has no path, the scenario's path stays.
fn with_target(scenario: &Scenario, target: Option<&Target>) -> Result<Scenario, LoadError> {
    let mut scenario = scenario.clone();
    let Some(target) = target else { return Ok(scenario) };
    if target.scheme != scenario.target.scheme {
        return Err(LoadError::Options(format!(
            "the scenario uses `protocol: {}`, but {target} \
             does not: its target must begin with `{}://`",
            scenario.protocol.name(),
            scenario.target.scheme.as_str(),
        )));
    }
    let own_path = std::mem::replace(&mut scenario.target, target.clone()).path;
    if scenario.target.path.is_empty() {
        scenario.target.path = own_path;
    }
    Ok(scenario)
}

fn resolve(target: &Target) -> Result<Vec<SocketAddr>, LoadError> {
    let mut found = Vec::new();
    for host in target.hosts() {
        let wrong = |error: String| LoadError::Resolve { host: host.to_owned(), error };
        let addresses = (host, target.port).to_socket_addrs();
        let addresses: Vec<_> = addresses.map_err(|error| wrong(error.to_string()))?.collect();
        if addresses.is_empty() {
            return Err(wrong("the resolver returned none".to_owned()));
        }
        found.push((host, addresses));
    }
    of_one_family(&found)
}

/// Returns the addresses of all hosts in one family, each once. All sources are of one family, so
/// all targets are too. IPv4 is preferred: `localhost` is both, and many servers listen on
/// 127.0.0.1 alone.
fn of_one_family(hosts: &[(&str, Vec<SocketAddr>)]) -> Result<Vec<SocketAddr>, LoadError> {
    let lacking = |is_it: fn(&SocketAddr) -> bool| {
        hosts.iter().find(|(_, addresses)| !addresses.iter().any(is_it)).map(|(host, _)| *host)
    };
    let is_v4 = match (lacking(SocketAddr::is_ipv4), lacking(SocketAddr::is_ipv6)) {
        (None, _) => true,
        (_, None) => false,
        (Some(no_v4), Some(no_v6)) => {
            return Err(LoadError::Options(format!(
                "the hosts of the target have no address family in common: {no_v4} has no IPv4 \
                 address, {no_v6} no IPv6 address; name each server by an address of the same \
                 family"
            )));
        }
    };
    let mut seen = HashSet::new();
    let all = hosts.iter().flat_map(|(_, addresses)| addresses).copied();
    Ok(all.filter(|address| address.is_ipv4() == is_v4 && seen.insert(*address)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_hosts_of_a_target_have_addresses_of_one_family_and_each_counts_once() {
        let hosts = |all: &[(&'static str, &[&str])]| {
            let of = |(host, addresses): &(&'static str, &[&str])| {
                (*host, addresses.iter().map(|it| it.parse().unwrap()).collect::<Vec<_>>())
            };
            of_one_family(&all.iter().map(of).collect::<Vec<_>>())
        };
        let check = |all: &[(&'static str, &[&str])], expected: &[&str]| {
            let found: Vec<_> = hosts(all).unwrap().iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        };
        let (v4, other, v6) = ("10.0.0.1:1", "10.0.0.2:1", "[fd00::1]:1");
        check(&[("a", &[v6, v4])], &[v4]);
        check(&[("a", &[v6])], &[v6]);
        check(&[("a", &[v4]), ("b", &[v6, other])], &[v4, other]);
        // No server is left out: the one with IPv6 alone decides.
        check(&[("a", &[v4, "[fd00::2]:1"]), ("b", &[v6])], &["[fd00::2]:1", v6]);
        check(&[("a", &[v4]), ("b", &[other]), ("c", &[v4])], &[v4, other]);
        let error = hosts(&[("a", &[v4]), ("b", &[v6])]).unwrap_err().to_string();
        assert!(error.contains("b has no IPv4 address, a no IPv6 address"), "{error}");
    }

    #[test]
    fn large_messages_count_in_what_users_hold() {
        let held = |bytes: &str| {
            let text = format!(
                "target: tcp://127.0.0.1:1\nload: [{{ramp: {{to: 30, over: 1s}}}}]\n\
                 user: [connect, {{send: {{random: {bytes}}}}}]\n"
            );
            let scenario = Scenario::parse(&text, "test").unwrap();
            LoadPlan::new(&scenario, &LoadOptions::default()).unwrap().held_bytes_most()
        };
        assert_eq!((held("256KiB"), held("16MiB")), (0, 480 << 20));
    }

    #[test]
    fn the_error_names_the_host_without_an_address() {
        // No resolver is asked about such a name.
        let target = Target::parse("tcp://127.0.0.1,two..dots:1").unwrap();
        let error = resolve(&target).unwrap_err().to_string();
        assert!(error.starts_with("the name two..dots has no address"), "{error}");
    }
}
