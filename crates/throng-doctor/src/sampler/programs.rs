//! Which other programs took the CPUs, by name.
//!
//! One file a process is read for it, so that a look costs a millisecond or so where a hundred run, and a hundred times that
//! where ten thousand do. Each look is therefore followed by a rest in proportion to what it cost.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use throng_base::time::Instant;
use throng_report::ProgramUse;

use crate::fact::Fact;
use crate::proc_root::ProcRoot;
use crate::process::{ProcessStat, parse_stat};

/// Compares what every process has used with what it had at the look before.
#[derive(Debug, Default)]
pub(super) struct ProgramMeter {
    before: Option<Look>,
    rests_until: Option<Rest>,
}

/// When a look may be taken again.
#[derive(Clone, Copy, Debug)]
struct Rest {
    ended: Instant,
    cost: Duration,
}

/// Every process at one moment.
#[derive(Debug)]
struct Look {
    at: Instant,
    processes: HashMap<u32, ProcessStat>,
}

impl ProgramMeter {
    /// Tells whether to look now. While the CPUs are taken by programs that are not known, looks may take a four times larger
    /// part of the time.
    pub(super) fn is_due(&self, now: Instant, is_busy: bool) -> bool {
        let rests = if is_busy { RESTS_BUSY } else { RESTS_QUIET };
        self.rests_until.is_none_or(|rest| now.since(rest.ended) >= rest.cost.saturating_mul(rests))
    }

    /// Looks at all processes, and returns those that took the most CPU since the look before, without `ours`. The first look
    /// returns none: there is nothing to compare with.
    pub(super) fn look(
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
        let look = Look { at: now, processes };
        let found = self.before.as_ref().map(|before| look.since(before, ours));
        self.before = Some(look);
        let cost = began.elapsed();
        self.rests_until = Some(Rest { ended: now + cost, cost });
        found.unwrap_or_default()
    }
}

impl Look {
    /// What took CPU time since `before`, the most first.
    fn since(&self, before: &Self, ours: &BTreeSet<u32>) -> Vec<ProgramUse> {
        let elapsed_us = self.at.micros_since(before.at).max(1);
        let ended_us = self.ended_since(before);
        let mut found: Vec<_> = self
            .processes
            .iter()
            .filter(|(pid, stat)| !ours.contains(pid) && !stat.name.starts_with(KERNELS_OWN))
            .map(|(pid, stat)| {
                let then = before.processes.get(pid);
                let own = stat.cpu_us().saturating_sub(then.map_or(0, ProcessStat::cpu_us));
                // Of children that it has waited for, what was not theirs before.
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

    /// What processes that have ended since had used before, by the nearest ancestor that lives.
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

/// What the kernel does for everybody, the run included.
const KERNELS_OWN: &str = "ksoftirqd/";

/// Less than a twentieth of a CPU is nobody's trouble.
const MILLICPUS_MIN: u64 = 50;

/// Programs that are kept of a look.
const PROGRAMS_MAX: usize = 8;

/// Rests of one look's cost each before the next: 0.2 % of the time.
const RESTS_BUSY: u32 = 500;

/// The same while the two ends explain how busy the machine is: 0.05 %.
const RESTS_QUIET: u32 = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// A look at processes: `(pid, parent, name, own ms, ended children's ms)`.
    fn look(ms: u64, processes: &[(u32, u32, &str, u64, u64)]) -> Look {
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
        Look { at: at(ms), processes: processes.iter().map(stat).collect() }
    }

    fn found(before: &Look, now: &Look, ours: &[u32]) -> Vec<(u32, u64)> {
        let found = now.since(before, &ours.iter().copied().collect());
        found.into_iter().map(|used| (used.pid, used.millicpus)).collect()
    }

    #[test]
    fn who_took_the_most_comes_first_and_the_run_is_not_among_them() {
        let before =
            look(0, &[(1, 0, "init", 9_000, 0), (7, 1, "throng", 0, 0), (8, 1, "sh", 50, 0)]);
        let now = look(
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
    fn what_short_lived_children_took_is_their_parents() {
        // A build, one of whose compilers had worked for 300 ms before and ends, and another that nobody ever saw.
        let before = look(0, &[(5, 1, "make", 10, 0), (6, 5, "cc1", 300, 0)]);
        let now = look(1_000, &[(5, 1, "make", 10, 300 + 400 + 500)]);
        assert_eq!(found(&before, &now, &[]), [(5, 900)]);
        // It was a grandchild, whose parent has ended too.
        let before = look(0, &[(5, 1, "make", 10, 0), (6, 5, "sh", 0, 0), (7, 6, "cc1", 300, 0)]);
        assert_eq!(found(&before, &now, &[]), [(5, 900)]);
    }

    #[test]
    fn a_look_is_followed_by_a_rest_in_proportion_to_its_cost() {
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
        // Neighbours that take as much would leave no row for it.
        let names = root.names("proc").into_result().unwrap();
        let neighbours = names.iter().filter_map(|name| name.parse().ok()).collect();
        // It ends by itself when it has had ten seconds of a CPU, however long that takes here.
        let mut busy = std::process::Command::new("sh")
            .args(["-c", "ulimit -t 10; while :; do :; done"])
            .spawn()
            .expect("a shell");
        let began = std::time::Instant::now();
        let mut now = Instant::from_nanos(1);
        assert_eq!(meter.look(&root, now, &neighbours), []);
        let mut seen = false;
        while !seen && busy.try_wait().expect("it is a child").is_none() {
            std::thread::sleep(Duration::from_millis(200));
            now = Instant::from_nanos(1) + began.elapsed();
            let found = meter.look(&root, now, &neighbours);
            seen = found.iter().any(|used| used.pid == busy.id());
        }
        let _ = busy.kill();
        let _ = busy.wait();
        assert!(seen, "it had ten seconds of a CPU, and was not found");
    }
}
