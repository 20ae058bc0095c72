//! A chat server that is not ours, as its users would load it: a token from a file for each user,
//! rooms, and each user waits for its own message.

use std::process::Command;

use serde_json::Value;

use crate::process::{Running, TestDir};
use crate::tools::{Tool, clients, root, run_to_success};

const PYTHON: &str = "target/clients/python/bin/python";
const USERS: usize = 40;

const SCENARIO: &str = r#"
data: {row: {file: users.csv, order: unique}}
load:
  - ramp: {to: 39, over: 1s}
  - hold: {for: 9s}
user:
  - connect: {query: {token: "${row.token}"}}
  - receive: {json: {type: hello, name: "${row.name}"}, capture: {id: /id}}
  - send: {json: {type: join, room: "room ${user.id % 3}"}}
  - expect: {json: {type: joined, room: "room ${user.id % 3}"}, skip_others: true}
  - every:
      period: 2500ms
      do:
        - send: {json: {type: msg, body: "from ${row.name} no ${counter}"}}
        - expect:
            json: {type: msg, from: "${id}", body: "${sent.body}"}
            skip_others: true
            timeout: 60s
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

/// A chat server in Node with a file of tokens beside it.
struct ChatServer {
    port: String,
    // It ends with its standard input.
    _node: Running,
}

impl ChatServer {
    /// Starts one that delivers each message after `delay_ms`.
    fn start(place: &TestDir, delay_ms: u64) -> Self {
        let rows: String = (0..USERS).map(|user| format!("user{user},t{user:04x}\n")).collect();
        place.write("users.csv", &format!("name,token\n{rows}"));
        let mut node = Command::new("node");
        node.arg(clients().join("node/chat_server.js"));
        node.arg(place.path("users.csv")).arg(delay_ms.to_string());
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

/// Runs the scenario. Returns its summary.
fn load(place: &TestDir, server: &ChatServer, scenario: &str) -> Value {
    let text = format!("target: {}{scenario}", server.url());
    place.write("chat.yaml", &text);
    let run = place.throng(&["run", "chat.yaml", "--json", "chat.json", "--cores", "1"]);
    assert!(matches!(run.code, Some(0 | 3)), "{run:#?}");
    place.json("chat.json")
}

#[test]
fn a_server_that_delays_each_message_is_measured_as_another_client_measures_it() {
    if is_missing() {
        return;
    }
    let place = TestDir::new();
    // A delay so long that what else runs on the machine is less than 2 % of it.
    let server = ChatServer::start(&place, 2_000);
    let mut python = Command::new(root().join(PYTHON));
    python.arg(clients().join("python/chat_client.py")).arg(server.url());
    python.args([&format!("t{:04x}", USERS - 1), "6"]);
    let (summary, other_us) = std::thread::scope(|scope| {
        let other = scope.spawn(move || run_to_success(python).trim().parse::<f64>().unwrap());
        (load(&place, &server, SCENARIO), other.join().unwrap())
    });
    assert!(SCENARIO.lines().count() < 40);
    let messages = &summary["message"];
    // Joins are answered at once; they are a fifth of the answers.
    let own_us = messages["latency_us"]["p50"].as_f64().unwrap();
    let ratio = own_us / other_us;
    assert!((0.98..1.02).contains(&ratio), "{own_us} µs, the other client {other_us} µs");
    assert!(messages["answered"].as_u64().unwrap() >= 3 * USERS as u64, "{messages}");
    assert_eq!(messages["doubtful"], 0, "{messages}");
}

#[test]
fn a_probe_reaches_the_members_of_one_room_with_its_mark_in_a_text() {
    if Tool::packages().skips() {
        return;
    }
    let place = TestDir::new();
    let server = ChatServer::start(&place, 0);
    let summary = load(&place, &server, ROOMS);
    let broadcast = &summary["broadcast"];
    let count = |name: &str| broadcast[name].as_u64().unwrap_or_else(|| panic!("{broadcast}"));
    assert!(count("sent") >= 1, "{broadcast}");
    assert_eq!(count("delivered"), count("expected"), "{broadcast}");
    // Four of the twelve users are in that room, and no other user is expected to receive it.
    assert!(count("delivered") <= 4 * count("sent") && count("missing") == 0, "{broadcast}");
    assert_eq!(count("unexpected"), 0, "{broadcast}");
}
