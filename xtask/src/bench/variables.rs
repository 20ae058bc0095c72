//! `xtask bench-variables`: what variables cost the generator. A chat of rooms on a server in Node,
//! in which each user checks its own message: with a token from a file, a captured value and the
//! sent text, compared with the same text written out for each user.
//!
//! The rounds are interleaved: variables first, then literal values, and the other way round. Both
//! scenarios send and receive the same bytes, but for the number that the server gives a user.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use super::child_process::ChildProcess;
use super::counter::counter;
use super::cpu::Process;
use super::result::median;

/// The options of `xtask bench-variables`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of rounds; each measures both scenarios
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Number of users
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    users: u32,
    /// Number of rooms
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    rooms: u32,
    /// Seconds between two messages of a user
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    period: u64,
    /// Length of a measurement in seconds
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// The throng binary
    #[arg(long, default_value = "target/release/throng")]
    throng: PathBuf,
}

/// Measures both scenarios in each round, and prints the ratios of the medians.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let here = std::env::current_dir().map_err(|e| e.to_string())?;
    let folder = here.join("target/bench-variables");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let throng = options.throng.canonicalize();
    let throng = throng.map_err(|e| format!("{}: {e}: run `make`", options.throng.display()))?;
    let server = here.join("crates/throng-cli/tests/clients/node/chat_server.js");
    let bench = Bench { options, throng, server, folder };
    bench.write_users()?;
    let mut costs = Values::ALL.map(|_| Vec::new());
    for round in 1..=options.rounds {
        // Neither of the two is always the first.
        let mut order = [0, 1];
        order.rotate_left((round as usize + 1) % 2);
        for values in order {
            let cost = bench.measure(Values::ALL[values])?;
            println!("round {round}: {}: {cost}", Values::ALL[values].name());
            costs[values].push(cost);
        }
    }
    let ratio = |of: fn(&Cost) -> f64| {
        let [variables, literals] =
            costs.each_ref().map(|all| median(all.iter().map(of).collect()));
        (variables, literals, variables / literals)
    };
    let (a, b, cpu) = ratio(|cost| cost.us_per_message);
    println!("medians: CPU {a:.1} us a message with variables, {b:.1} us without: {cpu:.2} times");
    let (a, b, rate) = ratio(|cost| cost.messages_per_second);
    println!("medians: {a:.1} messages a second with variables, {b:.1} without: {rate:.2} times");
    Ok(ExitCode::SUCCESS)
}

/// How a scenario has the values that differ between users.
#[derive(Clone, Copy)]
enum Values {
    Variables,
    Literals,
}

impl Values {
    const ALL: [Self; 2] = [Self::Variables, Self::Literals];

    fn name(self) -> &'static str {
        match self {
            Self::Variables => "variables",
            Self::Literals => "literal values",
        }
    }
}

struct Bench<'a> {
    options: &'a Options,
    throng: PathBuf,
    server: PathBuf,
    folder: PathBuf,
}

/// The result of one measurement.
struct Cost {
    /// CPU time of the generator's process for each message that was answered. All others that its
    /// user received meanwhile are in it.
    us_per_message: f64,
    messages_per_second: f64,
}

