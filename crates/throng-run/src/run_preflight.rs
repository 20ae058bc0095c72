//! The requirements of a planned run on this machine, checked by the doctor's preflight.

use std::ops::RangeInclusive;

use throng_doctor::preflight::{
    MachineRole, PortChoice, PortRequirements, Preflight, Requirements, preflight,
};
use throng_load::run::LoadPlan;
use throng_load::scenario::Reach;
use throng_machine::{MachineLimits, ProcRoot};

use crate::header::is_local;

/// Checks the run against this machine's limits. `cores` is their number if the user chose it.
pub fn run_preflight(load: &LoadPlan, cores: Option<usize>) -> Preflight {
    preflight(
        &requirements(load, cores),
        &MachineLimits::read(&ProcRoot::default(), std::process::id()),
    )
}

fn requirements(load: &LoadPlan, cores: Option<usize>) -> Requirements {
    let (demand, driver) = (load.capacity.demand, &load.capacity.driver);
    let is_here = load.targets.iter().all(|target| is_local(target.ip()));
    let on_loopback = load.targets.iter().all(|target| Reach::of(target.ip()) == Reach::Loopback);
    let role = if is_here { MachineRole::Both } else { MachineRole::Client };
    let ports = |range: &RangeInclusive<u16>| PortRequirements {
        addresses: load.capacity.addresses as u64,
        addresses_grow: false,
        on_loopback: on_loopback && load.targets.iter().all(|target| target.is_ipv4()),
        targets: load.targets.len() as u64,
        chosen: if load.sources.is_explicit() {
            PortChoice::Generator(range.clone())
        } else {
            PortChoice::Kernel
        },
        time_wait: load.capacity.time_wait,
    };
    Requirements {
        cores: cores.map(|cores| cores as u64),
        user_bytes: load.program().protocol().user_bytes,
        // The contexts of compressed messages have a line of their own.
        held_bytes: load
            .held_bytes_most()
            .saturating_sub(demand.connections.saturating_mul(load.context_bytes())),
        context_bytes: load.context_bytes(),
        connects_per_s: demand.begins_per_s,
        ends_per_s: demand.ends_per_s,
        listens: load.targets.clone(),
        ports: load.capacity.port_range.as_ref().map(ports),
        client_limits: driver.limits,
        client_connection_bytes: driver.connection_bytes,
        ..Requirements::new(demand.connections, role)
    }
}
