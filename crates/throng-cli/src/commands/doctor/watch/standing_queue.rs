//! Connections that wait in the accept queue for seconds: the server does not accept them.

use throng_measure::{Interval, Metric, server_cpu_us};

/// A time in which the accept queue was never empty and did not get shorter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StandingQueue {
    from_ms: u64,
    to_ms: u64,
    /// Connections that wait at the end.
    waiting: i64,
    /// CPUs that the server used meanwhile, if its process could be read.
    cpus: Option<f64>,
}

impl StandingQueue {
    /// Returns the longest one, if it stood for seconds.
    pub(super) fn longest(samples: &[Interval]) -> Option<Self> {
        let queue = |sample: &Interval| {
            sample.server_kernel.get(Metric::LISTENER_ACCEPT_QUEUE).filter(|queue| *queue > 0)
        };
        let mut longest: Option<Self> = None;
        let mut first: Option<&Interval> = None;
        for pair in samples.windows(2) {
            let [before, now] = pair else { continue };
            // A queue that becomes shorter is being worked off.
            let waiting = queue(before).zip(queue(now)).filter(|(before, now)| now >= before);
            let Some((_, waiting)) = waiting else {
                first = None;
                continue;
            };
            let from = *first.get_or_insert(before);
            let (from_ms, to_ms) = (from.at_ms, now.at_ms);
            // A counter that falls is that of another process.
            let used = server_cpu_us(from)
                .zip(server_cpu_us(now))
                .and_then(|(from, to)| to.checked_sub(from));
            let cpus =
                used.map(|us| us as f64 / 1000.0 / to_ms.saturating_sub(from_ms).max(1) as f64);
            let one = Self { from_ms, to_ms, waiting, cpus };
            if longest.is_none_or(|longest| one.length_ms() > longest.length_ms()) {
                longest = Some(one);
            }
        }
        longest.filter(|longest| longest.length_ms() >= LENGTH_MIN_MS)
    }

    fn length_ms(&self) -> u64 {
        self.to_ms.saturating_sub(self.from_ms)
    }

    /// Describes it in a sentence, with what to do.
    pub(super) fn describe(&self) -> String {
        let why = match self.cpus {
            Some(cpus) if cpus >= BUSY_MIN => format!(
                "It used {cpus:.2} CPUs meanwhile, so it computes in the thread that accepts; do: \
                 look at its stacks (perf top -p, py-spy dump), and move that work elsewhere."
            ),
            Some(cpus) => format!(
                "It used {cpus:.2} CPUs meanwhile, so it waits: for a lock, a database or a limit \
                 of its connections; do: look at its stacks (gdb -p, py-spy dump)."
            ),
            None => "Whether it computed or waited could not be seen.".to_owned(),
        };
        format!(
            "The server accepted too slowly for {:.1} s, from {:.1} s on: {} connections waited in \
             its accept queue. {why}",
            self.length_ms() as f64 / 1000.0,
            self.from_ms as f64 / 1000.0,
            self.waiting
        )
    }
}

/// The shortest time that counts: a busy server accepts within a second.
const LENGTH_MIN_MS: u64 = 2_000;

/// The CPUs from which on a server computes.
const BUSY_MIN: f64 = 0.8;

#[cfg(test)]
mod tests {
    use throng_measure::ProcessMetric;

    use super::*;

    fn longest(queue: &[i64], cpu_us_each: Option<i64>) -> Option<String> {
        let sample = |(n, queue): (usize, &i64)| {
            let mut sample = Interval { at_ms: 1000 * n as u64, ..Interval::default() };
            sample.server_kernel.set(Metric::LISTENER_ACCEPT_QUEUE, *queue);
            // Its threads that have ended are missing from their sum.
            sample.server_kernel.set(ProcessMetric::RUN_US.server, 5_000_000 - 1000 * n as i64);
            if let Some(each) = cpu_us_each {
                sample.server_kernel.set(ProcessMetric::CPU_US.server, each * n as i64);
            }
            sample
        };
        let samples: Vec<_> = queue.iter().enumerate().map(sample).collect();
        StandingQueue::longest(&samples).map(|queue| queue.describe())
    }

    #[test]
    fn a_queue_that_stands_for_seconds_is_told_with_what_the_server_did() {
        let stood = longest(&[0, 4, 9, 9, 30, 0], Some(1_000_000)).unwrap();
        let begin = "The server accepted too slowly for 3.0 s, from 1.0 s on: 30 connections \
                     waited in its accept queue. It used 1.00 CPUs meanwhile, so it computes";
        assert!(stood.starts_with(begin), "{stood}");
        let waits = longest(&[9, 9, 9], Some(10_000)).unwrap();
        assert!(waits.contains("It used 0.01 CPUs meanwhile, so it waits"), "{waits}");
        assert!(longest(&[9, 9, 9], None).unwrap().contains("could not be seen"));
    }

    #[test]
    fn a_queue_that_is_worked_off_does_not_stand() {
        assert_eq!(longest(&[0, 9, 8, 9, 0, 3, 4, 0], Some(0)), None);
        assert_eq!(longest(&[30, 20, 10, 5, 1], Some(0)), None);
        assert_eq!(longest(&[], None), None);
    }
}
