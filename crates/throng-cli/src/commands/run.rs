//! `throng run`: loads a target according to a scenario, and reports the outcome.
//!
//! [`plan`] resolves the [`flags`] and refuses what must not or cannot run; [`calibrate`] measures
//! the generator's maximum; [`live`] answers the control socket; [`text`] renders the lines before
//! and after the run.

mod calibrate;
mod displays;
mod flags;
mod fleet;
mod fleet_flags;
mod live;
mod load;
mod not_started;
mod observer;
mod outputs;
mod plan;
mod preflight;
mod setup;
pub(crate) mod sources;
pub(crate) mod text;
mod trace;
mod warnings;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use throng_base::units::{plural, show_duration};
use throng_control::{ControlTarget, ProcessRole};
use throng_fleet::FleetLoad;
use throng_load::run::RunningLoad;
use throng_load::scenario::ScenarioLoad;
use throng_measure::runfile::RunEndReason;
use throng_report::RunExit;
use throng_run::RunContent;
use throng_run::recorder::{
    Outcome, RecordError, Recorder, RecorderOptions, ResumedRun, RunFileLock, RunProbes,
};
use throng_view::terminal::TerminalModel;

use crate::dashboard::LivePage;
use crate::interrupt::{By, Interrupt, LOOK_EVERY};
use crate::metrics::RunEndpoint;
use crate::output::JsonOut;
use crate::progress::Progress;
use crate::report_files::{self, ReportFile, ReportPlace, RunReader};
use crate::scenario_warning::ScenarioWarning;
use crate::{Exit, Failure, output};
use calibrate::CalibrationResult;
use displays::RunDisplays;
pub(crate) use flags::Run;
use fleet::ReadyFleet;
pub(crate) use fleet::choose;
pub(crate) use fleet_flags::AgentChoice;
use live::LoadControl;
use load::RunLoad;
use not_started::NotStarted;
use observer::ServerObserver;
use plan::RunPlan;
use trace::{TraceFile, TraceWriter};

/// A run that is about to begin: its generator is calibrated, and `setup` has run.
struct ReadyRun {
    plan: RunPlan,
    observer: ServerObserver,
    place: RunFileLock,
    page: LivePage,
    metrics: Option<RunEndpoint>,
    /// The reason why the generator's maximum is unknown.
    uncalibrated: Option<String>,
    /// The agents that make the run, if this machine does not.
    fleet: Option<ReadyFleet>,
    /// What `setup` has stored.
    stored: Vec<Vec<u8>>,
}

/// Where a load comes from.
enum LoadStart {
    /// This machine starts it.
    Own,
    /// Agents start it, with what `setup` has stored.
    Fleet(ReadyFleet, Vec<Vec<u8>>),
    /// Agents have started it for another process.
    Resumed(Box<FleetLoad>),
}

/// What a load leaves behind.
struct EndedRun {
    outcome: Outcome,
    page: LivePage,
    trace: Option<TraceFile>,
    warnings: Vec<ScenarioWarning>,
}

impl EndedRun {
    /// Returns the JSON of the run, with the warnings about its scenario.
    fn json(&self) -> Value {
        let mut value = self.outcome.result.json();
        value["warnings"] = json!(self.warnings);
        value
    }
}

