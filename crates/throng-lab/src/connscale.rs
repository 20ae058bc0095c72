//! The lab `connscale`: how many connections does a server hold, and do the client's and the
//! server's counts agree?

use std::time::Duration;

use serde::Serialize;
use throng_base::units::show_duration;
use throng_load::scenario::Protocol;
use throng_report::render::{bytes, count, micros, or_dash, rate};
use throng_report::{Finding, Interval, Limit, Metric, RunEventKind, Summary, Tally};

use crate::error::LabError;
use crate::handshake;
use crate::lab::Lab;
use crate::measure::{MANY, MemoryEach, counter_growth, gauge_max};
use crate::options::LabInfo;
use crate::progress::LabProgress;
use crate::reconcile::{Reconciliation, reconcile};
use crate::report::{LabReport, LabTable};
use crate::test_bed::{NextStep, TCP};
use crate::throughput::Throughput;
use crate::user_run::{UserRunSpec, arrivals_per_second, report, run_users, users_by_default};

pub(crate) const INFO: LabInfo = LabInfo {
    name: "connscale",
    article: "connscale (J. Fajerski): how the number of TCP connections scales",
    summary: "N connections that ping now and then: how many the server holds, what fails, how \
              many are half-open",
    takes_rate: true,
};

/// The lab's result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct HoldResult {
    users: u64,
    connected_most: u64,
    server_open_most: Option<u64>,
    connect_rate_most: Option<f64>,
    connect_p99_us: u64,
    ping_p99_us: u64,
    pings: u64,
    /// Failed connects by errno, other errors by kind.
    errors: Tally,
    /// The comparison of the client's and the server's counts; none where it is impossible.
    reconciled: Option<Reconciliation>,
    /// The finding about failed handshakes.
    handshakes: Option<Finding>,
    overflows: Option<u64>,
    drops: Option<u64>,
    syn_recv_most: Option<u64>,
    server_bytes_each: Option<f64>,
    load_bytes_each: Option<f64>,
    /// Growth of the machine's used memory per pair of connections, including the kernel's.
    machine_bytes_each: Option<f64>,
    steered: bool,
}

pub(crate) fn run(
    lab: &Lab<'_>,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    let throughput = Throughput::measure(lab, Protocol::Tcp, progress)?;
    let users = users_by_default(lab, DEFAULT_USERS_PER_CPU, &throughput);
    lab.check_fits(users)?;
    let Pace { ramp, interval } = Pace::of(users, &throughput, lab.options.rate);
    let hold = Duration::from_secs(lab.options.seconds.unwrap_or(30));
    let text = scenario(users, ramp, hold, interval, TIMEOUT);
    let seconds = (ramp + hold).as_secs();
    progress(LabProgress::Note(&format!(
        "steer it from another terminal:\n  throng ctl --control {} start 100 | stop 100 | count",
        lab.test_bed.load_control(ROW).display()
    )));
    let spec = UserRunSpec {
        row: ROW,
        handler: "pingpong",
        target: TCP,
        scenario: &text,
        // Room for users that the user starts by hand.
        users: users + users / 10,
        seconds,
        idle_timeout: None,
    };
    let (run, summary) = run_users(lab, &spec, progress, |_| NextStep::Continue)?;
    let held = held(users, &run.file.intervals, &summary);
    let setup = format!(
        "{} connections at {}, held for {}; each pings every {} and waits {} for the answer; on {} \
         CPUs",
        count(users as f64),
        rate(users as f64 / ramp.as_secs_f64()),
        show_duration(hold),
        show_duration(interval),
        show_duration(TIMEOUT),
        lab.machine.cpus
    );
    Ok(report(&INFO, setup, (tables(&held), verdict(&held)), (&run, &summary), &held))
}

/// The ramp of the connections, and the time between two pings of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    ramp: Duration,
    interval: Duration,
}

