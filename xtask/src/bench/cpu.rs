//! The CPU time of other processes, read from outside.
//!
//! For a running process it is the sum of `/proc/PID/task/*/schedstat`, which counts nanoseconds on
//! a CPU, user and kernel, up to the last tick of each thread (4 ms at most). A thread that ends
//! takes its share with it. If a thread is missing at the end of the window, `/proc/PID/stat` is
//! used instead, which keeps the time of dead threads but counts in ticks of 10 ms.
//!
//! For a process that has ended and is not yet reaped it is `/proc/PID/stat`.
//!
//! On loopback the kernel does the receiver's work in the sender's name, and kernels charge
//! interrupts to the process that they interrupt. So the CPU time of one process is never the whole
//! truth: see [`Machine`].

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

/// The CPU time of a process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    threads_ns: BTreeMap<u32, u64>,
    ticks_ns: u64,
}

impl Process {
    pub(super) fn read(pid: u32) -> Result<Self, String> {
        let gone = |e| format!("cannot read the CPU time of process {pid}: {e}");
        let mut threads_ns = BTreeMap::new();
        for entry in fs::read_dir(format!("/proc/{pid}/task")).map_err(gone)? {
            let entry = entry.map_err(gone)?;
            let Ok(thread) = entry.file_name().to_string_lossy().parse() else { continue };
            // A thread may end after it was listed.
            if let Ok(text) = fs::read_to_string(entry.path().join("schedstat"))
                && let Some(ns) = text.split_whitespace().next().and_then(|n| n.parse().ok())
            {
                threads_ns.insert(thread, ns);
            }
        }
        Ok(Self { threads_ns, ticks_ns: ended_ns(pid)? })
    }

    /// Returns the nanoseconds on a CPU since an earlier reading.
    pub(super) fn since(&self, earlier: &Self) -> u64 {
        if earlier.threads_ns.keys().any(|thread| !self.threads_ns.contains_key(thread)) {
            return self.ticks_ns.saturating_sub(earlier.ticks_ns);
        }
        let before = |thread| earlier.threads_ns.get(thread).copied().unwrap_or(0);
        self.threads_ns.iter().map(|(thread, ns)| ns.saturating_sub(before(thread))).sum()
    }
}

/// Returns all CPU time of a process, including its dead threads and also while it is a zombie.
pub(super) fn ended_ns(pid: u32) -> Result<u64, String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))
        .map_err(|e| format!("cannot read the CPU time of process {pid}: {e}"))?;
    stat_ns(&text).ok_or_else(|| format!("cannot parse /proc/{pid}/stat"))
}

/// Returns user and system time, the 14th and 15th field. The 2nd field may contain spaces and
/// parentheses.
fn stat_ns(text: &str) -> Option<u64> {
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) * TICK_NS)
}

/// The work of all CPUs together at one moment.
///
/// Busy time is the elapsed time on all CPUs without idle and stolen time. The kernel's own
/// counters of busy time are samples at ticks and miss short bursts between timers, up to half of
/// all work at low rates. Its idle time is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    at: Instant,
    cpus: u64,
    not_busy_ns: u64,
}

impl Machine {
    pub(super) fn read() -> Result<Self, String> {
        let text =
            fs::read_to_string("/proc/stat").map_err(|e| format!("cannot read /proc/stat: {e}"))?;
        Self::parse(&text, Instant::now()).ok_or_else(|| "cannot parse /proc/stat".into())
    }

    fn parse(text: &str, at: Instant) -> Option<Self> {
        let ticks = text
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace()
            .take(8)
            .map(str::parse)
            .collect::<Result<Vec<u64>, _>>()
            .ok()?;
        let [_, _, _, idle, iowait, _, _, steal] = ticks[..] else { return None };
        let cpus = text.lines().skip(1).take_while(|line| line.starts_with("cpu")).count() as u64;
        Some(Self { at, cpus, not_busy_ns: (idle + iowait + steal) * TICK_NS })
    }

    /// Returns the busy nanoseconds of the CPUs since an earlier reading, and the nanoseconds that
    /// passed on all of them.
    pub(super) fn since(&self, earlier: &Self) -> (u64, u64) {
        let passed = u64::try_from((self.at - earlier.at).as_nanos()).unwrap_or(u64::MAX);
        let total = passed.saturating_mul(self.cpus);
        (total.saturating_sub(self.not_busy_ns.saturating_sub(earlier.not_busy_ns)), total)
    }
}

/// The tick that Linux reports to user space: a hundredth of a second on every supported
/// architecture.
const TICK_NS: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn process(threads: &[(u32, u64)], ticks_ns: u64) -> Process {
        Process { threads_ns: threads.iter().copied().collect(), ticks_ns }
    }

    #[test]
    fn threads_that_appear_count_from_nothing() {
        let before = process(&[(1, 100)], 0);
        assert_eq!(process(&[(1, 150), (2, 30)], 0).since(&before), 80);
    }

    #[test]
    fn a_thread_that_ended_makes_ticks_the_measure() {
        let before = process(&[(1, 100), (2, 50)], 20_000_000);
        assert_eq!(process(&[(1, 150)], 50_000_000).since(&before), 30_000_000);
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let text = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 31 0 0";
        assert_eq!(stat_ns(text), Some(42 * TICK_NS));
        assert_eq!(stat_ns("7 (a) S 1"), None);
    }

    #[test]
    fn busy_is_what_idle_and_stolen_time_leave_of_all_cpus() {
        let began = Instant::now();
        let at = |second, idle, steal| {
            let text = format!("cpu  0 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 0\ncpu1 0\nintr 0");
            Machine::parse(&text, began + Duration::from_secs(second)).unwrap()
        };
        let (busy, total) = at(1, 150, 10).since(&at(0, 100, 0));
        assert_eq!((busy, total), (1_400_000_000, 2_000_000_000));
    }

    #[test]
    fn own_work_is_seen_from_outside() {
        let id = std::process::id();
        let before = Process::read(id).unwrap();
        let began = Instant::now();
        // The other load on the machine decides how long that takes.
        while Process::read(id).unwrap().since(&before) <= 5_000_000 {
            assert!(began.elapsed() < Duration::from_secs(60), "a minute of work is not counted");
        }
    }
}
