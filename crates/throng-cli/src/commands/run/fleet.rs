//! `throng run --bus`: the agents of a fleet make the run, and this process records it.

use std::collections::BTreeMap;

use throng_base::Instant;
use throng_base::units::{plural, show_count, show_duration};
use throng_bus::{BusError, Name};
use throng_fleet::message::{HeldRun, Hello, Readiness, RunKey, RunOrder};
use throng_fleet::shared_limits::{self, SharedShortage};
use throng_fleet::{
    CoordinatorProcess, FleetLoad, KnownAgent, NotReady, START_AFTER, ScenarioBundle, process_name,
    random_id,
};
use throng_load::scenario::Target;
use throng_load::schedule::{MachineShare, RUN_CORES_MAX};
use throng_measure::RunMachine;
use throng_measure::runfile::Ceiling;
use throng_report::render::{Align, Table, count, micros, percent};
use throng_run::recorder::ResumedRun;

use super::flags::Run;
use super::fleet_flags::AgentChoice;
use super::plan::RunPlan;
use crate::Failure;
use crate::commands::fleet::{GATHER_TIME, no_agents};
use crate::interrupt::Interrupt;

/// A fleet that is ready to begin.
pub(super) struct ReadyFleet {
    pub(super) fleet: CoordinatorProcess,
    /// Number of the run, the same on all machines.
    pub(super) number: u64,
    /// Lines about the agents, for the user.
    pub(super) notes: Vec<String>,
}

impl Run {
    /// Finds the agents, lets them get ready, and completes the plan's header by what they say.
    pub(super) fn assemble(
        &self,
        plan: &mut RunPlan,
        interrupt: &Interrupt,
    ) -> Result<Option<ReadyFleet>, Failure> {
        let Some(choice) = &self.fleet.agents else { return Ok(None) };
        let (fleet, key, known) = self.gather(choice)?;
        let run = key.run;
        let number = u64::from_str_radix(&run, 16).unwrap_or_default();
        let chosen = choose(choice, &known)?;
        self.note(&format!(
            "run {run}: {} {}, {} CPUs: {}",
            chosen.len(),
            plural(chosen.len() as u64, "agent", "agents"),
            chosen.iter().map(|agent| agent.hello.facts.cpus).sum::<usize>(),
            chosen
                .iter()
                .map(|agent| agent.hello.facts.name.as_str())
                .collect::<Vec<_>>()
                .join(" ")
        ));
        let orders = self.orders(plan, &chosen)?;
        let shares: Vec<_> = orders.iter().map(|(_, order)| order.share).collect();
        fleet.prepare(orders);
        let ready = match fleet.await_ready(|| interrupt.requested().is_some()) {
            Ok(ready) => ready,
            Err(not) => {
                // The others are free at once for another run.
                fleet.abandon();
                return Err(match not {
                    NotReady::Refused(agents) => refused(&agents),
                    NotReady::Denied(denial) => Failure::new(format!("--bus: {denial}")),
                    NotReady::Interrupted => Failure::new("interrupted: the run was not started"),
                });
            }
        };
        let short: Vec<_> = ready
            .iter()
            .filter_map(|(name, it)| Some((name.clone(), it.refusal.clone()?)))
            .collect();
        if !short.is_empty() {
            fleet.abandon();
            return Err(refused(&short));
        }
        let shared = shared_limits::shortages(&ready);
        if !shared.is_empty() && !self.force {
            fleet.abandon();
            return Err(sharing(&shared));
        }
        let notes = notes(&ready);
        complete(plan, &run, &chosen, &shares, &ready);
        Ok(Some(ReadyFleet { fleet, number, notes }))
    }

    /// Returns the parts of the agents that would make the run, for `--dry-run`: a row for each.
    /// `None` if this machine would make it.
    pub(super) fn shares(&self, plan: &RunPlan) -> Result<Option<Table>, Failure> {
        let Some(choice) = &self.fleet.agents else { return Ok(None) };
        let (_fleet, _, known) = self.gather(choice)?;
        let chosen = choose(choice, &known)?;
        let cores = self.cores(plan, &chosen);
        let all: usize = cores.iter().sum();
        let connections = plan.load.capacity.demand.connections as f64;
        let mut table =
            Table::with_head(["agent", "host", "CPUs", "cores", "share", "connections"]).aligned(
                &[Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Right],
            );
        for (agent, cores) in chosen.iter().zip(cores) {
            let facts = &agent.hello.facts;
            let share = cores as f64 / all.max(1) as f64;
            table.row([
                facts.name.to_string(),
                facts.host.to_string(),
                facts.cpus.to_string(),
                cores.to_string(),
                percent(share),
                count(connections * share),
            ]);
        }
        Ok(Some(table))
    }

