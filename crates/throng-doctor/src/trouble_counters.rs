//! Counters that stay flat on a healthy machine, and the meaning of their growth.
//!
//! They serve a recording of a server without its load. No rule can tell there whether a client was
//! affected, so this reports what happened and leaves open whether it matters.

use throng_report::Interval;
use throng_report::watch::CounterDelta;

/// Returns the trouble counters of the server's kernel that grew between two samples, as (label,
/// delta).
pub fn trouble_between(before: &Interval, now: &Interval) -> Vec<(&'static str, u64)> {
    TROUBLES
        .iter()
        .filter_map(|trouble| {
            let of = |interval: &Interval| interval.server_kernel.get(trouble.counter).copied();
            let by = growth(of(before)?, of(now)?);
            (by > 0).then_some((trouble.label, by))
        })
        .collect()
}

/// Returns the trouble counters that grew in a whole recording, the gravest first.
pub fn trouble_counters(intervals: &[Interval]) -> Vec<CounterDelta> {
    let of = |trouble: &TroubleCounter| {
        let (counter, means) = (trouble.counter.to_owned(), trouble.means.to_owned());
        let mut found = CounterDelta { counter, means, by: 0, began_ms: 0 };
        let mut before = None;
        for interval in intervals {
            let Some(now) = interval.server_kernel.get(trouble.counter).copied() else { continue };
            let by = before.replace(now).map_or(0, |before| growth(before, now));
            if by > 0 && found.by == 0 {
                found.began_ms = interval.at_ms;
            }
            found.by += by;
        }
        (found.by > 0).then_some(found)
    };
    TROUBLES.iter().filter_map(of).collect()
}

/// Returns how much a counter grew. A counter that falls starts again at zero: its machine was
/// restarted.
fn growth(before: i64, now: i64) -> u64 {
    u64::try_from(if now >= before { now - before } else { now }).unwrap_or(0)
}

/// A kernel counter that grows only when something goes wrong.
struct TroubleCounter {
    counter: &'static str,
    /// Name for a line with little room.
    label: &'static str,
    means: &'static str,
}

const fn trouble(
    counter: &'static str,
    label: &'static str,
    means: &'static str,
) -> TroubleCounter {
    TroubleCounter { counter, label, means }
}

/// All trouble counters, the gravest first. Retransmits come last: a network loses a packet now and
/// then.
const TROUBLES: &[TroubleCounter] = &[
    trouble(
        "TcpExt.TCPAbortOnMemory",
        "out of TCP memory",
        "the kernel aborted connections because TCP had no memory left (net.ipv4.tcp_mem)",
    ),
    trouble(
        "cgroup.memory.oom_kills",
        "OOM kills",
        "the kernel killed processes of the control group at its memory limit",
    ),
    trouble(
        "TcpExt.ListenOverflows",
        "overflows",
        "connections arrived while an accept queue was full: the server accepts too slowly, or its \
         backlog is too small",
    ),
    trouble(
        "TcpExt.TCPReqQFullDrop",
        "SYN queue full",
        "the kernel dropped SYNs because a SYN queue was full (net.ipv4.tcp_max_syn_backlog, the \
         backlog, net.ipv4.tcp_syncookies)",
    ),
    trouble(
        "TcpExt.TCPReqQFullDoCookies",
        "SYN cookies",
        "a SYN queue was full, and the kernel answered SYNs with cookies",
    ),
    trouble(
        "TcpExt.ListenDrops",
        "listen drops",
        "a listener dropped SYNs or final ACKs of handshakes, for any reason",
    ),
    trouble(
        "conntrack.dropped",
        "conntrack drops",
        "the kernel dropped packets because the connection tracking table was full \
         (net.netfilter.nf_conntrack_max)",
    ),
    trouble(
        "conntrack.insert_failed",
        "conntrack failures",
        "the kernel could not add new connections to the connection tracking table",
    ),
    trouble(
        "TcpExt.TCPMemoryPressures",
        "TCP memory pressure",
        "TCP's buffers used so much memory that the kernel began to shrink them (net.ipv4.tcp_mem)",
    ),
    trouble(
        "TcpExt.TCPTimeWaitOverflow",
        "TIME-WAIT overflows",
        "there were more connections in TIME-WAIT than net.ipv4.tcp_max_tw_buckets",
    ),
    trouble(
        "TcpExt.TCPBacklogDrop",
        "backlog drops",
        "the kernel dropped segments because a socket's backlog was full while its process used \
         the socket",
    ),
    trouble(
        "TcpExt.RcvPruned",
        "pruned",
        "the kernel discarded received segments because a receive buffer was full",
    ),
    trouble(
        "TcpExt.TCPAbortOnTimeout",
        "gave up",
        "the kernel gave up connections after many retransmits: their peers no longer answer",
    ),
    trouble(
        "softnet.dropped",
        "softnet drops",
        "the kernel dropped packets because a CPU did not process them fast enough \
         (net.core.netdev_max_backlog)",
    ),
    trouble("dev.rx_dropped", "interface drops", "interfaces dropped received packets"),
    trouble(
        "cgroup.cpu.throttled_us",
        "throttled µs",
        "microseconds for which the control group had to wait at its CPU limit",
    ),
    trouble(
        "TcpExt.TCPTimeouts",
        "time-outs",
        "retransmission timers expired without an answer: loss, or a peer that is gone",
    ),
    trouble(
        "Tcp.RetransSegs",
        "retransmits",
        "the kernel sent segments again: the network loses or delays them",
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
            // Control group limits are sampled only where there are some.
            let is_known =
                counters.contains_key(trouble.counter) || trouble.counter.starts_with("cgroup.");
            assert!(is_known, "{}", trouble.counter);
        }
    }
}
