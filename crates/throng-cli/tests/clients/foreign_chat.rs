//! A chat server that is not ours, as its users would load it: a token from a file for each user,
//! rooms, and each user waits for its own message.

use std::io::{Write, stderr};
use std::process::Command;
use throng_measure::ErrorKind;

use serde_json::Value;

use crate::process::{Running, TestDir};
use crate::tools::{Tool, clients, root, run_to_success};

const PYTHON: &str = "target/clients/python/bin/python";
/// The last one is the other client's.
const USERS: usize = 60;

const SCENARIO: &str = r#"
params: {period: 5s, hold: 9s}
data: {row: {file: users.csv, order: unique}}
load:
  - ramp: {to: 59, over: 1s}
  - hold: {for: $(hold)}
on_error: stop
user:
  - connect: {query: {token: "${row.token}"}}
  - receive: {json: {type: hello, name: "${row.name}"}, capture: {id: /id}}
  - send: {json: {type: join, room: "room ${user.id % 12}"}}
  - expect: {json: {type: joined, room: "room ${user.id % 12}"}, skip_others: true}
  - wait: $(period / 2) ±100%
  - every:
      period: $(period)
      do:
        - send: {json: {type: msg, body: "from ${row.name} no ${counter}"}}
        - expect:
            json: {type: msg, from: "${id}", body: "${sent.body}"}
            skip_others: true
            timeout: 60s
            name: own_message
"#;

const ROOMS: &str = r#"
data: users.csv
load:
  - ramp: {to: 12, over: 100ms}
  - hold: {for: 3s}
user:
  - connect: {query: {token: "${row.token}"}}
  - receive: {json: {type: hello}}
  - send: {json: {type: join, room: "room ${user.id % 3}"}}
  - expect: {json: {type: joined}, capture: {room: /room}, skip_others: true, timeout: 60s}
  - stay
probe:
  - every: 500ms
    members: "${room} == room 1"
    broadcast: {json: {type: msg, body: "hello ${probe}"}}
"#;

const PILE: &str = r#"
load: [{ramp: {to: 12, over: 100ms}}, {hold: {for: 3s}}]
data: users.csv
user:
  - connect: {query: {token: "${row.token}"}}
  - receive: {json: {type: hello}}
  - send: {json: {type: join, room: all}}
  - expect: {json: {type: joined}, skip_others: true}
  - send: {json: {type: msg, body: hi}}
  - wait: 2s
  - expect: {json: {type: msg}}
"#;

/// What the warning advises.
const CURED: &str = "expect: {json: {type: msg}, skip_others: true}";

/// A chat server in Node with a file of tokens beside it.
struct ChatServer {
    port: String,
    // It ends with its standard input.
    _node: Running,
}

impl ChatServer {
    /// Starts one with a disease.
    fn start(place: &TestDir, disease: &str) -> Self {
        let rows: String = (0..USERS).map(|user| format!("user{user},t{user:04x}\n")).collect();
        place.write("users.csv", &format!("name,token\n{rows}"));
        let mut node = Command::new("node");
        node.arg(clients().join("node/chat_server.js"));
        node.arg(place.path("users.csv")).arg(disease);
        let mut node = place.spawn(node);
        Self { port: node.line(), _node: node }
    }

    fn url(&self) -> String {
        format!("ws://127.0.0.1:{}/ws", self.port.trim())
    }
}

fn is_missing() -> bool {
    let python = Tool::file("target/clients/python/installed", "the Python client is missing");
    Tool::packages().and(python).skips()
}

/// A disease of the server, with what it makes of the answers.
struct Disease {
    name: &'static str,
    /// How often each user sends: less often than an answer takes, where all answers are late.
    period: &'static str,
    hold: &'static str,
    /// How long the other client sends.
    other_s: &'static str,
    /// The finding that comes first, or one of several that are true.
    first: &'static [&'static str],
    /// The percentiles that the disease decides, and nothing else.
    percentiles: &'static [&'static str],
}

const USUAL: Disease = Disease {
    name: "",
    period: "1s",
    hold: "9s",
    other_s: "8",
    first: &["server_stalled"],
    percentiles: &["p99"],
};