    /// Joins the group, and asks its agents who they are.
    fn gather(
        &self,
        choice: &AgentChoice,
    ) -> Result<(CoordinatorProcess, RunKey, BTreeMap<String, KnownAgent>), Failure> {
        let bus = self.fleet.bus.connect("throng run")?;
        let key = RunKey { run: random_id(), coordinator: process_name() };
        let fleet = CoordinatorProcess::join(bus, self.fleet.bus.subjects(), key.clone())
            .map_err(lost)?
            .with_lost_wait(self.fleet.lost_wait);
        let known = fleet.gather(
            GATHER_TIME,
            |known| matches!(choice, AgentChoice::Count(count) if free(known).len() >= *count),
        );
        if known.is_empty() {
            return Err(Failure::new(no_agents(&self.fleet.bus, &fleet)));
        }
        Ok((fleet, key, known))
    }

    /// Returns the number of cores of each agent.
    fn cores(&self, plan: &RunPlan, chosen: &[&KnownAgent]) -> Vec<usize> {
        match self.cores {
            Some(cores) => vec![cores; chosen.len()],
            None => cores_of(plan.load.capacity.demand.connections, chosen),
        }
    }

    /// Takes over the run `id` from its agents, of which `resumed` was recorded so far. Returns its
    /// load and the moment at which it began.
    pub(super) fn take_over(
        &self,
        id: &str,
        plan: &RunPlan,
        resumed: &ResumedRun,
    ) -> Result<(FleetLoad, Instant), Failure> {
        let (header, path) = (&resumed.header, self.record.display());
        if header.id.as_deref() != Some(id) {
            let has = header.id.as_deref().map_or_else(
                || "a run of one machine".to_owned(),
                |other| format!("the run {other}"),
            );
            return Err(Failure::new(format!(
                "--resume {id}: {path} has {has}; name the run file of run {id} with --record"
            )));
        }
        if header.scenario.source != plan.header.scenario.source {
            return Err(Failure::new(format!(
                "--resume {id}: {} is not the scenario of the run; its text is in the first \
                 line of {path}",
                self.scenario.display()
            )));
        }
        let bus = self.fleet.bus.connect("throng run --resume")?;
        let run = Name::new(id).map_err(|error| Failure::new(format!("--resume {error}")))?;
        let key = RunKey { run, coordinator: process_name() };
        let fleet = CoordinatorProcess::join(bus, self.fleet.bus.subjects(), key)
            .map_err(lost)?
            .with_lost_wait(self.fleet.lost_wait);
        // An agent that is away is not waited for longer than this.
        let known = fleet.gather(GATHER_TIME, |_| false);
        if resumed.has_ended && has_all(&known, resumed, id) {
            return Err(Failure::new(format!(
                "--resume {id}: there is nothing to collect: {path} has all that the agents \
                 measured\n  `throng report {path}` shows it"
            )));
        }
        let cores: Vec<_> = header.machines.iter().map(|machine| machine.cores as usize).collect();
        let names = header.machines.iter().map(|machine| machine.name.clone());
        let machines: Vec<_> = names.zip(MachineShare::deal(&cores)).collect();
        let recorded = resumed.intervals.iter().filter_map(|interval| interval.load.as_ref());
        fleet.resume(&plan.load, &machines, recorded).ok_or_else(|| {
            Failure::new(format!(
                "--resume {id}: no agent has anything of this run any more\n  they keep it for an \
                 hour; `throng report {path}` shows what was recorded"
            ))
        })
    }

    /// Returns what each agent has to do.
    fn orders(
        &self,
        plan: &RunPlan,
        chosen: &[&KnownAgent],
    ) -> Result<Vec<(String, RunOrder)>, Failure> {
        let bundle = ScenarioBundle::pack(
            &plan.scenario,
            &plan.header.scenario.source,
            &plan.header.scenario.path,
            plan.peak,
        );
        let bundle = bundle.map_err(|error| {
            Failure::new(format!("a file of the scenario cannot be read any more: {error}"))
        })?;
        let cores = self.cores(plan, chosen);
        let all = cores.iter().fold(0_usize, |sum, cores| sum.saturating_add(*cores));
        if all > RUN_CORES_MAX {
            return Err(Failure::new(format!(
                "the agents have {all} cores together: a run has {RUN_CORES_MAX} at most; choose \
                 fewer agents, or set --cores"
            )));
        }
        let shares = MachineShare::deal(&cores);
        let calibrate_ms =
            (!self.no_calibrate).then(|| self.calibrate.as_millis().try_into().unwrap_or(u64::MAX));
        let order = |share| RunOrder {
            scenario: bundle.clone(),
            target: self.target.as_ref().map(Target::url),
            seed: self.seed,
            share,
            interval_ms: self.interval.as_millis().try_into().unwrap_or(u64::MAX),
            calibrate_ms,
            force: self.force,
            is_allowed: self.i_am_allowed,
        };
        let name = |agent: &&KnownAgent| agent.hello.facts.name.to_string();
        Ok(chosen.iter().map(name).zip(shares.into_iter().map(order)).collect())
    }
}

