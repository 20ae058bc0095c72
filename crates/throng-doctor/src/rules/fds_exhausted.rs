//! No fd was left: in an fd table of the generator or of the server, or in the whole system.

use throng_report::render::count;
use throng_report::{Endpoint, Finding, Limit, Metric, RunEventKind, Side};

use super::accept_backlog::{accept_backlog, open};
use super::{Rule, RuleTrait, retransmission};
use crate::counted::{connections, counted};
use crate::history::Sample;
use crate::run_view::{Growth, RunView};

pub(super) const RULE: Rule = Rule::new("fds_exhausted", find)
    .with(&[RuleTrait::WithoutLoad])
    .explains(&["accept_queue_overflow", "half_open", "retransmits", "server_slow"]);

fn find(run: &RunView<'_>) -> Option<Finding> {
    of_the_system(run).or_else(|| of_the_generator(run)).or_else(|| of_the_server(run))
}

/// Looks for `ENFILE` on either side: all programs share this limit.
fn of_the_system(run: &RunView<'_>) -> Option<Finding> {
    let client = run.connect_failures("ENFILE");
    let server = accept_errors(run, "ENFILE");
    let end = if client.is_some() { Endpoint::Client } else { Endpoint::Server };
    let growth = client.or(server)?;
    let most = run.facts(end).files_max;
    let room =
        most.map_or(String::new(), |most| format!(" of {} (fs.file-max)", count(most as f64)));
    let wanted = most.map_or(WANTED, |most| most.saturating_mul(2).max(WANTED));
    let finding = Finding::new(
        RULE.id,
        Side::Kernel,
        format!(
            "The system has no file left to open{room}: {} failed with ENFILE. \
             Sockets of all programs count as files.",
            counted(growth.by(), "connect or accept", "connects or accepts")
        ),
    )
    .with_evidence([growth])
    .with_evidence(run.peak(end, Metric::FILES_OPEN))
    .remedied_by(Limit::FILES.raise(wanted));
    Some(finding)
}

/// Looks for `EMFILE` in the generator.
fn of_the_generator(run: &RunView<'_>) -> Option<Finding> {
    let growth = run.connect_failures("EMFILE").or_else(|| {
        events(run, "generator_fds_exhausted", |kind| {
            matches!(kind, RunEventKind::GeneratorFdsExhausted { .. })
        })
    })?;
    let held = run.load_at(growth.began_ms).connections;
    let raise = raise(run, Endpoint::Client, held);
    let finding = Finding::new(
        RULE.id,
        Side::Client,
        format!(
            "The generator's fd table{} was full with {}: {} found no free fd \
             (EMFILE). The server may hold more.",
            room(run, Endpoint::Client, held),
            connections(held),
            counted(growth.by(), "connect", "connects")
        ),
    )
    .with_evidence([growth])
    .remedied_by(format!(
        "{raise} for the generator (as root for its hard limit), or more --cores: each core has a \
         table of its own"
    ));
    Some(finding)
}

/// Looks for a full table in the server. A throng server counts how often it paused accepting
/// because no fd was left, and reports the errno when the kernel refused one.
fn of_the_server(run: &RunView<'_>) -> Option<Finding> {
    let refused = accept_errors(run, "EMFILE");
    let paused = run.server_growth("server.counters.pauses_fd", |server| server.counters.pauses_fd);
    let other_limit = OTHER_LIMITS.iter().any(|errno| accept_errors(run, errno).is_some());
    let growth = match (refused, paused) {
        (Some(refused), _) => refused,
        (None, Some(paused)) if !other_limit => paused,
        _ => return None,
    };
    // A full server to which no other client tries to connect has just enough room.
    let backlog = accept_backlog(run);
    let symptom =
        backlog.or_else(|| retransmission::by_connects(run).map(|symptom| symptom.evidence))?;
    let held = run.samples().iter().filter_map(open).max().unwrap_or(0);
    let raise = raise(run, Endpoint::Server, held);
    let finding = Finding::new(
        RULE.id,
        Side::Server,
        format!(
            "The server's fd table{} is full with {}. New connections complete the \
             handshake but wait in the accept queue until one closes.",
            room(run, Endpoint::Server, held),
            connections(held)
        ),
    )
    .with_evidence([growth])
    .with_evidence([symptom])
    .remedied_by(format!(
        "{raise} for the server (LimitNOFILE= in a systemd unit), or more --cores: each core has a \
         table of its own"
    ));
    Some(finding)
}

/// Returns the command that makes a table large enough. In an open model the number of connections
/// is not known beforehand: it takes twice those it held.
fn raise(run: &RunView<'_>, end: Endpoint, held: u64) -> String {
    let interval = run.samples().last().map(|sample| &sample.interval);
    let cores = interval.and_then(|interval| match end {
        Endpoint::Client => interval.load.as_ref().map(|load| load.cores),
        Endpoint::Server => interval.server.as_ref().map(|server| server.cores),
    });
    // A program that holds more connections than one table has room for has several tables.
    let room = run.facts(end).fds_max.and_then(|most| u64::try_from(most).ok());
    let tables = if room.is_some_and(|room| held > room) { cores.unwrap_or(1) } else { 1 };
    let all = run.header.users_planned.max(held.saturating_mul(2));
    let wanted = all.div_ceil(tables.max(1)) + SPARE;
    if wanted > NR_OPEN_DEFAULT {
        format!("{} and {}", Limit::FDS_CEILING.raise(wanted), Limit::FDS.raise(wanted))
    } else {
        Limit::FDS.raise(wanted)
    }
}

