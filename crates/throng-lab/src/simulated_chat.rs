//! The lab `simulated-chat`: users arrive, send messages and leave at random, as in a real chat
//! room.

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
    article: "A test that The Road to 2 Million Websocket Connections in Phoenix proposes: users \
              arrive, talk and leave at random",
    summary: "rooms of 50 whose users arrive, talk and leave at random: messages, deliveries and \
              their latency",
    takes_rate: false,
};

/// The lab's result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct ChatResult {
    /// The planned average of simultaneous users.
    users: u64,
    rooms: u64,
    /// The window in which as many users leave as arrive.
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
    let throughput = Throughput::measure(lab, Protocol::Phoenix, progress)?;
    let easily = (throughput.messages_at(HEARD) as f64 / HEARD_PER_USER) as u64;
    let users = lab.users_or((DEFAULT_USERS_PER_CPU * cpus).min(easily));
    // Random arrivals bring more users at one time than the average.
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
        "about {} users at one time in {} rooms: {:.1} arrive a second and stay for {:.0} s ± 100 \
         %, a third of them send {} messages each; on {cpus} CPUs",
        count(users as f64),
        plan.rooms,
        plan.arrivals_per_hour as f64 / 3600.0,
        (plan.think * THINKS).as_secs_f64(),
        THINKS - 1,
    );
    let results = (tables(&chat), verdict(&chat, &summary));
    Ok(report(&INFO, setup, results, (&run, &summary), &chat))
}

/// The users of a run and their messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChatPlan {
    users: u64,
    rooms: u64,
    arrivals_per_hour: u64,
    /// The average time between two messages of a user.
    think: Duration,
    /// The length of the measurement, in which as many users leave as arrive.
    steady: Duration,
}

impl ChatPlan {
    fn of(users: u64, seconds: Option<u64>) -> Self {
        let steady = Duration::from_secs(seconds.unwrap_or(STEADY_SECONDS).max(1));
        // No user stays longer than the measurement, so the chat is steady after the same time.
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

    /// Returns the time after which the first users have left.
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
    let steady = message_window::table("While as many leave as arrive", chat.steady.as_slice());
    let mut beside = LabTable::new("Beside the article", ["", "here", "the article"]);
    for (name, here, article) in [
        ("users at one time", count(chat.connected_most as f64), "proposed, not measured"),
        ("users arrived", count(chat.iterations as f64), ""),
        ("users that left as planned", count(chat.finished as f64), ""),
        ("joins", or_dash(chat.steady, |chat| rate(chat.joins_per_second)), "1k/s, later 10k/s"),
        ("connect p99", micros(chat.connect_p99_us), ""),
        ("join p99", or_dash(chat.steady.and_then(|chat| chat.join_p99_us), micros), ""),
    ] {
        beside.row([name.to_owned(), here, article.to_owned()]);
    }
    chat.cost.rows(&mut beside, ["50k (silent users)", "15.6k of the machine", ""]);
    vec![steady, beside]
}

/// Returns the sentences of the verdict.
fn verdict(chat: &ChatResult, summary: &Summary) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.push(match chat.steady {
        None => "The run ended before as many users left as arrived.".to_owned(),
        Some(steady) => format!(
            "{} users in {} rooms sent {} messages and received {}; 99 % of the answers arrived \
             within {}, 99 % of the deliveries within {}.",
            count(steady.connected as f64),
            chat.rooms,
            rate(steady.said_per_second),
            rate(steady.heard_per_second),
            or_dash(steady.answer_p99_us, micros),
            or_dash(steady.delivery_p99_us, micros)
        ),
    });
    sentences.push(delivery_sentence(&chat.probes));
    sentences.push(match errors_sentence(summary) {
        None => format!("{} users arrived, and each left as planned.", count(chat.finished as f64)),
        Some(errors) => errors,
    });
    sentences
}

/// Users of a room.
const MEMBERS: u64 = 50;
/// The waits of a talker, which sends a message after each but the last.
const THINKS: u32 = 7;
/// The longest average wait: as long as people type.
const THINK_MOST: Duration = Duration::from_secs(5);
const STEADY_SECONDS: u64 = 70;
const DEFAULT_USERS_PER_CPU: u64 = 5_000;
/// Deliveries per user and second: a third of the users send a message every five seconds, and
/// fifty users receive it.
const HEARD_PER_USER: f64 = MEMBERS as f64 / 15.0;
/// Deliveries for each answered message that the machine can do.
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
    fn the_arrivals_give_the_planned_users() {
        let plan = ChatPlan::of(7_000, Some(70));
        assert_eq!((plan.think, plan.arrivals_per_hour), (Duration::from_secs(5), 200 * 3600));
        assert_eq!((plan.rooms, plan.warm()), (140, Duration::from_secs(70)));
        for (users, seconds) in [(1, 1), (49, 3), (500_000, 600)] {
            Scenario::parse(&ChatPlan::of(users, Some(seconds)).scenario(), "scaled").unwrap();
        }
    }

    #[test]
    fn the_first_sentence_has_the_messages_sent_and_received() {
        let steady = MessageWindow {
            connected: 990,
            said_per_second: 60.0,
            heard_per_second: 3_000.0,
            delivery_p99_us: Some(4_000),
            ..MessageWindow::default()
        };
        let chat =
            ChatResult { rooms: 20, finished: 300, steady: Some(steady), ..ChatResult::default() };
        let sentences = verdict(&chat, &Summary::default()).join("\n");
        assert!(
            sentences.contains("990 users in 20 rooms sent 60/s messages and received 3k/s"),
            "{sentences}"
        );
        assert!(sentences.contains("99 % of the deliveries within 4.00 ms"), "{sentences}");
        assert!(sentences.contains("300 users arrived, and each left as planned"), "{sentences}");
    }
}
