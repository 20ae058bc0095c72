//! The header of a run file: the plan of the run, and facts about this machine.

use std::collections::BTreeMap;
use std::net::{IpAddr, UdpSocket};

use throng_doctor::{MachineFacts, ProcRoot};
use throng_driver::utc_now;
use throng_load::run::LoadPlan;
use throng_report::runfile::{RunHeader, ScenarioSource};

/// Returns the header of a run that begins now.
pub fn run_header(plan: &LoadPlan, scenario: ScenarioSource) -> RunHeader {
    RunHeader {
        started: utc_now(),
        throng_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().collect(),
        scenario,
        target: plan.target.to_string(),
        users_planned: plan.capacity.demand.connections,
        planned_ms: u64::try_from(plan.length.as_millis()).ok(),
        capacity: Some(plan.capacity.connections()),
        target_is_here: plan.targets.iter().all(|target| is_local(target.ip())),
        machine: machine(),
        ..RunHeader::default()
    }
}

/// Returns facts about this machine by name: `kernel`, `memory_bytes`, `cpus`, and the sysctls that
/// matter.
fn machine() -> BTreeMap<String, String> {
    let facts = MachineFacts::read(&ProcRoot::default(), std::process::id());
    let mut machine: BTreeMap<String, String> = BTreeMap::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            machine.insert(name.to_owned(), value);
        }
    };
    add("kernel", facts.kernel.known().cloned());
    add("memory_bytes", facts.memory.known().map(|memory| memory.total_bytes.to_string()));
    add("cpus", std::thread::available_parallelism().ok().map(|cpus| cpus.to_string()));
    for (name, value) in &facts.sysctls {
        add(name, value.known().cloned());
    }
    machine
}

/// Reports whether `address` is one of this machine: a socket can be bound to it. Sends nothing.
pub fn is_local(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}
