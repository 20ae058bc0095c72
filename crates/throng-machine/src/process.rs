//! CPU time and memory of a process and its threads: `/proc/PID/{stat,status,smaps_rollup}` and
//! `/proc/PID/task/TID/schedstat`.

use throng_measure::ProcessUse;

use crate::cpu::TICK_US;
use crate::fact::{Fact, ParseFailure, Unknown};
use crate::proc_root::ProcRoot;
use crate::status;
use crate::text::{after, next};

/// Reads a process's present CPU time and resident memory.
///
/// CPU time comes in ticks of 10 ms for user and kernel time each, and includes threads that have
/// ended; [`threads`] is exact and does not include them. Resident memory may lag by some pages for
/// each CPU between Linux 6.2 and 6.15; [`rss_exact`] does not. The caller fills in
/// `rss_bytes_at_start`.
pub fn process_use(root: &ProcRoot, pid: u32) -> Fact<ProcessUse> {
    let read = || -> Result<ProcessUse, Unknown> {
        let stat = root.read(&format!("proc/{pid}/stat"), parse_stat).into_result()?;
        let path = format!("proc/{pid}/status");
        let status = root.read(&path, status::parse).into_result()?;
        Ok(ProcessUse {
            pid,
            cpu_user_us: stat.user_us,
            cpu_system_us: stat.system_us,
            rss_bytes: status.rss_bytes.ok_or_else(|| Unknown::new(path, ParseFailure("VmRSS")))?,
            ..ProcessUse::default()
        })
    };
    read().into()
}

/// Reads the CPUs that the process may run on (`taskset`, cpusets), by number; single threads may
/// be limited to fewer.
pub fn cpus_allowed(root: &ProcRoot, pid: u32) -> Fact<Vec<u32>> {
    root.read(&format!("proc/{pid}/status"), parse_cpus_allowed)
}

/// Parses `Cpus_allowed:` of `/proc/PID/status`: a hexadecimal mask in words of 32 bits, separated
/// by commas.
pub fn parse_cpus_allowed(text: &str) -> Result<Vec<u32>, ParseFailure> {
    let mask = after(text, "Cpus_allowed:").ok_or(ParseFailure("a line of Cpus_allowed"))?;
    let mut cpus = Vec::new();
    // The last digit stands for the first four CPUs.
    for (place, digit) in mask.trim().chars().rev().filter(|c| *c != ',').enumerate() {
        let bits = digit.to_digit(16).ok_or(ParseFailure("a mask of CPUs"))?;
        cpus.extend((0..4).filter(|bit| bits & (1 << bit) != 0).map(|bit| 4 * place as u32 + bit));
    }
    if cpus.is_empty() { Err(ParseFailure("at least one CPU")) } else { Ok(cpus) }
}

/// Reports whether a process exists and has not ended.
pub fn is_there(root: &ProcRoot, pid: u32) -> bool {
    let stat = root.read(&format!("proc/{pid}/stat"), parse_stat);
    stat.known().is_some_and(|stat| !stat.is_gone())
}

/// Returns the children of a process's first thread, which nearly always are all of its children.
pub fn children(root: &ProcRoot, pid: u32) -> Vec<u32> {
    let text = root.text(&format!("proc/{pid}/task/{pid}/children")).into_result();
    let text = text.unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// The fields of `/proc/PID/stat` that are used here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// Name of the program, cut to 15 bytes.
    pub name: String,
    /// State of its first thread: `R` runs, `S` sleeps, `D` waits for the kernel, `T` is stopped.
    pub state: char,
    /// Parent process.
    pub parent: u32,
    /// CPU time in user mode, in microseconds, in steps of 10 ms.
    pub user_us: u64,
    /// CPU time in the kernel, in microseconds, in steps of 10 ms.
    pub system_us: u64,
    /// CPU time of its children that have ended, and of their children, in microseconds.
    pub children_us: u64,
    /// Number of threads now.
    pub threads: u64,
}

