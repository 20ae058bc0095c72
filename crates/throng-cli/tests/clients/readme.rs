//! The README's scenario for a WebSocket server of the reader's own, against one in Node.

use std::process::Command;

use crate::process::TestDir;
use crate::tools::{Tool, clients, root};

/// A server that sends each message back. It ends with its standard input.
const ECHO: &str = r#"
const { WebSocketServer } = require("ws")
const server = new WebSocketServer({ host: "127.0.0.1", port: 0, path: "/ws" })
server.on("listening", () => console.log(server.address().port))
server.on("connection", (peer) => peer.on("message", (data) => peer.send(String(data))))
process.stdin.on("end", () => process.exit()).resume()
"#;

#[test]
fn the_scenario_of_the_readme_tests_a_server_of_ones_own() {
    if Tool::packages().skips() {
        return;
    }
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, rest) = readme.split_once("## Test your own WebSocket server").unwrap();
    let scenario = rest.split("```").nth(1).unwrap().trim_start_matches("yaml\n");
    assert!(scenario.lines().count() <= 10, "{scenario}");
    let place = TestDir::new();
    // It is shorter here, and no threshold depends on the machine.
    let scenario = scenario.replace("for: 30s", "for: 1s").replace("< 100ms", "< 100s");
    place.write("mine.yaml", &scenario);
    let mut node = Command::new("node");
    node.args(["--eval", ECHO]).current_dir(clients().join("node"));
    let mut node = place.spawn(node);
    let target = format!("ws://127.0.0.1:{}", node.line().trim());
    place.throng(&["try", "mine.yaml", "--target", &target]).exits_with(0);
    let run = ["run", "mine.yaml", "--target", &target, "--users", "20", "--json", "mine.json"];
    let run = place.throng(&run);
    assert!(matches!(run.code, Some(0 | 3)), "{run:#?}");
    let summary = place.json("mine.json");
    assert!(summary["message"]["answered"].as_u64().unwrap() >= 20, "{summary:#}");
    assert_eq!(summary["message"]["doubtful"], 0, "{summary:#}");
}
