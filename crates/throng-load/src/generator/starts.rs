//! When one core's users begin, and in the closed model when they end.

use std::iter::Peekable;
use std::time::Duration;

use throng_base::Instant;

use super::GeneratorConfig;
use crate::scenario::{Model, Phase};
use crate::schedule::{self, Arrivals, ClosedSchedule, ScheduleEvent, UserChange};

/// One core's share of the schedule, and the users that somebody asked for by hand.
pub(super) struct Starts {
    plan: Plan,
    /// The start of the run, moved on by the time that it was paused.
    start_at: Instant,
    paused_since: Option<Instant>,
    phases: Vec<Phase>,
    core: u64,
    cores: u64,
    by_hand: ByHand,
    /// The next planned moment, from the start of the run.
    upcoming: Option<Duration>,
    /// When the schedule was cut short or had come to its end; nobody is due after that.
    ended_at: Option<Instant>,
}

/// What is to be done now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    Start { id: u64, due: Instant },
    Stop { id: u64, index: u32 },
}

enum Plan {
    Closed {
        next: Peekable<Box<dyn Iterator<Item = ScheduleEvent>>>,
        /// The same events once more, for counting the users that should have begun.
        due: Peekable<Box<dyn Iterator<Item = ScheduleEvent>>>,
        due_count: u64,
        /// Where the users of this core live, by their number; kept if the schedule stops any of them.
        places: Option<Vec<u32>>,
    },
    Open {
        arrivals: Box<Arrivals>,
        count: u64,
    },
}

/// Users that somebody asked for over the control socket: one a millisecond over all cores.
#[derive(Default)]
struct ByHand {
    asked: u64,
    started: u64,
    next: Instant,
}

impl Starts {
    pub(super) fn new(config: &GeneratorConfig, core: usize, cores: usize) -> Self {
        let phases = config.phases.clone();
        let plan = match Model::of(&phases) {
            Model::Closed => {
                let schedule = ClosedSchedule::new(&phases);
                let events = || {
                    let events: Box<dyn Iterator<Item = ScheduleEvent>> =
                        Box::new(schedule.events(core, cores));
                    events.peekable()
                };
                let places = has_stops(&phases).then(Vec::new);
                Plan::Closed { next: events(), due: events(), due_count: 0, places }
            }
            Model::Open => {
                let arrivals = Box::new(Arrivals::new(&phases, core, cores, config.seed));
                Plan::Open { arrivals, count: 0 }
            }
        };
        let mut starts = Self {
            plan,
            start_at: config.start_at,
            paused_since: None,
            phases,
            core: core as u64,
            cores: cores as u64,
            by_hand: ByHand::default(),
            upcoming: None,
            ended_at: None,
        };
        starts.look_ahead();
        starts
    }

    /// When the next user begins or ends; the end of the schedule when none is left.
    pub(super) fn due(&self) -> Instant {
        if self.ended_at.is_some() {
            return Instant::FAR;
        }
        let planned = match (self.paused_since, self.upcoming) {
            (Some(_), _) => Instant::FAR,
            (None, Some(offset)) => self.start_at + offset,
            (None, None) => self.end_at(),
        };
        planned.min(self.by_hand.due())
    }

    /// What is due by `now`, one thing at a time.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Action> {
        if self.ended_at.is_some() {
            return None;
        }
        if self.by_hand.due() <= now {
            let due = self.by_hand.next;
            let id = BY_HAND + self.core + self.by_hand.started * self.cores;
            self.by_hand.started += 1;
            self.by_hand.next = due + Duration::from_millis(self.cores);
            return Some(Action::Start { id, due });
        }
        if self.paused_since.is_some() {
            return None;
        }
        let due = self.start_at + self.upcoming?;
        if due > now {
            return None;
        }
        let action = match &mut self.plan {
            Plan::Closed { next, places, .. } => {
                let ScheduleEvent { user: id, change, .. } = next.next()?;
                match change {
                    UserChange::Start => Action::Start { id, due },
                    UserChange::Stop => {
                        let place = (id / self.cores) as usize;
                        let known = places.as_ref().and_then(|places| places.get(place));
                        let index = known.copied().unwrap_or(u32::MAX);
                        Action::Stop { id, index }
                    }
                }
            }
            Plan::Open { arrivals, count } => {
                arrivals.next();
                let id = self.core + *count * self.cores;
                *count += 1;
                Action::Start { id, due }
            }
        };
        self.look_ahead();
        Some(action)
    }

    /// Remembers where a user lives, so that the schedule can stop it.
    pub(super) fn started(&mut self, id: u64, index: u32) {
        if let Plan::Closed { places: Some(places), .. } = &mut self.plan
            && id < BY_HAND
        {
            let place = (id / self.cores) as usize;
            if place >= places.len() {
                places.resize(place + 1, u32::MAX);
            }
            places[place] = index;
        }
    }

    /// How many users should have begun by `now`.
    pub(super) fn intended_by(&mut self, now: Instant) -> u64 {
        let now = self.ended_at.map_or(now, |ended_at| ended_at.min(now));
        let passed = self.paused_since.unwrap_or(now).since(self.start_at);
        let planned = match &mut self.plan {
            _ if now < self.start_at => 0,
            Plan::Closed { due, due_count, .. } => {
                while let Some(event) = due.next_if(|event| event.at <= passed) {
                    *due_count += u64::from(event.change == UserChange::Start);
                }
                *due_count
            }
            Plan::Open { arrivals, .. } => arrivals.intended_by(passed),
        };
        planned + self.by_hand.started
    }

    /// The number of the phase at `now`.
    pub(super) fn phase(&self, now: Instant) -> usize {
        let passed = self.paused_since.unwrap_or(now).since(self.start_at);
        let mut end = Duration::ZERO;
        let begun = |phase: &&Phase| {
            end += phase.length();
            end <= passed
        };
        self.phases.iter().take_while(begun).count().min(self.phases.len().saturating_sub(1))
    }

    /// So many more users by hand.
    pub(super) fn add(&mut self, count: u64, now: Instant) {
        if self.by_hand.asked == self.by_hand.started {
            self.by_hand.next = now + Duration::from_millis(self.core);
        }
        self.by_hand.asked += count;
    }

    pub(super) fn pause(&mut self, now: Instant) {
        self.paused_since.get_or_insert(now);
    }

    pub(super) fn resume(&mut self, now: Instant) {
        if let Some(since) = self.paused_since.take() {
            self.start_at += now.since(since);
        }
    }

    /// Whether the schedule is over: nobody will begin or end any more by plan. A generator that is
    /// far behind does not make up for it without end; what it has not begun then is missing, and is told.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let is_done = self.upcoming.is_none() && self.by_hand.due() == Instant::FAR;
        let end_at = if is_done { self.end_at() } else { self.end_at() + OVERTIME };
        self.paused_since.is_none() && now >= end_at
    }

    /// Nobody begins any more.
    pub(super) fn end(&mut self, now: Instant) {
        self.ended_at.get_or_insert(now);
    }

    fn end_at(&self) -> Instant {
        self.start_at + schedule::length(&self.phases)
    }

    fn look_ahead(&mut self) {
        self.upcoming = match &mut self.plan {
            Plan::Closed { next, .. } => next.peek().map(|event| event.at),
            Plan::Open { arrivals, .. } => arrivals.peek(),
        };
    }
}

