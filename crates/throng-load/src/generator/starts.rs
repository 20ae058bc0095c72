//! When the users of one core start, and in the closed model when they stop.

mod lane;

use std::time::Duration;

use throng_base::Instant;

use super::config::GeneratorConfig;
use crate::schedule::UserNumbers;
use lane::{Lane, LaneEvent};

/// One core's share of the schedule, and the users that were requested by hand.
pub(super) struct Starts {
    /// One lane, or one for each class that has a load of its own.
    lanes: Vec<Lane>,
    numbers: UserNumbers,
    /// Start of the run, moved forward by the length of every pause.
    start_at: Instant,
    paused_since: Option<Instant>,
    /// Ends of the pieces of the load, from the start of the run.
    piece_ends: Vec<Duration>,
    /// Moment from which the load is over once all users have ended.
    users_end: Option<Duration>,
    core: u64,
    cores: u64,
    manual: ManualUsers,
    /// Moment of the next scheduled event, from the start of the run, and its lane.
    upcoming: Option<(Duration, usize)>,
    /// Moment at which the schedule ended or was cut short; no user is due after it.
    ended_at: Option<Instant>,
    /// True once a last phase has begun that ends with its users.
    awaits_users: bool,
}

/// An action that is due now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DueAction {
    Start { id: u64, due: Instant },
    Stop { id: u64, index: u32 },
}

/// Users that were requested over the control socket: one per millisecond over all cores.
#[derive(Default)]
struct ManualUsers {
    requested: u64,
    started: u64,
    next: Instant,
}

impl Starts {
    pub(super) fn new(config: &GeneratorConfig, core: usize, cores: usize) -> Self {
        let load = &config.load;
        let mut starts = Self {
            lanes: Lane::all(load, core, cores, config.seed),
            numbers: UserNumbers::of(load),
            start_at: config.start_at,
            paused_since: None,
            piece_ends: load.pieces().into_iter().map(|piece| piece.end).collect(),
            users_end: load.ends_with_users_from(),
            core: core as u64,
            cores: cores as u64,
            manual: ManualUsers::default(),
            upcoming: None,
            ended_at: None,
            awaits_users: false,
        };
        starts.find_upcoming();
        starts
    }

    /// Returns the moment of the next start or stop. If none is left, returns the end of the
    /// schedule.
    pub(super) fn due(&self) -> Instant {
        if self.ended_at.is_some() {
            return Instant::FAR;
        }
        let planned = match (self.paused_since, self.upcoming) {
            (Some(_), _) => Instant::FAR,
            (None, Some((offset, _))) => self.start_at + offset,
            // The users may have ended before this phase begins.
            (None, None) if !self.awaits_users => self.users_end_at().unwrap_or(self.end_at()),
            (None, None) => self.end_at(),
        };
        planned.min(self.manual.due())
    }

    /// Returns one action that is due by `now`.
    pub(super) fn pop(&mut self, now: Instant) -> Option<DueAction> {
        if self.ended_at.is_some() {
            return None;
        }
        if self.manual.due() <= now {
            let due = self.manual.next;
            let id = MANUAL_ID_MIN + self.core + self.manual.started * self.cores;
            self.manual.started += 1;
            self.manual.next = due + Duration::from_millis(self.cores);
            return Some(DueAction::Start { id, due });
        }
        if self.paused_since.is_some() {
            return None;
        }
        let (offset, lane) = self.upcoming?;
        let due = self.start_at + offset;
        if due > now {
            return None;
        }
        let event = self.lanes[lane].pop()?;
        self.find_upcoming();
        Some(match event {
            LaneEvent::Start(user) => DueAction::Start { id: self.numbers.number(lane, user), due },
            LaneEvent::Stop(user, index) => {
                DueAction::Stop { id: self.numbers.number(lane, user), index }
            }
        })
    }

    /// Remembers the table index of a user, so that the schedule can stop it.
    pub(super) fn started(&mut self, id: u64, index: u32) {
        if id < MANUAL_ID_MIN
            && let Some((lane, user)) = self.numbers.place(id)
        {
            self.lanes[lane].started(user, index);
        }
    }

    /// Returns the number of users that should have started by `now`.
    pub(super) fn intended_by(&mut self, now: Instant) -> u64 {
        let now = self.ended_at.map_or(now, |ended_at| ended_at.min(now));
        let passed = self.paused_since.unwrap_or(now).since(self.start_at);
        let planned = match now < self.start_at {
            true => 0,
            false => self.lanes.iter_mut().map(|lane| lane.intended_by(passed)).sum(),
        };
        planned + self.manual.started
    }

