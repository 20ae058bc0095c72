//! A server of GraphQL over WebSockets (npm's graphql-ws) that sends pings as messages.

use std::process::Command;

use serde_json::Value;

use crate::process::TestDir;
use crate::tools::{Tool, clients};

const USER: &str = r#"
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
    let place = TestDir::new();
    let mut node = Command::new("node");
    node.arg(clients().join("node/graphql_ws_server.js"));
    let mut server = place.spawn(node);
    let target = format!("target: ws://127.0.0.1:{}/graphql", server.line().trim());
    place.write("graphql.yaml", &format!("{target}{USER}"));
    let run = place.throng(&["run", "graphql.yaml", "--json", "graphql.json", "--cores", "1"]);
    assert!(matches!(run.code, Some(0 | 1 | 3)), "{run:#?}");
    let summary = place.json("graphql.json");
    server.close_stdin();
    let counted: Value = serde_json::from_str(&server.line()).expect("it prints what it counted");

    assert_eq!(summary["errors"], serde_json::json!({}), "{summary:#}");
    assert_eq!(summary["message"]["answered"], 60 * 5, "{summary:#}");
    assert_eq!(summary["message"]["unasked"], 0, "{summary:#}");
    assert_eq!(counted["operations"], 60 * 4, "{counted}");
    let pongs = counted["pongs"].as_u64().unwrap_or_default();
    assert!(pongs >= 60, "{counted}");
    assert_eq!(summary["on_message"]["sent"], pongs, "{summary:#}");
}
