//! The lab `reconnect-storm`: the server restarts; how long until all users are back, and what did
//! the storm do?

use std::time::{Duration, Instant};

use serde::Serialize;
use throng_base::units::show_duration;
use throng_load::scenario::Protocol;
use throng_report::render::{count, micros, or_dash, rate};
use throng_report::{Interval, Limit, LoadInterval, Metric, Summary, Tally, server_side};

use crate::error::LabError;
use crate::lab::Lab;
use crate::measure::latency;
use crate::options::LabInfo;
use crate::progress::LabProgress;
use crate::report::{LabReport, LabTable};
use crate::test_bed::{CHANNELS, LoadSpec, NextStep, RunningServer, ServerSpec, TestBed};
use crate::throughput::Throughput;
use crate::user_run::{UserCost, arrivals_per_second, errors_sentence, report};

pub(crate) const INFO: LabInfo = LabInfo {
    name: "reconnect-storm",
    article: "A question that The Road to 2 Million Websocket Connections in Phoenix leaves open: \
              the restart of such a server",
    summary: "users are in one lobby, the server restarts, all reconnect at once: how long it \
              takes and what fails",
    takes_rate: true,
};

/// The lab's result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Storm {
    users: u64,
    /// Time from the server's shutdown until its successor listened.
    down_ms: Option<u64>,
    /// The fewest users joined at one time.
    joined_least: u64,
    /// Time from the last moment with all users joined until half of them were joined again.
    half_back_ms: Option<u64>,
    /// Time from the last moment with all users joined until 99 % of them were joined again.
    most_back_ms: Option<u64>,
    /// Time from the last moment with all users joined until all were joined again.
    all_back_ms: Option<u64>,
    /// Connections that were established in the best second of the storm.
    connects_most_per_second: f64,
    connects_begun: u64,
    /// Failed connects by errno.
    connects_failed: Tally,
    errors: u64,
    connect_p99_us: u64,
    join_p99_us: u64,
    /// `TcpExt.ListenOverflows` during the storm.
    overflows: Option<i64>,
    cost: UserCost,
}

pub(crate) fn run(
    lab: &Lab<'_>,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    let cpus = lab.machine.cpus;
    let throughput = Throughput::measure(lab, Protocol::Phoenix, progress)?;
    let users = lab.users_or((DEFAULT_USERS_PER_CPU * cpus).min(throughput.connects_at(STORM)));
    lab.check_fits(users)?;
    let per_second = arrivals_per_second(users, &throughput, lab.options.rate).max(1);
    let ramp = Duration::from_secs(users.div_ceil(per_second).max(1));
    let return_max = Duration::from_secs(lab.options.seconds.unwrap_or(RETURN_SECONDS_MAX));
    let text = scenario(users, ramp, 2 * CALM + return_max);
    let seconds = (ramp + 2 * CALM + return_max).as_secs();
    // The load ends when all users are back. It takes longer only if some are not.
    lab.begin_row(ROW, (ramp + 2 * CALM).as_secs() + STORM_SECONDS, progress);

    let cores = lab.machine.cores_for(users + users / 10);
    let spec = ServerSpec::new(ROW, "channels", cores);
    let server = lab.test_bed.serve(spec)?;
    let at = server.endpoint.clone();
    let spec = ServerSpec { port: at.addr.port(), ..spec };
    let mut restart = Restart {
        test_bed: lab.test_bed,
        spec,
        users,
        state: RestartState::Calm { server, since: None },
    };
    let load =
        LoadSpec { target: CHANNELS, interval: INTERVAL, ..LoadSpec::tcp(ROW, &text, seconds) };
    let run = lab.test_bed.load(&load, &at, progress, |interval| restart.add(interval))?;
    let down = restart.finish()?;
    let summary = Summary::of(&run.file);
    let storm = Storm {
        down_ms: down.map(|down| down.as_millis() as u64),
        cost: UserCost::of(&run.file.intervals, &summary, cpus),
        ..storm(users, &run.file.intervals)
    };
    let setup = format!(
        "{} users in rooms:lobby; the server shuts down and starts again {} later; a user that \
         loses its connection reconnects after 1 s ± 10 %; on {cpus} CPUs",
        count(users as f64),
        or_dash(down, |down| format!("{:.1} s", down.as_secs_f64())),
    );
    let results = (tables(&storm), verdict(&storm, &summary));
    Ok(report(&INFO, setup, results, (&run, &summary), &storm))
}

