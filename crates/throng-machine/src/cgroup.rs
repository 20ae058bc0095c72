//! Limits that the control groups of a process set: CPU throttling and memory, v1 and v2.
//!
//! A limit of an outer group binds as well as the process's own. Every level is therefore read, as
//! far as this process can see: inside a container the outermost visible level is the container's.

mod locate;
mod pids;
mod room;

pub use locate::{
    CgroupDirectories, CgroupMembership, CgroupMount, CgroupVersion, parse_membership, parse_mounts,
};
pub use pids::{CgroupPids, parse_pids_max, pids};
pub use room::{MemoryRoom, memory_room};

use crate::fact::{Fact, ParseFailure, Reason, Unknown};
use crate::proc_root::{KeptFile, ProcRoot};
use crate::text::{keyed, next, number};

/// CPU quota of a process's control groups, and its effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupCpu {
    /// Tightest quota, in thousandths of a CPU; `None` is unlimited.
    pub limit_millicpus: Option<u64>,
    /// Times that a quota was used up before its period ended, over all levels.
    pub throttled: u64,
    /// Time that runnable threads waited for a quota, in microseconds, over all levels.
    pub throttled_us: u64,
}

/// Memory limit of a process's control groups, and its effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupMemory {
    /// Tightest limit; `None` is unlimited.
    pub limit_bytes: Option<u64>,
    /// Memory of the process's own group, with kernel memory for sockets.
    pub used_bytes: u64,
    /// Times that a limit was hit, at the level with the most.
    pub limit_hits: u64,
    /// Processes killed at the limit, at the level with the most.
    pub oom_kills: u64,
}

/// Reads one process's groups repeatedly, through files that stay open.
#[derive(Debug)]
pub struct CgroupReader {
    cpu: Fact<Vec<CpuLevel>>,
    memory: Fact<Vec<MemoryLevel>>,
}

/// The CPU files of one level.
#[derive(Debug)]
struct CpuLevel {
    stat: KeptFile,
    /// Quota and period in v2: `max 100000`. In v1 only the quota, with the period in a second
    /// file.
    quota: KeptFile,
    period: Option<KeptFile>,
}

/// The memory files of one level.
#[derive(Debug)]
struct MemoryLevel {
    limit: KeptFile,
    used: KeptFile,
    /// Hits of the limit. v2: `memory.events`; v1: `memory.failcnt`, with the kills in a second
    /// file.
    hits: KeptFile,
    kills: Option<KeptFile>,
}

impl CgroupReader {
    /// Finds the groups of `pid`. It does not follow a process that moves to another group later.
    pub fn locate(root: &ProcRoot, pid: u32) -> Self {
        let cpu = CgroupDirectories::of(root, pid, "cpu").map(|found| {
            let level = |dir: &String| match found.version {
                CgroupVersion::V1 => CpuLevel {
                    stat: root.keep(format!("{dir}/cpu.stat")),
                    quota: root.keep(format!("{dir}/cpu.cfs_quota_us")),
                    period: Some(root.keep(format!("{dir}/cpu.cfs_period_us"))),
                },
                CgroupVersion::V2 => CpuLevel {
                    stat: root.keep(format!("{dir}/cpu.stat")),
                    quota: root.keep(format!("{dir}/cpu.max")),
                    period: None,
                },
            };
            found.levels.iter().map(level).collect()
        });
        let memory = CgroupDirectories::of(root, pid, "memory").map(|found| {
            let level = |dir: &String| match found.version {
                CgroupVersion::V1 => MemoryLevel {
                    limit: root.keep(format!("{dir}/memory.limit_in_bytes")),
                    used: root.keep(format!("{dir}/memory.usage_in_bytes")),
                    hits: root.keep(format!("{dir}/memory.failcnt")),
                    kills: Some(root.keep(format!("{dir}/memory.oom_control"))),
                },
                CgroupVersion::V2 => MemoryLevel {
                    limit: root.keep(format!("{dir}/memory.max")),
                    used: root.keep(format!("{dir}/memory.current")),
                    hits: root.keep(format!("{dir}/memory.events")),
                    kills: None,
                },
            };
            found.levels.iter().map(level).collect()
        });
        Self { cpu, memory }
    }

