//! `throng plan SCENARIO --agents`: the machines that a scenario takes, from what agents, or this
//! machine, can do.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use throng_base::units::{plural, show_count};
use throng_driver::fdtable;
use throng_fleet::message::{AgentFacts, Readiness, RunKey, RunOrder};
use throng_fleet::shared_limits;
use throng_fleet::{
    CEILING_SHARE, CoordinatorProcess, KnownAgent, MachineCapacity, MachinePart, MachinePlan,
    NotReady, PlanLimit, ScenarioBundle, assess, host_name, process_name, random_id,
};
use throng_load::fleet_demand::FleetDemand;
use throng_load::run::{LoadOptions, LoadPlan};
use throng_load::scenario::{Scenario, Target};
use throng_load::schedule::MachineShare;
use throng_report::render::{Align, Table, percent, rate};

use crate::bus::BusFlags;
use crate::commands::fleet::{GATHER_TIME, no_agents};
use crate::commands::run::{AgentChoice, choose};
use crate::interrupt::Interrupt;
use crate::scenario_file::{ScenarioChanges, ScenarioFile};
use crate::scenario_warning::ScenarioWarning;
use crate::{Failure, output, quantity};

/// The flags of a plan of a scenario.
#[derive(Debug, Args)]
pub(super) struct AgentsPlan {
    /// Scenario to work out the machines for, with --agents
    #[arg(value_name = "SCENARIO", requires = "agents")]
    scenario: Option<PathBuf>,
    /// Work out how many machines the scenario needs: of these agents (a number, `all`, or those
    /// with a label, `label=eu`); without --bus, of machines like this one
    #[arg(long, value_name = "N|all|label=NAME", num_args = 0..=1, default_missing_value = "all",
        requires = "scenario")]
    agents: Option<AgentChoice>,
    /// With --agents: target in place of the scenario's
    #[arg(long, value_name = "URL", requires = "agents")]
    target: Option<Target>,
    #[command(flatten)]
    changes: ScenarioChanges,
    /// With --agents: time for measuring what each machine can do
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = quantity::calibration,
        requires = "agents")]
    calibrate: Duration,
    #[command(flatten)]
    bus: BusFlags,
}

/// The scenario that is input.
struct PlanInput {
    scenario: Scenario,
    file: ScenarioFile,
    target: Target,
    demand: FleetDemand,
    warnings: Vec<ScenarioWarning>,
}

/// What the machines are, and what must be known about them.
struct Machines {
    capacities: Vec<MachineCapacity>,
    notes: Vec<String>,
}

impl AgentsPlan {
    /// Reports whether a scenario is input.
    pub(super) fn is_used(&self) -> bool {
        self.agents.is_some()
    }

    /// Refuses the flag `--bus` without `--agents`. In the environment, a bus is for other
    /// commands.
    pub(super) fn refuse_bus(&self) -> Result<(), Failure> {
        if self.bus.is_typed() {
            return Err(Failure::new(
                "--bus is for a plan of a scenario: throng plan SCENARIO --agents all --bus URL",
            ));
        }
        Ok(())
    }

    pub(super) fn run(&self, as_json: bool) -> Result<(), Failure> {
        let (Some(path), Some(choice)) = (&self.scenario, &self.agents) else {
            unreachable!("clap requires both")
        };
        let input = self.read(path)?;
        let interrupt = Interrupt::install(false)?;
        let has_bus = self.bus.bus.is_some();
        let machines = match has_bus {
            true => self.of_agents(choice, &input, &interrupt)?,
            false => self.of_this_machine(choice, &input, &interrupt)?,
        };
        let plan = MachinePlan::new(input.demand, &machines.capacities);
        let is_enough = plan.is_enough();
        let more = plan.needed.map(|needed| needed.saturating_sub(plan.known));
        let value = json!({
            "plan": plan,
            "is_enough": is_enough,
            "more": more.filter(|_| is_enough.is_some()),
            "ceiling_share": CEILING_SHARE,
            "notes": machines.notes,
            "warnings": input.warnings,
        });
        let verdict = match has_bus {
            true => verdict_of_agents(&plan, &path.display().to_string()),
            false => verdict_of_this(&plan),
        };
        let mut text = format!("{}: {}\n{verdict}\n\n", input.target, show_demand(&plan.demand));
        text += &table(&plan).to_string();
        text += &format!(
            "connections: by the limits of each machine; arrivals and messages: {} of what it \
             measured now, of which both take a part",
            percent(CEILING_SHARE)
        );
        machines.notes.iter().for_each(|note| text += &format!("\n{note}"));
        output::say_either(as_json, &value, text);
        Ok(())
    }

