//! No fd was left: in an fd table of the generator or of the server, or in the whole system.

use throng_machine::fds::is_full;
use throng_measure::{
    Endpoint, ErrorKind, Evidence, Finding, Limit, Metric, ProcessMetric, RunEventKind, Side,
};
use throng_report::render::count;

use super::accept_backlog::{accept_backlog, open};
use super::{Rule, RuleTrait, retransmission};
use crate::counted::{connections, counted};
use crate::history::Sample;
use crate::run_view::{Growth, RunView};

pub(super) const RULE: Rule =
    Rule::new("fds_exhausted", find).with(&[RuleTrait::WithoutLoad]).explains(&[
        "accept_queue_overflow",
        "half_open",
        "retransmits",
        "server_slow",
        "server_stalled",
        "http_statuses",
        "server_closes_early",
    ]);

fn find(run: &RunView<'_>) -> Option<Finding> {
    of_the_system(run)
        .or_else(|| of_the_generator(run))
        .or_else(|| of_the_server(run))
        .or_else(|| of_a_foreign_server(run))
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

/// Looks for a full table in a server that does not report its errors: its fds are counted.
fn of_a_foreign_server(run: &RunView<'_>) -> Option<Finding> {
    let is_foreign = run.samples().iter().all(|sample| sample.interval.server.is_none());
    let unserved = || run.load_growth("timeouts_unserved", |load| load.timeouts_unserved);
    let failed = || {
        let statuses = run.errors_of_family(ErrorKind::HttpStatus).into_iter();
        statuses.map(|(_, growth)| growth).next()
    };
    let symptom = accept_backlog(run)
        .or_else(|| unserved().map(|growth| growth.evidence()))
        .or_else(|| retransmission::by_connects(run).map(|symptom| symptom.evidence))
        .or_else(|| failed().map(|growth| growth.evidence()))
        .filter(|_| is_foreign)?;
    let full = FullTable::of(run, symptom.at_ms)?;
    let (fds_max, at) = (count(full.fds_max as f64), count(full.at_ms as f64 / 1000.0));
    let text = format!(
        "The server's process has all of its {fds_max} fds open since {at} s: accept() fails with \
         EMFILE, and new connections wait in its accept queue.{}",
        full.describe()
    );
    let evidence = Evidence {
        counter: ProcessMetric::FDS.server.name().to_owned(),
        from: full.first as f64,
        to: full.most as f64,
        at_ms: full.at_ms,
    };
    let finding = Finding::new(RULE.id, Side::Server, text).with_confidence(0.95);
    Some(finding.with_evidence([evidence, symptom]).remedied_by(full.remedy(run)))
}

/// The full fd table of the server's process.
struct FullTable<'a> {
    fds_max: u64,
    /// Open fds at first, and at most.
    first: u64,
    most: u64,
    /// The moment from which it was full without a break until the harm began.
    at_ms: u64,
    /// What the fds are, if that was read.
    kinds: Option<&'a RunEventKind>,
}

