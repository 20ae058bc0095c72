//! The threads and processes that a control group may have: `pids.max` and `pids.current`, the same
//! in v1 and v2.

use super::CgroupDirectories;
use crate::fact::{Fact, ParseFailure};
use crate::proc_root::ProcRoot;
use crate::text::number;

/// The thread limit of the level with the fewest left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupPids {
    /// Limit of that level.
    pub limit: u64,
    /// Threads in that level now.
    pub used: u64,
}

impl CgroupPids {
    /// Returns how many more threads the level allows.
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// Returns the tightest limit of the groups of `pid`, or `None` if no level has one.
pub fn pids(root: &ProcRoot, pid: u32) -> Fact<Option<CgroupPids>> {
    CgroupDirectories::of(root, pid, "pids").map(|found| {
        let level = |dir: &String| {
            let limit = root.read(&format!("{dir}/pids.max"), parse_pids_max);
            let used = root.read(&format!("{dir}/pids.current"), |text| number(text.trim()));
            Some(CgroupPids { limit: limit.known().copied()??, used: *used.known()? })
        };
        found.levels.iter().filter_map(level).min_by_key(CgroupPids::left)
    })
}

/// Parses `pids.max`; `None` is unlimited.
pub fn parse_pids_max(text: &str) -> Result<Option<u64>, ParseFailure> {
    match text.trim() {
        "max" => Ok(None),
        max => number(max).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_with_the_least_left_counts() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/7/cgroup", "0::/outer/inner\n");
        write(
            "proc/7/mountinfo",
            "30 20 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
        );
        write("sys/fs/cgroup/cgroup.controllers", "pids\n");
        write("sys/fs/cgroup/outer/pids.max", "100\n");
        write("sys/fs/cgroup/outer/pids.current", "97\n");
        write("sys/fs/cgroup/outer/inner/pids.max", "max\n");
        write("sys/fs/cgroup/outer/inner/pids.current", "2\n");
        let found = pids(&ProcRoot::new(dir.path()), 7).into_result().unwrap();
        assert_eq!(found, Some(CgroupPids { limit: 100, used: 97 }));
        assert_eq!(found.unwrap().left(), 3);
    }

    #[test]
    fn no_limit_is_a_word_and_nonsense_is_refused() {
        assert_eq!(parse_pids_max("max\n"), Ok(None));
        assert_eq!(parse_pids_max("512\n"), Ok(Some(512)));
        assert!(parse_pids_max("").is_err() && parse_pids_max("many").is_err());
    }
}