fn scenario(users: u64, ramp: Duration, hold: Duration) -> String {
    let [ramp, hold] = [ramp, hold].map(show_duration);
    format!(
        "target: ws://127.0.0.1:4000/socket/websocket
protocol: phoenix
load:
  - ramp: {{to: {users}, over: {ramp}}}
  - hold: {{for: {hold}}}
user:
  - connect: {{timeout: 20s}}
  - join: {{topic: \"rooms:lobby\", timeout: 20s}}
  - stay
"
    )
}

/// Restarts the server after all users have been joined for a while, and ends the load when they
/// are back.
struct Restart<'a> {
    test_bed: &'a TestBed,
    spec: ServerSpec<'a>,
    users: u64,
    state: RestartState,
}

enum RestartState {
    /// Before the restart. `since` is the moment since which all users are joined.
    Calm { server: RunningServer, since: Option<u64> },
    /// After the restart. `since` is the moment since which all users are back, `down` the time
    /// without a server.
    Storm { server: RunningServer, since: Option<u64>, down: Duration },
    /// The server did not start again.
    Failed(LabError),
    /// During the restart.
    Restarting,
}

impl Restart<'_> {
    fn add(&mut self, interval: &Interval) -> NextStep {
        let Some(load) = &interval.load else { return NextStep::Continue };
        let is_full = load.counters.joined >= self.users;
        let calm_for = |since: &mut Option<u64>| {
            *since = is_full.then(|| since.unwrap_or(interval.at_ms));
            since.is_some_and(|since| interval.at_ms - since >= CALM.as_millis() as u64)
        };
        match &mut self.state {
            RestartState::Calm { since, .. } => {
                if calm_for(since) {
                    self.restart();
                }
                NextStep::Continue
            }
            RestartState::Storm { since, .. } => {
                if calm_for(since) {
                    NextStep::Stop
                } else {
                    NextStep::Continue
                }
            }
            RestartState::Failed(_) | RestartState::Restarting => NextStep::Stop,
        }
    }

    fn restart(&mut self) {
        let RestartState::Calm { server, .. } =
            std::mem::replace(&mut self.state, RestartState::Restarting)
        else {
            return;
        };
        let began = Instant::now();
        server.stop();
        self.state = match self.test_bed.serve(self.spec) {
            Ok(server) => RestartState::Storm { server, since: None, down: began.elapsed() },
            Err(error) => RestartState::Failed(error),
        };
    }

    /// Ends the server. Returns the time without a server; none without a restart.
    fn finish(self) -> Result<Option<Duration>, LabError> {
        match self.state {
            RestartState::Calm { server, .. } => {
                server.stop();
                Ok(None)
            }
            RestartState::Storm { server, down, .. } => {
                server.stop();
                Ok(Some(down))
            }
            RestartState::Failed(error) => Err(error),
            RestartState::Restarting => Ok(None),
        }
    }
}

/// Computes the result from the intervals.
fn storm(users: u64, intervals: &[Interval]) -> Storm {
    let mut found = Storm { users, ..Storm::default() };
    let all: Vec<(&Interval, &LoadInterval)> = intervals
        .iter()
        .filter_map(|interval| interval.load.as_ref().map(|load| (interval, load)))
        .filter(|(_, load)| !load.is_leaving())
        .collect();
    let joined = |at: usize| all[at].1.counters.joined;
    let Some(full) = (0..all.len()).find(|at| joined(*at) >= users) else { return found };
    let Some(lost) = (full..all.len()).find(|at| joined(*at) < users) else { return found };
    let (began, before) = all[lost - 1];
    let after = &all[lost..];
    let lowest = (0..after.len()).min_by_key(|at| after[*at].1.counters.joined).unwrap_or(0);
    found.joined_least = after[lowest].1.counters.joined;
    let back = |share: u64| {
        // The search starts at the lowest point: the same number of users is joined on the way
        // down.
        let is_back =
            |(_, load): &&(&Interval, &LoadInterval)| load.counters.joined * 100 >= users * share;
        let (interval, _) = after[lowest..].iter().find(is_back)?;
        Some(interval.at_ms - began.at_ms)
    };
    (found.half_back_ms, found.most_back_ms, found.all_back_ms) = (back(50), back(99), back(100));
    let end = found.all_back_ms.map_or(u64::MAX, |ms| began.at_ms + ms);
    let during: Vec<_> = after.iter().filter(|(interval, _)| interval.at_ms <= end).collect();
    let Some((last_interval, last)) = during.last() else { return found };
    let grown = last.counters.since(&before.counters);
    found.connects_begun = grown.connects_started;
    for (errno, n) in &last.connect_failed.0 {
        let n = n.saturating_sub(before.connect_failed.get(errno));
        if n > 0 {
            found.connects_failed.add(errno, n);
        }
    }
    found.errors = last.errors.total() - before.errors.total().min(last.errors.total());
    found.connects_most_per_second = best_second(&during);
    let measured = || during.iter().map(|(interval, _)| *interval);
    found.connect_p99_us = latency(measured(), |load| load.latencies().connect).p99;
    found.join_p99_us = latency(measured(), |load| load.latencies().join).p99;
    let kernel = server_side(intervals);
    let overflows = |interval: &Interval| kernel(interval).get(Metric::TCPEXT_LISTEN_OVERFLOWS);
    found.overflows = overflows(began).zip(overflows(last_interval)).map(|(from, to)| to - from);
    found
}