    fn read(&self, path: &std::path::Path) -> Result<PlanInput, Failure> {
        let mut file = ScenarioFile::read(path, self.target.as_ref())?;
        let scenario = file.changed(&self.changes)?;
        let options = LoadOptions { target: self.target.clone(), ..LoadOptions::default() };
        let load = LoadPlan::new(&scenario, &options)
            .map_err(|error| Failure::new(error.to_string().replace('\n', "\n  ")))?;
        let demand = FleetDemand::of(load.program(), &scenario.load);
        let warnings = ScenarioWarning::of_program(load.program(), &file.text);
        Ok(PlanInput { demand, target: load.target, scenario, file, warnings })
    }

    /// Returns the order to find out what a machine can do. No load is started.
    fn order(&self, input: &PlanInput, facts: &AgentFacts) -> Result<RunOrder, Failure> {
        let PlanInput { scenario, file, .. } = input;
        let bundle = ScenarioBundle::pack(scenario, &file.text, &file.name, self.changes.peak());
        let scenario = bundle.map_err(|error| {
            Failure::new(format!("a file of the scenario cannot be read any more: {error}"))
        })?;
        // As if it made the whole run: so it may have as many fd tables as that takes.
        let cores = fdtable_cores(input.demand.connections, facts);
        Ok(RunOrder {
            scenario,
            target: self.target.as_ref().map(Target::url),
            seed: 1,
            share: MachineShare::whole(cores),
            interval_ms: 1_000,
            calibrate_ms: Some(self.calibrate.as_millis().try_into().unwrap_or(u64::MAX)),
            force: true,
            // Nothing is sent to the target.
            is_allowed: true,
        })
    }

    fn of_agents(
        &self,
        choice: &AgentChoice,
        input: &PlanInput,
        interrupt: &Interrupt,
    ) -> Result<Machines, Failure> {
        let bus = self.bus.connect("throng plan")?;
        let key = RunKey { run: random_id(), coordinator: process_name() };
        let fleet = CoordinatorProcess::join(bus, self.bus.subjects(), key)
            .map_err(|error| Failure::new(format!("--bus: {error}")))?;
        let known = fleet.gather(GATHER_TIME, |_| false);
        if known.is_empty() {
            return Err(Failure::new(no_agents(&self.bus, &fleet)));
        }
        let chosen = choose(choice, &known)?;
        let name = |agent: &KnownAgent| agent.hello.facts.name.to_string();
        let orders: Result<Vec<_>, Failure> = chosen
            .iter()
            .map(|agent| Ok((name(agent), self.order(input, &agent.hello.facts)?)))
            .collect();
        fleet.prepare(orders?);
        let ready = fleet.await_ready(|| interrupt.requested().is_some());
        fleet.abandon();
        let ready = ready.map_err(unplanned)?;
        let each = || chosen.iter().zip(&ready);
        let mut notes: Vec<String> =
            each().filter_map(|(_, (name, readiness))| uncalibrated(name, readiness)).collect();
        notes.extend(shared_machines(&chosen));
        notes.extend(known.values().filter_map(|agent| {
            Some(format!("not counted: {}: {}", name(agent), agent.why_not_free()?))
        }));
        let facts: Vec<_> = chosen.iter().map(|agent| &agent.hello.facts).collect();
        Ok(Machines { capacities: capacities(&facts, &ready), notes })
    }

