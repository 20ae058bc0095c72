//! The server's process: found by its listening socket, followed to its end and to its successor.

use std::net::SocketAddr;
use std::time::Duration;

use throng_base::time::Instant;
use throng_driver::netlink::ListenerState;
use throng_machine::owner::{Owner, port_holder};
use throng_machine::process::{is_there, parse_stat};
use throng_machine::{
    Fact, ListenerReader, ListenerScope, ProcRoot, listeners_elsewhere, listening_process, runtime,
};
use throng_measure::RunEventKind;

/// Follows the server's process. Callers step it about every 20 ms; it limits its own searches.
#[derive(Debug)]
pub(super) struct ServerProcess {
    root: ProcRoot,
    targets: Vec<SocketAddr>,
    /// True when the process that listens at the targets here is the server.
    is_local: bool,
    owner: Option<Owner>,
    /// The program that served last.
    last_program: String,
    /// The moment since which no process serves, after one did.
    gone_since: Option<Instant>,
    search_at: Instant,
    holder_reported: bool,
    elsewhere_reported: bool,
    listeners: ListenerReader,
}

impl ServerProcess {
    /// Starts without a known process. With `is_local`, the process that connections to `targets`
    /// reach in the calling thread's network namespace is the server.
    pub(super) fn new(targets: Vec<SocketAddr>, is_local: bool) -> Self {
        Self {
            root: ProcRoot::default(),
            targets,
            is_local,
            owner: None,
            last_program: String::new(),
            gone_since: None,
            search_at: Instant::ZERO,
            holder_reported: false,
            elsewhere_reported: false,
            listeners: ListenerReader::default(),
        }
    }

    /// Sets the process id that the server itself has reported. Returns true when the id is new.
    pub(super) fn set_pid(&mut self, pid: u32) -> bool {
        if self.owner.as_ref().is_some_and(|owner| owner.pid == pid) {
            return false;
        }
        let stat = self.root.read(&format!("proc/{pid}/stat"), parse_stat);
        let program = stat.known().map(|stat| stat.name.clone()).unwrap_or_default();
        self.set_owner(Owner { pid, program, ..Owner::default() });
        true
    }

    /// Checks that the process still runs, and otherwise searches for its successor. Adds what
    /// happened to `events`. Returns a process that the search found.
    pub(super) fn step(&mut self, now: Instant, events: &mut Vec<RunEventKind>) -> Option<Owner> {
        if let Some(ended) = self.owner.take_if(|owner| !is_there(&self.root, owner.pid)) {
            let Owner { pid, program, .. } = ended;
            self.last_program.clone_from(&program);
            self.gone_since = Some(now);
            events.push(RunEventKind::ServerProcessEnded { pid, program });
        }
        if self.owner.is_some() || !self.is_local || now < self.search_at {
            return None;
        }
        self.search_at = now + SEARCH_INTERVAL;
        if let Fact::Known(all) = self.listeners.listeners()
            && self.scope().select(&all).is_empty()
        {
            self.report_port_holder(now, events);
            self.report_elsewhere(&all, events);
            return None;
        }
        let Fact::Known(owner) = listening_process(&self.root, &self.scope()) else {
            // The process is not visible, for example to this user: search less often.
            self.search_at = now + FAILED_SEARCH_INTERVAL;
            return None;
        };
        events.push(self.found(owner.clone()));
        Some(owner)
    }

    /// Follows this process from now on. Returns the event that says so.
    pub(super) fn found(&mut self, owner: Owner) -> RunEventKind {
        let (pid, program) = (owner.pid, owner.program.clone());
        let runtime = runtime(&self.root, pid).map(str::to_owned);
        self.set_owner(owner);
        RunEventKind::ServerProcess { pid, program, runtime }
    }

    fn set_owner(&mut self, owner: Owner) {
        self.owner = Some(owner);
        self.gone_since = None;
        self.holder_reported = false;
    }

    /// Returns the listeners of the server.
    fn scope(&self) -> ListenerScope {
        ListenerScope::Targets(self.targets.clone())
    }

    /// Reports once which process listens on a target's port at another address, while no process
    /// has listened at the targets yet.
    fn report_elsewhere(&mut self, all: &[ListenerState], events: &mut Vec<RunEventKind>) {
        if self.gone_since.is_some() || self.elsewhere_reported {
            return;
        }
        for target in &self.targets {
            let found = listeners_elsewhere(*target, all);
            let mut addresses: Vec<_> = found.iter().map(|listener| listener.addr).collect();
            addresses.sort_unstable();
            addresses.dedup();
            let [first, ..] = addresses[..] else { continue };
            let owner = listening_process(&self.root, &ListenerScope::Targets(vec![first]));
            let holder = owner.known().map(|owner| format!("{}, pid {}", owner.program, owner.pid));
            let listens_at = addresses.iter().map(ToString::to_string).collect();
            let target = target.to_string();
            self.elsewhere_reported = true;
            events.push(RunEventKind::ServerElsewhere { target, listens_at, holder });
        }
    }

