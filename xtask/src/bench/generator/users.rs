//! The cost of a WebSocket user for a generator: CPU until all users are connected, and memory
//! while they stay.
//!
//! Every generator connects its users evenly, 1,000 a second, to the bare server, which reports
//! when it has answered them all. Each generator runs twice, with a few users and with all, and the
//! result is the difference for each additional user. So the cost of a runtime, a script or the
//! histograms, which exist once, is not part of it.

use super::super::child_process::ChildProcess;
use super::super::erlang;
use super::super::install::{Folders, create_folder, run_quietly};
use super::super::result::{median, median_of_some};
use super::super::server::PeerServer;
use super::super::{Bench, cpu, memory, table};
use super::{BARE_CLIENT, THRONG_RUN};
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A program that can hold WebSockets open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bench) enum Generator {
    Bare,
    Throng,
    Tsung,
    K6,
}

/// The sample of one generator in one round.
#[derive(Clone, Debug, serde::Serialize)]
pub(in crate::bench) struct Sample {
    pub(in crate::bench) generator: &'static str,
    pub(in crate::bench) round: u32,
    pub(in crate::bench) users: u32,
    pub(in crate::bench) cpu_us: f64,
    pub(in crate::bench) memory_bytes: f64,
}

/// Builds the generators. Returns those that can run here, and a sentence for each that cannot.
pub(in crate::bench) fn available(bench: &Bench<'_>) -> (Vec<Generator>, Vec<String>) {
    let mut there = Vec::new();
    let mut missing = Vec::new();
    for generator in Generator::ALL {
        let ready = match generator {
            Generator::Throng if !bench.toolbox.has_throng() => {
                Err(format!("{} does not exist", bench.toolbox.throng().display()))
            }
            Generator::Bare | Generator::Throng => Ok(()),
            Generator::Tsung => tsung_paths(bench.toolbox.folders()).map(|_| ()),
            Generator::K6 => install_k6(bench.toolbox.folders()),
        };
        match ready {
            Ok(()) => there.push(generator),
            Err(why) => missing.push(format!("{}: {why}", generator.name())),
        }
    }
    (there, missing)
}

/// Measures one generator against a new bare server.
pub(in crate::bench) fn measure(
    bench: &Bench<'_>,
    generator: Generator,
    round: u32,
) -> Result<Sample, String> {
    let all = bench.size.websockets;
    let few = (all / FEW_OF_ALL).min(FEW_MAX);
    let base = hold(bench, generator, few)?;
    let whole = hold(bench, generator, all)?;
    let more = f64::from(all - few);
    Ok(Sample {
        generator: generator.name(),
        round,
        users: all,
        cpu_us: (whole.cpu_ns - base.cpu_ns) / 1e3 / more,
        memory_bytes: (whole.memory_bytes - base.memory_bytes) / more,
    })
}

/// Returns the table of all generators; empty without samples.
pub(in crate::bench) fn markdown(samples: &[Sample]) -> String {
    let Some(users) = samples.first().map(|sample| sample.users) else { return String::new() };
    let mut text = format!(
        "\n| generator of {} WebSocket users | CPU us per user | least-most | x bare | \
         memory B per user |\n\
         |---|--:|--:|--:|--:|\n",
        table::grouped(f64::from(users))
    );
    for name in Generator::ALL.map(Generator::name) {
        let of = || samples.iter().filter(|s| s.generator == name);
        if of().next().is_none() {
            continue;
        }
        let cpu = || of().map(|s| s.cpu_us);
        _ = writeln!(
            text,
            "| {name} | {:.1} | {:.1}-{:.1} | {} | {} |",
            median(cpu().collect()),
            cpu().fold(f64::INFINITY, f64::min),
            cpu().fold(0.0, f64::max),
            ratio(samples, name).map_or("-".into(), |ratio| format!("{ratio:.2}")),
            table::grouped(median(of().map(|s| s.memory_bytes).collect())),
        );
    }
    text
}

/// Returns a generator's CPU relative to the bare client's: the median of the ratios within each
/// round.
pub(in crate::bench) fn ratio(samples: &[Sample], name: &str) -> Option<f64> {
    median_of_some(samples.iter().filter(|s| s.generator == name).filter_map(|sample| {
        let bare =
            samples.iter().find(|s| s.generator == BARE_CLIENT && s.round == sample.round)?;
        Some(sample.cpu_us / bare.cpu_us)
    }))
}

struct Cost {
    cpu_ns: f64,
    memory_bytes: f64,
}

