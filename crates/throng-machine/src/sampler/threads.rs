//! CPU use of a program's threads since the previous sample: of the busiest one, of the one that
//! waited most, and of those that collect garbage.
//!
//! A process that uses half of a machine may still be at its limit, if a single thread uses all of
//! that.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use throng_base::time::Instant;
use throng_measure::{Endpoint, ProcessMetric};

use super::KernelSample;
use crate::process::SchedStat;
use crate::thread_kind::ThreadKind;

/// Keeps the CPU time of each thread, by its id.
#[derive(Debug, Default)]
pub(super) struct ThreadMeter {
    before: Option<LastThreads>,
    /// The moment from which the threads may be read again.
    due: Option<Instant>,
}

/// The threads at the previous sample.
#[derive(Debug)]
struct LastThreads {
    at: Instant,
    threads: HashMap<ThreadId, SchedStat>,
}

/// A thread and its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ThreadId {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

/// CPU use of one program's threads in a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadsUse {
    threads: u64,
    run_us: u64,
    delay_us: u64,
    /// Shares of time, or `None` until there is a sample to compare with.
    shares: Option<ThreadShares>,
    /// The thread that ran the most, if it did so for a twentieth of the time.
    pub(super) busiest: Option<BusyThread>,
}

/// A thread, its name and its share of the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BusyThread {
    pub(super) id: ThreadId,
    pub(super) name: String,
    pub(super) permille: u64,
}

/// CPU use of single threads since the previous sample, in thousandths of that time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ThreadShares {
    busiest: u64,
    most_delayed: u64,
    busy: u64,
    /// Of all threads together that collect garbage.
    collector: u64,
}

impl ThreadMeter {
    /// Reports whether the threads may be read at `now`. To read thousands of them each second
    /// would take a part of a CPU.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.is_none_or(|due| now >= due)
    }

    /// Compares the threads at `now` with the previous sample. A thread that is new has done all of
    /// its work since. `name` reads the name of a thread.
    pub(super) fn measure(
        &mut self,
        now: Instant,
        threads: &[(ThreadId, SchedStat)],
        name: impl Fn(ThreadId) -> String,
    ) -> ThreadsUse {
        let rest = Duration::from_millis(threads.len() as u64);
        self.due = (threads.len() > THREADS_EACH_S).then(|| now + rest);
        let sum = |of: fn(&SchedStat) -> u64| {
            threads.iter().fold(0_u64, |sum, (_, sched)| sum.saturating_add(of(sched))) / 1000
        };
        let mut used = ThreadsUse {
            threads: threads.len() as u64,
            run_us: sum(|sched| sched.run_ns),
            delay_us: sum(|sched| sched.delay_ns),
            ..ThreadsUse::default()
        };
        if let Some(before) = &self.before {
            let elapsed_ns = now.since(before.at).as_nanos() as u64;
            if elapsed_ns < ELAPSED_NS_MIN {
                return used;
            }
            let (shares, busiest) = before.shares(elapsed_ns, threads, name);
            (used.shares, used.busiest) = (Some(shares), busiest);
        }
        self.before = Some(LastThreads { at: now, threads: threads.iter().copied().collect() });
        used
    }
}

impl LastThreads {
    /// Returns the shares of the threads, and the busiest one.
    fn shares(
        &self,
        elapsed_ns: u64,
        threads: &[(ThreadId, SchedStat)],
        name: impl Fn(ThreadId) -> String,
    ) -> (ThreadShares, Option<BusyThread>) {
        let mut shares = ThreadShares::default();
        let mut busy = Vec::new();
        for (id, now) in threads {
            let before = self.threads.get(id).copied().unwrap_or_default();
            // The two clocks are not read at the same time.
            let permille = |now: u64, before: u64| {
                (now.saturating_sub(before).saturating_mul(1000) / elapsed_ns).min(1000)
            };
            let ran = permille(now.run_ns, before.run_ns);
            shares.busiest = shares.busiest.max(ran);
            shares.busy += u64::from(ran > BUSY_PERMILLE);
            shares.most_delayed = shares.most_delayed.max(permille(now.delay_ns, before.delay_ns));
            if ran >= NAMED_PERMILLE {
                busy.push((Reverse(ran), *id));
            }
        }
        busy.sort_unstable();
        busy.truncate(NAMED_MAX);
        let named = busy.into_iter().map(|(Reverse(permille), id)| BusyThread {
            id,
            name: name(id),
            permille,
        });
        let named: Vec<_> = named.collect();
        let collects = |one: &&BusyThread| ThreadKind::of(&one.name) == Some(ThreadKind::Collector);
        shares.collector = named.iter().filter(collects).map(|one| one.permille).sum();
        (shares, named.into_iter().next())
    }
}

