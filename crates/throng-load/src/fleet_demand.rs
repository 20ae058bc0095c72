//! The demand of a load on all its machines together, from which a number of machines follows.

use std::time::Duration;

use serde::Serialize;

use crate::capacity::Demand;
use crate::program::{LimitScope, LimitedAction, OpSum, Program, ProgramClass};
use crate::scenario::{Model, Phase, ScenarioLoad};
use crate::schedule;

/// Peak demand of a scenario on all machines of a run.
///
/// In contrast to [`Demand`] it has no upper bound of one machine, and it knows messages. A rate
/// is an estimate from the waits and loops of the program, an upper bound where it has a choice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FleetDemand {
    /// Connections open at once.
    pub connections: u64,
    /// Arrivals: connections that begin per second, at their peak. `None` if users connect as fast
    /// as the server lets them.
    pub arrivals_per_s: Option<f64>,
    /// Messages that users send per second, at their peak. `None` if they send as fast as the
    /// server answers.
    pub messages_per_s: Option<f64>,
}

impl FleetDemand {
    /// Computes the demand of users with this program. Rates of classes with a load of their own
    /// are added up.
    pub fn of(program: &Program, load: &ScenarioLoad) -> Self {
        let connections = Demand::of(program, load).connections;
        let parts = LoadPart::all(program, load, connections);
        let limit = |action| limit_per_s(program, action, connections);
        let arrivals = sum(parts.iter().map(LoadPart::arrivals_per_s));
        let heartbeats_per_s = program
            .heartbeat()
            .map_or(0.0, |period| connections as f64 / period.as_secs_f64().max(1e-3));
        let messages = sum(parts.iter().map(LoadPart::messages_per_s));
        let messages = messages.map(|messages| messages + heartbeats_per_s);
        Self {
            connections,
            arrivals_per_s: lower(arrivals, limit(LimitedAction::Connect)),
            messages_per_s: lower(messages, limit(program.protocol().limits[0])),
        }
    }
}

/// The classes that have a load in common: all, or one that has its own.
struct LoadPart<'a> {
    program: &'a Program,
    class: Option<&'a ProgramClass>,
    phases: &'a [Phase],
    /// Its users at once.
    users: u64,
}

impl<'a> LoadPart<'a> {
    /// Returns the parts of a load, which has so many users at once.
    fn all(program: &'a Program, load: &'a ScenarioLoad, users: u64) -> Vec<Self> {
        if let ScenarioLoad::Shared(phases) = load {
            return vec![Self { program, class: None, phases, users }];
        }
        let part = |(class, phases): (&'a ProgramClass, &'a [Phase])| {
            let users = Demand::of_classes(std::slice::from_ref(class), phases).connections;
            Self { program, class: Some(class), phases, users }
        };
        program.classes().iter().zip(load.lanes()).map(part).collect()
    }

    fn sums(&self) -> impl Iterator<Item = OpSum> {
        let all = if self.class.is_some() { &[] } else { self.program.classes() };
        self.class.into_iter().chain(all).map(|class| class.sum)
    }

    /// Returns the mean of a number that a user of each class has.
    fn mean(&self, of: fn(OpSum) -> f64) -> f64 {
        self.class.map_or_else(|| self.program.mean_of_users(of), |class| of(class.sum))
    }

    /// Returns the connections that begin per second; `None` if nothing but the server slows them
    /// down.
    fn arrivals_per_s(&self) -> Option<f64> {
        let replaces = self.sums().any(|sum| sum.replaces);
        self.starts_per_s().map(|starts| if replaces { 2.0 * starts } else { starts })
    }

    /// Returns the users that begin their steps per second; `None` if nothing but the server slows
    /// them down.
    fn starts_per_s(&self) -> Option<f64> {
        let rate = schedule::peak_rate(self.phases);
        if Model::of(self.phases) == Model::Open || !self.sums().any(OpSum::ends_before_run) {
            return Some(rate);
        }
        let shortest = self.sums().filter_map(|sum| sum.time_min).min().unwrap_or(Duration::MAX);
        (!shortest.is_zero()).then(|| rate + self.users as f64 / shortest.as_secs_f64())
    }

    /// Returns the messages that its users send per second, without heartbeats; `None` if they
    /// send as fast as the server answers.
    fn messages_per_s(&self) -> Option<f64> {
        let users = self.users as f64;
        if self.sums().any(|sum| sum.messages.is_unbounded) {
            return None;
        }
        let once = self.mean(|sum| sum.messages.once);
        let paced = self.mean(|sum| sum.messages.paced);
        let endless_per_s = self.mean(|sum| sum.messages.endless_per_s);
        let started_per_s = match self.starts_per_s() {
            // Users that start together are in their loops together, and no faster than these.
            Some(starts) => {
                let most = users * self.mean(|sum| sum.messages.paced_per_s);
                starts * once + (starts * paced).min(most)
            }
            None if once + paced == 0.0 => 0.0,
            None => return None,
        };
        Some(started_per_s + users * endless_per_s)
    }
}

/// Returns the sum of rates; `None` if one has no bound.
fn sum(mut rates: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    rates.try_fold(0.0, |sum, rate| Some(sum + rate?))
}

/// Returns the rate that the scenario itself allows all its users.
fn limit_per_s(program: &Program, action: LimitedAction, users: u64) -> Option<f64> {
    let limits = program.limits().iter().filter(|limit| limit.action == action);
    let rates = limits.map(|limit| match limit.scope {
        LimitScope::All => limit.per_second,
        LimitScope::User => limit.per_second * users as f64,
    });
    rates.reduce(f64::min)
}

