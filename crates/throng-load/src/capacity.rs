//! The demand of a load, and the capacity of this machine for it: known before the run starts. The
//! doctor's preflight judges whether it fits.

use std::ops::RangeInclusive;
use std::time::Duration;

use throng_driver::DriverCapacity;

use crate::program::{OpSum, Program, ProgramClass};
use crate::scenario::{Model, Phase, ScenarioLoad};
use crate::schedule::{self, MachineShare};
use crate::source::SourcePlan;

/// Peak demand of a scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Connections open at once.
    pub connections: u64,
    /// Connections that end per second. Each may leave its port in TIME-WAIT.
    pub ends_per_s: f64,
    /// Highest number of connections that begin per second.
    pub begins_per_s: f64,
}

impl Demand {
    /// Computes the demand of users with this program. It is exact in the closed model and for
    /// users that stay, and otherwise an estimate from the waits in the program.
    ///
    /// Where each class has a load of its own, users of the closed model are counted at each
    /// moment; arrivals and rates are the sum of the peaks of the classes, an upper bound.
    pub fn of(program: &Program, load: &ScenarioLoad) -> Self {
        let classes = program.classes();
        if let ScenarioLoad::Shared(phases) = load {
            return Self::of_classes(classes, phases);
        }
        let is_closed = |phases: &&[Phase]| Model::of(phases) == Model::Closed;
        let together = schedule::peak_users_beside(load.lanes().filter(is_closed));
        let none = Self { connections: together, ends_per_s: 0.0, begins_per_s: 0.0 };
        classes.iter().zip(load.lanes()).fold(none, |sum, (class, phases)| {
            let one = Self::of_classes(std::slice::from_ref(class), phases);
            let counted = if is_closed(&phases) { 0 } else { one.connections };
            Self {
                connections: sum.connections.saturating_add(counted),
                ends_per_s: sum.ends_per_s + one.ends_per_s,
                begins_per_s: sum.begins_per_s + one.begins_per_s,
            }
        })
    }

    /// Computes the demand of users of these classes, who have a load in common.
    pub(crate) fn of_classes(classes: &[ProgramClass], phases: &[Phase]) -> Self {
        let peak = schedule::peak_users(phases);
        let classes = classes.iter().map(|class| class.sum);
        let ends = classes.clone().any(OpSum::ends_before_run);
        let replaces = classes.clone().any(|ops| ops.replaces);
        let spans = classes.map(|ops| ops.time_min);
        let longest =
            spans.clone().try_fold(Duration::ZERO, |longest, span| Some(longest.max(span?)));
        let shortest = spans.flatten().min().unwrap_or(Duration::MAX);
        match Model::of(phases) {
            Model::Closed => {
                // An upper bound of what one machine connects per second.
                let rate = (peak as f64 / shortest.as_secs_f64().max(1e-3)).min(CONNECTS_PER_S_MAX);
                let ends_per_s = if ends { rate } else { 0.0 };
                let begins_per_s =
                    (schedule::peak_rate(phases) + ends_per_s).min(CONNECTS_PER_S_MAX);
                Self { connections: peak, ends_per_s, begins_per_s }.with_replaced(replaces)
            }
            Model::Open => {
                let rate = schedule::peak_rate(phases);
                let connections = match longest {
                    // Answers take time too; a second is that of a slow server.
                    Some(span) => (rate * (span.as_secs_f64() + 1.0)).ceil() as u64,
                    None => u64::MAX,
                };
                Self {
                    connections: connections.min(peak),
                    ends_per_s: if ends { rate } else { 0.0 },
                    begins_per_s: rate,
                }
                .with_replaced(replaces)
            }
        }
    }

    /// Returns what the share of a machine demands, rounded up: no core has fewer than its part.
    pub fn of_share(self, share: MachineShare) -> Self {
        let of = share.of().max(1);
        let part = share.cores() as f64 / of as f64;
        let most = self.connections.div_ceil(of as u64);
        Self {
            connections: most.saturating_mul(share.cores() as u64).min(self.connections),
            ends_per_s: self.ends_per_s * part,
            begins_per_s: self.begins_per_s * part,
        }
    }

    /// Returns the demand of users each of whom replaces its first connection by another one, if
    /// `replaces`.
    fn with_replaced(self, replaces: bool) -> Self {
        let more = if replaces { self.begins_per_s } else { 0.0 };
        Self { ends_per_s: self.ends_per_s + more, begins_per_s: self.begins_per_s + more, ..self }
    }

    /// Returns the ports in use at once, if a port stays in TIME-WAIT for `time_wait`.
    pub fn ports(&self, time_wait: Duration) -> u64 {
        self.connections + (self.ends_per_s * time_wait.as_secs_f64()).ceil() as u64
    }
}

/// Capacity of this machine for a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// Demand of the run.
    pub demand: Demand,
    /// Cores of the generator.
    pub cores: usize,
    /// Capacity of the driver.
    pub driver: DriverCapacity,
    /// Number of source addresses.
    pub addresses: usize,
    /// Ports of one source address: the driver's range or the configured one. `None` if the
    /// connections of the driver have no ports that can run out.
    pub port_range: Option<RangeInclusive<u16>>,
    /// Connections that the sources allow, over all targets.
    pub ports: u64,
    /// Time for which the port of a closed connection cannot be reused.
    pub time_wait: Duration,
}

impl Capacity {
    /// Returns the connections that the driver holds on these cores.
    pub fn held(&self) -> u64 {
        self.driver.connections(self.cores)
    }