/// Returns the agents that make the run.
pub(crate) fn choose<'a>(
    choice: &AgentChoice,
    known: &'a BTreeMap<String, KnownAgent>,
) -> Result<Vec<&'a KnownAgent>, Failure> {
    let chosen = choice.choose(&free(known));
    chosen.map_err(|why| Failure::new(format!("{why}{}", not_free(known))))
}

/// Reports whether agents have made the run `id`, and its coordinator has fetched everything from
/// each. One that is away now and was lost at the end may have more.
fn has_all(known: &BTreeMap<String, KnownAgent>, resumed: &ResumedRun, id: &str) -> bool {
    let hellos = known.values().map(|agent| &agent.hello);
    let made: Vec<&Hello> = hellos.filter(|hello| hello.has_of(id)).collect();
    let is_fetched = |held: &HeldRun| held.key.run == id && held.is_delivered;
    let last = resumed.intervals.iter().rev().find_map(|interval| interval.load.as_ref());
    let mut machines = last.into_iter().flat_map(|load| &load.machines);
    let is_missing = machines.any(|it| it.lost && !known.contains_key(&it.name));
    !made.is_empty() && !is_missing && made.iter().all(|hello| hello.kept.iter().any(is_fetched))
}

fn lost(error: BusError) -> Failure {
    Failure::new(format!("--bus: {error}"))
}

/// Returns the agents that can begin a run, by their names.
fn free(known: &BTreeMap<String, KnownAgent>) -> Vec<&KnownAgent> {
    known.values().filter(|agent| agent.why_not_free().is_none()).collect()
}

/// Lists the agents that are not free, a line each.
fn not_free(known: &BTreeMap<String, KnownAgent>) -> String {
    let line = |agent: &KnownAgent| {
        Some(format!("\n  {}: {}", agent.hello.facts.name, agent.why_not_free()?))
    };
    known.values().filter_map(line).collect()
}

/// Returns the number of cores of each agent: one for each CPU, or more if the connections need
/// more fd tables.
fn cores_of(connections: u64, chosen: &[&KnownAgent]) -> Vec<usize> {
    let facts = || chosen.iter().map(|agent| &agent.hello.facts);
    let held: u64 = facts().map(|facts| (facts.cpus as u64).saturating_mul(facts.fds)).sum();
    let times = connections.div_ceil(held.max(1)).max(1);
    facts().map(|facts| facts.cpus.saturating_mul(times as usize)).collect()
}

/// Refuses the run, because these agents cannot make it.
fn refused(agents: &[(String, String)]) -> Failure {
    let lines = agents
        .iter()
        .map(|(name, why)| format!("\n  agent {name}: {}", why.trim_end().replace('\n', "\n    ")));
    Failure::new(format!(
        "{} {} cannot make the run{}\nthe run was not started; --force runs it although a limit \
         is insufficient",
        agents.len(),
        plural(agents.len() as u64, "agent", "agents"),
        lines.collect::<String>()
    ))
}

/// Refuses the run, because agents share a machine whose limits are insufficient for all of them.
fn sharing(shortages: &[SharedShortage]) -> Failure {
    let lines: String = shortages.iter().map(|shortage| format!("\n  {shortage}")).collect();
    Failure::new(format!(
        "the agents of one machine cannot make the run together{lines}\nthe run was not started; \
         --force runs it although a limit is insufficient"
    ))
}

/// Returns what the agents warn of.
fn notes(ready: &[(String, Readiness)]) -> Vec<String> {
    let of = |(name, readiness): &(String, Readiness)| {
        let warnings = readiness.warnings.iter().map(|it| format!("warning: agent {name}: {it}"));
        let unknown = readiness.uncalibrated.iter();
        let unknown = unknown.map(|why| format!("agent {name}: calibration failed: {why}"));
        warnings.chain(unknown).collect::<Vec<_>>()
    };
    ready.iter().flat_map(of).collect()
}

