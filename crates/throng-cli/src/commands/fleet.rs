//! `throng fleet`: the agents of a group.

mod down;
mod gathering;
mod launch;
mod logs;
mod program;
mod remote_host;
mod script;
mod ssh;
mod stop;
mod up;

use clap::{Args, Subcommand};
use throng_base::units::show_duration;
use throng_bus::Name;
use throng_fleet::message::Hello;
use throng_fleet::{KnownAgent, ObserverHello, Observers};
use throng_report::render::{Align, Table, bytes, count, micros};

use crate::bus::BusFlags;
use crate::{Exit, Failure, output};
use gathering::join_over;
pub(crate) use gathering::{GATHER_TIME, no_agents};

/// Start, show and end the agents of a group
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct FleetCommand {
    #[command(subcommand)]
    verb: FleetVerb,
}

#[derive(Debug, Subcommand)]
enum FleetVerb {
    Up(up::Up),
    Ls(Ls),
    Logs(logs::Logs),
    Stop(stop::Stop),
    Down(down::Down),
}

/// List the agents of a group and what they do, and the observers
#[derive(Debug, Args)]
#[command(after_help = LS_EXAMPLES)]
pub(crate) struct Ls {
    #[command(flatten)]
    bus: BusFlags,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  export THRONG_BUS=nats://10.0.0.1:4222
  throng fleet up web1 web2             start an agent on each of these hosts, over ssh
  throng fleet ls                       list the agents
  throng fleet logs web1                show the last lines of one
  throng fleet stop 8fe4407a            end a run whose `throng run` has died
  throng fleet down all                 end them
  throng agent                          make this machine an agent";

const LS_EXAMPLES: &str = "\
Examples:
  throng fleet ls --bus nats://10.0.0.1:4222
  throng fleet ls --bus nats://10.0.0.1:4222 --json | jq -r '.[].facts.name'

Exit codes:
  0  an agent or an observer answered    2  none answered, or the bus does not answer";

impl FleetCommand {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match &self.verb {
            FleetVerb::Up(up) => up.run(),
            FleetVerb::Ls(ls) => ls.run(),
            FleetVerb::Logs(logs) => logs.run(),
            FleetVerb::Stop(stop) => stop.run(),
            FleetVerb::Down(down) => down.run(),
        }
    }
}

impl Ls {
    fn run(&self) -> Result<Exit, Failure> {
        let bus = self.bus.connect("throng fleet ls")?;
        let mut observers = Observers::listen(&*bus, &self.bus.subjects())
            .map_err(|error| Failure::new(format!("--bus: {error}")))?;
        let fleet = join_over(bus, &self.bus)?;
        let agents = fleet.gather(GATHER_TIME, |_| false);
        let observers = observers.known();
        let is_empty = agents.is_empty() && observers.is_empty();
        if self.json {
            let hellos = agents.values().map(json);
            let observers = observers.values().map(|observer| serde_json::json!(observer));
            output::say_json(&hellos.chain(observers).collect::<Vec<_>>());
        } else if is_empty {
            return Err(Failure::new(no_agents(&self.bus, &fleet)));
        } else {
            let mut tables = Vec::new();
            tables.extend((!agents.is_empty()).then(|| table(agents.values())));
            tables.extend((!observers.is_empty()).then(|| observer_table(observers.values())));
            let tables: Vec<_> = tables.iter().map(Table::to_string).collect();
            output::say(tables.join("\n"));
        }
        Ok(if is_empty { Exit::CannotRun } else { Exit::Met })
    }
}

/// Returns what an agent says about itself, and what is known of it here.
fn json(agent: &KnownAgent) -> serde_json::Value {
    let mut value = serde_json::json!(&agent.hello);
    value["clock"] = match agent.offset {
        Some(offset) => {
            serde_json::json!({ "ahead_us": offset.ahead_us, "error_us": offset.error_us })
        }
        None => serde_json::Value::Null,
    };
    value["has_stepped"] = agent.has_stepped.into();
    value["rival"] = serde_json::json!(&agent.rival);
    value
}

/// Returns a row for each observer.
fn observer_table<'a>(observers: impl Iterator<Item = &'a ObserverHello>) -> Table {
    let mut table = Table::new().aligned(&[Align::Left; 5]);
    table.row(["observer", "host", "ports", "process", "version"]);
    for observer in observers {
        let facts = &observer.facts;
        let ports: Vec<_> = observer.observes.ports.iter().map(u16::to_string).collect();
        let process = match &observer.program {
            Some((program, pid)) => format!("{program}, pid {pid}"),
            None => "unknown".to_owned(),
        };
        table.row([
            facts.name.to_string(),
            facts.host.to_string(),
            ports.join(" "),
            process,
            facts.version.to_string(),
        ]);
    }
    table
}

/// Returns a row for each agent.
fn table<'a>(agents: impl Iterator<Item = &'a KnownAgent>) -> Table {
    let mut table = Table::new().aligned(&[
        Align::Left,
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Left,
        Align::Left,
        Align::Left,
        Align::Left,
    ]);
    let head = [
        "agent",
        "host",
        "CPUs",
        "memory",
        "holds",
        "clock",
        "calibration",
        "version",
        "labels",
        "state",
    ];
    table.row(head);
    for agent in agents {
        let facts = &agent.hello.facts;
        let state = state(agent);
        table.row([
            facts.name.to_string(),
            facts.host.to_string(),
            facts.cpus.to_string(),
            facts.memory_bytes.map_or_else(String::new, |all| bytes(all as f64)),
            facts.capacity.as_ref().map_or_else(String::new, |it| count(it.connections as f64)),
            agent.offset.map_or_else(String::new, |offset| format!("±{}", micros(offset.error_us))),
            agent
                .hello
                .calibration
                .as_ref()
                .map_or_else(|| "not calibrated".to_owned(), ToString::to_string),
            facts.version.to_string(),
            facts.labels.iter().map(Name::as_str).collect::<Vec<_>>().join(" "),
            state,
        ]);
    }
    table
}

/// Returns what an agent does.
fn state(agent: &KnownAgent) -> String {
    if let Some(rival) = &agent.rival {
        return format!("another agent on {} has this name", rival.host);
    }
    let Hello { busy, kept, .. } = &agent.hello;
    if let Some(held) = busy {
        let silence = held.orphan_for().map(show_duration);
        let silence = silence.map(|time| format!("; its coordinator has been silent for {time}"));
        return format!("makes run {}{}", held.key.run, silence.unwrap_or_default());
    }
    let unfetched = kept.iter().filter(|held| !held.is_delivered);
    let runs: Vec<_> = unfetched.map(|held| held.key.run.as_str()).collect();
    match runs.is_empty() {
        true => "idle".to_owned(),
        false => format!("idle; keeps the results of {}", runs.join(" ")),
    }
}