/// Returns the connections established in the best second. The intervals are shorter than that.
fn best_second(during: &[&(&Interval, &LoadInterval)]) -> f64 {
    let ok = |at: usize| during[at].1.counters.connects_ok;
    let at_ms = |at: usize| during[at].0.at_ms;
    let rate = |to: usize| {
        let from = (0..to).rev().find(|from| at_ms(to) - at_ms(*from) >= 1000)?;
        Some((ok(to) - ok(from)) as f64 * 1000.0 / (at_ms(to) - at_ms(from)) as f64)
    };
    (0..during.len()).filter_map(rate).fold(0.0, f64::max)
}

fn tables(storm: &Storm) -> Vec<LabTable> {
    let mut table = LabTable::new("The storm", ["", "here", "the article"]);
    let after = |ms: Option<u64>| or_dash(ms, |ms| format!("{:.1} s", ms as f64 / 1000.0));
    let failed = storm.connects_failed.0.iter().map(|(kind, n)| format!("{kind} {n}"));
    let failed = failed.collect::<Vec<_>>().join(", ");
    for (name, here) in [
        ("no server listened for", after(storm.down_ms)),
        ("fewest users joined", count(storm.joined_least as f64)),
        ("half of them back after", after(storm.half_back_ms)),
        ("99 % back after", after(storm.most_back_ms)),
        ("all back after", after(storm.all_back_ms)),
        ("connects, best second", rate(storm.connects_most_per_second)),
        (
            "connects per user",
            format!("{:.2}", storm.connects_begun as f64 / storm.users.max(1) as f64),
        ),
        ("failed connects", if failed.is_empty() { "none".to_owned() } else { failed }),
        ("connect p99", micros(storm.connect_p99_us)),
        ("join p99", micros(storm.join_p99_us)),
        ("accept queue overflows", or_dash(storm.overflows, |n| n.to_string())),
    ] {
        table.row([name.to_owned(), here, String::new()]);
    }
    let mut beside =
        LabTable::new("Beside the article", ["", "here", "the article, 40 cores, 128 GB"]);
    beside.row(["users".to_owned(), count(storm.users as f64), "2M, no restart".to_owned()]);
    beside.row([
        "rejoins per second".to_owned(),
        or_dash(storm.all_back_ms, |ms| rate(storm.users as f64 * 1000.0 / ms as f64)),
        "1k/s, later 10k/s arrivals".to_owned(),
    ]);
    let article = ["50k (112.5k on 4 cores)", "15.6k of the machine (30k on 15 GB)", ""];
    storm.cost.rows(&mut beside, article);
    storm.cost.cpu_rows(&mut beside);
    vec![table, beside]
}

