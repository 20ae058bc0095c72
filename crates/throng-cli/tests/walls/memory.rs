//! Memory that is rationed.

use std::path::{Path, PathBuf};

use super::stage::Stage;
use super::{Provoked, Wall};

pub(crate) const WALLS: &[Wall] = &[Wall {
    name: "memory limit",
    what: "a control group that leaves the server 8 MiB, the kernel's memory for its sockets included",
    expected: Some("memory_runs_out"),
    stage: Stage::here,
    provoke: memory_limit,
}];

/// A server needs one or two of them, and about two KiB for each connection that says something.
const LIMIT_BYTES: u64 = 8 << 20;

fn memory_limit(stage: &mut Stage) -> Provoked {
    let group = Group::with_memory(LIMIT_BYTES)?;
    let join = format!("echo $$ > {}; exec \"$@\"", group.folder.join("cgroup.procs").display());
    let addr = stage.serve_by(&["sh", "-c", &join, "sh"], &["hold"]);
    stage.keep(group);
    stage.run(&format!(
        "target: tcp://{addr}\n\
         load: [{{ramp: {{to: 6k, over: 5s}}}}, {{hold: {{for: 1s}}}}]\n\
         user: [connect, send: hello, stay]\n"
    ))
}

/// A control group with a limit, until it is dropped; by then it must be empty.
struct Group {
    folder: PathBuf,
}

impl Group {
    fn with_memory(bytes: u64) -> Result<Self, String> {
        let name = format!("throng-walls-memory-{}", std::process::id());
        let (first, second) = (Path::new("/sys/fs/cgroup/memory"), Path::new("/sys/fs/cgroup"));
        let is_first = first.exists();
        let folder = if is_first { first } else { second }.join(name);
        let limit = if is_first { "memory.limit_in_bytes" } else { "memory.max" };
        let made = std::fs::create_dir(&folder)
            .and_then(|()| std::fs::write(folder.join(limit), bytes.to_string()));
        let group = Self { folder };
        made.map(|()| group)
            .map_err(|error| format!("a control group with a memory limit: {error}"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.folder);
    }
}
