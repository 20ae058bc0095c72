//! The requirements of a planned run on this machine, checked by the doctor's preflight.

use throng_base::units::show_count;
use throng_doctor::ProcRoot;
use throng_doctor::preflight::{
    CheckState, MachineLimits, MachineRole, PortChoice, PortRequirements, Preflight, Requirements,
    preflight,
};
use throng_load::program::Protocol;
use throng_load::run::LoadPlan;
use throng_load::scenario::Reach;

use crate::Failure;

/// Checks the run against this machine's limits. `cores` is the value of the flag.
pub(super) fn check(load: &LoadPlan, cores: Option<usize>) -> Preflight {
    preflight(
        &requirements(load, cores),
        &MachineLimits::read(&ProcRoot::default(), std::process::id()),
    )
}

/// Refuses a run that cannot work, unless `force` is set.
pub(super) fn refuse(found: &Preflight, force: bool) -> Result<(), Failure> {
    if found.fits() || force {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}\nthe run was not started; --force runs it anyway, `throng doctor --for {}` shows every \
         limit",
        found.refusal(),
        show_count(found.connections)
    )))
}

/// Returns the warnings of a run: limits at which connections may fail.
pub(super) fn warnings(found: &Preflight) -> impl Iterator<Item = String> {
    found.in_state(CheckState::Tight).filter(|check| check.stops).map(|check| {
        let remedy = check.remedy.as_ref().map_or("", |remedy| &remedy.command);
        format!("{}: {}; do: {remedy}", check.limit, check.because)
    })
}

fn requirements(load: &LoadPlan, cores: Option<usize>) -> Requirements {
    let demand = load.capacity.demand;
    let is_here = load.targets.iter().all(|target| throng_lab::header::is_local(target.ip()));
    let on_loopback = load.targets.iter().all(|target| Reach::of(target.ip()) == Reach::Loopback);
    let role = if is_here { MachineRole::Both } else { MachineRole::Client };
    let chosen = if load.sources.is_explicit() {
        PortChoice::Generator(load.capacity.port_range.clone())
    } else {
        PortChoice::Kernel
    };
    Requirements {
        cores: cores.map(|cores| cores as u64),
        user_bytes: match load.program().protocol() {
            // Between two requests, an HTTP connection has no buffer either.
            Protocol::Tcp | Protocol::Http => Requirements::TCP_USER_BYTES,
            Protocol::Ws | Protocol::Phoenix => Requirements::WEBSOCKET_USER_BYTES,
        },
        connects_per_s: demand.begins_per_s,
        ends_per_s: demand.ends_per_s,
        listens: load.targets.clone(),
        ports: Some(PortRequirements {
            addresses: load.capacity.addresses as u64,
            addresses_grow: false,
            on_loopback: on_loopback && load.targets.iter().all(|target| target.is_ipv4()),
            targets: load.targets.len() as u64,
            chosen,
            time_wait: load.capacity.time_wait,
        }),
        ..Requirements::new(demand.connections, role)
    }
}
