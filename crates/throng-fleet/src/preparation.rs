//! How an agent gets ready for a run: it reads the scenario, checks its limits and measures itself.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use throng_doctor::preflight::CheckState;
use throng_lab::ceiling::CeilingOptions;
use throng_lab::header::run_header;
use throng_lab::recorder::LiveKernel;
use throng_lab::{permission, run_preflight};
use throng_load::run::{LoadOptions, LoadPlan};
use throng_load::scenario::{Scenario, Target};
use throng_report::runfile::ScenarioSource;

use crate::agent_calibration::measure;
use crate::message::{AgentCalibration, Readiness, RunOrder};
use crate::shared_limit::SharedLimit;

/// A run that can begin.
pub(crate) struct Prepared {
    pub(crate) scenario: Scenario,
    pub(crate) plan: LoadPlan,
    pub(crate) interval: Duration,
    pub(crate) kernel: KernelPlace,
    pub(crate) readiness: Readiness,
    /// What was measured.
    pub(crate) calibration: Option<AgentCalibration>,
}

/// Where the kernel's counters are read. They are read on the thread that reports.
pub(crate) struct KernelPlace {
    targets: Vec<SocketAddr>,
    target_is_here: bool,
}

impl KernelPlace {
    pub(crate) fn open(self) -> LiveKernel {
        let kernel = LiveKernel::new(self.targets);
        if self.target_is_here {
            kernel.with_listening_process()
        } else {
            kernel.with_remote_server()
        }
    }
}

/// Returns what an agent on this machine would find about itself for this part of a run. Sends
/// nothing to the target. `stop` ends the measuring.
///
/// # Errors
/// The scenario is none, or its target cannot be resolved here, or needs permission.
pub fn assess(order: &RunOrder, stop: Arc<AtomicBool>) -> Result<Readiness, String> {
    prepare(order, Vec::new(), stop).map(|prepared| prepared.readiness)
}

/// Prepares an agent's part of a run. `stop` ends the measuring.
///
/// # Errors
/// The scenario is none, or its target cannot be resolved here, or needs permission.
pub(crate) fn prepare(
    order: &RunOrder,
    sources: Vec<IpAddr>,
    stop: Arc<AtomicBool>,
) -> Result<Prepared, String> {
    let scenario = order.scenario.parse().map_err(|mistakes| mistakes.render(false))?;
    let target: Option<Target> = order
        .target
        .as_ref()
        .map(|target| target.parse())
        .transpose()
        .map_err(|error: throng_load::scenario::TargetError| error.problem.to_string())?;
    let own_sources = sources.clone();
    let options = LoadOptions {
        target,
        share: Some(order.share),
        sources,
        seed: Some(order.seed),
        ..LoadOptions::default()
    };
    let plan = LoadPlan::new(&scenario, &options).map_err(|error| error.to_string())?;
    permission::check(&plan.target, &plan.targets, order.is_allowed)
        .map_err(|why| why.to_string())?;
    let preflight = run_preflight(&plan, Some(order.share.cores()));
    let warnings = preflight.in_state(CheckState::Tight).filter(|check| check.stops);
    let warnings = warnings.map(|check| format!("{}: {}", check.limit, check.because)).collect();
    let header = run_header(&plan, ScenarioSource::default());
    let held = preflight.holds();
    let capacity = header.capacity.map(|most| held.map_or(most, |held| held.min(most)));
    let (calibration, uncalibrated) = match order.calibrate_ms {
        None => (None, None),
        Some(ms) => {
            let length = Duration::from_millis(ms);
            match calibrate(&plan, length, header.target_is_here, stop) {
                Ok(calibration) => (Some(calibration), None),
                Err(why) => (None, Some(why)),
            }
        }
    };
    let readiness = Readiness {
        targets: plan.targets.clone(),
        refusal: (!preflight.fits() && !order.force).then(|| preflight.refusal().to_string()),
        warnings,
        connections: plan.capacity.demand.connections,
        capacity,
        capacity_limit: preflight.nearest().map(|check| check.limit.clone()),
        shared_limits: SharedLimit::of_checks(&preflight.checks, &own_sources),
        ceiling: calibration.as_ref().map(|it| it.ceiling.clone()),
        uncalibrated,
        target_is_here: header.target_is_here,
        machine: header.machine,
        client_facts: header.client_facts,
    };
    let kernel =
        KernelPlace { targets: plan.targets.clone(), target_is_here: header.target_is_here };
    let interval = Duration::from_millis(order.interval_ms.max(1));
    Ok(Prepared { scenario, plan, interval, kernel, readiness, calibration })
}

/// Measures the most that this machine can do for the plan's kind of traffic.
fn calibrate(
    plan: &LoadPlan,
    length: Duration,
    target_is_here: bool,
    stop: Arc<AtomicBool>,
) -> Result<AgentCalibration, String> {
    let options = CeilingOptions {
        length,
        protocol: plan.program().protocol(),
        traffic: plan.program().traffic(),
        cores: Some(plan.capacity.cores),
        users_most: plan.capacity.fds() / 2,
        target_is_remote: !target_is_here,
        stop,
        ..CeilingOptions::default()
    };
    measure(&options)
}