    /// Returns the number of the load's piece at `now`.
    pub(super) fn phase_at(&self, now: Instant) -> usize {
        let passed = self.paused_since.unwrap_or(now).since(self.start_at);
        let begun = self.piece_ends.partition_point(|end| *end <= passed);
        begun.min(self.piece_ends.len().saturating_sub(1))
    }

    /// Returns the number of the load's pieces.
    pub(super) fn phase_count(&self) -> usize {
        self.piece_ends.len()
    }

    /// Requests `count` more users by hand.
    pub(super) fn add(&mut self, count: u64, now: Instant) {
        if self.manual.requested == self.manual.started {
            self.manual.next = now + Duration::from_millis(self.core);
        }
        self.manual.requested += count;
    }

    pub(super) fn pause(&mut self, now: Instant) {
        self.paused_since.get_or_insert(now);
    }

    pub(super) fn resume(&mut self, now: Instant) {
        if let Some(since) = self.paused_since.take() {
            self.start_at += now.since(since);
        }
    }

    /// Reports whether the schedule is over: no more scheduled starts or stops. A generator that is
    /// far behind gets [`OVERTIME`]; users that it has not started by then are missing, and the
    /// counters show it.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let is_done = self.upcoming.is_none() && self.manual.due() == Instant::FAR;
        let end_at = if is_done { self.end_at() } else { self.end_at() + OVERTIME };
        self.paused_since.is_none() && now >= end_at
    }

    /// Reports whether the load has nothing more to do once all users have ended: no user is to
    /// come, and the last phase has begun and ends with its users.
    pub(super) fn ends_with_users(&mut self, now: Instant) -> bool {
        let is_waiting = self.paused_since.is_none() && self.manual.due() == Instant::FAR;
        let is_last = self.users_end_at().is_some_and(|begin| begin <= now);
        self.awaits_users |= is_last;
        is_waiting && is_last && self.upcoming.is_none()
    }

    /// Ends the schedule: no more users start.
    pub(super) fn end(&mut self, now: Instant) {
        self.ended_at.get_or_insert(now);
    }

    /// Returns the moment from which the load is over once all users have ended.
    fn users_end_at(&self) -> Option<Instant> {
        self.users_end.map(|end| self.start_at + end)
    }

    fn end_at(&self) -> Instant {
        self.start_at + self.piece_ends.last().copied().unwrap_or_default()
    }

    fn find_upcoming(&mut self) {
        let moments = self.lanes.iter_mut().enumerate();
        self.upcoming = moments.filter_map(|(lane, it)| Some((it.upcoming()?, lane))).min();
    }
}

impl ManualUsers {
    fn due(&self) -> Instant {
        if self.started < self.requested { self.next } else { Instant::FAR }
    }
}