impl ThreadsUse {
    /// Records the values under their names in the run file.
    pub(super) fn record(&self, program: Endpoint, out: &mut KernelSample) {
        let mut set = |metric: ProcessMetric, value| out.set(metric.of(program), value);
        set(ProcessMetric::THREADS, self.threads);
        set(ProcessMetric::RUN_US, self.run_us);
        set(ProcessMetric::RUN_DELAY_US, self.delay_us);
        if let Some(shares) = self.shares {
            set(ProcessMetric::BUSIEST_THREAD_PERMILLE, shares.busiest);
            set(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE, shares.most_delayed);
            set(ProcessMetric::THREADS_BUSY, shares.busy);
            set(ProcessMetric::COLLECTOR_PERMILLE, shares.collector);
        }
    }
}

/// The share of time above which a thread counts as busy: it has hardly any left.
pub(super) const BUSY_PERMILLE: u64 = 800;

/// The share of time from which a thread's name is read, …
const NAMED_PERMILLE: u64 = 50;
/// … and the most names that are read in a sample.
const NAMED_MAX: usize = 32;

/// The threads that are read in a second: with more of them, a sample reads them a millisecond for
/// each thread after the one before. A thread takes some microseconds.
const THREADS_EACH_S: usize = 1_000;

/// The shortest time between two samples. The kernel adds up a running thread's time once a tick,
/// which is up to 10 ms: shares of a shorter time would be noise.
const ELAPSED_NS_MIN: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn thread(tid: u32, run_ms: u64, delay_ms: u64) -> (ThreadId, SchedStat) {
        let (run_ns, delay_ns) = (run_ms * 1_000_000, delay_ms * 1_000_000);
        (ThreadId { pid: 1, tid }, SchedStat { run_ns, delay_ns, slices: 1 })
    }

    fn measure(
        meter: &mut ThreadMeter,
        ms: u64,
        threads: &[(ThreadId, SchedStat)],
    ) -> Option<ThreadShares> {
        meter.measure(at(ms), threads, |_| String::new()).shares
    }

    #[test]
    fn the_busiest_thread_and_the_one_that_waited_most_are_reported() {
        let mut meter = ThreadMeter::default();
        let first = [thread(1, 5_000, 70), thread(2, 100, 0)];
        let first = meter.measure(at(0), &first, |_| String::new());
        assert_eq!((first.threads, first.run_us, first.delay_us), (2, 5_100_000, 70_000));
        assert_eq!(first.shares, None, "there is nothing to compare with");
        let now = [thread(1, 5_010, 470), thread(2, 1_050, 20), thread(3, 810, 0)];
        let shares = measure(&mut meter, 1_000, &now);
        let expected = ThreadShares { busiest: 950, most_delayed: 400, busy: 2, collector: 0 };
        assert_eq!(shares, Some(expected));
    }

    #[test]
    fn the_busiest_thread_is_named_and_collectors_are_added_up() {
        let name = |id: ThreadId| {
            assert_ne!(id.tid, 4, "it hardly ran");
            ["GC Thread#0", "main", "GC Thread#1"][id.tid as usize - 1].to_owned()
        };
        let mut meter = ThreadMeter::default();
        meter.measure(at(0), &[], name);
        let now = [thread(1, 300, 0), thread(2, 900, 0), thread(3, 200, 0), thread(4, 49, 0)];
        let used = meter.measure(at(1_000), &now, name);
        let busiest = used.busiest.unwrap();
        assert_eq!((busiest.name.as_str(), busiest.id.tid, busiest.permille), ("main", 2, 900));
        assert_eq!(used.shares.unwrap().collector, 500);
    }

    #[test]
    fn many_threads_are_read_less_often() {
        let mut meter = ThreadMeter::default();
        assert!(meter.is_due(at(0)));
        let threads: Vec<_> = (0..2_500).map(|tid| thread(tid, 0, 0)).collect();
        measure(&mut meter, 0, &threads);
        assert!(!meter.is_due(at(2_000)) && meter.is_due(at(3_000)));
        measure(&mut meter, 3_000, &threads[..900]);
        assert!(meter.is_due(at(3_001)));
    }

    #[test]
    fn too_short_a_time_has_no_shares_and_is_not_lost() {
        let mut meter = ThreadMeter::default();
        measure(&mut meter, 0, &[thread(1, 0, 0)]);
        assert_eq!(measure(&mut meter, 20, &[thread(1, 10, 0)]), None);
        assert_eq!(measure(&mut meter, 1_000, &[thread(1, 500, 0)]).unwrap().busiest, 500);
    }

    #[test]
    fn no_thread_runs_for_longer_than_the_time_between_samples() {
        let mut meter = ThreadMeter::default();
        measure(&mut meter, 0, &[thread(1, 0, 0), thread(2, 40, 0)]);
        let shares = measure(&mut meter, 1_000, &[thread(1, 1_004, 0), thread(2, 39, 0)]);
        let expected = ThreadShares { busiest: 1_000, busy: 1, ..ThreadShares::default() };
        assert_eq!(shares, Some(expected));
    }
}
