//! A server of socket.io, which closes the connections of clients that do not answer its pings.

use std::process::Command;

use serde_json::Value;

use crate::process::TestDir;
use crate::tools::{Tool, clients};

/// No `expect` skips a message: rules take all that the server sends beside the answers.
const USER: &str = r#"
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
    let place = TestDir::new();
    let mut node = Command::new("node");
    node.arg(clients().join("node/socket_io_server.js"));
    let mut server = place.spawn(node);
    let target = format!(
        "target: ws://127.0.0.1:{}/socket.io/?EIO=4&transport=websocket",
        server.line().trim()
    );
    place.write("io.yaml", &format!("{target}{USER}"));
    let run = place.throng(&["run", "io.yaml", "--json", "io.json", "--cores", "1"]);
    assert!(matches!(run.code, Some(0 | 1 | 3)), "{run:#?}");
    let summary = place.json("io.json");
    server.close_stdin();
    let counted: Value = serde_json::from_str(&server.line()).expect("it prints what it counted");

    assert_eq!(summary["errors"], serde_json::json!({}), "{summary:#}");
    let number = |of: &Value| of.as_u64().unwrap_or_else(|| panic!("{summary:#}\n{counted}"));
    let rules = &summary["on_message"];
    // Four messages of each user, and the one that opens socket.io's session.
    assert_eq!(number(&summary["message"]["answered"]), 60 * 5);
    // The question after a user's last message may find its connection closing.
    assert!(number(&summary["message"]["unasked"]) <= 60, "{summary:#}");
    assert_eq!(number(&counted["messages"]), 60 * 4);
    let (pongs, acks) = (number(&counted["pongs"]), number(&counted["acks"]));
    assert_eq!(number(&rules["sent"]), pongs + acks, "{rules} {counted}");
    assert_eq!(number(&rules["matched"]), pongs + acks, "{rules} {counted}");
    assert!(acks >= 60 * 3 && pongs >= 60, "{counted}");
}
