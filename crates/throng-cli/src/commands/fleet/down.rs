//! `throng fleet down`: agents end.

use clap::Args;
use throng_fleet::message::AgentFacts;
use throng_fleet::{AgentEnd, KnownAgent, Requester};

use super::gathering::{GATHER_TIME, join, no_agents};
use crate::bus::BusFlags;
use crate::{Exit, Failure, output};

/// Ask agents over the bus to end
///
/// An agent that takes part in a run, or keeps results that were not fetched, says so and goes on.
/// With --force, it ramps its load down, delivers its measurements, and ends.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Down {
    /// Names of agents, or `all`
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    bus: BusFlags,
    /// Also end agents that take part in a run
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  throng fleet down all --bus nats://10.0.0.1:4222
  throng fleet down web1 web2 --bus nats://10.0.0.1:4222 --force

Exit codes:
  0  all have ended    1  one has not    2  no agent answered, or the bus does not answer";

impl Down {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let fleet = join(&self.bus, "throng fleet down")?;
        let is_all = self.names.iter().any(|name| name == "all");
        let known = fleet.gather(GATHER_TIME, |known| {
            !is_all && self.names.iter().all(|name| known.contains_key(name))
        });
        if known.is_empty() {
            return Err(Failure::new(no_agents(&self.bus, &fleet)));
        }
        let mut remain = 0;
        let unknown = self.names.iter().filter(|name| *name != "all" && !known.contains_key(*name));
        for name in unknown {
            output::say(format!("{name}: no agent of this name answered"));
            remain += 1;
        }
        let chosen: Vec<&AgentFacts> = known
            .iter()
            .filter(|(name, _)| is_all || self.names.contains(name))
            .flat_map(|(_, agent)| processes(agent))
            .collect();
        let requester =
            Requester::join(self.bus.connect("throng fleet down")?, self.bus.subjects())
                .map_err(|error| Failure::new(format!("--bus: {error}")))?;
        requester.end(&chosen, self.force, |agent, end| {
            remain += usize::from(end != AgentEnd::Ended);
            output::say_line(format!("{}: {}", agent.name, show(&end)));
        });
        if let Some(denial) = requester.denial().filter(|_| remain > 0) {
            return Err(Failure::new(format!("--bus: {denial}")));
        }
        Ok(if remain == 0 { Exit::Met } else { Exit::Missed })
    }
}

/// Returns the processes that have an agent's name: two, if another one has taken it.
fn processes(agent: &KnownAgent) -> impl Iterator<Item = &AgentFacts> {
    [&agent.hello.facts].into_iter().chain(&agent.rival)
}

fn show(end: &AgentEnd) -> String {
    match end {
        AgentEnd::Ended => "ended".to_owned(),
        AgentEnd::Busy(run) => format!("makes run {run} and goes on; --force ends it"),
        AgentEnd::Keeps(run) => format!(
            "keeps results of run {run} that were not fetched and goes on; `throng run --resume \
             {run}` fetches them, --force ends it"
        ),
        AgentEnd::Unsure => "is about to end, and has not said that it has".to_owned(),
        AgentEnd::Silent => "does not answer".to_owned(),
    }
}
