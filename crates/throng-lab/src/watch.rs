//! Watches a server's host while somebody loads it from elsewhere: any server, throng's or not.
//!
//! A [`Watch`] looks, once an interval, at the kernel, at the listeners and at the process that owns them. A [`Publisher`]
//! hands what it saw to whoever connects, and takes nothing from anybody.

mod publisher;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use throng_control::{ProcessRole, processes};
use throng_doctor::owner::Owner;
use throng_doctor::{Fact, ProcRoot, Sampler, SamplerOptions, listening_process};
use throng_driver::{Clock, netns};
use throng_report::ServerSnapshot;
use throng_report::watch::{WATCH_SCHEMA, WatchHeader, WatchLine};

use crate::recorder::ControlProbe;
use crate::recorder::facts::{boot_id, net_namespace};
use crate::recorder::kernel::{unreadable_sources, watched};
use crate::recorder::server::ServerPoller;
pub use publisher::{BoundPublisher, Publisher, READERS_MAX};

/// What to watch.
#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    /// Listening ports of the server; none means every listener.
    pub ports: Vec<u16>,
    /// The server's process; none means whoever listens on the ports. Its network namespace is the one that is watched.
    pub pid: Option<u32>,
    /// The control socket of a throng server; none means the one of that process, if it has one.
    pub control: Option<PathBuf>,
}

/// Looks at a host. It stays on the thread that made it, which moves into the server's network namespace.
#[derive(Debug)]
pub struct HostWatch {
    options: WatchOptions,
    sampler: Sampler,
    /// Why the namespace that is watched may not be the server's.
    namespace_error: Option<String>,
    /// The process, as it was last seen.
    owner: Result<Owner, String>,
    server: Option<ServerPoller>,
    began: Instant,
    /// When the last look began, since then.
    sampled_ms: Option<u64>,
    /// When the process may be searched for again.
    search_at: Instant,
}

impl HostWatch {
    /// Finds the server.
    ///
    /// # Errors
    /// There is no such process. A port on which nobody listens is no error: the server may come later.
    pub fn new(options: WatchOptions) -> Result<Self, String> {
        let mut blind = None;
        if let Some(pid) = options.pid {
            process_by_id(pid).map_err(|why| format!("cannot look at process {pid}: {why}"))?;
            blind = netns::enter(pid).err().map(|errno| {
                format!("the network namespace of process {pid}: {errno}; the counters are those of this command's own")
            });
        }
        let now = Instant::now();
        let mut watch = Self {
            sampler: sampler(&options, None),
            options,
            namespace_error: blind,
            owner: Err(String::new()),
            server: None,
            began: now,
            sampled_ms: None,
            search_at: now,
        };
        watch.find_process();
        Ok(watch)
    }

    /// The process that serves, or why it is not known.
    pub fn owner(&self) -> Result<&Owner, &str> {
        self.owner.as_ref().map_err(String::as_str)
    }

    /// Whether the server is one of throng that says itself what it does.
    pub fn reads_server_counters(&self) -> bool {
        self.server.is_some()
    }

    /// The first line of its stream, for looks that are `interval` apart.
    pub fn header(&self, interval: Duration) -> WatchHeader {
        WatchHeader {
            schema: WATCH_SCHEMA.to_owned(),
            throng_version: env!("CARGO_PKG_VERSION").to_owned(),
            ports: self.options.ports.clone(),
            interval_ms: interval.as_millis() as u64,
            boot_id: boot_id(),
            net_namespace: net_namespace(),
        }
    }

    /// Follows the process between two looks, every 20 ms or so.
    pub fn step(&mut self) {
        self.sampler.step(Clock.now());
    }