impl ProcessStat {
    /// Returns its CPU time, in microseconds.
    pub fn cpu_us(&self) -> u64 {
        self.user_us + self.system_us
    }

    /// Reports whether it has ended and only waits for its parent to reap it.
    pub fn is_gone(&self) -> bool {
        // The first thread of a program may end before the others.
        matches!(self.state, 'Z' | 'X') && self.threads <= 1
    }

    /// Reports whether a signal or a debugger has stopped it.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }
}

/// Parses `/proc/PID/stat`. The name may itself contain spaces and brackets.
pub fn parse_stat(text: &str) -> Result<ProcessStat, ParseFailure> {
    let (head, rest) = text.rsplit_once(')').ok_or(ParseFailure("a name in brackets"))?;
    let (_, name) = head.split_once('(').ok_or(ParseFailure("a name in brackets"))?;
    // Field numbers as in `man 5 proc`: 3 is the state, 4 ppid, 14 utime, 15 stime, 16 cutime, 17
    // cstime, 20 num_threads.
    let mut words = rest.split_ascii_whitespace();
    let state = words.next().and_then(|word| word.chars().next()).ok_or(ParseFailure("a state"))?;
    let parent = next(&mut words)?;
    let mut words = words.skip(14 - 5);
    let mut ticks = || Ok::<_, ParseFailure>(next(&mut words)?.saturating_mul(TICK_US));
    let (user_us, system_us) = (ticks()?, ticks()?);
    let children_us = ticks()?.saturating_add(ticks()?);
    let mut words = words.skip(20 - 18);
    Ok(ProcessStat {
        name: name.to_owned(),
        state,
        parent: u32::try_from(parent).map_err(|_| ParseFailure("a process id"))?,
        user_us,
        system_us,
        children_us,
        threads: next(&mut words)?,
    })
}

/// The scheduling statistics of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadUse {
    /// Thread id.
    pub tid: u32,
    /// Name of the thread; empty if it cannot be read.
    pub name: String,
    /// Time on a CPU and time waiting for one.
    pub sched: SchedStat,
}

/// Scheduling statistics, from `/proc/PID/task/TID/schedstat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedStat {
    /// Nanoseconds on a CPU.
    pub run_ns: u64,
    /// Nanoseconds for which it was ready to run and had no CPU.
    pub delay_ns: u64,
    /// Number of times that it got a CPU.
    pub slices: u64,
}

/// Reads all threads that the process has now; one that ends during the read is left out.
pub fn threads(root: &ProcRoot, pid: u32) -> Fact<Vec<ThreadUse>> {
    let mut found = Vec::new();
    let each = |tid, task: &str, sched| {
        let name = root.text(&format!("{task}/comm")).into_result().unwrap_or_default();
        found.push(ThreadUse { tid, name: name.trim_end().to_owned(), sched });
    };
    each_thread(root, pid, each).map(|_| found)
}

/// Reads the statistics of all threads by id, without the names, which cost a file each.
pub fn sched_stats(root: &ProcRoot, pid: u32) -> Fact<Vec<(u32, SchedStat)>> {
    let mut found = Vec::new();
    each_thread(root, pid, |tid, _, sched| found.push((tid, sched))).map(|_| found)
}

/// Reads one file for each thread. The result is unknown if no thread's file can be read.
fn each_thread(root: &ProcRoot, pid: u32, mut each: impl FnMut(u32, &str, SchedStat)) -> Fact<u64> {
    let mut read = || -> Result<u64, Unknown> {
        let path = format!("proc/{pid}/task");
        let mut count = 0;
        let mut failure = Unknown::new(&path, ParseFailure("at least one thread"));
        for name in root.names(&path).into_result()? {
            let Ok(tid) = name.parse() else { continue };
            let task = format!("{path}/{name}");
            match root.read(&format!("{task}/schedstat"), parse_schedstat) {
                Fact::Known(sched) => {
                    count += 1;
                    each(tid, &task, sched);
                }
                Fact::Unknown(why) => failure = why,
            }
        }
        if count > 0 { Ok(count) } else { Err(failure) }
    };
    read().into()
}

