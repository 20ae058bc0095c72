//! The machines of a fleet compared with one another: they load one server at the same time, so
//! what one of them sees alone is its own.

use throng_measure::finding::listed;
use throng_measure::validity::LAG_DEGRADED_US;
use throng_measure::{MachineInterval, MachineUse};

use crate::run_view::RunView;

/// A sign of a slow machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlowSign {
    /// It acted later than intended. No server causes that.
    Lag,
    /// Its users waited for longer than those of the other machines.
    Latency,
}

/// Machines that are slow while others are not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SlowMachines {
    pub(crate) sign: SlowSign,
    /// Their names, in the order of the run.
    pub(crate) names: Vec<String>,
    /// Machines of the run.
    pub(crate) of: usize,
    /// The worst p99 of one of them, in microseconds.
    pub(crate) worst_us: u64,
    /// The worst p99 of the others in the same intervals.
    pub(crate) others_us: u64,
    /// The first interval in which one of them was slow.
    pub(crate) first_ms: u64,
    /// The largest use of one core on them, as a share of a CPU.
    pub(crate) busiest_core: Option<f64>,
    /// The largest use of all CPUs of one of them, 0 to 1.
    pub(crate) cpus_busy: Option<f64>,
}

impl SlowMachines {
    /// Returns the machines that lag while others are on time, or else those whose users wait while
    /// the users of others do not. At least half of the machines must be fine.
    pub(crate) fn of(run: &RunView<'_>) -> Option<Self> {
        Self::by(run, SlowSign::Lag).or_else(|| Self::by(run, SlowSign::Latency))
    }

    fn by(run: &RunView<'_>, sign: SlowSign) -> Option<Self> {
        let machines = &run.header.machines;
        let mut slow_in = vec![Vec::new(); machines.len()];
        let mut compared = vec![0; machines.len()];
        for (step, (_, now)) in run.steps().enumerate() {
            let Some(load) = now.load() else { continue };
            let values: Vec<Option<u64>> =
                machines.iter().map(|machine| sign.value(named(load, &machine.name)?)).collect();
            let mut known: Vec<u64> = values.iter().copied().flatten().collect();
            if known.len() < 2 {
                continue;
            }
            known.sort_unstable();
            // Of two, the better one: at least half of the machines are at this or below it.
            let usual_us = known[(known.len() - 1) / 2];
            for (machine, value) in values.iter().enumerate() {
                let Some(us) = value else { continue };
                compared[machine] += 1;
                if sign.is_slow(*us, usual_us) {
                    slow_in[machine].push(step);
                }
            }
        }
        let is_slow = |machine: usize| {
            let times = slow_in[machine].len();
            times >= INTERVALS_MIN && times * SLOW_ONE_IN >= compared[machine]
        };
        let slow: Vec<usize> = (0..machines.len()).filter(|machine| is_slow(*machine)).collect();
        if slow.is_empty() || slow.len() * 2 > machines.len() {
            return None;
        }
        let names: Vec<_> = slow.iter().map(|machine| machines[*machine].name.clone()).collect();
        let mut found = Self {
            sign,
            of: machines.len(),
            worst_us: 0,
            others_us: 0,
            first_ms: 0,
            busiest_core: None,
            cpus_busy: None,
            names,
        };
        found.measure(run, slow.iter().flat_map(|machine| slow_in[*machine].iter().copied()));
        Some(found)
    }

    /// Measures the machines in the intervals in which one of them was slow.
    fn measure(&mut self, run: &RunView<'_>, slow_in: impl Iterator<Item = usize>) {
        let mut slow_in: Vec<usize> = slow_in.collect();
        slow_in.sort_unstable();
        slow_in.dedup();
        let steps: Vec<_> = run.steps().collect();
        let mut others = Vec::new();
        for (before, now) in slow_in.iter().map(|step| steps[*step]) {
            let (Some(load), Some(before)) = (now.load(), before.load()) else { continue };
            for machine in &load.machines {
                let Some(us) = self.sign.value(machine) else { continue };
                if !self.names.contains(&machine.name) {
                    others.push(us);
                    continue;
                }
                if self.first_ms == 0 {
                    self.first_ms = now.interval.at_ms;
                }
                self.worst_us = self.worst_us.max(us);
                let core = machine.busiest_core_permille.map(|permille| permille as f64 / 1000.0);
                self.busiest_core = most(self.busiest_core, core);
                let used = named(before, &machine.name).and_then(|before| {
                    busy_share(before.machine.as_ref()?, machine.machine.as_ref()?)
                });
                self.cpus_busy = most(self.cpus_busy, used);
            }
        }
        others.sort_unstable();
        // One bad second of one of many is not what the others are like.
        self.others_us = others.get(others.len() * 9 / 10).or(others.last()).copied().unwrap_or(0);
    }

