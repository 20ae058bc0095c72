//! `throng run`: load a target as a scenario says, and tell what came of it.
//!
//! Flags as typed are here; [`plan`] resolves them and refuses what must not or cannot run; [`calibrate`] finds out what this
//! generator does at most; [`live`] is the generator as it is steered; [`words`] is what is shown before and after.

mod calibrate;
mod live;
mod observer;
mod plan;
mod preflight;
pub(crate) mod sources;
pub(crate) mod text;

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use clap::Args;
use throng_base::units::show_duration;
use throng_control::ProcessRole;
use throng_lab::recorder::{
    Outcome, RecordError, Recorder, RecorderOptions, RunFileLock, RunProbes,
};
use throng_load::run::Load;
use throng_load::scenario::Target;
use throng_report::RunExit;
use throng_report::render::render_text;
use throng_report::runfile::RunEndReason;

use crate::exit::exit_codes;
use crate::interrupt::{By, Interrupt, LOOK_EVERY};
use crate::output::JsonOut;
use crate::progress::Progress;
use crate::{Exit, Failure, output, quantity};
use calibrate::CalibrationResult;
use live::LoadControl;
use plan::RunPlan;

/// Load a server as a scenario says, and report
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// The scenario
    #[arg(value_name = "SCENARIO.yaml")]
    scenario: PathBuf,
    /// Whom to load, in place of the scenario's target
    #[arg(long, value_name = "URL")]
    target: Option<Target>,
    /// Write the summary as JSON; `-` is standard output
    #[arg(long, value_name = "FILE", value_parser = JsonOut::parse)]
    json: Option<JsonOut>,
    /// The run file, a line an interval; an earlier one of that name is overwritten
    #[arg(long, value_name = "FILE", default_value = "run.jsonl")]
    record: PathBuf,
    /// Write no run file
    #[arg(long, conflicts_with = "record")]
    no_record: bool,
    /// Event loops [default: one a CPU, more where the connections need their fd tables]
    #[arg(long, value_name = "N", value_parser = quantity::cores)]
    cores: Option<usize>,
    /// Connect from this address, or from all of a network; may be given several times
    #[arg(long, value_name = "ADDR[/PREFIX]", value_parser = sources::parse)]
    source: Vec<sources::Network>,
    /// Connect from these ports, handed out by throng [default: the kernel chooses]
    #[arg(long, value_name = "LOW-HIGH", value_parser = sources::parse_ports)]
    source_ports: Option<RangeInclusive<u16>>,
    /// Decides everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Time between two lines, and between two entries of the run file
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::interval)]
    interval: Duration,
    /// Where to answer `throng ctl` [default: a file of this user]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// The control socket of the throng server that is loaded [default: found by its address]
    #[arg(long, value_name = "PATH")]
    server_control: Option<PathBuf>,
    /// Record what a watch on the server's host sees: `throng doctor --watch --listen` there
    #[arg(long, value_name = "HOST:PORT")]
    server_facts: Option<String>,
    /// Load an address outside this machine and its networks: it is yours, or its owner said yes
    #[arg(long)]
    i_am_allowed: bool,
    /// How long to measure first what this generator can do, against a server of its own
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = quantity::calibration)]
    calibrate: Duration,
    /// Do not measure what this generator can do
    #[arg(long, conflicts_with = "calibrate")]
    no_calibrate: bool,
    /// Run although a limit of this machine is in the way
    #[arg(long)]
    force: bool,
    /// Show what would run and what it needs, and connect to nothing
    #[arg(long)]
    dry_run: bool,
    /// End when standard input does, as it does when the parent process is gone
    #[arg(long)]
    exit_with_parent: bool,
}

const EXAMPLES: &str = concat!(
    "\
Examples:
  throng run scenario.yaml
  throng run scenario.yaml --target tcp://10.0.0.7:5555 --json summary.json
  throng run scenario.yaml --dry-run
  throng run scenario.yaml --source 10.0.1.0/28 --record monday.jsonl
  throng run scenario.yaml --json - | jq .connect.latency_us.p99
  throng run scenario.yaml --calibrate 5s

While it runs: throng ctl start 100 | stop 50 | count | pause | resume | shutdown.
Ctrl-C ramps down and reports; a second one ends at once.

",
    exit_codes!()
);

