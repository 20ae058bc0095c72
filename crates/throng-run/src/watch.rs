//! Watches a server's host under a load from another machine: any server, throng's or not.
//!
//! Once per interval, a [`HostWatch`] samples the kernel, the listeners and the process that owns
//! them. A [`Publisher`] sends the samples to every reader that connects, and reads nothing.

mod publisher;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use throng_control::{ProcessRole, processes};
use throng_driver::{Clock, netns};
use throng_machine::owner::{Owner, process_as_owner};
use throng_machine::process::parse_stat;
use throng_machine::{
    ListenerScope, ProcRoot, Reason, Sampler, SamplerOptions, Unknown, WatchedProcess,
    endpoint_facts, listening_process,
};
use throng_measure::watch::{WATCH_SCHEMA, WatchHeader, WatchLine};
use throng_measure::{Endpoint, ServerSnapshot};

use crate::recorder::ControlProbe;
use crate::recorder::facts::{boot_id, net_namespace};
use crate::recorder::kernel::unreadable_sources;
use crate::recorder::server_poller::ServerPoller;
use crate::recorder::watched_process::watched_process;
pub use publisher::{BoundPublisher, Publisher, READERS_MAX};

/// The server to watch.
#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    /// Listening ports of the server; none means every listener.
    pub ports: Vec<u16>,
    /// The server's process id; none means the process that listens on the ports. The watch moves
    /// into the network namespace of a process that is given, and watches the listeners that this
    /// process holds.
    pub pid: Option<u32>,
    /// The control socket of a throng server; none means that process's socket, if it has one.
    pub control: Option<PathBuf>,
    /// True to count the established connections of the server's listeners.
    pub counts_established: bool,
}

/// The watch of a host. It stays on the thread that created it, which moves into the server's
/// network namespace.
#[derive(Debug)]
pub struct HostWatch {
    options: WatchOptions,
    sampler: Sampler,
    /// The reason why the watched namespace may not be the server's.
    namespace_error: Option<String>,
    /// The process, or the reason why it is unknown.
    owner: Result<Owner, UnknownOwner>,
    server: Option<ServerPoller>,
    began: Instant,
    /// The moment of the last sample, in milliseconds since `began`.
    sampled_ms: Option<u64>,
    /// The moment of the next search for the process.
    search_at: Instant,
}

impl HostWatch {
    /// Finds the server.
    ///
    /// # Errors
    /// The process does not exist. A port without a listener is no error: the server may start
    /// later.
    pub fn new(options: WatchOptions) -> Result<Self, String> {
        let mut blind = None;
        if let Some(pid) = options.pid {
            let root = ProcRoot::default();
            root.read(&format!("proc/{pid}/stat"), parse_stat).into_result().map_err(|why| {
                format!("cannot watch process {pid}: {}", UnknownOwner::Unread(why))
            })?;
            blind = netns::enter(pid).err().map(|errno| {
                format!(
                    "the network namespace of process {pid}: {errno}; the counters are those of \
                     this command's namespace"
                )
            });
        }
        let now = Instant::now();
        let owner = find_owner(&options);
        let mut watch = Self {
            sampler: sampler(&options, owner.as_ref().ok()),
            options,
            namespace_error: blind,
            owner,
            server: None,
            began: now,
            sampled_ms: None,
            search_at: now,
        };
        watch.find_control_socket();
        Ok(watch)
    }

    /// Returns the server's process.
    ///
    /// # Errors
    /// The reason why it is unknown.
    pub fn owner(&self) -> Result<&Owner, &UnknownOwner> {
        self.owner.as_ref()
    }

    /// Returns the listeners that are watched.
    pub fn scope(&self) -> ListenerScope {
        scope(&self.options, self.owner.as_ref().ok())
    }

    /// Reports whether the server is a throng server whose control socket returns its counters.
    pub fn reads_server_counters(&self) -> bool {
        self.server.is_some()
    }

    /// Returns the first line of the stream, for a sample every `interval`.
    pub fn header(&self, interval: Duration) -> WatchHeader {
        WatchHeader {
            schema: WATCH_SCHEMA.to_owned(),
            throng_version: env!("CARGO_PKG_VERSION").to_owned(),
            ports: self.options.ports.clone(),
            interval_ms: interval.as_millis() as u64,
            boot_id: boot_id(),
            net_namespace: net_namespace(),
            facts: Some(endpoint_facts(
                &ProcRoot::default(),
                self.owner.as_ref().ok().map(|owner| owner.pid),
                Some(&self.scope()).filter(|scope| **scope != ListenerScope::All),
            )),
        }
    }

    /// Follows the process between two samples.
    fn step(&mut self) {
        self.sampler.step(Clock.now());
    }

