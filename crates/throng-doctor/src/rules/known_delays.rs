//! Known reasons for late answers: then they are no sign of a server that waits for something of
//! its own.

use throng_measure::{Endpoint, Metric};

use super::retransmission::MUCH_ONE_IN;
use super::{accept_queue_overflow, retransmits, server_lost, serves_only_some};
use crate::cpu_waits::CpuWaits;
use crate::cpus::{CpuUse, FULL_SHARE, INTERVALS_MIN};
use crate::history::Sample;
use crate::impact::lag_explains;
use crate::run_view::RunView;

/// Reports whether something else is known that makes these answers late: their intervals, and how
/// long they took there.
pub(super) fn explain(run: &RunView<'_>, late: &[(&Sample, u64)]) -> bool {
    lacks_cpu(run, late) || explain_without_cpu(run, late)
}

/// Reports whether the server, or the generator, had too little CPU time for these answers.
pub(super) fn lacks_cpu(run: &RunView<'_>, late: &[(&Sample, u64)]) -> bool {
    let uses = CpuUse::of(run, Endpoint::Server);
    let full = uses.iter().filter(|used| {
        let server = used.server.unwrap_or_default();
        // A machine is full for a process that waits for it: other programs may take only what is
        // idle.
        (server.most_delayed.is_none() && used.taken_share() > FULL_SHARE)
            || server.busiest.unwrap_or(0.0) > BUSY_MIN
            || (server.allowed > 0.0 && server.taken > server.allowed * FULL_SHARE)
    });
    full.count() >= INTERVALS_MIN || CpuWaits::of(run).explain_most(late)
}

/// Reports whether anything else than a lack of CPU time makes these answers late.
pub(super) fn explain_without_cpu(run: &RunView<'_>, late: &[(&Sample, u64)]) -> bool {
    let queues = [Metric::TCPEXT_TCP_REQ_Q_FULL_DROP, Metric::TCPEXT_TCP_ABORT_ON_MEMORY];
    let lost =
        run.growth(Endpoint::Client, Metric::TCP_RETRANS_SEGS).map_or(0, |growth| growth.by());
    let sent = run.growth(Endpoint::Client, Metric::TCP_OUT_SEGS).map_or(0, |growth| growth.by());
    // A server that ended is not slow, nor is one that leaves some without an answer.
    // Retransmissions explain late answers by themselves.
    server_lost::ended(run).is_some()
        || serves_only_some::explains_waits(run)
        || retransmits::RULE.find(run).is_some()
        || lag_explains(run, late)
        || accept_queue_overflow::overflows(run).is_some()
        || queues.iter().any(|counter| run.growth(Endpoint::Server, *counter).is_some())
        || lost.saturating_mul(MUCH_ONE_IN) > sent.max(MUCH_ONE_IN)
}

/// The load of a thread above which the server has another reason to be slow.
const BUSY_MIN: f64 = 0.85;
