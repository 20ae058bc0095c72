//! The lab `phoenix-2m`: users arrive and join one lobby; does everybody get in, and how long does a broadcast to
//! all of them take as they become more?

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
    summary: "users arrive and join one lobby, as many as fit: who gets in, and how long a broadcast to all takes",
    takes_rate: true,
};

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Lobby {
    users: u64,
    arrivals_per_second: u64,
    connected_most: u64,
    joined_most: u64,
    /// When the last of them had joined, in milliseconds since the run began; none when not all did.
    all_joined_ms: Option<u64>,
    connect_p99_us: u64,
    join_p99_us: u64,
    heartbeats_sent: u64,
    heartbeats_missed: u64,
    growth: Vec<BroadcastResult>,
    cost: UserCost,
}

/// A broadcast, and who was there.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct BroadcastResult {
    /// Users that should have come by then.
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
    let does = Throughput::measure(lab, Protocol::Phoenix, progress)?;
    let users = users_by_default(lab, DEFAULT_USERS_PER_CPU, &does);
    lab.check_fits(users)?;
    let pace = Pace::of(users, &does, lab.options.rate, lab.options.seconds);
    let text = scenario(users, &pace);
    let seconds = pace.length().as_secs();
    let spec = UserRunSpec {
        row: ROW,
        handler: "channels",
        target: CHANNELS,
        scenario: &text,
        users,
        seconds,
        // A server that hears of somebody once in a heartbeat must not take the first that is late for the last.
        idle_timeout: (pace.heartbeat > HEARTBEAT).then_some(2 * pace.heartbeat),
    };
    let (run, summary) = run_users(lab, &spec, progress, |_| NextStep::Continue)?;
    let lobby = lobby(users, &pace, &run.file.intervals, &summary, cpus);
    let setup = format!(
        "{} users arrive at {}{}, each joins rooms:lobby and stays, with a heartbeat every {}; a broadcast every {}; on {cpus} CPUs",
        count(users as f64),
        rate(pace.per_second as f64),
        pace.pauses(),
        show_duration(pace.heartbeat),
        show_duration(pace.probe),
    );
    let said = (tables(&lobby), verdict(&lobby, &summary));
    Ok(report(&INFO, setup, said, (&run, &summary), &lobby))
}

/// How fast they come, how long they stay, how often there is a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    per_second: u64,
    /// In how many stages they come.
    stages: u32,
    /// How long they come in the first stage: until the first broadcast.
    arrive: Duration,
    /// How long nobody comes after that, and after each further stage but the last.
    pause: Duration,
    hold: Duration,
    /// Each stage ends with a broadcast.
    probe: Duration,
    /// The time between two of a user's heartbeats.
    heartbeat: Duration,
}

impl Pace {
    /// A broadcast about ten times while they come, though none before the one before it is over, and two or more of
    /// them to everybody. Very many leave little time beside their heartbeats (a million send 33,000 a second), and a
    /// machine that is late for connects has them tried again: they come in four stages, and nobody comes during a broadcast. Even more of
    /// them have their heartbeats less often than phoenix.js does, so that these take no more of the CPUs than half.
    fn of(users: u64, does: &Throughput, rate: Option<u64>, hold: Option<u64>) -> Self {
        let per_second = arrivals_per_second(users, does, rate);
        let arrive = users.div_ceil(per_second).max(1);
        let one = broadcast_seconds(users, does);
        let (stages, pause) = if users > MANY { (STAGES, 2 * one) } else { (1, 0) };
        let arrive =
            (arrive + (u64::from(stages) - 1) * pause).div_ceil(u64::from(stages)).max(pause + 1);
        let probe = if stages > 1 { arrive } else { (arrive / 10).max(one).max(1) };
        let heartbeat = HEARTBEAT.as_secs().max(users.div_ceil(does.messages_at(HEARTBEATS)));
        let hold = hold
            .unwrap_or(heartbeat + 5)
            .max(2 * one + if stages > 1 { probe } else { 2 * probe - one });
        let [arrive, pause, hold, probe, heartbeat] =
            [arrive, pause, hold, probe, heartbeat].map(Duration::from_secs);
        Self { per_second, stages, arrive, pause, hold, probe, heartbeat }
    }

    /// From the first arrival to the end.
    fn length(&self) -> Duration {
        self.arrive * self.stages + self.hold
    }

