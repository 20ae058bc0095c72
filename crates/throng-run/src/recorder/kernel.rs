//! The machine itself: CPU time and the kernel's counters, of generator and server.

use std::net::SocketAddr;

use throng_base::time::Instant;
use throng_driver::{Clock, netns};
use throng_machine::owner::Owner;
use throng_machine::{ListenerScope, Reason, Sampler, SamplerOptions, Unknown, WatchedProcess};
use throng_measure::{Endpoint, RunEventKind};

use super::facts::FactsStream;
use super::probes::{KernelProbe, KernelReading};
use super::server_kernel::ServerKernel;
use super::server_process::ServerProcess;
use super::watched_process::watched_process;

/// The kernel's counters of the generator and, as far as they can be read, of the server.
///
/// The doctor's [`Sampler`] reads the generator's machine and network namespace. Where the server
/// shares that namespace, one sample covers both. Where the server is in another namespace of this
/// machine, a thread enters it and reads it: the server's accept queues overflow there and its SYNs
/// are dropped there. For a server on another machine, a watch on its host sends the facts.
#[derive(Debug)]
pub struct LiveKernel {
    targets: Vec<SocketAddr>,
    /// The sampler of the generator's namespace.
    sampler: Sampler,
    server: ServerSource,
    process: ServerProcess,
    /// Events that no call has returned yet.
    events: Vec<RunEventKind>,
    /// The unreadable sources of the last sample.
    unseen: Option<Vec<String>>,
}

/// The source of the server's counters.
#[derive(Debug)]
enum ServerSource {
    /// The generator's sampler: the server shares its namespace, or its place is unknown.
    SameNamespace,
    /// None: the server is on another machine without a watch.
    Remote,
    /// A thread in the server's namespace of this machine.
    OtherNamespace(ServerKernel),
    /// A watch on the server's host.
    Watched(Box<FactsStream>),
}

impl LiveKernel {
    /// Reads the machine and the listeners that connections to `targets` reach; no targets means
    /// all listeners.
    pub fn new(targets: Vec<SocketAddr>) -> Self {
        let sampler = Sampler::new(options(&targets));
        let process = ServerProcess::new(Vec::new(), false);
        Self {
            targets,
            sampler,
            server: ServerSource::SameNamespace,
            process,
            events: Vec::new(),
            unseen: None,
        }
    }

    /// Follows a server in this network namespace: the process that listens at the targets, and the
    /// process that replaces it.
    #[must_use]
    pub fn with_listening_process(mut self) -> Self {
        self.process = ServerProcess::new(self.targets.clone(), true);
        // The search comes before the first sample, so that the sample contains the process.
        self.events = self.find_server_process();
        self
    }

    /// Follows a server in this network namespace as [`Self::with_listening_process`] does,
    /// beginning with a process that is known to listen.
    #[must_use]
    pub fn with_found_process(mut self, owner: Owner) -> Self {
        self.process = ServerProcess::new(self.targets.clone(), true);
        self.sampler.watch(server_process(&owner));
        self.events = vec![self.process.found(owner)];
        self
    }

    /// Expects a server on another machine that has no watch.
    #[must_use]
    pub fn with_remote_server(self) -> Self {
        Self { server: ServerSource::Remote, ..self }
    }

    /// Adds the facts that a watch on the server's host sends.
    #[must_use]
    pub fn with_facts(self, facts: FactsStream) -> Self {
        Self { server: ServerSource::Watched(Box::new(facts)), ..self }
    }

    /// Searches for the server's process and watches it.
    fn find_server_process(&mut self) -> Vec<RunEventKind> {
        let mut events = Vec::new();
        if let Some(owner) = self.process.step(Clock.now(), &mut events) {
            self.sampler.watch(server_process(&owner));
        }
        events
    }
}

impl KernelProbe for LiveKernel {
    fn sample(&mut self) -> KernelReading {
        if let ServerSource::OtherNamespace(kernel) = &mut self.server {
            kernel.request_sample();
        }
        let sample = self.sampler.sample(Clock.now());
        self.events.extend(sample.events);
        let mut unseen = unreadable_sources("", &sample.unknown);
        let mut reading = KernelReading {
            machine: sample.machine,
            counters: sample.counters,
            programs: sample.programs,
            ..Default::default()
        };
        match &mut self.server {
            ServerSource::SameNamespace => {}
            ServerSource::Remote => unseen.push(REMOTE.to_owned()),
            ServerSource::OtherNamespace(kernel) => {
                let sample = kernel.receive_sample();
                self.events.extend(sample.events);
                unseen.extend(unreadable_sources("the server's side: ", &sample.unknown));
                reading.server_counters = sample.counters;
            }
            ServerSource::Watched(facts) => {
                facts.fill(&mut reading, &mut unseen);
                facts.server_pid().into_iter().for_each(|pid| self.sampler.exclude(pid));
            }
        }
        unseen.sort();
        unseen.dedup();
        if self.unseen.as_ref() != Some(&unseen) {
            self.unseen = Some(unseen);
            reading.unseen.clone_from(&self.unseen);
        }
        reading
    }