    fn of_this_machine(
        &self,
        choice: &AgentChoice,
        input: &PlanInput,
        interrupt: &Interrupt,
    ) -> Result<Machines, Failure> {
        if *choice != AgentChoice::All {
            // Words about a bus: which agents it has, only a bus knows.
            self.bus.address()?;
        }
        let stop = Arc::<AtomicBool>::default();
        interrupt.also_set(&stop)?;
        let facts = AgentFacts::of_this_process(Some(host_name()), Vec::new());
        let order = self.order(input, &facts)?;
        let readiness = assess(&order, stop).map_err(Failure::new)?;
        if interrupt.requested().is_some() {
            return Err(Failure::new("interrupted: nothing was planned"));
        }
        let notes = uncalibrated(&facts.name, &readiness).into_iter().collect();
        let ready = [(facts.name.to_string(), readiness)];
        Ok(Machines { capacities: capacities(&[&facts], &ready), notes })
    }
}

/// Says why the agents did not tell what they can do.
fn unplanned(not: NotReady) -> Failure {
    match not {
        NotReady::Denied(denial) => Failure::new(format!("--bus: {denial}")),
        NotReady::Interrupted => Failure::new("interrupted: nothing was planned"),
        NotReady::Refused(agents) => {
            let lines = agents.iter().map(|(name, why)| {
                format!("\n  agent {name}: {}", why.trim_end().replace('\n', "\n    "))
            });
            Failure::new(format!(
                "{} {} cannot tell what this scenario takes{}",
                agents.len(),
                plural(agents.len() as u64, "agent", "agents"),
                lines.collect::<String>()
            ))
        }
    }
}

/// Returns the number of cores with which a machine holds so many connections, or comes nearest to
/// it.
fn fdtable_cores(connections: u64, facts: &AgentFacts) -> usize {
    let cpus = facts.cpus.max(1);
    let times = connections.div_ceil((cpus as u64 * facts.fds).max(1)).max(1) as usize;
    let most = (fdtable::CORES_MAX / cpus).max(1);
    cpus * times.min(most)
}

/// Returns what each machine can do, beside the others where they share a limit.
fn capacities(facts: &[&AgentFacts], ready: &[(String, Readiness)]) -> Vec<MachineCapacity> {
    let each = facts.iter().zip(ready).zip(shared_limits::capacities(ready));
    each.map(|((facts, (_, readiness)), shared)| {
        let ceiling = readiness.ceiling.as_ref();
        MachineCapacity {
            name: facts.name.to_string(),
            cpus: facts.cpus,
            connections: shared.connections,
            connections_limit: shared.limit,
            arrivals_per_s: ceiling.and_then(|ceiling| ceiling.connects_per_s),
            messages_per_s: ceiling.and_then(|ceiling| ceiling.messages_per_s),
        }
    })
    .collect()
}

fn uncalibrated(name: &str, readiness: &Readiness) -> Option<String> {
    let why = readiness.uncalibrated.as_ref()?;
    Some(format!("{name} is not calibrated, its rates are not counted: {why}"))
}

/// Names agents that share a machine: its CPUs are in the rates of each of them.
fn shared_machines(chosen: &[&KnownAgent]) -> Vec<String> {
    let facts = || chosen.iter().map(|agent| &agent.hello.facts);
    let mut notes = Vec::new();
    for (index, one) in facts().enumerate() {
        let is_same = |other: &&AgentFacts| one.boot_id.is_some() && one.boot_id == other.boot_id;
        if facts().take(index).any(|other| is_same(&other)) {
            continue;
        }
        let names: Vec<_> = facts().filter(is_same).map(|it| it.name.as_str()).collect();
        if names.len() > 1 {
            notes.push(format!(
                "{} share a machine: they measured one another at the same time",
                names.join(", ")
            ));
        }
    }
    notes
}

