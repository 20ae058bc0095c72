//! `throng fleet up`: an agent on each of these hosts, over ssh.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use throng_base::units::plural;
use throng_fleet::{CoordinatorProcess, KnownAgent, TargetNetwork, version};
use throng_report::render::bytes;

use super::gathering::{GATHER_TIME, join};
use super::launch::{Launch, Started};
use super::remote_host::{RemoteHost, check_names};
use crate::bus::{self, BusFlags};
use crate::{Exit, Failure, output};

/// Start an agent on each of these hosts, over ssh
///
/// Copies this program to hosts that lack its version, starts an agent that outlives the ssh
/// session, and waits until the agent answers on the bus. An agent has the name of its host.
/// Programs and log files are in ~/.throng on the host. A host that fails does not stop the others.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Up {
    /// Host, as ssh knows it: `web1`, `user@10.0.0.7`
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<RemoteHost>,
    #[command(flatten)]
    pub(super) bus: BusFlags,
    /// Label of the agents, by which runs choose them; repeatable
    #[arg(long, value_name = "LABEL", value_parser = bus::group)]
    pub(super) label: Vec<String>,
    /// Networks whose addresses the agents may load, whatever a run says [default: those that need
    /// no permission on the agent's machine]
    #[arg(long, value_name = "ADDR[/PREFIX],...", value_delimiter = ',')]
    pub(super) targets: Vec<TargetNetwork>,
    /// Command that reaches a host, with its options; the shell splits it into words
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    pub(super) ssh: String,
    /// Program to copy, in place of this one; repeatable: one for each architecture of the hosts
    #[arg(long, value_name = "FILE")]
    pub(super) binary: Vec<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  throng fleet up web1 web2 --bus nats://10.0.0.1:4222
  throng fleet up ada@web1 --bus nats://10.0.0.1:4222 --label eu --ssh 'ssh -p 2222'
  throng fleet up arm1 --bus nats://10.0.0.1:4222 --binary ./throng-aarch64

Exit codes:
  0  each host has an agent    1  a host has none    2  it could not begin";

impl Up {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        check_names(&self.hosts).map_err(Failure::new)?;
        let launch = Launch::new(self)?;
        let fleet = join(&self.bus, "throng fleet up")?;
        let known = fleet.gather(GATHER_TIME, |_| false);
        let (there, missing): (Vec<_>, Vec<_>) =
            self.hosts.iter().partition(|host| known.contains_key(&host.name));
        let mut count = 0;
        for host in there {
            let agent = &known[&host.name];
            let is_ours = agent.hello.facts.version == version();
            count += usize::from(is_ours);
            output::say_line(match is_ours {
                true => format!("{}: its agent runs already{}", host.address, facts(agent)),
                false => format!(
                    "{}: failed: its agent is throng {}, and this is {}; end it first: throng \
                     fleet down {}",
                    host.address,
                    agent.hello.facts.version,
                    version(),
                    host.name
                ),
            });
        }
        let mut started = Vec::new();
        let missing = missing.into_iter().cloned().collect();
        in_parallel(
            missing,
            |host: RemoteHost| launch.start(host.clone()).map_err(|why| (host, why)),
            |outcome| match outcome {
                Ok(agent) => started.push(agent),
                Err((host, why)) => output::say_line(format!("{}: failed: {why}", host.address)),
            },
        );
        count += await_all(&launch, &fleet, started);
        let (all, group) = (self.hosts.len(), &self.bus.bus_group);
        let hosts = plural(all as u64, "host", "hosts");
        output::say(format!("group {group}: agents on {count} of {all} {hosts}"));
        Ok(if count == all { Exit::Met } else { Exit::Missed })
    }
}

/// Waits until the agents answer on the bus, and says what became of each. Returns how many do.
fn await_all(launch: &Launch, fleet: &CoordinatorProcess, mut started: Vec<Started>) -> usize {
    let until = Instant::now() + UP_PATIENCE;
    let mut count = 0;
    while !started.is_empty() {
        let known = fleet.gather(GATHER_TIME, |known| {
            started.iter().all(|agent| known.contains_key(&agent.host.name))
        });
        let mut silent = Vec::new();
        for agent in started.drain(..) {
            let Some(answer) = known.get(&agent.host.name) else {
                silent.push(agent);
                continue;
            };
            count += 1;
            let copied = agent.copied.map_or_else(String::new, |copied| format!("; {copied}"));
            let facts = facts(answer);
            output::say_line(format!("{}: its agent runs{facts}{copied}", agent.host.address));
        }
        let is_over = until <= Instant::now();
        in_parallel(
            silent,
            |agent| (launch.why_not_up(&agent, is_over), agent),
            |(why, agent)| match why {
                Some(why) => output::say_line(format!("{}: failed: {why}", agent.host.address)),
                None => started.push(agent),
            },
        );
    }
    count
}

/// Returns what an agent is, to follow what it does.
fn facts(agent: &KnownAgent) -> String {
    let facts = &agent.hello.facts;
    let memory =
        facts.memory_bytes.map_or_else(String::new, |all| format!(", {}", bytes(all as f64)));
    format!(": {}, {} CPUs{memory}, pid {}", facts.name, facts.cpus, facts.pid)
}

/// Does `work` for each item, for [`PARALLEL_MAX`] of them at a time, and gives `take` each outcome
/// as soon as it is there.
fn in_parallel<T: Send, R: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> R + Sync,
    mut take: impl FnMut(R),
) {
    let threads = items.len().min(PARALLEL_MAX);
    let items = Mutex::new(VecDeque::from(items));
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let (done, outcomes) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (done, next, work) = (done.clone(), &next, &work);
            scope.spawn(move || {
                while let Some(item) = next() {
                    _ = done.send(work(item));
                }
            });
        }
        drop(done);
        outcomes.into_iter().for_each(&mut take);
    });
}

/// Time in which an agent that was started answers on the bus.
const UP_PATIENCE: Duration = Duration::from_secs(15);
/// Hosts that are reached at a time.
const PARALLEL_MAX: usize = 16;
