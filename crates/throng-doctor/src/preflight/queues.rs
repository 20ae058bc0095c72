//! Checks of the listener's queues, which must hold a burst of connects.

use std::time::Duration;

use throng_base::units::{show_count, show_duration};
use throng_machine::{Fact, MachineLimits};
use throng_measure::Limit;

use super::check::{Check, LimitValue, Remedy};
use super::{Requirements, fds};

/// Checks the accept queue.
pub(super) fn accept_queue(required: &Requirements, machine: &MachineLimits) -> Option<Check> {
    if !required.accepts() {
        return None;
    }
    let needs = burst(required);
    let found = queue(required, machine).map(|has| LimitValue::fixed(has, needs));
    let (limit, because) = match existing(required, machine) {
        Some(_) => ("the listener's backlog".to_owned(), "the present listener's".to_owned()),
        None => (format!("{} and backlog", Limit::SOMAXCONN), planned_queue(required, machine)),
    };
    let check = Check::slows("accept_queue", limit, required.connections, needs, found);
    let because = format!("{}; {because}", show_burst(required));
    Some(check.because(because).else_do(|| {
        let each = needs.div_ceil(listeners(required, machine)).next_power_of_two();
        match machine.backlog_max.known() {
            Some(max) if *max < each => {
                let backlog = format!("listen(backlog) of {each}: throng serve --backlog {each}");
                let mut remedy = Remedy::sysctl(Limit::SOMAXCONN, max, each);
                remedy.command += &format!("   (and a {backlog})");
                remedy
            }
            _ => Remedy::command(format!("throng serve --backlog {each}")),
        }
    }))
}

/// Checks the SYN queue. With cookies the kernel answers even when it is full.
pub(super) fn syn_queue(required: &Requirements, machine: &MachineLimits) -> Option<Check> {
    if !required.accepts() {
        return None;
    }
    let needs = burst(required);
    let listeners = listeners(required, machine);
    let found = match machine.syncookies.known() {
        Some(1..) => Fact::Known(LimitValue::fixed(needs, needs)),
        // The kernel reserves the last quarter for known peers.
        _ => super::check::both(&machine.syn_backlog_max, &machine.syncookies).map(|(max, _)| {
            let has = (max - max / 4).saturating_mul(listeners);
            LimitValue::fixed(has, needs)
        }),
    };
    let mut check =
        Check::slows("syn_queue", Limit::SYN_BACKLOG, required.connections, needs, found);
    let cookies = machine.syncookies.known().is_some_and(|on| *on > 0);
    if cookies {
        check.has = None;
    }
    let because = if cookies {
        "tcp_syncookies is on: the kernel answers even when the queue is full".to_owned()
    } else {
        format!("{}; tcp_syncookies is off, a quarter is for known peers", show_burst(required))
    };
    Some(check.because(because).else_do(|| {
        let old = machine.syn_backlog_max.known().copied().unwrap_or(0);
        let each = needs.div_ceil(listeners) * 4 / 3 + 1;
        Remedy::sysctl(Limit::SYN_BACKLOG, old, each.next_power_of_two())
    }))
}

/// Returns the connections that arrive during a stall of the server.
fn burst(required: &Requirements) -> u64 {
    // No more can wait than the run has.
    ((required.connects_per_s * STALL.as_secs_f64()).ceil() as u64).min(required.connections)
}

/// Describes the burst.
fn show_burst(required: &Requirements) -> String {
    let rate = show_count(required.connects_per_s.ceil() as u64);
    format!("{rate} connects/s for a stall of {}", show_duration(STALL))
}

/// Returns the capacity of all accept queues: of the present listeners, else of the planned server.
fn queue(required: &Requirements, machine: &MachineLimits) -> Fact<u64> {
    match existing(required, machine) {
        Some((_, places)) => Fact::Known(places),
        None => machine
            .backlog_max
            .clone()
            .map(|max| max.min(required.backlog).saturating_mul(listeners(required, machine))),
    }
}

/// Describes the accept queues of the planned server.
fn planned_queue(required: &Requirements, machine: &MachineLimits) -> String {
    let (backlog, cores) = (show_count(required.backlog), cores(required, machine));
    let queues = format!("backlog {backlog} x {cores} listeners of throng serve");
    match machine.listeners.known() {
        Some(_) if !required.listens.is_empty() => format!("no server listens there yet; {queues}"),
        _ => queues,
    }
}

/// Returns the number of listeners on the server's port, and the capacity of their queues.
fn existing(required: &Requirements, machine: &MachineLimits) -> Option<(u64, u64)> {
    let mine = |addr: &std::net::SocketAddr| {
        required
            .listens
            .iter()
            .any(|server| server.port() == addr.port() && server.is_ipv4() == addr.is_ipv4())
    };
    let found = machine.listeners.known()?.iter().filter(|listener| mine(&listener.addr));
    let (count, places) = found.fold((0, 0), |(count, places), listener| {
        (count + 1, places + u64::from(listener.backlog))
    });
    (count > 0).then_some((count, places))
}

/// Returns the number of listeners, present or planned.
fn listeners(required: &Requirements, machine: &MachineLimits) -> u64 {
    existing(required, machine).map_or_else(|| cores(required, machine), |(count, _)| count).max(1)
}

/// Returns the cores of the planned server.
fn cores(required: &Requirements, machine: &MachineLimits) -> u64 {
    fds::cores_for(required, machine, required.connections)
}

/// The longest time for which a thread may wait for its CPU on a busy machine.
const STALL: Duration = Duration::from_millis(100);
