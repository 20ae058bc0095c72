//! The labs `one-room` and `many-rooms`: x users send y messages, in one room or in rooms of 1,000.
//! At how many deliveries per second do messages begin to be late?

use std::time::Duration;

use serde::Serialize;
use throng_base::units::show_duration;
use throng_load::scenario::Protocol;
use throng_report::render::{count, micros, or_dash, rate};
use throng_report::runfile::RunFile;
use throng_report::{Interval, LoadInterval, ProbeReport, Summary};

use crate::error::LabError;
use crate::knee::{CEILING_US, FLOOR_US, Knee, POINTS_UP, Point, TIMES_BASELINE, knee};
use crate::lab::Lab;
use crate::measure::{valid_until, validity_until};
use crate::message_window::{self, MessageWindow};
use crate::options::{LabInfo, LabOptions};
use crate::progress::LabProgress;
use crate::report::{LabReport, LabTable};
use crate::test_bed::{CHANNELS, NextStep};
use crate::throughput::Throughput;
use crate::user_run::{
    UserCost, UserRunSpec, arrivals_per_second, delivery_sentence, errors_sentence, report,
    run_users, users_by_default,
};

pub(crate) const ONE_ROOM: LabInfo = LabInfo {
    name: "one-room",
    article: "A test that The Road to 2 Million Websocket Connections in Phoenix proposes: one \
              channel, x users sending y messages",
    summary: "all users in one room, more and more messages: deliveries a second until they are \
              late",
    takes_rate: true,
};

pub(crate) const MANY_ROOMS: LabInfo = LabInfo {
    name: "many-rooms",
    article: "A test that The Road to 2 Million Websocket Connections in Phoenix proposes: x \
              channels with 1,000 users sending y messages",
    summary: "rooms of 1,000 users, more and more messages: deliveries a second until they are \
              late",
    takes_rate: true,
};

/// The lab's result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct RoomsResult {
    users: u64,
    rooms: u64,
    members: u64,
    joined_most: u64,
    /// The growing part of the run, in at most five windows.
    parts: Vec<MessageWindow>,
    /// Deliveries per second that were due before they became late; none if they never did.
    late_from: Option<f64>,
    /// The moment until which neither deliveries nor the generator were late; none if that is the
    /// end of the load.
    in_time_until_ms: Option<u64>,
    /// True when the generator was late first.
    is_the_generators: bool,
    heard_most_per_second: f64,
    probes: Vec<ProbeReport>,
    cost: UserCost,
}

pub(crate) fn one_room(
    lab: &Lab<'_>,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    run(&ONE_ROOM, lab, |users| users, progress)
}

pub(crate) fn many_rooms(
    lab: &Lab<'_>,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    run(&MANY_ROOMS, lab, |users| ROOM.min(users), progress)
}

fn run(
    info: &LabInfo,
    lab: &Lab<'_>,
    members: fn(u64) -> u64,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    let cpus = lab.machine.cpus;
    let throughput = Throughput::measure(lab, Protocol::Phoenix, progress)?;
    let per_cpu = if info.name == ONE_ROOM.name { ONE_ROOM_PER_CPU } else { MANY_ROOMS_PER_CPU };
    let users = users_by_default(lab, per_cpu, &throughput);
    lab.check_fits(users)?;
    let plan = RoomsPlan::of(users, members(users), &throughput, lab.options);
    let text = plan.scenario();
    let spec = UserRunSpec {
        row: info.name,
        handler: "channels",
        target: CHANNELS,
        scenario: &text,
        users,
        seconds: (plan.ramp + plan.hold()).as_secs(),
        idle_timeout: None,
    };
    let mut watch = LatenessWatch::new(&plan);
    let (run, summary) = run_users(lab, &spec, progress, |interval| watch.add(interval))?;
    let found = found(&plan, &run.file, &summary, cpus);
    // Messages that are due later only queue up, in server and generator.
    let validity = validity_until(&run.file, found.in_time_until_ms.unwrap_or(u64::MAX));
    let summary = Summary { validity, ..summary };
    let setup = format!(
        "{} users in {} of {}; {} of them send {} to {} messages a second in all, growing for {}; \
         on {cpus} CPUs",
        count(users as f64),
        if plan.rooms == 1 { "one room".to_owned() } else { format!("{} rooms", plan.rooms) },
        count(plan.members as f64),
        plan.talkers,
        count(plan.messages_per_second(0)),
        count(plan.messages_per_second(1)),
        show_duration(plan.grows),
    );
    let results = (tables(&found), verdict(&found, &summary));
    let mut report = report(info, setup, results, (&run, &summary), &found);
    report.notes.push(format!(
        "deliveries are late from the first second of at least {POINTS_UP} whose p99 is above \
         {TIMES_BASELINE} times the baseline (the median p99 of the first quarter) and above {}, \
         or above {}",
        micros(FLOOR_US),
        micros(CEILING_US)
    ));
    Ok(report)
}