/// Returns the CPU time and the memory of a generator when this many users are connected and have
/// been idle for a moment.
fn hold(bench: &Bench<'_>, generator: Generator, users: u32) -> Result<Cost, String> {
    let mut bare = Command::new(bench.toolbox.bare("ws_server"));
    bare.args(["--port", &bench.options.port.to_string(), "--any-key"]);
    bare.args(["--threads", &bench.options.threads.to_string(), "--tell", &users.to_string()]);
    let (server, output) = PeerServer::start_with_output(bare, bench.options.port)?;
    let reached = lines(output);
    let mut running = ChildProcess::start(generator.command(bench, users)?, Stdio::null())?;
    let deadline = Instant::now() + arrivals(users) + LATE_MAX;
    while let Err(RecvTimeoutError::Timeout) = reached.recv_timeout(POLL) {
        let ended = running.exit_status();
        if ended.is_some() || Instant::now() > deadline {
            server.stop()?;
            let counts = reached.recv_timeout(LATE_MAX).unwrap_or_default();
            let how = ended.map_or("is still running".into(), |status| format!("ended: {status}"));
            let name = generator.name();
            return Err(format!("{name} {how} before {users} users were connected: {counts}"));
        }
    }
    std::thread::sleep(SETTLE);
    let cost = Cost {
        cpu_ns: cpu::ended_ns(running.id())? as f64,
        memory_bytes: memory::private_bytes(running.id())? as f64,
    };
    running.terminate();
    server.stop()?;
    Ok(cost)
}

/// Returns a channel of the lines of `output`. It closes when the server ends.
fn lines(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

impl Generator {
    /// All generators, in the order of the table.
    const ALL: [Self; 4] = [Self::Bare, Self::Throng, Self::Tsung, Self::K6];

    pub(in crate::bench) fn name(self) -> &'static str {
        match self {
            Self::Bare => BARE_CLIENT,
            Self::Throng => THRONG_RUN,
            Self::Tsung => "tsung",
            Self::K6 => "k6",
        }
    }

    fn command(self, bench: &Bench<'_>, users: u32) -> Result<Command, String> {
        let port = bench.options.port;
        match self {
            Self::Bare => {
                let mut command = Command::new(bench.toolbox.bare("ws_client"));
                command.args(["open", "--port", &port.to_string(), "--in-flight", "4000"]);
                command.args(["--connections", &users.to_string(), "--rate", &RATE.to_string()]);
                command.args(["--hold", &STAY_S.to_string()]);
                command.args(["--threads", &bench.options.threads.to_string()]);
                Ok(command)
            }
            Self::Throng => {
                let scenario = bench.toolbox.folder().join("users.yaml");
                write(&scenario, &throng_scenario(port, users))?;
                let mut command = Command::new(bench.toolbox.throng());
                command.arg("run").arg(scenario).arg("--no-calibrate");
                // The files that a run writes by itself go to the folder of the results.
                command.current_dir(bench.toolbox.folder());
                Ok(command)
            }
            Self::Tsung => tsung(bench.toolbox.folders(), port, users),
            Self::K6 => {
                let folders = bench.toolbox.folders();
                let mut command = Command::new(k6_folder(folders).join("k6"));
                command.args(["run", "--quiet", "--no-usage-report", "--address", ""]);
                for (name, value) in [
                    ("PORT", u64::from(port)),
                    ("USERS", u64::from(users)),
                    ("ARRIVALS_S", arrivals(users).as_secs()),
                    ("STAY_S", STAY_S),
                ] {
                    command.args(["-e", &format!("{name}={value}")]);
                }
                command.arg(folders.sources.join("peers/k6/hold.js"));
                Ok(command)
            }
        }
    }
}

fn throng_scenario(port: u16, users: u32) -> String {
    format!(
        "target: ws://127.0.0.1:{port}/\n\
         protocol: ws\n\
         load:\n\
         \x20 - arrivals: {{rate: {RATE}/s, for: {}s, most: {users}, spacing: even}}\n\
         user:\n\
         \x20 - connect\n\
         \x20 - wait: {STAY_S}s\n\
         \x20 - close\n",
        arrivals(users).as_secs()
    )
}

/// Returns the command of tsung as its own script starts it, but in one Erlang node without a name
/// server and without ssh.
fn tsung(folders: &Folders, port: u16, users: u32) -> Result<Command, String> {
    let folder = folders.target.join("tsung");
    create_folder(&folder)?;
    let template = folders.sources.join("peers/tsung/hold.xml");
    let mut xml = std::fs::read_to_string(&template)
        .map_err(|e| format!("cannot read {}: {e}", template.display()))?;
    let dtd = folders.target.join("otp/tsung/usr/share/tsung/tsung-1.0.dtd");
    for (mark, value) in [
        ("@DTD@", dtd.display().to_string()),
        ("@PORT@", port.to_string()),
        ("@USERS@", users.to_string()),
        ("@RATE@", RATE.to_string()),
        ("@PHASE_S@", tsung_phase(users).as_secs().to_string()),
        ("@STAY_S@", STAY_S.to_string()),
    ] {
        xml = xml.replace(mark, &value);
    }
    let config = folder.join("hold.xml");
    write(&config, &xml)?;
    let mut command = Command::new("erl");
    command.args(["+A", "8", "+K", "true", "+P", "250000", "+Bd", "-noinput"]);
    command.args([
        "-sname",
        "tsung_controller@localhost",
        "-dist_listen",
        "false",
        "-start_epmd",
        "false",
    ]);
    for path in tsung_paths(folders)? {
        command.arg("-pa").arg(path);
    }
    command.args(["-s", "tsung_controller", "-sasl", "sasl_error_logger", "false"]);
    let quoted = |path: PathBuf| format!("\"{}\"", path.display());
    for (name, value) in [
        ("web_gui", "false".to_string()),
        ("keep_web_gui", "false".to_string()),
        ("smp_disable", "true".to_string()),
        ("debug_level", "4".to_string()),
        ("warm_time", "1".to_string()),
        ("exclude_tag", "\"\"".to_string()),
        ("config_file", quoted(config)),
        ("log_dir", quoted(folder.join(""))),
        ("mon_file", "\"tsung.log\"".to_string()),
    ] {
        command.args(["-tsung_controller", name, &value]);
    }
    Ok(command)
}