impl Run {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        if let Some(id) = &self.fleet.resume {
            return self.resume(id);
        }
        let plan = RunPlan::new(self)?;
        if let Some(report) = &plan.fidelity {
            self.note(&report.to_string());
        }
        self.warn(&plan);
        fleet::check(self)?;
        if self.dry_run {
            return self.show(&plan);
        }
        self.check_outputs()?;
        let warnings = plan.warnings();
        self.run_planned(plan).unwrap_or_else(|failure| {
            // The check has made the file. Without a run, it says why there is none.
            self.write_not_started(NotStarted::new(failure.to_string(), warnings))?;
            Err(failure)
        })
    }

    /// Makes the run. Returns how it ended once the JSON holds its results, or why there are none;
    /// an error if the JSON has neither.
    fn run_planned(&self, mut plan: RunPlan) -> Result<Result<Exit, Failure>, Failure> {
        let reports = ReportPlace::files(&self.report, &self.record)?;
        let observer = self.observe(&mut plan)?;
        let metrics = self.metrics.serve_run()?;
        let run_file = (!self.no_record).then_some(&*self.record);
        let place = RunFileLock::acquire(run_file).map_err(unwritten)?;
        let interrupt = Interrupt::install(self.exit_with_parent)?;
        let first = "The run begins after the generator's calibration.";
        let page = self.ui.start(first, self.is_quiet())?;
        let fleet = self.assemble(&mut plan, &interrupt)?;
        let uncalibrated = match self.calibrate(&mut plan, &interrupt) {
            Ok(uncalibrated) => uncalibrated,
            Err(by) => {
                let error = format!("{by}: the run was not started");
                output::print_error(&error);
                let written = self.write_not_started(NotStarted::new(error, plan.warnings()));
                return Ok(written.map(|()| Exit::Incomplete));
            }
        };
        let stored = match self.set_up(&mut plan, &interrupt) {
            Ok(stored) => stored,
            Err(error) => return Ok(self.end_after_setup(&error, &plan, &interrupt)),
        };
        let (scenario, options) = (plan.scenario.clone(), plan.options.clone());
        // The file is whole when the last connection has ended: that of `teardown`.
        let _key_log = plan.key_log.clone();
        let ready = ReadyRun { plan, observer, place, page, metrics, uncalibrated, fleet, stored };
        let ended = self.load(ready, &interrupt);
        // The results come first: nothing that `teardown` does costs them.
        let told = ended.map(|ended| {
            let more_follows = scenario.teardown.is_some();
            (self.tell(&ended, &reports, &interrupt, more_follows), ended)
        });
        let torn_down = self.tear_down_after_run(&scenario, &options, &interrupt);
        let (exit, ended) = told?;
        let summary = scenario.teardown.is_some().then(|| ended.json());
        ended.page.close();
        Ok(match summary {
            Some(summary) => match self.write_teardown(summary, torn_down) {
                Ok(()) => exit,
                Err(failure) => {
                    failure.print();
                    exit.map(Exit::or_unwritten)
                }
            },
            None => exit,
        })
    }

    /// Collects the rest of a run whose own process has ended.
    fn resume(&self, id: &str) -> Result<Exit, Failure> {
        let mut plan = RunPlan::new(self)?;
        fleet::check(self)?;
        let reports = ReportPlace::files(&self.report, &self.record)?;
        let resumed = ResumedRun::read(&self.record).map_err(|error| unread(id, &error))?;
        let observer = self.observe(&mut plan)?;
        let metrics = self.metrics.serve_run()?;
        let interrupt = Interrupt::install(self.exit_with_parent)?;
        let (load, began) = self.take_over(id, &plan, &resumed)?;
        plan.header = resumed.header.clone();
        let recorded = resumed.intervals.len().saturating_sub(1) as u64;
        let intervals = plural(recorded, "interval", "intervals");
        self.note(&format!("run {id}: taken over after {recorded} {intervals}"));
        let recorder = resumed.go_on(self.recorder_options(&plan), began)?;
        let progress = self.progress(&plan, &interrupt);
        let page = self.ui.start("The run goes on.", self.is_quiet())?;
        let displays = RunDisplays { progress, page, metrics };
        displays.begin(&self.scenario.to_string_lossy(), &plan);
        let start = LoadStart::Resumed(load.into());
        let has_teardown = plan.scenario.teardown.is_some();
        let warnings = plan.warnings();
        let outcome = self.record(plan, observer, recorder, &interrupt, start, &displays)?;
        let ended = EndedRun { outcome, page: displays.page, trace: None, warnings };
        let exit = self.tell(&ended, &reports, &interrupt, false);
        if has_teardown {
            self.note("`teardown` was not taken: what `setup` has stored went with its process");
        }
        ended.page.close();
        exit
    }

    /// Reports whether standard output is for the JSON alone.
    fn is_quiet(&self) -> bool {
        self.json == Some(JsonOut::Stdout)
    }

    fn note(&self, text: &str) {
        output::say_beside(self.is_quiet(), text);
    }

    /// Shows what would run.
    fn show(&self, plan: &RunPlan) -> Result<Exit, Failure> {
        output::say(text::plan(plan));
        if let Some(shares) = self.shares(plan)? {
            // Each agent checks its own limits before a run begins.
            output::say(format!("\n{shares}"));
            return Ok(Exit::Met);
        }
        let can_run = plan.preflight.fits() || self.force;
        Ok(if can_run { Exit::Met } else { Exit::CannotRun })
    }

    /// Refuses places that cannot be written.
    fn check_outputs(&self) -> Result<(), Failure> {
        if self.no_record && !self.report.is_empty() {
            let why = "--report is made from the run file, and --no-record writes none: leave \
                       one of them out";
            return Err(Failure::new(why));
        }
        self.trace.check()?;
        // It makes the file: after it, each failure is written there.
        self.json.as_ref().map_or(Ok(()), JsonOut::check)
    }

    /// Finds the server on this machine or its facts elsewhere.
    fn observe(&self, plan: &mut RunPlan) -> Result<ServerObserver, Failure> {
        let observer = ServerObserver::find(self, &plan.load.targets)?;
        plan.header.target_is_here |= observer.is_on_this_machine();
        plan.header.server_is_part = observer.sees_a_part(&plan.load.targets);
        if let Some(facts) = observer.facts(&plan.load.targets) {
            plan.header.server_facts = Some(facts);
        }
        Ok(observer)
    }

    /// Runs the load, and shows it while it goes on.
    fn load(&self, ready: ReadyRun, interrupt: &Interrupt) -> Result<EndedRun, Failure> {
        let ReadyRun { mut plan, observer, place, page, metrics, uncalibrated, fleet, stored } =
            ready;
        let recorder = place.begin(self.recorder_options(&plan)).map_err(unwritten)?;
        self.note(&text::beginning(&plan, observer.server.as_ref()));
        if let Some(address) = &self.server_facts {
            self.note(&format!("server facts: from the watch at {address}"));
        }
        if let Some(note) = &observer.note {
            self.note(note);
        }
        if let Some(why) = uncalibrated {
            self.note(&format!("calibration failed: {why}"));
        }
        if let Some(fleet) = &fleet {
            fleet.show(|line| self.note(line));
        }
        let progress = self.progress(&plan, interrupt);
        let trace = self.trace.start(&self.record, progress.is_view())?;
        let writer = trace.map(|(options, writer)| {
            plan.load.watch_users(options);
            writer
        });
        let displays = RunDisplays { progress, page, metrics };
        let title = self.scenario.to_string_lossy();
        displays.begin(&title, &plan);
        let start = match fleet {
            Some(fleet) => LoadStart::Fleet(fleet, stored),
            None => LoadStart::Own,
        };
        let warnings = plan.warnings();
        let outcome = self.record(plan, observer, recorder, interrupt, start, &displays);
        // The cores have ended, and with them the last sender of lines.
        let trace = writer.and_then(TraceWriter::finish);
        Ok(EndedRun { outcome: outcome?, page: displays.page, trace, warnings })
    }

    /// Shows the results on the page and here.
    fn tell(
        &self,
        ended: &EndedRun,
        reports: &[ReportFile],
        interrupt: &Interrupt,
        more_follows: bool,
    ) -> Result<Exit, Failure> {
        ended.page.end(&ended.outcome.result);
        if let Some(trace) = &ended.trace {
            self.note(&format!("trace: {}", trace.path.display()));
        }
        self.finish(ended, reports, interrupt, more_follows)
    }

    /// Writes the JSON of a run that was not started.
    fn write_not_started(&self, not_started: NotStarted) -> Result<(), Failure> {
        self.json.as_ref().map_or(Ok(()), |json| json.write(&not_started))
    }

    /// Measures this generator's capacity, unless that is disabled. Returns the reason if it is
    /// unknown; the error is the source of a request to end.
    fn calibrate(&self, plan: &mut RunPlan, interrupt: &Interrupt) -> Result<Option<String>, By> {
        // Agents measure themselves.
        if self.no_calibrate || self.fleet.is_used() {
            return Ok(None);
        }
        let length = show_duration(self.calibrate);
        self.note(&format!(
            "measuring this generator's capacity for {length} (--no-calibrate skips it)"
        ));
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

    /// Returns a live view if there is a terminal for it, else lines.
    fn progress(&self, plan: &RunPlan, interrupt: &Interrupt) -> Progress {
        let quiet = self.is_quiet();
        let view = || {
            let content = RunContent::new(plan.header.clone(), plan.scenario.thresholds.clone());
            let first = interrupt.clone();
            let first = move || first.request(By::Sigint);
            Progress::view(TerminalModel::of_run(content), interrupt, first)
        };
        let may_view = !(self.no_tui || quiet || self.exit_with_parent);
        may_view
            .then(view)
            .flatten()
            .unwrap_or_else(|| Progress::lines_of_run(self.interval, quiet))
    }

    fn recorder_options(&self, plan: &RunPlan) -> RecorderOptions {
        RecorderOptions {
            run_file: (!self.no_record).then(|| self.record.clone()),
            header: plan.header.clone(),
            interval: self.interval,
            pause_max: self.pause_max,
            refused_max: (!self.keep_trying).then_some(REFUSED_MAX),
            thresholds: plan.scenario.thresholds.clone(),
            ..RecorderOptions::default()
        }
    }

    /// Runs the load to its end, or until a request to end.
    fn record(
        &self,
        plan: RunPlan,
        observer: ServerObserver,
        recorder: Recorder,
        interrupt: &Interrupt,
        start: LoadStart,
        displays: &RunDisplays,
    ) -> Result<Outcome, Failure> {
        let title = format!("{} against {}", self.scenario.display(), plan.target);
        let server_is_here = observer.is_on_this_machine() || plan.target_is_local();
        let shares_users = matches!(plan.scenario.load, ScenarioLoad::Shared(_));
        let (server, kernel) = observer.probes(&plan);
        let load = match start {
            LoadStart::Own => RunLoad::Own(RunningLoad::start(plan.load)?.into()),
            LoadStart::Fleet(ready, stored) => {
                RunLoad::Fleet(ready.fleet.start(&plan.load, ready.number, &stored).into())
            }
            LoadStart::Resumed(load) => RunLoad::Fleet(load),
        };
        let kernel = match &load {
            RunLoad::Own(_) => kernel,
            RunLoad::Fleet(load) => load.kernel(kernel, server_is_here),
        };
        let load = Arc::new(Mutex::new(load));
        let sources = RunProbes { generator: Box::new(Arc::clone(&load)), server, kernel };
        let recording = recorder.start(sources, displays.callback());
        let control_by = |by| -> Arc<dyn ControlTarget> {
            let (load, recording) = (Arc::clone(&load), recording.handle());
            Arc::new(LoadControl {
                load,
                recording,
                shares_users,
                interrupt: interrupt.clone(),
                by,
            })
        };
        let buttons = control_by(By::Page);
        displays.steer(control_by(By::Key), &buttons);
        let control = control_by(By::Control);
        let control =
            throng_control::serve(self.control.as_deref(), ProcessRole::Load, &title, control);
        if let Err(error) = &control {
            recording.handle().stop("no control socket");
            displays.progress.note(&error.to_string());
        }
        let mut stopping = false;
        while !recording.is_finished() {
            if let Some(by) = interrupt.requested().filter(|_| !stopping) {
                stopping = true;
                let times = if by == By::Sigint { "again" } else { "twice" };
                displays.progress.note(&format!(
                    "{by}: ramping down, report follows; press Ctrl-C {times} to stop now"
                ));
                recording.handle().stop(&by.to_string());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let outcome = recording.wait();
        // First the view and the socket, whose threads use the load, then the load.
        displays.progress.finish();
        drop(buttons);
        drop(control?);
        if let Some(load) = Arc::into_inner(load).and_then(|load| load.into_inner().ok()) {
            load.finish();
        }
        Ok(outcome)
    }

    /// Prints the report, and writes the reports and the JSON. Standard output takes the JSON once:
    /// not here if `more_follows`.
    fn finish(
        &self,
        ended: &EndedRun,
        reports: &[ReportFile],
        interrupt: &Interrupt,
        more_follows: bool,
    ) -> Result<Exit, Failure> {
        let outcome = &ended.outcome;
        let result = &outcome.result;
        let mut text = if self.details { result.details() } else { result.text() };
        let exit = outcome.result.exit();
        let unreached = text::unreached(&outcome.result.summary);
        if let Some(sentence) = unreached.as_ref().filter(|_| exit != RunExit::Unreached) {
            text += &format!("\n{sentence}");
        } else if let Some(sentence) = outcome.result.summary.shortcoming() {
            text += &format!("\n{sentence}");
        }
        if let Some(sentence) = text::early_end(&outcome.end, interrupt.requested()) {
            text += &format!("\n{sentence}");
        }
        if let Some(error) = &outcome.run_file_error {
            text += &format!("\nthe run file is incomplete: {error}");
        } else if !self.no_record {
            let path = self.record.display();
            text += &format!("\nrun file: {path}; {}", report_files::more(&path, self.details));
        }
        let reported = RunReader::new(&self.record).write_named(reports, &mut text);
        if self.is_quiet() {
            output::print_error(text);
        } else {
            output::say(output::for_terminal(format!("\n{text}")));
        }
        // An error of an output costs no result.
        let is_last = |json: &&JsonOut| !(more_follows && **json == JsonOut::Stdout);
        let json = self.json.as_ref().filter(is_last).map(|json| json.write(&ended.json()));
        let unwritten = [reported.err(), json.and_then(Result::err)];
        let trace = ended.trace.as_ref().and_then(|trace| trace.failure.as_ref());
        let unwritten: Vec<_> = unwritten.iter().flatten().chain(trace).collect();
        unwritten.iter().for_each(|failure| failure.print());
        if outcome.end.reason == RunEndReason::Failed {
            let why = outcome.end.detail.as_deref().unwrap_or("one of its cores ended");
            output::print_error(format!("the generator failed: {why}"));
            return Ok(Exit::Invalid);
        }
        match unreached {
            Some(sentence) if exit == RunExit::Unreached => Err(Failure::new(sentence)),
            _ if unwritten.is_empty() => Ok(exit.into()),
            _ => Ok(Exit::from(exit).or_unwritten()),
        }
    }
}

/// The time after which a run ends if every connect was refused.
const REFUSED_MAX: Duration = Duration::from_secs(10);

/// Returns the failure of a run whose run file cannot be read to go on with it.
fn unread(id: &str, RecordError { path, error }: &RecordError) -> Failure {
    Failure::new(format!(
        "--resume {id}: cannot read the run file {}: {error}\n  --resume goes on in the run's \
         file; name it with --record",
        path.display()
    ))
}

fn unwritten(error: RecordError) -> Failure {
    Failure::new(format!(
        "{error}\n  the run was not started; pass --record FILE for another run file, or \
         --no-record for none"
    ))
}
