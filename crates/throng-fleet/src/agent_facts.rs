//! What this process says about itself as an agent.

use throng_bus::{Name, Text};
use throng_doctor::preflight::{MachineRole, Requirements, preflight};
use throng_driver::fdtable;
use throng_machine::MachineLimits;
use throng_machine::{MachineFacts, ProcRoot};
use throng_run::{boot_id, net_namespace};

use crate::message::{AgentCapacity, AgentFacts};

impl AgentFacts {
    /// Returns the facts of this process. Without a name, it gets that of its machine and a number.
    pub fn of_this_process(name: Option<Name>, labels: Vec<Name>) -> Self {
        let (host, incarnation) = (host_name(), random_id());
        let root = ProcRoot::default();
        let facts = MachineFacts::read(&root, std::process::id());
        let limit = fdtable::raise_limit();
        let machine = MachineLimits::read(&root, std::process::id());
        let limits = preflight(&Requirements::new(1, MachineRole::Client), &machine);
        let nearest = limits.nearest().map(|check| check.limit.clone());
        let capacity = limits.holds().zip(nearest);
        Self {
            name: name.unwrap_or_else(|| agent_name(&host, &incarnation)),
            incarnation,
            host,
            labels,
            version: version(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: facts.memory.known().map(|memory| memory.total_bytes),
            fds: fdtable::usable(limit, 1) as u64,
            capacity: capacity.map(|(connections, limit)| AgentCapacity {
                connections,
                limit: Text::cut(&limit),
            }),
            boot_id: boot_id().as_deref().map(Text::cut),
            net_namespace: net_namespace().as_deref().map(Text::cut),
            pid: std::process::id(),
        }
    }
}

/// Returns the version that coordinator and agents must have in common.
pub fn version() -> Text {
    Text::cut(&format!("{} (fleet {PROTOCOL})", env!("CARGO_PKG_VERSION")))
}

/// Returns the name of this machine, as far as it can be a part of a subject.
pub fn host_name() -> Name {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let part = name.trim().split('.').next().unwrap_or_default();
    let is_good = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || *c == '_';
    let name: String = part.chars().filter(is_good).take(HOST_NAME_MAX).collect();
    Name::new(if name.is_empty() { "host".to_owned() } else { name }).expect("letters")
}

/// Returns the name of this process on the bus: that of its machine, and a number.
pub fn process_name() -> Name {
    Name::new(format!("{}-{}", host_name(), random_id())).expect("both are short names")
}

/// Returns the name of an agent that was given none.
pub(crate) fn agent_name(host: &Name, incarnation: &Name) -> Name {
    Name::new(format!("{host}-{}", &incarnation[..4])).expect("both are short names")
}

/// Returns eight random hexadecimal digits.
pub fn random_id() -> Name {
    let mut bytes = [0; 4];
    // Without a source of randomness, the process id tells two apart.
    if getrandom::fill(&mut bytes).is_err() {
        bytes = std::process::id().to_be_bytes();
    }
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Name::new(digits).expect("digits")
}

/// Number of the messages' form: a change of any of them is another number.
const PROTOCOL: u32 = 6;
/// Leaves room for the number behind the name.
const HOST_NAME_MAX: usize = 48;
