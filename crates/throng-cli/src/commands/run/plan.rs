//! Resolves the flags into a plan, or refuses the run with the reason.

use std::net::SocketAddr;
use std::sync::Arc;

use throng_doctor::preflight::Preflight;
use throng_import::FidelityReport;
use throng_load::run::{LoadOptions, LoadPlan};
use throng_load::scenario::{LoadPeak, Reach, Scenario, Target};
use throng_measure::runfile::{RunHeader, ScenarioSource};
use throng_report::export::annotation;
use throng_run::header::run_header;
use throng_run::{permission, run_preflight};

use super::flags::Run;
use super::{outputs, preflight, sources};
use crate::key_log::KeyLog;
use crate::scenario_file::{ScenarioFile, ScenarioFileError};
use crate::scenario_warning::ScenarioWarning;
use crate::{Failure, output};

/// Everything that is decided before the first connect.
#[derive(Debug)]
pub(super) struct RunPlan {
    pub(super) target: Target,
    pub(super) load: LoadPlan,
    pub(super) scenario: Scenario,
    /// The peak that its load got in place of its own.
    pub(super) peak: Option<LoadPeak>,
    /// Options from which `load` was made.
    pub(super) options: LoadOptions,
    pub(super) header: RunHeader,
    /// How exactly the scenario does what the file says, if it was imported.
    pub(super) fidelity: Option<FidelityReport>,
    /// The check of this machine's limits.
    pub(super) preflight: Preflight,
    /// The file of the connections' secrets. It is whole when this is dropped.
    pub(super) key_log: Option<Arc<KeyLog>>,
}

impl RunPlan {
    /// Reads the scenario and the machine.
    ///
    /// # Errors
    /// The scenario has mistakes, a flag names a file that the run reads, the target needs
    /// permission, or a limit of this machine is insufficient.
    pub(super) fn new(typed: &Run) -> Result<Self, Failure> {
        let mut file = ScenarioFile::read(&typed.scenario, typed.target.as_ref())
            .map_err(|error| typed.no_scenario(error))?;
        let scenario = file.changed(&typed.changes).map_err(|error| typed.no_scenario(error))?;
        if !typed.force {
            file.check_whole()?;
        }
        outputs::check(typed, &scenario)?;
        let target = typed.target.as_ref().unwrap_or(&scenario.target);
        let key_log = typed.open_key_log(target)?.map(Arc::new);
        let options = LoadOptions {
            target: typed.target.clone(),
            cores: typed.cores,
            sources: sources::addresses(&typed.source)?,
            source_ports: typed.source_ports.clone(),
            seed: Some(typed.seed),
            driver: typed.driver.clone().unwrap_or_default(),
            key_log: key_log.as_deref().map(KeyLog::sink),
            ..LoadOptions::default()
        };
        let load = LoadPlan::new(&scenario, &options)
            .map_err(|error| Failure::new(error.to_string().replace('\n', "\n  ")))?;
        let target = load.target.clone();
        permission::check(&target, &load.targets, typed.i_am_allowed)?;
        check_sources(&options, &load.targets)?;
        let preflight = run_preflight(&load, typed.cores);
        // A dry run shows the plan, whether it can run or not.
        // Agents check themselves.
        let is_free = typed.force || typed.dry_run || typed.fleet.is_used();
        preflight::refuse(&preflight, is_free)
            .map_err(|refusal| refusal.with_code(typed.refusal_code))?;
        let scenario_source = ScenarioSource { path: file.name, source: file.text };
        let mut header = run_header(&load, scenario_source);
        // The plan's capacity counts ports and fds only.
        header.capacity = header
            .capacity
            .map(|capacity| preflight.holds().map_or(capacity, |holds| holds.min(capacity)));
        let fidelity = file.fidelity;
        let peak = typed.changes.peak();
        Ok(Self { target, load, scenario, peak, options, header, fidelity, preflight, key_log })
    }

    /// Returns the warnings about the scenario, for JSON.
    pub(super) fn warnings(&self) -> Vec<ScenarioWarning> {
        ScenarioWarning::of_program(self.load.program(), &self.header.scenario.source)
    }

    /// Reports whether the target is an address of this machine.
    pub(super) fn target_is_local(&self) -> bool {
        self.load.targets.iter().all(|target| throng_run::header::is_local(target.ip()))
    }
}

fn check_sources(options: &LoadOptions, targets: &[SocketAddr]) -> Result<(), Failure> {
    let Some(target) = targets.first() else { return Ok(()) };
    if let Some(other) = options.sources.iter().find(|source| source.is_ipv4() != target.is_ipv4())
    {
        return Err(Failure::new(format!(
            "--source {other} cannot reach {}: one is IPv4, the other IPv6",
            target.ip()
        )));
    }
    let on_loopback = Reach::of(target.ip()) == Reach::Loopback;
    if options.source_ports.is_some() && options.sources.is_empty() && !on_loopback {
        return Err(Failure::new("--source-ports needs --source, the address of these ports"));
    }
    Ok(())
}

impl Run {
    /// Opens the file of secrets, if the run writes one.
    fn open_key_log(&self, target: &Target) -> Result<Option<KeyLog>, Failure> {
        if self.fleet.is_used() && self.key_log.is_given() {
            return Err(Failure::new("--tls-keylog: agents write no secrets; load without them"));
        }
        if self.fleet.is_used() || self.dry_run {
            return Ok(None);
        }
        self.key_log.open_for(target)
    }

    /// Returns the failure to read a scenario, with all its mistakes, and prints each mistake as an
    /// annotation if that is wanted.
    fn no_scenario(&self, error: ScenarioFileError) -> Failure {
        let mistakes = match error {
            ScenarioFileError::Unreadable(failure) => return failure,
            ScenarioFileError::Mistakes(mistakes) => mistakes,
        };
        let path = self.scenario.to_string_lossy();
        for mistake in mistakes.iter().filter(|_| self.annotations) {
            let text = format!("{}: {}", mistake.title, mistake.label);
            output::print_error(annotation(&path, mistakes.line_of(mistake), &text));
        }
        Failure::mistakes(mistakes)
    }
}
