//! Counters that stay flat on a healthy machine, and the meaning of their growth.
//!
//! They serve a recording of a server without its load. No rule can tell there whether a client was
//! affected, so this reports what happened and leaves open whether it matters.

use throng_measure::watch::CounterDelta;
use throng_measure::{Growth, Interval, KernelCounters, Limit, Metric, Series};

/// Returns the trouble counters of the server's kernel that grew between two samples, as (label,
/// delta).
pub fn trouble_between(before: &Interval, now: &Interval) -> Vec<(&'static str, u64)> {
    let of = |trouble: &TroubleCounter| Some((trouble.label, trouble.growth([before, now])?.by()));
    TROUBLES.iter().filter_map(of).collect()
}

/// Returns by how much the trouble counters of one kernel grew, by the names of their metrics.
pub fn troubles_of_kernel(
    before: &KernelCounters,
    now: &KernelCounters,
) -> impl Iterator<Item = (&'static str, u64)> {
    TROUBLES.iter().filter_map(move |trouble| {
        let grown = now.get(trouble.counter)? - before.get(trouble.counter)?;
        Some((trouble.counter.name(), u64::try_from(grown).ok().filter(|grown| *grown > 0)?))
    })
}

/// Returns the trouble counters that grew in a whole recording, the gravest first.
pub fn trouble_counters(intervals: &[Interval]) -> Vec<CounterDelta> {
    let of = |trouble: &TroubleCounter| {
        let growth = trouble.growth(intervals)?;
        let (by, began_ms) = (growth.by(), growth.began_ms);
        Some(CounterDelta { counter: growth.counter, means: trouble.means(), by, began_ms })
    };
    TROUBLES.iter().filter_map(of).collect()
}

/// A kernel counter that grows only when something goes wrong.
struct TroubleCounter {
    counter: Metric,
    /// Name for a line with little room.
    label: &'static str,
    means: &'static str,
    /// True if it grows when connections end, too: then that growth does not count.
    is_of_leaving: bool,
}

impl TroubleCounter {
    /// Returns the growth in the server's kernel, if it grew.
    fn growth<'a>(&self, intervals: impl IntoIterator<Item = &'a Interval>) -> Option<Growth> {
        let (mut before, mut left_out): (Option<&Interval>, i64) = (None, 0);
        let value = |interval: &'a Interval| {
            let now = interval.server_kernel.get(self.counter);
            let leaving =
                before.filter(|before| self.is_of_leaving && many_leave(before, interval));
            let grown = now.zip(leaving.and_then(|before| before.server_kernel.get(self.counter)));
            left_out += grown.map_or(0, |(now, before)| (now - before).max(0));
            before = Some(interval);
            (interval, now.map(|now| now - left_out))
        };
        let series = Series::new(self.counter.name(), intervals.into_iter().map(value));
        series.growth().filter(|growth| growth.by() > 0)
    }

    /// Returns what happened, with the limits that it shows.
    fn means(&self) -> String {
        let limits: Vec<_> = Limit::of_metric(self.counter).map(Limit::name).collect();
        match limits[..] {
            [] => self.means.to_owned(),
            _ => format!("{} ({})", self.means, limits.join(", ")),
        }
    }
}

const fn trouble(counter: Metric, label: &'static str, means: &'static str) -> TroubleCounter {
    TroubleCounter { counter, label, means, is_of_leaving: false }
}

/// Returns a counter of segments that were sent again. A process that ends resets its connections:
/// what was on its way to it is sent again, and nothing was lost.
const fn resent(counter: Metric, label: &'static str, means: &'static str) -> TroubleCounter {
    TroubleCounter { counter, label, means, is_of_leaving: true }
}

/// Reports whether many connections ended between two samples.
fn many_leave(before: &Interval, now: &Interval) -> bool {
    let connected = |interval: &Interval| interval.server_kernel.get(Metric::TCP_CURR_ESTAB);
    let both = connected(before).zip(connected(now));
    both.is_some_and(|(before, now)| now * LEAVING_SHARE_OF < before * (LEAVING_SHARE_OF - 1))
}

/// Many are more than one in so many.
const LEAVING_SHARE_OF: i64 = 10;

