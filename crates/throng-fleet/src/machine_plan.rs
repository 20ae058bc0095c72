//! The number of machines that a load takes, from what each of them can do. Pure arithmetic.

use serde::Serialize;
use throng_load::fleet_demand::FleetDemand;

/// What a machine can do at most. A limit that is unknown is not counted, and the plan says so.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MachineCapacity {
    /// Name of the machine's agent.
    pub name: String,
    /// CPUs. A run is divided by them.
    pub cpus: usize,
    /// Connections that its limits allow.
    pub connections: Option<u64>,
    /// The limit that allows no more connections.
    pub connections_limit: Option<String>,
    /// Arrivals per second, if it does nothing else.
    pub arrivals_per_s: Option<f64>,
    /// Messages per second, if it does nothing else.
    pub messages_per_s: Option<f64>,
}

/// What a machine's part of a load is limited by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanLimit {
    /// Connections at once.
    Connections,
    /// CPU time, most of it for arrivals.
    Arrivals,
    /// CPU time, most of it for messages.
    Messages,
}

/// The part of a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachinePart {
    /// The machine.
    pub machine: MachineCapacity,
    /// Share of the load.
    pub share: f64,
    /// Connections of the part.
    pub connections: u64,
    /// Arrivals per second of the part.
    pub arrivals_per_s: Option<f64>,
    /// Messages per second of the part.
    pub messages_per_s: Option<f64>,
    /// Share of the deciding limit that the part takes; above 1 it does not fit.
    pub used: f64,
    /// The limit of which the part takes most; `None` if no limit is known.
    pub decides: Option<PlanLimit>,
    /// Limits that were not counted: what the machine can do or what the load takes is unknown.
    pub uncounted: Vec<PlanLimit>,
}

/// How many machines a load takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachinePlan {
    /// The load.
    pub demand: FleetDemand,
    /// Machines that it takes. Beyond those that are there, more like them: the first again after
    /// the last. `None` if no number is enough. With [`Self::uncounted`] it takes at least these.
    pub needed: Option<u64>,
    /// Machines that are there.
    pub known: u64,
    /// The parts of those that are needed and there.
    pub parts: Vec<MachinePart>,
    /// The limits that were not counted for one of these parts.
    pub uncounted: Vec<PlanLimit>,
}

impl MachinePlan {
    /// Computes the plan for machines in the order in which a run takes them.
    ///
    /// # Panics
    /// There is no machine.
    pub fn new(demand: FleetDemand, machines: &[MachineCapacity]) -> Self {
        assert!(!machines.is_empty(), "a plan is about machines");
        let known = machines.len() as u64;
        let needed = needed(&demand, machines);
        // The share in a fleet that is enough, or in the one that is there if none is.
        let all = cpus_of(machines, needed.unwrap_or(known));
        let parts = &machines[..needed.map_or(known, |needed| needed.min(known)) as usize];
        let parts: Vec<_> =
            parts.iter().map(|it| MachinePart::new(&demand, it, it.cpus() / all)).collect();
        let uncounted = PlanLimit::ALL
            .into_iter()
            .filter(|limit| parts.iter().any(|part| part.uncounted.contains(limit)))
            .collect();
        Self { demand, needed, known, parts, uncounted }
    }

    /// Reports whether the machines that are there are enough. `None` if they are by the limits
    /// that were counted, and one was not.
    pub fn is_enough(&self) -> Option<bool> {
        let is_enough = self.needed.is_some_and(|needed| needed <= self.known);
        (!is_enough || self.uncounted.is_empty()).then_some(is_enough)
    }

    /// Returns the part that takes most of its limit.
    pub fn fullest(&self) -> Option<&MachinePart> {
        self.parts.iter().max_by(|a, b| a.used.total_cmp(&b.used))
    }
}

impl MachineCapacity {
    /// Returns the CPUs, by which a run is divided.
    fn cpus(&self) -> f64 {
        self.cpus.max(1) as f64
    }
}

impl MachinePart {
    fn new(demand: &FleetDemand, machine: &MachineCapacity, share: f64) -> Self {
        let (used, decides) = used(demand, machine, share);
        Self {
            machine: machine.clone(),
            share,
            connections: (demand.connections as f64 * share).ceil() as u64,
            arrivals_per_s: demand.arrivals_per_s.map(|all| all * share),
            messages_per_s: demand.messages_per_s.map(|all| all * share),
            used,
            decides,
            uncounted: uncounted(demand, machine),
        }
    }
}

