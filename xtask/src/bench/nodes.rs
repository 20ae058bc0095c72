//! `xtask bench-nodes`: the CPU time of a broadcast's delivery over two nodes that share topics on
//! this machine, compared with one node of as many event loops.
//!
//! Both have the same clients: two generators with half of the users each, who send each other
//! broadcasts. Over two nodes, each generator loads one of them. The rounds are interleaved, and
//! the CPU time is that of the servers, and of `nats-server` where it is used.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use super::child_process::ChildProcess;
use super::counter::counter;
use super::cpu::Process;
use super::result::median;

/// The options of `xtask bench-nodes`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of rounds; each measures one node and two nodes
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Users of both generators together
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(2..))]
    users: u32,
    /// Length of a measurement in seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// The throng binary
    #[arg(long, default_value = "target/release/throng")]
    throng: PathBuf,
    /// The NATS server
    #[arg(long, default_value = "target/clients/nats-server")]
    nats: PathBuf,
    /// First of three ports; choose one below the range of ephemeral ports
    #[arg(long, default_value_t = 23_100)]
    port: u16,
}

/// Measures both in each round, and prints the ratio of the medians.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let folder = std::env::current_dir().map_err(|e| e.to_string())?.join("target/bench-nodes");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let throng = options.throng.canonicalize();
    let throng = throng.map_err(|e| format!("{}: {e}: run `make`", options.throng.display()))?;
    let bench = Bench { options, throng, folder };
    let mut costs = [Vec::new(), Vec::new()];
    for round in 1..=options.rounds {
        // Neither of the two is always the first.
        let order = if round % 2 == 1 { [0, 1] } else { [1, 0] };
        for nodes in order {
            let cost = bench.measure(nodes + 1)?;
            println!("round {round}: {} node(s): {cost}", nodes + 1);
            costs[nodes].push(cost.ns_per_delivery);
        }
    }
    let [one, two] = costs.map(median);
    let ratio = two / one;
    println!("medians: one node {one:.0} ns a delivery, two nodes {two:.0} ns: {ratio:.2} times");
    Ok(ExitCode::SUCCESS)
}

struct Bench<'a> {
    options: &'a Options,
    throng: PathBuf,
    folder: PathBuf,
}

/// The result of one measurement.
struct Cost {
    ns_per_delivery: f64,
    /// The part of it that `nats-server` took.
    nats_ns: f64,
    deliveries_per_second: f64,
}

impl Bench<'_> {
    fn measure(&self, nodes: usize) -> Result<Cost, String> {
        let nats = self.start_nats()?;
        let cores = if nodes == 1 { "2" } else { "1" };
        let mut servers = Vec::new();
        for node in 0..nodes {
            let listen = format!("127.0.0.1:{}", self.options.port + node as u16);
            let mut serve = self.throng(&["serve", "chat", "--cores", cores, "--listen", &listen]);
            if nodes > 1 {
                let bus = format!("nats://127.0.0.1:{}", self.options.port + 2);
                serve.args(["--bus", &bus, "--node", &format!("node-{node}")]);
            }
            servers.push(ChildProcess::start(serve, Stdio::null())?);
        }
        self.wait_until("the servers answer", || self.sum(&servers, "memberships").is_ok())?;
        let mut generators = Vec::new();
        for generator in 0..2 {
            let port = self.options.port + (generator % nodes) as u16;
            generators.push(self.start_generator(generator, port)?);
        }
        let users = u64::from(self.options.users / 2 * 2);
        self.wait_until("all users are connected", || {
            self.sum(&servers, "memberships").is_ok_and(|members| members == users)
        })?;
        std::thread::sleep(Duration::from_secs(2));
        let (before, began) = (self.reading(&servers, &nats)?, Instant::now());
        std::thread::sleep(Duration::from_secs(self.options.seconds));
        let (after, span) = (self.reading(&servers, &nats)?, began.elapsed());
        if self.sum(&servers, "memberships")? != users {
            return Err("users have left during the measurement".to_owned());
        }
        if self.sum(&servers, "bus_dropped")? + self.sum(&servers, "bus_lost")? > 0 {
            return Err("publications did not cross".to_owned());
        }
        let deliveries = (after.deliveries - before.deliveries) as f64;
        let of_servers: u64 =
            after.servers.iter().zip(&before.servers).map(|(now, then)| now.since(then)).sum();
        let of_nats = if nodes > 1 { after.nats.since(&before.nats) } else { 0 };
        Ok(Cost {
            ns_per_delivery: (of_servers + of_nats) as f64 / deliveries,
            nats_ns: of_nats as f64 / deliveries,
            deliveries_per_second: deliveries / span.as_secs_f64(),
        })
    }

    fn start_nats(&self) -> Result<ChildProcess, String> {
        let mut nats = Command::new(&self.options.nats);
        let port = self.options.port + 2;
        nats.args(["--addr", "127.0.0.1", "--port", &port.to_string()]);
        let nats = ChildProcess::start(nats, Stdio::null())?;
        self.wait_until("nats-server listens", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        })?;
        Ok(nats)
    }

    /// Starts half of the users, one of whom sends a message ten times a second.
    fn start_generator(&self, number: usize, port: u16) -> Result<ChildProcess, String> {
        let mut scenario = String::new();
        let users = self.options.users / 2;
        let hold = self.options.seconds + 60;
        let written = write!(
            scenario,
            "target: ws://127.0.0.1:{port}/\n\
             load:\n  - ramp: {{to: {users}, over: 2s}}\n  - hold: {{for: {hold}s}}\n\
             user:\n  - connect\n  - stay\n\
             probe:\n  - every: 100ms\n    broadcast: {{text: hello from generator {number}}}\n"
        );
        written.map_err(|e| e.to_string())?;
        let name = format!("generator-{number}.yaml");
        std::fs::write(self.folder.join(&name), scenario).map_err(|e| e.to_string())?;
        let run = ["run", &name, "--no-calibrate", "--no-record", "--no-tui", "--cores", "1"];
        ChildProcess::start(self.throng(&run), Stdio::null())
    }

    fn throng(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.throng);
        command.args(args).current_dir(&self.folder);
        command
    }

    fn reading(&self, servers: &[ChildProcess], nats: &ChildProcess) -> Result<Reading, String> {
        let processes: Result<_, _> = servers.iter().map(|it| Process::read(it.id())).collect();
        Ok(Reading {
            servers: processes?,
            nats: Process::read(nats.id())?,
            deliveries: self.sum(servers, "fanned_out")?,
        })
    }

    fn sum(&self, servers: &[ChildProcess], name: &str) -> Result<u64, String> {
        servers.iter().map(|server| counter(&self.throng, server, name)).sum()
    }

    fn wait_until(&self, what: &str, is_true: impl Fn() -> bool) -> Result<(), String> {
        let deadline = Instant::now() + START_MAX;
        while !is_true() {
            if Instant::now() > deadline {
                return Err(format!("{what}: not within {START_MAX:?}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

/// The state of all processes at one moment.
struct Reading {
    servers: Vec<Process>,
    nats: Process,
    deliveries: u64,
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { ns_per_delivery, nats_ns, deliveries_per_second } = self;
        write!(f, "{ns_per_delivery:.0} ns a delivery, {nats_ns:.0} of them nats-server's; ")?;
        write!(f, "{deliveries_per_second:.0} deliveries a second")
    }
}

/// The longest time for servers and users to be there.
const START_MAX: Duration = Duration::from_secs(60);
