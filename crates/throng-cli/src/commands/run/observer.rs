//! Observes the loaded server: its counters belong in the report.

mod of_fleet;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use throng_control::{ControlClient, ControlError, ControlRequest, ProcessRole, Verb, processes};
use throng_driver::netns;
use throng_machine::{ListenerScope, ProcRoot, listening_process};
use throng_measure::{EndpointFacts, ServerSnapshot};
use throng_run::recorder::{ControlProbe, FactsStream, KernelProbe, LiveKernel, ServerProbe};

use super::flags::Run;
use super::plan::RunPlan;
use crate::Failure;

/// The sources of data about the server.
#[derive(Debug)]
pub(super) struct ServerObserver {
    /// The control socket of the server itself.
    pub(super) server: Option<ObservedServer>,
    /// The stream of a watch on its host.
    facts: Option<FactsStream>,
    /// What the user should know about the choice among several servers or observers.
    pub(super) note: Option<String>,
}

type Probes = (Option<Box<dyn ServerProbe>>, Box<dyn FnOnce() -> Box<dyn KernelProbe> + Send>);

impl ServerObserver {
    /// Searches for a throng server, and connects to the watch if one is given.
    ///
    /// # Errors
    /// The given control socket or watch does not answer.
    pub(super) fn find(typed: &Run, targets: &[SocketAddr]) -> Result<Self, Failure> {
        let (of_fleet, mut note) = of_fleet::find(typed, targets)?;
        let has_watch = typed.server_facts.is_some() || of_fleet.is_some();
        let server = match &typed.server_control {
            Some(path) => Some(
                snapshot_of(path)
                    .map_err(|error| Failure::new(format!("--server-control: {error}")))?,
            ),
            // A watch also sends the server's own counters, and identifies the server better than
            // its address does.
            None if has_watch => None,
            None => only(listening(targets)).unwrap_or_else(|several| {
                note = Some(several);
                None
            }),
        };
        let facts = typed.server_facts.as_deref().map(|address| {
            FactsStream::connect(address).map_err(|error| {
                Failure::new(format!(
                    "--server-facts {address}: {error}\n  start it on the server's host: throng \
                     doctor --watch --port {} --listen 0.0.0.0:5599",
                    targets.first().map_or(0, SocketAddr::port)
                ))
            })
        });
        Ok(Self { server, facts: facts.transpose()?.or(of_fleet), note })
    }

    /// Reports whether the server is known to be on this machine. A control socket is always local.
    pub(super) fn is_on_this_machine(&self) -> bool {
        self.server.is_some() || self.facts.as_ref().is_some_and(FactsStream::is_same_machine)
    }

    /// Reports whether the server listens at some of the targets and not at others. One that
    /// listens at none is behind a proxy or another port, and may be the only one.
    pub(super) fn sees_a_part(&self, targets: &[SocketAddr]) -> bool {
        let is_part = |server: &ObservedServer| {
            let count = targets.iter().filter(|target| server.is_at(**target)).count();
            (1..targets.len()).contains(&count)
        };
        self.server.as_ref().is_some_and(is_part)
    }

    /// Returns the limits of the server's end, if it is known better than by its address.
    pub(super) fn facts(&self, targets: &[SocketAddr]) -> Option<EndpointFacts> {
        match (&self.facts, &self.server) {
            (Some(facts), _) => facts.endpoint_facts().cloned(),
            (None, server) => {
                let snapshot = &server.as_ref()?.snapshot;
                throng_run::header::server_facts(Some(snapshot), targets)
            }
        }
    }

    /// Returns the probes for the recorder.
    pub(super) fn probes(self, plan: &RunPlan) -> Probes {
        let targets = plan.load.targets.clone();
        let is_throng = self.server.is_some();
        let is_here = plan.header.target_is_here;
        let here = targets.clone();
        // The search for the server's process may take seconds on a busy machine: it comes before
        // the load, so that the recorder begins with it.
        let search = is_here && self.facts.is_none();
        let scope = ListenerScope::Targets(targets.clone());
        let found = search.then(|| listening_process(&ProcRoot::default(), &scope));
        let found = found.and_then(|found| found.known().cloned());
        let kernel = move || {
            let kernel = LiveKernel::new(here);
            let kernel = match (self.facts, is_throng, is_here, found) {
                (Some(facts), ..) => kernel.with_facts(facts),
                (None, _, true, Some(owner)) => kernel.with_found_process(owner),
                (None, _, true, None) => kernel.with_listening_process(),
                (None, true, false, _) => kernel,
                (None, false, false, _) => kernel.with_remote_server(),
            };
            Box::new(kernel) as Box<dyn KernelProbe>
        };
        let server = self.server.map(|server| {
            let again = move || Some(only(listening(&targets)).ok()??.control);
            Box::new(ControlProbe::new(server.control).or_find(again)) as Box<_>
        });
        (server, Box::new(kernel))
    }
}

/// A server that answers on its control socket.
#[derive(Debug)]
pub(super) struct ObservedServer {
    pub(super) control: PathBuf,
    pub(super) snapshot: ServerSnapshot,
}

