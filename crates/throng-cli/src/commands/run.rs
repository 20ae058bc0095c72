//! `throng run`: loads a target according to a scenario, and reports the outcome.
//!
//! The flags are here. [`plan`] resolves them and refuses what must not or cannot run;
//! [`calibrate`] measures the generator's maximum; [`live`] answers the control socket; [`text`]
//! renders the lines before and after the run.

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
use std::time::Duration;

use clap::Args;
use throng_base::units::show_duration;
use throng_control::ProcessRole;
use throng_lab::recorder::{
    Outcome, RecordError, Recorder, RecorderOptions, RunFileLock, RunProbes,
};
use throng_load::run::RunningLoad;
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

/// Load a server according to a scenario, and report
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// The scenario file
    #[arg(value_name = "SCENARIO.yaml")]
    scenario: PathBuf,
    /// Address to load instead of the scenario's target
    #[arg(long, value_name = "URL")]
    target: Option<Target>,
    /// Write the summary as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE", value_parser = JsonOut::parse)]
    json: Option<JsonOut>,
    /// Run file to write, one line per interval; an existing file is overwritten
    #[arg(long, value_name = "FILE", default_value = "run.jsonl")]
    record: PathBuf,
    /// Write no run file
    #[arg(long, conflicts_with = "record")]
    no_record: bool,
    /// Number of event loops [default: one per CPU, more if the connections need their fd tables]
    #[arg(long, value_name = "N", value_parser = quantity::cores)]
    cores: Option<usize>,
    /// Connect from this address, or from all addresses of a network; repeatable
    #[arg(long, value_name = "ADDR[/PREFIX]", value_parser = sources::parse)]
    source: Vec<sources::Network>,
    /// Connect from these ports, assigned by throng [default: the kernel chooses]
    #[arg(long, value_name = "LOW-HIGH", value_parser = sources::parse_ports)]
    source_ports: Option<RangeInclusive<u16>>,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Time between two progress lines, and between two lines of the run file
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::interval)]
    interval: Duration,
    /// Path of the control socket for `throng ctl` [default: a file of this user]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Control socket of the loaded throng server [default: found by its address]
    #[arg(long, value_name = "PATH")]
    server_control: Option<PathBuf>,
    /// Record the server's host from this watch; start it there with `throng doctor --watch
    /// --listen`
    #[arg(long, value_name = "HOST:PORT")]
    server_facts: Option<String>,
    /// Confirm that you may load this address outside this machine and its networks
    #[arg(long)]
    i_am_allowed: bool,
    /// Time for measuring this generator's capacity before the run, against a server of its own
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = quantity::calibration)]
    calibrate: Duration,
    /// Do not measure this generator's capacity
    #[arg(long, conflicts_with = "calibrate")]
    no_calibrate: bool,
    /// Run although a limit of this machine is insufficient
    #[arg(long)]
    force: bool,
    /// Show the plan and its requirements, and connect to nothing
    #[arg(long)]
    dry_run: bool,
    /// End when standard input ends, as it does when the parent process has ended
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
Ctrl-C ramps down and reports; a second Ctrl-C stops at once.

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
        let observer = observer::ServerObserver::find(self, &plan.load.targets)?;
        plan.header.target_is_here |= observer.is_on_this_machine();
        if let Some(facts) = observer.facts(&plan.load.targets) {
            plan.header.server_facts = Some(facts);
        }
        let unwritten = |error: RecordError| {
            Failure::new(format!(
                "{error}\n  the run was not started; pass --record FILE for another run file, or \
                 --no-record for none"
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
        progress.note(&text::beginning(&plan, observer.server.as_ref()));
        if let Some(address) = &self.server_facts {
            progress.note(&format!("server facts: from the watch at {address}"));
        }
        if let Some(why) = uncalibrated {
            progress.note(&format!("calibration failed: {why}"));
        }
        let outcome = self.record(plan, observer, recorder, &interrupt, &progress)?;
        progress.finish();
        self.finish(&outcome, &interrupt, quiet)
    }

    /// Measures this generator's capacity, unless that is disabled. Returns the reason if it is
    /// unknown; the error is the source of a request to end.
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
            format!("measuring this generator's capacity for {length} (--no-calibrate skips it)");
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
        plan.header.started = throng_driver::utc_now();
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

    /// Runs the load to its end, or until a request to end.
    fn record(
        &self,
        plan: RunPlan,
        observer: observer::ServerObserver,
        recorder: Recorder,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<Outcome, Failure> {
        let title = format!("{} against {}", self.scenario.display(), plan.target);
        let (server, kernel) = observer.probes(&plan);
        let load =
            RunningLoad::start(plan.load).map_err(|error| Failure::new(error.to_string()))?;
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
        let mut stopping = false;
        while !recording.is_finished() {
            if let Some(by) = interrupt.requested().filter(|_| !stopping) {
                stopping = true;
                progress.note(&format!(
                    "{by}: ramping down, report follows; press Ctrl-C again to stop now"
                ));
                recording.handle().stop(&by.to_string());
            }
            progress.tick();
            std::thread::sleep(LOOK_EVERY);
        }
        let outcome = recording.wait();
        // First the socket, whose threads use the load, then the load.
        drop(control.map_err(|error| Failure::new(error.to_string()))?);
        if let Some(load) = Arc::into_inner(load).and_then(|load| load.into_inner().ok()) {
            load.join();
        }
        Ok(outcome)
    }

    /// Prints the report and writes the JSON.
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
        match (interrupt.requested(), exit) {
            (Some(by), RunExit::Incomplete) => {
                text += &format!("\ninterrupted by {by}: the report covers the part that ran");
            }
            (Some(by), _) => text += &format!("\n{by} arrived after the plan was over"),
            (None, _) => {}
        }
        if let Some(error) = &outcome.run_file_error {
            text += &format!("\nthe run file is incomplete: {error}");
        } else if !self.no_record {
            let path = self.record.display();
            text += &format!("\nrun file: {path}; show it with `throng report {path}`");
        }
        if quiet {
            output::print_error(text);
        } else {
            output::say(format!("\n{text}"));
        }
        if let Some(json) = &self.json {
            let Outcome { summary, judgements, diagnosis, .. } = outcome;
            json.write(&text::summary_json(summary, judgements, diagnosis))?;
        }
        if outcome.end.reason == RunEndReason::Failed {
            let why = outcome.end.detail.as_deref().unwrap_or("one of its cores ended");
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