fn show_demand(demand: &FleetDemand) -> String {
    let each = |per_s: Option<f64>, what: &str| match per_s {
        Some(per_s) => format!("{} {what}", rate(per_s)),
        None => format!("{what} as fast as the server answers"),
    };
    format!(
        "{} connections, {}, {}",
        show_count(demand.connections),
        each(demand.arrivals_per_s, "arrivals"),
        each(demand.messages_per_s, "messages")
    )
}

/// Returns how many of the agents are enough, or how many more it takes.
fn verdict_of_agents(plan: &MachinePlan, scenario: &str) -> String {
    let known = plan.known;
    let agents = |n: u64| format!("{n} {}", plural(n, "agent", "agents"));
    let why = format!("{}{}", by(plan), not_counted(plan));
    match (plan.needed, plan.is_enough()) {
        (None, _) => format!("No number of agents like these is enough{why}"),
        (Some(needed), Some(true)) => format!(
            "{needed} of {} {} enough{why}: throng run {scenario} --agents {needed}",
            agents(known),
            plural(needed, "is", "are"),
        ),
        (Some(needed), None) => {
            format!("It takes at least {needed} of {}, and perhaps more{why}", agents(known))
        }
        (Some(needed), Some(false)) => {
            let more = needed - known;
            format!(
                "{} {} not enough: {} more like {}, {needed} in all{why}",
                agents(known),
                plural(known, "is", "are"),
                at_least(plan, more),
                plural(known, "it", "them"),
            )
        }
    }
}

fn verdict_of_this(plan: &MachinePlan) -> String {
    let why = format!("{}{}", by(plan), not_counted(plan));
    match plan.needed {
        None => format!("No number of machines like this one is enough{why}"),
        Some(1) if plan.uncounted.is_empty() => {
            format!("One machine like this one is enough{why}")
        }
        Some(needed) => format!(
            "It takes {} {} like this one{why}",
            at_least(plan, needed),
            plural(needed, "machine", "machines")
        ),
    }
}

/// Shows a number of machines, which is the least one if a limit was not counted.
fn at_least(plan: &MachinePlan, number: u64) -> String {
    if plan.uncounted.is_empty() { number.to_string() } else { format!("at least {number}") }
}

/// Says which limit decides the number of machines.
fn by(plan: &MachinePlan) -> String {
    let decides = plan.fullest().and_then(|part| Some((part, part.decides?)));
    decides.map_or_else(String::new, |(part, limit)| match limit {
        PlanLimit::Connections => format!(
            "; connections decide ({})",
            part.machine.connections_limit.as_deref().unwrap_or("limits")
        ),
        PlanLimit::Arrivals | PlanLimit::Messages => {
            format!("; {} decide (CPU time)", limit.name())
        }
    })
}

/// Says which limits were not counted, and why.
fn not_counted(plan: &MachinePlan) -> String {
    let of = |limit: &PlanLimit| {
        let is_unbounded = match limit {
            PlanLimit::Connections => false,
            PlanLimit::Arrivals => plan.demand.arrivals_per_s.is_none(),
            PlanLimit::Messages => plan.demand.messages_per_s.is_none(),
        };
        let why = match is_unbounded {
            true => "the scenario sets no rate",
            false => "not every machine was measured",
        };
        format!("; {} were not counted ({why})", limit.name())
    };
    plan.uncounted.iter().map(of).collect()
}

