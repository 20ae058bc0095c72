//! `throng fleet logs`: the last lines of an agent.

use clap::Args;
use throng_fleet::{ANSWER_PATIENCE, LOG_LINES_MAX, Requester};

use super::gathering::{GATHER_TIME, join, no_agents};
use crate::bus::BusFlags;
use crate::{Exit, Failure, output};

/// Show the last lines of an agent
///
/// An agent keeps the last 1000 lines that it has printed, and sends them over the bus. The times
/// are those of its machine's clock.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Logs {
    /// Name of the agent
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    bus: BusFlags,
    /// Most lines to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = lines)]
    lines: usize,
}

const EXAMPLES: &str = "\
Examples:
  throng fleet logs web1 --bus nats://10.0.0.1:4222
  throng fleet logs web1 -n 20 --bus nats://10.0.0.1:4222

Exit codes:
  0  these are its lines    2  it does not answer, or the bus does not answer";

impl Logs {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let fleet = join(&self.bus, "throng fleet logs")?;
        let known = fleet.gather(GATHER_TIME, |known| known.contains_key(&self.name));
        let Some(agent) = known.get(&self.name) else {
            return Err(Failure::new(match known.is_empty() {
                true => no_agents(&self.bus, &fleet),
                false => format!("no agent {} answered; `throng fleet ls` lists them", self.name),
            }));
        };
        let requester =
            Requester::join(self.bus.connect("throng fleet logs")?, self.bus.subjects())
                .map_err(|error| Failure::new(format!("--bus: {error}")))?;
        let log = requester.log(&agent.hello.facts, self.lines).ok_or_else(|| {
            Failure::new(match requester.denial() {
                Some(denial) => format!("--bus: {denial}"),
                None => format!("agent {} did not answer within {ANSWER_PATIENCE:?}", self.name),
            })
        })?;
        log.iter().for_each(|line| output::say_line(format!("{}  {}", line.at, line.text)));
        Ok(Exit::Met)
    }
}

/// Parses a number of lines.
fn lines(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=LOG_LINES_MAX).contains(&count) => Ok(count),
        _ => Err(format!("expected a number from 1 to {LOG_LINES_MAX}")),
    }
}
