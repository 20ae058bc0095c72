//! A server of Action Cable, which pings each connection every 3 s and wants no answer.

use std::process::Command;

use serde_json::Value;

use crate::process::TestDir;
use crate::tools::{Tool, clients};

/// No `expect` skips a message: a rule takes the pings.
const USER: &str = r#"
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
    if Tool::command("ruby", &["-e", "require 'action_cable'; require 'puma/server'"]).skips() {
        return;
    }
    let place = TestDir::new();
    let mut ruby = Command::new("ruby");
    ruby.arg(clients().join("ruby/action_cable_server.rb"));
    let mut server = place.spawn(ruby);
    let target = format!("target: ws://127.0.0.1:{}/cable", server.line().trim());
    place.write("cable.yaml", &format!("{target}{USER}"));
    let run = place.throng(&["run", "cable.yaml", "--json", "cable.json", "--cores", "1"]);
    assert!(matches!(run.code, Some(0 | 1 | 3)), "{run:#?}");
    let summary = place.json("cable.json");
    server.close_stdin();
    let counted: Value = serde_json::from_str(&server.line()).expect("it prints what it counted");

    assert_eq!(summary["errors"], serde_json::json!({}), "{summary:#}");
    assert_eq!(summary["message"]["answered"], 20 * 5, "{summary:#}");
    assert_eq!(summary["message"]["unasked"], 0, "{summary:#}");
    assert_eq!((&counted["subscriptions"], &counted["messages"]), (&20.into(), &80.into()));
    // Each user is there for four seconds and more.
    let matched = summary["on_message"]["matched"].as_u64().unwrap_or_default();
    assert!(matched >= 20, "{summary:#}");
}
