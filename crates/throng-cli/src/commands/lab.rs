//! `throng lab`: the bundled experiments, with server and generator on this machine.

mod control;
mod displays;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::Args;
use throng_lab::{LabOptions, LabReport, labs};
use throng_report::render::{Align, Table};
use throng_view::terminal::TerminalModel;

use crate::bus::BusFlags;
use crate::commands::run::AgentChoice;
use crate::dashboard::UiFlags;
use crate::interrupt::Interrupt;
use crate::metrics::MetricsFlag;
use crate::output::JsonOut;
use crate::progress::Progress;
use crate::report_files::{ReportPlace, RunReader};
use crate::{Exit, Failure, output, quantity};
use displays::LabDisplays;

/// List the bundled experiments, or run one with server and generator on this machine
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Lab {
    /// Name of the lab; without it, list all labs
    name: Option<String>,
    /// Users [default: as many as suit the machine, up to the article's number]
    #[arg(long, value_name = "N", requires = "name", value_parser = quantity::count)]
    users: Option<usize>,
    /// Seconds per row of the table [default: the whole lab takes a minute or two]
    #[arg(long, value_name = "N", requires = "name", value_parser = quantity::seconds)]
    seconds: Option<u64>,
    /// Arrivals per second, in labs with a steady arrival rate [default: well below this machine's
    /// limit]
    #[arg(long, value_name = "N", requires = "name", value_parser = quantity::per_s)]
    rate: Option<f64>,
    /// Run server and generator in a network namespace each; needs root, and is undone at the end
    #[arg(long, requires = "name")]
    isolate: bool,
    /// Stay in this network namespace even if its TCP hash table is small for the users [default:
    /// as root, use a namespace with a larger one]
    #[arg(long, requires = "name", conflicts_with = "isolate")]
    no_namespace: bool,
    #[command(flatten)]
    bus: BusFlags,
    /// Load the server from agents on the bus: a number of them, `all`, or those with a label,
    /// `label=eu`
    #[arg(long, value_name = "N|all|label=NAME", value_parser = agents,
        requires_all = ["name", "bus"], conflicts_with = "isolate")]
    agents: Option<String>,
    /// With --agents: address at which the server listens and the agents reach it
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1", requires = "agents")]
    listen: IpAddr,
    /// Serve and load over TLS, with a certificate that is made for the lab
    #[arg(long, requires = "name")]
    tls: bool,
    /// Run a size that does not fit this machine
    #[arg(long, requires = "name")]
    force: bool,
    /// Keep scenarios, run files and the output of server and generator in this folder
    #[arg(long, value_name = "DIR", requires = "name")]
    keep: Option<PathBuf>,
    /// Write a page for each run file that is kept, beside it
    #[arg(long, requires = "keep")]
    report: bool,
    #[command(flatten)]
    ui: UiFlags,
    /// Print lines of progress in place of the live view, and take no keys
    #[arg(long, requires = "name")]
    no_tui: bool,
    #[command(flatten)]
    metrics: MetricsFlag,
    /// Write the result as JSON; `-` is standard output
    #[arg(long, value_name = "FILE", value_parser = JsonOut::parse)]
    json: Option<JsonOut>,
}

const EXAMPLES: &str = "\
Examples:
  throng lab
  throng lab stressgrid-100k
  throng lab stressgrid-100k --tls
  throng lab connscale --users 200k --seconds 60 --open
  throng lab phoenix-2m --users 200k --rate 5k --keep results
  sudo throng lab fast-connect --isolate --json result.json
  throng lab connscale --bus nats://10.0.0.1:4222 --agents 4 --listen 10.0.0.2
  throng lab two-nodes --bus nats://127.0.0.1:4222

On a terminal it shows a live view; ? lists its keys.
Ctrl-C ends the load early and reports what was measured.

Exit codes:
  0  the lab ran    2  the lab cannot run    3  the result is invalid (`demo`: or degraded)
  4  the lab was ended early    5  a file could not be written whole";

