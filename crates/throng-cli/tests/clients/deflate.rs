//! permessage-deflate with servers that other people wrote: what is agreed, and messages that refer
//! to earlier ones.

use std::process::Command;
use throng_measure::ErrorKind;

use serde_json::Value;

use crate::process::{Running, TestDir};
use crate::tools::{Tool, clients, root};

/// A server of npm's `ws` that sends each message back. Each path has its own parameters.
const NODE: &str = r#"
const { WebSocketServer } = require("ws")
const http = require("http")
const servers = {
  keeps: { serverNoContextTakeover: false, threshold: 0 },
  forgets: { serverNoContextTakeover: true, threshold: 0 },
  neither: { serverNoContextTakeover: true, clientNoContextTakeover: true, threshold: 0 },
  small: { serverMaxWindowBits: 9, clientMaxWindowBits: 10, threshold: 0 },
  off: false,
}
const server = http.createServer()
const paths = Object.entries(servers).map(([path, perMessageDeflate]) =>
  ["/" + path, new WebSocketServer({ noServer: true, perMessageDeflate })])
server.on("upgrade", (request, socket, head) => {
  const [, own] = paths.find(([path]) => request.url === path)
  const echo = peer => peer.on("message", data => peer.send(String(data)))
  own.handleUpgrade(request, socket, head, echo)
})
server.listen(0, "127.0.0.1", () => console.log(server.address().port))
process.stdin.on("end", () => process.exit()).resume()
"#;

/// A server of Python's `websockets`, whose windows have 12 bits.
const PYTHON: &str = r#"
import asyncio, sys, websockets

async def echo(peer):
    async for message in peer:
        await peer.send(message)

async def main():
    async with websockets.serve(echo, "127.0.0.1", 0) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

asyncio.run(main())
"#;

/// Four users, each of whom sends eight messages that are much alike, three of them longer than
/// any window.
const SCENARIO: &str = r#"
target: TARGET
load: [{ramp: {to: 4, over: 100ms}}, {hold: {for: 2s}}]
on_error: stop
user:
  - connect: {deflate: DEFLATE}
  - repeat:
      times: 5
      do:
        - send: {json: {body: "a message of user ${user.id} to all others", no: "${counter}"}}
        - expect: {json: {no: "${sent.no}"}, timeout: 60s}
  - repeat:
      times: 3
      do:
        - send: LONG ${counter}
        - expect: {contains: "end", timeout: 60s}
  - stay
"#;

struct Server {
    place: TestDir,
    target: String,
    _process: Running,
}

impl Server {
    fn start(mut command: Command, code: &[&str]) -> Self {
        let place = TestDir::new();
        command.args(code).current_dir(clients().join("node"));
        let mut process = place.spawn(command);
        let target = format!("ws://127.0.0.1:{}", process.line().trim());
        Self { place, target, _process: process }
    }

    fn node() -> Self {
        Self::start(Command::new("node"), &["--eval", NODE])
    }

    /// Runs the scenario with an offer and returns what was printed, and the summary.
    fn run(&self, path: &str, offer: &str) -> (String, Value) {
        let long: String =
            (0..6_000).map(|number| format!("{} ", number * 7919 % 10_007)).collect();
        let target = format!("{}{path}", self.target);
        let scenario = SCENARIO.replace("DEFLATE", offer).replace("TARGET", &target);
        let scenario = scenario.replace("LONG", &format!("{long}end"));
        self.place.write("mine.yaml", &scenario);
        let run = self.place.throng(&["run", "mine.yaml", "--json", "mine.json"]);
        assert!(self.place.path("mine.json").exists(), "{run:#?}");
        (run.stdout, self.place.json("mine.json"))
    }

    /// Checks how many of the four upgrades agreed, and to whose contexts.
    #[track_caller]
    fn check(&self, path: &str, offer: &str, [agreed, server, client]: [u64; 3]) {
        let (_, summary) = self.run(path, offer);
        assert_eq!(summary["errors"], serde_json::json!({}), "{path} {offer}: {summary:#}");
        assert_eq!(summary["message"]["answered"], 32, "{path} {offer}: {summary:#}");
        let deflate = serde_json::json!({
            "offered": 4, "agreed": agreed, "server_contexts": server, "client_contexts": client
        });
        assert_eq!(summary["deflate"], deflate, "{path} {offer}");
    }
}

const BROWSERS: &str = "true";
const NEITHER: &str = "{server_no_context_takeover: true, client_no_context_takeover: true}";

#[test]
fn contexts_are_those_that_npms_ws_agrees_to() {
    if Tool::packages().skips() {
        return;
    }
    let server = Server::node();
    server.check("/keeps", BROWSERS, [4, 4, 4]);
    server.check("/forgets", BROWSERS, [4, 0, 4]);
    server.check("/neither", BROWSERS, [4, 0, 0]);
    server.check("/small", BROWSERS, [4, 4, 4]);
    server.check("/off", BROWSERS, [0, 0, 0]);
    server.check("/forgets", NEITHER, [4, 0, 0]);
    server.check("/keeps", &format!("[{NEITHER}, {{}}]"), [4, 4, 4]);
    server.check("/small", "{server_max_window_bits: 9, client_max_window_bits: 12}", [4, 4, 4]);
}

#[test]
fn an_offer_that_the_server_refuses_is_named_in_the_advice() {
    if Tool::packages().skips() {
        return;
    }
    let server = Server::node();
    let (report, summary) = server.run("/keeps", NEITHER);
    assert_eq!(summary["connect"]["failed"][ErrorKind::UpgradeStatus.with(400)], 4, "{summary:#}");
    assert!(report.contains("try `connect` without `deflate`"), "{report}");
}

#[test]
fn contexts_are_those_that_pythons_websockets_agrees_to() {
    let python = "target/clients/python/bin/python";
    if Tool::file(python, "Python's websockets are not installed").skips() {
        return;
    }
    let server = Server::start(Command::new(root().join(python)), &["-c", PYTHON]);
    server.check("/", BROWSERS, [4, 4, 4]);
    server.check("/", NEITHER, [4, 0, 0]);
}
