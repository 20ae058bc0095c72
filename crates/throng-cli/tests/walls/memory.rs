//! Walls of limited memory.

use super::cgroup::Group;
use super::stage::Stage;
use super::{Cause, Provoked};

pub(crate) const WALLS: &[Cause] = &[Cause {
    name: "memory limit",
    what: "a control group with 8 MiB for the server and the kernel's memory of its sockets",
    expected: Some("memory_runs_out"),
    says: &[],
    is_of_cpus: false,
    stage: Stage::here,
    provoke: memory_limit,
}];

/// A server needs one or two MiB, and about two KiB for each connection that sends data.
const LIMIT_BYTES: u64 = 8 << 20;

fn memory_limit(stage: &mut Stage) -> Provoked {
    let bytes = LIMIT_BYTES.to_string();
    let group = Group::new("memory")?;
    group.limit(("memory.limit_in_bytes", &bytes), ("memory.max", &bytes))?;
    let addr = stage.serve_by(&group.prefix(), &["hold"]);
    stage.keep(group);
    stage.run(&format!(
        "target: tcp://{addr}\n\
         load: [{{ramp: {{to: 6k, over: 5s}}}}, {{hold: {{for: 1s}}}}]\n\
         user: [connect, send: hello, stay]\n"
    ))
}