/// Parses `schedstat`.
pub fn parse_schedstat(text: &str) -> Result<SchedStat, ParseFailure> {
    let mut words = text.split_ascii_whitespace();
    Ok(SchedStat {
        run_ns: next(&mut words)?,
        delay_ns: next(&mut words)?,
        slices: next(&mut words)?,
    })
}

/// Reads the exact resident memory in bytes. For that the kernel walks the process's page tables
/// and holds its memory lock: it is for the beginning and the end of a run, not for every second.
pub fn rss_exact(root: &ProcRoot, pid: u32) -> Fact<u64> {
    root.read(&format!("proc/{pid}/smaps_rollup"), parse_smaps_rollup)
}

/// Parses `Rss:` of `/proc/PID/smaps_rollup` (since Linux 4.14), in bytes.
pub fn parse_smaps_rollup(text: &str) -> Result<u64, ParseFailure> {
    let line = after(text, "Rss:").ok_or(ParseFailure("a line of Rss"))?;
    Ok(next(&mut line.split_ascii_whitespace())?.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded_root;

    #[test]
    fn a_process_is_read_with_its_threads() {
        let root = recorded_root("linux-6.18");
        let found = process_use(&root, 4242).into_result().unwrap();
        assert_eq!(found.pid, 4242);
        assert_eq!(found.cpu_user_us + found.cpu_system_us, 330_000);
        assert!(found.rss_bytes > 4 << 20, "{found:?}");
        let exact = rss_exact(&root, 4242).into_result().unwrap();
        assert!(exact.abs_diff(found.rss_bytes) < 1 << 20, "{exact} {found:?}");

        let found = sched_stats(&root, 4242).into_result().unwrap();
        let run: Vec<_> = found.iter().map(|(tid, sched)| (*tid, sched.run_ns)).collect();
        assert_eq!(run, [(4242, 335_427_153), (4243, 260_251)]);
        assert_eq!(found.iter().map(|(_, sched)| sched.delay_ns).sum::<u64>(), 5_177_338);
        assert_eq!(threads(&root, 4242).known().unwrap()[0].name, "python3");
    }

    #[test]
    fn the_cpus_of_a_mask_are_listed() {
        let check = |mask: &str| parse_cpus_allowed(&format!("Name:\tx\nCpus_allowed:\t{mask}\n"));
        assert_eq!(check("3"), Ok(vec![0, 1]));
        assert_eq!(check("6"), Ok(vec![1, 2]));
        let far = check("3,00000000,80000001").unwrap();
        assert_eq!(far, [0, 31, 64, 65]);
        assert!(check("0").is_err());
        assert!(check("all").is_err());
        assert!(parse_cpus_allowed("Name:\tx\n").is_err());
    }

    #[test]
    fn a_process_that_is_gone_is_unknown() {
        let root = recorded_root("linux-6.18");
        assert!(process_use(&root, 1).known().is_none());
        assert!(threads(&root, 1).known().is_none());
        assert!(rss_exact(&root, 1).known().is_none());
    }

    #[test]
    fn a_name_may_contain_brackets_and_spaces() {
        let text = "7 (a) b (c) T 6 7 7 0 -1 0 0 0 0 0 11 22 3 4 20 0 5 0 99 0 0";
        let found = parse_stat(text).unwrap();
        assert_eq!((found.name.as_str(), found.state, found.parent), ("a) b (c", 'T', 6));
        assert_eq!((found.user_us, found.system_us, found.threads), (110_000, 220_000, 5));
        assert_eq!((found.cpu_us(), found.children_us), (330_000, 70_000));
        assert!(found.is_stopped());
        assert!(parse_stat("7 (a) R 1 7").is_err());
        assert!(parse_stat("7 a R 1 7").is_err());
    }
}
