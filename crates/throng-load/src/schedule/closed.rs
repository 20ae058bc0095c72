//! The closed model: a number of users that follows a line of ramps and holds.
//!
//! User `k` runs while the line is above `k`. In a ramp up from `a` to `b`, user `k` starts after
//! `(k - a) / (b - a)` of it: the first at once, the last one step before the end. If the ramp is
//! exponential, it starts after `ln((k + 1) / (a + 1)) / ln((b + 1) / (a + 1))` of it. In a ramp
//! down the newest stops first, the last at the very end. A later ramp up starts with the lowest
//! number that does not run.

use std::time::Duration;

use crate::scenario::{Curve, Phase};

/// The schedule of the closed model: a line of segments.
#[derive(Clone, Debug)]
pub struct ClosedSchedule {
    segments: Vec<LineSegment>,
}

/// A start or stop of one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleEvent {
    /// Moment from the start of the run.
    pub at: Duration,
    /// Number of the user over all cores.
    pub user: u64,
    /// Type of the event.
    pub change: UserChange,
}

/// Type of a schedule event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserChange {
    /// The user starts, and begins another iteration whenever one ends.
    Start,
    /// The user is stopped at its present step.
    Stop,
}

/// A segment of the line.
#[derive(Clone, Copy, Debug)]
struct LineSegment {
    begin: Duration,
    length: Duration,
    from: u32,
    to: u32,
    curve: Curve,
}

impl ClosedSchedule {
    /// Creates the line of the phases, beginning with no users. Phases of the open model do not
    /// change it.
    pub fn new(phases: &[Phase]) -> Self {
        let mut schedule = Self { segments: Vec::new() };
        for phase in phases {
            match *phase {
                Phase::Ramp { to, over, curve } => schedule.push(over, to, curve),
                Phase::Step { to, span } => {
                    schedule.push(Duration::ZERO, to, Curve::Linear);
                    schedule.push(span, to, Curve::Linear);
                }
                Phase::Spike { to, back, over, span } => {
                    schedule.push(over, to, Curve::Linear);
                    schedule.push(span, to, Curve::Linear);
                    schedule.push(over, back, Curve::Linear);
                }
                Phase::Hold { .. } | Phase::Arrivals { .. } | Phase::Recorded { .. } => {
                    let users = schedule.users_at_end();
                    schedule.push(phase.length(), users, Curve::Linear);
                }
            }
        }
        schedule
    }

    /// Ends the line at `end`, before which all its users stop. A longer one stays as it is.
    #[must_use]
    pub fn ending_before(mut self, end: Duration) -> Self {
        if self.length() < end {
            self.push(Duration::ZERO, 0, Curve::Linear);
        }
        self
    }

    fn push(&mut self, length: Duration, to: u32, curve: Curve) {
        let (begin, from) = (self.length(), self.users_at_end());
        self.segments.push(LineSegment { begin, length, from, to, curve });
    }

    fn users_at_end(&self) -> u32 {
        self.segments.last().map_or(0, |line| line.to)
    }

    /// Returns the height of the line at `t`; after the end, its last height.
    pub fn target_at(&self, t: Duration) -> f64 {
        let begun = self.segments.partition_point(|line| line.begin <= t);
        let Some(line) = self.segments[..begun].last() else { return 0.0 };
        let passed = (t - line.begin).as_secs_f64() / line.length.as_secs_f64();
        // A segment without a length is over when it begins.
        line.height_at(passed.min(1.0))
    }

    /// Returns the number of users at `t`; none once all phases are over.
    pub fn users_at(&self, t: Duration) -> u64 {
        let height = if t < self.length() { self.target_at(t) } else { 0.0 };
        // Rounding errors are no user.
        (height - 1e-6).ceil().max(0.0) as u64
    }

    /// Returns the moments at which the line bends or jumps, and that of its end.
    pub fn bends(&self) -> impl Iterator<Item = Duration> {
        self.segments.iter().map(|line| line.begin).chain([self.length()])
    }