    /// Samples the host at once and then once per interval, and gives each sample to `each`. Ends
    /// when `is_ended` says so, or after `length`.
    pub fn run(
        &mut self,
        interval: Duration,
        length: Option<Duration>,
        is_ended: impl Fn() -> bool,
        mut each: impl FnMut(&Self, WatchLine),
    ) {
        let began = Instant::now();
        let end = length.map(|length| began + length);
        let mut boundary = began;
        loop {
            let line = self.sample();
            each(self, line);
            let now = Instant::now();
            while boundary <= now {
                boundary += interval;
            }
            let is_over = end.is_some_and(|end| now >= end);
            if is_over || !self.sleep_until(boundary, &is_ended) {
                return;
            }
        }
    }

    /// Follows the process until `boundary`. Returns false when `is_ended` says so.
    fn sleep_until(&mut self, boundary: Instant, is_ended: impl Fn() -> bool) -> bool {
        loop {
            self.step();
            if is_ended() {
                return false;
            }
            let now = Instant::now();
            if now >= boundary {
                return true;
            }
            std::thread::sleep((boundary - now).min(STEP_EVERY));
        }
    }

    /// Samples the host once.
    pub fn sample(&mut self) -> WatchLine {
        if Instant::now() >= self.search_at {
            if !self.is_alive() {
                self.find_process();
            } else if self.server.is_none() && self.is_throng() {
                // A throng server that was busy or not yet ready may answer now. For other servers
                // the search is not worth its time.
                self.find_control_socket();
            }
        }
        let at_ms = self.began.elapsed().as_millis() as u64;
        let span_ms = at_ms - self.sampled_ms.replace(at_ms).unwrap_or(at_ms);
        let mut sample = self.sampler.sample(Clock.now());
        let mut unseen = unreadable_sources("", &sample.unknown);
        unseen.extend(self.namespace_error.clone());
        let mut process = sample.processes.pop().and_then(|process| process.used.known().cloned());
        let server = self.server_snapshot();
        if let (Some(process), Some(server)) = (&mut process, &server) {
            // The server ran before this watch did.
            process.rss_bytes_at_start = server.process.rss_bytes_at_start;
        }
        if let Err(reason) = &self.owner {
            unseen.push(reason.to_string());
        }
        unseen.sort();
        unseen.dedup();
        let (machine, kernel, programs) = (sample.machine, sample.counters, sample.programs);
        WatchLine { at_ms, span_ms, machine, kernel, process, server, programs, unseen }
    }

    fn server_snapshot(&mut self) -> Option<ServerSnapshot> {
        self.server.as_mut()?.snapshot(&mut |_| {})
    }

    fn is_alive(&self) -> bool {
        let root = ProcRoot::default();
        let is_alive = |owner: &Owner| throng_machine::process::process_use(&root, owner.pid);
        self.owner.as_ref().is_ok_and(|owner| is_alive(owner).known().is_some())
    }

    fn is_throng(&self) -> bool {
        self.owner.as_ref().is_ok_and(|owner| owner.program == "throng")
    }

    /// Searches for the process, and for the control socket of a throng server.
    fn find_process(&mut self) {
        self.search_at = Instant::now() + SEARCH_EVERY;
        let found = find_owner(&self.options);
        if found != self.owner {
            self.sampler = sampler(&self.options, found.as_ref().ok());
            self.owner = found;
            self.find_control_socket();
        }
    }

    /// Searches for the control socket of the process.
    fn find_control_socket(&mut self) {
        self.search_at = Instant::now() + SEARCH_EVERY;
        self.server = control_socket(&self.options, self.owner.as_ref().ok())
            .map(|path| ServerPoller::new(Box::new(ControlProbe::new(path)), SERVER_PATIENCE));
    }
}

/// The reason why the process of a watched server is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownOwner {
    /// The options name neither a port nor a process.
    Unnamed,
    /// The process could not be found, or not be read.
    Unread(Unknown),
}

impl UnknownOwner {
    /// Reports whether this user may not see the process.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Unread(Unknown { reason: Reason::Refused, .. }))
    }
}

impl fmt::Display for UnknownOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server's process: ")?;
        match self {
            Self::Unnamed => f.write_str("unknown; name it with --port or --pid"),
            Self::Unread(why) => why.fmt(f),
        }
    }
}

/// Returns the process of the options, or the one that listens on their ports.
fn find_owner(options: &WatchOptions) -> Result<Owner, UnknownOwner> {
    let found = match options.pid {
        Some(pid) => {
            let scope = ListenerScope::of_ports(options.ports.clone());
            process_as_owner(&ProcRoot::default(), pid, &scope)
        }
        None if options.ports.is_empty() => return Err(UnknownOwner::Unnamed),
        None => {
            let scope = ListenerScope::Ports(options.ports.clone());
            listening_process(&ProcRoot::default(), &scope)
        }
    };
    found.into_result().map_err(UnknownOwner::Unread)
}