    /// Reports once which process uses a target's port as a source port, after no process has
    /// listened on it for a while.
    fn report_port_holder(&mut self, now: Instant, events: &mut Vec<RunEventKind>) {
        let is_overdue = self.gone_since.is_some_and(|since| now.since(since) >= RESTART_TIME);
        if !is_overdue || std::mem::replace(&mut self.holder_reported, true) {
            return;
        }
        for target in &self.targets {
            if let Some(found) = port_holder(&self.root, *target, &self.last_program) {
                let holder = format!("{}, pid {}", found.owner.program, found.owner.pid);
                let connection = found.connection;
                events.push(RunEventKind::PortTaken { port: target.port(), connection, holder });
            }
        }
    }
}

/// The time between two reads of the listeners, which take some hundred microseconds each.
const SEARCH_INTERVAL: Duration = Duration::from_millis(100);

/// The time after a search for a process that found none. It takes some milliseconds.
const FAILED_SEARCH_INTERVAL: Duration = Duration::from_secs(2);

/// The time that a server has to restart before the search looks for the holder of its port.
const RESTART_TIME: Duration = Duration::from_millis(1_000);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::OwnedFd;
    use std::process::{Child, Command};

    use throng_driver::netns;

    use super::*;

    /// Starts a program that only holds `listener` until it is killed.
    fn hold(listener: TcpListener) -> Child {
        Command::new("sleep").arg("1000").stdin(OwnedFd::from(listener)).spawn().unwrap()
    }

    /// Steps until there is an event.
    fn next_event(process: &mut ServerProcess) -> RunEventKind {
        let began = std::time::Instant::now();
        let mut events = Vec::new();
        while events.is_empty() {
            assert!(began.elapsed() < Duration::from_secs(60), "no event");
            std::thread::sleep(Duration::from_millis(20));
            process.step(
                Instant::from_nanos(1) + began.elapsed() + FAILED_SEARCH_INTERVAL,
                &mut events,
            );
        }
        events.remove(0)
    }

    fn follows_to_the_end_and_to_the_successor() {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let target = listener.local_addr().unwrap();
        let mut first = hold(listener);
        let mut process = ServerProcess::new(vec![target], true);
        let expected = |child: &Child| RunEventKind::ServerProcess {
            pid: child.id(),
            program: "sleep".to_owned(),
            runtime: None,
        };
        assert_eq!(next_event(&mut process), expected(&first));
        // The test has not waited for the child: a zombie is no server.
        first.kill().unwrap();
        let ended = next_event(&mut process);
        assert!(matches!(ended, RunEventKind::ServerProcessEnded { pid, .. } if pid == first.id()));
        let mut second = hold(TcpListener::bind(target).unwrap());
        assert_eq!(next_event(&mut process), expected(&second));
        for child in [&mut first, &mut second] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    #[test]
    fn a_server_on_the_same_port_of_another_address_is_not_the_server() {
        let other = TcpListener::bind("127.83.9.2:0").unwrap();
        let there = other.local_addr().unwrap();
        let target = SocketAddr::from(([127, 83, 9, 1], there.port()));
        let mut process = ServerProcess::new(vec![target], true);
        let mut events = Vec::new();
        assert_eq!(process.step(Instant::from_nanos(1), &mut events), None);
        let later = Instant::from_nanos(1) + SEARCH_INTERVAL;
        assert_eq!(process.step(later, &mut events), None);
        let [RunEventKind::ServerElsewhere { listens_at, holder, .. }] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!(listens_at, &[there.to_string()]);
        let pid = format!(", pid {}", std::process::id());
        assert!(holder.as_ref().is_some_and(|holder| holder.ends_with(&pid)), "{holder:?}");

        let mut child = hold(TcpListener::bind(target).unwrap());
        let found = process.step(later + FAILED_SEARCH_INTERVAL, &mut events).unwrap();
        assert_eq!((found.pid, &found.listens_at[..]), (child.id(), &[target][..]));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_server_is_followed_to_its_end_and_to_its_successor() {
        let alone = std::thread::spawn(|| {
            // In a namespace of its own no other program takes the port in between. That needs
            // root.
            let _ = netns::unshare();
            follows_to_the_end_and_to_the_successor();
        });
        alone.join().unwrap();
    }
}
