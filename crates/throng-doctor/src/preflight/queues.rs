//! The listener's queues, which a burst of connects must fit into.

use std::time::Duration;

use throng_base::units::{show_count, show_duration};

use super::check::{Check, LimitValue, Remedy};
use super::{MachineLimits, Requirements, fds};
use crate::fact::Fact;

/// Connections that wait for accept.
pub(super) fn accept_queue(ask: &Requirements, machine: &MachineLimits) -> Option<Check> {
    if !ask.accepts() {
        return None;
    }
    let needs = burst(ask);
    let found = queue(ask, machine).map(|has| LimitValue::fixed(has, needs));
    let (limit, because) = match existing(ask, machine) {
        Some(_) => ("the listener's backlog".to_owned(), "as it listens now".to_owned()),
        None => (
            "net.core.somaxconn and backlog".to_owned(),
            format!("backlog {} x {} listeners", show_count(ask.backlog), cores(ask, machine)),
        ),
    };
    let check = Check::slows("accept_queue", limit, ask.connections, needs, found);
    let because = format!("{}; {because}", burst_words(ask));
    Some(check.because(because).else_do(|| {
        let each = needs.div_ceil(listeners(ask, machine)).next_power_of_two();
        match machine.somaxconn.known() {
            Some(max) if *max < each => {
                let backlog = format!("listen(backlog) of {each}: throng serve --backlog {each}");
                let mut remedy = Remedy::sysctl("net.core.somaxconn", max, each);
                remedy.command += &format!("   (and a {backlog})");
                remedy
            }
            _ => Remedy::command(format!("throng serve --backlog {each}")),
        }
    }))
}

/// Connections whose handshake is not complete. With cookies the kernel answers beyond the queue too.
pub(super) fn syn_queue(ask: &Requirements, machine: &MachineLimits) -> Option<Check> {
    if !ask.accepts() {
        return None;
    }
    let needs = burst(ask);
    let listeners = listeners(ask, machine);
    let found = match machine.syncookies.known() {
        Some(1..) => Fact::Known(LimitValue::fixed(needs, needs)),
        // The last quarter is kept for peers that have been heard of before.
        _ => super::check::both(&machine.syn_backlog_max, &machine.syncookies).map(|(max, _)| {
            let has = (max - max / 4).saturating_mul(listeners);
            LimitValue::fixed(has, needs)
        }),
    };
    let mut check =
        Check::slows("syn_queue", "net.ipv4.tcp_max_syn_backlog", ask.connections, needs, found);
    let cookies = machine.syncookies.known().is_some_and(|on| *on > 0);
    if cookies {
        check.has = None;
    }
    let because = match cookies {
        true => "tcp_syncookies is on: beyond the queue it answers all the same".to_owned(),
        false => {
            format!("{}; tcp_syncookies is off, a quarter is for known peers", burst_words(ask))
        }
    };
    Some(check.because(because).else_do(|| {
        let old = machine.syn_backlog_max.known().copied().unwrap_or(0);
        let each = needs.div_ceil(listeners) * 4 / 3 + 1;
        Remedy::sysctl("net.ipv4.tcp_max_syn_backlog", old, each.next_power_of_two())
    }))
}

/// What arrives while nobody accepts.
fn burst(ask: &Requirements) -> u64 {
    // No more can wait than there are.
    ((ask.connects_per_s * STALL.as_secs_f64()).ceil() as u64).min(ask.connections)
}

fn burst_words(ask: &Requirements) -> String {
    let rate = show_count(ask.connects_per_s.ceil() as u64);
    format!("{rate} connects/s for a stall of {}", show_duration(STALL))
}

/// Places in all accept queues: those of the listeners that are there, else of the server that will be.
fn queue(ask: &Requirements, machine: &MachineLimits) -> Fact<u64> {
    match existing(ask, machine) {
        Some((_, places)) => Fact::Known(places),
        None => machine
            .somaxconn
            .clone()
            .map(|max| max.min(ask.backlog).saturating_mul(listeners(ask, machine))),
    }
}

/// How many listen on the server's port, and the places of their queues.
fn existing(ask: &Requirements, machine: &MachineLimits) -> Option<(u64, u64)> {
    let mine = |addr: &std::net::SocketAddr| {
        ask.listens
            .iter()
            .any(|server| server.port() == addr.port() && server.is_ipv4() == addr.is_ipv4())
    };
    let found = machine.listeners.known()?.iter().filter(|listener| mine(&listener.addr));
    let (count, places) = found.fold((0, 0), |(count, places), listener| {
        (count + 1, places + u64::from(listener.backlog))
    });
    (count > 0).then_some((count, places))
}

fn listeners(ask: &Requirements, machine: &MachineLimits) -> u64 {
    existing(ask, machine).map_or_else(|| cores(ask, machine), |(count, _)| count).max(1)
}

fn cores(ask: &Requirements, machine: &MachineLimits) -> u64 {
    fds::cores_for(ask, machine, ask.connections)
}

/// How long a thread may be kept from its CPU on a busy machine.
const STALL: Duration = Duration::from_millis(100);
