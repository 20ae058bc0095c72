//! The lab `phoenix-2m`: users arrive and join one lobby; do all of them join, and how long does a
//! broadcast to all of them take as their number grows?

use std::time::Duration;

use serde::Serialize;
use throng_base::units::show_duration;
use throng_load::scenario::Protocol;
use throng_report::render::{count, micros, or_dash, rate};
use throng_report::{Interval, ProbeReport, Summary};

use crate::error::LabError;
use crate::lab::Lab;
use crate::measure::MANY;
use crate::options::LabInfo;
use crate::progress::LabProgress;
use crate::report::{LabReport, LabTable};
use crate::test_bed::{CHANNELS, NextStep};
use crate::throughput::Throughput;
use crate::user_run::{
    UserCost, UserRunSpec, arrivals_per_second, broadcast_seconds, delivery_cells,
    delivery_sentence, errors_sentence, report, run_users, users_by_default,
};

pub(crate) const INFO: LabInfo = LabInfo {
    name: "phoenix-2m",
    article: "The Road to 2 Million Websocket Connections in Phoenix (2015)",
    summary: "users arrive and join one lobby, as many as fit: how many join, and how long a \
              broadcast to all takes",
    takes_rate: true,
};

/// The lab's result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Lobby {
    users: u64,
    arrivals_per_second: u64,
    connected_most: u64,
    joined_most: u64,
    /// The moment at which all users had joined, in milliseconds since the run began; none if some
    /// did not join.
    all_joined_ms: Option<u64>,
    connect_p99_us: u64,
    join_p99_us: u64,
    heartbeats_sent: u64,
    heartbeats_missed: u64,
    growth: Vec<BroadcastResult>,
    cost: UserCost,
}

/// A broadcast, and the users at that moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct BroadcastResult {
    /// Users that should have arrived by then.
    due: u64,
    connected: u64,
    joined: u64,
    broadcast: ProbeReport,
}

pub(crate) fn run(
    lab: &Lab<'_>,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    let cpus = lab.machine.cpus;
    let throughput = Throughput::measure(lab, Protocol::Phoenix, progress)?;
    let users = users_by_default(lab, DEFAULT_USERS_PER_CPU, &throughput);
    lab.check_fits(users)?;
    let pace = Pace::of(users, &throughput, lab.options.rate, lab.options.seconds);
    let text = scenario(users, &pace);
    let seconds = pace.length().as_secs();
    let spec = UserRunSpec {
        row: ROW,
        handler: "channels",
        target: CHANNELS,
        scenario: &text,
        users,
        seconds,
        // The server receives one heartbeat per period and must not close a user at the first late
        // one.
        idle_timeout: (pace.heartbeat > HEARTBEAT).then_some(2 * pace.heartbeat),
    };
    let (run, summary) = run_users(lab, &spec, progress, |_| NextStep::Continue)?;
    let lobby = lobby(users, &pace, &run.file.intervals, &summary, cpus);
    let setup = format!(
        "{} users arrive at {}{}, each joins rooms:lobby and stays, with a heartbeat every {}; a \
         broadcast every {}; on {cpus} CPUs",
        count(users as f64),
        rate(pace.per_second as f64),
        pace.pauses(),
        show_duration(pace.heartbeat),
        show_duration(pace.probe),
    );
    let results = (tables(&lobby), verdict(&lobby, &summary));
    Ok(report(&INFO, setup, results, (&run, &summary), &lobby))
}

/// The arrivals, the users' stay, and the time between two broadcasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    per_second: u64,
    /// The stages in which the users arrive.
    stages: u32,
    /// The length of the first stage's arrivals, which ends with the first broadcast.
    arrive: Duration,
    /// The time without arrivals after each stage but the last.
    pause: Duration,
    hold: Duration,
    /// The time between two broadcasts. Each stage ends with a broadcast.
    probe: Duration,
    /// The time between two of a user's heartbeats.
    heartbeat: Duration,
}

