//! The memory that control groups leave to a process, v1 and v2.

use super::{CgroupDirectories, CgroupVersion, parse_memory_limit};
use crate::fact::{Fact, ParseFailure, Reason, Unknown};
use crate::proc_root::ProcRoot;
use crate::text::{keyed, number};

/// Returns the memory of the level that leaves least to `pid`, or `None` if no level has a limit.
/// File cache counts as left: the kernel frees it before it kills a process.
pub fn memory_room(root: &ProcRoot, pid: u32) -> Fact<Option<MemoryRoom>> {
    let found = match CgroupDirectories::of(root, pid, "memory") {
        Fact::Known(found) => found,
        Fact::Unknown(why) => return Fact::Unknown(why),
    };
    let files = match found.version {
        CgroupVersion::V1 => Files {
            limit: "memory.limit_in_bytes",
            used: "memory.usage_in_bytes",
            cache: ["total_inactive_file", "total_active_file"],
        },
        CgroupVersion::V2 => Files {
            limit: "memory.max",
            used: "memory.current",
            cache: ["inactive_file", "active_file"],
        },
    };
    let mut least = None;
    for dir in &found.levels {
        match files.room(root, dir) {
            Ok(None) => {}
            Ok(Some(room)) => {
                least = least.into_iter().chain([room]).min_by_key(MemoryRoom::left_bytes);
            }
            Err(why) => return Fact::Unknown(why),
        }
    }
    Fact::Known(least)
}

/// The memory of a control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRoom {
    /// Limit.
    pub limit_bytes: u64,
    /// Memory in use that the kernel cannot free.
    pub taken_bytes: u64,
}

impl MemoryRoom {
    /// Returns the memory that is left.
    pub fn left_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.taken_bytes)
    }
}

/// The names of a version's files, and of the lines of `memory.stat` about the file cache.
struct Files {
    limit: &'static str,
    used: &'static str,
    cache: [&'static str; 2],
}

impl Files {
    /// Returns the memory of one level, or `None` without a limit. The outermost level of v2 has no
    /// such files.
    fn room(&self, root: &ProcRoot, dir: &str) -> Result<Option<MemoryRoom>, Unknown> {
        let limit_bytes = match root.read(&format!("{dir}/{}", self.limit), parse_memory_limit) {
            Fact::Known(Some(limit)) => limit,
            Fact::Known(None) => return Ok(None),
            Fact::Unknown(Unknown { reason: Reason::Missing, .. }) => return Ok(None),
            Fact::Unknown(why) => return Err(why),
        };
        let used = root.read(&format!("{dir}/{}", self.used), |text| number(text.trim()));
        let stat = root.read(&format!("{dir}/memory.stat"), |text| self.parse_cache(text));
        // Without the statistics all of it counts as in use.
        let cache = stat.known().copied().unwrap_or(0);
        let taken_bytes = used.into_result()?.saturating_sub(cache);
        Ok(Some(MemoryRoom { limit_bytes, taken_bytes }))
    }

    /// Parses the bytes of file cache.
    fn parse_cache(&self, text: &str) -> Result<u64, ParseFailure> {
        let line = |name| keyed(text, name).ok_or(ParseFailure("a line for files in use or not"));
        Ok(line(self.cache[0])?.saturating_add(line(self.cache[1])?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded_root;

    #[test]
    fn the_level_that_leaves_least_counts() {
        let room = |kernel, pid| memory_room(&recorded_root(kernel), pid);
        let of =
            |limit_bytes, taken_bytes| Fact::Known(Some(MemoryRoom { limit_bytes, taken_bytes }));
        assert_eq!(room("linux-4.19", 31), of(2 << 30, 1_900_000_000));
        assert_eq!(room("linux-6.18", 4242), Fact::Known(None));
        // The outer group holds 800 MB, of which 100 MB and 50 MB are file cache.
        assert_eq!(room("linux-5.10", 77), of(1 << 30, 650_000_000));
        assert!(room("empty", 1).known().is_none());
    }
}