impl Pace {
    /// Computes a pace that is easy for the machine. At the article's 20 s a million users send
    /// 50,000 pings per second; such a load would test the message rate and not the number of
    /// connections. With more than [`MANY`] connections no cache holds their memory, and a ping
    /// costs twice as much.
    fn of(users: u64, throughput: &Throughput, rate: Option<u64>) -> Self {
        let cost = if users > MANY { 2 } else { 1 };
        let pings = (throughput.messages_at(PINGS) / cost).max(1);
        let ramp = Duration::from_millis(
            (1000 * users).div_ceil(arrivals_per_second(users, throughput, rate).max(1)),
        );
        Self {
            ramp: ramp.max(Duration::from_secs(1)),
            interval: Duration::from_secs((users / pings).clamp(5, 240)),
        }
    }
}

fn scenario(
    users: u64,
    ramp: Duration,
    hold: Duration,
    interval: Duration,
    timeout: Duration,
) -> String {
    let half = show_duration(interval / 2);
    let [ramp, hold, interval, timeout] = [ramp, hold, interval, timeout].map(show_duration);
    format!(
        "target: tcp://127.0.0.1:8989
load:
  - ramp: {{to: {users}, over: {ramp}}}
  - hold: {{for: {hold}}}
user:
  - connect: {{timeout: {timeout}}}
  - wait: {half} ±100%
  - every:
      period: {interval}
      do:
        - send: Ping
        - expect: {{text: Pong, timeout: {timeout}}}
on_error: stop
"
    )
}

fn held(users: u64, intervals: &[Interval], summary: &Summary) -> HoldResult {
    let last = intervals.iter().rev().find_map(|interval| interval.load.as_ref());
    let mut errors = last.map_or_else(Tally::default, |load| load.errors.clone());
    for (errno, n) in last.iter().flat_map(|load| &load.connect_failed.0) {
        errors.add(&format!("connect {errno}"), *n);
    }
    let connected_most = summary.users.connected_most;
    let mut events = intervals.iter().flat_map(|interval| &interval.events);
    let steered = events.any(|event| matches!(event.kind, RunEventKind::Steered { .. }));
    let memory = MemoryEach::of(intervals, summary);
    HoldResult {
        users,
        connected_most,
        server_open_most: summary.server.as_ref().map(|server| server.open_most),
        connect_rate_most: summary.connect.rate_most,
        connect_p99_us: summary.connect.latency_us.p99,
        ping_p99_us: summary.message.latency_us.p99,
        pings: summary.message.answered,
        errors,
        reconciled: reconcile(intervals),
        handshakes: handshake::finding(intervals),
        overflows: counter_growth(intervals, Metric::TCPEXT_LISTEN_OVERFLOWS),
        drops: counter_growth(intervals, Metric::TCPEXT_LISTEN_DROPS),
        syn_recv_most: gauge_max(intervals, Metric::LISTENER_SYN_RECV),
        server_bytes_each: memory.server,
        load_bytes_each: memory.load,
        machine_bytes_each: memory.machine,
        steered,
    }
}

fn tables(held: &HoldResult) -> Vec<LabTable> {
    let mut counts = LabTable::new("Connections", ["", "here", "the article"]);
    let mut row = |name: &str, here: String, article: &str| {
        counts.row([name.to_owned(), here, article.to_owned()]);
    };
    let number = |n: Option<u64>| or_dash(n, |n| n.to_string());
    let half_open = held.reconciled.map(|both| both.half_open_most);
    row("connected, client's count", held.connected_most.to_string(), "200000 (four clients)");
    row("open, server's count", number(held.server_open_most), "");
    row("half-open, most", number(half_open), "seen, not counted");
    row("connects", or_dash(held.connect_rate_most, rate), "1.00k/s");
    row("connect p99", micros(held.connect_p99_us), "");
    row("pings answered", held.pings.to_string(), "");
    row("ping p99", micros(held.ping_p99_us), "");
    row("accept queue overflows", number(held.overflows), "");
    row("SYNs dropped", number(held.drops), "");
    row("in SYN-RECV, most", number(held.syn_recv_most), "");
    row("server memory each", or_dash(held.server_bytes_each, bytes), "");
    row("client memory each", or_dash(held.load_bytes_each, bytes), "");
    row("machine memory a pair", or_dash(held.machine_bytes_each, bytes), "");
    let mut errors = LabTable::new("Errors by kind", ["kind", "times"]);
    for (kind, n) in &held.errors.0 {
        errors.row([kind.clone(), n.to_string()]);
    }
    if held.errors.0.is_empty() {
        errors.row(["none".to_owned(), "0".to_owned()]);
    }
    vec![counts, errors]
}

