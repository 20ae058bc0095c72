//! The flags of `throng run`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use throng_load::run::LoadDriver;
use throng_load::scenario::Target;

use super::fleet_flags::FleetFlags;
use super::sources;
use super::trace::TraceFlags;
use crate::dashboard::UiFlags;
use crate::exit::exit_codes;
use crate::key_log::KeyLogFlag;
use crate::metrics::MetricsFlag;
use crate::output::JsonOut;
use crate::quantity;
use crate::report_files::ReportPlace;
use crate::scenario_file::ScenarioChanges;

/// Load a server according to a scenario, and report
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// The scenario file, or a file of another load generator
    #[arg(value_name = "SCENARIO.yaml")]
    pub(super) scenario: PathBuf,
    /// Address to load instead of the scenario's target
    #[arg(long, value_name = "URL")]
    pub(super) target: Option<Target>,
    #[command(flatten)]
    pub(super) changes: ScenarioChanges,
    /// Write the summary as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE", value_parser = JsonOut::parse)]
    pub(super) json: Option<JsonOut>,
    /// Run file to write, one line per interval; an existing file is overwritten
    #[arg(long, value_name = "FILE", default_value = "run.jsonl")]
    pub(super) record: PathBuf,
    /// Write no run file
    #[arg(long, conflicts_with = "record")]
    pub(super) no_record: bool,
    /// Write a report when the run is over; its extension says the format: .html, .htm, .json,
    /// .csv, .md, .markdown, .xml or .txt; repeatable [default FILE: the run file's name with
    /// .html]
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "",
        value_parser = ReportPlace::parse)]
    pub(super) report: Vec<ReportPlace>,
    #[command(flatten)]
    pub(super) ui: UiFlags,
    #[command(flatten)]
    pub(super) fleet: FleetFlags,
    /// Number of event loops (with --agents: of each agent) [default: one per CPU, more if the
    /// connections need their fd tables]
    #[arg(long, value_name = "N", value_parser = quantity::cores)]
    pub(super) cores: Option<usize>,
    /// Connect from this address, or from all addresses of a network; repeatable
    #[arg(long, value_name = "ADDR[/PREFIX]", value_parser = sources::parse)]
    pub(super) source: Vec<sources::Network>,
    /// Connect from these ports, assigned by throng [default: the kernel chooses]
    #[arg(long, value_name = "LOW-HIGH", value_parser = sources::parse_ports)]
    pub(super) source_ports: Option<RangeInclusive<u16>>,
    /// Driver by which the cores reach the network [default: epoll]
    #[arg(long, hide = !LoadDriver::SEVERAL, value_name = "NAME", value_parser = LoadDriver::named,
        conflicts_with = "agents")]
    pub(super) driver: Option<LoadDriver>,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// Time between two lines of the run file; a line of progress is printed at each tenth
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::interval)]
    pub(super) interval: Duration,
    /// Path of the control socket for `throng ctl` [default: a file of this user]
    #[arg(long, value_name = "PATH")]
    pub(super) control: Option<PathBuf>,
    /// Control socket of the loaded throng server [default: found by its address]
    #[arg(long, value_name = "PATH")]
    pub(super) server_control: Option<PathBuf>,
    /// Record the counters of the server's machine, where `throng doctor --watch --listen` runs at
    /// this address
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) server_facts: Option<String>,
    #[command(flatten)]
    pub(super) key_log: KeyLogFlag,
    #[command(flatten)]
    pub(super) metrics: MetricsFlag,
    /// Confirm that you may load this address outside this machine and its networks
    #[arg(long)]
    pub(super) i_am_allowed: bool,
    /// Time for measuring this generator's capacity before the run, against a server of its own
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = quantity::calibration)]
    pub(super) calibrate: Duration,
    /// Do not measure this generator's capacity
    #[arg(long, conflicts_with = "calibrate")]
    pub(super) no_calibrate: bool,
    /// Run although a limit of this machine is insufficient, or a part of an imported file is
    /// missing
    #[arg(long)]
    pub(super) force: bool,
    /// Time after which a run that is paused ends by itself
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = quantity::duration)]
    pub(super) pause_max: Duration,
    /// Go on even if every connect is refused [default: such a run ends after 10 s]
    #[arg(long)]
    pub(super) keep_trying: bool,
    /// Print lines of progress in place of the live view, and take no keys
    #[arg(long)]
    pub(super) no_tui: bool,
    #[command(flatten)]
    pub(super) trace: TraceFlags,
    /// Print the whole report: all tables and percentiles, costs, probes, and the evidence and
    /// remedy of each finding [default: one screen of it]
    #[arg(long)]
    pub(super) details: bool,
    /// Print mistakes of the scenario as annotations, too: GitHub Actions shows them beside their
    /// lines
    #[arg(long)]
    pub(super) annotations: bool,
    /// Show the plan and its requirements, and do not connect to the target; with --agents, show
    /// the share of each agent
    #[arg(long, conflicts_with_all = ["json", "report"])]
    pub(super) dry_run: bool,
    /// End when standard input closes, as it does when the parent process ends
    #[arg(long)]
    pub(super) exit_with_parent: bool,
    /// Exit code where a limit of this machine is in the way, for `throng find`
    #[arg(long, hide = true, value_name = "CODE", default_value_t = 2)]
    pub(super) refusal_code: u8,
}

const EXAMPLES: &str = concat!(
    "\
Examples:
  throng run scenario.yaml
  throng run scenario.yaml --target tcp://10.0.0.7:5555 --json summary.json
  throng run scenario.yaml --details
  throng run scenario.yaml --report
  throng run scenario.yaml --report page.html --report tests.xml
  throng run scenario.yaml --dry-run
  throng run scenario.yaml --source 10.0.1.0/28 --record monday.jsonl
  throng run scenario.yaml --json - | jq .connect.latency_us.p99
  throng run scenario.yaml --calibrate 5s
  throng run scenario.yaml --open
  throng run scenario.yaml --metrics 9464
  throng run scenario.yaml --trace-user 3
  throng run scenario.yaml --target wss://127.0.0.1:9160/chat --tls-keylog keys.log
  throng run scenario.yaml --bus nats://10.0.0.1:4222 --agents all

While it runs: throng ctl start 100 | stop 50 | pause | resume | shutdown, with --pid N of
`throng ctl list`; throng ctl count.
On a terminal it shows a live view, whose keys do the same; ? lists them.
Ctrl-C ramps down and reports; a second Ctrl-C stops at once.

",
    exit_codes!()
);