/// Returns the sentences of the verdict.
fn verdict(storm: &Storm, summary: &Summary) -> Vec<String> {
    let seconds = |ms: u64| format!("{:.1} s", ms as f64 / 1000.0);
    let users = count(storm.users as f64);
    let mut sentences = Vec::new();
    sentences.push(match (storm.down_ms, storm.all_back_ms) {
        (None, _) => "The server was not restarted: not all users had joined.".to_owned(),
        (Some(_), None) => format!("Not all of {users} users were back at the end."),
        (Some(down), Some(back)) => format!(
            "All {users} users were back {} after the first lost its connection; for {} of that \
             time, no server listened.",
            seconds(back),
            seconds(down.min(back))
        ),
    });
    if storm.down_ms.is_some() {
        let failed = storm.connects_failed.total();
        sentences.push(format!(
            "They connected at up to {}, with {:.2} connects per user; {} connects failed; 99 % of \
             the others took at most {}.",
            rate(storm.connects_most_per_second),
            storm.connects_begun as f64 / storm.users.max(1) as f64,
            count(failed as f64),
            micros(storm.connect_p99_us)
        ));
        if let Some(overflows) = storm.overflows.filter(|n| *n > 0) {
            sentences.push(format!(
                "The accept queue overflowed {overflows} times: the clients tried again a second \
                 later. Remedy: a larger --backlog and {}.",
                Limit::SOMAXCONN
            ));
        }
    }
    sentences.extend(errors_sentence(summary));
    sentences
}

const ROW: &str = "reconnect-storm";
const DEFAULT_USERS_PER_CPU: u64 = 20_000;
/// The time for which all users must be joined, before and after the restart.
const CALM: Duration = Duration::from_secs(2);
/// The default time in which the users may come back.
const RETURN_SECONDS_MAX: u64 = 60;
/// The time in which the users come back if nothing goes wrong.
const STORM_SECONDS: u64 = 3;
/// Users per connect that the machine can do in a second. All of them connect within the 0.2 s over
/// which their delays spread; more users would wait for the generator.
const STORM: f64 = 0.07;
/// The length of an interval: the storm is over in seconds.
const INTERVAL: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::assert_same_scenario;

    #[test]
    fn the_sizes_of_two_cpus_give_the_bundled_scenario() {
        let bundled = include_str!("../../../labs/reconnect-storm.yaml");
        let seconds = Duration::from_secs;
        assert_same_scenario(&scenario(40_000, seconds(5), seconds(64)), bundled);
    }

    fn interval(at_ms: u64, joined: u64, connects_ok: u64, refused: u64) -> Interval {
        let mut load = LoadInterval::default();
        load.counters.joined = joined;
        load.counters.connects_ok = connects_ok;
        load.counters.connects_started = connects_ok + refused;
        if refused > 0 {
            load.connect_failed.add("ECONNREFUSED", refused);
        }
        let kernel = [(Metric::TCPEXT_LISTEN_OVERFLOWS, refused as i64)].into();
        Interval { at_ms, span_ms: 500, load: Some(load), kernel, ..Interval::default() }
    }

    #[test]
    fn all_users_are_back_when_as_many_are_joined_as_before() {
        let run = [
            interval(0, 50, 50, 0),
            interval(500, 100, 100, 0),
            interval(1000, 100, 100, 0),
            // On the way down.
            interval(1500, 60, 100, 0),
            interval(2000, 0, 100, 30),
            interval(2500, 0, 110, 90),
            interval(3000, 55, 160, 90),
            interval(3500, 99, 199, 90),
            interval(4000, 100, 200, 90),
            interval(4500, 100, 200, 90),
        ];
        let storm = storm(100, &run);
        assert_eq!(storm.joined_least, 0);
        assert_eq!(
            (storm.half_back_ms, storm.most_back_ms, storm.all_back_ms),
            (Some(2000), Some(2500), Some(3000))
        );
        assert_eq!((storm.connects_begun, storm.connects_failed.total()), (190, 90));
        assert_eq!(storm.connects_most_per_second, 89.0);
        assert_eq!(storm.overflows, Some(90));
    }

    #[test]
    fn missing_users_are_in_the_verdict() {
        let storm = Storm {
            down_ms: Some(1500),
            ..storm(
                100,
                &[interval(0, 100, 100, 0), interval(500, 0, 100, 0), interval(1000, 98, 198, 0)],
            )
        };
        assert_eq!((storm.half_back_ms, storm.all_back_ms), (Some(1000), None));
        let sentences = verdict(&storm, &Summary::default()).join("\n");
        assert!(sentences.contains("Not all of 100 users were back"), "{sentences}");
        let calm = Storm { users: 100, ..Storm::default() };
        let sentences = verdict(&calm, &Summary::default()).join("\n");
        assert!(sentences.contains("was not restarted"), "{sentences}");
    }
}
