//! Memory ended before the connections did, or would.

use throng_report::render::{bytes, count};
use throng_report::{EventKind, Evidence, Finding, Severity, Side};

use super::Rule;
use crate::case::{Case, End};
use crate::harm::harm;
use crate::history::Moment;

pub(super) const RULE: Rule = Rule {
    id: "memory_runs_out",
    explains: &["server_lost", "server_slow", "server_closes_early"],
    find,
};

/// What has happened comes before what would.
fn find(case: &Case<'_>) -> Option<Finding> {
    killed(case).or_else(|| limited(case)).or_else(|| exhausted(case)).or_else(|| foreseen(case))
}

/// A control group killed for its memory.
fn killed(case: &Case<'_>) -> Option<Finding> {
    let kills = case.growth(End::Server, "cgroup.memory.oom_kills")?;
    let limit = case.constant(End::Server, "cgroup.memory.limit_bytes");
    let of = limit.map_or_else(String::new, |limit| format!(" of {}", bytes(limit as f64)));
    let victims = match kills.by() {
        1 => "a process".to_owned(),
        killed => format!("{} processes", count(killed as f64)),
    };
    let text = format!(
        "The kernel killed {victims} because the memory{of} of the control group was full. {}.",
        reached(case)
    );
    let mut found = Finding::new(RULE.id, Side::Server, text);
    found.evidence.push(kills.evidence());
    found.evidence.extend(case.peak(End::Server, USED).map(|peak| peak.evidence()));
    Some(found.remedied_by(GROUP_REMEDY))
}

/// A control group at its limit, which takes its time to find memory that can be given back.
fn limited(case: &Case<'_>) -> Option<Finding> {
    let hits = case.growth(End::Server, "cgroup.memory.limit_hits")?;
    let harm = harm(case).filter(|harm| hits.began_ms <= harm.last_ms)?;
    let limit = case.constant(End::Server, "cgroup.memory.limit_bytes")?;
    let text = format!(
        "The memory of the control group ran into its limit of {} {} times. {}, and {}.",
        bytes(limit as f64),
        count(hits.by() as f64),
        reached(case),
        harm.what
    );
    let mut found =
        Finding::new(RULE.id, Side::Server, text).with_severity(harm.severity).with_confidence(0.8);
    found.evidence.push(hits.evidence());
    found.evidence.push(harm.evidence);
    Some(found.remedied_by(GROUP_REMEDY))
}

/// The server ended when hardly any memory was left.
fn exhausted(case: &Case<'_>) -> Option<Finding> {
    let events = || case.moments().iter().flat_map(|moment| &moment.interval.events);
    let is_lost = |kind: &EventKind| matches!(kind, EventKind::ServerLost { .. });
    let lost_ms = events().find(|event| is_lost(&event.kind))?.at_ms;
    let total = case.constant(End::Server, "memory.total_bytes")?;
    let before = case.moments().iter().filter(|moment| moment.interval.at_ms <= lost_ms);
    let available = before.filter_map(|moment| case.value(End::Server, moment, AVAILABLE));
    let least = available.min()?;
    if least as f64 > total as f64 * EXHAUSTED_SHARE {
        return None;
    }
    let text = format!(
        "The server ended when only {} of {} memory were left: the kernel kills the largest process then. {}.",
        bytes(least as f64),
        bytes(total as f64),
        reached(case)
    );
    let found = Finding::new(RULE.id, Side::Server, text).with_confidence(0.9).shown_by(
        AVAILABLE,
        total as f64,
        least as f64,
        lost_ms,
    );
    Some(found.remedied_by("give the machine more memory, or the connections less (smaller buffers: --rcvbuf, --sndbuf, net.ipv4.tcp_rmem)"))
}

