//! CPU use of a process's threads since the previous sample: of the busiest one, and of the one
//! that waited most.
//!
//! A process that uses half of a machine may still be at its limit, if a single thread uses all of
//! that.

use std::collections::HashMap;

use throng_base::time::Instant;
use throng_report::{Endpoint, ProcessMetric};

use super::KernelSample;
use crate::process::SchedStat;

/// Keeps the CPU time of each thread, by its id.
#[derive(Debug, Default)]
pub(super) struct ThreadMeter {
    before: Option<LastThreads>,
}

/// The threads at the previous sample.
#[derive(Debug)]
struct LastThreads {
    at: Instant,
    threads: HashMap<u32, SchedStat>,
}

/// CPU use of one process's threads in a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadsUse {
    threads: u64,
    run_us: u64,
    delay_us: u64,
    /// Shares of time, or `None` until there is a sample to compare with.
    shares: Option<ThreadShares>,
}

/// CPU use of single threads since the previous sample, in thousandths of that time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ThreadShares {
    busiest: u64,
    most_delayed: u64,
    busy: u64,
}

impl ThreadMeter {
    /// Compares the threads at `now` with the previous sample. A thread that is new has done all of
    /// its work since.
    pub(super) fn measure(&mut self, now: Instant, threads: &[(u32, SchedStat)]) -> ThreadsUse {
        let sum = |of: fn(&SchedStat) -> u64| {
            threads.iter().fold(0_u64, |sum, (_, sched)| sum.saturating_add(of(sched))) / 1000
        };
        let mut used = ThreadsUse {
            threads: threads.len() as u64,
            run_us: sum(|sched| sched.run_ns),
            delay_us: sum(|sched| sched.delay_ns),
            shares: None,
        };
        if let Some(before) = &self.before {
            let elapsed_ns = now.since(before.at).as_nanos() as u64;
            if elapsed_ns < ELAPSED_NS_MIN {
                return used;
            }
            used.shares = Some(before.shares(elapsed_ns, threads));
        }
        self.before = Some(LastThreads { at: now, threads: threads.iter().copied().collect() });
        used
    }
}

impl LastThreads {
    fn shares(&self, elapsed_ns: u64, threads: &[(u32, SchedStat)]) -> ThreadShares {
        let mut shares = ThreadShares::default();
        for (tid, now) in threads {
            let before = self.threads.get(tid).copied().unwrap_or_default();
            // The two clocks are not read at the same time.
            let permille = |now: u64, before: u64| {
                (now.saturating_sub(before).saturating_mul(1000) / elapsed_ns).min(1000)
            };
            let ran = permille(now.run_ns, before.run_ns);
            shares.busiest = shares.busiest.max(ran);
            shares.busy += u64::from(ran > BUSY_PERMILLE);
            shares.most_delayed = shares.most_delayed.max(permille(now.delay_ns, before.delay_ns));
        }
        shares
    }
}

impl ThreadsUse {
    /// Records the values under their names in the run file.
    pub(super) fn record(self, program: Endpoint, out: &mut KernelSample) {
        let mut set = |metric: ProcessMetric, value| out.set(metric.of(program), value);
        set(ProcessMetric::THREADS, self.threads);
        set(ProcessMetric::RUN_US, self.run_us);
        set(ProcessMetric::RUN_DELAY_US, self.delay_us);
        if let Some(shares) = self.shares {
            set(ProcessMetric::BUSIEST_THREAD_PERMILLE, shares.busiest);
            set(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE, shares.most_delayed);
            set(ProcessMetric::THREADS_BUSY, shares.busy);
        }
    }
}

/// The share of time above which a thread counts as busy: it has hardly any left.
const BUSY_PERMILLE: u64 = 800;

/// The shortest time between two samples. The kernel adds up a running thread's time once a tick,
/// which is up to 10 ms: shares of a shorter time would be noise.
const ELAPSED_NS_MIN: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn thread(tid: u32, run_ms: u64, delay_ms: u64) -> (u32, SchedStat) {
        let (run_ns, delay_ns) = (run_ms * 1_000_000, delay_ms * 1_000_000);
        (tid, SchedStat { run_ns, delay_ns, slices: 1 })
    }

    #[test]
    fn the_busiest_thread_and_the_one_that_waited_most_are_reported() {
        let mut meter = ThreadMeter::default();
        let first = meter.measure(at(0), &[thread(1, 5_000, 70), thread(2, 100, 0)]);
        assert_eq!((first.threads, first.run_us, first.delay_us), (2, 5_100_000, 70_000));
        assert_eq!(first.shares, None, "there is nothing to compare with");
        let now = [thread(1, 5_010, 470), thread(2, 1_050, 20), thread(3, 810, 0)];
        let second = meter.measure(at(1_000), &now);
        assert_eq!(second.shares, Some(ThreadShares { busiest: 950, most_delayed: 400, busy: 2 }));
    }

    #[test]
    fn too_short_a_time_has_no_shares_and_is_not_lost() {
        let mut meter = ThreadMeter::default();
        meter.measure(at(0), &[thread(1, 0, 0)]);
        assert_eq!(meter.measure(at(20), &[thread(1, 10, 0)]).shares, None);
        let later = meter.measure(at(1_000), &[thread(1, 500, 0)]).shares.unwrap();
        assert_eq!(later.busiest, 500);
    }

    #[test]
    fn no_thread_runs_for_longer_than_the_time_between_samples() {
        let mut meter = ThreadMeter::default();
        meter.measure(at(0), &[thread(1, 0, 0), thread(2, 40, 0)]);
        let shares = meter.measure(at(1_000), &[thread(1, 1_004, 0), thread(2, 39, 0)]).shares;
        assert_eq!(shares, Some(ThreadShares { busiest: 1_000, most_delayed: 0, busy: 1 }));
    }
}
