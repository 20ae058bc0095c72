//! The server's facts as a watch on its host streams them: over TCP (`throng doctor --watch
//! --listen`), or by another way (a [`WatchSource`]).
//!
//! A thread of its own reads the stream, and reconnects after the stream has ended. The clocks of
//! the two hosts need not agree: an interval takes the line that has arrived.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use throng_driver::netns;
use throng_measure::watch::{WatchHeader, WatchLine};
use throng_measure::{EndpointFacts, RunEventKind};

use super::lock::lock;
use super::probes::KernelReading;
use super::watch_source::{NextLine, TcpWatch, WatchLines, WatchSource};

/// A stream of facts about the server.
#[derive(Debug)]
pub struct FactsStream {
    address: String,
    header: WatchHeader,
    relation: HostRelation,
    inbox: Arc<Mutex<Inbox>>,
    /// The unreadable sources of the last line.
    unseen: Vec<String>,
    /// The server's process id, where the server is on this machine.
    server_pid: Option<u32>,
}

/// The relation of the watched host to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostRelation {
    /// Another machine.
    OtherMachine,
    /// This machine, but another network namespace.
    SameMachine,
    /// This machine and this network namespace.
    SameNamespace,
}

/// The lines and events that the reading thread leaves for the recorder.
#[derive(Debug, Default)]
struct Inbox {
    lines: VecDeque<WatchLine>,
    events: Vec<RunEventKind>,
    /// The reason why the stream is lost, while it is.
    lost: Option<String>,
}

impl FactsStream {
    /// Connects to `address` (`HOST:PORT`) and reads the first line.
    ///
    /// # Errors
    /// A sentence: the address does not answer, or no watch answers there.
    pub fn connect(address: &str) -> Result<Self, String> {
        Self::of(TcpWatch(address.to_owned()))
    }

    /// Connects to a watch by another way, and reads the first line.
    ///
    /// # Errors
    /// A sentence: no watch answers.
    pub fn of(mut source: impl WatchSource + 'static) -> Result<Self, String> {
        let (header, lines) = source.connect()?;
        let inbox = Arc::<Mutex<Inbox>>::default();
        let address = source.name();
        let reader = Reader {
            address: address.clone(),
            source: Box::new(source),
            silence_max: silence_max(&header),
            inbox: Arc::downgrade(&inbox),
        };
        let thread = std::thread::Builder::new().name("server-facts".into());
        thread.spawn(move || reader.run(lines)).map_err(|error| error.to_string())?;
        let kin = HostRelation::of(&header);
        Ok(Self { address, header, relation: kin, inbox, unseen: Vec::new(), server_pid: None })
    }

    /// Reports whether the watched host is this machine.
    pub fn is_same_machine(&self) -> bool {
        self.relation != HostRelation::OtherMachine
    }

    /// Returns the ports of the watched server; none means all.
    pub fn ports(&self) -> &[u16] {
        &self.header.ports
    }

    /// Returns the limits of the server's end, if the watch knew them.
    pub fn endpoint_facts(&self) -> Option<&EndpointFacts> {
        self.header.facts.as_ref()
    }

    /// Returns the server's process id of the last line, where the server is on this machine.
    pub(super) fn server_pid(&self) -> Option<u32> {
        self.server_pid
    }

    /// Adds the next line and the events to an interval's reading.
    pub(super) fn fill(&mut self, reading: &mut KernelReading, unseen: &mut Vec<String>) {
        let mut inbox = lock(&self.inbox);
        reading.events.append(&mut inbox.events);
        let lost = inbox.lost.clone();
        let line = inbox.take();
        drop(inbox);
        if let Some(line) = line {
            self.unseen = line.unseen;
            let is_here = self.relation != HostRelation::OtherMachine;
            self.server_pid = line.process.map(|process| process.pid).filter(|_| is_here);
            reading.server = line.server;
            match self.relation {
                // One kernel: the generator's sample has all its counters but the process's.
                HostRelation::SameNamespace => {
                    let mut of_process = line.kernel;
                    of_process.retain(&["process.server."]);
                    reading.counters.extend(of_process);
                }
                HostRelation::SameMachine => reading.server_counters = line.kernel,
                HostRelation::OtherMachine => {
                    reading.server_counters = line.kernel;
                    reading.server_machine = line.machine;
                    reading.server_programs = line.programs;
                }
            }
        }
        match lost {
            Some(reason) => unseen.push(format!("the server's side: {}: {reason}", self.address)),
            None => {
                let sentence = |source: &String| format!("the server's side: {source}");
                unseen.extend(self.unseen.iter().map(sentence));
            }
        }
    }
}

impl HostRelation {
    fn of(header: &WatchHeader) -> Self {
        if header.boot_id.is_none() || header.boot_id != boot_id() {
            return Self::OtherMachine;
        }
        if header.net_namespace.is_some() && header.net_namespace == net_namespace() {
            Self::SameNamespace
        } else {
            Self::SameMachine
        }
    }
}

