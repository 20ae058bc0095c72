//! A program of more than one process: workers that share its listener, and the children of all of
//! them.
//!
//! A server with one process for each CPU uses what all of its processes use. The CPU time of its
//! workers must not look like that of other programs.

use std::collections::{BTreeSet, HashMap};

use crate::fact::Fact;
use crate::proc_root::ProcRoot;
use crate::process::{ProcessStat, SchedStat, children, parse_stat, sched_stats};
use crate::status;

/// Sums up what the processes of one program use, while some end and others start.
#[derive(Debug)]
pub(super) struct ProcessTree {
    main: u32,
    /// Processes that belong to the program from the start.
    also: Vec<u32>,
    /// CPU time of each process at the previous sample.
    before: HashMap<u32, u64>,
    cpu_us: u64,
}

/// The use by all processes of a program in one sample.
#[derive(Debug, Default)]
pub(super) struct ProcessTreeUse {
    /// CPU time of all since the first sample, and what the processes in that sample had used
    /// before.
    pub(super) cpu_us: u64,
    /// Resident memory of all; shared pages count more than once.
    pub(super) rss_bytes: u64,
    /// Number of processes now.
    pub(super) processes: u64,
    /// Processes that a signal or a debugger has stopped.
    pub(super) stopped: u64,
    /// Processes that wait in the kernel for a disk, or are frozen.
    pub(super) uninterruptible: u64,
}

impl ProcessTree {
    pub(super) fn new(main: u32, also: Vec<u32>) -> Self {
        Self { main, also, before: HashMap::new(), cpu_us: 0 }
    }

    /// Returns the processes of the last sample, with the main one even if it is gone.
    pub(super) fn members(&self) -> BTreeSet<u32> {
        self.before.keys().copied().chain([self.main]).collect()
    }

    /// Samples all processes, or returns `None` if the main one is gone.
    pub(super) fn sample(&mut self, root: &ProcRoot) -> Option<ProcessTreeUse> {
        let mut found = ProcessTreeUse::default();
        let mut now = HashMap::new();
        let mut queue: Vec<u32> = self.also.iter().rev().copied().chain([self.main]).collect();
        while let Some(pid) = queue.pop() {
            if now.len() == PROCESSES_MAX || now.contains_key(&pid) {
                continue;
            }
            let stat = root.read(&format!("proc/{pid}/stat"), parse_stat);
            let Fact::Known(stat) = stat else { continue };
            if stat.is_gone() {
                continue;
            }
            found.add(&stat);
            found.rss_bytes += rss_bytes(root, pid);
            now.insert(pid, stat.cpu_us());
            queue.extend(children(root, pid));
        }
        now.contains_key(&self.main).then(|| {
            let used = now.iter().map(|(pid, us)| us.saturating_sub(self.used_before(*pid)));
            self.cpu_us += used.sum::<u64>();
            self.before = now;
            ProcessTreeUse { cpu_us: self.cpu_us, ..found }
        })
    }

    /// Returns the scheduling statistics of all their threads.
    pub(super) fn threads(&self, root: &ProcRoot) -> Fact<Vec<(u32, SchedStat)>> {
        let mut all = sched_stats(root, self.main);
        for pid in self.before.keys().filter(|pid| **pid != self.main) {
            if let (Fact::Known(all), Fact::Known(found)) = (&mut all, sched_stats(root, *pid)) {
                all.extend(found);
            }
        }
        all
    }

    /// Returns the present CPU time of the first few processes of the last sample.
    pub(super) fn cpu_us_now(&self, root: &ProcRoot) -> Option<u64> {
        let stat = |pid: &u32| root.read(&format!("proc/{pid}/stat"), parse_stat);
        let few = self.before.keys().take(STEP_PROCESSES_MAX);
        let known = few.filter_map(|pid| Some(stat(pid).known()?.cpu_us()));
        (!self.before.is_empty()).then(|| known.sum())
    }

    /// Returns the CPU time of a process at the previous sample.
    fn used_before(&self, pid: u32) -> u64 {
        self.before.get(&pid).copied().unwrap_or(0)
    }
}

impl ProcessTreeUse {
    fn add(&mut self, stat: &ProcessStat) {
        self.processes += 1;
        self.stopped += u64::from(stat.is_stopped());
        self.uninterruptible += u64::from(stat.state == 'D');
    }
}

/// Returns the resident memory of a process.
fn rss_bytes(root: &ProcRoot, pid: u32) -> u64 {
    let status = root.read(&format!("proc/{pid}/status"), status::parse).into_result();
    status.ok().and_then(|status| status.rss_bytes).unwrap_or(0)
}

/// The most processes of one program that are sampled. A server that forks for each connection has
/// more; its first ones represent it.
const PROCESSES_MAX: usize = 64;

/// The most processes that are read fifty times a second.
const STEP_PROCESSES_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a process into a made-up `/proc` tree.
    fn process(dir: &std::path::Path, pid: u32, state: char, ticks: u64, children: &str) {
        let path = dir.join(format!("proc/{pid}"));
        std::fs::create_dir_all(path.join(format!("task/{pid}"))).unwrap();
        let stat =
            format!("{pid} (srv) {state} 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 99 0 0");
        std::fs::write(path.join("stat"), stat).unwrap();
        std::fs::write(path.join(format!("task/{pid}/children")), children).unwrap();
    }

    #[test]
    fn workers_and_their_children_count_and_one_that_ends_keeps_its_cpu_time() {
        let dir = tempfile::tempdir().unwrap();
        let root = ProcRoot::new(dir.path());
        process(dir.path(), 10, 'S', 100, "11 ");
        process(dir.path(), 11, 'S', 50, "");
        process(dir.path(), 12, 'T', 30, "");
        let mut process_tree = ProcessTree::new(10, vec![12]);
        let found = process_tree.sample(&root).unwrap();
        assert_eq!((found.cpu_us, found.processes, found.stopped), (1_800_000, 3, 1));
        assert_eq!(process_tree.members(), BTreeSet::from([10, 11, 12]));
        // One process ends, another starts.
        std::fs::remove_dir_all(dir.path().join("proc/11")).unwrap();
        process(dir.path(), 10, 'S', 110, "13 ");
        process(dir.path(), 13, 'D', 5, "");
        let found = process_tree.sample(&root).unwrap();
        assert_eq!(found.cpu_us, 1_800_000 + 100_000 + 50_000);
        assert_eq!((found.processes, found.uninterruptible), (3, 1));
        assert_eq!(process_tree.cpu_us_now(&root), Some((110 + 5 + 30) * 10_000));
    }

    #[test]
    fn a_program_whose_main_process_is_gone_is_not_known() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), 12, 'S', 30, "");
        assert!(ProcessTree::new(10, vec![12]).sample(&ProcRoot::new(dir.path())).is_none());
    }
}