/// All trouble counters, the gravest first. Retransmits come last: a network loses a packet now and
/// then.
const TROUBLES: &[TroubleCounter] = &[
    trouble(
        Metric::TCPEXT_TCP_ABORT_ON_MEMORY,
        "out of TCP memory",
        "the kernel aborted connections because TCP had no memory left",
    ),
    trouble(
        Metric::CGROUP_MEMORY_OOM_KILLS,
        "OOM kills",
        "the kernel killed processes of the control group at its memory limit",
    ),
    trouble(
        Metric::TCPEXT_LISTEN_OVERFLOWS,
        "overflows",
        "connections arrived while an accept queue was full: the server accepts too slowly, or its \
         backlog is too small",
    ),
    trouble(
        Metric::TCPEXT_TCP_REQ_Q_FULL_DROP,
        "SYN queue full",
        "the kernel dropped SYNs because a SYN queue was full",
    ),
    trouble(
        Metric::TCPEXT_TCP_REQ_Q_FULL_DO_COOKIES,
        "SYN cookies",
        "a SYN queue was full, and the kernel answered SYNs with cookies",
    ),
    trouble(
        Metric::TCPEXT_LISTEN_DROPS,
        "listen drops",
        "a listener dropped SYNs or final ACKs of handshakes, for any reason",
    ),
    trouble(
        Metric::CONNTRACK_DROPPED,
        "conntrack drops",
        "the kernel dropped packets because the connection tracking table was full",
    ),
    trouble(
        Metric::CONNTRACK_INSERT_FAILED,
        "conntrack failures",
        "the kernel could not add new connections to the connection tracking table",
    ),
    trouble(
        Metric::TCPEXT_TCP_MEMORY_PRESSURES,
        "TCP memory pressure",
        "TCP's buffers used so much memory that the kernel began to shrink them",
    ),
    trouble(
        Metric::TCPEXT_TCP_TIME_WAIT_OVERFLOW,
        "TIME-WAIT overflows",
        "there were more connections in TIME-WAIT than the kernel remembers",
    ),
    trouble(
        Metric::TCPEXT_TCP_BACKLOG_DROP,
        "backlog drops",
        "the kernel dropped segments because a socket's backlog was full while its process used \
         the socket",
    ),
    trouble(
        Metric::TCPEXT_RCV_PRUNED,
        "pruned",
        "the kernel discarded received segments because a receive buffer was full",
    ),
    trouble(
        Metric::TCPEXT_TCP_ABORT_ON_TIMEOUT,
        "gave up",
        "the kernel gave up connections after many retransmits: their peers no longer answer",
    ),
    trouble(
        Metric::SOFTNET_DROPPED,
        "softnet drops",
        "the kernel dropped packets because a CPU did not process them fast enough",
    ),
    trouble(Metric::DEV_RX_DROPPED, "interface drops", "interfaces dropped received packets"),
    trouble(
        Metric::CGROUP_CPU_THROTTLED_US,
        "throttled µs",
        "microseconds for which the control group had to wait at its CPU limit",
    ),
    resent(
        Metric::TCPEXT_TCP_TIMEOUTS,
        "time-outs",
        "retransmission timers expired without an answer: loss, or a peer that is gone",
    ),
    resent(
        Metric::TCP_RETRANS_SEGS,
        "retransmits",
        "the kernel sent segments again: the network loses or delays them, or their receiver stood \
         still",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(at_ms: u64, counters: &[(Metric, i64)]) -> Interval {
        let server_kernel = counters.iter().copied().collect();
        Interval { at_ms, server_kernel, ..Interval::default() }
    }

    #[test]
    fn what_moved_is_told_from_when_on_and_by_how_much() {
        let watch = [
            interval(0, &[(Metric::TCPEXT_LISTEN_OVERFLOWS, 7), (Metric::TCPEXT_LISTEN_DROPS, 7)]),
            interval(1000, &[]),
            interval(
                2000,
                &[(Metric::TCPEXT_LISTEN_OVERFLOWS, 9), (Metric::TCPEXT_LISTEN_DROPS, 7)],
            ),
            interval(3000, &[(Metric::TCPEXT_LISTEN_OVERFLOWS, 12)]),
        ];
        let found = trouble_counters(&watch);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (&*found[0].counter, found[0].by, found[0].began_ms),
            (Metric::TCPEXT_LISTEN_OVERFLOWS.name(), 5, 2000)
        );
        assert_eq!(trouble_between(&watch[2], &watch[3]), [("overflows", 3)]);
        assert_eq!(trouble_between(&watch[0], &watch[1]), [], "what is not known has not moved");
        assert_eq!(trouble_counters(&[]), []);
    }

    #[test]
    fn segments_that_are_sent_again_as_users_leave_are_no_trouble() {
        let watch = |connected: [i64; 4]| {
            let resent = [5, 5, 25, 26];
            let samples: Vec<_> = (0..4)
                .map(|n| {
                    let of = [
                        (Metric::TCP_CURR_ESTAB, connected[n]),
                        (Metric::TCP_RETRANS_SEGS, resent[n]),
                        (Metric::TCPEXT_LISTEN_DROPS, resent[n]),
                    ];
                    interval(1000 * n as u64, &of)
                })
                .collect();
            let found = trouble_counters(&samples);
            found.into_iter().map(|moved| (moved.counter, moved.by)).collect::<Vec<_>>()
        };
        let drops = (Metric::TCPEXT_LISTEN_DROPS.name().to_owned(), 21);
        let again = |by| (Metric::TCP_RETRANS_SEGS.name().to_owned(), by);
        assert_eq!(watch([150, 150, 150, 150]), [drops.clone(), again(21)]);
        assert_eq!(watch([150, 150, 2, 2]), [drops, again(1)]);
    }

    #[test]
    fn a_machine_that_was_started_again_counts_anew() {
        let watch = [
            interval(0, &[(Metric::SOFTNET_DROPPED, 900)]),
            interval(1000, &[(Metric::SOFTNET_DROPPED, 4)]),
        ];
        assert_eq!(trouble_counters(&watch)[0].by, 4);
    }

    #[test]
    fn every_counter_of_trouble_is_one_that_is_sampled() {
        let mut sampler = throng_machine::Sampler::new(throng_machine::SamplerOptions {
            root: crate::recorded_root("linux-6.18"),
            ..Default::default()
        });
        let counters = sampler.sample(throng_base::time::Instant::from_nanos(1)).counters;
        for trouble in TROUBLES {
            // Control group limits are sampled only where there are some.
            let is_known = counters.get(trouble.counter).is_some()
                || trouble.counter.name().starts_with("cgroup.");
            assert!(is_known, "{}", trouble.counter);
        }
    }
}