/// Returns the sentences of the verdict.
fn verdict(held: &HoldResult) -> Vec<String> {
    let mut sentences = Vec::new();
    let errors = held.errors.total();
    sentences.push(match (held.connected_most >= held.users, errors) {
        (true, 0) => {
            format!("All {} connections were held, without an error.", held.connected_most)
        }
        (true, _) => {
            format!("All {} connections were held at one time; {errors} errors.", held.users)
        }
        (false, _) if held.steered => format!(
            "At most {} of the {} planned connections were held, because a user steered the run. \
             {errors} errors.",
            held.connected_most, held.users
        ),
        (false, _) => format!(
            "{} of {} connections were held at most; {errors} errors.",
            held.connected_most, held.users
        ),
    });
    sentences.extend(worst_error(&held.errors));
    sentences.push(match (held.reconciled, &held.handshakes) {
        (None, _) => "The client's and the server's counts could not be compared: the server did \
                      not answer in any quiet second."
            .to_owned(),
        (Some(_), Some(found)) => format!("{} Remedy: {}.", found.text, found.remedy),
        (Some(both), None) => format!(
            "The client's and the server's counts agree in all {} seconds that could be compared: \
             no connection was half-open.",
            both.seconds
        ),
    });
    if let Some(both) = held.reconciled.filter(|both| both.unknown_to_client_most > 0) {
        sentences.push(format!(
            "The server held {} connections at one time that the client had already closed.",
            both.unknown_to_client_most
        ));
    }
    sentences
}

/// Returns a sentence about the most frequent error and its meaning.
fn worst_error(errors: &Tally) -> Option<String> {
    let (kind, n) = errors.0.iter().max_by_key(|(_, n)| **n)?;
    let limit = kind.strip_prefix("connect ").and_then(Limit::of_errno);
    let meaning = match kind.as_str() {
        "connect EADDRNOTAVAIL" | "connect EADDRINUSE" => &format!(
            "{}: {}, or name more --source addresses",
            Limit::PORTS.lack(),
            Limit::PORTS.raise("1024 65535")
        ),
        "connect timeout" | "connect ETIMEDOUT" => {
            "SYNs were dropped and not answered in time: look at the accept queue"
        }
        "expect_timeout" => "a Pong did not arrive in time: server or machine was too slow",
        "closed_by_peer" | "reset_by_peer" => {
            "the server closed them: a half-open connection ends like this at its first Ping"
        }
        _ => match limit {
            Some(limit) => &format!("{}: {}", limit.lack(), limit.raise("N")),
            None => return Some(format!("Most frequent: {kind}, {n} times.")),
        },
    };
    Some(format!("Most frequent: {kind}, {n} times: {meaning}."))
}

