//! Control groups of both versions.

use std::fs;
use std::path::{Path, PathBuf};

/// A child of the test's own control group. It is removed when this is dropped, and must be empty
/// by then.
pub(crate) struct Group {
    folder: PathBuf,
    join: String,
    is_first_version: bool,
}

impl Group {
    /// Creates a group of `controller` without a limit.
    pub(crate) fn new(controller: &str) -> Result<Self, String> {
        let name = format!("throng-walls-{controller}-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup").join(controller);
        let is_first_version = first.exists();
        let root = if is_first_version {
            // The limits of the test apply to the group, too.
            first.join(own_path(controller).trim_start_matches('/'))
        } else {
            // In cgroup v2, a group with processes cannot have child groups with controllers.
            PathBuf::from("/sys/fs/cgroup")
        };
        let folder = root.join(name);
        let join = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", folder.display());
        let made = fs::create_dir(&folder);
        let group = Self { folder, join, is_first_version };
        made.map(|()| group).map_err(|error| format!("a control group of {controller}: {error}"))
    }

    /// Sets a limit by its file and value, for cgroup v1 or v2.
    pub(crate) fn limit(&self, v1: (&str, &str), v2: (&str, &str)) -> Result<(), String> {
        let (file, value) = if self.is_first_version { v1 } else { v2 };
        fs::write(self.folder.join(file), value)
            .map_err(|error| format!("{file} = {value} of a control group: {error}"))
    }

    /// Returns how often the kernel has throttled the group.
    pub(crate) fn throttled(&self) -> u64 {
        let stat = fs::read_to_string(self.folder.join("cpu.stat")).unwrap_or_default();
        let line = stat.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    }

    /// Returns the command prefix that starts a process in the group.
    pub(crate) fn prefix(&self) -> [&str; 4] {
        ["sh", "-c", &self.join, "sh"]
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Returns the path of the test's own group of a cgroup v1 controller.
fn own_path(controller: &str) -> String {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut paths = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then(|| path.to_owned())
    });
    paths.next().unwrap_or_default()
}