/// Returns how many machines a load takes; `None` if no number is enough.
fn needed(demand: &FleetDemand, machines: &[MachineCapacity]) -> Option<u64> {
    // A machine with c of C CPUs has the share c / C of the load. It fits if the share times
    // `used` is at most 1: if C >= c * used. So each machine asks for a number of CPUs.
    let (mut cpus, mut asked) = (0.0, 0.0_f64);
    for (index, machine) in machines.iter().enumerate() {
        cpus += machine.cpus();
        asked = asked.max(machine.cpus() * used(demand, machine, 1.0).0 - ROUNDING);
        if cpus >= asked {
            return Some(index as u64 + 1);
        }
    }
    if !asked.is_finite() {
        return None;
    }
    // Whole rounds of all machines, and then one after another.
    let rounds = (asked / cpus).floor();
    let mut all = rounds * cpus;
    let more = machines.iter().take_while(|machine| {
        let is_short = all < asked;
        all += machine.cpus();
        is_short
    });
    Some(rounds as u64 * machines.len() as u64 + more.count() as u64)
}

/// Returns the CPUs of so many machines like these, the first again after the last.
fn cpus_of(machines: &[MachineCapacity], count: u64) -> f64 {
    let known = machines.len() as u64;
    let sum =
        |machines: &[MachineCapacity]| machines.iter().map(MachineCapacity::cpus).sum::<f64>();
    (count / known) as f64 * sum(machines) + sum(&machines[..(count % known) as usize])
}

/// Returns how much of its deciding limit a machine takes with this share of the load, and that
/// limit, of those that are known. Arrivals and messages share the CPUs.
fn used(demand: &FleetDemand, machine: &MachineCapacity, share: f64) -> (f64, Option<PlanLimit>) {
    let part = |limit: PlanLimit| match limit.of(demand, machine) {
        (Some(all), Some(most)) if all > 0.0 => all * share / most.max(0.0),
        _ => 0.0,
    };
    let [connections, arrivals, messages] = PlanLimit::ALL.map(part);
    let (cpu, busy_with) = match arrivals > messages {
        true => (arrivals + messages, PlanLimit::Arrivals),
        false => (arrivals + messages, PlanLimit::Messages),
    };
    match (connections, cpu) {
        (0.0, 0.0) => (0.0, None),
        _ if connections >= cpu => (connections, Some(PlanLimit::Connections)),
        _ => (cpu, Some(busy_with)),
    }
}

/// Returns the limits of which it is unknown how much of them a machine takes.
fn uncounted(demand: &FleetDemand, machine: &MachineCapacity) -> Vec<PlanLimit> {
    let is_unknown = |limit: &PlanLimit| match limit.of(demand, machine) {
        (None, _) => true,
        (Some(all), most) => all > 0.0 && most.is_none(),
    };
    PlanLimit::ALL.into_iter().filter(is_unknown).collect()
}

impl PlanLimit {
    /// All limits.
    pub const ALL: [Self; 3] = [Self::Connections, Self::Arrivals, Self::Messages];

    /// Returns what the whole load takes of it, and what a plan uses of the machine at most.
    fn of(self, demand: &FleetDemand, machine: &MachineCapacity) -> (Option<f64>, Option<f64>) {
        let usable = |most: Option<f64>| most.map(|most| most * CEILING_SHARE);
        match self {
            Self::Connections => {
                (Some(demand.connections as f64), machine.connections.map(|most| most as f64))
            }
            Self::Arrivals => (demand.arrivals_per_s, usable(machine.arrivals_per_s)),
            Self::Messages => (demand.messages_per_s, usable(machine.messages_per_s)),
        }
    }

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Arrivals => "arrivals",
            Self::Messages => "messages",
        }
    }
}

