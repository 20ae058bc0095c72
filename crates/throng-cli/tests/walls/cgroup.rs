//! Control groups of both versions.

use std::fs;
use std::path::{Path, PathBuf};

/// One below the group that the test itself is in, until it is dropped; by then it must be empty.
pub(crate) struct Group {
    folder: PathBuf,
    join: String,
    is_first_version: bool,
}

impl Group {
    /// A group of `controller` without a limit.
    pub(crate) fn new(controller: &str) -> Result<Self, String> {
        let name = format!("throng-walls-{controller}-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup").join(controller);
        let is_first_version = first.exists();
        let root = match is_first_version {
            // What rations the test rations the group too.
            true => first.join(own_path(controller).trim_start_matches('/')),
            // There, a group with processes in it has no groups below it.
            false => PathBuf::from("/sys/fs/cgroup"),
        };
        let folder = root.join(name);
        let join = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", folder.display());
        let made = fs::create_dir(&folder);
        let group = Self { folder, join, is_first_version };
        made.map(|()| group).map_err(|error| format!("a control group of {controller}: {error}"))
    }

    /// Sets a limit by its file and value, the one of cgroup v1 or that of v2.
    pub(crate) fn limit(&self, v1: (&str, &str), v2: (&str, &str)) -> Result<(), String> {
        let (file, value) = if self.is_first_version { v1 } else { v2 };
        fs::write(self.folder.join(file), value)
            .map_err(|error| format!("{file} = {value} of a control group: {error}"))
    }

    /// How often it was held to its quota so far.
    pub(crate) fn throttled(&self) -> u64 {
        let stat = fs::read_to_string(self.folder.join("cpu.stat")).unwrap_or_default();
        let line = stat.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    }

    /// The command that starts another one in it.
    pub(crate) fn prefix(&self) -> [&str; 4] {
        ["sh", "-c", &self.join, "sh"]
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The path of the test's own group of a controller of cgroup v1.
fn own_path(controller: &str) -> String {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut paths = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then(|| path.to_owned())
    });
    paths.next().unwrap_or_default()
}