/// Completes the header of the run file.
fn complete(
    plan: &mut RunPlan,
    id: &str,
    chosen: &[&KnownAgent],
    shares: &[MachineShare],
    ready: &[(String, Readiness)],
) {
    let header = &mut plan.header;
    header.machines = chosen
        .iter()
        .zip(shares)
        .zip(ready)
        .map(|((agent, share), (_, readiness))| {
            let facts = &agent.hello.facts;
            RunMachine {
                name: facts.name.to_string(),
                host: facts.host.to_string(),
                cores: share.cores() as u64,
                share: share.cores() as f64 / share.of() as f64,
                users_planned: readiness.connections,
                capacity: readiness.capacity,
                ceiling: readiness.ceiling.clone(),
                start_error_us: agent.offset.map_or(0, |offset| offset.error_us),
                target_is_here: readiness.target_is_here,
                facts: readiness.client_facts.clone(),
            }
        })
        .collect();
    let machines = &header.machines;
    header.id = Some(id.to_owned());
    header.capacity = shared_limits::capacity(ready);
    header.target_is_here = machines.iter().any(|machine| machine.target_is_here);
    header.ceiling = sum_of_ceilings(machines);
    if let Some((_, first)) = ready.first() {
        header.machine = first.machine.clone();
        header.client_facts = first.client_facts.clone();
    }
}

/// Returns what all machines can do together, if it was measured on each.
fn sum_of_ceilings(machines: &[RunMachine]) -> Option<Ceiling> {
    let all: Option<Vec<&Ceiling>> =
        machines.iter().map(|machine| machine.ceiling.as_ref()).collect();
    let all = all?;
    let each = |of: fn(&Ceiling) -> Option<f64>| all.iter().map(move |ceiling| of(ceiling));
    let mean = |values: Option<Vec<f64>>| {
        values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
    };
    Some(Ceiling {
        over_tls: all.iter().any(|ceiling| ceiling.over_tls),
        connects_per_s: each(|it| it.connects_per_s).sum(),
        resumed_per_s: each(|it| it.resumed_per_s).sum(),
        messages_per_s: each(|it| it.messages_per_s).sum(),
        timer_error_us_p99: all.iter().filter_map(|ceiling| ceiling.timer_error_us_p99).max(),
        bytes_per_user: mean(each(|it| it.bytes_per_user).collect()),
    })
}

/// Describes the agents in a line: how many, and how well their clocks agree.
pub(super) fn describe(machines: &[RunMachine]) -> String {
    let error = machines.iter().map(|machine| machine.start_error_us).max().unwrap_or(0);
    let planned: u64 = machines.iter().map(|machine| machine.users_planned).sum();
    format!(
        "{} {}: {} connections at most by their plans; they begin within {}",
        machines.len(),
        plural(machines.len() as u64, "agent", "agents"),
        show_count(planned),
        micros(error.saturating_mul(2))
    )
}

impl ReadyFleet {
    /// Shows what the agents warn of, and when they begin.
    pub(super) fn show(&self, note: impl Fn(&str)) {
        self.notes.iter().for_each(|line| note(line));
        note(&format!("the load begins in {}", show_duration(START_AFTER)));
    }
}

/// Refuses flags that a run of agents does not have.
pub(super) fn check(typed: &Run) -> Result<(), Failure> {
    if !typed.fleet.is_used() {
        if typed.fleet.bus.is_typed() && typed.fleet.observer.is_none() {
            return Err(Failure::new(
                "--bus needs --agents: how many agents make the run? --agents all takes all",
            ));
        }
        return Ok(());
    }
    let has_source = !typed.source.is_empty() || typed.source_ports.is_some();
    if has_source {
        return Err(Failure::new("--source is a flag of each agent: throng agent --source ADDR"));
    }
    if let Some(id) = typed.fleet.resume.as_ref().filter(|_| typed.no_record) {
        return Err(Failure::new(format!(
            "--resume {id} needs a run file, and --no-record writes none\n  --resume goes on in \
             the run's file; name it with --record"
        )));
    }
    if typed.trace.is_used() {
        return Err(Failure::new("--trace-user follows users of this machine, not of agents"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_of_which_one_is_not_measured_have_no_common_ceiling() {
        let of = |connects: Option<f64>| RunMachine {
            ceiling: connects.map(|n| Ceiling { connects_per_s: Some(n), ..Ceiling::default() }),
            ..RunMachine::default()
        };
        let sum = sum_of_ceilings(&[of(Some(10.0)), of(Some(5.0))]).unwrap();
        assert_eq!(sum.connects_per_s, Some(15.0));
        assert_eq!(sum.messages_per_s, None);
        assert_eq!(sum_of_ceilings(&[of(Some(10.0)), of(None)]), None);
    }
}