/// Returns the lower one of two rates, of which one may be without an end.
fn lower(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    /// Checks the demand of a hundred users that arrive within ten seconds.
    #[track_caller]
    fn check(user: &str, arrivals_per_s: Option<f64>, messages_per_s: Option<f64>) {
        check_load("[{ramp: {to: 100, over: 10s}}]", user, arrivals_per_s, messages_per_s);
    }

    #[track_caller]
    fn check_load(load: &str, user: &str, arrivals: Option<f64>, messages: Option<f64>) {
        let source = format!("target: tcp://127.0.0.1:1\nload: {load}\nuser: {user}\n");
        let scenario = Scenario::parse(&source, "test").unwrap();
        let demand = FleetDemand::of(&Program::compile(&scenario), &scenario.load);
        let rounded = |rate: Option<f64>| rate.map(|rate| (rate * 1e6).round() / 1e6);
        let found = (rounded(demand.arrivals_per_s), rounded(demand.messages_per_s));
        assert_eq!(found, (arrivals, messages), "{load} {user}");
    }

    #[test]
    fn messages_of_a_loop_by_the_clock_are_those_of_all_users() {
        check("[connect, stay]", Some(10.0), Some(0.0));
        check("[connect, {every: {period: 5s, do: [{send: a}]}}]", Some(10.0), Some(20.0));
        let two = "[connect, {every: {rate: 2/s, do: [{send: a}, {expect: a}, {send: b}]}}]";
        check(two, Some(10.0), Some(400.0));
        let rising = "[connect, {every: {rate: {from: 1/s, to: 3/s, over: 9s}, do: [send: a]}}]";
        check(rising, Some(10.0), Some(300.0));
    }

    #[test]
    fn messages_before_a_stay_come_with_the_arrivals() {
        check(
            "[connect, {send: a}, {repeat: {times: 3, do: [send: b]}}, stay]",
            Some(10.0),
            Some(40.0),
        );
        // Ten messages each in ten seconds: at most all users at once.
        let paced = "[connect, {every: {period: 1s, for: 10s, do: [send: a]}}, stay]";
        check(paced, Some(10.0), Some(100.0));
        let short = "[connect, {every: {period: 1s, for: 2s, do: [send: a]}}, stay]";
        check(short, Some(10.0), Some(20.0));
    }

    #[test]
    fn users_that_begin_again_arrive_again() {
        check("[connect, {send: a}, {wait: 4s}, close]", Some(35.0), Some(35.0));
        let open = "[{arrivals: {rate: 50/s, for: 10s}}]";
        check_load(open, "[connect, {send: a}, close]", Some(50.0), Some(50.0));
    }

    #[test]
    fn what_only_the_server_slows_down_has_no_rate() {
        check("[connect, {send: a}, {expect: a}, close]", None, None);
        check(
            "[connect, {repeat: {for: 9s, do: [{send: a}, {expect: a}]}}, stay]",
            Some(10.0),
            None,
        );
        let slowed = "[connect, {repeat: {for: 10s, do: [{send: a}, {wait: 2s}]}}, stay]";
        check(slowed, Some(10.0), Some(50.0));
    }

    #[test]
    fn classes_count_by_their_weights() {
        let source = "target: tcp://127.0.0.1:1\nload: [{ramp: {to: 100, over: 10s}}]\nusers:\n  \
                      idle: {weight: 3, user: [connect, stay]}\n  \
                      busy: {weight: 1, user: [connect, {every: {period: 1s, do: [send: a]}}]}\n";
        let scenario = Scenario::parse(source, "test").unwrap();
        let demand = FleetDemand::of(&Program::compile(&scenario), &scenario.load);
        assert_eq!(demand.messages_per_s, Some(25.0));
    }

    #[test]
    fn classes_with_loads_of_their_own_add_up() {
        let source = "target: tcp://127.0.0.1:1\nusers:\n  \
                      idle: {load: [ramp: {to: 30, over: 3s}], user: [connect, stay]}\n  \
                      late: {load: [arrivals: {rate: 5/s, for: 9s}], \
                      user: [connect, send: a, send: b, wait: 1s, close]}\n";
        let scenario = Scenario::parse(source, "test").unwrap();
        let demand = FleetDemand::of(&Program::compile(&scenario), &scenario.load);
        // Each of those that arrive stays for 1 s, and a second more for slow answers.
        assert_eq!(demand.connections, 30 + 10);
        assert_eq!((demand.arrivals_per_s, demand.messages_per_s), (Some(15.0), Some(10.0)));
    }

    #[test]
    fn a_limit_of_the_scenario_holds() {
        let source = "target: tcp://127.0.0.1:1\nload: [{ramp: {to: 100, over: 10s}}]\n\
                      limits: {all: {send: 7/s}}\n\
                      user: [connect, {repeat: {for: 9s, do: [send: a]}}, stay]\n";
        let scenario = Scenario::parse(source, "test").unwrap();
        let demand = FleetDemand::of(&Program::compile(&scenario), &scenario.load);
        assert_eq!(demand.messages_per_s, Some(7.0));
    }

    #[test]
    fn no_limit_of_one_machine_holds_for_a_fleet() {
        let load = "[{ramp: {to: 1M, over: 1m}}]";
        let often = "[connect, {wait: 1s}, close: reset]";
        let arrivals = 1e6 / 60.0 + 1e6;
        let rounded = (arrivals * 1e6_f64).round() / 1e6;
        check_load(load, often, Some(rounded), Some(0.0));
    }
}