    /// Returns the maximum number of connections at once: the lower of the two limits.
    pub fn connections(&self) -> u64 {
        self.held().min(self.ports)
    }
}

/// Returns the default sources for a target on this machine.
pub fn loopback_sources(
    demand: Demand,
    range: &RangeInclusive<u16>,
    time_wait: Duration,
) -> SourcePlan {
    // The kernel tries every other port first, and the rest only when all of those are taken. Near
    // half of all ports, each connect tries thousands. A quarter keeps its search short to the last
    // connection.
    let each = SourcePlan::Any.ports(range) / 4;
    let mut count = demand.ports(time_wait).div_ceil(each.max(1)) as usize;
    if demand.ends_per_s > 0.0 && demand.connections > 1 {
        // Sockets in TIME-WAIT stay in the tables for a minute, even if their ports can be reused.
        count = count.max(CHURN_ADDRESSES);
    }
    if count <= 1 { SourcePlan::Any } else { SourcePlan::loopback(count) }
}

const CONNECTS_PER_S_MAX: f64 = 100_000.0;
const CHURN_ADDRESSES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn demand(load: &str, user: &str) -> Demand {
        let source = format!("target: tcp://127.0.0.1:1\nload: {load}\nuser: {user}\n");
        let scenario = Scenario::parse(&source, "test").unwrap();
        Demand::of(&Program::compile(&scenario), &scenario.load)
    }

    #[test]
    fn closed_users_are_counted_exactly() {
        let demand = demand("[{ramp: {to: 100k, over: 1m}}]", "[connect, {wait: 1s}, close]");
        assert_eq!(demand.connections, 100_000);
        assert!((demand.ends_per_s - 100_000.0).abs() < 1.0);
    }

    #[test]
    fn the_steepest_moment_counts() {
        let ramps = "[{ramp: {to: 10k, over: 10s}}, {ramp: {to: 40k, over: 10s}}]";
        assert_eq!(demand(ramps, "[connect, stay]").begins_per_s, 3_000.0);
        let load = "[{arrivals: {rate: {from: 10/s, to: 100/s}, for: 100s}}]";
        assert_eq!(demand(load, "[connect, stay]").begins_per_s, 100.0);
    }

    #[test]
    fn arrivals_that_stay_add_up_and_those_that_go_do_not() {
        let load = "[{arrivals: {rate: 100/s, for: 100s}}]";
        assert_eq!(demand(load, "[connect, stay]").connections, 10_000);
        assert_eq!(demand(load, "[connect, {wait: 3s}, close]").connections, 400);
        let short = "[{arrivals: {rate: 100/s, for: 1s}}]";
        assert_eq!(demand(short, "[connect, {wait: 3s}, close]").connections, 100);
    }

    #[test]
    fn a_login_before_the_connect_is_another_connection() {
        let load = "[{arrivals: {rate: 100/s, for: 100s}}]";
        let source = |user: &str| {
            format!("target: ws://127.0.0.1:1\nload: {load}\nuser: [{user}connect, stay]\n")
        };
        let demand = |user: &str| {
            let scenario = Scenario::parse(&source(user), "test").unwrap();
            Demand::of(&Program::compile(&scenario), &scenario.load)
        };
        let (alone, with_login) = (demand(""), demand("get: /login, "));
        assert_eq!((alone.ends_per_s, alone.begins_per_s), (0.0, 100.0));
        assert_eq!((with_login.ends_per_s, with_login.begins_per_s), (100.0, 200.0));
        assert_eq!(with_login.connections, alone.connections);
    }

    #[test]
    fn users_of_two_loads_count_as_far_as_they_are_there_together() {
        let source = |early: &str, late: &str| {
            format!(
                "target: tcp://127.0.0.1:1\nusers:\n  early: {{load: {early}, user: [connect]}}\n  \
                 late: {{load: {late}, user: [connect, stay]}}\n"
            )
        };
        let connections = |early: &str, late: &str| {
            let scenario = Scenario::parse(&source(early, late), "test").unwrap();
            Demand::of(&Program::compile(&scenario), &scenario.load).connections
        };
        let early = "[ramp: {to: 100, over: 10s}, hold: {for: 10s}]";
        let beside = "[ramp: {to: 60, over: 20s}, hold: {for: 9s}]";
        assert_eq!(connections(early, beside), 160, "until the 20th second");
        let after = "[ramp: {to: 1, over: 20s}, ramp: {to: 60, over: 1s}]";
        assert_eq!(connections(early, after), 101);
        assert_eq!(connections(early, "[arrivals: {rate: 5/s, for: 30s}]"), 250);
    }

    #[test]
    fn a_share_demands_what_its_cores_may_get() {
        let all = Demand { connections: 10, ends_per_s: 7.0, begins_per_s: 14.0 };
        // Each core gets one or two users of ten.
        let [first, second] = MachineShare::deal(&[2, 5])[..] else { unreachable!() };
        assert_eq!(all.of_share(first).connections, 4);
        assert_eq!(all.of_share(second).connections, 10);
        assert!((all.of_share(first).begins_per_s - 4.0).abs() < 1e-9);
        assert_eq!(all.of_share(MachineShare::whole(3)), all);
        let unknown = Demand { connections: u64::MAX, ..all };
        assert_eq!(unknown.of_share(MachineShare::whole(3)).connections, u64::MAX);
    }
}
