//! `xtask bench-fleet`: what the bus costs in a run of many agents on this machine.
//!
//! All agents are processes here, and each runs a few users that say little: what is left is the
//! work for the fleet. The same share runs as one `throng run` without a bus before and after, for
//! comparison. An agent's main thread speaks the protocol and samples the machine; the thread `bus`
//! reads and writes the connection to NATS. At the coordinator, the thread `fleet` takes the
//! reports and `recorder` merges them, samples the machine and writes the run file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use super::child_process::ChildProcess;

/// The options of `xtask bench-fleet`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of agents
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=200))]
    agents: u32,
    /// Users of each agent
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    users: u32,
    /// Seconds between two messages of a user
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    period: u32,
    /// Length of a measurement in seconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// The throng binary
    #[arg(long, default_value = "target/release/throng")]
    throng: PathBuf,
    /// The NATS server
    #[arg(long, default_value = "target/clients/nats-server")]
    nats: PathBuf,
    /// First of two ports; choose one below the range of ephemeral ports
    #[arg(long, default_value_t = 23_110)]
    port: u16,
}

/// Measures one share alone, the fleet, and one share alone again, and prints all.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let folder = std::env::current_dir().map_err(|e| e.to_string())?.join("target/bench-fleet");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let throng = options.throng.canonicalize();
    let throng = throng.map_err(|e| format!("{}: {e}: run `make`", options.throng.display()))?;
    let bench = Bench { options, throng, folder };
    let server = bench.start_server()?;
    let before = bench.alone()?;
    let fleet = bench.fleet()?;
    let after = bench.alone()?;
    drop(server);
    let Options { agents, users, period, seconds, .. } = options;
    println!(
        "{agents} agents with {users} users each, a message of each user every {period} s; \
         {seconds} s measured; % of a CPU"
    );
    println!("one share without a bus: {before}; again: {after}");
    println!("an agent, mean of {agents}: {}", fleet.agent);
    println!("the agent with the most work: {}", fleet.agent_most);
    println!("coordinator: {}", fleet.coordinator);
    println!("nats-server: {}", fleet.nats);
    println!(
        "run file: {:.0} bytes a second, {:.0} for each agent",
        fleet.file_bytes_per_second,
        fleet.file_bytes_per_second / f64::from(*agents)
    );
    Ok(ExitCode::SUCCESS)
}

struct Bench<'a> {
    options: &'a Options,
    throng: PathBuf,
    folder: PathBuf,
}

/// What a run of all agents costs.
struct FleetCost {
    agent: Shares,
    agent_most: Shares,
    coordinator: Shares,
    nats: Shares,
    file_bytes_per_second: f64,
}

