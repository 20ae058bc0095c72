//! Checks of the kernel's tables with an entry for each connection: epoll watches, connection
//! tracking, the TCP hash.

use throng_machine::{Fact, MachineLimits};
use throng_measure::Limit;

use super::Requirements;
use super::check::{Check, LimitValue, Remedy, Sufficiency};

/// Checks the epoll watches, which all programs of one user share.
pub(super) fn epoll_watches(required: &Requirements, machine: &MachineLimits) -> Option<Check> {
    let needs =
        required.connections.saturating_mul(required.ends()).saturating_add(WATCHES_RESERVED);
    let found = machine
        .epoll_watches_max
        .clone()
        .map(|max| LimitValue::linear(max, required.ends(), WATCHES_RESERVED));
    let check =
        Check::stops("epoll_watches", Limit::EPOLL_WATCHES, required.connections, needs, found);
    let each = if required.ends() == 1 { "one each" } else { "one for each side" };
    Some(
        check
            .because(format!("{each} + {WATCHES_RESERVED} for the user's other programs"))
            .else_do(|| {
                let max = machine.epoll_watches_max.known().copied().unwrap_or(0);
                Remedy::sysctl(Limit::EPOLL_WATCHES, max, needs)
            }),
    )
}

/// Checks the entries of connection tracking. Client and server of a connection within one
/// namespace share an entry.
pub(super) fn conntrack(required: &Requirements, machine: &MachineLimits) -> Option<Check> {
    let tracking = match &machine.conntrack {
        Fact::Known(None) => return None,
        Fact::Known(Some(_)) if required.isolated => return None,
        Fact::Known(Some(tracking)) => Fact::Known(*tracking),
        Fact::Unknown(why) => Fact::Unknown(why.clone()),
    };
    let found = tracking.clone().map(|t| LimitValue::linear(t.max.saturating_sub(t.count), 1, 0));
    let check = Check::stops(
        "conntrack",
        format!("{} less entries", Limit::CONNTRACK),
        required.connections,
        required.connections,
        found,
    );
    Some(check.because("connections are tracked here, one entry each").else_do(|| {
        let (max, count) = tracking.known().map_or((0, 0), |t| (t.max, t.count));
        let remedy =
            Remedy::sysctl(Limit::CONNTRACK, max, required.connections.saturating_add(count));
        remedy.or("do not track them: nft add rule … notrack")
    }))
}

/// Checks the buckets of the hash table that finds a packet's socket.
pub(super) fn hash(required: &Requirements, machine: &MachineLimits) -> Option<Check> {
    let sockets = required.connections.saturating_mul(required.ends());
    let needs = sockets.div_ceil(SOCKETS_PER_BUCKET);
    let found = machine.hash_buckets.clone().map(|buckets| LimitValue {
        has: buckets,
        enough: Sufficiency::For(buckets.saturating_mul(SOCKETS_PER_BUCKET) / required.ends()),
    });
    let check = Check::slows("tcp_hash", Limit::TCP_HASH, required.connections, needs, found);
    let because = format!(
        "beyond {SOCKETS_PER_BUCKET} sockets a bucket the search for each packet's socket is long"
    );
    Some(check.because(because).else_do(|| {
        Remedy::command(format!(
            "boot with thash_entries={}, or run in a namespace created after sysctl -w \
             net.ipv4.tcp_child_ehash_entries={}",
            needs.next_power_of_two(),
            needs.next_power_of_two()
        ))
    }))
}

/// Watches for the user's other programs, and for throng besides its connections.
const WATCHES_RESERVED: u64 = 1_024;
/// Sockets a bucket above which the search along the chain shows in the cost of a packet.
const SOCKETS_PER_BUCKET: u64 = 4;