    fn pauses(&self) -> String {
        match self.stages {
            1 => String::new(),
            stages => format!(
                " in {stages} stages, with {} for a broadcast after each",
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
    // Nobody comes, and nothing else is said, while a broadcast is under way: it may take that long.
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

/// The stages: a broadcast is due at the end of each, when a pause begins.
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
    // Who leaves at the end is no longer there to be counted.
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

/// The last broadcast that everybody who should come was there for; else the largest.
fn to_all(lobby: &Lobby) -> Option<&ProbeReport> {
    let probes = lobby.growth.iter().map(|moment| &moment.broadcast);
    probes.max_by_key(|probe| (probe.counters.expected, probe.counters.delivered))
}

/// Some of them: while users come, ten or so, evenly; of those after, the first, one in the midst, and the last.
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
        "As they become more: who is there, and how long after it was due a broadcast reached them",
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
        "broadcast to all, the last has it",
        to_all(lobby).map_or_else(|| "-".to_owned(), last),
        "5 s at 1.3M, then 1-2 s; 1 s at 2M",
    );
    row("heartbeats missed", lobby.heartbeats_missed.to_string(), "");
    // 2 million on 40 cores and 128 GB; 450,000 on 4 cores and 15 GB were 112.5k a core and 30k a gigabyte.
    let article = ["50k (112.5k on 4 cores)", "15.6k of the machine (30k on 15 GB)", ""];
    lobby.cost.rows(&mut beside, article);
    lobby.cost.cpu_rows(&mut beside);
    vec![growth, beside]
}

/// Sentences about who got in. Pure.
fn verdict(lobby: &Lobby, summary: &Summary) -> Vec<String> {
    let mut said = Vec::new();
    let users = count(lobby.users as f64);
    said.push(match lobby.all_joined_ms {
        Some(ms) => format!(
            "All {users} users were in one lobby, {:.1} s after the first; p99 of a join {}.",
            ms as f64 / 1000.0,
            micros(lobby.join_p99_us)
        ),
        None => format!("{} of {users} users were in the lobby at most.", lobby.joined_most),
    });
    if let Some(probe) = to_all(lobby) {
        said.push(format!(
            "A broadcast to {} of them took {} for half, {} for the last.",
            count(probe.counters.expected as f64),
            or_dash(probe.p50_us, micros),
            or_dash(probe.last_us, micros)
        ));
    }
    let probes: Vec<_> = lobby.growth.iter().map(|moment| moment.broadcast.clone()).collect();
    said.push(delivery_sentence(&probes));
    said.push(match (lobby.heartbeats_sent, lobby.heartbeats_missed) {
        (0, _) => "The run was too short for a heartbeat.".to_owned(),
        (sent, 0) => format!("All {} heartbeats were kept.", count(sent as f64)),
        (sent, missed) => format!("{missed} of {sent} heartbeats were missed."),
    });
    said.extend(errors_sentence(summary));
    said
}

const ROW: &str = "phoenix-2m";
const ROWS_MOST: usize = 10;
const STAGES: u32 = 4;
/// Done in a minute or so on two CPUs; a million takes ten.
const DEFAULT_USERS_PER_CPU: u64 = 50_000;
/// That of phoenix.js, and of users of a scenario that names none.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// That of a probe that names none.
const PROBE_TIMEOUT: Duration = Duration::from_secs(60);
/// Of the messages that the machine does.
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

    /// What two CPUs did once.
    const DOES: Throughput = Throughput { connects: 14_000.0, messages: 80_000.0 };

    #[test]
    fn two_broadcasts_are_never_under_way_and_two_reach_everybody() {
        assert_eq!(Pace::of(500, &DOES, None, Some(3)), pace(4_900, 1, 3, 1));
        assert_eq!(Pace::of(100_000, &DOES, None, None), pace(4_900, 21, 35, 3));
        assert_eq!(Pace::of(100_000, &DOES, Some(2_666), None), pace(2_666, 38, 35, 3));
        let slow = Throughput { connects: 140.0, messages: 800.0 };
        assert_eq!(Pace::of(1_225, &slow, None, None), pace(49, 25, 35, 3));
    }

    #[test]
    fn very_many_come_in_stages_and_nobody_comes_during_a_broadcast() {
        let pace = Pace::of(1_000_000, &DOES, None, None);
        let seconds = Duration::from_secs;
        assert_eq!((pace.stages, pace.arrive, pace.pause), (4, seconds(121), seconds(42)));
        assert_eq!(
            (pace.probe, pace.hold, pace.length()),
            (pace.arrive, seconds(163), seconds(647))
        );
        // Everybody has come by the end of the last stage.
        let coming = 4 * pace.arrive - 3 * pace.pause;
        assert!(coming.as_secs() * pace.per_second >= 1_000_000);
        let parsed = throng_load::scenario::Scenario::parse(&scenario(1_000_000, &pace), "scaled");
        assert_eq!(parsed.unwrap().load.len(), 8);
        assert_eq!(pace.heartbeat, seconds(36));
        assert!(!scenario(1_000_000, &pace).contains("    timeout:"));
        let more = Pace::of(2_500_000, &DOES, None, None);
        assert_eq!((more.heartbeat, more.pause), (seconds(90), seconds(106)));
        assert!(more.hold > more.heartbeat, "everybody has one");
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
        let said = verdict(&lobby(1000, 0), &Summary::default()).join("\n");
        assert!(said.contains("All 1k users were in one lobby, 2.5 s after the first"), "{said}");
        assert!(
            said.contains("A broadcast to 1k of them took 4.00 ms for half, 9.00 ms"),
            "{said}"
        );
        assert!(said.contains("All 50 heartbeats were kept"), "{said}");
    }

    #[test]
    fn who_is_missing_is_counted() {
        let said = verdict(&lobby(990, 2), &Summary::default()).join("\n");
        assert!(said.contains("990 of 1k users were in the lobby at most"), "{said}");
        assert!(said.contains("2 of 50 heartbeats were missed"), "{said}");
    }
}