/// The times of each are so long that what else runs on the machine is less than 2 % of them.
const DISEASES: [Disease; 5] = [
    Disease {
        name: "delayed",
        period: "4s",
        first: &["server_slow"],
        percentiles: &["p50", "p99"],
        ..USUAL
    },
    Disease { name: "stalled", ..USUAL },
    Disease { name: "blocked", ..USUAL },
    Disease {
        name: "leaking",
        period: "3s",
        hold: "15s",
        other_s: "13.5",
        first: &["latency_grows", "memory_grows"],
        ..USUAL
    },
    Disease { name: "closing", first: &["server_closes_early"], percentiles: &[], ..USUAL },
];

/// Diseases that are provoked at once. More would take the CPUs from one another where there are
/// two.
const AT_ONCE: usize = 2;

impl Disease {
    /// Runs the scenario and the other client against a server with this disease. Returns the
    /// summary of the run, and what the other client measured.
    fn provoke(&self) -> (Value, Value) {
        let place = TestDir::new();
        let server = ChatServer::start(&place, self.name);
        let mut python = Command::new(root().join(PYTHON));
        python.arg(clients().join("python/chat_client.py")).arg(server.url());
        python.args([&format!("t{:04x}", USERS - 1), "room 1", self.other_s]);
        std::thread::scope(|scope| {
            let other = scope.spawn(move || run_to_success(python));
            let period = format!("period={}", self.period);
            let hold = format!("hold={}", self.hold);
            let summary = load(&place, &server, SCENARIO, &["--set", &period, "--set", &hold]);
            (summary, serde_json::from_str(&other.join().unwrap()).unwrap())
        })
    }

    /// Checks the summary against the disease, and against what the other client measured.
    fn check(&self, summary: &Value, other: &Value) {
        let name = self.name;
        let step = own_messages(summary);
        println!("{name}: {step}\n  the other client: {other}\n  {}", first_finding(summary));
        for percentile in self.percentiles {
            let own_us = step["latency_us"][percentile].as_f64().unwrap();
            let other_us = other[format!("{percentile}_us")].as_f64().unwrap();
            // What holds up a program or the server for a moment meets one client and not the
            // other: that decides a high percentile. On a busy machine the other client is late by
            // as much as it sends late, too.
            let share = if *percentile == "p50" { 0.02 } else { 0.25 };
            let allowed_us = share * other_us + other["late_us"].as_f64().unwrap();
            assert!(
                (own_us - other_us).abs() <= allowed_us,
                "{name}, {percentile}: {own_us} µs, the other client {other_us} µs, {other}"
            );
        }
        let first = first_finding(summary)["id"].as_str().unwrap_or_default().to_owned();
        if !self.first.contains(&&*first) {
            // Where other programs had the CPUs, the run says so, and what they did may hide a
            // disease.
            let other = OF_OTHERS.iter().find(|id| has_finding(summary, id));
            let other = other.unwrap_or_else(|| panic!("{name}: {summary:#}"));
            // Past the capture of the test's output: a skipped check does not pass silently.
            let why = format!("{name}: the first finding is `{first}`, beside `{other}`");
            _ = writeln!(stderr(), "skipped: the finding of a disease: {why}");
        }
        assert_eq!(summary["message"]["doubtful"], 0, "{name}");
    }
}

/// Returns what the run measured of the users' own messages.
fn own_messages(summary: &Value) -> &Value {
    let mut steps = summary["steps"].as_array().unwrap().iter();
    steps.find(|step| step["name"] == "own_message").unwrap()
}

/// The findings that other programs on this machine cause: they are true beside any other.
const OF_OTHERS: [&str; 4] = ["cpu_contended", "cpu_stolen", "generator_saturated", "retransmits"];

fn findings(summary: &Value) -> impl Iterator<Item = &Value> {
    summary["diagnosis"]["findings"].as_array().unwrap().iter()
}

fn has_finding(summary: &Value, id: &str) -> bool {
    findings(summary).any(|finding| finding["id"] == id)
}

/// Returns the first finding that other programs do not cause.
fn first_finding(summary: &Value) -> Value {
    let is_own = |finding: &&Value| OF_OTHERS.iter().all(|id| finding["id"] != *id);
    findings(summary).find(is_own).cloned().unwrap_or_default()
}

