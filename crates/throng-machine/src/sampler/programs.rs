//! The other programs that used the CPUs, by name.
//!
//! A scan reads one file for each process. It takes about a millisecond with a hundred processes,
//! and a hundred times that with ten thousand. After each scan the meter therefore rests for a
//! multiple of the scan's time.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use throng_base::time::Instant;
use throng_measure::ProgramUse;

use crate::fact::Fact;
use crate::proc_root::ProcRoot;
use crate::process::{ProcessStat, parse_stat};

/// Compares the CPU time of every process with that of the previous scan.
#[derive(Debug, Default)]
pub(super) struct ProgramMeter {
    before: Option<Scan>,
    rests_until: Option<Rest>,
}

/// The end and the cost of a scan, after which the meter rests.
#[derive(Clone, Copy, Debug)]
struct Rest {
    ended: Instant,
    cost: Duration,
}

/// The CPU times of all processes at one time.
#[derive(Debug)]
struct Scan {
    at: Instant,
    processes: HashMap<u32, ProcessStat>,
}

impl ProgramMeter {
    /// Reports whether a scan is due. While unknown programs use the CPUs, scans may take four
    /// times as much of the time.
    pub(super) fn is_due(&self, now: Instant, is_busy: bool) -> bool {
        let rests = if is_busy { RESTS_BUSY } else { RESTS_QUIET };
        self.rests_until.is_none_or(|rest| now.since(rest.ended) >= rest.cost.saturating_mul(rests))
    }

    /// Scans all processes, and returns those that used the most CPU since the previous scan,
    /// without `ours`. The first scan returns none: there is nothing to compare with.
    pub(super) fn scan(
        &mut self,
        root: &ProcRoot,
        now: Instant,
        ours: &BTreeSet<u32>,
    ) -> Vec<ProgramUse> {
        let began = std::time::Instant::now();
        let mut processes = HashMap::new();
        for name in root.names("proc").into_result().unwrap_or_default() {
            let Ok(pid) = name.parse::<u32>() else { continue };
            if let Fact::Known(stat) = root.read(&format!("proc/{pid}/stat"), parse_stat) {
                processes.insert(pid, stat);
            }
        }
        let scan = Scan { at: now, processes };
        let found = self.before.as_ref().map(|before| scan.since(before, ours));
        self.before = Some(scan);
        let cost = began.elapsed();
        self.rests_until = Some(Rest { ended: now + cost, cost });
        found.unwrap_or_default()
    }
}

impl Scan {
    /// Returns the programs that used CPU time since `before`, the most first.
    fn since(&self, before: &Self, ours: &BTreeSet<u32>) -> Vec<ProgramUse> {
        let elapsed_us = self.at.micros_since(before.at).max(1);
        let ended_us = self.ended_since(before);
        let mut found: Vec<_> = self
            .processes
            .iter()
            .filter(|(pid, stat)| !ours.contains(pid) && !stat.name.starts_with(KERNEL_THREADS))
            .map(|(pid, stat)| {
                let then = before.processes.get(pid);
                let own = stat.cpu_us().saturating_sub(then.map_or(0, ProcessStat::cpu_us));
                // The time of children that it has waited for, less what they had used before.
                let children =
                    stat.children_us.saturating_sub(then.map_or(0, |then| then.children_us));
                let children = children.saturating_sub(ended_us.get(pid).copied().unwrap_or(0));
                let millicpus = (own + children).saturating_mul(1000) / elapsed_us;
                ProgramUse { pid: *pid, program: stat.name.clone(), millicpus }
            })
            .filter(|used| used.millicpus >= MILLICPUS_MIN)
            .collect();
        found.sort_by_key(|used| (std::cmp::Reverse(used.millicpus), used.pid));
        found.truncate(PROGRAMS_MAX);
        found
    }

    /// Returns the CPU time that ended processes had used before, by their nearest living ancestor.
    fn ended_since(&self, before: &Self) -> HashMap<u32, u64> {
        let mut ended = HashMap::new();
        for (pid, stat) in &before.processes {
            if self.processes.contains_key(pid) {
                continue;
            }
            let mut heir = stat.parent;
            while let Some(gone) = before.processes.get(&heir) {
                if self.processes.contains_key(&heir) || gone.parent == heir {
                    break;
                }
                heir = gone.parent;
            }
            *ended.entry(heir).or_default() += stat.cpu_us() + stat.children_us;
        }
        ended
    }
}

/// The prefix of kernel threads that work for all programs, the run included.
const KERNEL_THREADS: &str = "ksoftirqd/";