/// First number of users that were requested by hand, above every scheduled number.
const MANUAL_ID_MIN: u64 = 1 << 40;
/// Time after the last phase in which late users may still start.
const OVERTIME: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cues::Cues;
    use crate::generator::GeneratorConfig;
    use crate::program::Program;
    use crate::scenario::Scenario;
    use crate::source::SourcePlan;

    fn starts(load: &str) -> Starts {
        of_core(&format!("load: {load}\nuser: [connect, stay]"), 0, 1)
    }

    fn of_core(load: &str, core: usize, cores: usize) -> Starts {
        let source = format!("target: tcp://127.0.0.1:1\n{load}\n");
        let scenario = Scenario::parse(&source, "test").unwrap_or_else(|wrong| panic!("{wrong}"));
        let config = GeneratorConfig {
            program: Program::compile(&scenario),
            cues: Cues::new(&[]).into(),
            load: scenario.load,
            targets: Vec::new(),
            sources: SourcePlan::Any,
            self_connect_possible: false,
            options: Default::default(),
            seed: 1,
            start_at: at(1_000),
            run: at(1_000).as_nanos(),
            first_user: 0,
            share: None,
            peers: None,
            trace: None,
        };
        Starts::new(&config, core, cores)
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn users_of_a_ramp_begin_and_end_by_plan() {
        let mut starts = starts("[{ramp: {to: 2, over: 1s}}, {ramp: {to: 0, over: 1s}}]");
        assert_eq!(starts.due(), at(1_000));
        assert_eq!(starts.pop(at(999)), None);
        assert_eq!(starts.pop(at(1_000)), Some(DueAction::Start { id: 0, due: at(1_000) }));
        starts.started(0, 7);
        assert_eq!(starts.pop(at(1_600)), Some(DueAction::Start { id: 1, due: at(1_500) }));
        starts.started(1, 8);
        assert_eq!(starts.intended_by(at(1_600)), 2);
        assert_eq!(starts.phase_at(at(1_600)), 0);
        assert_eq!(starts.pop(at(3_000)), Some(DueAction::Stop { id: 1, index: 8 }));
        assert_eq!(starts.pop(at(3_000)), Some(DueAction::Stop { id: 0, index: 7 }));
        assert!(starts.is_over(at(3_000)));
    }

    #[test]
    fn users_of_a_spike_come_at_once_and_leave_at_once() {
        let mut starts = starts(
            "[{steps: {from: 1, to: 2, by: 1, each: 1s}}, \
            {spike: {to: 4, for: 1s}}, {hold: {for: 1s}}]",
        );
        let (mut ids, mut now) = (Vec::new(), 1_000);
        while now <= 5_000 {
            while let Some(action) = starts.pop(at(now)) {
                let DueAction::Start { id, due } = action else { panic!("{action:?} at {now}") };
                assert_eq!(due, at(now), "user {id} is not late");
                starts.started(id, id as u32);
                ids.push(id);
            }
            assert_eq!(starts.phase_at(at(now)), [0, 1, 2, 3, 3][(now / 1_000) as usize - 1]);
            now += 1_000;
            if now == 4_000 {
                let stops = [3, 2].map(|id| Some(DueAction::Stop { id, index: id as u32 }));
                assert_eq!([starts.pop(at(now)), starts.pop(at(now))], stops);
            }
        }
        assert_eq!(ids, [0, 1, 2, 3]);
        assert_eq!(starts.intended_by(at(5_000)), 4);
        assert!(starts.is_over(at(5_000)));
    }

    #[test]
    fn a_pause_moves_the_rest_of_the_schedule() {
        let mut starts = starts("[{arrivals: {rate: 1/s, for: 3s, spacing: even}}]");
        assert!(matches!(starts.pop(at(1_000)), Some(DueAction::Start { id: 0, .. })));
        starts.pause(at(1_500));
        assert_eq!(starts.due(), Instant::FAR);
        assert_eq!(starts.pop(at(9_000)), None);
        starts.resume(at(11_500));
        assert_eq!(starts.due(), at(12_000));
        assert_eq!(starts.intended_by(at(11_900)), 1);
    }

    #[test]
    fn arrivals_after_a_hold_are_waited_for() {
        let mut starts = starts(
            "[{arrivals: {rate: 1/s, for: 1s, spacing: even}}, {hold: {for: 9s}}, \
            {arrivals: {rate: 1/s, for: 1s, spacing: even}}, {hold: {for: 1s}}]",
        );
        assert!(matches!(starts.pop(at(1_000)), Some(DueAction::Start { id: 0, .. })));
        assert!(!starts.is_over(at(10_999)) && starts.due() == at(11_000));
        assert!(matches!(starts.pop(at(11_000)), Some(DueAction::Start { id: 1, .. })));
        assert!(!starts.is_over(at(12_999)) && starts.due() == at(13_000));
        assert!(starts.is_over(at(13_000)));
    }

    #[test]
    fn a_last_phase_ends_with_its_users() {
        let arrivals = "{arrivals: {rate: 1000/s, for: 1s, most: 1, spacing: even}}";
        let mut starts = starts(&format!("[{arrivals}, {{hold: {{for: 10m, until: done}}}}]"));
        assert!(matches!(starts.pop(at(1_000)), Some(DueAction::Start { id: 0, .. })));
        assert!(!starts.ends_with_users(at(1_999)));
        assert_eq!(starts.due(), at(2_000), "its users may have ended before");
        starts.pause(at(1_999));
        assert!(!starts.ends_with_users(at(2_500)), "a pause is no end");
        starts.resume(at(2_999));
        assert!(!starts.ends_with_users(at(2_999)) && starts.ends_with_users(at(3_000)));
        assert_eq!(starts.due(), at(603_000));
        starts.add(1, at(4_000));
        assert!(!starts.ends_with_users(at(4_000)), "a user was requested by hand");
        assert!(matches!(starts.pop(at(4_000)), Some(DueAction::Start { .. })));
        assert!(starts.ends_with_users(at(4_000)));
        assert!(!starts.is_over(at(602_999)) && starts.is_over(at(603_000)));
    }

    #[test]
    fn users_by_hand_begin_even_while_the_schedule_waits() {
        let mut starts = starts("[{ramp: {to: 1, over: 10s}}]");
        starts.pop(at(1_000));
        starts.pause(at(1_001));
        starts.add(2, at(2_000));
        assert_eq!(
            starts.pop(at(2_000)),
            Some(DueAction::Start { id: MANUAL_ID_MIN, due: at(2_000) })
        );
        assert_eq!(starts.due(), at(2_001));
        assert!(matches!(starts.pop(at(2_001)), Some(DueAction::Start { .. })));
        assert_eq!(starts.due(), Instant::FAR);
    }

    /// Users that stay for 3 s beside arrivals every second for 5 s.
    const TWO_LOADS: &str = "users:
  chat: {load: [{steps: {from: 2, to: 4, by: 2, each: 1s}}, {hold: {for: 1s}}], user: [connect]}
  api: {load: [{arrivals: {rate: 1/s, for: 5s, spacing: even}}], user: [connect]}";

    /// Returns all actions of a core in its load, as text, with their second.
    fn actions(starts: &mut Starts) -> Vec<String> {
        let mut actions = Vec::new();
        for ms in (1_000..=6_000).step_by(1_000) {
            while let Some(action) = starts.pop(at(ms)) {
                let second = ms / 1_000 - 1;
                actions.push(match action {
                    DueAction::Start { id, due } => {
                        assert_eq!(due, at(ms), "user {id} is not late");
                        starts.started(id, 100 + id as u32);
                        format!("{second}: start {id}")
                    }
                    DueAction::Stop { id, index } => {
                        assert_eq!(index, 100 + id as u32);
                        format!("{second}: stop {id}")
                    }
                });
            }
        }
        actions
    }

    #[test]
    fn two_classes_with_loads_of_their_own_run_beside_one_another() {
        let mut starts = of_core(TWO_LOADS, 0, 1);
        let (paused, phases) = (at(3_500), [0, 1, 2, 3, 3]);
        for (second, phase) in (1..).zip(phases) {
            assert_eq!(starts.phase_at(at(second * 1_000)), phase, "second {second}");
        }
        assert_eq!(starts.intended_by(paused), 4 + 3);
        let expected = [
            // The users that are counted come first, then those that arrive.
            "0: start 0",
            "0: start 1",
            "0: start 4",
            "1: start 2",
            "1: start 3",
            "1: start 5",
            "2: start 6",
            "3: stop 3",
            "3: stop 2",
            "3: stop 1",
            "3: stop 0",
            "3: start 7",
            "4: start 8",
        ];
        assert_eq!(actions(&mut starts), expected);
        assert_eq!(starts.intended_by(at(6_000)), 9);
        assert!(!starts.is_over(at(5_999)) && starts.is_over(at(6_000)));
    }

    #[test]
    fn the_same_users_come_at_the_same_moments_on_any_number_of_cores() {
        let one = actions(&mut of_core(TWO_LOADS, 0, 1));
        for cores in 2..=4 {
            let of = |core| actions(&mut of_core(TWO_LOADS, core, cores));
            let all: Vec<_> = (0..cores).flat_map(of).collect();
            let sorted = |mut actions: Vec<String>| {
                actions.sort();
                actions
            };
            assert_eq!(sorted(all), sorted(one.clone()), "{cores} cores");
        }
    }

    #[test]
    fn a_load_of_classes_ends_with_its_users_once_every_class_may() {
        let mut starts = of_core(
            "users:
  chat: {load: [{ramp: {to: 1, over: 3s}}], user: [connect]}
  api: {load: [{arrivals: {rate: 1/s, for: 1s, spacing: even}}, \
            {hold: {for: 1m, until: done}}], user: [connect]}",
            0,
            1,
        );
        actions(&mut starts);
        assert!(!starts.ends_with_users(at(3_999)), "the first class goes on for 3 s");
        assert!(starts.ends_with_users(at(4_000)));
        assert!(!starts.is_over(at(60_000)) && starts.is_over(at(62_000)));
    }
}