/// Returns the listeners of the server: those that its processes hold, or else all on the ports.
fn scope(options: &WatchOptions, owner: Option<&Owner>) -> ListenerScope {
    match owner.map(|owner| owner.listens_at.clone()).unwrap_or_default() {
        none if none.is_empty() => ListenerScope::of_ports(options.ports.clone()),
        addresses => ListenerScope::Targets(addresses),
    }
}

fn sampler(options: &WatchOptions, owner: Option<&Owner>) -> Sampler {
    let process = |owner: &Owner| WatchedProcess {
        also: owner.others.clone(),
        ..watched_process(Endpoint::Server, owner.pid)
    };
    Sampler::new(SamplerOptions {
        scope: scope(options, owner),
        processes: owner.map(process).into_iter().collect(),
        counts_established: options.counts_established,
        ..SamplerOptions::default()
    })
}

/// Returns the control socket of the options, or else that of `owner`.
fn control_socket(options: &WatchOptions, owner: Option<&Owner>) -> Option<PathBuf> {
    let of = |owner: &Owner| {
        let mut all = processes().into_iter();
        all.find(|process| process.role == ProcessRole::Server && process.pid == owner.pid)
    };
    options.control.clone().or_else(|| Some(of(owner?)?.path))
}

/// The time between two looks at the process.
const STEP_EVERY: Duration = Duration::from_millis(20);

/// The time between two searches for a process that does not run.
const SEARCH_EVERY: Duration = Duration::from_secs(5);

/// The time after which the poller calls a silent server lost; a watch ignores that and polls on.
const SERVER_PATIENCE: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use throng_measure::{Metric, ProcessMetric};

    use super::*;

    #[test]
    fn a_foreign_server_is_found_by_its_port_and_sampled() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let ports = vec![server.local_addr().unwrap().port()];
        let mut watch = HostWatch::new(WatchOptions { ports, ..Default::default() }).unwrap();
        assert_eq!(watch.owner().unwrap().pid, std::process::id());
        let (first, second) = (watch.sample(), watch.sample());
        assert_eq!(first.span_ms, 0);
        assert_eq!(second.span_ms, second.at_ms - first.at_ms);
        assert_eq!(second.kernel[Metric::LISTENER_COUNT], 1);
        assert!(second.kernel[ProcessMetric::THREADS.server] >= 1);
        assert_eq!(second.process.unwrap().pid, std::process::id());
        assert_eq!(second.server, None, "it has no control socket");
    }

    #[test]
    fn of_two_servers_on_one_port_the_named_one_is_watched() {
        let server = TcpListener::bind("127.83.10.1:0").unwrap();
        let here = server.local_addr().unwrap();
        let other = TcpListener::bind(("127.83.10.2", here.port())).unwrap();
        let there = other.local_addr().unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .stdin(std::os::fd::OwnedFd::from(other))
            .spawn()
            .unwrap();
        let clients: Vec<_> =
            [here, there, there].map(|to| std::net::TcpStream::connect(to).unwrap()).into();
        let established = |pid: u32| {
            let options = WatchOptions {
                ports: vec![here.port()],
                pid: Some(pid),
                counts_established: true,
                ..Default::default()
            };
            let mut watch = HostWatch::new(options).unwrap();
            let kernel = watch.sample().kernel;
            (kernel[Metric::LISTENER_COUNT], kernel[Metric::LISTENER_ESTABLISHED])
        };
        assert_eq!(established(std::process::id()), (1, 1));
        assert_eq!(established(child.id()), (1, 2));
        let options = WatchOptions { ports: vec![here.port()], ..Default::default() };
        let watch = HostWatch::new(options).unwrap();
        let owner = watch.owner().unwrap();
        assert_eq!((owner.listens_at.len(), owner.beside.len()), (1, 1), "{owner:?}");
        drop(clients);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_port_without_a_listener_is_watched() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut watch =
            HostWatch::new(WatchOptions { ports: vec![closed], ..Default::default() }).unwrap();
        assert!(watch.owner().unwrap_err().to_string().contains("listens"));
        let line = watch.sample();
        assert_eq!((line.kernel[Metric::LISTENER_COUNT], line.process), (0, None));
        assert!(line.unseen.iter().any(|what| what.contains("listens")), "{:?}", line.unseen);
    }

    #[test]
    fn only_a_process_that_this_user_may_not_see_is_refused() {
        let unread = |reason: Reason| UnknownOwner::Unread(Unknown::new("proc/*/fd", reason));
        let refused = unread(Reason::Refused);
        assert_eq!(refused.to_string(), "the server's process: proc/*/fd: permission denied");
        assert!(refused.is_refused());
        let failed = unread(Reason::Failed("permission denied".to_owned()));
        assert!(!failed.is_refused() && !UnknownOwner::Unnamed.is_refused());
    }

    #[test]
    fn a_process_that_does_not_exist_is_refused() {
        let options = WatchOptions { pid: Some(u32::MAX), ..Default::default() };
        assert!(HostWatch::new(options).unwrap_err().contains("4294967295"));
    }
}
