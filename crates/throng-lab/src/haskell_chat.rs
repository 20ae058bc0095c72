//! The lab `haskell-chat`: each message goes to all users; what do 100,000, 256,000 and 500,000
//! users cost, and how long does a message to all of them take?

use std::time::Duration;

use serde::Serialize;
use throng_base::units::show_duration;
use throng_load::scenario::Protocol;
use throng_report::render::{bytes, count, micros, or_dash, rate};
use throng_report::{Interval, ProbeReport, Summary};

use crate::error::LabError;
use crate::lab::Lab;
use crate::options::LabInfo;
use crate::progress::LabProgress;
use crate::report::{LabReport, LabTable};
use crate::test_bed::{CHAT, NextStep};
use crate::throughput::Throughput;
use crate::user_run::{
    UserCost, UserRunSpec, arrivals_per_second, broadcast_seconds, delivery_cells,
    delivery_sentence, errors_sentence, report, run_users, server_cpu_us, users_by_default,
};

pub(crate) const INFO: LabInfo = LabInfo {
    name: "haskell-chat",
    article: "Haskell WebSockets and tsung (2015): a chat that broadcasts every message to all \
              users",
    summary: "a chat in three sizes, 1 : 2.56 : 5 as in the article: memory, CPU and the time of a \
              broadcast",
    takes_rate: true,
};

/// A size of the chat, and the article's results for it.
#[derive(Clone, Copy, Debug)]
struct Size {
    users: u64,
    /// Resident memory of the Haskell server, in bytes.
    rss_bytes: f64,
    /// CPU time of the Haskell server up to that size, in seconds.
    cpu_s: f64,
    broadcast: &'static str,
}

/// The article's sizes, with memory as `top` shows it, in GiB.
const SIZES: [Size; 3] = [
    Size { users: 100_000, rss_bytes: 2.656 * GIB, cpu_s: 178.5, broadcast: "" },
    Size {
        users: 256_000,
        rss_bytes: 4.714 * GIB,
        cpu_s: 418.25,
        broadcast: "10-50 ms, \"unscientific\"",
    },
    Size { users: 500_000, rss_bytes: 9.395 * GIB, cpu_s: 878.35, broadcast: "" },
];

/// The result of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Plateau {
    users: u64,
    connected: u64,
    /// Growth of the server's resident memory up to this size.
    server_rss_bytes: Option<u64>,
    /// CPU time of the server up to this size, in microseconds.
    server_cpu_us: Option<u64>,
    /// The fastest broadcast at this size.
    broadcast: Option<ProbeReport>,
}

/// The result of all sizes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Room {
    plateaus: Vec<Plateau>,
    connected_most: u64,
    connect_p99_us: u64,
    probes: Vec<ProbeReport>,
    cost: UserCost,
}

pub(crate) fn run(
    lab: &Lab<'_>,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    let cpus = lab.machine.cpus;
    let throughput = Throughput::measure(lab, Protocol::Ws, progress)?;
    let users = users_by_default(lab, DEFAULT_USERS_PER_CPU, &throughput);
    lab.check_fits(users)?;
    let pace = Pace::of(users, &throughput, lab.options.rate, lab.options.seconds);
    let text = scenario(&pace);
    let seconds = pace.length().as_secs();
    let spec = UserRunSpec {
        row: ROW,
        handler: "chat",
        target: CHAT,
        scenario: &text,
        users,
        seconds,
        idle_timeout: None,
    };
    let (run, summary) = run_users(lab, &spec, progress, |_| NextStep::Continue)?;
    let room = room(&pace, &run.file.intervals, &summary, cpus);
    let sizes = pace.sizes.map(|users| count(users as f64)).join(", ");
    let setup = format!(
        "{sizes} users arrive at {}; at each size two messages to all users, {} apart, without \
         arrivals; on {cpus} CPUs",
        rate(pace.per_second as f64),
        show_duration(pace.probe),
    );
    let results = (tables(&room), verdict(&room, &summary));
    Ok(report(&INFO, setup, results, (&run, &summary), &room))
}

/// The arrivals, the length of each size, and the time between two messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    sizes: [u64; 3],
    per_second: u64,
    /// The time to reach each size.
    ramps: [Duration; 3],
    /// The time for which each size lasts.
    holds: [Duration; 3],
    /// The time between two messages.
    probe: Duration,
}

