//! What a run file says, and the sums in it that must hold.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use throng_measure::runfile::{self, RunFile};
use throng_measure::{LoadInterval, MachineInterval, Operation, RunEventKind};

/// A run as far as it is recorded.
pub(crate) struct Recorded {
    pub(crate) file: RunFile,
}

impl Recorded {
    /// Reads a run file; `None` if it has no interval yet.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let file = runfile::read(&mut BufReader::new(File::open(path).ok()?)).ok()?;
        (!file.intervals.is_empty()).then_some(Self { file })
    }

    /// Returns the load of all intervals.
    pub(crate) fn loads(&self) -> impl Iterator<Item = &LoadInterval> {
        self.file.intervals.iter().filter_map(|interval| interval.load.as_ref())
    }

    /// Returns the last interval's load.
    pub(crate) fn last(&self) -> &LoadInterval {
        self.loads().last().expect("an interval")
    }

    /// Returns a machine's part of the last interval.
    pub(crate) fn machine(&self, name: &str) -> &MachineInterval {
        let machine = self.last().machines.iter().find(|machine| machine.name == name);
        machine.unwrap_or_else(|| panic!("{name} is not among {:?}", self.last().machines))
    }

    /// Returns all events.
    pub(crate) fn events(&self) -> impl Iterator<Item = &RunEventKind> {
        self.file.intervals.iter().flat_map(|interval| &interval.events).map(|event| &event.kind)
    }

    /// Reports whether an agent was lost so far.
    pub(crate) fn has_lost(&self, name: &str) -> bool {
        self.events().any(|event| match event {
            RunEventKind::AgentLost { agent, .. } => agent == name,
            _ => false,
        })
    }

    /// Reports whether a lost agent was back so far.
    pub(crate) fn has_back(&self, name: &str) -> bool {
        self.events().any(|event| match event {
            RunEventKind::AgentBack { agent } => agent == name,
            _ => false,
        })
    }

    /// Asserts that everything is counted once: sums are those of the machines, totals never go
    /// back, and there is a latency for each connect and each answer.
    #[track_caller]
    pub(crate) fn check_sums(&self) {
        let LoadInterval { counters, machines, .. } = self.last();
        if !machines.is_empty() {
            let sum = |of: fn(&MachineInterval) -> u64| machines.iter().map(of).sum::<u64>();
            assert_eq!(sum(|it| it.users_started), counters.users_started, "users");
            assert_eq!(sum(|it| it.connects_ok), counters.connects_ok, "connects");
            assert_eq!(sum(|it| it.messages_sent), counters.messages_sent, "messages");
            assert_eq!(sum(|it| it.answered), counters.messages_answered, "answers");
        }
        let connects: u64 = self.loads().map(|load| load.times[Operation::Connect].count()).sum();
        assert_eq!(connects, counters.connects_ok, "latencies of connects");
        let answers: u64 = self.loads().map(|load| load.times[Operation::Message].count()).sum();
        assert_eq!(answers, counters.messages_answered, "latencies of messages");
        assert!(self.loads().map(|load| load.counters.connects_ok).is_sorted());
        assert!(self.loads().map(|load| load.counters.messages_answered).is_sorted());
        assert!(self.loads().map(|load| load.counters.users_started).is_sorted());
    }

    /// Asserts that a machine has done what its part of the plan says: so many users, each with so
    /// many answers, and nothing failed.
    #[track_caller]
    pub(crate) fn check_machine(&self, name: &str, users: u64, answers_each: u64) {
        let machine = self.machine(name);
        assert!(!machine.lost, "{machine:?}");
        assert_eq!(machine.users_started, users, "{machine:?}");
        assert_eq!((machine.connects_ok, machine.connects_failed), (users, 0), "{machine:?}");
        assert_eq!(machine.answered, users * answers_each, "{machine:?}");
        assert_eq!(machine.errors, 0, "{:?}", self.last().errors);
        assert_eq!((machine.users_active, machine.connected), (0, 0), "{machine:?}");
    }
}
