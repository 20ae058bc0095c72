//! Counters that stand still on a machine that has no trouble, and what it means when they move.
//!
//! For whoever watches a server without its load: no rule knows there whether anybody was hurt, so this says what happened
//! and leaves open whether it matters.

use throng_report::Interval;
use throng_report::watch::CounterDelta;

/// By how much each counter of trouble of the server's kernel grew from `before` to `now`, a few words beside it; those that did not are left out.
pub fn trouble_between(before: &Interval, now: &Interval) -> Vec<(&'static str, u64)> {
    TROUBLES
        .iter()
        .filter_map(|trouble| {
            let of = |interval: &Interval| interval.server_kernel.get(trouble.counter).copied();
            let by = grown(of(before)?, of(now)?);
            (by > 0).then_some((trouble.short, by))
        })
        .collect()
}

/// The same over a whole watch, in the order in which it matters.
pub fn trouble_counters(intervals: &[Interval]) -> Vec<CounterDelta> {
    let of = |trouble: &TroubleCounter| {
        let (counter, means) = (trouble.counter.to_owned(), trouble.means.to_owned());
        let mut found = CounterDelta { counter, means, by: 0, began_ms: 0 };
        let mut before = None;
        for interval in intervals {
            let Some(now) = interval.server_kernel.get(trouble.counter).copied() else { continue };
            let by = before.replace(now).map_or(0, |before| grown(before, now));
            if by > 0 && found.by == 0 {
                found.began_ms = interval.at_ms;
            }
            found.by += by;
        }
        (found.by > 0).then_some(found)
    };
    TROUBLES.iter().filter_map(of).collect()
}

/// A counter that falls begins anew: its machine was started again.
fn grown(before: i64, now: i64) -> u64 {
    u64::try_from(if now >= before { now - before } else { now }).unwrap_or(0)
}

struct TroubleCounter {
    counter: &'static str,
    /// For a line that has little room.
    short: &'static str,
    means: &'static str,
}

const fn trouble(
    counter: &'static str,
    short: &'static str,
    means: &'static str,
) -> TroubleCounter {
    TroubleCounter { counter, short, means }
}

/// The gravest first. Retransmits are not among them where they are few: a network loses something now and then.
const TROUBLES: &[TroubleCounter] = &[
    trouble(
        "TcpExt.TCPAbortOnMemory",
        "out of TCP memory",
        "connections were ended because TCP had no more memory (net.ipv4.tcp_mem)",
    ),
    trouble(
        "cgroup.memory.oom_kills",
        "OOM kills",
        "processes of the control group were killed at its memory limit",
    ),
    trouble(
        "TcpExt.ListenOverflows",
        "overflows",
        "connections came while an accept queue was full: the server accepts too slowly, or its backlog is small",
    ),
    trouble(
        "TcpExt.TCPReqQFullDrop",
        "SYN queue full",
        "SYNs were dropped because a SYN queue was full (net.ipv4.tcp_max_syn_backlog, the backlog, net.ipv4.tcp_syncookies)",
    ),
    trouble(
        "TcpExt.TCPReqQFullDoCookies",
        "SYN cookies",
        "a SYN queue was full, and SYNs were answered with cookies",
    ),
    trouble(
        "TcpExt.ListenDrops",
        "listen drops",
        "SYNs, or ends of handshakes, were dropped at a listener, for whichever reason",
    ),
    trouble(
        "conntrack.dropped",
        "conntrack drops",
        "packets were dropped because the table of tracked connections was full (net.netfilter.nf_conntrack_max)",
    ),
    trouble(
        "conntrack.insert_failed",
        "conntrack failures",
        "new connections could not be entered into the table of tracked connections",
    ),
    trouble(
        "TcpExt.TCPMemoryPressures",
        "TCP memory pressure",
        "TCP's buffers took so much memory that the kernel began to shrink them (net.ipv4.tcp_mem)",
    ),
    trouble(
        "TcpExt.TCPTimeWaitOverflow",
        "TIME-WAIT overflows",
        "there were more connections in TIME-WAIT than net.ipv4.tcp_max_tw_buckets",
    ),
    trouble(
        "TcpExt.TCPBacklogDrop",
        "backlog drops",
        "segments were dropped because a socket's own queue was full while its process used it",
    ),
    trouble(
        "TcpExt.RcvPruned",
        "pruned",
        "segments that had been received were thrown away for want of buffer space",
    ),
    trouble(
        "TcpExt.TCPAbortOnTimeout",
        "gave up",
        "connections were given up after many retransmits: their peers did not answer any more",
    ),
    trouble(
        "softnet.dropped",
        "softnet drops",
        "packets were dropped because a CPU did not take them in fast enough (net.core.netdev_max_backlog)",
    ),
    trouble("dev.rx_dropped", "interface drops", "interfaces dropped packets that had come"),
    trouble(
        "cgroup.cpu.throttled_us",
        "throttled µs",
        "microseconds in which the control group was not let run, at its CPU limit",
    ),
    trouble(
        "TcpExt.TCPTimeouts",
        "time-outs",
        "nothing was heard until a retransmission timer ran out: loss, or a peer that is gone",
    ),
    trouble(
        "Tcp.RetransSegs",
        "retransmits",
        "segments were sent again: something on the way loses them, or holds them up",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(at_ms: u64, counters: &[(&str, i64)]) -> Interval {
        let server_kernel = counters.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        Interval { at_ms, server_kernel, ..Interval::default() }
    }

    #[test]
    fn what_moved_is_told_from_when_on_and_by_how_much() {
        let watch = [
            interval(0, &[("TcpExt.ListenOverflows", 7), ("TcpExt.ListenDrops", 7)]),
            interval(1000, &[]),
            interval(2000, &[("TcpExt.ListenOverflows", 9), ("TcpExt.ListenDrops", 7)]),
            interval(3000, &[("TcpExt.ListenOverflows", 12)]),
        ];
        let found = trouble_counters(&watch);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (&*found[0].counter, found[0].by, found[0].began_ms),
            ("TcpExt.ListenOverflows", 5, 2000)
        );
        assert_eq!(trouble_between(&watch[2], &watch[3]), [("overflows", 3)]);
        assert_eq!(trouble_between(&watch[0], &watch[1]), [], "what is not known has not moved");
        assert_eq!(trouble_counters(&[]), []);
    }

    #[test]
    fn a_machine_that_was_started_again_counts_anew() {
        let watch =
            [interval(0, &[("softnet.dropped", 900)]), interval(1000, &[("softnet.dropped", 4)])];
        assert_eq!(trouble_counters(&watch)[0].by, 4);
    }

    #[test]
    fn every_counter_of_trouble_is_one_that_is_sampled() {
        let mut sampler = crate::Sampler::new(crate::SamplerOptions {
            root: crate::recorded_root("linux-6.18"),
            ..Default::default()
        });
        let counters = sampler.sample(throng_base::time::Instant::from_nanos(1)).counters;
        for trouble in TROUBLES {
            // Limits of control groups are there where there are any.
            let is_known =
                counters.contains_key(trouble.counter) || trouble.counter.starts_with("cgroup.");
            assert!(is_known, "{}", trouble.counter);
        }
    }
}
