//! Which process serves: found by its port, followed to its end, and to its successor.

use std::net::SocketAddr;
use std::time::Duration;

use throng_base::time::Instant;
use throng_doctor::owner::{Owner, port_holder};
use throng_doctor::process::{is_there, parse_stat};
use throng_doctor::{Fact, ListenerReader, ProcRoot, listening_process};
use throng_report::RunEventKind;

/// Follows the process that serves. It is to be asked every 20 ms or so, and rations what it asks itself.
#[derive(Debug)]
pub(super) struct ServerProcess {
    root: ProcRoot,
    targets: Vec<SocketAddr>,
    /// Whether a process that listens on the ports here is the server.
    is_local: bool,
    owner: Option<Owner>,
    /// The program that served last.
    last_program: String,
    /// Since when nobody serves, after somebody did.
    gone_since: Option<Instant>,
    search_at: Instant,
    holder_reported: bool,
    listeners: ListenerReader,
}

impl ServerProcess {
    /// No process is known yet. `is_here`: the one that listens on a port of `targets` in the calling thread's network
    /// namespace is the server.
    pub(super) fn new(targets: Vec<SocketAddr>, is_here: bool) -> Self {
        Self {
            root: ProcRoot::default(),
            targets,
            is_local: is_here,
            owner: None,
            last_program: String::new(),
            gone_since: None,
            search_at: Instant::ZERO,
            holder_reported: false,
            listeners: ListenerReader::default(),
        }
    }

    /// The server has said itself which process it is. Returns whether that is news.
    pub(super) fn set_pid(&mut self, pid: u32) -> bool {
        if self.owner.as_ref().is_some_and(|known| known.pid == pid) {
            return false;
        }
        let stat = self.root.read(&format!("proc/{pid}/stat"), parse_stat);
        let program = stat.known().map(|stat| stat.name.clone()).unwrap_or_default();
        self.set_owner(Owner { pid, program, others: Vec::new() });
        true
    }

    /// Looks whether it is still there, and who took its place. Adds what happened to `events`; returns a process that was
    /// found.
    pub(super) fn step(&mut self, now: Instant, events: &mut Vec<RunEventKind>) -> Option<Owner> {
        if let Some(known) = self.owner.take_if(|known| !is_there(&self.root, known.pid)) {
            let Owner { pid, program, .. } = known;
            self.last_program.clone_from(&program);
            self.gone_since = Some(now);
            events.push(RunEventKind::ServerProcessEnded { pid, program });
        }
        if self.owner.is_some() || !self.is_local || now < self.search_at {
            return None;
        }
        self.search_at = now + SEARCH_EVERY;
        if !self.has_listener() {
            self.report_port_holder(now, events);
            return None;
        }
        let Fact::Known(owner) = listening_process(&self.root, &self.ports()) else {
            // It cannot be seen, by this user say: it need not be searched for so often.
            self.search_at = now + SEARCH_AGAIN;
            return None;
        };
        events.push(RunEventKind::ServerProcess { pid: owner.pid, program: owner.program.clone() });
        self.set_owner(owner.clone());
        Some(owner)
    }

    fn set_owner(&mut self, owner: Owner) {
        self.owner = Some(owner);
        self.gone_since = None;
        self.holder_reported = false;
    }

    fn has_listener(&mut self) -> bool {
        let Fact::Known(all) = self.listeners.listeners() else { return true };
        let ports = self.ports();
        all.iter().any(|listener| ports.contains(&listener.addr.port()))
    }

    fn ports(&self) -> Vec<u16> {
        self.targets.iter().map(SocketAddr::port).collect()
    }

    /// Says who has the port as a source port, once, when nobody has come to listen on it for a while.
    fn report_port_holder(&mut self, now: Instant, events: &mut Vec<RunEventKind>) {
        let is_long = self.gone_since.is_some_and(|since| now.since(since) >= HOLDER_AFTER);
        if !is_long || std::mem::replace(&mut self.holder_reported, true) {
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

/// The rest between two looks at the listeners: some hundred microseconds each.
const SEARCH_EVERY: Duration = Duration::from_millis(100);

/// The rest after a search for a process that was in vain: some milliseconds.
const SEARCH_AGAIN: Duration = Duration::from_secs(2);

/// A server that restarts is given so much time before it is asked who has its port.
const HOLDER_AFTER: Duration = Duration::from_millis(1_000);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::OwnedFd;
    use std::process::{Child, Command};

    use throng_driver::netns;

    use super::*;

    /// A program that holds a listener, and nothing else, until it is killed.
    fn holding(listener: TcpListener) -> Child {
        Command::new("sleep").arg("1000").stdin(OwnedFd::from(listener)).spawn().unwrap()
    }

    /// Steps until something happens.
    fn next(process: &mut ServerProcess) -> RunEventKind {
        let began = std::time::Instant::now();
        let mut events = Vec::new();
        while events.is_empty() {
            assert!(began.elapsed() < Duration::from_secs(60), "nothing happens");
            std::thread::sleep(Duration::from_millis(20));
            process.step(Instant::from_nanos(1) + began.elapsed() + SEARCH_AGAIN, &mut events);
        }
        events.remove(0)
    }

    fn is_followed_to_its_end_and_to_its_successor() {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let target = listener.local_addr().unwrap();
        let mut first = holding(listener);
        let mut process = ServerProcess::new(vec![target], true);
        let expected = |child: &Child| RunEventKind::ServerProcess {
            pid: child.id(),
            program: "sleep".to_owned(),
        };
        assert_eq!(next(&mut process), expected(&first));
        // It is not waited for yet: what is left of it is no server.
        first.kill().unwrap();
        let ended = next(&mut process);
        assert!(matches!(ended, RunEventKind::ServerProcessEnded { pid, .. } if pid == first.id()));
        let mut second = holding(TcpListener::bind(target).unwrap());
        assert_eq!(next(&mut process), expected(&second));
        for child in [&mut first, &mut second] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    #[test]
    fn a_server_is_followed_to_its_end_and_to_its_successor() {
        let alone = std::thread::spawn(|| {
            // In a namespace of its own no neighbour takes the port between the two. That needs root.
            let _ = netns::unshare();
            is_followed_to_its_end_and_to_its_successor();
        });
        alone.join().unwrap();
    }
}