    /// Returns the moments at which user `k` starts and stops, alternating and beginning with a
    /// start. A user that still runs at the end has no last stop.
    pub fn moments_of(&self, k: u32) -> impl Iterator<Item = Duration> {
        self.segments.iter().filter(move |line| line.crosses(k)).map(move |line| line.moment_of(k))
    }

    /// Returns the length of all phases.
    pub fn length(&self) -> Duration {
        self.segments.last().map_or(Duration::ZERO, |line| line.begin.saturating_add(line.length))
    }

    /// Returns the highest point of the line.
    pub fn peak_users(&self) -> u32 {
        self.segments.iter().map(|line| line.to).max().unwrap_or(0)
    }

    /// Reports whether the number of users ever goes down.
    pub fn has_stops(&self) -> bool {
        self.segments.iter().any(|line| line.to < line.from)
    }

    /// Returns the maximum number of users that start per second.
    pub fn peak_rate(&self) -> f64 {
        self.segments.iter().map(LineSegment::starts_per_s_max).fold(0.0, f64::max)
    }

    /// Returns the events of core `core` of `cores`, in order of time.
    ///
    /// # Panics
    /// When there is no such core.
    pub fn events(&self, core: usize, cores: usize) -> impl Iterator<Item = ScheduleEvent> + use<> {
        assert!(core < cores, "core {core} of {cores}");
        let (core, cores) = (core as u64, cores as u64);
        self.segments.clone().into_iter().flat_map(move |line| line.events(core, cores))
    }
}

impl LineSegment {
    fn crosses(&self, k: u32) -> bool {
        (self.from.min(self.to)..self.from.max(self.to)).contains(&k)
    }

    /// Returns the moment at which the line crosses `k`.
    fn moment_of(&self, k: u32) -> Duration {
        let nanos = match self.curve {
            Curve::Linear => {
                let (passed, whole) = if self.to > self.from {
                    (k - self.from, self.to - self.from)
                } else {
                    (self.from - k, self.from - self.to)
                };
                // Integers: the last user of a ramp is not a rounding error away from its moment.
                self.length.as_nanos() * u128::from(passed) / u128::from(whole)
            }
            Curve::Exponential => {
                let (low, high) = (f64::from(self.from) + 1.0, f64::from(self.to) + 1.0);
                let share = ((f64::from(k) + 1.0) / low).ln() / (high / low).ln();
                let nanos = self.length.as_nanos();
                // The cast saturates.
                ((nanos as f64 * share).round() as u128).min(nanos)
            }
        };
        self.begin.saturating_add(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// Returns the height after the share `passed` of the segment.
    fn height_at(&self, passed: f64) -> f64 {
        let (from, to) = (f64::from(self.from), f64::from(self.to));
        match self.curve {
            Curve::Linear => from + (to - from) * passed,
            Curve::Exponential => (from + 1.0) * ((to + 1.0) / (from + 1.0)).powf(passed) - 1.0,
        }
    }

    /// Returns the maximum number of users that start in a second. All users of a jump do.
    fn starts_per_s_max(&self) -> f64 {
        let up = f64::from(self.to.saturating_sub(self.from));
        let seconds = self.length.as_secs_f64();
        if up == 0.0 || seconds == 0.0 {
            return up;
        }
        match self.curve {
            Curve::Linear => up / seconds,
            Curve::Exponential => {
                let (from, to) = (f64::from(self.from) + 1.0, f64::from(self.to) + 1.0);
                to * (to / from).ln() / seconds
            }
        }
    }

    fn events(self, core: u64, cores: u64) -> impl Iterator<Item = ScheduleEvent> {
        let (low, high) = (u64::from(self.from.min(self.to)), u64::from(self.from.max(self.to)));
        let up = self.to > self.from;
        let first = low + (core + cores - low % cores) % cores;
        let count = high.saturating_sub(first).div_ceil(cores);
        (0..count).map(move |index| {
            let offset = if up { index } else { count - 1 - index };
            let user = first + offset * cores;
            let change = if up { UserChange::Start } else { UserChange::Stop };
            ScheduleEvent { at: self.moment_of(user as u32), user, change }
        })
    }
}
