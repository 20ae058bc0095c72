//! The world that all drivers of a simulation share: its clock, its scheduled actions, its sockets.

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

/// Handle to the world.
pub(crate) type World = Rc<RefCell<State>>;

/// State of the world.
pub(crate) struct State {
    pub(crate) now: Instant,
    pub(crate) prng: Prng,
    pub(crate) faults: Faults,
    pub(crate) trace: Trace,
    /// Scheduled actions, by their time and a random tie-break whose low half is unique.
    actions: BTreeMap<(Instant, u64), Action>,
    scheduled: u32,
    pub(crate) sockets: Slab<Socket>,
    pub(crate) listeners: Listeners,
    pub(crate) ports: Ports,
    /// One slot for each driver.
    pub(crate) slots: Vec<DriverSlot>,
    pub(crate) tables: Vec<Table>,
    /// Number of open fds in all tables, those in transit between cores included.
    pub(crate) files: usize,
    /// Number of sockets that were dropped instead of closed.
    pub(crate) dropped: u64,
}

/// Fd table: the number of open fds, and its limit.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) open: usize,
    pub(crate) max: usize,
}

/// Scheduled action.
#[derive(Debug)]
pub(crate) enum Action {
    /// A SYN reaches its target; `attempt` counts the SYNs of the connect from 0.
    Syn { client: Key, attempt: u32 },
    /// The answer to a SYN reaches the client.
    SynAnswered { client: Key },
    /// A connect fails.
    SynFailed { client: Key, errno: throng_driver::Errno },
    /// Bytes arrive.
    Segment { from: Key, to: Key, bytes: Vec<u8> },
    /// A FIN arrives.
    Fin { from: Key, to: Key },
    /// A reset arrives.
    Reset { to: Key },
    /// The network cuts a connection, for both peers.
    Cut { socket: Key },
    /// A send buffer that was reported full has room again.
    Space { socket: Key },
    /// A core is woken; a message may wait.
    Wake { slot: usize },
    /// A passed socket reaches its core.
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
            actions: BTreeMap::new(),
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
        self.actions.insert((at, tie), action);
    }

    pub(crate) fn next_action(&self) -> Instant {
        self.actions.first_key_value().map_or(Instant::FAR, |((at, _), _)| *at)
    }

    /// Moves the clock to `to`, and runs the actions that are due.
    pub(crate) fn advance(&mut self, to: Instant) {
        debug_assert!(to >= self.now, "the clock moves backwards");
        while self.next_action() <= to {
            let Some(((at, _), action)) = self.actions.pop_first() else { break };
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

    /// Returns a random delay of one direction of the network.
    pub(crate) fn delay(&mut self) -> Duration {
        random_span(&mut self.prng, self.faults.delay_min, self.faults.delay_max)
    }

    /// Returns when a message that a core sends now reaches another core.
    pub(crate) fn message_arrival(&mut self) -> Instant {
        self.now + random_span(&mut self.prng, Duration::ZERO, self.faults.message_delay_max)
    }
}

/// Time at which a world starts. It is not the origin, so that earlier moments exist.
const START: Instant = Instant::from_nanos(1_000_000_000_000);
