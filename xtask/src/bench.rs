//! `xtask bench`: a comparison of throng with its peers in one run, in interleaved rounds.
//!
//! In each round every workload runs against every peer, one after another. Each measurement starts
//! its server and stops it afterwards, so no two peers ever run at the same time. The order of the
//! peers advances by one each round, so no peer always follows the same neighbour.
//! `bench/README.md` describes what is compared, and why the comparison is fair.

mod chat;
mod child_process;
mod client;
mod counter;
mod cpu;
mod erlang;
pub(crate) mod fleet;
mod gate;
mod generator;
mod install;
mod memory;
pub(crate) mod nodes;
mod peer;
mod result;
mod server;
mod table;
mod toolbox;
pub(crate) mod variables;
mod workload;

use peer::Peer;
use result::{Report, Sample};
use std::cell::Cell;
use std::path::PathBuf;
use std::process::ExitCode;
use toolbox::Toolbox;
use workload::{Size, Workload, WorkloadLimits};

/// The options of `xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of rounds; the table shows medians over the rounds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Run two short rounds: a functional check, not numbers to quote
    #[arg(long)]
    quick: bool,
    /// Measure only these peers, by name or prefix (`ranch`); the bare loop is always measured
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Measure only these workloads, by name
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<String>,
    /// Write all samples and medians to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// The throng binary; without it, its rows are skipped
    #[arg(long, default_value = "target/release/throng")]
    throng: PathBuf,
    /// Port of every server; choose one below the range of ephemeral ports
    #[arg(long, default_value_t = 23_000)]
    port: u16,
    /// Threads (schedulers) of every server and of the client
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    threads: u16,
    /// Number of WebSockets to open, below the limit of open files of one server process
    #[arg(long, default_value_t = 15_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    websockets: u32,
    /// Exit with 1 unless throng stays within its targets
    #[arg(long)]
    gate: bool,
}

/// Runs the comparison and prints its table.
///
/// A sentence for the user: a tool is missing, a port is in use, or a server does not start.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let rounds = if options.quick { options.rounds.min(2) } else { options.rounds };
    let websockets = options.websockets;
    let size = if options.quick {
        Size { warmup_s: 0.4, seconds: 1.0, websockets: websockets.min(QUICK_WEBSOCKETS) }
    } else {
        Size { warmup_s: 0.7, seconds: 2.0, websockets }
    };
    let workloads = workload::selected(&options.workloads)?;
    let wanted = peer::selected(&options.only, &workloads)?;
    let toolbox = Toolbox::prepare(options, &wanted)?;
    let (peers, mut missing) = peer::available(wanted, &toolbox);
    let samples: usize = peers
        .iter()
        .map(|peer| workloads.iter().filter(|&&workload| peer.supports(workload)).count())
        .sum();
    let repeats_left = Cell::new(samples * rounds as usize / 4);
    let mut bench = Bench { options, toolbox, size, repeats_left, user_generators: vec![] };
    if bench.compares_generators() && workloads.iter().any(|workload| workload.is_websocket()) {
        let (holders, reasons) = generator::users::available(&bench);
        bench.user_generators = holders;
        missing.extend(reasons);
    }

    let limits = bench.calibrate(&workloads)?;
    let mut report = Report::new(limits, rounds, workloads.clone(), missing);
    for round in 0..rounds {
        for &workload in &workloads {
            for peer in rotated(&peers, round) {
                if peer.supports(workload) {
                    bench.measure(peer, workload, round, &mut report);
                }
            }
        }
        bench.measure_generators(round, &mut report);
        bench.write(&report)?;
    }
    finish(&bench, &report)
}

/// One run: the options and the tools, which are the same for all samples.
struct Bench<'a> {
    options: &'a Options,
    toolbox: Toolbox,
    size: Size,
    /// The generators that can hold WebSockets on this machine.
    user_generators: Vec<generator::users::Generator>,
    /// The number of disturbed samples that may still be repeated. On a machine that is never quiet
    /// it does not help, and a run should not take more than a quarter longer for it.
    repeats_left: Cell<usize>,
}