impl Pace {
    /// Plans about ten broadcasts during the arrivals, each after the end of the one before, and
    /// two or more to all users.
    ///
    /// Very many users leave little CPU beside their heartbeats (a million send 33,000 per second),
    /// and on a machine that is late, clients repeat their connects. So more than [`MANY`] users
    /// arrive in four stages, without arrivals during a broadcast. Even more users send heartbeats
    /// less often than phoenix.js, so that these take at most half of the CPUs.
    fn of(users: u64, throughput: &Throughput, rate: Option<u64>, hold: Option<u64>) -> Self {
        let per_second = arrivals_per_second(users, throughput, rate);
        let arrive = users.div_ceil(per_second).max(1);
        let one = broadcast_seconds(users, throughput);
        let (stages, pause) = if users > MANY { (STAGES, 2 * one) } else { (1, 0) };
        let arrive =
            (arrive + (u64::from(stages) - 1) * pause).div_ceil(u64::from(stages)).max(pause + 1);
        let probe = if stages > 1 { arrive } else { (arrive / 10).max(one).max(1) };
        let heartbeat = HEARTBEAT.as_secs().max(users.div_ceil(throughput.messages_at(HEARTBEATS)));
        let hold = hold
            .unwrap_or(heartbeat + 5)
            .max(2 * one + if stages > 1 { probe } else { 2 * probe - one });
        let [arrive, pause, hold, probe, heartbeat] =
            [arrive, pause, hold, probe, heartbeat].map(Duration::from_secs);
        Self { per_second, stages, arrive, pause, hold, probe, heartbeat }
    }

    /// Returns the time from the first arrival to the end.
    fn length(&self) -> Duration {
        self.arrive * self.stages + self.hold
    }

    fn pauses(&self) -> String {
        match self.stages {
            1 => String::new(),
            stages => format!(
                " in {stages} stages, with a pause of {} for a broadcast after each",
                show_duration(self.pause)
            ),
        }
    }
}