/// Returns the capacity of the process's fd table, such as `, which holds 1.02k fds,`. A limit far
/// above the connections that it held was different when it was read, or is not the limit that was
/// reached: then this is empty.
fn room(run: &RunView<'_>, end: Endpoint, held: u64) -> String {
    let most = run.facts(end).fds_max.filter(|most| *most as u64 <= 2 * held + SPARE);
    most.map_or(String::new(), |most| format!(", which holds {} fds,", count(most as f64)))
}

/// Returns how often accepts failed with this errno.
fn accept_errors(run: &RunView<'_>, errno: &str) -> Option<Growth> {
    run.server_growth(&format!("server.accept_errors.{errno}"), |server| {
        server.accept_errors.get(errno)
    })
}

/// Returns how often an event was recorded.
fn events(run: &RunView<'_>, name: &str, is_it: impl Fn(&RunEventKind) -> bool) -> Option<Growth> {
    let recorded =
        |sample: &Sample| sample.interval.events.iter().filter(|event| is_it(&event.kind)).count();
    let first = run.samples().iter().find(|sample| recorded(sample) > 0)?;
    let all: usize = run.samples().iter().map(recorded).sum();
    Some(Growth {
        counter: format!("events.{name}"),
        from: 0,
        to: all as i64,
        began_ms: first.interval.at_ms,
        per_second_most: 0,
    })
}

/// Errnos other than those about fds for which a server stops accepting.
const OTHER_LIMITS: [&str; 3] = ["ENOSPC", "ENOMEM", "ENOBUFS"];

/// The default of `fs.nr_open`: no limit may be higher.
const NR_OPEN_DEFAULT: u64 = 1 << 20;

/// Fds that a process needs besides its connections, with room to spare.
const SPARE: u64 = 200;

/// A value of `fs.file-max` with room for a few million connections.
const WANTED: i64 = 4_000_000;

#[cfg(test)]
mod tests {
    use throng_report::{ProcessMetric, ServerSnapshot};

    use super::super::fixture::Run;
    use super::*;

    fn serving(run: Run, change: impl Fn(&mut ServerSnapshot, u64)) -> Run {
        run.changed(move |interval, second| {
            let server = interval.server.get_or_insert_with(ServerSnapshot::default);
            server.counters.open = interval.load.as_ref().unwrap().counters.connected;
            change(server, second);
        })
    }

    #[test]
    fn a_full_table_of_the_generator_is_reported_with_its_connections() {
        let run = Run::quiet().with(ProcessMetric::FDS_MAX.client, 450).loaded(|load, second| {
            load.connect_failed.add("EMFILE", 90 * second.saturating_sub(3));
        });
        let found = run.speaks(&RULE);
        assert_eq!(found.side, Side::Client);
        assert!(found.text.contains("holds 450 fds, was full with 800 connections"), "{found}");
        let raised = run.with(ProcessMetric::FDS_MAX.client, 20_000).speaks(&RULE);
        assert!(raised.text.contains("table was full with 800 connections"), "{raised}");
    }

    #[test]
    fn a_full_server_is_reported_when_connections_wait() {
        let full = |run| {
            serving(run, |server, second| {
                server.counters.open = server.counters.open.min(600);
                server.counters.pauses_fd = second.saturating_sub(2);
            })
        };
        let found = full(Run::quiet().with(ProcessMetric::FDS_MAX.server, 668)).speaks(&RULE);
        assert_eq!(found.side, Side::Server);
        assert!(found.text.contains("is full with 600 connections"), "{found}");
        let mut open_model = full(Run::quiet());
        open_model.header.users_planned = 0;
        assert!(open_model.speaks(&RULE).remedy.contains("ulimit -n 1400 "));
        let mut large = full(Run::quiet());
        large.header.users_planned = 3_000_000;
        let remedy = large.speaks(&RULE).remedy;
        assert!(
            remedy.starts_with("sysctl -w fs.nr_open=3000200 and ulimit -n 3000200"),
            "{remedy}"
        );
        // Six hundred connections in tables of a hundred: every core has its own table.
        let private = large.with(ProcessMetric::FDS_MAX.server, 100).changed(|interval, _| {
            interval.server.as_mut().unwrap().cores = 8;
        });
        let remedy = private.speaks(&RULE).remedy;
        assert!(remedy.starts_with("ulimit -n 375200 "), "{remedy}");
        // As much room as there are connections: it stopped accepting, and no other connection
        // waited.
        serving(Run::quiet(), |server, second| server.counters.pauses_fd = second).is_silent(&RULE);
    }

    #[test]
    fn a_server_that_stops_for_another_reason_has_fds() {
        let run = serving(Run::quiet(), |server, second| {
            server.counters.open = server.counters.open.min(600);
            server.counters.pauses_fd = second;
            server.accept_errors.add("ENOSPC", second);
        });
        run.is_silent(&RULE);
    }

    #[test]
    fn the_systems_limit_is_not_one_of_a_table() {
        let run = serving(Run::quiet().with(Metric::FILES_MAX, 9_000), |server, second| {
            server.accept_errors.add("ENFILE", second.saturating_sub(3));
        });
        let found = run.speaks(&RULE);
        assert_eq!(found.side, Side::Kernel);
        assert!(found.text.contains("of 9k (fs.file-max)"), "{found}");
    }

    #[test]
    fn connects_that_fail_otherwise_are_not_short_of_fds() {
        let run =
            Run::quiet().loaded(|load, second| load.connect_failed.add("ECONNREFUSED", second));
        run.is_silent(&RULE);
    }
}
