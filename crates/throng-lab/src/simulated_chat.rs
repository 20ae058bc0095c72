//! The lab `simulated-chat`: users come, talk and leave at random, as in a real chat room.

use std::time::Duration;

use serde::Serialize;
use throng_base::units::show_duration;
use throng_load::scenario::Protocol;
use throng_report::render::{count, micros, or_dash, rate};
use throng_report::{Interval, ProbeReport, Summary};

use crate::error::LabError;
use crate::lab::Lab;
use crate::message_window::{self, MessageWindow};
use crate::options::LabInfo;
use crate::progress::LabProgress;
use crate::report::{LabReport, LabTable};
use crate::test_bed::{CHANNELS, NextStep};
use crate::throughput::Throughput;
use crate::user_run::{
    UserCost, UserRunSpec, delivery_sentence, errors_sentence, report, run_users,
};

pub(crate) const INFO: LabInfo = LabInfo {
    name: "simulated-chat",
    article: "Wished for by The Road to 2 Million Websocket Connections in Phoenix: users who arrive, talk and leave at random",
    summary: "rooms of 50 whose users come, talk and leave at random: what is said, heard, and how late",
    takes_rate: false,
};

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct ChatResult {
    /// Users that are there at one time, on average, when everything goes as planned.
    users: u64,
    rooms: u64,
    /// From when as many leave as come.
    steady: Option<MessageWindow>,
    connected_most: u64,
    iterations: u64,
    finished: u64,
    connect_p99_us: u64,
    probes: Vec<ProbeReport>,
    cost: UserCost,
}

pub(crate) fn run(
    lab: &Lab<'_>,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    let cpus = lab.machine.cpus;
    let does = Throughput::measure(lab, Protocol::Phoenix, progress)?;
    let easily = (does.messages_at(HEARD) as f64 / HEARD_PER_USER) as u64;
    let users = lab.users_or((DEFAULT_USERS_PER_CPU * cpus).min(easily));
    // Chance brings more at one time than there are on average.
    let most = users + users / 5 + 50;
    lab.check_fits(most)?;
    let plan = ChatPlan::of(users, lab.options.seconds);
    let text = plan.scenario();
    let spec = UserRunSpec {
        row: INFO.name,
        handler: "channels",
        target: CHANNELS,
        scenario: &text,
        users: most,
        seconds: plan.length().as_secs(),
        idle_timeout: None,
    };
    let (run, summary) = run_users(lab, &spec, progress, |_| NextStep::Continue)?;
    let chat = chat(&plan, &run.file.intervals, &summary, cpus);
    let setup = format!(
        "about {} users at one time in {} rooms: {:.1} arrive a second, stay for {:.0} s ± 100 %, a third of them say {} things each; on {cpus} CPUs",
        count(users as f64),
        plan.rooms,
        plan.arrivals_per_hour as f64 / 3600.0,
        (plan.think * THINKS).as_secs_f64(),
        THINKS - 1,
    );
    let said = (tables(&chat), verdict(&chat, &summary));
    Ok(report(&INFO, setup, said, (&run, &summary), &chat))
}

/// Who comes and what they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChatPlan {
    users: u64,
    rooms: u64,
    arrivals_per_hour: u64,
    /// Between two things that somebody says, on average.
    think: Duration,
    /// How long it is looked at once it is steady.
    steady: Duration,
}

impl ChatPlan {
    fn of(users: u64, seconds: Option<u64>) -> Self {
        let steady = Duration::from_secs(seconds.unwrap_or(STEADY_SECONDS).max(1));
        // Nobody stays for longer than the chat is looked at, so that it is steady after as long.
        let think = (steady / (2 * THINKS)).min(THINK_MOST);
        let think = Duration::from_millis(think.as_millis() as u64);
        let stay_ms = (think * THINKS).as_millis() as u64;
        Self {
            users,
            rooms: users.div_ceil(MEMBERS),
            arrivals_per_hour: (users * 3_600_000).div_ceil(stay_ms),
            think,
            steady,
        }
    }

    /// By then everybody who came at first has left.
    fn warm(&self) -> Duration {
        2 * THINKS * self.think
    }

    fn length(&self) -> Duration {
        self.warm() + self.steady
    }

