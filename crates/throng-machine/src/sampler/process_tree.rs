//! A program of more than one process: workers that share its listener, and the children of all of
//! them.
//!
//! A server with one process for each CPU uses what all of its processes use. The CPU time of its
//! workers must not look like that of other programs.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::threads::ThreadId;
use crate::fact::Fact;
use crate::proc_root::ProcRoot;
use crate::process::{ProcessStat, SchedStat, children, is_there, parse_stat, sched_stats};
use crate::status;

/// Sums up what the processes of one program use, while some end and others start.
#[derive(Debug)]
pub(super) struct ProcessTree {
    main: u32,
    /// Processes that belong to the program from the start.
    also: Vec<u32>,
    /// The processes of the previous sample.
    before: HashMap<u32, Member>,
    cpu_us: u64,
    /// Processes that have ended.
    ended: u64,
}

/// A process of the program.
#[derive(Debug)]
struct Member {
    program: String,
    parent: u32,
    cpu_us: u64,
    /// CPU time since the sample before.
    used_us: u64,
}

/// The workers of a server, one of which is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WorkersUse {
    pub(super) workers: u64,
    /// Workers that have nearly nothing to do.
    pub(super) idle: u64,
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
    /// Processes that have ended since the first sample, while the main one ran on.
    pub(super) ended: u64,
    /// Those that have ended since the previous sample, with their programs.
    pub(super) ended_now: Vec<(u32, String)>,
    /// Processes that a signal or a debugger has stopped.
    pub(super) stopped: u64,
    /// Processes that wait in the kernel for a disk, or are frozen.
    pub(super) uninterruptible: u64,
}

impl ProcessTree {
    pub(super) fn new(main: u32, also: Vec<u32>) -> Self {
        Self { main, also, before: HashMap::new(), cpu_us: 0, ended: 0 }
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
            let cpu_us = stat.cpu_us();
            let used_us =
                cpu_us.saturating_sub(self.before.get(&pid).map_or(0, |then| then.cpu_us));
            now.insert(pid, Member { program: stat.name, parent: stat.parent, cpu_us, used_us });
            queue.extend(children(root, pid));
        }
        now.contains_key(&self.main).then(|| {
            self.cpu_us += now.values().map(|member| member.used_us).sum::<u64>();
            let before = std::mem::replace(&mut self.before, now);
            // Of more processes than are sampled, others may be the first ones now.
            let is_gone = |pid: &u32| !self.before.contains_key(pid) && !is_there(root, *pid);
            let gone = before.into_iter().filter(|(pid, _)| is_gone(pid));
            let ended_now: Vec<_> = gone.map(|(pid, member)| (pid, member.program)).collect();
            self.ended += ended_now.len() as u64;
            ProcessTreeUse { cpu_us: self.cpu_us, ended: self.ended, ended_now, ..found }
        })
    }

    /// Returns how many workers there are and how many are idle, if the busiest process of the last
    /// sample hardly rested since the one before, which was `elapsed` earlier. `holds` reports
    /// whether a process holds a listener of the server.
    ///
    /// A supervisor is no worker, nor is a helper that the same program runs.
    pub(super) fn workers(
        &self,
        elapsed: Duration,
        mut holds: impl FnMut(u32) -> bool,
    ) -> Option<WorkersUse> {
        let elapsed_us = elapsed.as_micros() as u64;
        let (pid, busiest) =
            self.before.iter().max_by_key(|(pid, member)| (member.used_us, Reverse(**pid)))?;
        if busiest.used_us * 10 <= elapsed_us * 8 {
            return None;
        }
        let is_parent = |pid: u32| self.before.values().any(|member| member.parent == pid);
        let holds_it = holds(*pid);
        let mut is_worker = |other: u32, member: &Member| {
            let mut is_alike = || match holds_it {
                true => !is_parent(other) && holds(other),
                false => member.parent == busiest.parent,
            };
            other == *pid || (member.program == busiest.program && is_alike())
        };
        let workers = self.before.iter().filter(|(pid, member)| is_worker(**pid, member));
        let used: Vec<u64> = workers.map(|(_, member)| member.used_us).collect();
        let idle = used.iter().filter(|us| **us * 10 < elapsed_us).count();
        Some(WorkersUse { workers: used.len() as u64, idle: idle as u64 })
    }

    /// Returns the program of a process of the last sample.
    pub(super) fn program(&self, pid: u32) -> Option<&str> {
        Some(&self.before.get(&pid)?.program)
    }

    /// Returns the scheduling statistics of all their threads.
    pub(super) fn threads(&self, root: &ProcRoot) -> Fact<Vec<(ThreadId, SchedStat)>> {
        let of = |pid: u32| {
            sched_stats(root, pid).map(|found| {
                let found = found.into_iter();
                found.map(|(tid, sched)| (ThreadId { pid, tid }, sched)).collect::<Vec<_>>()
            })
        };
        let mut all = of(self.main);
        for pid in self.before.keys().filter(|pid| **pid != self.main) {
            if let (Fact::Known(all), Fact::Known(found)) = (&mut all, of(*pid)) {
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

    /// Writes a process into a made-up `/proc` tree, a child of process 1.
    fn process(dir: &std::path::Path, pid: u32, state: char, ticks: u64, children: &str) {
        child(dir, (pid, 1), state, ticks, children);
    }

    fn child(
        dir: &std::path::Path,
        (pid, parent): (u32, u32),
        state: char,
        ticks: u64,
        children: &str,
    ) {
        let path = dir.join(format!("proc/{pid}"));
        std::fs::create_dir_all(path.join(format!("task/{pid}"))).unwrap();
        let stat = format!(
            "{pid} (srv) {state} {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 99 0 0"
        );
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
        assert_eq!((found.ended, found.ended_now), (1, vec![(11, "srv".to_owned())]));
        assert_eq!(process_tree.cpu_us_now(&root), Some((110 + 5 + 30) * 10_000));
    }

    #[test]
    fn idle_workers_beside_a_busy_one_are_counted_without_supervisor_and_helper() {
        let dir = tempfile::tempdir().unwrap();
        let root = ProcRoot::new(dir.path());
        let mut process_tree = ProcessTree::new(10, Vec::new());
        let mut sample = |busy: u64, half: u64| {
            process(dir.path(), 10, 'S', 0, "11 12 13 14");
            for (pid, ticks) in [(11, busy), (12, half), (13, 0), (14, 0)] {
                child(dir.path(), (pid, 10), 'S', ticks, "");
            }
            process_tree.sample(&root).unwrap();
            let workers = |holders: &[u32]| {
                process_tree.workers(Duration::from_secs(1), |pid| holders.contains(&pid))
            };
            // The helper, 14, has no listener.
            [workers(&[10, 11, 12, 13]), workers(&[10])]
        };
        sample(0, 0);
        let found = sample(95, 50);
        let of = |workers, idle| Some(WorkersUse { workers, idle });
        assert_eq!(found, [of(3, 1), of(4, 2)]);
        assert_eq!(sample(175, 55), [None, None], "it has time left");
    }

    #[test]
    fn a_program_whose_main_process_is_gone_is_not_known() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), 12, 'S', 30, "");
        assert!(ProcessTree::new(10, vec![12]).sample(&ProcRoot::new(dir.path())).is_none());
    }
}