    /// Looks once.
    pub fn sample(&mut self) -> WatchLine {
        if Instant::now() >= self.search_at {
            match self.is_alive() {
                false => self.find_process(),
                // A throng server that was too busy to answer, or not yet ready to, may be so now. Others are not worth the wait.
                true if self.server.is_none() && self.is_throng() => self.find_control_socket(),
                true => {}
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
            // It was there before this watch was.
            process.rss_bytes_at_start = server.process.rss_bytes_at_start;
        }
        if let Err(why) = &self.owner {
            unseen.push(why.clone());
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
        let is_alive = |owner: &Owner| throng_doctor::process::process_use(&root, owner.pid);
        self.owner.as_ref().is_ok_and(|owner| is_alive(owner).known().is_some())
    }

    fn is_throng(&self) -> bool {
        self.owner.as_ref().is_ok_and(|owner| owner.program == "throng")
    }

    /// Looks for the process, and for the control socket of a throng server.
    fn find_process(&mut self) {
        self.search_at = Instant::now() + SEARCH_EVERY;
        let found = match self.options.pid {
            Some(pid) => process_by_id(pid),
            None if self.options.ports.is_empty() => {
                Err("the server's process: which one is not said (--port, --pid)".to_owned())
            }
            None => match listening_process(&ProcRoot::default(), &self.options.ports) {
                Fact::Known(owner) => Ok(owner),
                Fact::Unknown(why) => Err(format!("the server's process: {why}")),
            },
        };
        if found != self.owner {
            self.sampler = sampler(&self.options, found.as_ref().ok().map(|owner| owner.pid));
            self.owner = found;
            self.find_control_socket();
        }
    }

    /// Looks for the control socket of the process that was found.
    fn find_control_socket(&mut self) {
        self.search_at = Instant::now() + SEARCH_EVERY;
        self.server = control_socket(&self.options, self.owner.as_ref().ok())
            .map(|path| ServerPoller::new(Box::new(ControlProbe::new(path)), SERVER_PATIENCE));
    }
}

/// A process by its id.
fn process_by_id(pid: u32) -> Result<Owner, String> {
    let path = format!("proc/{pid}/stat");
    match ProcRoot::default().read(&path, throng_doctor::process::parse_stat) {
        Fact::Known(stat) => Ok(Owner { pid, program: stat.name, others: Vec::new() }),
        Fact::Unknown(why) => Err(format!("the server's process: {why}")),
    }
}

fn sampler(options: &WatchOptions, pid: Option<u32>) -> Sampler {
    let processes = pid.map(|pid| watched("server", pid)).into_iter().collect();
    Sampler::new(SamplerOptions {
        ports: options.ports.clone(),
        processes,
        ..SamplerOptions::default()
    })
}

/// The control socket to ask.
fn control_socket(options: &WatchOptions, owner: Option<&Owner>) -> Option<PathBuf> {
    let of = |owner: &Owner| {
        let mut all = processes().into_iter();
        all.find(|process| process.role == ProcessRole::Server && process.pid == owner.pid)
    };
    options.control.clone().or_else(|| Some(of(owner?)?.path))
}

/// The rest between two searches for a process that is not there.
const SEARCH_EVERY: Duration = Duration::from_secs(5);

/// A watch says nothing about a server that is silent; it asks again each time.
const SERVER_PATIENCE: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_server_that_is_not_ours_is_found_by_its_port_and_looked_at() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let ports = vec![server.local_addr().unwrap().port()];
        let mut watch = HostWatch::new(WatchOptions { ports, ..Default::default() }).unwrap();
        assert_eq!(watch.owner().unwrap().pid, std::process::id());
        let (first, second) = (watch.sample(), watch.sample());
        assert_eq!(first.span_ms, 0);
        assert_eq!(second.span_ms, second.at_ms - first.at_ms);
        assert_eq!(second.kernel["listener.count"], 1);
        assert!(second.kernel["process.server.threads"] >= 1);
        assert_eq!(second.process.unwrap().pid, std::process::id());
        assert_eq!(second.server, None, "it has no control socket");
    }

    #[test]
    fn a_port_on_which_nobody_listens_is_watched_all_the_same() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut watch =
            HostWatch::new(WatchOptions { ports: vec![closed], ..Default::default() }).unwrap();
        assert!(watch.owner().unwrap_err().contains("nobody listens"));
        let line = watch.sample();
        assert_eq!((line.kernel["listener.count"], line.process), (0, None));
        assert!(
            line.unseen.iter().any(|what| what.contains("nobody listens")),
            "{:?}",
            line.unseen
        );
    }

    #[test]
    fn a_process_that_does_not_exist_is_refused() {
        let options = WatchOptions { pid: Some(u32::MAX), ..Default::default() };
        assert!(HostWatch::new(options).unwrap_err().contains("4294967295"));
    }
}
