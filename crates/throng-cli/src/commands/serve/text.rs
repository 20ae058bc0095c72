//! The sentences that `throng serve` prints.

use std::path::Path;
use std::time::Duration;

use throng_measure::{Limit, ServerCounters, ServerSnapshot};
use throng_report::render::{Align, Table, bytes, count, rate};
use throng_server::StartError;
use throng_server::kinds::ServerProtocol;

use super::Serve;
use super::tls::{self, TlsFacts};
use crate::Failure;

/// Describes where the server listens, and its limits with the reason for each.
pub(super) fn listening(
    snapshot: &ServerSnapshot,
    typed: &Serve,
    control: &Path,
    metrics: Option<&str>,
    tls: Option<&TlsFacts>,
) -> String {
    let ServerSnapshot { listen, handler, accept, cores, connections_max, .. } = snapshot;
    let mut table = Table::new().aligned(&[Align::Left, Align::Left]);
    let mut row = |name: &str, text: String| table.row(["  ".to_owned() + name, text]);
    row("cores", format!("{cores} ({}), accept {accept}", why_cores(*cores, typed)));
    row("connections", format!("at most {connections_max} ({})", why_connections(snapshot, typed)));
    row("backlog", backlog(typed.backlog));
    if let Some(timeout) = typed.idle_timeout {
        row("idle", format!("closed after {}", throng_base::units::show_duration(timeout)));
    }
    if typed.kind.protocol >= ServerProtocol::WebSocket {
        row("origins", typed.sockets.origins());
    }
    let s = if tls.is_some() { "s" } else { "" };
    for (label, address) in typed.kind.endpoints {
        row(label, address.replace("{s}", s).replace("{listen}", listen));
    }
    for (label, text) in tls.map(|tls| tls.rows(typed.kind, listen)).unwrap_or_default() {
        row(label, text);
    }
    row("control", format!("{} (throng ctl count)", control.display()));
    if let Some(url) = metrics {
        row("metrics", url.to_owned());
    }
    format!("{handler} listens on {listen}\n{table}Ctrl-C to stop")
}

fn why_cores(cores: u64, typed: &Serve) -> String {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    match typed.cores {
        Some(_) => "--cores".to_owned(),
        None if cores == cpus => "one per CPU".to_owned(),
        None => format!("their fd tables hold the connections; {cpus} CPUs"),
    }
}

fn why_connections(snapshot: &ServerSnapshot, typed: &Serve) -> String {
    let max = snapshot.connections_max;
    let limit = throng_driver::fdtable::raise_limit();
    match typed.connections_max {
        Some(requested) if requested as u64 == max => "--connections-max".to_owned(),
        _ => {
            let each = max / snapshot.cores.max(1);
            format!(
                "{each} per fd table, a table per core; `ulimit -Hn` is {limit}; \
                 more --cores add tables"
            )
        }
    }
}

/// Describes the backlog. The kernel clamps it to [`Limit::SOMAXCONN`].
fn backlog(requested: u32) -> String {
    let limit = Limit::SOMAXCONN;
    let found = throng_machine::ProcRoot::default().sysctl(limit.name());
    let allowed = found.known().and_then(|allowed| u32::try_from(*allowed).ok());
    match allowed {
        Some(allowed) if allowed < requested => format!(
            "{allowed} of {requested}: limited by {limit}; {} raises it",
            limit.raise(requested)
        ),
        _ => requested.to_string(),
    }
}

/// Formats one line of `--stats` for the interval of length `span`.
pub(super) fn stats(before: &ServerSnapshot, now: &ServerSnapshot, span: Duration) -> String {
    let grown = now.counters.since(&before.counters);
    let per_second = |n: u64| rate(n as f64 / span.as_secs_f64());
    let mut line = format!(
        "open {}  accepted {}  closed {}  messages {}  rss {}",
        count(now.counters.open as f64),
        per_second(grown.accepted),
        per_second(grown.closed),
        per_second(grown.messages_received),
        bytes(now.process.rss_bytes as f64),
    );
    if now.counters.memberships > 0 {
        line += &format!(
            "  published {}  delivered {}",
            per_second(grown.published),
            per_second(grown.fanned_out + grown.intercepted),
        );
    }
    let dropped = dropped(&grown);
    if dropped > 0 {
        line += &format!("  {dropped} dropped (slow readers or full mailboxes)");
    }
    if now.counters.nodes > 0 {
        line += &format!("  {} more nodes", now.counters.nodes);
    }
    let lost = grown.bus_dropped + grown.bus_lost;
    if lost > 0 {
        line += &format!("  {lost} lost on the bus");
    }
    if grown.tls_opened > 0 {
        let (opened, resumed) = (per_second(grown.tls_opened), grown.tls_resumed);
        line += &format!("  TLS handshakes {opened}, {resumed} resumed");
    }
    let failed = grown.tls_failures + grown.tls_handshake_timeouts;
    if failed > 0 {
        line += &format!("  {failed} TLS failures");
    }
    if grown.slow_closed > 0 {
        line += &format!("  {} slow readers closed", grown.slow_closed);
    }
    if now.counters.paused_cores > 0 {
        line += &format!("  {} of {} cores do not accept", now.counters.paused_cores, now.cores);
    }
    for (name, n) in &now.accept_errors.0 {
        line += &format!("  {name} {n}");
    }
    line
}

/// Returns the number of frames and publications dropped because a queue or a mailbox was full.
fn dropped(counters: &ServerCounters) -> u64 {
    let ServerCounters { dropped_newest, dropped_oldest, replaced, publishes_dropped, .. } =
        counters;
    dropped_newest + dropped_oldest + replaced + publishes_dropped
}

/// Formats the last line.
pub(super) fn stopped(last: &ServerSnapshot, open: u64, drained: bool) -> String {
    let ServerSnapshot { counters, process, .. } = last;
    let mut line = format!(
        "stopped: {} accepted, {} messages received, {} sent, {} resets, {} idle time-outs; \
         CPU {:.2} s",
        counters.accepted,
        counters.messages_received,
        counters.messages_sent,
        counters.resets,
        counters.idle_timeouts,
        process.cpu_us() as f64 / 1e6,
    );
    if !drained {
        line += &format!("; some of {open} open connections were closed at the drain timeout");
    }
    line
}

/// Describes why the server did not start, and the command that helps.
pub(super) fn not_started(error: &StartError) -> Failure {
    let hint = match error {
        StartError::Listen(addr, errno) => match errno.name() {
            "EADDRINUSE" => format!(
                "\n  `ss -ltnp sport = :{}` shows the process that listens there; \
                 --listen takes another port",
                addr.port()
            ),
            "EADDRNOTAVAIL" => "\n  `ip address` shows the addresses of this machine".to_owned(),
            "EACCES" => "\n  ports below net.ipv4.ip_unprivileged_port_start need root; \
                 --listen takes another port"
                .to_owned(),
            _ => String::new(),
        },
        StartError::Tls(error) => return tls::failure(error),
        StartError::Bus(_) => String::new(),
        StartError::Cores(_) => "\n  fewer --cores need fewer fds and threads".to_owned(),
    };
    Failure::new(format!("{error}{hint}"))
}