/// Memory that falls with each connection, and would end before the last of them is there: the control group's, or the machine's.
fn foreseen(case: &Case<'_>) -> Option<Finding> {
    let missing_to = |fall: &Fall| case.header.users_planned.saturating_sub(fall.connections);
    let ends = |fall: &Fall| fall.bytes_each * missing_to(fall) as f64 > fall.available;
    let group = || Fall::of(case, USED, GROUP_TAKEN_BYTES_MIN, group_available);
    let machine = || Fall::of(case, AVAILABLE, TAKEN_BYTES_MIN, machine_available);
    let (whose, fall) = group()
        .filter(|fall| ends(fall))
        .map(|fall| ("the control group's", fall))
        .or_else(|| machine().filter(|fall| ends(fall)).map(|fall| ("the machine's", fall)))?;
    let fit = fall.connections as f64 + fall.available / fall.bytes_each;
    let text = format!(
        "Memory would run out at about {} connections, before the {} that are planned. Each takes {} of {whose} memory, kernel's and          programs' together, and {} were left at {}.",
        count(fit),
        count(case.header.users_planned as f64),
        bytes(fall.bytes_each),
        bytes(fall.available),
        count(fall.connections as f64)
    );
    let remedy = if whose == "the control group's" {
        GROUP_REMEDY
    } else if case.header.target_is_here {
        "put the ends on two machines, or plan for fewer connections; less memory for each: --rcvbuf, --sndbuf, net.ipv4.tcp_rmem"
    } else {
        "give the server's machine more memory, or plan for fewer connections; less memory for each: --rcvbuf, --sndbuf, net.ipv4.tcp_rmem"
    };
    let mut found = Finding::new(RULE.id, Side::Server, text)
        .with_severity(Severity::Noted)
        .with_confidence(0.7);
    found.evidence.push(fall.evidence);
    Some(found.remedied_by(remedy))
}

fn machine_available(case: &Case<'_>, moment: &Moment) -> Option<i64> {
    case.value(End::Server, moment, AVAILABLE)
}

fn group_available(case: &Case<'_>, moment: &Moment) -> Option<i64> {
    let limit = case.value(End::Server, moment, "cgroup.memory.limit_bytes")?;
    Some(limit - case.value(End::Server, moment, USED)?)
}

/// How memory fell while connections came.
struct Fall {
    connections: u64,
    available: f64,
    bytes_each: f64,
    evidence: Evidence,
}

/// The connections at a moment, what was available then, and when it was.
type Point = (u64, f64, u64);

impl Fall {
    /// None where memory did not fall in step with the connections: whoever else uses memory is not to be mistaken for them.
    fn of(
        case: &Case<'_>,
        gauge: &str,
        taken_min: f64,
        available: fn(&Case<'_>, &Moment) -> Option<i64>,
    ) -> Option<Self> {
        let point = |moment: &Moment| -> Option<Point> {
            let available = available(case, moment)? as f64;
            Some((moment.load()?.counters.connected, available, moment.interval.at_ms))
        };
        let points: Vec<_> = case.moments().iter().filter_map(point).collect();
        let first = points.first()?;
        let last = points.iter().rev().max_by_key(|(connected, ..)| *connected)?;
        let grown = last.0.checked_sub(first.0).filter(|grown| *grown >= CONNECTIONS_MIN)?;
        let taken = Some(first.1 - last.1).filter(|taken| *taken >= taken_min)?;
        let bytes_each = taken / grown as f64;
        let is_off = |point: &Point| {
            let expected = first.1 - bytes_each * point.0.saturating_sub(first.0) as f64;
            point.2 <= last.2 && (point.1 - expected).abs() > taken * OFF_MAX
        };
        let value = |moment: &Moment| case.value(End::Server, moment, gauge);
        let at = |at_ms| {
            case.moments().iter().find(|moment| moment.interval.at_ms == at_ms).and_then(value)
        };
        (!points.iter().any(is_off)).then_some(Self {
            connections: last.0,
            available: last.1,
            bytes_each,
            evidence: Evidence {
                counter: gauge.to_owned(),
                from: at(first.2)? as f64,
                to: at(last.2)? as f64,
                at_ms: last.2,
            },
        })
    }
}

fn reached(case: &Case<'_>) -> String {
    let most = case.summary.users.connected_most;
    format!("There were {} connections at most", count(most as f64))
}

const AVAILABLE: &str = "memory.available_bytes";
const USED: &str = "cgroup.memory.used_bytes";

const GROUP_REMEDY: &str = "raise the limit of the control group (memory.max, memory.limit_in_bytes; a container's --memory): the kernel's \
                            memory for sockets counts too";

/// Less than this share of all memory is none: the kernel needs as much to work at all.
const EXHAUSTED_SHARE: f64 = 0.03;

/// Fewer connections, or less memory, say nothing about what each takes.
const CONNECTIONS_MIN: u64 = 1_000;
const TAKEN_BYTES_MIN: f64 = (64 << 20) as f64;
/// In a group there is nobody else.
const GROUP_TAKEN_BYTES_MIN: f64 = (4 << 20) as f64;

/// How far memory may be off the straight line, as a share of all that was taken.
const OFF_MAX: f64 = 0.25;

#[cfg(test)]
mod tests {
    use throng_report::Event;