/// Returns the servers of this machine that listen at a target.
fn listening(targets: &[SocketAddr]) -> Vec<ObservedServer> {
    // An address of this network namespace differs from the same address in another.
    let is_local = targets.iter().any(|target| throng_run::header::is_local(target.ip()));
    let is_reached = |pid| !is_local || netns::is_current(pid) != Ok(false);
    let servers = processes()
        .into_iter()
        .filter(|process| process.role == ProcessRole::Server && is_reached(process.pid));
    let answering = servers.filter_map(|process| snapshot_of(&process.path).ok());
    let found = answering.filter(|server| targets.iter().any(|target| server.is_at(*target)));
    nearest(found.collect(), targets)
}

/// Returns the servers that listen at the target's own address, if some do: they get its
/// connections, and not one that listens at all addresses.
fn nearest(found: Vec<ObservedServer>, targets: &[SocketAddr]) -> Vec<ObservedServer> {
    let is_exact = |server: &ObservedServer| {
        targets.iter().any(|target| server.snapshot.listen == target.to_string())
    };
    let (exact, others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_exact);
    match targets {
        [_] if !exact.is_empty() => exact,
        _ => exact.into_iter().chain(others).collect(),
    }
}

/// Returns the only server; of several, none, whose counters would be those of a part.
///
/// # Errors
/// There are several: the sentence names them.
fn only(mut servers: Vec<ObservedServer>) -> Result<Option<ObservedServer>, String> {
    if servers.len() < 2 {
        return Ok(servers.pop());
    }
    let each: Vec<_> = servers.iter().map(|one| one.control.display().to_string()).collect();
    Err(format!(
        "server's side: {} servers of this machine listen at the targets, and the counters of one \
         are not those of all; --server-control takes one: {}",
        each.len(),
        each.join(", ")
    ))
}

fn snapshot_of(path: &Path) -> Result<ObservedServer, ControlError> {
    let mut client = ControlClient::connect(path)?;
    let data = client.request(&ControlRequest::new(Verb::Snapshot))?.data;
    let snapshot = serde_json::from_value(data)
        .map_err(|error| ControlError::Malformed(path.to_owned(), error.to_string()))?;
    Ok(ObservedServer { control: path.to_owned(), snapshot })
}

impl ObservedServer {
    /// Reports whether connections to `target` reach this server, judging by its address.
    fn is_at(&self, target: SocketAddr) -> bool {
        self.snapshot.listen.parse().is_ok_and(|listen: SocketAddr| {
            listen.port() == target.port()
                && (listen.ip() == target.ip()
                    || accepts(listen.ip(), target.ip())
                        && throng_run::header::is_local(target.ip()))
        })
    }
}

/// Reports whether a listener on `any` accepts connections to addresses such as `address`.
fn accepts(any: IpAddr, address: IpAddr) -> bool {
    // A throng server on `::` accepts IPv6 only.
    any.is_unspecified() && any.is_ipv6() == address.is_ipv6()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(listen: &str) -> ObservedServer {
        let snapshot = ServerSnapshot { listen: listen.to_owned(), ..Default::default() };
        ObservedServer { control: PathBuf::from(listen), snapshot }
    }

    #[test]
    fn one_of_several_servers_is_not_taken_for_all() {
        let control = |servers: &[&str]| {
            only(servers.iter().map(|listen| server(listen)).collect())
                .map(|server| server.map(|server| server.control))
        };
        assert_eq!(control(&[]), Ok(None));
        assert_eq!(control(&["127.0.0.1:1"]), Ok(Some("127.0.0.1:1".into())));
        let several = control(&["127.0.0.1:1", "127.0.0.1:2"]).unwrap_err();
        assert!(several.contains("2 servers") && several.ends_with("127.0.0.1:1, 127.0.0.1:2"));
        let targets = ["127.0.0.1:1", "127.0.0.2:1"].map(|target| target.parse().unwrap());
        let sees_a_part = |listen| {
            let server = Some(server(listen));
            ServerObserver { server, facts: None, note: None }.sees_a_part(&targets)
        };
        assert!(sees_a_part("127.0.0.1:1") && !sees_a_part("0.0.0.0:1"));
        assert!(!sees_a_part("127.0.0.1:2"), "the only server may be behind a proxy");
    }

    #[test]
    fn a_server_at_the_targets_own_address_comes_before_one_at_all_addresses() {
        let found = |target: &str| {
            let all = ["0.0.0.0:1", "127.0.0.1:1"].map(server).into();
            let found = nearest(all, &[target.parse().unwrap()]);
            found.into_iter().map(|server| server.snapshot.listen).collect::<Vec<_>>()
        };
        assert_eq!(found("127.0.0.1:1"), ["127.0.0.1:1"]);
        assert_eq!(found("127.0.0.2:1").len(), 2, "both were found to listen there");
    }

    #[test]
    fn a_server_is_recognised_by_its_address() {
        let check = |listen: &str, target: &str, expected| {
            assert_eq!(
                server(listen).is_at(target.parse().unwrap()),
                expected,
                "{listen} {target}"
            );
        };
        check("127.0.0.1:5555", "127.0.0.1:5555", true);
        check("127.0.0.1:5555", "127.0.0.1:5556", false);
        check("127.0.0.1:5555", "127.0.0.2:5555", false);
        check("0.0.0.0:5555", "127.0.0.2:5555", true);
        check("0.0.0.0:5555", "[::1]:5555", false);
        check("[::]:5555", "127.0.0.1:5555", false);
        check("[::]:5555", "[::1]:5555", true);
        check("0.0.0.0:5555", "198.51.100.1:5555", false);
    }
}