impl Bench<'_> {
    /// Measures the bare loop's maxima, from which the offered rates are shares. Takes the best of
    /// three, because other load on the machine can only lower it. A maximum that no workload needs
    /// stays 0.
    fn calibrate(&self, workloads: &[Workload]) -> Result<WorkloadLimits, String> {
        let bare = Peer::bare();
        let maximum = |saturated: Workload| -> Result<f64, String> {
            let mut best = 0.0_f64;
            if workloads.iter().any(|workload| workload.kind() == saturated.kind()) {
                for _ in 0..3 {
                    best = best
                        .max(self.sample(&bare, saturated, 0, &WorkloadLimits::unknown())?.rate);
                }
                eprintln!("the bare loop's maximum, {}: {best:.0}/s", saturated.name());
            }
            Ok(best)
        };
        Ok(WorkloadLimits {
            connections_per_s: maximum(Workload::ChurnSaturated)?,
            messages_per_s: maximum(Workload::MessagesSaturated)?,
            websockets_per_s: maximum(Workload::WsOpenSaturated)?,
        })
    }

    /// Takes one sample. A sample that fails is reported and skipped, so one broken peer does not
    /// cost the rows of the others.
    fn measure(&self, peer: &Peer, workload: Workload, round: u32, report: &mut Report) {
        match self.least_disturbed(peer, workload, round, &report.limits) {
            Ok(sample) => {
                eprintln!("{}", table::progress(&sample));
                report.samples.push(sample);
            }
            Err(error) => report.add_failure(format!("{} {}: {error}", peer.name, workload.name())),
        }
    }

    /// Measures again while other programs use much of the machine, and keeps the least disturbed
    /// sample. The choice depends on the CPU of other programs alone, never on the result.
    fn least_disturbed(
        &self,
        peer: &Peer,
        workload: Workload,
        round: u32,
        limits: &WorkloadLimits,
    ) -> Result<Sample, String> {
        let mut best = self.sample(peer, workload, round, limits)?;
        for _ in 1..ATTEMPTS_MAX {
            if best.foreign_share <= FOREIGN_SHARE_MAX || self.repeats_left.get() == 0 {
                break;
            }
            self.repeats_left.set(self.repeats_left.get() - 1);
            let again = self.sample(peer, workload, round, limits)?;
            if again.foreign_share < best.foreign_share {
                best = again;
            }
        }
        Ok(best)
    }

    fn sample(
        &self,
        peer: &Peer,
        workload: Workload,
        round: u32,
        limits: &WorkloadLimits,
    ) -> Result<Sample, String> {
        let command = peer.command(workload, &self.toolbox, self.options);
        let server = server::PeerServer::start(command, self.options.port)?;
        let client = if workload.is_websocket() { "ws_client" } else { "client" };
        let mut load = std::process::Command::new(self.toolbox.bare(client));
        load.args(workload.client_arguments(limits, &self.size))
            .args(["--port", &self.options.port.to_string()])
            .args(["--threads", &self.options.threads.to_string()]);
        let measured = client::run(load, server.id())?;
        server.stop()?;
        Ok(Sample::new(peer.name, workload, round, &measured))
    }

    /// Writes the results after each round, so that an aborted run leaves its results.
    fn write(&self, report: &Report) -> Result<(), String> {
        let write = |path: PathBuf, text: &str| {
            std::fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
        };
        let json = report.json();
        if let Some(path) = &self.options.json {
            write(path.clone(), &json)?;
        }
        write(self.toolbox.folder().join("bench.json"), &json)?;
        let text = table::markdown(report, self.options.threads);
        write(self.toolbox.folder().join("bench.md"), &text)
    }

    fn compares_generators(&self) -> bool {
        peer::is_selected(peer::GENERATOR, &self.options.only)
    }

    fn measure_generators(&self, round: u32, report: &mut Report) {
        let tcp = report.workloads.iter().any(|workload| !workload.is_websocket());
        if tcp && self.compares_generators() && self.toolbox.has_throng() {
            match generator::compare(self, &report.limits, round) {
                Ok(samples) => report.generators.extend(samples),
                Err(error) => report.add_failure(format!("generator: {error}")),
            }
        }
        for &holder in rotated(&self.user_generators, round) {
            match generator::users::measure(self, holder, round) {
                Ok(sample) => {
                    eprintln!("{}", table::user_progress(&sample));
                    report.users.push(sample);
                }
                Err(error) => report.add_failure(format!("generator of WebSocket users: {error}")),
            }
        }
    }
}

/// Returns all elements, starting one position later in each round.
fn rotated<T>(all: &[T], round: u32) -> impl Iterator<Item = &T> {
    let first = round as usize % all.len().max(1);
    all[first..].iter().chain(&all[..first])
}

fn finish(bench: &Bench<'_>, report: &Report) -> Result<ExitCode, String> {
    println!("{}", table::markdown(report, bench.options.threads));
    if !bench.options.gate {
        return Ok(ExitCode::SUCCESS);
    }
    let verdict = gate::judge(report);
    for note in &verdict.notes {
        println!("note    {note}");
    }
    for miss in &verdict.misses {
        println!("MISSED  {miss}");
    }
    Ok(if verdict.misses.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

const QUICK_WEBSOCKETS: u32 = 3_000;
const ATTEMPTS_MAX: u32 = 3;
const FOREIGN_SHARE_MAX: f64 = 0.10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_begins_with_another_peer_and_measures_all() {
        let peers = peer::all();
        let names = |round| rotated(&peers, round).map(|p| p.name).collect::<Vec<_>>();
        assert_ne!(names(0)[0], names(1)[0]);
        let (mut first, mut second) = (names(0), names(1));
        first.sort_unstable();
        second.sort_unstable();
        assert_eq!(first, second);
    }
}