/// Runs the scenario. Returns its summary.
fn load(place: &TestDir, server: &ChatServer, scenario: &str, flags: &[&str]) -> Value {
    let text = format!("target: {}{scenario}", server.url());
    place.write("chat.yaml", &text);
    let args = ["run", "chat.yaml", "--json", "chat.json", "--cores", "1"];
    let run = place.throng(&[&args, flags].concat());
    assert!(matches!(run.code, Some(0 | 1 | 3)), "{run:#?}");
    place.json("chat.json")
}

#[test]
fn each_disease_of_a_server_is_named_first_and_measured_as_another_client_measures_it() {
    if is_missing() {
        return;
    }
    assert!(SCENARIO.lines().count() < 40);
    let mut measured = Vec::new();
    for wave in DISEASES.chunks(AT_ONCE) {
        measured.extend(std::thread::scope(|scope| {
            let runs = wave.iter().map(|disease| scope.spawn(|| disease.provoke()));
            let runs: Vec<_> = runs.collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect::<Vec<_>>()
        }));
    }
    for (disease, (summary, other)) in DISEASES.iter().zip(&measured) {
        disease.check(summary, other);
    }
    // Each user, as the other client, got answers to four messages before its close.
    let (summary, other) = measured.last().unwrap();
    let users = USERS as u64 - 1;
    assert_eq!(other["answered"], 4, "{other}");
    assert_eq!(own_messages(summary)["ok"], 4 * users, "{summary:#}");
    let code = other["close_code"].as_u64().unwrap();
    assert_eq!(summary["errors"][ErrorKind::CloseFrame.with(code)], users, "{summary:#}");
}

#[test]
fn messages_that_pile_up_are_told_at_load_time_and_in_the_verdict_with_the_line() {
    if Tool::packages().skips() {
        return;
    }
    let place = TestDir::new();
    let server = ChatServer::start(&place, "chatty");
    let summary = load(&place, &server, PILE, &[]);
    let first = first_finding(&summary);
    assert_eq!(first["id"], "slow_consumers", "{summary:#}");
    let text = first["text"].as_str().unwrap();
    assert!(text.starts_with("Line 11 of the scenario leaves messages unread."), "{text}");
    let remedy = first["remedy"].as_str().unwrap();
    assert!(remedy.starts_with("add `skip_others: true` in line 11"), "{remedy}");

    let warning = "warning: line 11 may leave messages unread";
    let said = [warning, "--> chat.yaml:10:", "- wait: 2s", "help: add `skip_others: true`"];
    for args in [&["run", "chat.yaml", "--dry-run"][..], &["try", "chat.yaml", "--no-wait"]] {
        place.throng(args).stderr_contains(&said);
    }
    let annotated = place.throng(&["run", "chat.yaml", "--dry-run", "--annotations"]);
    annotated.stderr_contains(&["::warning file=chat.yaml,line=10,"]);
    let cured = PILE.replace("expect: {json: {type: msg}}", CURED);
    let summary = load(&place, &server, &cured, &[]);
    assert!(summary["errors"][ErrorKind::InboxOverflow.name()].is_null(), "{summary:#}");
    let cured = place.throng(&["run", "chat.yaml", "--dry-run"]);
    assert!(!cured.stderr.contains("warning"), "{cured:#?}");
}

#[test]
fn a_probe_reaches_the_members_of_one_room_with_its_mark_in_a_text() {
    if Tool::packages().skips() {
        return;
    }
    let place = TestDir::new();
    let server = ChatServer::start(&place, "none");
    let summary = load(&place, &server, ROOMS, &[]);
    let broadcast = &summary["broadcast"];
    let count = |name: &str| broadcast[name].as_u64().unwrap_or_else(|| panic!("{broadcast}"));
    assert!(count("sent") >= 1, "{broadcast}");
    assert_eq!(count("delivered"), count("expected"), "{broadcast}");
    // Four of the twelve users are in that room, and no other user is expected to receive it.
    assert!(count("delivered") <= 4 * count("sent") && count("missing") == 0, "{broadcast}");
    assert_eq!(count("unexpected"), 0, "{broadcast}");
}