impl Bench<'_> {
    fn write_users(&self) -> Result<(), String> {
        let rows: String =
            (0..self.options.users).map(|user| format!("user{user},t{user:04x}\n")).collect();
        self.write("users.csv", &format!("name,token\n{rows}"))
    }

    fn measure(&self, values: Values) -> Result<Cost, String> {
        let (_server, port) = self.start_server()?;
        self.write("chat.yaml", &self.scenario(values, &port))?;
        let run = ["run", "chat.yaml", "--no-calibrate", "--no-record", "--no-tui", "--cores", "1"];
        let generator = ChildProcess::start(self.throng(&run), Stdio::null())?;
        let users = u64::from(self.options.users);
        // The joins are answered, too.
        let deadline = Instant::now() + START_MAX;
        while self.answered(&generator).unwrap_or(0) < users {
            if Instant::now() > deadline {
                return Err(format!("not all users have joined within {START_MAX:?}"));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        std::thread::sleep(Duration::from_secs(self.options.period));
        let reading = || -> Result<_, String> {
            Ok((Process::read(generator.id())?, self.answered(&generator)?, Instant::now()))
        };
        let (cpu_before, before, began) = reading()?;
        std::thread::sleep(Duration::from_secs(self.options.seconds));
        let (cpu, after, ended) = reading()?;
        let messages = (after - before) as f64;
        Ok(Cost {
            us_per_message: cpu.since(&cpu_before) as f64 / 1_000.0 / messages,
            messages_per_second: messages / (ended - began).as_secs_f64(),
        })
    }

    fn start_server(&self) -> Result<(ChatProcess, String), String> {
        let mut node = Command::new("node");
        node.arg(&self.server).args(["users.csv", "none"]).current_dir(&self.folder);
        // It ends with its standard input.
        node.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = ChatProcess(node.spawn().map_err(|e| format!("cannot start node: {e}"))?);
        let mut port = String::new();
        let output = server.0.stdout.take().ok_or("no output of node")?;
        BufReader::new(output).read_line(&mut port).map_err(|e| e.to_string())?;
        match port.trim() {
            "" => Err("the server did not start: run `make clients`".to_owned()),
            port => Ok((server, port.to_owned())),
        }
    }

    fn scenario(&self, values: Values, port: &str) -> String {
        let Options { users, rooms, period, seconds, .. } = *self.options;
        let hold = seconds + period + 90;
        let head = format!(
            "target: ws://127.0.0.1:{port}/ws\n\
             load:\n  - ramp: {{to: {users}, over: {}s}}\n  - hold: {{for: {hold}s}}\n",
            (users / USERS_PER_S).max(1)
        );
        let steps = |token: &str, capture: &str, room: &str, body: &str, own: &str| {
            format!(
                "[connect: {{query: {{token: \"{token}\"}}}}, \
                 receive: {{json: {{type: hello}}{capture}}}, \
                 send: {{json: {{type: join, room: \"room {room}\"}}}}, \
                 expect: {{json: {{type: joined}}, skip_others: true}}, \
                 wait: {}ms ±100%, \
                 every: {{period: {period}s, do: [\
                 send: {{json: {{type: msg, body: \"{body}\"}}}}, \
                 expect: {{json: {{type: msg, body: \"{own}\"}}, skip_others: true}}]}}]\n",
                period * 500
            )
        };
        match values {
            Values::Variables => {
                let steps = steps(
                    "${row.token}",
                    ", capture: {id: /id}",
                    &format!("${{user.id % {rooms}}}"),
                    "hello from ${row.name}, ${id}",
                    "${sent.body}",
                );
                format!("{head}data: {{row: {{file: users.csv, order: unique}}}}\nuser: {steps}")
            }
            Values::Literals => {
                let mut text = format!("{head}users:\n");
                for user in 0..users {
                    let token = format!("t{user:04x}");
                    let (room, body) =
                        ((user % rooms).to_string(), format!("hello from user{user}, {user}"));
                    let steps = steps(&token, "", &room, &body, &body);
                    _ = write!(text, "  user{user}:\n    user: {steps}");
                }
                text
            }
        }
    }

    /// Returns how many messages have been answered.
    fn answered(&self, generator: &ChildProcess) -> Result<u64, String> {
        counter(&self.throng, generator, "messages_answered")
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        std::fs::write(self.folder.join(name), text).map_err(|e| format!("{name}: {e}"))
    }

    fn throng(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.throng);
        command.args(args).current_dir(&self.folder);
        command
    }
}

/// The server in Node; it ends when this is dropped.
struct ChatProcess(Child);

impl Drop for ChatProcess {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { us_per_message, messages_per_second } = self;
        write!(f, "{us_per_message:.1} us of CPU a message; {messages_per_second:.1} a second")
    }
}

/// Users that come each second.
const USERS_PER_S: u32 = 200;

/// The longest time for all users to be there.
const START_MAX: Duration = Duration::from_secs(60);