fn scenario(users: u64, pace: &Pace) -> String {
    let [hold, probe] = [pace.hold, pace.probe].map(show_duration);
    let heartbeat = match pace.heartbeat {
        HEARTBEAT => String::new(),
        longer => format!(", heartbeat: {}", show_duration(longer)),
    };
    // A broadcast may take the whole pause, in which there are no other arrivals or messages.
    let timeout = match pace.pause {
        pause if pause > PROBE_TIMEOUT => format!("    timeout: {}\n", show_duration(pause)),
        _ => String::new(),
    };
    format!(
        "target: ws://127.0.0.1:4000/socket/websocket
protocol: phoenix
load:
{}  - hold: {{for: {hold}}}
user:
  - connect: {{timeout: 20s{heartbeat}}}
  - join: {{topic: \"rooms:lobby\", payload: {{user: \"${{user.id}}\"}}, timeout: 20s}}
  - stay
probe:
  - every: {probe}
    broadcast: {{topic: \"rooms:lobby\", event: new_msg, payload: {{body: hello}}}}
{timeout}",
        arrivals(users, pace)
    )
}

/// Returns the phases of the stages. A broadcast is due at the end of each, when the pause begins.
fn arrivals(users: u64, pace: &Pace) -> String {
    let (mut text, mut left) = (String::new(), users);
    let (pause, per_second) = (show_duration(pace.pause), pace.per_second);
    for stage in 1..=pace.stages {
        let span = if stage == 1 { pace.arrive } else { pace.arrive - pace.pause };
        let most = if stage == pace.stages { left } else { left.min(per_second * span.as_secs()) };
        left -= most;
        let span = show_duration(span);
        text += &format!(
            "  - arrivals: {{rate: {per_second}/s, for: {span}, most: {most}, spacing: even}}\n"
        );
        if stage < pace.stages {
            text += &format!("  - hold: {{for: {pause}}}\n");
        }
    }
    text
}

fn lobby(users: u64, pace: &Pace, intervals: &[Interval], summary: &Summary, cpus: u64) -> Lobby {
    let loads = || intervals.iter().filter_map(|i| i.load.as_ref().map(|load| (i.at_ms, load)));
    let probes = summary.broadcast.as_ref().map_or(&[][..], |broadcast| &broadcast.probes);
    // Users that leave at the end do not count.
    let staying = || loads().filter(|(_, load)| !load.is_leaving());
    let at = |due_ms: u64| {
        staying().find(|(at_ms, _)| *at_ms >= due_ms).or_else(|| staying().next_back())
    };
    let moment = |probe: &ProbeReport| {
        let load = at(probe.due_ms).map(|(_, load)| &load.counters);
        BroadcastResult {
            due: load.map_or(0, |counters| counters.users_intended),
            connected: load.map_or(0, |counters| counters.connected),
            joined: load.map_or(0, |counters| counters.joined),
            broadcast: probe.clone(),
        }
    };
    let heartbeats = summary.heartbeat.clone().unwrap_or_default();
    Lobby {
        users,
        arrivals_per_second: pace.per_second,
        connected_most: summary.users.connected_most,
        joined_most: summary.users.joined_most,
        all_joined_ms: loads().find(|(_, load)| load.counters.joined >= users).map(|(at, _)| at),
        connect_p99_us: summary.connect.latency_us.p99,
        join_p99_us: summary.join.as_ref().map_or(0, |join| join.latency_us.p99),
        heartbeats_sent: heartbeats.sent,
        heartbeats_missed: heartbeats.missed,
        growth: probes.iter().filter(|probe| probe.counters.expected > 0).map(moment).collect(),
        cost: UserCost::of(intervals, summary, cpus),
    }
}

/// Returns the last broadcast to the most users.
fn to_all(lobby: &Lobby) -> Option<&ProbeReport> {
    let probes = lobby.growth.iter().map(|moment| &moment.broadcast);
    probes.max_by_key(|probe| (probe.counters.expected, probe.counters.delivered))
}

/// Selects the broadcasts for the table: about ten during the arrivals, evenly, and of the later
/// ones the first, the middle and the last.
fn shown(growth: &[BroadcastResult], users: u64) -> Vec<&BroadcastResult> {
    let full = growth.iter().position(|moment| moment.joined >= users).unwrap_or(growth.len());
    let (coming, there) = growth.split_at(full);
    let some = coming.iter().step_by(coming.len().div_ceil(ROWS_MOST).max(1));
    let mut rest = [0, there.len() / 2, there.len().saturating_sub(1)].to_vec();
    rest.dedup();
    some.chain(rest.into_iter().filter_map(|at| there.get(at))).collect()
}

fn tables(lobby: &Lobby) -> Vec<LabTable> {
    let mut growth = LabTable::new(
        "As the users grow: users, and time from a broadcast's intended moment to its deliveries",
        ["due", "connected", "joined", "first", "half", "99 %", "last", "missing"],
    );
    for moment in shown(&lobby.growth, lobby.users) {
        let [first, half, most, last] = delivery_cells(&moment.broadcast);
        let [due, connected, joined] =
            [moment.due, moment.connected, moment.joined].map(|n| count(n as f64));
        let missing = moment.broadcast.counters.missing.to_string();
        growth.row([due, connected, joined, first, half, most, last, missing]);
    }
    let mut beside =
        LabTable::new("Beside the article", ["", "here", "the article, 40 cores, 128 GB"]);
    let mut row = |name: &str, here: String, article: &str| {
        beside.row([name.to_owned(), here, article.to_owned()]);
    };
    let last = |probe: &ProbeReport| or_dash(probe.last_us, micros);
    row("users joined to one lobby", count(lobby.joined_most as f64), "2M");
    row("arrivals", rate(lobby.arrivals_per_second as f64), "1k/s, later 10k/s");
    row("connect p99", micros(lobby.connect_p99_us), "");
    row("join p99", micros(lobby.join_p99_us), "time-outs from 1.3M on, then none");
    row(
        "broadcast to all, last delivery",
        to_all(lobby).map_or_else(|| "-".to_owned(), last),
        "5 s at 1.3M, then 1-2 s; 1 s at 2M",
    );
    row("heartbeats missed", lobby.heartbeats_missed.to_string(), "");
    // The article: 2 million users on 40 cores and 128 GB. It also had 450,000 on 4 cores and 15
    // GB, which are 112.5k per core and 30k per gigabyte.
    let article = ["50k (112.5k on 4 cores)", "15.6k of the machine (30k on 15 GB)", ""];
    lobby.cost.rows(&mut beside, article);
    lobby.cost.cpu_rows(&mut beside);
    vec![growth, beside]
}

/// Returns the sentences of the verdict.
fn verdict(lobby: &Lobby, summary: &Summary) -> Vec<String> {
    let mut sentences = Vec::new();
    let users = count(lobby.users as f64);
    sentences.push(match lobby.all_joined_ms {
        Some(ms) => format!(
            "All {users} users were in one lobby, {:.1} s after the first; p99 of a join {}.",
            ms as f64 / 1000.0,
            micros(lobby.join_p99_us)
        ),
        None => format!("At most {} of {users} users were in the lobby.", lobby.joined_most),
    });
    if let Some(probe) = to_all(lobby) {
        sentences.push(format!(
            "A broadcast to {} of them reached half of them in {} and the last in {}.",
            count(probe.counters.expected as f64),
            or_dash(probe.p50_us, micros),
            or_dash(probe.last_us, micros)
        ));
    }
    let probes: Vec<_> = lobby.growth.iter().map(|moment| moment.broadcast.clone()).collect();
    sentences.push(delivery_sentence(&probes));
    sentences.push(match (lobby.heartbeats_sent, lobby.heartbeats_missed) {
        (0, _) => "The run was too short for a heartbeat.".to_owned(),
        (sent, 0) => format!("All {} heartbeats were answered.", count(sent as f64)),
        (sent, missed) => format!("{missed} of {sent} heartbeats were missed."),
    });
    sentences.extend(errors_sentence(summary));
    sentences
}

const ROW: &str = "phoenix-2m";
const ROWS_MOST: usize = 10;
const STAGES: u32 = 4;
/// The default users per CPU: the lab then takes about a minute on two CPUs. A million users take
/// ten.
const DEFAULT_USERS_PER_CPU: u64 = 50_000;
/// The heartbeat period of phoenix.js, which is also a scenario's default.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// A probe's default time-out.
const PROBE_TIMEOUT: Duration = Duration::from_secs(60);
/// The heartbeats for each answered message that the machine can do.
const HEARTBEATS: f64 = 0.35;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::assert_same_scenario;

    fn pace(per_second: u64, arrive: u64, hold: u64, probe: u64) -> Pace {
        let [arrive, hold, probe] = [arrive, hold, probe].map(Duration::from_secs);
        let (pause, heartbeat) = (Duration::ZERO, HEARTBEAT);
        Pace { per_second, stages: 1, arrive, pause, hold, probe, heartbeat }
    }

    #[test]
    fn the_article_s_sizes_give_the_bundled_scenario() {
        let bundled = include_str!("../../../labs/phoenix-2m.yaml");
        assert_same_scenario(&scenario(2_000_000, &pace(10_000, 200, 60, 20)), bundled);
    }

    /// The throughput of two CPUs, as once measured.
    const DOES: Throughput = Throughput { connects: 14_000.0, messages: 80_000.0 };

    #[test]
    fn broadcasts_do_not_overlap_and_two_reach_all_users() {
        assert_eq!(Pace::of(500, &DOES, None, Some(3)), pace(4_900, 1, 3, 1));
        assert_eq!(Pace::of(100_000, &DOES, None, None), pace(4_900, 21, 35, 3));
        assert_eq!(Pace::of(100_000, &DOES, Some(2_666), None), pace(2_666, 38, 35, 3));
        let slow = Throughput { connects: 140.0, messages: 800.0 };
        assert_eq!(Pace::of(1_225, &slow, None, None), pace(49, 25, 35, 3));
    }

    #[test]
    fn very_many_users_arrive_in_stages_without_arrivals_during_a_broadcast() {
        let pace = Pace::of(1_000_000, &DOES, None, None);
        let seconds = Duration::from_secs;
        assert_eq!((pace.stages, pace.arrive, pace.pause), (4, seconds(121), seconds(42)));
        assert_eq!(
            (pace.probe, pace.hold, pace.length()),
            (pace.arrive, seconds(163), seconds(647))
        );
        // All users have arrived by the end of the last stage.
        let coming = 4 * pace.arrive - 3 * pace.pause;
        assert!(coming.as_secs() * pace.per_second >= 1_000_000);
        let parsed = throng_load::scenario::Scenario::parse(&scenario(1_000_000, &pace), "scaled");
        assert_eq!(parsed.unwrap().load.len(), 8);
        assert_eq!(pace.heartbeat, seconds(36));
        assert!(!scenario(1_000_000, &pace).contains("    timeout:"));
        let more = Pace::of(2_500_000, &DOES, None, None);
        assert_eq!((more.heartbeat, more.pause), (seconds(90), seconds(106)));
        assert!(more.hold > more.heartbeat, "every user sends one");
        let text = scenario(2_500_000, &more);
        assert!(text.contains("timeout: 20s, heartbeat: 1m30s}"), "{text}");
        assert!(text.contains("    timeout: 1m46s\n"), "{text}");
        throng_load::scenario::Scenario::parse(&text, "scaled").unwrap();
    }

    #[test]
    fn a_long_run_is_shown_in_a_few_rows() {
        let moment = |joined| BroadcastResult { joined, ..BroadcastResult::default() };
        let growth: Vec<_> = (1..=60).map(|n| moment(100 * n.min(40))).collect();
        let rows: Vec<_> = shown(&growth, 4_000).iter().map(|moment| moment.joined).collect();
        assert_eq!(rows.len(), 13);
        assert_eq!(rows[..3], [100, 500, 900]);
        assert_eq!(rows[10..], [4_000; 3]);
        assert_eq!(shown(&growth[..2], 4_000).len(), 2);
        assert_eq!(shown(&growth[59..], 4_000).len(), 1);
    }

    fn lobby(joined_most: u64, missed: u64) -> Lobby {
        let mut broadcast = ProbeReport::default();
        (broadcast.counters.expected, broadcast.counters.delivered) = (1000, 1000);
        (broadcast.p50_us, broadcast.last_us) = (Some(4_000), Some(9_000));
        Lobby {
            users: 1000,
            joined_most,
            all_joined_ms: (joined_most == 1000).then_some(2_500),
            heartbeats_sent: 50,
            heartbeats_missed: missed,
            growth: vec![BroadcastResult { broadcast, ..BroadcastResult::default() }],
            ..Lobby::default()
        }
    }

    #[test]
    fn a_full_lobby_says_how_long_a_broadcast_took() {
        let sentences = verdict(&lobby(1000, 0), &Summary::default()).join("\n");
        assert!(
            sentences.contains("All 1k users were in one lobby, 2.5 s after the first"),
            "{sentences}"
        );
        assert!(
            sentences.contains(
                "A broadcast to 1k of them reached half of them in 4.00 ms and the last in 9"
            ),
            "{sentences}"
        );
        assert!(sentences.contains("All 50 heartbeats were answered"), "{sentences}");
    }

    #[test]
    fn missing_users_are_counted() {
        let sentences = verdict(&lobby(990, 2), &Summary::default()).join("\n");
        assert!(sentences.contains("At most 990 of 1k users were in the lobby"), "{sentences}");
        assert!(sentences.contains("2 of 50 heartbeats were missed"), "{sentences}");
    }
}