    use super::super::fixture::Run;
    use super::*;

    /// Memory that falls by so much for each of the thousand connections, of 4 GB.
    fn falling(bytes_each: i64) -> Run {
        let mut run =
            Run::quiet().with("memory.total_bytes", 4_000_000_000).changed(move |interval, _| {
                let connected = interval.load.as_ref().unwrap().counters.connected as i64;
                interval.kernel.insert(AVAILABLE.into(), 3_000_000_000 - bytes_each * connected);
            });
        run.header.users_planned = 20_000;
        run
    }

    #[test]
    fn memory_that_would_not_do_is_foreseen() {
        let found = falling(200_000).speaks(&RULE);
        assert_eq!(found.severity, Severity::Noted);
        assert_eq!(
            found.first_sentence(),
            "Memory would run out at about 15k connections, before the 20k that are planned"
        );
    }

    #[test]
    fn so_is_the_limit_of_a_control_group() {
        let mut run =
            falling(0).with("cgroup.memory.limit_bytes", 12 << 20).changed(|interval, _| {
                let connected = interval.load.as_ref().unwrap().counters.connected as i64;
                interval.kernel.insert(USED.into(), 1_000_000 + 6_000 * connected);
            });
        assert!(run.speaks(&RULE).text.contains("of the control group's memory"));
        run.header.users_planned = 1_500;
        run.is_silent(&RULE);
    }

    #[test]
    fn memory_that_does_is_not() {
        falling(100_000).is_silent(&RULE);
        let mut met = falling(200_000);
        met.header.users_planned = 1_000;
        met.is_silent(&RULE);
    }

    #[test]
    fn memory_that_somebody_else_took_at_once_is_not_the_connections() {
        let elsewhere = falling(0).changed(|interval, second| {
            let taken = if second > 1 { 500_000_000 } else { 0 };
            interval.kernel.insert(AVAILABLE.into(), 3_000_000_000 - taken);
        });
        elsewhere.is_silent(&RULE);
    }

    #[test]
    fn a_server_that_ended_without_memory_ended_for_want_of_it() {
        let lost = |bytes_each| {
            falling(bytes_each).changed(|interval, second| {
                if second == 7 {
                    let kind = EventKind::ServerLost { reason: "gone".into() };
                    interval.events.push(Event::new(7_000, kind));
                }
            })
        };
        let found = lost(2_950_000).speaks(&RULE);
        assert_eq!(found.severity, Severity::Stopped);
        assert!(found.first_sentence().contains("only 47.7 MiB of 3.73 GiB"), "{found}");
        lost(100_000).is_silent(&RULE);
        lost(2_950_000).check_all(&["memory_runs_out", "server_lost"]);
    }

    #[test]
    fn a_control_group_that_kills_or_holds_up_is_told() {
        let killed = Run::quiet()
            .growing("cgroup.memory.oom_kills", 2, 1, 7)
            .with("cgroup.memory.limit_bytes", 100 << 20);
        assert!(killed.speaks(&RULE).text.contains("of 100 MiB"));
        let hits = Run::quiet()
            .growing("cgroup.memory.limit_hits", 0, 90, 3)
            .with("cgroup.memory.limit_bytes", 100 << 20);
        hits.is_silent(&RULE);
        let hits = hits.loaded(|load, _| load.message.record_n(400_000, 500));
        assert_eq!(hits.speaks(&RULE).severity, Severity::Slowed);
    }
}