/// Returns a row for each machine that is needed and there.
fn table(plan: &MachinePlan) -> Table {
    let right = Align::Right;
    let mut table = Table::with_head([
        "agent",
        "CPUs",
        "share",
        "connections",
        "arrivals",
        "messages",
        "used",
        "left",
        "decides",
    ])
    .aligned(&[Align::Left, right, right, right, right, right, right, right, Align::Left]);
    for part in &plan.parts {
        let MachinePart { machine, used, .. } = part;
        let rates = |all: Option<f64>, most: Option<f64>| match (all, most) {
            (Some(0.0), _) => "none".to_owned(),
            (all, most) => of(
                all.map_or_else(|| "any".to_owned(), rate),
                most.map(|most| rate(most * CEILING_SHARE)),
            ),
        };
        table.row([
            machine.name.clone(),
            machine.cpus.to_string(),
            percent(part.share),
            of(show_count(part.connections), machine.connections.map(show_count)),
            rates(part.arrivals_per_s, machine.arrivals_per_s),
            rates(part.messages_per_s, machine.messages_per_s),
            percent(*used),
            percent((1.0 - used).max(0.0)),
            part.decides.map_or("unknown", PlanLimit::name).to_owned(),
        ]);
    }
    table
}

/// Shows a part and the most: `2k of 56k`.
fn of(part: String, most: Option<String>) -> String {
    most.map_or_else(|| format!("{part} of ?"), |most| format!("{part} of {most}"))
}

#[cfg(test)]
mod tests {
    use throng_fleet::SharedLimit;

    use super::*;

    fn machine(rate: Option<f64>) -> MachineCapacity {
        MachineCapacity {
            name: "one".to_owned(),
            cpus: 2,
            connections: Some(1_000),
            connections_limit: Some("fds".to_owned()),
            arrivals_per_s: rate,
            messages_per_s: rate,
        }
    }

    fn plan(connections: u64, messages_per_s: Option<f64>, rate: Option<f64>) -> MachinePlan {
        let demand = FleetDemand { connections, arrivals_per_s: Some(1.0), messages_per_s };
        MachinePlan::new(demand, &[machine(rate)])
    }

    #[test]
    fn agents_that_share_a_limit_are_not_counted_with_all_of_it_each() {
        let facts = AgentFacts::default();
        let memory = SharedLimit {
            limit: throng_bus::Text::cut("memory"),
            place: throng_bus::Text::cut("m"),
            connections: 900,
        };
        let readiness = Readiness {
            capacity: Some(900),
            capacity_limit: Some("fds".into()),
            shared_limits: vec![memory],
            ..Readiness::default()
        };
        let ready = ["a", "b"].map(|name| (name.to_owned(), readiness.clone()));
        let held = capacities(&[&facts; 2], &ready);
        assert!(held.iter().all(|it| it.connections == Some(450)), "{held:?}");
        assert!(held.iter().all(|it| it.connections_limit.as_deref() == Some("memory")));
    }

    #[test]
    fn a_verdict_says_which_limit_was_not_counted() {
        let known = plan(500, Some(1.0), Some(1e6));
        assert_eq!(
            verdict_of_agents(&known, "s.yaml"),
            "1 of 1 agent is enough; connections decide (fds): throng run s.yaml --agents 1"
        );
        let uncalibrated = plan(500, Some(1.0), None);
        assert_eq!(
            verdict_of_agents(&uncalibrated, "s.yaml"),
            "It takes at least 1 of 1 agent, and perhaps more; connections decide (fds); arrivals \
             were not counted (not every machine was measured); messages were not counted (not \
             every machine was measured)"
        );
        let unbounded = plan(2_500, None, Some(1e6));
        assert_eq!(
            verdict_of_agents(&unbounded, "s.yaml"),
            "1 agent is not enough: at least 2 more like it, 3 in all; connections decide (fds); \
             messages were not counted (the scenario sets no rate)"
        );
        assert_eq!(
            verdict_of_this(&unbounded),
            "It takes at least 3 machines like this one; connections decide (fds); messages were \
             not counted (the scenario sets no rate)"
        );
        assert_eq!(
            verdict_of_this(&known),
            "One machine like this one is enough; connections decide (fds)"
        );
    }
}