impl Lab {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let quiet = self.json == Some(JsonOut::Stdout);
        let Some(name) = &self.name else {
            return self.list(quiet);
        };
        if let Some(json) = &self.json {
            json.check()?;
        }
        let options = LabOptions {
            users: self.users.map(|users| users as u64),
            seconds: self.seconds,
            rate: self.rate.map(|rate| rate.round().max(1.0) as u64),
            isolate: self.isolate,
            no_namespace: self.no_namespace,
            bus: self.bus.of_lab(),
            agents: self.agents.clone(),
            listen: Some(self.listen),
            over_tls: self.tls,
            keep_files: self.keep.clone(),
            force: self.force,
            ..LabOptions::default()
        };
        let served = self.metrics.serve_run()?;
        let interrupt = Interrupt::install(false)?;
        interrupt.also_set(&Arc::clone(&options.stop))?;
        let page = self.ui.start("The lab prepares its first run.", quiet)?;
        let view = || {
            let stop = Arc::clone(&options.stop);
            let first = move || stop.store(true, Ordering::Relaxed);
            Progress::view(TerminalModel::of_lab(name), &interrupt, first)
        };
        let view = (!self.no_tui && !quiet).then(view).flatten();
        let progress = view.unwrap_or_else(|| Progress::lines_of_lab(quiet));
        let mut displays = LabDisplays::new(name, progress, page, served, &options.stop);
        let report = throng_lab::run(name, &options, &mut |event| displays.show(&event));
        displays.finish();
        let report = report.map_err(|error| Failure::new(error.to_string()))?;
        let mut text = report.text(&program_name());
        let reported = self.write_pages(&report, &mut text);
        if quiet {
            output::print_error(text);
        } else {
            output::say("");
            output::say_painted(&output::for_terminal(text), colored);
        }
        // An error of a page costs no result.
        if let Some(json) = &self.json {
            json.write(&report)?;
        }
        reported?;
        displays.close();
        Ok(match (report.interrupted, report.is_trustworthy()) {
            (true, _) => Exit::Incomplete,
            (false, true) => Exit::Met,
            (false, false) => Exit::Invalid,
        })
    }

    /// Writes the page of each run file and adds a line for each to `text`.
    fn write_pages(&self, report: &LabReport, text: &mut String) -> Result<(), Failure> {
        let Some(folder) = self.keep.as_ref().filter(|_| self.report) else { return Ok(()) };
        for row in &report.diagnoses {
            let run_file = folder.join(format!("{}.jsonl", row.row));
            // Not every row has one: an article's own server writes none.
            if !run_file.exists() {
                continue;
            }
            let page = ReportPlace::files(&[ReportPlace::BesideRunFile], &run_file)?;
            RunReader::new(&run_file).write_named(&page, text)?;
        }
        Ok(())
    }

    fn list(&self, quiet: bool) -> Result<Exit, Failure> {
        if let Some(json) = &self.json {
            json.write(&labs().collect::<Vec<_>>())?;
        }
        if !quiet {
            let mut table = Table::new().aligned(&[Align::Left, Align::Left]);
            labs().for_each(|lab| table.row([lab.name, &lab.summary]));
            output::say(table.to_string());
        }
        Ok(Exit::Met)
    }
}

/// Checks a value of `--agents`, which the lab's load gets.
fn agents(text: &str) -> Result<String, String> {
    text.parse::<AgentChoice>()?;
    Ok(text.to_owned())
}

/// Colors the report for a terminal: emphasizes the first line and the grades.
fn colored(text: String) -> String {
    if !output::stdout_has_colors() {
        return text;
    }
    let line = |(i, line): (usize, &str)| match line.split_whitespace().last() {
        _ if i == 0 => format!("\x1b[1m{line}\x1b[0m\n"),
        Some("valid" | "degraded" | "invalid") => {
            let colored = line.replace("valid", "\x1b[32mvalid\x1b[0m");
            let colored = colored.replace("in\x1b[32mvalid", "\x1b[31minvalid");
            colored.replace("degraded", "\x1b[33mdegraded\x1b[0m") + "\n"
        }
        _ => format!("{line}\n"),
    };
    text.lines().enumerate().map(line).collect()
}

/// Returns this program's name as the user typed it: `throng`, or a path.
fn program_name() -> String {
    let name = std::env::args().next().unwrap_or_default();
    if name.is_empty() { "throng".to_owned() } else { name }
}
