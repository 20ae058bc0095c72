//! How an agent gets ready for a run: it reads the scenario, checks its limits and measures itself.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use throng_doctor::preflight::CheckState;
use throng_load::run::{LoadOptions, LoadPlan};
use throng_load::scenario::{Scenario, Target};
use throng_load::schedule::MachineShare;
use throng_measure::runfile::ScenarioSource;
use throng_run::ceiling::CeilingOptions;
use throng_run::header::run_header;
use throng_run::recorder::LiveKernel;
use throng_run::{permission, run_preflight};

use crate::agent_calibration::measure;
use crate::allowed_targets::AllowedTargets;
use crate::message::{AgentCalibration, Readiness, RunOrder};
use crate::shared_limit::SharedLimit;

/// A run that can begin.
pub(crate) struct Prepared {
    pub(crate) scenario: Scenario,
    pub(crate) plan: LoadPlan,
    pub(crate) share: MachineShare,
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
/// nothing to the target. `stop` ends it.
///
/// # Errors
/// The scenario is none, or its target cannot be resolved here, or needs permission.
pub fn assess(order: &RunOrder, stop: Arc<AtomicBool>) -> Result<Readiness, String> {
    let all = ["0.0.0.0/0", "::/0"].map(|all| all.parse().expect("a network"));
    let targets = AllowedTargets::Networks(all.into());
    prepare(order, Vec::new(), &targets, stop).map(|prepared| prepared.readiness)
}

/// Prepares an agent's part of a run on a machine that loads these targets. `stop` ends it.
///
/// # Errors
/// The scenario is none, its target cannot be resolved here, or needs permission, or is none that
/// the agent loads, or `stop` has ended it.
pub(crate) fn prepare(
    order: &RunOrder,
    sources: Vec<IpAddr>,
    allowed: &AllowedTargets,
    stop: Arc<AtomicBool>,
) -> Result<Prepared, String> {
    let go_on = || match stop.load(Relaxed) {
        true => Err("the run was abandoned".to_owned()),
        false => Ok(()),
    };
    go_on()?;
    let scenario = order.scenario.parse().map_err(|mistakes| mistakes.render(false))?;
    let target: Option<Target> = order
        .target
        .as_ref()
        .map(|target| target.parse())
        .transpose()
        .map_err(|error: throng_load::scenario::TargetError| error.problem.to_string())?;
    go_on()?;
    let own_sources = sources.clone();
    let options = LoadOptions {
        target,
        share: Some(order.share),
        sources,
        seed: Some(order.seed),
        ..LoadOptions::default()
    };
    let plan = LoadPlan::new(&scenario, &options).map_err(|error| error.to_string())?;
    go_on()?;
    allowed.check(&plan.targets)?;
    permission::check(&plan.target, &plan.targets, order.is_allowed)
        .map_err(|why| why.to_string())?;
    let preflight = run_preflight(&plan, Some(order.share.cores()));
    go_on()?;
    let warnings = preflight.in_state(CheckState::Tight).filter(|check| check.stops);
    let warnings = warnings.map(|check| format!("{}: {}", check.limit, check.because)).collect();
    let header = run_header(&plan, ScenarioSource::default());
    let held = preflight.holds();
    let capacity = header.capacity.map(|most| held.map_or(most, |held| held.min(most)));
    let (calibration, uncalibrated) = match order.calibrate_ms {
        None => (None, None),
        Some(ms) => {
            let length = Duration::from_millis(ms.min(CALIBRATE_MS_MAX));
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
    let interval = Duration::from_millis(order.interval_ms.clamp(1, INTERVAL_MS_MAX));
    let share = order.share;
    Ok(Prepared { scenario, plan, share, interval, kernel, readiness, calibration })
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
        resume: plan.resume_share(),
        cores: Some(plan.capacity.cores),
        users_most: plan.capacity.held() / 2,
        target_is_remote: !target_is_here,
        stop,
        ..CeilingOptions::default()
    };
    measure(&options)
}

/// Time between two reports at most: an hour.
const INTERVAL_MS_MAX: u64 = 3_600_000;
/// Time for measuring the machine at most.
const CALIBRATE_MS_MAX: u64 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario_bundle::ScenarioBundle;

    fn order(target: &str) -> RunOrder {
        let source = format!(
            "target: {target}\nload: [{{ramp: {{to: 1, over: 1s}}}}]\n\
            user: [connect]\n"
        );
        let scenario = Scenario::parse(&source, "test.yaml").unwrap();
        RunOrder {
            scenario: ScenarioBundle::pack(&scenario, &source, "test.yaml", None).unwrap(),
            target: None,
            seed: 1,
            share: MachineShare::whole(1),
            interval_ms: 1_000,
            calibrate_ms: None,
            force: true,
            is_allowed: true,
        }
    }

    fn refusal(target: &str, allowed: &AllowedTargets, is_stopped: bool) -> Option<String> {
        let stop = Arc::new(AtomicBool::new(is_stopped));
        prepare(&order(target), Vec::new(), allowed, stop).err()
    }

    #[test]
    fn no_order_lets_an_agent_load_what_its_owner_does_not_allow() {
        let own = AllowedTargets::default();
        assert_eq!(refusal("tcp://127.0.0.1:9", &own, false), None);
        let why = refusal("tcp://192.0.2.1:9", &own, false).unwrap();
        assert!(why.contains("192.0.2.1") && why.contains("--targets"), "{why}");
        let test_net = AllowedTargets::Networks(vec!["192.0.2.0/24".parse().unwrap()]);
        assert_eq!(refusal("tcp://192.0.2.1:9", &test_net, false), None);
        let why = refusal("tcp://127.0.0.1:9", &test_net, false).unwrap();
        assert!(why.contains("does not load 127.0.0.1: it loads 192.0.2.0/24"), "{why}");
    }

    #[test]
    fn a_preparation_that_is_stopped_ends() {
        let why = refusal("tcp://127.0.0.1:9", &AllowedTargets::default(), true).unwrap();
        assert_eq!(why, "the run was abandoned");
    }
}
