//! Facts about this machine for the header of a run file.

use std::collections::BTreeMap;
use std::net::{IpAddr, UdpSocket};

use throng_doctor::{MachineFacts, ProcRoot};

/// Returns the facts by name: `kernel`, `memory_bytes`, `cpus`, and the sysctls that matter.
pub fn machine() -> BTreeMap<String, String> {
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
