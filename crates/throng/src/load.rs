//! A load as a value: a scenario, its target, and what comes back.

use std::path::{Path, PathBuf};

use throng_base::input_file::{SCENARIO_BYTES_MAX, read_text};
use throng_driver::netlink;
use throng_load::run::{LoadOptions, LoadPlan, RunningLoad, SetupWatch, set_up, tear_down};
use throng_load::scenario::{Scenario, Target, needs_no_permission};
use throng_measure::Interval;
use throng_measure::runfile::ScenarioSource;
use throng_report::Threshold;
use throng_run::header::run_header;
use throng_run::recorder::{Outcome, Recorder, RecorderOptions, RunProbes};

use crate::{Error, Result};

/// A load that can run: a scenario in the language of `throng run`.
///
/// ```no_run
/// let outcome = throng::Load::from_file("examples/hello.yaml").seed(7).run()?;
/// println!("{}", outcome.result.diagnosis.verdict);
/// # Ok::<(), throng::Error>(())
/// ```
pub struct Load {
    source: Source,
    target: Option<String>,
    options: LoadOptions,
    run_file: Option<PathBuf>,
    is_allowed: bool,
    on_interval: Box<dyn FnMut(&Interval) + Send>,
}

/// The place of a scenario.
enum Source {
    Text(String),
    File(PathBuf),
}

impl Load {
    /// Reads the scenario from a text. [`run`](Self::run) reports its mistakes.
    pub fn new(scenario: impl Into<String>) -> Self {
        Self::of(Source::Text(scenario.into()))
    }

    /// Reads the scenario from a file.
    pub fn from_file(path: impl AsRef<Path>) -> Self {
        Self::of(Source::File(path.as_ref().into()))
    }

    fn of(source: Source) -> Self {
        Self {
            source,
            target: None,
            options: LoadOptions::default(),
            run_file: None,
            is_allowed: false,
            on_interval: Box::new(|_| ()),
        }
    }

    /// Loads `target`, such as `ws://127.0.0.1:4000/socket`, in place of the scenario's.
    #[must_use]
    pub fn target(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    /// Seeds everything random. Default 1, so that two runs are alike.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Runs `cores` event loops. Default: as many as the CPUs and the connections need.
    #[must_use]
    pub fn cores(mut self, cores: usize) -> Self {
        self.options.cores = Some(cores);
        self
    }

    /// Writes a run file, which `throng report` reads. An earlier run there is overwritten.
    #[must_use]
    pub fn record(mut self, path: impl AsRef<Path>) -> Self {
        self.run_file = Some(path.as_ref().into());
        self
    }

    /// Calls `on_interval` once a second with what was measured.
    #[must_use]
    pub fn on_interval(mut self, on_interval: impl FnMut(&Interval) + Send + 'static) -> Self {
        self.on_interval = Box::new(on_interval);
        self
    }

    /// States that the owner of the target allows the load. Needed for an address outside this
    /// machine and its networks.
    #[must_use]
    pub fn i_am_allowed(mut self) -> Self {
        self.is_allowed = true;
        self
    }

    /// Runs the load to its end, and returns its summary, its thresholds and its diagnosis.
    ///
    /// # Errors
    /// The load did not start, or the scenario's `setup` or `teardown` failed. What goes wrong in
    /// the load stands in the summary.
    pub fn run(self) -> Result<Outcome> {
        let (source, name) = self.source.read()?;
        let mut scenario = Scenario::parse(&source, &name)
            .map_err(|mistakes| Error::Scenario(Box::new(mistakes)))?;
        let target = self.target.map(|text| {
            text.parse::<Target>()
                .map_err(|error| Error::Target(format!("`{text}` is not a target: {error}")))
        });
        let options = LoadOptions { target: target.transpose()?, ..self.options };
        let mut plan = LoadPlan::new(&scenario, &options)?;
        if !self.is_allowed {
            refuse_foreign(&plan)?;
        }
        if let Err(error) = unwatched(|watch| set_up(&mut scenario, &options, watch)) {
            if error.allows_teardown(&scenario) {
                // What it has made is removed if that can be; its own error is the reason.
                _ = unwatched(|watch| tear_down(&scenario, &options, watch));
            }
            return Err(error.into());
        }
        plan.take_setup(&scenario);
        let outcome = record(
            plan,
            ScenarioSource { path: name, source },
            scenario.thresholds.clone(),
            self.run_file,
            self.on_interval,
        );
        let torn_down = unwatched(|watch| tear_down(&scenario, &options, watch));
        let outcome = outcome?;
        match torn_down {
            Ok(()) => Ok(outcome),
            Err(error) => Err(Error::Teardown { outcome: Box::new(outcome), error }),
        }
    }
}

/// Takes the steps of `setup` or `teardown` to their end. Nothing shows them.
fn unwatched<T>(take: impl FnOnce(SetupWatch<'_>) -> T) -> T {
    take(SetupWatch::silent(&mut || false))
}

/// Runs a planned load.
fn record(
    plan: LoadPlan,
    source: ScenarioSource,
    thresholds: Vec<Threshold>,
    run_file: Option<PathBuf>,
    mut on_interval: Box<dyn FnMut(&Interval) + Send>,
) -> Result<Outcome> {
    let recorder = Recorder::create(RecorderOptions {
        run_file,
        header: run_header(&plan, source),
        thresholds,
        ..RecorderOptions::default()
    })?;
    let targets = plan.targets.clone();
    let probes = RunProbes::new(RunningLoad::start(plan)?).with_targets(targets);
    Ok(recorder.start(probes, move |interval, _| on_interval(interval)).wait())
}

impl Source {
    /// Returns the scenario's text, and its name in messages.
    fn read(self) -> Result<(String, String)> {
        match self {
            Self::Text(text) => Ok((text, "scenario".to_owned())),
            Self::File(path) => {
                let name = path.display().to_string();
                let text = read_text(&path, SCENARIO_BYTES_MAX)
                    .map_err(|error| Error::Read { path: name.clone(), error })?;
                Ok((text, name))
            }
        }
    }
}

/// Refuses a target that may belong to others.
fn refuse_foreign(plan: &LoadPlan) -> Result {
    // Where the kernel does not report its networks, no address counts as this machine's own.
    let own = netlink::subnets().unwrap_or_default();
    let is_ours = plan.targets.iter().all(|target| needs_no_permission(target.ip(), &own));
    if is_ours { Ok(()) } else { Err(Error::Forbidden(plan.target.to_string())) }
}

impl std::fmt::Debug for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Load").field("target", &self.target).finish_non_exhaustive()
    }
}
