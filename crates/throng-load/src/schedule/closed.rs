//! The closed model: a number of users that follows a line of ramps and holds.
//!
//! User `k` runs while the line is above `k`. In a ramp up from `a` to `b`, user `k` starts after
//! `(k - a) / (b - a)` of it: the first at once, the last one step before the end. In a ramp down
//! the newest stops first, the last at the very end. A later ramp up starts with the lowest number
//! that does not run.

use std::time::Duration;

use crate::scenario::Phase;

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

/// A straight segment of the line.
#[derive(Clone, Copy, Debug)]
struct LineSegment {
    begin: Duration,
    length: Duration,
    from: u32,
    to: u32,
}

impl ClosedSchedule {
    /// Creates the line of the phases, beginning with no users. Phases of the open model do not
    /// change it.
    pub fn new(phases: &[Phase]) -> Self {
        let mut begin = Duration::ZERO;
        let mut users = 0;
        let mut lines = Vec::new();
        for phase in phases {
            let to = if let Phase::Ramp { to, .. } = phase { *to } else { users };
            lines.push(LineSegment { begin, length: phase.length(), from: users, to });
            begin = begin.saturating_add(phase.length());
            users = to;
        }
        Self { segments: lines }
    }

    /// Returns the height of the line at `t`; after the end, its last height.
    pub fn target_at(&self, t: Duration) -> f64 {
        let Some(line) = self.segments.iter().rev().find(|line| line.begin <= t) else {
            return 0.0;
        };
        let (from, to) = (f64::from(line.from), f64::from(line.to));
        let passed = (t - line.begin).as_secs_f64() / line.length.as_secs_f64();
        from + (to - from) * passed.min(1.0)
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
        let (passed, whole) = if self.to > self.from {
            (k - self.from, self.to - self.from)
        } else {
            (self.from - k, self.from - self.to)
        };
        // Integers: the last user of a ramp is not a rounding error away from its moment.
        let nanos = self.length.as_nanos() * u128::from(passed) / u128::from(whole);
        self.begin.saturating_add(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
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
