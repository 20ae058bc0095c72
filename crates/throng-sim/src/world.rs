//! The world that all drivers of a simulation share: its clock, what is going to happen, its sockets.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use throng_base::{Instant, Key, Prng, Slab};

use crate::Faults;
use crate::faults::{happens, random_span};
use crate::ports::Ports;
use crate::readiness::DriverSlot;
use crate::socket::{Listeners, Socket};
use crate::trace::{Note, Trace};

/// A handle on the world.
pub(crate) type World = Rc<RefCell<State>>;

pub(crate) struct State {
    pub(crate) now: Instant,
    pub(crate) prng: Prng,
    pub(crate) faults: Faults,
    pub(crate) trace: Trace,
    /// What is going to happen, by the moment and a random tie-break whose low half is unique.
    agenda: BTreeMap<(Instant, u64), Action>,
    scheduled: u32,
    pub(crate) sockets: Slab<Socket>,
    pub(crate) listeners: Listeners,
    pub(crate) ports: Ports,
    /// One for each driver.
    pub(crate) slots: Vec<DriverSlot>,
    pub(crate) tables: Vec<Table>,
    /// fds that are open in all tables, those on their way between cores included.
    pub(crate) files: usize,
    /// Sockets that were dropped instead of closed.
    pub(crate) dropped: u64,
}

/// A file descriptor table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) open: usize,
    pub(crate) max: usize,
}

/// Something that is going to happen.
#[derive(Debug)]
pub(crate) enum Action {
    /// A SYN reaches its target, the how-many-eth of its connect.
    Syn { client: Key, attempt: u32 },
    /// The answer to a SYN reaches who sent it.
    SynAnswered { client: Key },
    /// A connect fails.
    SynFailed { client: Key, errno: throng_driver::Errno },
    /// Bytes arrive.
    Segment { from: Key, to: Key, bytes: Vec<u8> },
    /// The end of a stream arrives.
    Fin { from: Key, to: Key },
    /// A reset arrives.
    Reset { to: Key },
    /// The network ends a connection, for both ends.
    Cut { socket: Key },
    /// A send buffer that was said to be full has room again.
    Space { socket: Key },
    /// A core is woken, perhaps for mail.
    Wake { slot: usize },
    /// A socket reaches the core to which it was passed.
    Passed { slot: usize, socket: Key },
    /// A reference to a listener reaches another core.
    Shared { slot: usize, listener: Key },
}

impl State {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            now: START,
            prng: Prng::derive(seed, 0),
            faults: Faults::none(),
            trace: Trace::new(),
            agenda: BTreeMap::new(),
            scheduled: 0,
            sockets: Slab::new(),
            listeners: Listeners::default(),
            ports: Ports::default(),
            slots: Vec::new(),
            tables: Vec::new(),
            files: 0,
            dropped: 0,
        }
    }

    pub(crate) fn schedule(&mut self, at: Instant, action: Action) {
        self.scheduled = self.scheduled.wrapping_add(1);
        let tie = self.prng.bits() << 32 | u64::from(self.scheduled);
        self.agenda.insert((at, tie), action);
    }

    pub(crate) fn next_action(&self) -> Instant {
        self.agenda.first_key_value().map_or(Instant::FAR, |((at, _), _)| *at)
    }

    /// Moves the clock on and does what has come due.
    pub(crate) fn advance(&mut self, to: Instant) {
        debug_assert!(to >= self.now, "time runs one way");
        while self.next_action() <= to {
            let Some(((at, _), action)) = self.agenda.pop_first() else { break };
            self.now = self.now.max(at);
            self.act(action);
        }
        self.now = self.now.max(to);
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Syn { client, attempt } => self.syn_arrived(client, attempt),
            Action::SynAnswered { client } => self.syn_answered(client),
            Action::SynFailed { client, errno } => self.connect_failed(client, errno),
            Action::Segment { from, to, bytes } => self.segment_arrived(from, to, &bytes),
            Action::Fin { from, to } => self.fin_arrived(from, to),
            Action::Reset { to } => self.reset_arrived(to),
            Action::Cut { socket } => self.cut(socket),
            Action::Space { socket } => self.notify_space(socket),
            Action::Wake { slot } => self.slots[slot].woken = true,
            Action::Passed { slot, socket } => self.slots[slot].passed.push_back(socket),
            Action::Shared { slot, listener } => self.slots[slot].shared.push_back(listener),
        }
    }

    pub(crate) fn note(&mut self, note: Note) {
        self.trace.add(self.now, note);
    }

    pub(crate) fn happens(&mut self, chance: f64) -> bool {
        happens(&mut self.prng, chance)
    }

    /// How long something takes from one end to the other.
    pub(crate) fn delay(&mut self) -> Duration {
        random_span(&mut self.prng, self.faults.delay_min, self.faults.delay_max)
    }

    /// When something that one core does now reaches another.
    pub(crate) fn message_arrival(&mut self) -> Instant {
        self.now + random_span(&mut self.prng, Duration::ZERO, self.faults.message_delay_max)
    }
}

/// Not the origin, so that a moment some time ago exists.
const START: Instant = Instant::from_nanos(1_000_000_000_000);
