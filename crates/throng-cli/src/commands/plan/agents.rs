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
use throng_fleet::{
    CEILING_SHARE, CoordinatorProcess, KnownAgent, MachineCapacity, MachinePart, MachinePlan,
    NotReady, PlanLimit, ScenarioBundle, assess, host_name, random_id,
};
use throng_load::fleet_demand::FleetDemand;
use throng_load::run::{LoadOptions, LoadPlan};
use throng_load::scenario::{Scenario, Target};
use throng_load::schedule::MachineShare;
use throng_report::render::{Align, Table, percent, rate};

use crate::bus::BusFlags;
use crate::commands::fleet::{GATHER_TIME, no_agents};
use crate::commands::run::{AgentChoice, choose, not_free};
use crate::interrupt::Interrupt;
use crate::scenario_file::{ScenarioChanges, ScenarioFile};
use crate::{Failure, output, quantity};

/// The flags of a plan of a scenario.
#[derive(Debug, Args)]
pub(super) struct AgentsPlan {
    /// Scenario whose machines are counted, with --agents
    #[arg(value_name = "SCENARIO", requires = "agents")]
    scenario: Option<PathBuf>,
    /// Count the machines that the scenario takes: of these agents, a number, `all`, or those with
    /// a label, `label=eu`; without --bus, of machines like this one
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

/// The scenario that is planned.
struct Planned {
    scenario: Scenario,
    file: ScenarioFile,
    target: Target,
    demand: FleetDemand,
}

/// What the machines are, and what must be known about them.
struct Machines {
    capacities: Vec<MachineCapacity>,
    notes: Vec<String>,
}

impl AgentsPlan {
    /// Reports whether a scenario is planned.
    pub(super) fn is_used(&self) -> bool {
        self.agents.is_some()
    }