    /// Reads the present CPU quota and throttling.
    pub fn cpu(&mut self) -> Fact<CgroupCpu> {
        fold_levels(&mut self.cpu, |index, level, sum: &mut CgroupCpu| {
            let stat = at_level(index, level.stat.read(parse_cpu_stat))?.flatten();
            let (throttled, throttled_us) = stat.unwrap_or_default();
            sum.throttled = sum.throttled.saturating_add(throttled);
            sum.throttled_us = sum.throttled_us.saturating_add(throttled_us);
            // A level without the controller, and the outermost level of v2, has no quota.
            let limit = match &mut level.period {
                None => level.quota.read(parse_cpu_max).or_missing()?.flatten(),
                Some(period) => match level.quota.read(parse_quota_v1).or_missing()?.flatten() {
                    None => None,
                    Some(quota) => {
                        Some((quota, period.read(|text| number(text.trim())).into_result()?))
                    }
                },
            };
            if let Some((quota_us, period_us)) = limit {
                let millicpus = quota_us.saturating_mul(1000) / period_us.max(1);
                sum.limit_millicpus = least(sum.limit_millicpus, Some(millicpus));
            }
            Ok(())
        })
    }

    /// Reads the present memory use and limit.
    pub fn memory(&mut self) -> Fact<CgroupMemory> {
        fold_levels(&mut self.memory, |index, level, sum: &mut CgroupMemory| {
            let used = at_level(index, level.used.read(|text| number(text.trim())))?;
            if index == 0 {
                sum.used_bytes = used.unwrap_or_default();
            }
            let limit = level.limit.read(parse_memory_limit).or_missing()?.flatten();
            sum.limit_bytes = least(sum.limit_bytes, limit);
            let (hits, kills) = match &mut level.kills {
                None => level.hits.read(parse_memory_events).or_missing()?.unwrap_or_default(),
                Some(kills) => (
                    level.hits.read(|text| number(text.trim())).or_missing()?.unwrap_or_default(),
                    // The kernel counts kills since Linux 4.13.
                    kills
                        .read(|text| Ok(keyed(text, "oom_kill")))
                        .or_missing()?
                        .flatten()
                        .unwrap_or(0),
                ),
            };
            sum.limit_hits = sum.limit_hits.max(hits);
            sum.oom_kills = sum.oom_kills.max(kills);
            Ok(())
        })
    }
}

/// Folds all levels, the process's own group first.
fn fold_levels<L, S: Default>(
    levels: &mut Fact<Vec<L>>,
    mut each: impl FnMut(usize, &mut L, &mut S) -> Result<(), Unknown>,
) -> Fact<S> {
    let levels = match levels {
        Fact::Known(levels) => levels,
        Fact::Unknown(why) => return Fact::Unknown(why.clone()),
    };
    let mut sum = S::default();
    for (index, level) in levels.iter_mut().enumerate() {
        if let Err(why) = each(index, level, &mut sum) {
            return Fact::Unknown(why);
        }
    }
    Fact::Known(sum)
}

/// Returns the value of a level's file. The own group must have the file; an outer one may lack it.
fn at_level<T>(index: usize, fact: Fact<T>) -> Result<Option<T>, Unknown> {
    if index == 0 { fact.into_result().map(Some) } else { fact.or_missing() }
}

impl<T> Fact<T> {
    /// Returns `None` for a file that does not exist, instead of an unknown value.
    fn or_missing(self) -> Result<Option<T>, Unknown> {
        match self {
            Self::Known(value) => Ok(Some(value)),
            Self::Unknown(Unknown { reason: Reason::Missing, .. }) => Ok(None),
            Self::Unknown(why) => Err(why),
        }
    }
}

/// Returns the smaller of two limits.
fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Parses `cpu.stat` of either version: the number of throttlings, and their microseconds. It is
/// `None` where no quota can be set: v2's outermost group, and a group without the controller.
pub fn parse_cpu_stat(text: &str) -> Result<Option<(u64, u64)>, ParseFailure> {
    let Some(throttled) = keyed(text, "nr_throttled") else {
        let is_v2 = keyed(text, "usage_usec").is_some();
        return if is_v2 { Ok(None) } else { Err(ParseFailure("nr_throttled")) };
    };
    let nanos = || keyed(text, "throttled_time").map(|nanos| nanos / 1000);
    let us = keyed(text, "throttled_usec").or_else(nanos).ok_or(ParseFailure("throttled time"))?;
    Ok(Some((throttled, us)))
}

