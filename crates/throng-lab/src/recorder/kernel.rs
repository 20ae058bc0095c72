//! The machine itself: CPU time and the kernel's counters, of both ends.

use std::net::SocketAddr;

use throng_base::time::Instant;
use throng_doctor::owner::Owner;
use throng_doctor::{Reason, Sampler, SamplerOptions, Unknown, WatchedProcess};
use throng_driver::{Clock, netns};
use throng_report::RunEventKind;

use super::facts::FactsStream;
use super::server_kernel::ServerKernel;
use super::server_process::ServerProcess;
use super::{KernelProbe, KernelReading};

/// The generator's machine and network namespace, by way of the doctor's [`Sampler`], and the server's as far as it can be seen.
///
/// Where both ends are in one namespace, one sample is of both. A server in another namespace of this machine is looked
/// at by a thread that has entered it: that is where its accept queues overflow and its SYNs are dropped. One on another
/// machine is known by the facts that a watch on its host sends.
#[derive(Debug)]
pub struct LiveKernel {
    ports: Vec<u16>,
    /// The generator's own.
    here: Sampler,
    server: Server,
    process: ServerProcess,
    /// What has happened and was not told yet.
    events: Vec<RunEventKind>,
    /// What was said last about what cannot be seen.
    unseen: Option<Vec<String>>,
}

/// Where the server's counters come from.
#[derive(Debug)]
enum Server {
    /// It shares the generator's kernel and namespace, or nothing is known of it.
    Here,
    /// It is on another machine, and nobody tells.
    Elsewhere,
    /// It is in another namespace of this machine.
    Namespace(ServerKernel),
    /// A watch tells.
    Watched(FactsStream),
}

impl LiveKernel {
    /// Reads the machine and the listeners on `ports`; no ports means all listeners.
    pub fn new(ports: Vec<u16>) -> Self {
        let here = Sampler::new(options(&ports));
        let process = ServerProcess::new(Vec::new(), false);
        Self { ports, here, server: Server::Here, process, events: Vec::new(), unseen: None }
    }

    /// The same for a server in this network namespace: the process that listens on the ports of
    /// `targets` is it, and the one that takes its place.
    #[must_use]
    pub fn with_whoever_listens(mut self, targets: &[SocketAddr]) -> Self {
        self.process = ServerProcess::new(targets.to_vec(), true);
        // Before the first sample, so that it is in that.
        self.events = self.look();
        self
    }

    /// The same for a server on another machine that nobody watches.
    #[must_use]
    pub fn with_the_server_elsewhere(self) -> Self {
        Self { server: Server::Elsewhere, ..self }
    }

    /// The same with the facts that a watch on the server's host sends.
    #[must_use]
    pub fn with_facts(self, facts: FactsStream) -> Self {
        Self { server: Server::Watched(facts), ..self }
    }
}

impl LiveKernel {
    /// Looks at who serves.
    fn look(&mut self) -> Vec<RunEventKind> {
        let mut events = Vec::new();
        if let Some(owner) = self.process.step(Clock.now(), &mut events) {
            self.here.watch(server(&owner));
        }
        events
    }
}

impl KernelProbe for LiveKernel {
    fn sample(&mut self) -> KernelReading {
        if let Server::Namespace(there) = &mut self.server {
            there.ask();
        }
        let here = self.here.sample(Clock.now());
        let mut unseen = sentences("", &here.unknown);
        let mut sample = KernelReading {
            machine: here.machine,
            counters: here.counters,
            programs: here.programs,
            ..Default::default()
        };
        match &mut self.server {
            Server::Here => {}
            Server::Elsewhere => unseen.push(ELSEWHERE.to_owned()),
            Server::Namespace(there) => {
                let there = there.answer();
                unseen.extend(sentences("the server's side: ", &there.unknown));
                sample.server_counters = there.counters;
            }
            Server::Watched(facts) => {
                facts.fill(&mut sample, &mut unseen);
                facts.server_pid().into_iter().for_each(|pid| self.here.spare(pid));
            }
        }
        unseen.sort();
        unseen.dedup();
        if self.unseen.as_ref() != Some(&unseen) {
            self.unseen = Some(unseen);
            sample.unseen.clone_from(&self.unseen);
        }
        sample
    }

    fn ask_between(&mut self, from: Instant, to: Instant) {
        match &self.server {
            Server::Namespace(there) => there.ask_between(from, to),
            _ => self.here.ask_between(from, to),
        }
    }

    fn step(&mut self) -> Vec<RunEventKind> {
        let happened = self.look();
        self.events.extend(happened);
        match &self.server {
            Server::Namespace(there) => there.step(),
            _ => self.here.step(Clock.now()),
        }
        std::mem::take(&mut self.events)
    }

    fn server_is(&mut self, pid: u32) {
        // Whoever named a watch knows better where its server is.
        if matches!(self.server, Server::Watched(_)) || !self.process.is(pid) {
            return;
        }
        if netns::is_current(pid) == Ok(false) {
            self.here = Sampler::new(options(&self.ports));
            self.here.spare(pid);
            self.server = Server::Namespace(ServerKernel::new(pid, self.ports.clone()));
        } else {
            self.here.watch(watched("server", pid));
            self.server = Server::Here;
        }
    }
}

/// What a sampler of the generator looks at before the server is known: itself.
fn options(ports: &[u16]) -> SamplerOptions {
    let processes = vec![watched("client", std::process::id())];
    SamplerOptions { ports: ports.to_vec(), processes, ..SamplerOptions::default() }
}

fn server(owner: &Owner) -> WatchedProcess {
    WatchedProcess { also: owner.others.clone(), ..watched("server", owner.pid) }
}

pub(crate) fn watched(label: &str, pid: u32) -> WatchedProcess {
    WatchedProcess { label: label.to_owned(), pid, also: Vec::new() }
}

/// What could not be read, for people. What this kernel does not have, connection tracking where its module is not loaded say,
/// is no blind spot.
pub(crate) fn sentences(whose: &str, unknown: &[Unknown]) -> Vec<String> {
    let is_optional = |why: &&Unknown| {
        why.reason == Reason::Missing && OPTIONAL.iter().any(|part| why.source.contains(part))
    };
    unknown.iter().filter(|why| !is_optional(why)).map(|why| format!("{whose}{why}")).collect()
}

/// Parts of the names of what a kernel need not have: a module, a family of addresses, accounting that was not built in.
/// And what a network namespace does not have, but the machine: `tcp_mem`, the limit of packets that wait for a CPU.
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

const ELSEWHERE: &str = "the server's side: it is not on this machine, or in another network namespace of it (a container's); \
                         `throng doctor --watch --listen ADDR:PORT` there and `throng run --server-facts HOST:PORT` here show it";

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
            sentences("the server's side: ", &unknown),
            [
                "the server's side: proc/sys/net/netfilter/nf_conntrack_max: permission denied",
                "the server's side: sock_diag: permission denied",
                "the server's side: proc/thread-self/net/netstat: does not exist here",
            ]
        );
    }

    #[test]
    fn what_cannot_be_seen_is_said_once() {
        let mut kernel = LiveKernel::new(vec![1]).with_the_server_elsewhere();
        assert!(kernel.sample().unseen.unwrap().contains(&ELSEWHERE.to_owned()));
        assert_eq!(kernel.sample().unseen, None, "the same as before");
        kernel.server_is(std::process::id());
        assert!(!kernel.sample().unseen.unwrap().contains(&ELSEWHERE.to_owned()));
    }
}