/// The share of a calibration's rate that a plan uses: above it, the generator's own lateness shows
/// in what it measures.
pub const CEILING_SHARE: f64 = 0.7;
/// Far less than a CPU.
const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(connections: u64, arrivals: f64, messages: f64) -> FleetDemand {
        FleetDemand { connections, arrivals_per_s: Some(arrivals), messages_per_s: Some(messages) }
    }

    /// A machine that holds 10k connections for each of its CPUs, and the same rates.
    fn machine(cpus: usize, rate: f64) -> MachineCapacity {
        MachineCapacity {
            name: format!("of-{cpus}"),
            cpus,
            connections: Some(cpus as u64 * 10_000),
            connections_limit: Some("fds".into()),
            arrivals_per_s: Some(rate / CEILING_SHARE),
            messages_per_s: Some(10.0 * rate / CEILING_SHARE),
        }
    }

    /// Checks how many machines it takes, and by which limit.
    #[track_caller]
    fn check(
        demand: FleetDemand,
        machines: &[MachineCapacity],
        needed: Option<u64>,
        decides: PlanLimit,
    ) {
        let plan = MachinePlan::new(demand, machines);
        assert_eq!(plan.needed, needed, "{plan:#?}");
        assert_eq!(plan.fullest().unwrap().decides, Some(decides), "{plan:#?}");
        let fits = plan.parts.iter().all(|part| part.used <= 1.0 + 1e-6);
        assert_eq!(fits, needed.is_some(), "{plan:#?}");
    }

    #[test]
    fn the_limit_of_which_most_is_used_decides() {
        let four = vec![machine(2, 1_000.0); 4];
        check(demand(20_000, 10.0, 10.0), &four, Some(1), PlanLimit::Connections);
        check(demand(60_000, 1_000.0, 0.0), &four, Some(3), PlanLimit::Connections);
        check(demand(20_000, 3_001.0, 0.0), &four, Some(4), PlanLimit::Arrivals);
        check(demand(20_000, 0.0, 30_000.0), &four, Some(3), PlanLimit::Messages);
    }

    #[test]
    fn arrivals_and_messages_share_the_cpus() {
        let four = vec![machine(2, 1_000.0); 4];
        // Each takes 0.9 of one machine.
        check(demand(10, 900.0, 9_000.0), &four, Some(2), PlanLimit::Messages);
        check(demand(10, 1_000.0, 9_000.0), &four, Some(2), PlanLimit::Arrivals);
    }

    #[test]
    fn too_few_machines_are_told_how_many_more() {
        let two = vec![machine(2, 1_000.0); 2];
        check(demand(100_000, 1.0, 1.0), &two, Some(5), PlanLimit::Connections);
        check(demand(100_001, 1.0, 1.0), &two, Some(6), PlanLimit::Connections);
        check(demand(1_000_000_000, 1.0, 1.0), &two, Some(50_000), PlanLimit::Connections);
        let plan = MachinePlan::new(demand(100_000, 1.0, 1.0), &two);
        assert_eq!(plan.is_enough(), Some(false));
        assert_eq!((plan.known, plan.parts.len()), (2, 2));
        assert_eq!((plan.parts[0].connections, plan.parts[0].share), (20_000, 0.2));
    }

    #[test]
    fn machines_of_several_sizes_have_shares_by_their_cpus() {
        let mixed = [machine(2, 1_000.0), machine(6, 3_000.0)];
        let plan = MachinePlan::new(demand(80_000, 1.0, 1.0), &mixed);
        assert_eq!(plan.needed, Some(2));
        let parts: Vec<_> = plan.parts.iter().map(|part| (part.share, part.connections)).collect();
        assert_eq!(parts, [(0.25, 20_000), (0.75, 60_000)]);
        // More like them, the first again: 2, 6, 2, 6 CPUs.
        check(demand(100_000, 1.0, 1.0), &mixed, Some(3), PlanLimit::Connections);
        check(demand(160_000, 1.0, 1.0), &mixed, Some(4), PlanLimit::Connections);
        // A slow machine has its share by CPUs all the same.
        let slow = MachineCapacity { connections: Some(5_000), ..machine(2, 1_000.0) };
        check(
            demand(40_000, 1.0, 1.0),
            &[machine(2, 1_000.0), slow],
            Some(8),
            PlanLimit::Connections,
        );
    }

    #[test]
    fn no_number_of_machines_without_room_is_enough() {
        let none = MachineCapacity { connections: Some(0), ..machine(2, 1_000.0) };
        check(demand(1, 0.0, 0.0), &[none], None, PlanLimit::Connections);
    }

    #[test]
    fn what_is_unknown_is_not_counted_and_then_no_number_is_known_to_be_enough() {
        use PlanLimit::{Arrivals, Connections, Messages};
        let unknown = MachineCapacity { name: "a".into(), cpus: 2, ..MachineCapacity::default() };
        let plan = MachinePlan::new(demand(1_000_000, 1e6, 1e6), &[unknown]);
        assert_eq!((plan.needed, plan.parts[0].decides), (Some(1), None));
        assert_eq!((plan.is_enough(), plan.uncounted), (None, PlanLimit::ALL.into()));
        // An agent without a calibration: its connections are known.
        let uncalibrated =
            MachineCapacity { arrivals_per_s: None, messages_per_s: None, ..machine(2, 1_000.0) };
        let fleet = [machine(2, 1_000.0), uncalibrated];
        let check = |demand: FleetDemand, is_enough: Option<bool>, uncounted: &[PlanLimit]| {
            let plan = MachinePlan::new(demand, &fleet);
            assert_eq!((plan.is_enough(), &*plan.uncounted), (is_enough, uncounted), "{plan:#?}");
        };
        check(demand(10_000, 1.0, 1.0), Some(true), &[]);
        check(demand(40_000, 1.0, 0.0), None, &[Arrivals]);
        // What is known is enough to say no.
        check(demand(40_001, 1.0, 1.0), Some(false), &[Arrivals, Messages]);
        // The load takes as much of the first machine as the server lets it.
        let no_rates =
            FleetDemand { connections: 20_000, arrivals_per_s: None, messages_per_s: Some(1.0) };
        check(no_rates, None, &[Arrivals]);
        let plan = MachinePlan::new(no_rates, &fleet);
        assert_eq!((plan.needed, plan.fullest().unwrap().decides), (Some(1), Some(Connections)));
    }
}