/// The users of a run and their messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RoomsPlan {
    users: u64,
    rooms: u64,
    /// Users per room.
    members: u64,
    /// Users that send messages.
    talkers: u64,
    /// Messages of a talker per hour, at the beginning and at the end of the growth.
    per_hour: [u64; 2],
    ramp: Duration,
    grows: Duration,
}

impl RoomsPlan {
    /// Divides the users into equal rooms of at most `members`. The messages grow from a tenth of
    /// the machine's limit to more than the limit.
    fn of(users: u64, members: u64, throughput: &Throughput, options: &LabOptions) -> Self {
        let rooms = users.div_ceil(members.max(1));
        let members = users.div_ceil(rooms);
        let said_at_end = throughput.messages_at(DELIVERIES).div_ceil(members.max(1));
        let arrivals = arrivals_per_second(users, throughput, options.rate).max(1);
        // A talker sends at most ten messages per second.
        let talkers = said_at_end.div_ceil(10).clamp(1, (users / 2).max(1));
        let at_end = (said_at_end * 3600).div_ceil(talkers);
        Self {
            users,
            rooms,
            members,
            talkers,
            per_hour: [(at_end / 10).max(1), at_end],
            ramp: Duration::from_secs(users.div_ceil(arrivals).max(1)),
            grows: Duration::from_secs(options.seconds.unwrap_or(30).max(2)),
        }
    }

    /// Returns the time after the ramp. The last talker arrives at the end of the ramp, waits for
    /// as long as the ramp, and then sends its messages.
    fn hold(&self) -> Duration {
        self.ramp + self.grows + Duration::from_secs(1)
    }

    /// Returns the messages per second of all talkers, at the beginning (0) or at the end (1).
    fn messages_per_second(&self, end: usize) -> f64 {
        (self.talkers * self.per_hour[end]) as f64 / 3600.0
    }

    /// Returns the moment when half of the talkers have begun, in milliseconds since the load
    /// began. The messages grow from there on.
    fn grows_from_ms(&self) -> u64 {
        (self.ramp + self.ramp / 2).as_millis() as u64
    }