    pub(super) fn run(&self, as_json: bool) -> Result<(), Failure> {
        let (Some(path), Some(choice)) = (&self.scenario, &self.agents) else {
            unreachable!("clap requires both")
        };
        let planned = self.read(path)?;
        let interrupt = Interrupt::install(false)?;
        let has_bus = self.bus.bus.is_some();
        let machines = match has_bus {
            true => self.of_agents(choice, &planned, &interrupt)?,
            false => self.of_this_machine(choice, &planned, &interrupt)?,
        };
        let plan = MachinePlan::new(planned.demand, &machines.capacities);
        let more = plan.needed.map(|needed| needed.saturating_sub(plan.known));
        let value = json!({
            "plan": plan,
            "is_enough": plan.is_enough(),
            "more": more,
            "ceiling_share": CEILING_SHARE,
            "notes": machines.notes,
        });
        let verdict = match has_bus {
            true => verdict_of_agents(&plan, &path.display().to_string()),
            false => verdict_of_this(&plan),
        };
        let mut text = format!("{}: {}\n{verdict}\n\n", planned.target, show_demand(&plan.demand));
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

    fn read(&self, path: &std::path::Path) -> Result<Planned, Failure> {
        let mut file = ScenarioFile::read(path, self.target.as_ref())?;
        let scenario = file.changed(&self.changes)?;
        let options = LoadOptions { target: self.target.clone(), ..LoadOptions::default() };
        let load = LoadPlan::new(&scenario, &options)
            .map_err(|error| Failure::new(error.to_string().replace('\n', "\n  ")))?;
        let demand = FleetDemand::of(load.program(), &scenario.load);
        Ok(Planned { demand, target: load.target, scenario, file })
    }

    /// Returns the order to find out what a machine can do. No load is started.
    fn order(&self, planned: &Planned, facts: &AgentFacts) -> Result<RunOrder, Failure> {
        let Planned { scenario, file, .. } = planned;
        let bundle = ScenarioBundle::pack(scenario, &file.text, &file.name, self.changes.peak());
        let scenario = bundle.map_err(|error| {
            Failure::new(format!("a file of the scenario cannot be read any more: {error}"))
        })?;
        // As if it made the whole run: so it may have as many fd tables as that takes.
        let cores = fdtable_cores(planned.demand.connections, facts);
        Ok(RunOrder {
            scenario,
            target: self.target.as_ref().map(ToString::to_string),
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
        planned: &Planned,
        interrupt: &Interrupt,
    ) -> Result<Machines, Failure> {
        let bus = self.bus.connect("throng plan")?;
        let coordinator = format!("{}-{}", host_name(), random_id());
        let key = RunKey { run: random_id(), coordinator };
        let fleet = CoordinatorProcess::join(bus, self.bus.subjects(), key)
            .map_err(|error| Failure::new(format!("--bus: {error}")))?;
        let known = fleet.gather(GATHER_TIME, |_| false);
        if known.is_empty() {
            return Err(Failure::new(no_agents(&self.bus, &fleet)));
        }
        let chosen = choose(choice, &known)?;
        let name = |agent: &KnownAgent| agent.hello.facts.name.clone();
        let orders: Result<Vec<_>, Failure> = chosen
            .iter()
            .map(|agent| Ok((name(agent), self.order(planned, &agent.hello.facts)?)))
            .collect();
        fleet.prepare(orders?);
        let ready = fleet.await_ready(|| interrupt.requested().is_some());
        fleet.abandon();
        let ready = ready.map_err(|not| match not {
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
        })?;
        let mut notes: Vec<String> = chosen
            .iter()
            .zip(&ready)
            .filter_map(|(_, (name, readiness))| uncalibrated(name, readiness))
            .collect();
        notes.extend(shared_machines(&chosen));
        notes.extend(
            not_free(&known)
                .lines()
                .filter(|line| !line.is_empty())
                .map(|line| format!("not counted: {}", line.trim_start())),
        );
        let capacities = chosen
            .iter()
            .zip(&ready)
            .map(|(agent, (_, readiness))| capacity(&agent.hello.facts, readiness))
            .collect();
        Ok(Machines { capacities, notes })
    }

    fn of_this_machine(
        &self,
        choice: &AgentChoice,
        planned: &Planned,
        interrupt: &Interrupt,
    ) -> Result<Machines, Failure> {
        if *choice != AgentChoice::All {
            // Words about a bus: which agents it has, only a bus knows.
            self.bus.address()?;
        }
        let stop = Arc::<AtomicBool>::default();
        interrupt.also_set(&stop)?;
        let facts = AgentFacts::of_this_process(Some(host_name()), Vec::new());
        let order = self.order(planned, &facts)?;
        let readiness = assess(&order, stop).map_err(Failure::new)?;
        if interrupt.requested().is_some() {
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

            return Err(Failure::new("interrupted: nothing was planned"));
        }
        let notes = uncalibrated(&facts.name, &readiness).into_iter().collect();
        Ok(Machines { capacities: vec![capacity(&facts, &readiness)], notes })
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

fn capacity(facts: &AgentFacts, readiness: &Readiness) -> MachineCapacity {
    let ceiling = readiness.ceiling.as_ref();
    MachineCapacity {
        name: facts.name.clone(),
        cpus: facts.cpus,
        connections: readiness.capacity,
        connections_limit: readiness.capacity_limit.clone(),
        arrivals_per_s: ceiling.and_then(|ceiling| ceiling.connects_per_s),
        messages_per_s: ceiling.and_then(|ceiling| ceiling.messages_per_s),
    }
}

fn uncalibrated(name: &str, readiness: &Readiness) -> Option<String> {
    let why = readiness.uncalibrated.as_ref()?;
    Some(format!("{name} is not calibrated, its rates limit nothing here: {why}"))
}

/// Names agents that share a machine: each of them counts its memory and ports.
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
                "{} share a machine: they measured at the same time, and each counts all of its \
                 memory",
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
    match plan.needed {
        None => format!("No number of agents like these is enough{}", by(plan)),
        Some(needed) if plan.is_enough() => format!(
            "{needed} of {} {} enough{}: throng run {scenario} --agents {needed}",
            agents(known),
            plural(needed, "is", "are"),
            by(plan)
        ),
        Some(needed) => {
            let more = needed - known;
            format!(
                "{} {} not enough: {more} more like {}, {needed} in all{}",
                agents(known),
                plural(known, "is", "are"),
                plural(known, "it", "them"),
                by(plan)
            )
        }
    }
}

fn verdict_of_this(plan: &MachinePlan) -> String {
    match plan.needed {
        None => format!("No number of machines like this one is enough{}", by(plan)),
        Some(1) => format!("One machine like this one is enough{}", by(plan)),
        Some(needed) => format!("It takes {needed} machines like this one{}", by(plan)),
    }
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
