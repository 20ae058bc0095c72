//! The open model: arrivals by the clock, one core's share of them.

use std::sync::Arc;
use std::time::Duration;

use throng_base::Prng;

use super::OpenPhase;
use super::curve::duration;
use crate::scenario::{Phase, Spacing};

/// The arrivals of one core, in order of time, computed on demand.
///
/// With even spacing, and where a file has the moments, arrival `k` over all cores has an exact
/// moment, and core `i` of `n` takes every `n`-th. With Poisson spacing, each core draws its own
/// arrivals at a rate of one `n`-th, by stretching unit-rate gaps to the present rate; a sum of
/// independent Poisson processes is one again. In all cases arrival `j` of core `i` is user
/// `i + j n`.
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
#[derive(Clone, Debug)]
struct CoreShare {
    begin: Duration,
    open: OpenPhase,
    /// True if each arrival draws its gap.
    is_random: bool,
    /// Not random: index of this core's first arrival in the phase.
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
            if let Some(open) = OpenPhase::of(phase) {
                let is_random = matches!(phase, Phase::Arrivals { spacing: Spacing::Poisson, .. });
                let first = (core + cores - before % cores) % cores;
                // How many random arrivals there are is only known if the scenario says so.
                let of_all = match &open {
                    OpenPhase::Curve { most, .. } if is_random => Some(*most),
                    open => Some(open.count()),
                };
                let of_all = of_all.filter(|count| *count != u64::MAX);
                let most = of_all.map_or(u64::MAX, |all| all.saturating_sub(first).div_ceil(cores));
                shares.push(CoreShare { begin, open, is_random, first, most, cores });
                before += of_all.unwrap_or(0);
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
            let begin = self.phases.get(self.phase)?.begin;
            if let Some(offset) = self.find_in_phase() {
                self.taken += 1;
                return Some(begin.saturating_add(offset));
            }
            self.phase += 1;
            self.taken = 0;
            self.expected_count = 0.0;
        }
    }

    /// Returns this core's next arrival in the present phase, from its beginning.
    fn find_in_phase(&mut self) -> Option<Duration> {
        let share = self.phases.get(self.phase)?;
        if self.taken >= share.most {
            return None;
        }
        let index = share.first + self.taken * share.cores;
        match &share.open {
            OpenPhase::Recorded { moments_ns } => {
                moments_ns.get(index as usize).map(|nanos| Duration::from_nanos(*nanos))
            }
            // An even arrival has been counted into the phase.
            OpenPhase::Curve { curve, .. } if !share.is_random => {
                Some(duration(curve.moment_of(index as f64)))
            }
            OpenPhase::Curve { curve, seconds, .. } => {
                self.expected_count += self.prng.exponential();
                let moment = curve.moment_of(self.expected_count * share.cores as f64);
                // A random one may fall behind its end.
                (moment < *seconds).then(|| duration(moment))
            }
        }
    }
}
