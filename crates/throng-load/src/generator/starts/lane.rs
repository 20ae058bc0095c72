//! A lane: when the users of one load start on a core, and in the closed model when they stop.

use std::iter::Peekable;
use std::time::Duration;

use throng_base::Prng;

use crate::scenario::{Model, Phase, ScenarioLoad};
use crate::schedule::{Arrivals, ClosedSchedule, ScheduleEvent, UserChange};

/// One core's share of the schedule of all users, or of those of a class. It counts its users by
/// itself.
pub(super) struct Lane {
    schedule: LaneSchedule,
    core: u64,
    cores: u64,
}

enum LaneSchedule {
    Closed {
        scheduled: Events,
        /// The same events once more, to count the users that should have started.
        counted: Events,
        starts_counted: u64,
        /// Table indexes of this core's users, by user number; kept only if the schedule stops
        /// users.
        indexes: Option<Vec<u32>>,
    },
    Open {
        arrivals: Box<Arrivals>,
        count: u64,
    },
}

type Events = Peekable<Box<dyn Iterator<Item = ScheduleEvent>>>;

/// An event of a lane, with the user's number in it.
pub(super) enum LaneEvent {
    Start(u64),
    /// With the user's index in the core's table; [`u32::MAX`] if it has none.
    Stop(u64, u32),
}

impl Lane {
    /// Returns the lanes of `load` on core `core` of `cores`.
    pub(super) fn all(load: &ScenarioLoad, core: usize, cores: usize, seed: u64) -> Vec<Self> {
        let end = load.length();
        let lane = |(at, phases): (u64, &[Phase])| {
            let seed = match load {
                ScenarioLoad::Shared(_) => seed,
                // Arrivals of two classes with the same rate are not the same.
                ScenarioLoad::ByClass(_) => Prng::derive(seed, LANE_SEEDS + at).bits(),
            };
            Self::new(phases, end, (core, cores), seed)
        };
        (0..).zip(load.lanes()).map(lane).collect()
    }

    /// Creates a lane of these phases, whose run ends at `end`.
    fn new(phases: &[Phase], end: Duration, (core, cores): (usize, usize), seed: u64) -> Self {
        let schedule = match Model::of(phases) {
            Model::Closed => {
                let schedule = ClosedSchedule::new(phases).ending_before(end);
                let events = || {
                    let events: Box<dyn Iterator<Item = ScheduleEvent>> =
                        Box::new(schedule.events(core, cores));
                    events.peekable()
                };
                let indexes = schedule.has_stops().then(Vec::new);
                let (scheduled, counted) = (events(), events());
                LaneSchedule::Closed { scheduled, counted, starts_counted: 0, indexes }
            }
            Model::Open => {
                let arrivals = Box::new(Arrivals::new(phases, core, cores, seed));
                LaneSchedule::Open { arrivals, count: 0 }
            }
        };
        Self { schedule, core: core as u64, cores: cores as u64 }
    }

    /// Returns the moment of the next event, from the start of the run.
    pub(super) fn upcoming(&mut self) -> Option<Duration> {
        match &mut self.schedule {
            LaneSchedule::Closed { scheduled, .. } => scheduled.peek().map(|event| event.at),
            LaneSchedule::Open { arrivals, .. } => arrivals.peek(),
        }
    }

    /// Takes the next event.
    pub(super) fn pop(&mut self) -> Option<LaneEvent> {
        match &mut self.schedule {
            LaneSchedule::Closed { scheduled, indexes, .. } => {
                let ScheduleEvent { user, change, .. } = scheduled.next()?;
                Some(match change {
                    UserChange::Start => LaneEvent::Start(user),
                    UserChange::Stop => {
                        let own = (user / self.cores) as usize;
                        let known = indexes.as_ref().and_then(|indexes| indexes.get(own));
                        LaneEvent::Stop(user, known.copied().unwrap_or(u32::MAX))
                    }
                })
            }
            LaneSchedule::Open { arrivals, count } => {
                arrivals.next()?;
                let user = self.core + *count * self.cores;
                *count += 1;
                Some(LaneEvent::Start(user))
            }
        }
    }

    /// Remembers the table index of a user, so that the schedule can stop it.
    pub(super) fn started(&mut self, user: u64, index: u32) {
        if let LaneSchedule::Closed { indexes: Some(indexes), .. } = &mut self.schedule {
            let own = (user / self.cores) as usize;
            if own >= indexes.len() {
                indexes.resize(own + 1, u32::MAX);
            }
            indexes[own] = index;
        }
    }

    /// Returns the number of users that should have started after `passed`.
    pub(super) fn intended_by(&mut self, passed: Duration) -> u64 {
        match &mut self.schedule {
            LaneSchedule::Closed { counted, starts_counted, .. } => {
                while let Some(event) = counted.next_if(|event| event.at <= passed) {
                    *starts_counted += u64::from(event.change == UserChange::Start);
                }
                *starts_counted
            }
            LaneSchedule::Open { arrivals, .. } => arrivals.intended_by(passed),
        }
    }
}

/// First index of the seeds of classes, above the number of every core and user.
const LANE_SEEDS: u64 = 1 << 48;