/// The smallest CPU use that is kept, in thousandths of a CPU: less than a twentieth disturbs no
/// run.
const MILLICPUS_MIN: u64 = 50;

/// The most programs that are kept of a scan.
const PROGRAMS_MAX: usize = 8;

/// The pause after a scan, in multiples of its time: scans take 0.2 % of the time.
const RESTS_BUSY: u32 = 500;

/// The pause while server and generator explain how busy the machine is: scans take 0.05 % of the
/// time.
const RESTS_QUIET: u32 = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// Creates a scan of processes: `(pid, parent, name, own ms, ended children's ms)`.
    fn scan(ms: u64, processes: &[(u32, u32, &str, u64, u64)]) -> Scan {
        let stat = |&(pid, parent, name, own, children): &(u32, u32, &str, u64, u64)| {
            let stat = ProcessStat {
                name: name.to_owned(),
                state: 'S',
                parent,
                user_us: own * 1000,
                system_us: 0,
                children_us: children * 1000,
                threads: 1,
            };
            (pid, stat)
        };
        Scan { at: at(ms), processes: processes.iter().map(stat).collect() }
    }

    fn found(before: &Scan, now: &Scan, ours: &[u32]) -> Vec<(u32, u64)> {
        let found = now.since(before, &ours.iter().copied().collect());
        found.into_iter().map(|used| (used.pid, used.millicpus)).collect()
    }

    #[test]
    fn the_busiest_program_comes_first_and_the_run_is_left_out() {
        let before =
            scan(0, &[(1, 0, "init", 9_000, 0), (7, 1, "throng", 0, 0), (8, 1, "sh", 50, 0)]);
        let now = scan(
            1_000,
            &[
                (1, 0, "init", 9_010, 0),
                (7, 1, "throng", 900, 0),
                (8, 1, "sh", 650, 0),
                (9, 1, "new", 800, 0),
                (10, 1, "ksoftirqd/0", 700, 0),
            ],
        );
        assert_eq!(found(&before, &now, &[7]), [(9, 800), (8, 600)]);
    }

    #[test]
    fn cpu_time_of_short_lived_children_is_their_parents() {
        // A build with a compiler that had used 300 ms before and ends, and another that ran
        // between two scans.
        let before = scan(0, &[(5, 1, "make", 10, 0), (6, 5, "cc1", 300, 0)]);
        let now = scan(1_000, &[(5, 1, "make", 10, 300 + 400 + 500)]);
        assert_eq!(found(&before, &now, &[]), [(5, 900)]);
        // The compiler was a grandchild, whose parent has ended too.
        let before = scan(0, &[(5, 1, "make", 10, 0), (6, 5, "sh", 0, 0), (7, 6, "cc1", 300, 0)]);
        assert_eq!(found(&before, &now, &[]), [(5, 900)]);
    }

    #[test]
    fn a_scan_is_followed_by_a_rest_in_proportion_to_its_cost() {
        let cost = Duration::from_millis(2);
        let meter = ProgramMeter { before: None, rests_until: Some(Rest { ended: at(0), cost }) };
        assert!(!meter.is_due(at(999), true) && meter.is_due(at(1_000), true));
        assert!(!meter.is_due(at(3_999), false) && meter.is_due(at(4_000), false));
        assert!(ProgramMeter::default().is_due(at(0), false));
    }

    #[test]
    fn a_program_that_computes_is_found_on_this_machine() {
        let mut meter = ProgramMeter::default();
        let root = ProcRoot::default();
        // Other programs that use as much would leave no row for it.
        let names = root.names("proc").into_result().unwrap();
        let neighbours = names.iter().filter_map(|name| name.parse().ok()).collect();
        // It ends by itself after ten seconds of CPU time, however long that takes here.
        let mut busy = std::process::Command::new("sh")
            .args(["-c", "ulimit -t 10; while :; do :; done"])
            .spawn()
            .expect("a shell");
        let began = std::time::Instant::now();
        let mut now = Instant::from_nanos(1);
        assert_eq!(meter.scan(&root, now, &neighbours), []);
        let mut seen = false;
        while !seen && busy.try_wait().expect("it is a child").is_none() {
            std::thread::sleep(Duration::from_millis(200));
            now = Instant::from_nanos(1) + began.elapsed();
            let found = meter.scan(&root, now, &neighbours);
            seen = found.iter().any(|used| used.pid == busy.id());
        }
        let _ = busy.kill();
        let _ = busy.wait();
        assert!(seen, "it had ten seconds of a CPU, and was not found");
    }
}
