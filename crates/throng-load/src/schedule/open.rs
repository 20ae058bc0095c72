//! The open model: arrivals by the clock, one core's share of them.

use std::sync::Arc;
use std::time::Duration;

use throng_base::Prng;

use super::OpenPhase;
use super::curve::duration;
use crate::scenario::{Phase, Spacing};

/// The arrivals of one core, in order of time, computed on demand.
///
/// With even spacing, arrival `k` over all cores has an exact moment, and core `i` of `n` takes
/// every `n`-th. With Poisson spacing, each core draws its own arrivals at a rate of one `n`-th, by
/// stretching unit-rate gaps to the present rate; a sum of independent Poisson processes is one
/// again. In both cases arrival `j` of core `i` is user `i + j n`.
#[derive(Clone, Debug)]
pub struct Arrivals {
    next: Cursor,
    /// The same arrivals once more, to count those that are due.
    counted: Cursor,
    counted_arrivals: u64,
}

#[derive(Clone, Debug)]
struct Cursor {
    phases: Arc<[CoreShare]>,
    phase: usize,
    /// Arrivals of this core in this phase so far.
    taken: u64,
    /// Poisson: integral of this core's rate up to its last arrival in this phase.
    expected_count: f64,
    prng: Prng,
    /// The next arrival, computed but not yet taken.
    peeked: Option<Duration>,
}

/// One core's share of a phase.
#[derive(Clone, Copy, Debug)]
struct CoreShare {
    begin: Duration,
    open: OpenPhase,
    spacing: Spacing,
    /// Even spacing: index of this core's first arrival in the phase.
    first: u64,
    /// Maximum number of arrivals of this core in this phase.
    most: u64,
    cores: u64,
}

impl Arrivals {
    /// Creates the arrivals of core `core` of `cores`. Phases of the closed model have none. The
    /// same seed gives the same arrivals; each core draws its own numbers from it.
    ///
    /// # Panics
    /// When there is no such core.
    pub fn new(phases: &[Phase], core: usize, cores: usize, seed: u64) -> Self {
        assert!(core < cores, "core {core} of {cores}");
        let (core, cores) = (core as u64, cores as u64);
        let mut begin = Duration::ZERO;
        // Arrivals of earlier phases over all cores, where the count continues.
        let mut before = 0;
        let mut shares = Vec::new();
        for phase in phases {
            if let (Phase::Arrivals { spacing, .. }, Some(open)) = (phase, OpenPhase::of(phase)) {
                let first = (core + cores - before % cores) % cores;
                let of_all = if *spacing == Spacing::Even { open.count() } else { open.most };
                let most = if of_all == u64::MAX {
                    of_all
                } else {
                    of_all.saturating_sub(first).div_ceil(cores)
                };
                shares.push(CoreShare { begin, open, spacing: *spacing, first, most, cores });
                before += if of_all == u64::MAX { 0 } else { of_all };
            }
            begin = begin.saturating_add(phase.length());
        }
        let cursor = Cursor {
            phases: shares.into(),
            phase: 0,
            taken: 0,
            expected_count: 0.0,
            prng: Prng::derive(seed, core),
            peeked: None,
        };
        Self { next: cursor.clone(), counted: cursor, counted_arrivals: 0 }
    }

    /// Returns the moment of this core's next arrival, without taking it.
    pub fn peek(&mut self) -> Option<Duration> {
        self.next.peek()
    }

    /// Returns the number of arrivals that are due by `t` on this core: those that the iterator
    /// yields with a moment of at most `t`. An earlier `t` than the last one does not lower the
    /// count.
    pub fn intended_by(&mut self, t: Duration) -> u64 {
        while self.counted.peek().is_some_and(|at| at <= t) {
            self.counted.peeked = None;
            self.counted_arrivals += 1;
        }
        self.counted_arrivals
    }
}

impl Iterator for Arrivals {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let at = self.next.peek();
        self.next.peeked = None;
        at
    }
}

impl Cursor {
    fn peek(&mut self) -> Option<Duration> {
        if self.peeked.is_none() {
            self.peeked = self.find_next();
        }
        self.peeked
    }

    fn find_next(&mut self) -> Option<Duration> {
        loop {
            let share = *self.phases.get(self.phase)?;
            if let Some(seconds) = self.find_in(&share) {
                self.taken += 1;
                return Some(share.begin.saturating_add(duration(seconds)));
            }
            self.phase += 1;
            self.taken = 0;
            self.expected_count = 0.0;
        }
    }

    /// Returns this core's next arrival in the phase, in seconds from its beginning.
    fn find_in(&mut self, share: &CoreShare) -> Option<f64> {
        if self.taken >= share.most {
            return None;
        }
        let seconds = match share.spacing {
            Spacing::Even => {
                let index = share.first + self.taken * share.cores;
                share.open.curve.moment_of(index as f64)
            }
            Spacing::Poisson => {
                self.expected_count += self.prng.exponential();
                share.open.curve.moment_of(self.expected_count * share.cores as f64)
            }
        };
        // An even arrival has been counted into the phase; a random one may fall behind its end.
        (share.spacing == Spacing::Even || seconds < share.open.seconds).then_some(seconds)
    }
}