impl<'a> FullTable<'a> {
    /// Returns the table if it was full in several samples, up to the last one or nearly.
    fn of(run: &RunView<'a>, harm_ms: u64) -> Option<Self> {
        let value = |sample: &Sample, metric: ProcessMetric| {
            let of = |end| run.value(end, sample, metric.server);
            u64::try_from(of(Endpoint::Server).or_else(|| of(Endpoint::Client))?).ok()
        };
        let fds = |sample: &'a Sample| {
            let fds_max = value(sample, ProcessMetric::FDS_MAX)?;
            Some((sample.interval.at_ms, value(sample, ProcessMetric::FDS)?, fds_max))
        };
        let known: Vec<_> = run.samples().iter().filter_map(fds).collect();
        let is_full = |(_, fds, fds_max): &(u64, u64, u64)| is_full(*fds, *fds_max);
        let full: Vec<_> = known.iter().filter(|sample| is_full(sample)).collect();
        let is_full_at_end = known.iter().rev().take(FULL_SAMPLES_MIN).any(is_full);
        if full.len() < FULL_SAMPLES_MIN || !is_full_at_end {
            return None;
        }
        let stretches = known.chunk_by(|one, next| is_full(one) == is_full(next));
        let begins = stretches.filter_map(|stretch| stretch.first().filter(|first| is_full(first)));
        let begins: Vec<_> = begins.collect();
        let before_harm = begins.iter().rfind(|(at_ms, ..)| *at_ms <= harm_ms);
        let (at_ms, _, fds_max) = **before_harm.or(begins.first())?;
        let mut events = run.samples().iter().flat_map(|sample| &sample.interval.events);
        let kinds = events.find(|event| matches!(event.kind, RunEventKind::ServerFdsFull { .. }));
        Some(Self {
            fds_max,
            first: known.first()?.1,
            most: full.iter().map(|(_, fds, _)| *fds).max()?,
            at_ms,
            kinds: kinds.map(|event| &event.kind),
        })
    }

    /// Returns a sentence about what the fds are.
    fn describe(&self) -> String {
        let Some(RunEventKind::ServerFdsFull { sockets, close_wait, files, path, of_path, .. }) =
            self.kinds
        else {
            return String::new();
        };
        let closed = match close_wait {
            0 => String::new(),
            some => {
                format!(" ({} in CLOSE_WAIT: their peers have closed them)", count(*some as f64))
            }
        };
        let named = match path {
            Some(path) if *of_path > 1 => format!(" ({} of {path})", count(*of_path as f64)),
            _ => String::new(),
        };
        format!(
            " They are {}{closed} and {}{named}.",
            counted(*sockets, "socket", "sockets"),
            counted(*files, "file", "files")
        )
    }

    /// Returns what to do: close what leaks, or else make room.
    fn remedy(&self, run: &RunView<'_>) -> String {
        let held = self.fds_max.max(run.header.users_planned);
        let raise = Limit::FDS.raise(held.saturating_mul(2) + SPARE);
        match self.kinds {
            Some(RunEventKind::ServerFdsFull { close_wait, .. })
                if close_wait * LEAK_ONE_IN > self.fds_max =>
            {
                format!(
                    "close each socket when its peer has closed it: find the path in which the \
                     server forgets that (an error, a time-out, a task that was cancelled); \
                     {raise} only delays the end"
                )
            }
            Some(RunEventKind::ServerFdsFull { of_path, path: Some(path), .. })
                if of_path * LEAK_ONE_IN > self.fds_max =>
            {
                format!(
                    "close {path} after use: find where the server opens it and keeps it open; \
                     {raise} only delays the end"
                )
            }
            _ => format!("{raise} for the server (LimitNOFILE= in a systemd unit)"),
        }
    }
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

/// The fewest samples in which a table is full.
const FULL_SAMPLES_MIN: usize = 2;

/// The share of a table, one in so many, from which fds of one kind leak.
const LEAK_ONE_IN: u64 = 3;

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
    use throng_measure::{RunEvent, ServerSnapshot};

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

    /// A run with a foreign server whose table of 300 fds is full from the fifth second on.
    fn foreign(kinds: RunEventKind) -> Run {
        let run = Run::quiet().with(ProcessMetric::FDS_MAX.server, 300);
        run.changed(move |interval, second| {
            interval.kernel.set(ProcessMetric::FDS.server, (60 * second.min(5)) as i64);
            if second == 5 {
                interval.events.push(RunEvent::new(5_000, kinds.clone()));
            }
        })
        .loaded(|load, second| {
            load.counters.timeouts_unserved = 20 * second.saturating_sub(5);
            load.errors.add(ErrorKind::HttpTimeout, 20 * second.saturating_sub(5));
        })
    }

    fn full(close_wait: u64, of_path: u64) -> RunEventKind {
        RunEventKind::ServerFdsFull {
            pid: 7,
            open: 300,
            fds_max: 300,
            sockets: 290 - of_path,
            close_wait,
            files: of_path + 2,
            path: Some("/tmp/log".to_owned()),
            of_path,
        }
    }

    #[test]
    fn a_foreign_server_without_an_fd_is_reported_with_what_its_fds_are() {
        let run = foreign(full(250, 0));
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server's process has all of its 300 fds open since 5 s: accept() fails with \
             EMFILE, and new connections wait in its accept queue"
        );
        assert!(found.text.contains("290 sockets (250 in CLOSE_WAIT: their peers"), "{found}");
        assert!(found.remedy.starts_with("close each socket"), "{found}");
        // Files that it opened at its start, and closed.
        let filled_before = run.changed(|interval, second| {
            if (1..3).contains(&second) {
                interval.kernel.set(ProcessMetric::FDS.server, 300);
            }
        });
        assert!(filled_before.speaks(&RULE).text.contains("fds open since 5 s"));
        let files = foreign(full(0, 200)).speaks(&RULE);
        assert!(files.text.ends_with("and 202 files (200 of /tmp/log)."), "{files}");
        assert!(files.remedy.starts_with("close /tmp/log after use"), "{files}");
        let many = foreign(full(3, 0)).speaks(&RULE);
        assert!(many.remedy.starts_with("ulimit -n 2200 for the server"), "{many}");
        let unfelt = foreign(full(0, 0)).loaded(|load, _| {
            load.counters.timeouts_unserved = 0;
            load.errors = Default::default();
        });
        unfelt.is_silent(&RULE);
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