/// Returns the length of tsung's arrival phase. Its arrivals are random, and users that have not
/// arrived at the end of the phase are lost.
fn tsung_phase(users: u32) -> Duration {
    2 * arrivals(users) + Duration::from_secs(10)
}

fn tsung_paths(folders: &Folders) -> Result<Vec<PathBuf>, String> {
    let mut paths = erlang::libraries(folders, TSUNG_PACKAGES)?;
    let own = folders.target.join("otp/tsung/usr/lib/x86_64-linux-gnu/tsung");
    for part in ["tsung-1.7.0", "tsung_controller-1.7.0"] {
        let ebin = own.join(part).join("ebin");
        if !ebin.is_dir() {
            return Err(format!("the package tsung contains no {part}"));
        }
        paths.push(ebin);
    }
    Ok(paths)
}

fn install_k6(folders: &Folders) -> Result<(), String> {
    let folder = k6_folder(folders);
    if folder.join("k6").is_file() {
        return Ok(());
    }
    eprintln!("building k6");
    let mut go = Command::new("go");
    go.env("GOBIN", folder).args(["install", &format!("go.k6.io/k6@{K6_VERSION}")]);
    run_quietly(&mut go)
}

fn k6_folder(folders: &Folders) -> PathBuf {
    folders.target.join("peers").join(format!("k6-{K6_VERSION}"))
}

fn arrivals(users: u32) -> Duration {
    Duration::from_secs(u64::from(users.div_ceil(RATE)))
}

fn write(path: &PathBuf, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

const K6_VERSION: &str = "v1.8.1";
/// The packages of tsung and its node beyond `erlang-base`, without the plots and pages that apt
/// would add.
const TSUNG_PACKAGES: &[&str] = &[
    "tsung",
    "erlang-asn1",
    "erlang-crypto",
    "erlang-inets",
    "erlang-mnesia",
    "erlang-os-mon",
    "erlang-public-key",
    "erlang-runtime-tools",
    "erlang-snmp",
    "erlang-ssl",
    "erlang-xmerl",
];

/// The arrival rate in users a second.
const RATE: u32 = 1_000;
const FEW_MAX: u32 = 1_000;
const FEW_OF_ALL: u32 = 10;
/// The stay of a user, longer than any measurement: the first user is still connected when the last
/// one arrives.
const STAY_S: u64 = 600;
const SETTLE: Duration = Duration::from_secs(1);
/// The extra time for the start and for arrivals that lag.
const LATE_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

#[cfg(test)]
pub(in crate::bench) mod tests {
    use super::*;

    pub(in crate::bench) fn sample(generator: &'static str, round: u32, cpu_us: f64) -> Sample {
        Sample { generator, round, users: 15_000, cpu_us, memory_bytes: 250.0 }
    }

    #[test]
    fn generators_are_compared_with_the_bare_client_of_their_round() {
        let samples = [
            sample(BARE_CLIENT, 0, 20.0),
            sample(THRONG_RUN, 0, 30.0),
            sample(BARE_CLIENT, 1, 40.0),
            sample(THRONG_RUN, 1, 60.0),
        ];
        assert!((ratio(&samples, THRONG_RUN).unwrap() - 1.5).abs() < 1e-9);
        let text = markdown(&samples);
        assert!(text.contains("15,000 WebSocket users"), "{text}");
        assert!(text.contains("| throng run | 45.0 | 30.0-60.0 | 1.50 | 250 |"), "{text}");
        assert_eq!(markdown(&[]), "");
    }

    #[test]
    fn all_users_stay_until_the_last_has_arrived() {
        assert_eq!(arrivals(14_500), Duration::from_secs(15));
        let text = throng_scenario(23_000, 14_500);
        let line = "\n  - arrivals: {rate: 1000/s, for: 15s, most: 14500, spacing: even}\n";
        assert!(text.contains(line), "{text}");
        assert!(arrivals(15_000).as_secs() < STAY_S);
    }
}