impl Run {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let mut plan = RunPlan::new(self)?;
        if self.dry_run {
            output::say(text::plan(&plan));
            let can_run = plan.preflight.fits() || self.force;
            return Ok(if can_run { Exit::Met } else { Exit::CannotRun });
        }
        if let Some(json) = &self.json {
            json.check()?;
        }
        let beside = observer::ServerObserver::find(self, &plan.load.targets)?;
        plan.header.target_is_here |= beside.is_on_this_machine();
        let unwritten = |error: RecordError| {
            Failure::new(format!(
                "{error}\n  the run was not started; --record FILE writes elsewhere, --no-record nowhere"
            ))
        };
        let run_file = (!self.no_record).then_some(&*self.record);
        let place = RunFileLock::acquire(run_file).map_err(unwritten)?;
        let interrupt = Interrupt::install(self.exit_with_parent)?;
        let quiet = self.json == Some(JsonOut::Stdout);
        let uncalibrated = match self.calibrate(&mut plan, &interrupt, quiet) {
            Ok(uncalibrated) => uncalibrated,
            Err(by) => {
                output::print_error(format!("{by}: the run was not started"));
                return Ok(Exit::Incomplete);
            }
        };
        let recorder = place.begin(self.recorder_options(&plan)).map_err(unwritten)?;
        let progress = Progress::new(plan.load.length, quiet);
        progress.note(&text::beginning(&plan, beside.server.as_ref()));
        if let Some(address) = &self.server_facts {
            progress.note(&format!("facts about the server: from the watch at {address}"));
        }
        if let Some(why) = uncalibrated {
            progress.note(&format!("what this generator can do is not known: {why}"));
        }
        let outcome = self.record(plan, beside, recorder, &interrupt, &progress)?;
        progress.finish();
        self.finish(&outcome, &interrupt, quiet)
    }

    /// Measures what this generator can do, unless nobody wants to know, and tells why it could
    /// not; an error is who asked for the end meanwhile.
    fn calibrate(
        &self,
        plan: &mut RunPlan,
        interrupt: &Interrupt,
        quiet: bool,
    ) -> Result<Option<String>, By> {
        if self.no_calibrate {
            return Ok(None);
        }
        let length = show_duration(self.calibrate);
        let note =
            format!("first, for {length}: what can this generator do? --no-calibrate skips it");
        if quiet {
            output::print_error(note)
        } else {
            output::say(note)
        }
        let unknown = match calibrate::calibrate(plan, self.calibrate, interrupt) {
            CalibrationResult::Measured(ceiling) => {
                plan.header.ceiling = Some(ceiling);
                None
            }
            CalibrationResult::Unknown(why) => Some(why),
            CalibrationResult::Interrupted(by) => return Err(by),
        };
        plan.header.started = text::rfc3339(SystemTime::now());
        Ok(unknown)
    }

    fn recorder_options(&self, plan: &RunPlan) -> RecorderOptions {
        RecorderOptions {
            run_file: (!self.no_record).then(|| self.record.clone()),
            header: plan.header.clone(),
            interval: self.interval,
            thresholds: plan.thresholds.clone(),
            ..RecorderOptions::default()
        }
    }

    /// Runs the load to its end, or to somebody's wish.
    fn record(
        &self,
        plan: RunPlan,
        beside: observer::ServerObserver,
        recorder: Recorder,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<Outcome, Failure> {
        let title = format!("{} against {}", self.scenario.display(), plan.target);
        let (server, kernel) = beside.probes(&plan);
        let load = Load::start(plan.load).map_err(|error| Failure::new(error.to_string()))?;
        let load = Arc::new(Mutex::new(load));
        let sources = RunProbes { generator: Box::new(Arc::clone(&load)), server, kernel };
        let recording = recorder.start(sources, progress.callback());
        let control = LoadControl::new(Arc::clone(&load), recording.handle(), interrupt.clone());
        let control = throng_control::serve(
            self.control.as_deref(),
            ProcessRole::Load,
            &title,
            Arc::new(control),
        );
        if let Err(error) = &control {
            recording.handle().stop("no control socket");
            progress.note(&error.to_string());
        }
        let mut asked = false;
        while !recording.is_finished() {
            if let Some(by) = interrupt.asked().filter(|_| !asked) {
                asked = true;
                progress.note(&format!(
                    "{by}: ramping down, the report follows; once more ends at once"
                ));
                recording.handle().stop(&by.to_string());
            }
            progress.tick();
            std::thread::sleep(LOOK_EVERY);
        }
        let outcome = recording.wait();
        // First the socket, whose threads steer the load, then the load.
        drop(control.map_err(|error| Failure::new(error.to_string()))?);
        if let Some(load) = Arc::into_inner(load).and_then(|load| load.into_inner().ok()) {
            load.join();
        }
        Ok(outcome)
    }

    /// Reports.
    fn finish(
        &self,
        outcome: &Outcome,
        interrupt: &Interrupt,
        quiet: bool,
    ) -> Result<Exit, Failure> {
        let mut text = render_text(&outcome.summary, &outcome.judgements, Some(&outcome.diagnosis));
        let exit = outcome.exit();
        let unreached = text::unreached(&outcome.summary);
        if let Some(sentence) = unreached.as_ref().filter(|_| exit != RunExit::Unreached) {
            text += &format!("\n{sentence}");
        } else if let Some(sentence) = outcome.summary.shortcoming() {
            text += &format!("\n{sentence}");
        }
        match (interrupt.asked(), exit) {
            (Some(by), RunExit::Incomplete) => {
                text += &format!("\ninterrupted by {by}: this is what had run by then");
            }
            (Some(by), _) => text += &format!("\n{by} came when the plan was over"),
            (None, _) => {}
        }
        if let Some(error) = &outcome.run_file_error {
            text += &format!("\nthe run file is not whole: {error}");
        } else if !self.no_record {
            let path = self.record.display();
            text += &format!("\nthe run is in {path}: throng report {path}");
        }
        match quiet {
            true => output::print_error(text),
            false => output::say(format!("\n{text}")),
        }
        if let Some(json) = &self.json {
            let Outcome { summary, judgements, diagnosis, .. } = outcome;
            json.write(&text::summary_json(summary, judgements, diagnosis))?;
        }
        if outcome.end.reason == RunEndReason::Failed {
            let why = outcome.end.detail.as_deref().unwrap_or("a core of it has ended");
            output::print_error(format!("the generator failed: {why}"));
            return Ok(Exit::Invalid);
        }
        match unreached {
            Some(sentence) if exit == RunExit::Unreached => Err(Failure::new(sentence)),
            _ => Ok(exit.into()),
        }
    }

    fn addresses(&self) -> Result<Vec<IpAddr>, Failure> {
        sources::addresses(&self.source)
    }
}
