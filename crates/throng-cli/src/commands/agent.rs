//! `throng agent`: a machine of a fleet, which makes its part of the runs that others begin, or
//! observes the server that they load.

use std::time::Duration;

use clap::Args;
use throng_bus::Name;
use throng_fleet::message::AgentFacts;
use throng_fleet::{AgentProcess, AllowedTargets, LABELS_MAX, Observer, TargetNetwork};
use throng_run::watch::{HostWatch, WatchOptions};

use crate::bus::{self, BusFlags};
use crate::commands::run::sources;
use crate::interrupt::Interrupt;
use crate::{Exit, Failure, output, quantity};

/// Generate a share of the load of runs that `throng run --bus` starts
///
/// An agent connects to the bus, describes its machine, and waits for runs. It opens no port. If it
/// loses the bus or the coordinator during a run, it keeps loading, and delivers its measurements
/// when the connection is back. Ctrl-C ramps its load down and ends it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Agent {
    #[command(flatten)]
    bus: BusFlags,
    /// Name of the agent [default: the machine's name and a number]
    #[arg(long, value_name = "NAME", value_parser = bus::name)]
    name: Option<Name>,
    /// Label by which runs choose agents, such as eu; repeatable
    #[arg(long, value_name = "LABEL", value_parser = bus::name)]
    label: Vec<Name>,
    /// Networks whose addresses this agent may load, whatever a run says [default: those that need
    /// no permission on this machine: itself, its private networks, 198.18.0.0/15]
    #[arg(long, value_name = "ADDR[/PREFIX],...", value_delimiter = ',')]
    targets: Vec<TargetNetwork>,
    /// Connect from this address, or from all addresses of a network; repeatable
    #[arg(long, value_name = "ADDR[/PREFIX]", value_parser = sources::parse)]
    source: Vec<sources::Network>,
    /// Time for measuring this machine's capacity, before the agent takes part in a run
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = quantity::calibration)]
    calibrate: Duration,
    /// Do not measure this machine's capacity
    #[arg(long, conflicts_with = "calibrate")]
    no_calibrate: bool,
    /// Load nothing; observe the server on this machine, its process and its kernel, for the runs
    /// of the group
    #[arg(long, requires = "port", conflicts_with_all = ["label", "source", "targets",
        "calibrate", "no_calibrate"])]
    observe: bool,
    /// With --observe: port that the server listens on; repeatable
    #[arg(long, value_name = "PORT", requires = "observe")]
    port: Vec<u16>,
    /// With --observe: process id of the server [default: the process that listens on the port]
    #[arg(long, value_name = "PID", requires = "observe")]
    pid: Option<u32>,
    /// With --observe: time between two samples
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::interval)]
    interval: Duration,
    /// End when standard input closes, as it does when the parent process ends
    #[arg(long)]
    exit_with_parent: bool,
}

const EXAMPLES: &str = "\
Examples:
  throng agent --bus nats://10.0.0.1:4222
  throng agent --bus nats://10.0.0.1:4222 --label eu --label large
  throng agent --bus nats://10.0.0.1:4222 --targets 10.0.0.0/8,127.0.0.0/8
  throng agent --bus tls://bus.example:4222 --bus-credentials agent.creds
  throng agent --bus nats://10.0.0.1:4222 --bus-group team-a
  throng agent --bus nats://10.0.0.1:4222 --observe --port 4000

Exit codes:
  0  it was ended: Ctrl-C, SIGTERM or `throng fleet down`    2  it could not start";

impl Agent {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        if self.observe {
            return self.observe();
        }
        if self.label.len() > LABELS_MAX {
            return Err(Failure::new(format!("--label: at most {LABELS_MAX} labels")));
        }
        let sources = sources::addresses(&self.source)?;
        let facts = AgentFacts::of_this_process(self.name.clone(), self.label.clone());
        let interrupt = Interrupt::install(self.exit_with_parent)?;
        let bus = self.bus.connect(&format!("throng agent {}", facts.name))?;
        let mut agent = AgentProcess::new(facts, self.bus.subjects(), bus, sources)
            .map_err(|error| Failure::new(format!("--bus: {error}")))?;
        if !self.targets.is_empty() {
            agent = agent.with_targets(AllowedTargets::Networks(self.targets.clone()));
        }
        if !self.no_calibrate {
            agent = agent.calibrating(self.calibrate);
        }
        agent.work(|| interrupt.requested().is_some(), |note| output::say_note(note.to_string()));
        Ok(Exit::Met)
    }

    /// Observes the server on this machine.
    fn observe(&self) -> Result<Exit, Failure> {
        let interrupt = Interrupt::install(self.exit_with_parent)?;
        // Before this thread enters the server's network namespace, which may not reach the bus.
        let bus = self.bus.connect("throng agent --observe")?;
        let subjects = self.bus.subjects();
        let mut observer = Observer::new(self.name.clone(), subjects, bus, self.interval);
        let options =
            WatchOptions { ports: self.port.clone(), pid: self.pid, ..WatchOptions::default() };
        let mut watch = HostWatch::new(options).map_err(Failure::new)?;
        let ports: Vec<_> = self.port.iter().map(u16::to_string).collect();
        let process = match watch.owner() {
            Ok(owner) => format!("{}, pid {}", owner.program, owner.pid),
            Err(why) => why.to_string(),
        };
        output::say(format!(
            "observer {} of group {}: port {} ({process}); Ctrl-C ends it",
            observer.name(),
            self.bus.bus_group,
            ports.join(", ")
        ));
        let is_ended = || interrupt.requested().is_some();
        observer.work(&mut watch, is_ended, |note| output::say_note(note.to_string()));
        Ok(Exit::Met)
    }
}
