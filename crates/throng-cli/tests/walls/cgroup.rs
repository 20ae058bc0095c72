//! Control groups of both versions.

use std::path::{Path, PathBuf};

/// One with a limit, until it is dropped; by then it must be empty.
pub(crate) struct Group {
    folder: PathBuf,
    join: String,
}

impl Group {
    /// A group below the root with this value in a file of `controller`: the one of cgroup v1, or that of v2.
    pub(crate) fn new(
        controller: &str,
        v1: (&str, &str),
        v2: (&str, &str),
    ) -> Result<Self, String> {
        let name = format!("throng-walls-{controller}-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup").join(controller);
        let (root, (limit, value)) =
            if first.exists() { (first, v1) } else { (PathBuf::from("/sys/fs/cgroup"), v2) };
        let folder = root.join(name);
        let made =
            std::fs::create_dir(&folder).and_then(|()| std::fs::write(folder.join(limit), value));
        let join = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", folder.display());
        let group = Self { folder, join };
        made.map(|()| group).map_err(|error| format!("a control group of {controller}: {error}"))
    }

    /// The command that starts another one in it.
    pub(crate) fn prefix(&self) -> [&str; 4] {
        ["sh", "-c", &self.join, "sh"]
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.folder);
    }
}
