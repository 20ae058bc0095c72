//! `throng fleet stop`: agents end their parts of a run whose coordinator is gone.

use clap::Args;
use throng_bus::Name;
use throng_fleet::message::AgentFacts;
use throng_fleet::{AgentStop, Requester};

use super::gathering::{GATHER_TIME, join, no_agents};
use crate::bus::{self, BusFlags};
use crate::{Exit, Failure, output};

/// Let agents end a run whose `throng run` has died
///
/// Its agents ramp their load down. They are free for another run when the load has ended and
/// `throng run` has been silent for 15 s; agents whose load was not started are free at once. They
/// keep their measurements for an hour, for `throng run --resume`. A run whose `throng run` still
/// runs goes on: end it there with Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Stop {
    /// Id of the run, as `throng fleet ls` shows it
    #[arg(value_parser = bus::name)]
    run: Name,
    #[command(flatten)]
    bus: BusFlags,
}

const EXAMPLES: &str = "\
Examples:
  throng fleet stop 8fe4407a --bus nats://10.0.0.1:4222

Exit codes:
  0  its agents end it    1  one does not    2  no agent makes it, or the bus does not answer";

impl Stop {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let fleet = join(&self.bus, "throng fleet stop")?;
        let known = fleet.gather(GATHER_TIME, |_| false);
        if known.is_empty() {
            return Err(Failure::new(no_agents(&self.bus, &fleet)));
        }
        let makes = |agent: &&throng_fleet::KnownAgent| {
            agent.hello.busy.as_ref().is_some_and(|held| held.key.run == self.run)
        };
        let chosen: Vec<&AgentFacts> =
            known.values().filter(makes).map(|agent| &agent.hello.facts).collect();
        if chosen.is_empty() {
            return Err(Failure::new(format!(
                "no agent makes run {}\n  throng fleet ls shows the runs of the agents",
                self.run
            )));
        }
        let requester =
            Requester::join(self.bus.connect("throng fleet stop")?, self.bus.subjects())
                .map_err(|error| Failure::new(format!("--bus: {error}")))?;
        let mut remain = 0;
        requester.stop(&chosen, &self.run, |agent, stop| {
            remain += usize::from(goes_on(&stop));
            output::say_line(format!("{}: {}", agent.name, show(&stop)));
        });
        Ok(if remain == 0 { Exit::Met } else { Exit::Missed })
    }
}

/// Reports whether the agent goes on with the run, as far as is known.
fn goes_on(stop: &AgentStop) -> bool {
    match stop {
        AgentStop::Coordinated(_) | AgentStop::Silent => true,
        AgentStop::Stopping | AgentStop::Forgotten | AgentStop::LoadEnded | AgentStop::NotMade => {
            false
        }
    }
}

fn show(stop: &AgentStop) -> String {
    match stop {
        AgentStop::Stopping => "ramps its load down, and keeps what it measured".to_owned(),
        AgentStop::Coordinated(coordinator) => {
            format!("goes on: {coordinator} is there, and Ctrl-C there ends the run")
        }
        AgentStop::Forgotten => "forgets it, and is free: its load was not started".to_owned(),
        AgentStop::LoadEnded => "its load has ended; the agent is free once its results are \
                                 delivered, or `throng run` has been silent for 15 s"
            .to_owned(),
        AgentStop::NotMade => "no longer makes it".to_owned(),
        AgentStop::Silent => "does not answer".to_owned(),
    }
}