    fn measure_between(&mut self, from: Instant, to: Instant) {
        match &self.server {
            ServerSource::OtherNamespace(kernel) => kernel.measure_between(from, to),
            _ => self.sampler.request_gap_cpu(from, to),
        }
    }

    fn step(&mut self) -> Vec<RunEventKind> {
        let events = self.find_server_process();
        self.events.extend(events);
        match &self.server {
            ServerSource::OtherNamespace(kernel) => kernel.step(),
            _ => self.sampler.step(Clock.now()),
        }
        std::mem::take(&mut self.events)
    }

    fn set_server_pid(&mut self, pid: u32) {
        // The watch that the caller named finds its server itself.
        if matches!(self.server, ServerSource::Watched(_)) || !self.process.set_pid(pid) {
            return;
        }
        if netns::is_current(pid) == Ok(false) {
            self.sampler = Sampler::new(options(&self.targets));
            self.sampler.exclude(pid);
            self.server =
                ServerSource::OtherNamespace(ServerKernel::new(pid, self.targets.clone()));
        } else {
            self.sampler.watch(watched_process(Endpoint::Server, pid));
            self.server = ServerSource::SameNamespace;
        }
    }
}

/// Returns the options of a sampler before the server is known: it watches the generator alone.
fn options(targets: &[SocketAddr]) -> SamplerOptions {
    let processes = vec![watched_process(Endpoint::Client, std::process::id())];
    let scope = match targets {
        [] => ListenerScope::All,
        targets => ListenerScope::Targets(targets.to_vec()),
    };
    SamplerOptions { scope, processes, ..SamplerOptions::default() }
}

fn server_process(owner: &Owner) -> WatchedProcess {
    WatchedProcess { also: owner.others.clone(), ..watched_process(Endpoint::Server, owner.pid) }
}

/// Returns a sentence for each source that could not be read, after the prefix `side`. Leaves out
/// sources that a kernel need not have, such as connection tracking without its module.
pub(crate) fn unreadable_sources(side: &str, unknown: &[Unknown]) -> Vec<String> {
    let is_optional = |source: &&Unknown| {
        source.reason == Reason::Missing && OPTIONAL.iter().any(|part| source.source.contains(part))
    };
    unknown
        .iter()
        .filter(|source| !is_optional(source))
        .map(|source| format!("{side}{source}"))
        .collect()
}

/// Parts of the names of optional sources: a module, an address family, accounting that the kernel
/// was built without. The last ones exist once per machine and not in a network namespace, such as
/// `tcp_mem` and the limit of packets that wait for a CPU.
const OPTIONAL: &[&str] = &[
    "conntrack",
    "sockstat6",
    "proc/pressure",
    "cgroup",
    "tcp_ehash_entries",
    "tcp_mem",
    "tcp_max_orphans",
    "netdev_max_backlog",
];

const REMOTE: &str = "the server's side: the server is not on this machine, or is in another \
                      network namespace of it (a container's); run `throng doctor --watch --listen \
                      ADDR:PORT` there and `throng run --server-facts HOST:PORT` here to see it";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_need_not_have_is_no_blind_spot_and_what_is_refused_is_one() {
        let unknown = [
            Unknown::new("proc/sys/net/netfilter/nf_conntrack_count", Reason::Missing),
            Unknown::new("proc/sys/net/netfilter/nf_conntrack_max", Reason::Refused),
            Unknown::new("sock_diag", Reason::Refused),
            Unknown::new("proc/thread-self/net/netstat", Reason::Missing),
        ];
        assert_eq!(
            unreadable_sources("the server's side: ", &unknown),
            [
                "the server's side: proc/sys/net/netfilter/nf_conntrack_max: permission denied",
                "the server's side: sock_diag: permission denied",
                "the server's side: proc/thread-self/net/netstat: does not exist here",
            ]
        );
    }

    #[test]
    fn what_cannot_be_seen_is_said_once() {
        let mut kernel =
            LiveKernel::new(vec![SocketAddr::from(([127, 0, 0, 1], 1))]).with_remote_server();
        assert!(kernel.sample().unseen.unwrap().contains(&REMOTE.to_owned()));
        assert_eq!(kernel.sample().unseen, None, "it has not changed");
        kernel.set_server_pid(std::process::id());
        assert!(!kernel.sample().unseen.unwrap().contains(&REMOTE.to_owned()));
    }
}