impl Bench<'_> {
    /// Measures a run of one agent's share without a bus.
    fn alone(&self) -> Result<Shares, String> {
        let run = self.start_run("alone", self.options.users, &[])?;
        self.wait_for_users("alone", u64::from(self.options.users))?;
        let costs = self.watch(&[run.id()])?;
        Ok(costs.into_iter().next().unwrap_or_default())
    }

    fn fleet(&self) -> Result<FleetCost, String> {
        let mut nats = Command::new(&self.options.nats);
        nats.args(["--addr", "127.0.0.1", "--port", &self.bus_port().to_string()]);
        let nats = ChildProcess::start(nats, Stdio::null())?;
        let address = ("127.0.0.1", self.bus_port());
        wait_until("nats-server listens", || std::net::TcpStream::connect(address).is_ok())?;
        let bus = format!("nats://127.0.0.1:{}", self.bus_port());
        let mut agents = Vec::new();
        for number in 0..self.options.agents {
            let name = format!("agent-{number:03}");
            let agent = self.throng(&["agent", "--bus", &bus, "--name", &name, "--no-calibrate"]);
            agents.push(ChildProcess::start(agent, Stdio::null())?);
        }
        let count = self.options.agents.to_string();
        wait_until("all agents are on the bus", || {
            let list = self.throng(&["fleet", "ls", "--bus", &bus]).output();
            let idle = |text: &str| text.lines().filter(|line| line.ends_with("idle")).count();
            list.is_ok_and(|it| idle(&String::from_utf8_lossy(&it.stdout)) == agents.len())
        })?;
        let users = self.options.users * self.options.agents;
        let run = self.start_run("fleet", users, &["--bus", &bus, "--agents", &count])?;
        self.wait_for_users("fleet", u64::from(users))?;
        let record = self.folder.join("fleet.jsonl");
        let bytes_before = length(&record)?;
        let began = Instant::now();
        let mut pids: Vec<_> = agents.iter().map(ChildProcess::id).collect();
        pids.extend([run.id(), nats.id()]);
        let mut costs = self.watch(&pids)?;
        let bytes = length(&record)?.saturating_sub(bytes_before);
        let file_bytes_per_second = bytes as f64 / began.elapsed().as_secs_f64();
        let nats = costs.pop().unwrap_or_default();
        let coordinator = costs.pop().unwrap_or_default();
        let most = costs.iter().max_by(|one, other| one.all().total_cmp(&other.all()));
        let agent_most = most.cloned().unwrap_or_default();
        let agent = Shares::mean(&costs);
        Ok(FleetCost { agent, agent_most, coordinator, nats, file_bytes_per_second })
    }

    fn start_server(&self) -> Result<ChildProcess, String> {
        let listen = format!("127.0.0.1:{}", self.options.port);
        let serve = self.throng(&["serve", "echo", "--cores", "1", "--listen", &listen]);
        let server = ChildProcess::start(serve, Stdio::null())?;
        wait_until("the server listens", || std::net::TcpStream::connect(&listen).is_ok())?;
        Ok(server)
    }

    /// Starts a run of so many users, with one core on each machine. It is recorded under its name.
    fn start_run(&self, name: &str, users: u32, flags: &[&str]) -> Result<ChildProcess, String> {
        let Options { port, period, seconds, .. } = self.options;
        let scenario = format!(
            "target: tcp://127.0.0.1:{port}\n\
             load:\n  - ramp: {{to: {users}, over: 5s}}\n  - hold: {{for: {}s}}\n\
             user:\n  - connect\n  - every:\n      period: {period}s\n      do:\n        \
             - send: \"ping\\n\"\n        - expect: \"ping\\n\"\n",
            seconds + 120
        );
        let file = format!("{name}.yaml");
        fs::write(self.folder.join(&file), scenario).map_err(|e| format!("{file}: {e}"))?;
        let record = format!("{name}.jsonl");
        // One of an earlier bench would be read before the new one is there.
        _ = fs::remove_file(self.folder.join(&record));
        let run = ["run", &file, "--no-calibrate", "--no-tui", "--cores", "1", "--record", &record];
        ChildProcess::start(self.throng(&[&run, flags].concat()), Stdio::null())
    }

    /// Waits until all users of a run are connected, and some seconds more.
    fn wait_for_users(&self, name: &str, users: u64) -> Result<(), String> {
        let record = self.folder.join(format!("{name}.jsonl"));
        let connected = format!("\"connects_ok\":{users},");
        wait_until("all users are connected", || {
            let text = fs::read_to_string(&record).unwrap_or_default();
            text.lines().next_back().is_some_and(|line| line.contains(&connected))
        })?;
        std::thread::sleep(Duration::from_secs(3));
        Ok(())
    }

    /// Returns the share of a CPU that each process takes.
    fn watch(&self, pids: &[u32]) -> Result<Vec<Shares>, String> {
        let read = || pids.iter().map(|pid| read_threads(*pid)).collect::<Result<Vec<_>, _>>();
        let (before, began) = (read()?, Instant::now());
        std::thread::sleep(Duration::from_secs(self.options.seconds));
        let (after, span) = (read()?, began.elapsed());
        let shares = before.iter().zip(&after);
        Ok(shares.map(|(before, after)| Shares::between(before, after, span)).collect())
    }

    fn throng(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.throng);
        command.args(args).current_dir(&self.folder);
        command
    }

    fn bus_port(&self) -> u16 {
        self.options.port + 1
    }
}