    fn scenario(&self) -> String {
        let Self { rooms, arrivals_per_hour, think, .. } = self;
        let [length, stay, think] = [self.length(), *think * THINKS, *think].map(show_duration);
        let times = THINKS - 1;
        let topic = format!("rooms:${{user.id % {rooms}}}");
        let enter = format!("      - connect\n      - join: {{topic: \"{topic}\"}}\n");
        let go = format!("      - leave: {{topic: \"{topic}\"}}\n      - close\n");
        format!(
            "target: ws://127.0.0.1:4000/socket/websocket
protocol: phoenix
load:
  - arrivals: {{rate: {arrivals_per_hour}/h, for: {length}}}
users:
  reader:
    weight: 2
    user:
{enter}      - wait: {stay} ±100%
{go}  talker:
    weight: 1
    user:
{enter}      - repeat:
          times: {times}
          do:
            - wait: {think} ±100%
            - push: {{topic: \"{topic}\", event: new_msg, payload: {{body: hello}}}}
      - wait: {think} ±100%
{go}probe:
  - every: 1s
    broadcast: {{topic: \"rooms:0\", event: new_msg, payload: {{body: probe}}}}
"
        )
    }
}

fn chat(plan: &ChatPlan, intervals: &[Interval], summary: &Summary, cpus: u64) -> ChatResult {
    let [from, to] = [plan.warm(), plan.length()].map(|at| at.as_millis() as u64);
    let probes = summary.broadcast.as_ref().map_or(&[][..], |broadcast| &broadcast.probes);
    ChatResult {
        users: plan.users,
        rooms: plan.rooms,
        steady: MessageWindow::between(intervals, from, to),
        connected_most: summary.users.connected_most,
        iterations: summary.users.iterations,
        finished: summary.users.finished,
        connect_p99_us: summary.connect.latency_us.p99,
        probes: probes.to_vec(),
        cost: UserCost::of(intervals, summary, cpus),
    }
}

fn tables(chat: &ChatResult) -> Vec<LabTable> {
    let steady = message_window::table("While as many leave as come", chat.steady.as_slice());
    let mut beside = LabTable::new("Beside the article", ["", "here", "the article"]);
    for (name, here, article) in [
        ("users at one time", count(chat.connected_most as f64), "wished for, not measured"),
        ("who came", count(chat.iterations as f64), ""),
        ("who left as they wished", count(chat.finished as f64), ""),
        ("joins", or_dash(chat.steady, |talk| rate(talk.joins_per_second)), "1k/s, later 10k/s"),
        ("connect p99", micros(chat.connect_p99_us), ""),
        ("join p99", or_dash(chat.steady.and_then(|talk| talk.join_p99_us), micros), ""),
    ] {
        beside.row([name.to_owned(), here, article.to_owned()]);
    }
    chat.cost.rows(&mut beside, ["50k (silent users)", "15.6k of the machine", ""]);
    vec![steady, beside]
}

/// Sentences about what was said and heard. Pure.
fn verdict(chat: &ChatResult, summary: &Summary) -> Vec<String> {
    let mut said = Vec::new();
    said.push(match chat.steady {
        None => "It was over before as many left as came.".to_owned(),
        Some(talk) => format!(
            "{} users in {} rooms said {} and heard {}; 99 % of the answers came within {}, of the deliveries within {}.",
            count(talk.connected as f64),
            chat.rooms,
            rate(talk.said_per_second),
            rate(talk.heard_per_second),
            or_dash(talk.answer_p99_us, micros),
            or_dash(talk.delivery_p99_us, micros)
        ),
    });
    said.push(delivery_sentence(&chat.probes));
    said.push(match errors_sentence(summary) {
        None => format!("{} users came, and each left as it wished.", count(chat.finished as f64)),
        Some(errors) => errors,
    });
    said
}

/// Users of a room.
const MEMBERS: u64 = 50;
/// A talker thinks so often, and says something each time but the last.
const THINKS: u32 = 7;
/// As long as people type.
const THINK_MOST: Duration = Duration::from_secs(5);
const STEADY_SECONDS: u64 = 70;
const DEFAULT_USERS_PER_CPU: u64 = 5_000;
/// A third of the users say something every five seconds, and fifty hear it.
const HEARD_PER_USER: f64 = MEMBERS as f64 / 15.0;
/// Messages heard, for each answered one that the machine does.
const HEARD: f64 = 0.5;

#[cfg(test)]
mod tests {
    use throng_load::scenario::Scenario;

    use super::*;
    use crate::lab::assert_same_scenario;

    #[test]
    fn the_sizes_of_two_cpus_give_the_bundled_scenario() {
        let bundled = include_str!("../../../labs/simulated-chat.yaml");
        assert_same_scenario(&ChatPlan::of(10_000, None).scenario(), bundled);
    }

    #[test]
    fn as_many_come_as_are_to_be_there() {
        let plan = ChatPlan::of(7_000, Some(70));
        assert_eq!((plan.think, plan.arrivals_per_hour), (Duration::from_secs(5), 200 * 3600));
        assert_eq!((plan.rooms, plan.warm()), (140, Duration::from_secs(70)));
        for (users, seconds) in [(1, 1), (49, 3), (500_000, 600)] {
            Scenario::parse(&ChatPlan::of(users, Some(seconds)).scenario(), "scaled").unwrap();
        }
    }

    #[test]
    fn what_was_said_and_heard_is_the_first_sentence() {
        let talk = MessageWindow {
            connected: 990,
            said_per_second: 60.0,
            heard_per_second: 3_000.0,
            delivery_p99_us: Some(4_000),
            ..MessageWindow::default()
        };
        let chat =
            ChatResult { rooms: 20, finished: 300, steady: Some(talk), ..ChatResult::default() };
        let said = verdict(&chat, &Summary::default()).join("\n");
        assert!(said.contains("990 users in 20 rooms said 60/s and heard 3k/s"), "{said}");
        assert!(said.contains("of the deliveries within 4.00 ms"), "{said}");
        assert!(said.contains("300 users came, and each left as it wished"), "{said}");
    }
}
