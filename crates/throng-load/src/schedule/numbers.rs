//! The numbers of users, where each class has a load of its own.

use throng_base::Prng;

use super::ClosedSchedule;
use crate::scenario::{Model, ScenarioLoad};

/// The numbers of the users of several lanes: of one load, or of those of each class.
///
/// Each lane counts its users from 0, and cores take every n-th of them. The numbers of the run are
/// small, distinct, and the same on any number of cores: the closed lanes come first, one after
/// another, because their users can be counted. After them the open lanes take turns: of every `n`
/// numbers each of `n` lanes has one. Each turn begins with another lane, so that the users of a
/// lane are spread over everything that is dealt by number, such as the addresses of the target.
#[derive(Clone, Debug)]
pub(crate) struct UserNumbers {
    lanes: Vec<LaneNumbers>,
    /// First number of the open lanes.
    first_open: u64,
    /// Number of open lanes.
    open_lanes: u64,
}

#[derive(Clone, Copy, Debug)]
enum LaneNumbers {
    /// From `first` on, so many at most.
    Closed { first: u64, count: u64 },
    /// The place among the open lanes.
    Open(u64),
}

impl UserNumbers {
    /// Returns the numbers of the users of `load`.
    pub(crate) fn of(load: &ScenarioLoad) -> Self {
        let mut numbers = Self { lanes: Vec::new(), first_open: 0, open_lanes: 0 };
        for phases in load.lanes() {
            let lane = match (load, Model::of(phases)) {
                (ScenarioLoad::Shared(_), _) => LaneNumbers::Closed { first: 0, count: u64::MAX },
                (ScenarioLoad::ByClass(_), Model::Open) => {
                    numbers.open_lanes += 1;
                    LaneNumbers::Open(numbers.open_lanes - 1)
                }
                (ScenarioLoad::ByClass(_), Model::Closed) => {
                    let first = numbers.first_open;
                    let count = ClosedSchedule::new(phases).peak_users().into();
                    numbers.first_open += count;
                    LaneNumbers::Closed { first, count }
                }
            };
            numbers.lanes.push(lane);
        }
        numbers
    }

    /// Returns the number of user `k` of lane `lane`.
    pub(crate) fn number(&self, lane: usize, k: u64) -> u64 {
        match self.lanes[lane] {
            LaneNumbers::Closed { first, .. } => first + k,
            LaneNumbers::Open(place) => {
                let turn = (place + self.begin(k)) % self.open_lanes;
                self.first_open + k * self.open_lanes + turn
            }
        }
    }

    /// Returns the lane of a user, and its number there.
    pub(crate) fn place(&self, number: u64) -> Option<(usize, u64)> {
        let mut lanes = self.lanes.iter().enumerate();
        lanes.find_map(|(at, lane)| match *lane {
            LaneNumbers::Closed { first, count } => {
                let k = number.checked_sub(first)?;
                (k < count).then_some((at, k))
            }
            LaneNumbers::Open(_) => {
                let k = number.checked_sub(self.first_open)? / self.open_lanes;
                (self.number(at, k) == number).then_some((at, k))
            }
        })
    }

    /// Returns how many numbers are used at most if each lane has at most so many users.
    pub(crate) fn used(&self, users_of: impl Fn(usize) -> u64) -> u64 {
        let end = |(lane, numbers): (usize, &LaneNumbers)| match *numbers {
            LaneNumbers::Closed { first, .. } => first.saturating_add(users_of(lane)),
            LaneNumbers::Open(_) => {
                self.first_open.saturating_add(users_of(lane).saturating_mul(self.open_lanes))
            }
        };
        self.lanes.iter().enumerate().map(end).max().unwrap_or(0)
    }

    /// Returns the place of the first open lane in turn `k`.
    fn begin(&self, k: u64) -> u64 {
        Prng::derive(0, k).below(self.open_lanes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::scenario::Scenario;

    fn numbers(loads: &[&str]) -> UserNumbers {
        let class = |(at, load): (usize, &&str)| {
            format!("  c{at}: {{load: [{load}], user: [connect, close]}}\n")
        };
        let users: String = loads.iter().enumerate().map(class).collect();
        let text = format!("target: tcp://h:1\nusers:\n{users}");
        let scenario = Scenario::parse(&text, "test").unwrap_or_else(|wrong| panic!("{wrong}"));
        UserNumbers::of(&scenario.load)
    }

    #[test]
    fn each_user_has_a_number_of_its_own_and_it_tells_the_class() {
        let open = "arrivals: {rate: 1/s, for: 1s}";
        let numbers = numbers(&[open, "ramp: {to: 3, over: 1s}", open, "ramp: {to: 2, over: 1s}"]);
        let of = |lane: usize, count: u64| (0..count).map(move |k| (lane, k));
        let users: Vec<_> = of(1, 3).chain(of(3, 2)).chain(of(0, 9)).chain(of(2, 9)).collect();
        let mut seen = HashSet::new();
        for (lane, k) in users {
            let number = numbers.number(lane, k);
            assert!(seen.insert(number), "{number}");
            assert_eq!(numbers.place(number), Some((lane, k)));
        }
        assert_eq!(seen.len(), 23);
        assert!((0..23).all(|number| seen.contains(&number)), "{seen:?}");
        assert_eq!(numbers.used(|lane| [9, 3, 9, 2][lane]), 23);
    }

    #[test]
    fn each_address_has_users_of_each_class() {
        let open = "arrivals: {rate: 1/s, for: 1s}";
        let numbers = numbers(&[open, open]);
        for lane in 0..2 {
            let of_address = |n| (0..1_000).filter(|k| numbers.number(lane, *k) % 4 == n).count();
            let users = [0, 1, 2, 3].map(of_address);
            assert!(users.iter().all(|count| (200..300).contains(count)), "{users:?}");
        }
    }

    #[test]
    fn one_load_of_all_users_counts_them_as_they_come() {
        let text = "target: tcp://h:1\nload: [ramp: {to: 3, over: 1s}]\nuser: [connect]\n";
        let numbers = UserNumbers::of(&Scenario::parse(text, "test").unwrap().load);
        assert_eq!((numbers.number(0, 7), numbers.place(1 << 40)), (7, Some((0, 1 << 40))));
    }
}