/// The share of a CPU, in percent, of each thread of a process, by the thread's name.
#[derive(Clone, Debug, Default)]
struct Shares(BTreeMap<String, f64>);

impl Shares {
    fn between(before: &Threads, after: &Threads, span: Duration) -> Self {
        let mut shares = BTreeMap::new();
        for (thread, (name, ns)) in after {
            let earlier = before.get(thread).map_or(0, |(_, ns)| *ns);
            let share = 100.0 * ns.saturating_sub(earlier) as f64 / span.as_nanos() as f64;
            *shares.entry(name.clone()).or_default() += share;
        }
        Self(shares)
    }

    fn mean(all: &[Self]) -> Self {
        let mut sum = BTreeMap::<String, f64>::new();
        for (name, share) in all.iter().flat_map(|shares| &shares.0) {
            *sum.entry(name.clone()).or_default() += share / all.len() as f64;
        }
        Self(sum)
    }

    fn all(&self) -> f64 {
        self.0.values().sum()
    }
}

impl std::fmt::Display for Shares {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} %", self.all())?;
        let parts = self.0.iter().filter(|(_, share)| **share >= 0.005);
        let parts: Vec<_> = parts.map(|(name, share)| format!("{name} {share:.2}")).collect();
        write!(f, " ({})", parts.join(", "))
    }
}

/// The name and the nanoseconds on a CPU of each thread.
type Threads = BTreeMap<u32, (String, u64)>;

fn read_threads(pid: u32) -> Result<Threads, String> {
    let gone = |e| format!("process {pid} has ended: {e}");
    let mut threads = Threads::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).map_err(gone)? {
        let folder = entry.map_err(gone)?.path();
        let thread = folder.file_name().and_then(|name| name.to_str()?.parse().ok());
        // A thread may end after it was listed.
        let read = |name| fs::read_to_string(folder.join(name)).ok();
        let (name, times) = (read("comm"), read("schedstat"));
        let ns = times.and_then(|it| it.split_whitespace().next()?.parse().ok());
        if let (Some(thread), Some(name), Some(ns)) = (thread, name, ns) {
            threads.insert(thread, (name.trim().to_owned(), ns));
        }
    }
    Ok(threads)
}

fn length(path: &Path) -> Result<u64, String> {
    fs::metadata(path).map(|it| it.len()).map_err(|e| format!("{}: {e}", path.display()))
}

fn wait_until(what: &str, is_true: impl Fn() -> bool) -> Result<(), String> {
    let deadline = Instant::now() + START_MAX;
    while !is_true() {
        if Instant::now() > deadline {
            return Err(format!("{what}: not within {START_MAX:?}"));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// The longest time for processes and users to be there.
const START_MAX: Duration = Duration::from_secs(90);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_name_are_added() {
        let threads = |all: &[(u32, &str, u64)]| -> Threads {
            all.iter().map(|(id, name, ns)| (*id, ((*name).to_owned(), *ns))).collect()
        };
        let before = threads(&[(1, "main", 0), (2, "core", 5_000_000)]);
        let after =
            threads(&[(1, "main", 1_000_000), (2, "core", 15_000_000), (3, "core", 10_000_000)]);
        let shares = Shares::between(&before, &after, Duration::from_secs(1));
        assert_eq!(shares.to_string(), "2.10 % (core 2.00, main 0.10)");
        let mean = Shares::mean(&[shares, Shares::default()]);
        assert_eq!(mean.to_string(), "1.05 % (core 1.00, main 0.05)");
    }
}