/// Parses v2's `cpu.max`: quota and period in microseconds; `None` is unlimited.
pub fn parse_cpu_max(text: &str) -> Result<Option<(u64, u64)>, ParseFailure> {
    let mut words = text.split_ascii_whitespace();
    match words.next() {
        Some("max") => Ok(None),
        Some(quota) => Ok(Some((number(quota)?, next(&mut words)?))),
        None => Err(ParseFailure("a quota and a period")),
    }
}

/// Parses v1's `cpu.cfs_quota_us`, in microseconds; -1 is unlimited, which is `None`.
pub fn parse_quota_v1(text: &str) -> Result<Option<u64>, ParseFailure> {
    match text.trim() {
        "-1" => Ok(None),
        quota => number(quota).map(Some),
    }
}

/// Parses v2's `memory.max` or v1's `memory.limit_in_bytes`. `None` is unlimited, which v1 writes
/// as the largest number of whole pages.
pub fn parse_memory_limit(text: &str) -> Result<Option<u64>, ParseFailure> {
    match text.trim() {
        "max" => Ok(None),
        limit => number(limit).map(|limit| (limit < 1 << 60).then_some(limit)),
    }
}

/// Parses v2's `memory.events`: the hits of the limit, and the processes killed.
pub fn parse_memory_events(text: &str) -> Result<(u64, u64), ParseFailure> {
    let get = |name| keyed(text, name).ok_or(ParseFailure("max and oom_kill"));
    Ok((get("max")?, get("oom_kill")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded_root;

    fn read(kernel: &str, pid: u32) -> (Fact<CgroupCpu>, Fact<CgroupMemory>) {
        let mut reader = CgroupReader::locate(&recorded_root(kernel), pid);
        (reader.cpu(), reader.memory())
    }

    #[test]
    fn v1_without_limits() {
        let (cpu, memory) = read("linux-6.18", 4242);
        assert_eq!(cpu, Fact::Known(CgroupCpu::default()));
        let memory = memory.into_result().unwrap();
        assert_eq!(memory.limit_bytes, None);
        assert!(memory.used_bytes > 0, "{memory:?}");
    }

    #[test]
    fn v1_inside_a_container() {
        let (cpu, memory) = read("linux-4.19", 31);
        assert_eq!(
            cpu,
            Fact::Known(CgroupCpu {
                limit_millicpus: Some(1_500),
                throttled: 87,
                throttled_us: 4_312_345,
            })
        );
        assert_eq!(
            memory,
            Fact::Known(CgroupMemory {
                limit_bytes: Some(2 << 30),
                used_bytes: 1_900_000_000,
                limit_hits: 12,
                oom_kills: 1,
            })
        );
    }

    #[test]
    fn v2_with_a_tighter_outer_group() {
        let (cpu, memory) = read("linux-5.10", 77);
        assert_eq!(
            cpu,
            Fact::Known(CgroupCpu {
                limit_millicpus: Some(500),
                throttled: 40 + 3,
                throttled_us: 123_456 + 1_000,
            })
        );
        assert_eq!(
            memory,
            Fact::Known(CgroupMemory {
                limit_bytes: Some(1 << 30),
                used_bytes: 700_000_000,
                limit_hits: 9,
                oom_kills: 2,
            })
        );
    }

    #[test]
    fn v2_inside_a_container_sees_its_own_group_as_the_outermost() {
        let (cpu, memory) = read("linux-5.15-container", 1);
        assert_eq!(cpu.known().unwrap().limit_millicpus, Some(2_000));
        assert_eq!(memory.known().unwrap().limit_bytes, Some(512 << 20));
    }

    #[test]
    fn a_machine_without_control_groups_is_unknown() {
        let (cpu, memory) = read("empty", 1);
        assert_eq!(cpu.why().unwrap().reason, Reason::Missing);
        assert_eq!(memory.why().unwrap().reason, Reason::Missing);
    }

    #[test]
    fn a_group_without_the_controller_is_not_throttled() {
        assert_eq!(parse_cpu_stat("usage_usec 5\nuser_usec 3\nsystem_usec 2\n"), Ok(None));
        assert!(parse_cpu_stat("").is_err());
        assert!(parse_cpu_stat("nr_throttled 1\n").is_err());
    }
}
