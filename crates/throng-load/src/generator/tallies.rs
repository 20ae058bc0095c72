//! What one core counts of the target's addresses and of the scenario's limits and cues.

use serde::{Deserialize, Serialize};
use throng_base::Instant;

use crate::user::{ConnectFailure, Record};

/// Connects to one address of the target.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AddressTally {
    /// Connects that succeeded.
    pub ok: u64,
    /// Failed connects by reason.
    pub failed: Vec<(ConnectFailure, u64)>,
}

impl AddressTally {
    pub(super) fn add(&mut self, other: &Self) {
        self.ok += other.ok;
        add_counts(&mut self.failed, &other.failed);
    }

    /// Counts what a record says about a connect to this address.
    pub(super) fn note(&mut self, record: &Record<'_>) {
        match record {
            Record::Connected { .. } | Record::RequestConnected { .. } => self.ok += 1,
            Record::ConnectFailed { why, .. } => add_count(&mut self.failed, *why, 1),
            _ => {}
        }
    }
}

/// What one core counts of one of the scenario's own limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitTally {
    /// Steps that the limit counted.
    pub steps: u64,
    /// Steps that it held back.
    pub held: u64,
    /// Time until the turns of these, in microseconds.
    pub held_us: u64,
}

impl LimitTally {
    pub(super) fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.held += other.held;
        self.held_us += other.held_us;
    }

    /// Counts a step that comes now and gets this turn.
    pub(super) fn count(&mut self, turn: Instant, now: Instant) {
        self.steps += 1;
        if turn > now {
            self.held += 1;
            self.held_us += turn.micros_since(now);
        }
    }
}

/// What one core counts of one barrier or signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CueTally {
    /// Times that a user of the core opened it.
    pub opened: u64,
    /// Waits that began.
    pub waits: u64,
    /// Gauge: users that wait. Those that still wait when the run ends are counted from then on.
    pub waiting: u64,
    /// The most users that waited at a barrier at once, on all cores, when one of this core came.
    pub waiting_most: u64,
    /// The longest wait that has ended or was cut off, in microseconds.
    pub wait_us_most: u64,
}

impl CueTally {
    /// Adds the tally of another core.
    pub fn add(&mut self, other: &Self) {
        self.opened += other.opened;
        self.waits += other.waits;
        self.waiting += other.waiting;
        self.waiting_most = self.waiting_most.max(other.waiting_most);
        self.wait_us_most = self.wait_us_most.max(other.wait_us_most);
    }

    /// Begins a wait. So many users wait at the barrier now; 0 for a signal.
    pub(super) fn begin(&mut self, waiting: u32) {
        self.waits += 1;
        self.waiting += 1;
        self.waiting_most = self.waiting_most.max(waiting.into());
    }

    /// Ends a wait that took so long.
    pub(super) fn end(&mut self, waited_us: u64) {
        self.waiting -= 1;
        self.cut(waited_us);
    }

    /// Notes a wait of which the end of the run cut off what was left.
    pub(super) fn cut(&mut self, waited_us: u64) {
        self.wait_us_most = self.wait_us_most.max(waited_us);
    }
}

/// Adds to the count of a kind.
pub(super) fn add_count<T: PartialEq>(counts: &mut Vec<(T, u64)>, kind: T, n: u64) {
    match counts.iter_mut().find(|(known, _)| *known == kind) {
        Some((_, count)) => *count += n,
        None => counts.push((kind, n)),
    }
}

/// Adds the counts of each kind.
pub(super) fn add_counts<T: PartialEq + Copy>(sums: &mut Vec<(T, u64)>, counts: &[(T, u64)]) {
    counts.iter().for_each(|(kind, n)| add_count(sums, *kind, *n));
}
