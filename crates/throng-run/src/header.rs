//! The header of a run file: the plan of the run, and facts about both ends.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use throng_driver::{netns, utc_now};
use throng_load::run::LoadPlan;
use throng_machine::owner::process_as_owner;
use throng_machine::{ListenerScope, MachineFacts, ProcRoot, endpoint_facts, listening_process};
use throng_measure::runfile::{RunHeader, ScenarioSource};
use throng_measure::{EndpointFacts, ServerSnapshot};

/// Returns the header of a run that begins now.
pub fn run_header(plan: &LoadPlan, scenario: ScenarioSource) -> RunHeader {
    let target_is_here = plan.targets.iter().all(|target| is_local(target.ip()));
    RunHeader {
        started: utc_now(),
        throng_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().map(|word| without_password(&word)).collect(),
        scenario,
        target: plan.target.to_string(),
        users_planned: plan.capacity.demand.connections,
        planned_ms: u64::try_from(plan.length.as_millis()).ok(),
        capacity: Some(plan.capacity.connections()),
        target_is_here,
        tls_unverified: plan.is_unverified(),
        tls_resume: plan.resume_share(),
        machine: machine(),
        client_facts: Some(endpoint_facts(&ProcRoot::default(), Some(std::process::id()), None)),
        server_facts: if target_is_here { server_facts(None, &plan.targets) } else { None },
        ..RunHeader::default()
    }
}

/// Returns a word of a command with `***` in place of the password of a URL.
fn without_password(word: &str) -> String {
    let whole = || word.to_owned();
    let Some((before, rest)) = word.split_once("://") else { return whole() };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let Some((userinfo, host)) = authority.rsplit_once('@') else { return whole() };
    match userinfo.split_once(':') {
        Some((user, _)) => format!("{before}://{user}:***@{host}{path}"),
        None => whole(),
    }
}

/// Returns the limits of a server on this machine: of `server`, which may be in another network
/// namespace, or else of the process that listens on `targets` in this one. Returns `None` if there
/// is no listener, which may come later, or if its namespace cannot be entered.
pub fn server_facts(
    server: Option<&ServerSnapshot>,
    targets: &[SocketAddr],
) -> Option<EndpointFacts> {
    let root = ProcRoot::default();
    let scope = ListenerScope::Targets(targets.to_vec());
    let pid = match server {
        Some(server) => Some(server.process.pid).filter(|pid| *pid > 0),
        None => listening_process(&root, &scope).into_result().ok().map(|owner| owner.pid),
    };
    let facts = match pid.filter(|pid| netns::is_current(*pid) == Ok(false)) {
        None => endpoint_facts(&root, pid, Some(&scope)),
        // Only a thread of its own moves into another namespace, in which the server may listen at
        // other addresses.
        Some(inside) => std::thread::scope(|threads| {
            let read = || {
                netns::enter(inside).ok()?;
                let scope = process_scope(&root, inside, targets);
                Some(endpoint_facts(&root, pid, Some(&scope)))
            };
            threads.spawn(read).join().ok().flatten()
        })?,
    };
    let asked = server.and_then(|server| i64::try_from(server.backlog).ok());
    let backlog_asked = asked.filter(|asked| *asked > 0);
    (!facts.listen.is_empty()).then_some(EndpointFacts { backlog_asked, ..facts })
}

/// Returns the listeners of the process `pid` on the ports of `targets`, in the calling thread's
/// network namespace; all listeners on these ports if it is not known which are its own.
pub(crate) fn process_scope(root: &ProcRoot, pid: u32, targets: &[SocketAddr]) -> ListenerScope {
    let on_ports = ListenerScope::of_ports(targets.iter().map(SocketAddr::port).collect());
    let owner = process_as_owner(root, pid, &on_ports).into_result().unwrap_or_default();
    match owner.listens_at.is_empty() {
        true => on_ports,
        false => ListenerScope::Targets(owner.listens_at),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_of_a_target_is_not_in_the_command() {
        for (word, recorded) in [
            ("http://user:p%40@h:1/a@b", "http://user:***@h:1/a@b"),
            ("--target=ws://a:b:c@[::1]", "--target=ws://a:***@[::1]"),
            ("ws://user@h", "ws://user@h"),
            ("ws://h:1/@a", "ws://h:1/@a"),
            ("run", "run"),
        ] {
            assert_eq!(without_password(word), recorded);
        }
    }
}
