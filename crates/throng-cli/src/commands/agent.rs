//! `throng agent`: a machine of a fleet, which makes its part of the runs that others begin.

use clap::Args;
use throng_fleet::AgentProcess;
use throng_fleet::message::AgentFacts;

use crate::bus::{self, BusFlags};
use crate::commands::run::sources;
use crate::interrupt::Interrupt;
use crate::{Exit, Failure, output};

/// Make a part of the runs that `throng run --bus` begins
///
/// An agent connects to the bus, says what its machine is, and waits. It listens nowhere. During a
/// run it goes on without the bus or the coordinator, and delivers what it measured when they are
/// back. Ctrl-C ends it, after its load is ramped down.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Agent {
    #[command(flatten)]
    bus: BusFlags,
    /// Name of the agent [default: that of the machine, and a number]
    #[arg(long, value_name = "NAME", value_parser = bus::group)]
    name: Option<String>,
    /// Label by which runs choose agents, such as eu; repeatable
    #[arg(long, value_name = "LABEL", value_parser = bus::group)]
    label: Vec<String>,
    /// Connect from this address, or from all addresses of a network; repeatable
    #[arg(long, value_name = "ADDR[/PREFIX]", value_parser = sources::parse)]
    source: Vec<sources::Network>,
    /// End when standard input ends, as it does when the parent process has ended
    #[arg(long)]
    exit_with_parent: bool,
}

const EXAMPLES: &str = "\
Examples:
  throng agent --bus nats://10.0.0.1:4222
  throng agent --bus nats://10.0.0.1:4222 --label eu --label large
  throng agent --bus tls://bus.example:4222 --bus-credentials agent.creds
  throng agent --bus nats://10.0.0.1:4222 --bus-group team-a

Exit codes:
  0  it was asked to end    2  it could not start";

impl Agent {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let sources = sources::addresses(&self.source)?;
        let facts = AgentFacts::of_this_process(self.name.clone(), self.label.clone());
        let interrupt = Interrupt::install(self.exit_with_parent)?;
        let bus = self.bus.connect(&format!("throng agent {}", facts.name))?;
        let mut agent = AgentProcess::new(facts, self.bus.subjects(), bus, sources)
            .map_err(|error| Failure::new(format!("--bus: {error}")))?;
        agent.work(|| interrupt.requested().is_some(), |note| output::say(note.to_string()));
        Ok(Exit::Met)
    }
}