    /// Names the machines: `the machine a3 (1 of 4)`, `3 of 40 machines (a3, a7 and a9)`.
    pub(crate) fn describe(&self) -> String {
        match &self.names[..] {
            [one] => format!("the machine {one} (1 of {})", self.of),
            all => format!("{} of {} machines ({})", all.len(), self.of, listed(all)),
        }
    }
}

impl SlowSign {
    /// Returns the value of a machine in an interval, if it was measured.
    fn value(self, machine: &MachineInterval) -> Option<u64> {
        let of = match self {
            Self::Lag => machine.lag_us_p99,
            Self::Latency => machine.message_us_p99.or(machine.connect_us_p99),
        };
        of.filter(|_| !machine.lost)
    }

    fn is_slow(self, us: u64, usual_us: u64) -> bool {
        let least_us = match self {
            Self::Lag => LAG_DEGRADED_US,
            Self::Latency => LATENCY_MIN_US,
        };
        us > usual_us.saturating_mul(TIMES_MIN).max(least_us)
    }
}

/// Returns the number of machines of a fleet whose users waited for longer than `us` in an
/// interval.
pub(crate) fn machines_that_waited(run: &RunView<'_>, us: u64) -> usize {
    let waited = |name: &str| {
        let loads = || run.samples().iter().filter_map(|sample| sample.load());
        let mut own = loads().filter_map(|load| named(load, name));
        own.any(|machine| SlowSign::Latency.value(machine).is_some_and(|waited| waited > us))
    };
    run.header.machines.iter().filter(|machine| waited(&machine.name)).count()
}

/// Returns the largest share of CPU time of one machine of a fleet in one interval, with its name.
pub(crate) fn busiest_machine(run: &RunView<'_>) -> Option<(String, f64)> {
    let shares = run.steps().flat_map(|(before, now)| {
        let machines = now.load().map_or(&[][..], |load| &load.machines);
        machines.iter().filter_map(move |machine| {
            let before = named(before.load()?, &machine.name)?;
            let share = busy_share(before.machine.as_ref()?, machine.machine.as_ref()?)?;
            Some((machine.name.clone(), share))
        })
    });
    shares.max_by(|one, other| one.1.total_cmp(&other.1))
}

fn named<'a>(load: &'a throng_measure::LoadInterval, name: &str) -> Option<&'a MachineInterval> {
    load.machines.iter().find(|machine| machine.name == name)
}

/// Returns the share of a machine's CPU time that was not idle. The time that a hypervisor took is
/// not idle.
fn busy_share(before: &MachineUse, now: &MachineUse) -> Option<f64> {
    let idle = now.cpu_idle_us.saturating_sub(before.cpu_idle_us);
    let busy = now.cpu_busy_us.saturating_sub(before.cpu_busy_us)
        + now.cpu_stolen_us.saturating_sub(before.cpu_stolen_us);
    (idle + busy > 0).then(|| busy as f64 / (idle + busy) as f64)
}

fn most(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    }
}

/// The fewest intervals in which a slow machine was slow.
const INTERVALS_MIN: usize = 3;
/// How many times the usual value a slow machine has at least.
const TIMES_MIN: u64 = 4;
/// A machine is slow if it was so in one of so many intervals.
const SLOW_ONE_IN: usize = 4;
/// The shortest wait that stands out: less may be the way between machine and server.
const LATENCY_MIN_US: u64 = 50_000;