impl Pace {
    /// Plans two messages at each size, without arrivals during their deliveries: the generator
    /// would be late for these. `period` is the least time between two messages.
    fn of(users: u64, throughput: &Throughput, rate: Option<u64>, period: Option<u64>) -> Self {
        let most = SIZES[2].users;
        let sizes = SIZES.map(|size| (size.users * users).div_ceil(most));
        let per_second = arrivals_per_second(users, throughput, rate).max(1);
        let before = [0, sizes[0], sizes[1]];
        let ramps = std::array::from_fn(|i| {
            let more = sizes[i] - before[i];
            Duration::from_millis((1000 * more).div_ceil(per_second).max(100))
        });
        let one = Duration::from_secs(broadcast_seconds(users, throughput));
        let longest = ramps.iter().max().map_or(0, |ramp| ramp.as_secs_f64().ceil() as u64);
        let probe = Duration::from_secs(longest.max(period.unwrap_or(0)).max(1)) + one;
        // A size begins after the last message of the size before, and is reached before its own
        // first message.
        let ends = |i: usize| 2 * (i as u32 + 1) * probe + one;
        let begins = |i: usize| if i == 0 { Duration::ZERO } else { ends(i - 1) };
        let holds = std::array::from_fn(|i| ends(i) - begins(i) - ramps[i]);
        Self { sizes, per_second, ramps, holds, probe }
    }

    /// Returns the moments at which each size is reached and ends, in milliseconds since the load
    /// began.
    fn plateaus(&self) -> [(u64, u64); 3] {
        let mut at = Duration::ZERO;
        std::array::from_fn(|i| {
            let from = at + self.ramps[i];
            at = from + self.holds[i];
            (from.as_millis() as u64, at.as_millis() as u64)
        })
    }

    fn length(&self) -> Duration {
        self.ramps.iter().chain(&self.holds).sum()
    }
}

fn scenario(pace: &Pace) -> String {
    let probe = show_duration(pace.probe);
    let phases: String = pace
        .sizes
        .iter()
        .zip(pace.ramps.iter().zip(&pace.holds))
        // With few users, two sizes may be equal.
        .scan(0, |before, (size, (ramp, hold))| {
            let [ramp, hold] = [*ramp, *hold].map(show_duration);
            let grows = std::mem::replace(before, *size) < *size;
            let ramp = if grows {
                format!("  - ramp: {{to: {size}, over: {ramp}}}\n")
            } else {
                String::new()
            };
            Some(format!("{ramp}  - hold: {{for: {hold}}}\n"))
        })
        .collect();
    format!(
        "target: ws://127.0.0.1:8080/
load:
{phases}user:
  - connect: {{timeout: 20s}}
  - stay
probe:
  - every: {probe}
    broadcast: {{text: hello}}
"
    )
}

fn room(pace: &Pace, intervals: &[Interval], summary: &Summary, cpus: u64) -> Room {
    let probes = summary.broadcast.as_ref().map_or(&[][..], |broadcast| &broadcast.probes);
    let plateau = |(users, (from_ms, to_ms)): (u64, (u64, u64))| {
        let at_end = intervals.iter().rev().find(|interval| {
            interval.at_ms <= to_ms && interval.load.is_some() && interval.server.is_some()
        });
        let process = at_end.and_then(|end| end.server.as_ref()).map(|server| &server.process);
        let here = |probe: &&ProbeReport| {
            (from_ms..to_ms).contains(&probe.due_ms) && probe.counters.delivered > 0
        };
        Plateau {
            users,
            connected: at_end
                .and_then(|end| end.load.as_ref())
                .map_or(0, |load| load.counters.connected),
            server_rss_bytes: process.map(|p| p.rss_bytes.saturating_sub(p.rss_bytes_at_start)),
            server_cpu_us: at_end.and_then(server_cpu_us),
            broadcast: probes.iter().filter(here).min_by_key(|probe| probe.last_us).cloned(),
        }
    };
    Room {
        plateaus: pace.sizes.into_iter().zip(pace.plateaus()).map(plateau).collect(),
        connected_most: summary.users.connected_most,
        connect_p99_us: summary.connect.latency_us.p99,
        probes: probes.to_vec(),
        cost: UserCost::of(intervals, summary, cpus),
    }
}