impl ByHand {
    fn due(&self) -> Instant {
        if self.started < self.asked { self.next } else { Instant::FAR }
    }
}

/// Returns whether the number of users ever goes down.
fn has_stops(phases: &[Phase]) -> bool {
    let targets = phases.iter().filter_map(|phase| match phase {
        Phase::Ramp { to, .. } => Some(*to),
        Phase::Hold { .. } | Phase::Arrivals { .. } => None,
    });
    let mut users = 0;
    targets.into_iter().any(|to| to < std::mem::replace(&mut users, to))
}

/// Numbers of users that were asked for by hand begin here, beyond every scheduled one.
const BY_HAND: u64 = 1 << 40;
/// How long after the last phase users may still begin that should have begun in it.
const OVERTIME: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::GeneratorConfig;
    use crate::program::Program;
    use crate::scenario::Scenario;
    use crate::source::SourcePlan;

    fn starts(load: &str) -> Starts {
        let source = format!("target: tcp://127.0.0.1:1\nload: {load}\nuser: [connect, stay]\n");
        let scenario = Scenario::parse(&source, "test").unwrap();
        let config = GeneratorConfig {
            program: Program::compile(&scenario),
            phases: scenario.load,
            targets: Vec::new(),
            sources: SourcePlan::Any,
            may_meet_itself: false,
            options: Default::default(),
            seed: 1,
            start_at: at(1_000),
        };
        Starts::new(&config, 0, 1)
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn users_of_a_ramp_begin_and_end_by_plan() {
        let mut starts = starts("[{ramp: {to: 2, over: 1s}}, {ramp: {to: 0, over: 1s}}]");
        assert_eq!(starts.due(), at(1_000));
        assert_eq!(starts.pop(at(999)), None);
        assert_eq!(starts.pop(at(1_000)), Some(Action::Start { id: 0, due: at(1_000) }));
        starts.started(0, 7);
        assert_eq!(starts.pop(at(1_600)), Some(Action::Start { id: 1, due: at(1_500) }));
        starts.started(1, 8);
        assert_eq!(starts.intended_by(at(1_600)), 2);
        assert_eq!(starts.phase(at(1_600)), 0);
        assert_eq!(starts.pop(at(3_000)), Some(Action::Stop { id: 1, index: 8 }));
        assert_eq!(starts.pop(at(3_000)), Some(Action::Stop { id: 0, index: 7 }));
        assert!(starts.is_over(at(3_000)));
    }

    #[test]
    fn a_pause_moves_the_rest_of_the_schedule() {
        let mut starts = starts("[{arrivals: {rate: 1/s, for: 3s, spacing: even}}]");
        assert!(matches!(starts.pop(at(1_000)), Some(Action::Start { id: 0, .. })));
        starts.pause(at(1_500));
        assert_eq!(starts.due(), Instant::FAR);
        assert_eq!(starts.pop(at(9_000)), None);
        starts.resume(at(11_500));
        assert_eq!(starts.due(), at(12_000));
        assert_eq!(starts.intended_by(at(11_900)), 1);
    }

    #[test]
    fn users_by_hand_begin_even_while_the_schedule_waits() {
        let mut starts = starts("[{ramp: {to: 1, over: 10s}}]");
        starts.pop(at(1_000));
        starts.pause(at(1_001));
        starts.add(2, at(2_000));
        assert_eq!(starts.pop(at(2_000)), Some(Action::Start { id: BY_HAND, due: at(2_000) }));
        assert_eq!(starts.due(), at(2_001));
        assert!(matches!(starts.pop(at(2_001)), Some(Action::Start { .. })));
        assert_eq!(starts.due(), Instant::FAR);
    }
}