const ROW: &str = "connscale";
/// The default users per CPU: the lab then takes a minute on two CPUs.
const DEFAULT_USERS_PER_CPU: u64 = 50_000;
/// The pings for each answered message that the machine can do.
const PINGS: f64 = 0.15;
/// The article's time-out.
const TIMEOUT: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use throng_report::Side;

    use super::*;
    use crate::lab::assert_same_scenario;

    #[test]
    fn the_article_s_sizes_give_the_bundled_scenario() {
        let bundled = include_str!("../../../labs/connscale.yaml");
        let seconds = Duration::from_secs;
        let text = scenario(200_000, seconds(200), seconds(300), seconds(20), TIMEOUT);
        assert_same_scenario(&text, bundled);
    }

    #[test]
    fn users_arrive_and_ping_at_a_pace_that_is_easy_for_the_machine() {
        let pace = |ramp_ms, interval| Pace {
            ramp: Duration::from_millis(ramp_ms),
            interval: Duration::from_secs(interval),
        };
        let throughput = Throughput { connects: 20_000.0, messages: 80_000.0 };
        assert_eq!(Pace::of(200, &throughput, None), pace(1_000, 5));
        assert_eq!(Pace::of(210_000, &throughput, None), pace(30_000, 17));
        assert_eq!(Pace::of(1_000_000, &throughput, None), pace(250_000, 166));
        assert_eq!(Pace::of(210_000, &throughput, Some(10_000)).ramp, Duration::from_secs(21));
        let slow = Throughput { connects: 200.0, messages: 800.0 };
        assert_eq!(Pace::of(7_000, &slow, None), pace(100_000, 58));
    }

    fn held(connected_most: u64, half_open_most: u64, errors: &[(&str, u64)]) -> HoldResult {
        let mut tally = Tally::default();
        errors.iter().for_each(|(kind, n)| tally.add(kind, *n));
        HoldResult {
            users: 1000,
            connected_most,
            errors: tally,
            reconciled: Some(Reconciliation { seconds: 9, half_open_most, ..Default::default() }),
            overflows: Some(0),
            drops: Some(0),
            ..Default::default()
        }
    }

    #[track_caller]
    fn check(held: &HoldResult, says: &[&str], never: &[&str]) {
        let sentences = verdict(held).join("\n");
        for text in says {
            assert!(sentences.contains(text), "no {text:?} in:\n{sentences}");
        }
        for text in never {
            assert!(!sentences.contains(text), "{text:?} in:\n{sentences}");
        }
    }

    #[test]
    fn a_clean_run_says_so() {
        let says =
            ["All 1000 connections were held, without an error", "counts agree in all 9 seconds"];
        check(&held(1000, 0, &[]), &says, &["Most frequent", "dropped"]);
    }

    #[test]
    fn failed_handshakes_are_named_with_the_remedy() {
        let found = Finding::new("half_open", Side::Kernel, "498 connections were half-open.");
        let found = Some(found.remedied_by("raise --backlog"));
        let half_open = HoldResult { handshakes: found, ..held(1000, 498, &[]) };
        check(
            &half_open,
            &["498 connections were half-open. Remedy: raise --backlog."],
            &["counts agree"],
        );
    }

    #[test]
    fn the_most_frequent_error_is_explained() {
        for (kind, says) in [
            ("connect EMFILE", "ulimit -n"),
            ("connect EADDRNOTAVAIL", "ip_local_port_range"),
            ("connect ENOSPC", "max_user_watches"),
            ("expect_timeout", "Pong did not arrive"),
            ("reset_by_peer", "half-open"),
            ("moon", "Most frequent: moon, 9 times."),
        ] {
            check(
                &held(900, 0, &[(kind, 9), ("other", 3)]),
                &["900 of 1000", "12 errors", says],
                &[],
            );
        }
    }

    #[test]
    fn a_run_that_was_steered_did_not_fall_short() {
        check(
            &HoldResult { steered: true, ..held(500, 0, &[]) },
            &["At most 500 of the 1000 planned", "steered the run"],
            &["500 of 1000"],
        );
    }

    #[test]
    fn without_the_server_s_count_nothing_is_claimed() {
        let alone = HoldResult { reconciled: None, ..held(1000, 0, &[]) };
        check(&alone, &["could not be compared"], &["no connection was half-open"]);
    }
}
