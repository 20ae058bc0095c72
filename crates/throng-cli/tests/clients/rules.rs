//! Rules of `on_message` against servers that are not ours, and that count for themselves.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::process::TestDir;
use crate::tools::{Tool, clients};

/// Loads a server, a program of this folder. Returns the summary of the run, which has no error,
/// and what the server has counted.
fn load(program: &str, server: &str, path: &str, user: &str) -> (Value, Value) {
    let place = TestDir::new();
    let mut command = Command::new(program);
    command.arg(clients().join(Path::new(server)));
    let mut server = place.spawn(command);
    let target = format!("target: ws://127.0.0.1:{}{path}", server.line().trim());
    place.write("rules.yaml", &format!("{target}{user}"));
    let run = place.throng(&["run", "rules.yaml", "--json", "rules.json", "--cores", "1"]);
    assert!(matches!(run.code, Some(0 | 1 | 3)), "{run:#?}");
    let summary = place.json("rules.json");
    server.close_stdin();
    let counted = serde_json::from_str(&server.line()).expect("it prints what it counted");
    assert_eq!(summary["errors"], json!({}), "{summary:#}");
    (summary, counted)
}

/// Checks that users had so many answers, and returns how many messages the rules took and how many
/// they sent. At most `unasked` messages were neither answers nor taken.
fn rules_of(summary: &Value, answered: u64, unasked: u64) -> (u64, u64) {
    let number = |part: &str, key: &str| {
        summary[part][key].as_u64().unwrap_or_else(|| panic!("no {part}.{key} in {summary:#}"))
    };
    assert_eq!(number("message", "answered"), answered, "{summary:#}");
    assert!(number("message", "unasked") <= unasked, "{summary:#}");
    (number("on_message", "matched"), number("on_message", "sent"))
}

/// socket.io closes the connections of clients that do not answer its pings. No `expect` skips a
/// message: rules take all that the server sends beside the answers.
const SOCKET_IO: &str = r#"
load: [arrivals: {rate: 60/s, for: 1s, spacing: even}]
on_error: stop
on_message:
  - {text: '2', do: [send: '3']}
  - regex: '^42\d+\["question"'
    capture: {question: {regex: '^42(\d+)'}, text: {regex: '"question","(.*)"'}}
    do: [send: '43${question}["yes ${text}"]']
user:
  - connect
  - receive: {regex: '^0\{'}
  - send: '40'
  - expect: {regex: '^40\{"sid"', timeout: 5m}
  - repeat:
      times: 4
      do:
        - wait: 500ms
        - send: '42["message","hi ${user.id} ${counter}"]'
        - expect: {text: '42["message","hi ${user.id} ${counter}"]', timeout: 5m}
  - close
"#;

#[test]
fn users_of_socket_io_answer_pings_and_questions_while_they_do_other_things() {
    if Tool::packages().skips() {
        return;
    }
    let path = "/socket.io/?EIO=4&transport=websocket";
    let (summary, counted) = load("node", "node/socket_io_server.js", path, SOCKET_IO);
    // Four messages of each user, and the one that opens socket.io's session. The question after a
    // user's last message may find its connection closing.
    let rules = rules_of(&summary, 60 * 5, 60);
    let [messages, pongs, acks] = ["messages", "pongs", "acks"].map(|key| counted[key].as_u64());
    let (pongs, acks) = pongs.zip(acks).expect("the server counts answers");
    assert_eq!(messages, Some(60 * 4));
    assert_eq!(rules, (pongs + acks, pongs + acks), "{counted}");
    assert!(acks >= 60 * 3 && pongs >= 60, "{counted}");
}

/// graphql-ws sends pings as messages.
const GRAPHQL: &str = r#"
load: [arrivals: {rate: 60/s, for: 1s, spacing: even}, hold: {for: 5m, until: done}]
on_error: stop
on_message:
  - {json: {type: ping}, do: [send: {json: {type: pong}}]}
user:
  - connect: {subprotocols: [graphql-transport-ws]}
  - send: {json: {type: connection_init}}
  - expect: {json: {type: connection_ack}, timeout: 5m}
  - repeat:
      times: 4
      do:
        - wait: 500ms
        - send:
            json:
              id: 'q${counter}'
              type: subscribe
              payload: {query: '{ hello(name: "${user.id}") }'}
        - expect:
            json: {id: 'q${counter}', type: next, payload: {data: {hello: 'hi ${user.id}'}}}
            timeout: 5m
        - receive: {json: {type: complete}, timeout: 5m}
  - close
"#;

#[test]
fn users_of_graphql_answer_pings_while_they_do_other_things() {
    let package = "crates/throng-cli/tests/clients/node/node_modules/graphql-ws/package.json";
    let fetched = Tool::file(package, "the npm packages are not installed");
    if Tool::packages().and(fetched).skips() {
        return;
    }
    let (summary, counted) = load("node", "node/graphql_ws_server.js", "/graphql", GRAPHQL);
    let (_, sent) = rules_of(&summary, 60 * 5, 0);
    assert_eq!(counted["operations"], 60 * 4, "{counted}");
    assert_eq!(counted["pongs"], sent, "{counted}");
    assert!(sent >= 60, "{counted}");
}

/// Action Cable pings each connection every 3 s and wants no answer. No `expect` skips a message: a
/// rule takes the pings.
const ACTION_CABLE: &str = r#"
load: [arrivals: {rate: 20/s, for: 1s, spacing: even}, hold: {for: 5m, until: done}]
on_error: stop
on_message:
  - {json: {type: ping}}
user:
  - connect: {subprotocols: [actioncable-v1-json]}
  - receive: {json: {type: welcome}, timeout: 5m}
  - send: {json: {command: subscribe, identifier: '{"channel":"EchoChannel"}'}}
  - expect: {json: {type: confirm_subscription}, timeout: 5m}
  - repeat:
      times: 4
      do:
        - wait: 1s
        - send:
            json:
              command: message
              identifier: '{"channel":"EchoChannel"}'
              data: '{"action":"speak","text":"${user.id} ${counter}"}'
        - expect: {json: {message: {said: '${user.id} ${counter}'}}, timeout: 5m}
  - close
"#;

#[test]
fn users_of_action_cable_pass_over_its_pings() {
    let needs = "require 'action_cable'; require 'puma'; require 'puma/server'";
    if Tool::command("ruby", &["-e", needs]).skips() {
        return;
    }
    let (summary, counted) = load("ruby", "ruby/action_cable_server.rb", "/cable", ACTION_CABLE);
    assert_eq!((&counted["subscriptions"], &counted["messages"]), (&20.into(), &80.into()));
    // Each user is there for four seconds and more.
    let (matched, _) = rules_of(&summary, 20 * 5, 0);
    assert!(matched >= 20, "{summary:#}");
}