/// Returns the id of the running kernel, which changes at each boot.
pub fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Returns the name of the calling thread's network namespace.
pub fn net_namespace() -> Option<String> {
    Some(netns::current().ok()?.to_string_lossy().into_owned())
}

impl Inbox {
    /// Takes the line for the next interval. One more line may wait for the interval after that, so
    /// lines may arrive shortly before or shortly after an interval's end. If a watch is faster
    /// than the run, the newest line counts.
    fn take(&mut self) -> Option<WatchLine> {
        if self.lines.len() > 2 {
            self.lines.drain(..self.lines.len() - 1);
        }
        self.lines.pop_front()
    }

    fn add(&mut self, line: WatchLine) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}

/// The state of the reading thread.
struct Reader {
    address: String,
    source: Box<dyn WatchSource>,
    /// The time without a line after which the stream is lost.
    silence_max: Duration,
    /// The thread ends when the stream is dropped.
    inbox: Weak<Mutex<Inbox>>,
}

impl Reader {
    fn run(mut self, mut lines: Box<dyn WatchLines>) {
        loop {
            let Some(reason) = self.read(&mut *lines) else { return };
            if !self.update_inbox(|inbox, address| {
                inbox.lost = Some(reason.clone());
                inbox.events.push(RunEventKind::FactsLost { address, reason });
            }) {
                return;
            }
            lines = loop {
                std::thread::sleep(RECONNECT_DELAY);
                match self.source.connect() {
                    Ok((header, lines)) => {
                        self.silence_max = silence_max(&header);
                        break lines;
                    }
                    Err(_) if self.inbox.strong_count() > 0 => {}
                    Err(_) => return,
                }
            };
            if !self.update_inbox(|inbox, address| {
                inbox.lost = None;
                inbox.events.push(RunEventKind::FactsBack { address });
            }) {
                return;
            }
        }
    }

    /// Reads until the stream ends. Returns the reason; none when the [`FactsStream`] is dropped.
    fn read(&self, lines: &mut dyn WatchLines) -> Option<String> {
        let mut received = Instant::now();
        loop {
            match lines.next() {
                Ok(NextLine::Line(line)) => {
                    received = Instant::now();
                    if !self.update_inbox(|inbox, _| inbox.add(*line)) {
                        return None;
                    }
                }
                Ok(NextLine::Unknown) => received = Instant::now(),
                Ok(NextLine::Nothing) if self.inbox.strong_count() == 0 => return None,
                Ok(NextLine::Nothing) if received.elapsed() < self.silence_max => {}
                Ok(NextLine::Nothing) => {
                    return Some(format!("no line for {:.0?}", self.silence_max));
                }
                Err(reason) => return Some(reason),
            }
        }
    }

    /// Calls `update` with the inbox. Returns false when the [`FactsStream`] is dropped.
    fn update_inbox(&self, update: impl FnOnce(&mut Inbox, String)) -> bool {
        let Some(inbox) = self.inbox.upgrade() else { return false };
        update(&mut lock(&inbox), self.address.clone());
        true
    }
}

/// Returns the time in which three lines are due, at least three seconds.
fn silence_max(header: &WatchHeader) -> Duration {
    Duration::from_millis(header.interval_ms.saturating_mul(3)).clamp(SILENCE_LEAST, SILENCE_MOST)
}

const SILENCE_LEAST: Duration = Duration::from_secs(3);
const SILENCE_MOST: Duration = Duration::from_secs(600);
/// The time between two attempts to reconnect.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// The most lines that wait for the recorder.
const LINES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_ms: u64) -> WatchLine {
        WatchLine { at_ms, ..Default::default() }
    }

    #[test]
    fn an_interval_takes_a_line_and_leaves_one_for_the_next() {
        let mut inbox = Inbox::default();
        let mut take = |lines: &[u64]| {
            lines.iter().for_each(|at_ms| inbox.add(at(*at_ms)));
            inbox.take().map(|line| line.at_ms)
        };
        assert_eq!(take(&[1]), Some(1));
        assert_eq!(take(&[]), None, "the second line is a little late");
        assert_eq!(take(&[2, 3]), Some(2));
        assert_eq!(take(&[]), Some(3), "late again, and an older line waited");
        assert_eq!(take(&[4, 5, 6, 7]), Some(7), "a watch that is faster than the run");
        assert_eq!(take(&(10..40).collect::<Vec<_>>()), Some(39));
    }

    #[test]
    fn a_machine_is_known_by_its_kernels_id_and_its_namespace() {
        let of = |boot_id, net_namespace| {
            HostRelation::of(&WatchHeader { boot_id, net_namespace, ..Default::default() })
        };
        assert_eq!(of(boot_id(), net_namespace()), HostRelation::SameNamespace);
        assert_eq!(of(boot_id(), Some("net:[1]".into())), HostRelation::SameMachine);
        assert_eq!(of(Some("another".into()), net_namespace()), HostRelation::OtherMachine);
        assert_eq!(of(None, net_namespace()), HostRelation::OtherMachine);
    }
}
