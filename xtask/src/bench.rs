//! `xtask bench`: throng beside its peers in one run, in interleaved rounds.
//!
//! In each round every workload is put to every peer, one after another; a server is started afresh for
//! each measurement and stopped after it, so that no peer ever runs beside another. The order of the
//! peers moves on by one each round, so that none always follows the same neighbour. What is compared
//! and why it is fair stands in `bench/README.md`.

mod chat;
mod client;
mod cpu;
mod erlang;
mod gate;
mod generator;
mod install;
mod memory;
mod peer;
mod result;
mod running;
mod server;
mod table;
mod toolbox;
mod workload;

use peer::Peer;
use result::{Report, Sample};
use std::cell::Cell;
use std::path::PathBuf;
use std::process::ExitCode;
use toolbox::Toolbox;
use workload::{Size, Workload, WorkloadLimits};

/// What `xtask bench` can be told.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often everything is measured; the table shows medians over the rounds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Two short rounds: to see that it works, not to quote
    #[arg(long)]
    quick: bool,
    /// Only these peers, by name or by the start of it (`ranch`); the bare loop is always measured
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only these workloads, by name
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<String>,
    /// Also write all samples and medians to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// The throng binary; its rows are left out when it is missing
    #[arg(long, default_value = "target/release/throng")]
    throng: PathBuf,
    /// The port of every server; below the range of ephemeral ports
    #[arg(long, default_value_t = 23_000)]
    port: u16,
    /// Threads (schedulers) of every server and of the client
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    threads: u16,
    /// WebSockets that are opened; a server keeps them all in one process, below its limit of open files
    #[arg(long, default_value_t = 15_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    websockets: u32,
    /// Exit with 1 unless throng stays within its targets
    #[arg(long)]
    gate: bool,
}

/// Runs the comparison and prints its table.
///
/// # Errors
/// A sentence for whoever typed the command: a tool that is missing, a port that is taken, a server
/// that does not start.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let rounds = if options.quick { options.rounds.min(2) } else { options.rounds };
    let websockets = options.websockets;
    let size = if options.quick {
        Size { warmup_s: 0.4, seconds: 1.0, websockets: websockets.min(QUICK_WEBSOCKETS) }
    } else {
        Size { warmup_s: 0.7, seconds: 2.0, websockets }
    };
    let workloads = workload::chosen(&options.workloads)?;
    let wanted = peer::wanted(&options.only, &workloads)?;
    let toolbox = Toolbox::prepare(options, &wanted)?;
    let (peers, mut missing) = peer::available(wanted, &toolbox);
    let samples: usize = peers
        .iter()
        .map(|peer| workloads.iter().filter(|&&workload| peer.takes(workload)).count())
        .sum();
    let repeats_left = Cell::new(samples * rounds as usize / 4);
    let mut bench = Bench { options, toolbox, size, repeats_left, holders: vec![] };
    if bench.compares_generators() && workloads.iter().any(|workload| workload.is_websocket()) {
        let (holders, reasons) = generator::users::available(&bench);
        bench.holders = holders;
        missing.extend(reasons);
    }

    let limits = bench.calibrate(&workloads)?;
    let mut report = Report::new(limits, rounds, workloads.clone(), missing);
    for round in 0..rounds {
        for &workload in &workloads {
            for peer in in_turn(&peers, round) {
                if peer.takes(workload) {
                    bench.measure(peer, workload, round, &mut report);
                }
            }
        }
        bench.measure_generators(round, &mut report);
        bench.write(&report)?;
    }
    finish(&bench, &report)
}

/// One run: the choices and the tools, everything that stays the same from sample to sample.
struct Bench<'a> {
    options: &'a Options,
    toolbox: Toolbox,
    size: Size,
    /// The generators that can hold WebSockets here.
    holders: Vec<generator::users::Generator>,
    /// How many disturbed samples may still be taken again: on a machine that is never quiet it does not
    /// help, and a run should not take more than a quarter longer for it.
    repeats_left: Cell<usize>,
}

impl Bench<'_> {
    /// The bare loop's own maxima, from which the offered rates are shares: the best of three, since
    /// whatever else the machine does can only lower it. Those that no workload needs are left at 0.
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

    /// A sample that fails is reported and left out: one broken peer does not cost the others' rows.
    fn measure(&self, peer: &Peer, workload: Workload, round: u32, report: &mut Report) {
        match self.quietest(peer, workload, round, &report.limits) {
            Ok(sample) => {
                eprintln!("{}", table::progress(&sample));
                report.samples.push(sample);
            }
            Err(error) => report.fail(format!("{} {}: {error}", peer.name, workload.name())),
        }
    }

    /// Measures again while others use much of the machine, and keeps the sample that was disturbed
    /// least. The choice looks at others' CPU alone, never at the result.
    fn quietest(
        &self,
        peer: &Peer,
        workload: Workload,
        round: u32,
        limits: &WorkloadLimits,
    ) -> Result<Sample, String> {
        let mut best = self.sample(peer, workload, round, limits)?;
        for _ in 1..ATTEMPTS_MAX {
            if best.foreign_share <= FOREIGN_SHARE_MOST || self.repeats_left.get() == 0 {
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

    /// After each round, so that a run that is broken off leaves what it had.
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
        peer::is_chosen(peer::GENERATOR, &self.options.only)
    }

    fn measure_generators(&self, round: u32, report: &mut Report) {
        let tcp = report.workloads.iter().any(|workload| !workload.is_websocket());
        if tcp && self.compares_generators() && self.toolbox.has_throng() {
            match generator::compare(self, &report.limits, round) {
                Ok(samples) => report.generators.extend(samples),
                Err(error) => report.fail(format!("generator: {error}")),
            }
        }
        for &holder in in_turn(&self.holders, round) {
            match generator::users::measure(self, holder, round) {
                Ok(sample) => {
                    eprintln!("{}", table::user_progress(&sample));
                    report.users.push(sample);
                }
                Err(error) => report.fail(format!("generator of WebSocket users: {error}")),
            }
        }
    }
}

/// All, beginning one further on in each round.
fn in_turn<T>(all: &[T], round: u32) -> impl Iterator<Item = &T> {
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
const FOREIGN_SHARE_MOST: f64 = 0.10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_begins_with_another_peer_and_measures_all() {
        let peers = peer::all();
        let names = |round| in_turn(&peers, round).map(|p| p.name).collect::<Vec<_>>();
        assert_ne!(names(0)[0], names(1)[0]);
        let (mut first, mut second) = (names(0), names(1));
        first.sort_unstable();
        second.sort_unstable();
        assert_eq!(first, second);
    }
}