    fn scenario(&self) -> String {
        let Self { users, rooms, talkers, per_hour: [from, to], .. } = *self;
        let [ramp, hold, grows] = [self.ramp, self.hold(), self.grows].map(show_duration);
        let topic = match rooms {
            1 => "rooms:0".to_owned(),
            _ => format!("rooms:${{user.id % {rooms}}}"),
        };
        let enter = format!(
            "      - connect: {{timeout: 20s}}\n      \
             - join: {{topic: \"{topic}\", timeout: 20s}}\n"
        );
        let listeners = match users - talkers {
            0 => String::new(),
            some => format!("  listener:\n    weight: {some}\n    user:\n{enter}      - stay\n"),
        };
        format!(
            "target: ws://127.0.0.1:4000/socket/websocket
protocol: phoenix
load:
  - ramp: {{to: {users}, over: {ramp}}}
  - hold: {{for: {hold}}}
users:
{listeners}  talker:
    weight: {talkers}
    user:
{enter}      - wait: {ramp}
      - every:
          rate: {{from: {from}/h, to: {to}/h, over: {grows}}}
          for: {grows}
          do:
            - push: {{topic: \"{topic}\", event: new_msg, payload: {{body: hello}}}}
      - stay
probe:
  - every: 1s
    broadcast: {{topic: \"rooms:0\", event: new_msg, payload: {{body: probe}}}}
"
        )
    }
}

/// Ends the load when messages are certainly late.
struct LatenessWatch {
    members: u64,
    grows_from_ms: u64,
    before: Option<LoadInterval>,
    points: Vec<Point>,
}

impl LatenessWatch {
    fn new(plan: &RoomsPlan) -> Self {
        let (members, grows_from_ms) = (plan.members, plan.grows_from_ms());
        Self { members, grows_from_ms, before: None, points: Vec::new() }
    }

    fn add(&mut self, interval: &Interval) -> NextStep {
        let Some(now) = &interval.load else { return NextStep::Continue };
        let before = self.before.replace(now.clone());
        if interval.at_ms < self.grows_from_ms || now.is_leaving() {
            return NextStep::Continue;
        }
        if let Some(before) = before.filter(|_| !now.latencies().broadcast.is_empty()) {
            self.points.push(point(self.members, &before, (interval, now)));
        }
        let last_ms = self.points.last().map_or(0, |point| point.at_ms);
        let is_certain = |knee: Knee| last_ms >= knee.at_ms + 1000 * POINTS_UP as u64;
        let enough = self.points.len() >= POINTS_LEAST;
        if enough && knee(&self.points).is_some_and(is_certain) {
            NextStep::Stop
        } else {
            NextStep::Continue
        }
    }
}

fn found(plan: &RoomsPlan, run: &RunFile, summary: &Summary, cpus: u64) -> RoomsResult {
    let intervals = &run.intervals;
    let (from, grows) = (plan.grows_from_ms(), plan.grows.as_millis() as u64);
    // Each part has at least two seconds.
    let parts = (grows / 2000).clamp(1, PARTS_MOST);
    let part = |i: u64| {
        MessageWindow::between(intervals, from + grows * i / parts, from + grows * (i + 1) / parts)
    };
    let growing: Vec<_> = intervals
        .iter()
        .filter(|interval| (from..=from + grows).contains(&interval.at_ms))
        .filter_map(|interval| interval.load.as_ref().map(|load| (interval, load)))
        .collect();
    // A second without a delivered probe does not show the delay; the second of its delivery does.
    let points: Vec<_> = growing
        .windows(2)
        .filter(|pair| !pair[1].1.broadcast.is_empty())
        .map(|pair| point(plan.members, pair[0].1, pair[1]))
        .collect();
    let knee = knee(&points).map(|knee| (knee.at_ms.saturating_sub(1), knee.rate));
    let due_until = |until_ms: u64| {
        let before = points.iter().filter(|point| point.at_ms <= until_ms);
        before.map(|point| point.intended_rate).fold(0.0, f64::max)
    };
    let late = valid_until(run).map(|until_ms| (until_ms, due_until(until_ms)));
    let is_the_generators = late.is_some_and(|late| knee.is_none_or(|knee| late.0 < knee.0));
    let first = if is_the_generators { late } else { knee };
    let probes = summary.broadcast.as_ref().map_or(&[][..], |broadcast| &broadcast.probes);
    RoomsResult {
        users: plan.users,
        rooms: plan.rooms,
        members: plan.members,
        joined_most: summary.users.joined_most,
        parts: (0..parts).filter_map(part).collect(),
        late_from: first.map(|(_, rate)| rate),
        in_time_until_ms: first.map(|(until_ms, _)| until_ms),
        is_the_generators,
        heard_most_per_second: summary.message.received_rate_most.unwrap_or(0.0),
        probes: probes.to_vec(),
        cost: UserCost::of(intervals, summary, cpus),
    }
}

/// Returns the point of an interval, in deliveries: each message goes to every member of its room.
fn point(
    members: u64,
    before: &LoadInterval,
    (interval, now): (&Interval, &LoadInterval),
) -> Point {
    let seconds = interval.span_ms.max(1) as f64 / 1000.0;
    let grown = now.counters.since(&before.counters);
    Point {
        at_ms: interval.at_ms,
        intended_rate: (grown.turns_intended * members) as f64 / seconds,
        rate: grown.messages_received as f64 / seconds,
        p99_us: Some(now.latencies().broadcast.percentile(99.0)),
    }
}

fn tables(found: &RoomsResult) -> Vec<LabTable> {
    let parts = message_window::table("As the messages grow", &found.parts);
    let mut beside = LabTable::new("Beside the article", ["", "here", "the article"]);
    for (name, here, article) in [
        ("users", count(found.joined_most as f64), "proposed, not measured"),
        ("rooms", count(found.rooms as f64), ""),
        (
            "deliveries, best second",
            rate(found.heard_most_per_second),
            "2M/s: one message to 2M, 40 cores",
        ),
        (
            "best second, per core",
            rate(
                found.heard_most_per_second * found.cost.users_per_cpu
                    / found.joined_most.max(1) as f64,
            ),
            "50k/s",
        ),
        ("deliveries, most in time", or_dash(found.late_from, rate), ""),
    ] {
        beside.row([name.to_owned(), here, article.to_owned()]);
    }
    found.cost.rows(&mut beside, ["50k (one message to all)", "15.6k of the machine", ""]);
    vec![parts, beside]
}

/// Returns the sentences of the verdict.
fn verdict(found: &RoomsResult, summary: &Summary) -> Vec<String> {
    let mut sentences = Vec::new();
    if found.joined_most < found.users {
        sentences.push(format!(
            "Only {} of {} users were in their rooms.",
            found.joined_most, found.users
        ));
    }
    let worst = found.parts.iter().filter_map(|part| part.delivery_p99_us).max();
    sentences.push(match found.late_from {
        Some(due) => format!(
            "Messages are delivered in time up to {} deliveries, {} messages to {} users each; \
             beyond that {} late.",
            rate(due),
            rate(due / found.members.max(1) as f64),
            count(found.members as f64),
            if found.is_the_generators { "the generator itself is" } else { "they are" },
        ),
        None => format!(
            "Messages were delivered in time to the end of the load: {} deliveries in the best \
             second, p99 at most {}.",
            rate(found.heard_most_per_second),
            or_dash(worst, micros)
        ),
    });
    sentences.push(delivery_sentence(&found.probes));
    sentences.extend(errors_sentence(summary));
    sentences
}

/// Users of a room in `many-rooms`, as the article proposes.
const ROOM: u64 = 1_000;
const ONE_ROOM_PER_CPU: u64 = 1_000;
const MANY_ROOMS_PER_CPU: u64 = 10_000;
/// Deliveries for each answered message that the machine can do: more than its limit.
const DELIVERIES: f64 = 2.5;
/// The fewest seconds that give a baseline.
const POINTS_LEAST: usize = 12;
const PARTS_MOST: u64 = 5;

#[cfg(test)]
mod tests {
    use throng_load::scenario::Scenario;

    use super::*;
    use crate::lab::assert_same_scenario;

    #[test]
    fn the_sizes_of_two_cpus_give_the_bundled_scenarios() {
        let throughput = Throughput { connects: 20_000.0, messages: 80_000.0 };
        let options = LabOptions { seconds: Some(30), ..LabOptions::default() };
        let one = RoomsPlan::of(2_000, 2_000, &throughput, &options).scenario();
        assert_same_scenario(&one, include_str!("../../../labs/one-room.yaml"));
        let many = RoomsPlan::of(20_000, 1_000, &throughput, &options).scenario();
        assert_same_scenario(&many, include_str!("../../../labs/many-rooms.yaml"));
    }

    #[test]
    fn any_size_is_a_scenario() {
        for (users, members) in [(1, 1), (2, 2), (500, 500), (1_500, 1_000), (1_000_000, 1_000_000)]
        {
            for (connects, messages) in [(90.0, 500.0), (1e6, 9e6)] {
                let throughput = Throughput { connects, messages };
                let plan = RoomsPlan::of(users, members, &throughput, &LabOptions::default());
                assert!(
                    plan.talkers <= users
                        && plan.messages_per_second(0) < plan.messages_per_second(1),
                    "{plan:?}"
                );
                Scenario::parse(&plan.scenario(), "scaled").unwrap();
            }
        }
    }

    #[test]
    fn late_messages_are_in_the_verdict_with_both_rates() {
        let found = RoomsResult {
            users: 1000,
            joined_most: 1000,
            members: 500,
            late_from: Some(60_000.0),
            ..RoomsResult::default()
        };
        let sentences = verdict(&found, &Summary::default()).join("\n");
        assert!(
            sentences.contains("up to 60k/s deliveries, 120/s messages to 500 users"),
            "{sentences}"
        );
        let late = RoomsResult { is_the_generators: true, ..found.clone() };
        let sentences = verdict(&late, &Summary::default()).join("\n");
        assert!(sentences.contains("beyond that the generator itself is late"), "{sentences}");
        let sentences =
            verdict(&RoomsResult { late_from: None, ..found }, &Summary::default()).join("\n");
        assert!(sentences.contains("to the end of the load"), "{sentences}");
    }
}