fn tables(room: &Room) -> Vec<LabTable> {
    let mut sizes = LabTable::new(
        "The server's cost at each size; the article's sizes are 100k, 256k and 500k",
        ["users", "connected", "memory", "each", "article", "CPU each", "article"],
    );
    let mut broadcasts = LabTable::new(
        "A message to all users: time from its intended moment to its deliveries",
        ["users", "first", "half", "99 %", "last", "missing", "the article"],
    );
    for (plateau, article) in room.plateaus.iter().zip(SIZES) {
        let each = |n: u64| n as f64 / plateau.connected.max(1) as f64;
        let users = article.users as f64;
        let ms = |us: f64| format!("{:.2} ms", us / 1000.0);
        sizes.row([
            count(plateau.users as f64),
            count(plateau.connected as f64),
            or_dash(plateau.server_rss_bytes, |n| bytes(n as f64)),
            or_dash(plateau.server_rss_bytes, |n| bytes(each(n))),
            bytes(article.rss_bytes / users),
            or_dash(plateau.server_cpu_us, |us| ms(each(us))),
            ms(article.cpu_s * 1e6 / users),
        ]);
        let [first, half, most, last] = plateau
            .broadcast
            .as_ref()
            .map_or_else(|| [(); 4].map(|()| "-".to_owned()), delivery_cells);
        let missing = plateau.broadcast.as_ref().map(|probe| probe.counters.missing);
        let missing = or_dash(missing, |n| n.to_string());
        let users = count(plateau.users as f64);
        broadcasts.row([users, first, half, most, last, missing, article.broadcast.to_owned()]);
    }
    let mut beside =
        LabTable::new("Beside the article", ["", "here", "the article, 4 cores, 16 GB"]);
    for (name, here, article) in [
        ("users", count(room.connected_most as f64), "500k, then tsung crashed"),
        ("connect p99", micros(room.connect_p99_us), ""),
    ] {
        beside.row([name.to_owned(), here, article.to_owned()]);
    }
    // The article: 500,000 users on 4 cores, with 9.395 GiB of the server.
    room.cost.rows(&mut beside, ["125k", "49.6k", "19.7 KiB"]);
    room.cost.cpu_rows(&mut beside);
    vec![sizes, broadcasts, beside]
}

/// Returns the sentences of the verdict.
fn verdict(room: &Room, summary: &Summary) -> Vec<String> {
    let mut sentences = Vec::new();
    let short: Vec<_> =
        room.plateaus.iter().filter(|plateau| plateau.connected < plateau.users).collect();
    sentences.push(match short[..] {
        [] => format!("All {} users were connected.", count(room.connected_most as f64)),
        [first, ..] => {
            format!("Only {} of {} users were connected.", first.connected, first.users)
        }
    });
    if let Some(Plateau { users, broadcast: Some(probe), .. }) = room.plateaus.last() {
        sentences.push(format!(
            "A message to {} of them reached half of them in {} and the last in {}.",
            count(*users as f64),
            or_dash(probe.p50_us, micros),
            or_dash(probe.last_us, micros)
        ));
    }
    if let Some(here) = room.cost.server_bytes_each {
        let article = SIZES[2].rss_bytes / SIZES[2].users as f64;
        sentences.push(format!(
            "The server needed {} of memory per user, the Haskell server {:.0} times as much.",
            bytes(here),
            article / here
        ));
    }
    sentences.push(delivery_sentence(&room.probes));
    sentences.extend(errors_sentence(summary));
    sentences
}

const ROW: &str = "haskell-chat";
const GIB: f64 = (1u64 << 30) as f64;
/// The default users per CPU: the lab then takes about a minute on two CPUs.
const DEFAULT_USERS_PER_CPU: u64 = 50_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::assert_same_scenario;

    #[test]
    fn the_article_s_sizes_give_the_bundled_scenario() {
        let pace = Pace {
            sizes: SIZES.map(|size| size.users),
            per_second: 1000,
            ramps: [100, 156, 244].map(Duration::from_secs),
            holds: [30; 3].map(Duration::from_secs),
            probe: Duration::from_secs(10),
        };
        let bundled = include_str!("../../../labs/haskell-chat.yaml");
        assert_same_scenario(&scenario(&pace), bundled);
    }

    #[test]
    fn sizes_keep_their_proportion_and_each_has_two_messages() {
        let throughput = Throughput { connects: 16_000.0, messages: 80_000.0 };
        let pace = Pace::of(1_000, &throughput, None, Some(3));
        assert_eq!(pace.sizes, [200, 512, 1000]);
        let one = broadcast_seconds(1_000, &throughput) * 1_000;
        for (i, (from, to)) in pace.plateaus().into_iter().enumerate() {
            let due: Vec<_> = (1..=6).map(|k| k * pace.probe.as_millis() as u64).collect();
            let here = due.iter().filter(|at| (from..to).contains(*at)).count();
            assert_eq!(here, 2, "{from}..{to}");
            let comes = from - pace.ramps[i].as_millis() as u64..from;
            assert!(due.iter().all(|at| at + one <= comes.start || *at >= comes.end), "{comes:?}");
        }
        assert_eq!(pace.length(), Duration::from_millis(pace.plateaus()[2].1));
        for users in [1, 2, 7, 999_999] {
            let text = scenario(&Pace::of(users, &throughput, None, None));
            throng_load::scenario::Scenario::parse(&text, "scaled").unwrap();
        }
    }

    #[test]
    fn missing_users_are_counted() {
        let plateau = |users, connected| Plateau { users, connected, ..Plateau::default() };
        let room = Room {
            plateaus: vec![plateau(100, 100), plateau(200, 150), plateau(500, 499)],
            ..Room::default()
        };
        let sentences = verdict(&room, &Summary::default()).join("\n");
        assert!(sentences.contains("Only 150 of 200 users were connected"), "{sentences}");
    }
}
