//! `throng try` and `throng run --trace-user` against a server that is not throng's.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::process::{TestDir, run_file};

/// A WebSocket server in Python, which says hello, and answers each message with one of another
/// user.
const SERVER: &str = r#"
import base64, hashlib, socket, sys, threading

def frame(text):
    data = text.encode()
    return bytes([0x81, len(data)]) + data

def serve(mode, connection):
    head = b""
    if mode == "redis":
        connection.sendall(b"+OK hello redis\r\n")
    while b"\r\n\r\n" not in head:
        data = connection.recv(4096)
        if not data:
            return
        head += data
    if mode == "redis":
        return
    if mode == "401":
        connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\n"
                           b"set-cookie: session=hidden\r\ncontent-length: 0\r\n\r\n")
    else:
        lines = [line.split(b": ", 1) for line in head.split(b"\r\n") if b": " in line]
        key = {name.lower(): value for name, value in lines}[b"sec-websocket-key"]
        accept = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n"
                           b"connection: Upgrade\r\nsec-websocket-accept: "
                           + base64.b64encode(accept) + b"\r\n\r\n"
                           + frame('{"type":"hello","id":0}'))
    while True:
        data = connection.recv(4096)
        if not data:
            return
        if data[0] & 15 == 8:
            connection.sendall(bytes([0x88, 0]))
            return
        connection.sendall(frame('{"type":"msg","body":"other"}'))

def run(mode, connection):
    try:
        serve(mode, connection)
    except OSError:
        pass
    finally:
        connection.close()

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
if sys.argv[1] != "bound":
    listener.listen(64)
print(listener.getsockname()[1], flush=True)
if sys.argv[1] == "bound":
    threading.Event().wait()
while True:
    connection, _ = listener.accept()
    threading.Thread(target=run, args=(sys.argv[1], connection), daemon=True).start()
"#;

/// The server's process, which ends with its test.
struct PythonServer {
    process: Child,
    port: u16,
}

impl PythonServer {
    /// Starts the server; `None` if there is no Python here.
    fn start(place: &TestDir, mode: &str) -> Option<Self> {
        place.write("server.py", SERVER);
        let mut python = Command::new("python3");
        python.arg(place.path("server.py")).arg(mode).stdout(Stdio::piped());
        let Ok(mut process) = python.spawn() else {
            println!("skipped: there is no python3");
            return None;
        };
        let mut line = String::new();
        let out = process.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        Some(Self { process, port: line.trim().parse().unwrap() })
    }
}

impl Drop for PythonServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A scenario against `port`; its steps begin in line 4.
fn scenario(port: u16, steps: &[&str]) -> String {
    let head =
        format!("target: ws://127.0.0.1:{port}/ws\nload: [{{ramp: {{to: 3, over: 1s}}}}]\nuser:\n");
    head + &steps.iter().map(|step| format!("  - {step}\n")).collect::<String>()
}

const CONNECT: &str =
    "connect: {query: {token: \"tok-${user.id}\"}, headers: {authorization: Bearer tok}}";

#[track_caller]
fn check(mode: &str, steps: &[&str], code: i32, contains: &[&str]) {
    let place = TestDir::new();
    let Some(server) = PythonServer::start(&place, mode) else { return };
    place.write("s.yaml", &scenario(server.port, steps));
    let finished = place.throng(&["try", "s.yaml"]).exits_with(code);
    for part in contains {
        assert!(finished.stdout.contains(part), "{part:?} is not in {finished:#?}");
    }
    for secret in ["tok-0", "Bearer tok", "hidden"] {
        assert!(!finished.stdout.contains(secret), "{secret:?} is in {finished:#?}");
    }
    assert!(!place.path("run.jsonl").exists(), "a trial records no run");
}

#[test]
fn a_trial_shows_each_step_and_every_message() {
    let steps = [
        CONNECT,
        "expect: {json: {type: hello}}",
        "every: {period: 1h, do: [{send: {json: {type: msg}}}, {expect: {json: {type: msg}}}]}",
        "stay",
    ];
    check(
        "ok",
        &steps[..3],
        0,
        &[
            "user 0 of class user, ws://127.0.0.1:",
            "loops take one turn",
            "step 1 connect (line 4): within 5s",
            "> GET /ws?token=*** HTTP/1.1",
            "> authorization: ***",
            "< HTTP/1.1 101 Switching Protocols",
            "step 2 expect (line 5): JSON with `{\"type\":\"hello\"}` within 5s",
            "< text, 23 bytes: `{\"type\":\"hello\",\"id\":0}`",
            "ok: matches",
            "step 3 every (line 6): one turn",
            "step 3.1 send (line 6)",
            "> text, 14 bytes: `{\"type\":\"msg\"}`",
            "< text, 29 bytes: `{\"type\":\"msg\",\"body\":\"other\"}`",
            "end of the steps",
            "> close frame with 1000",
            "finished: no step failed",
            "user 0 of class user: ok, no step failed",
        ],
    );
}

#[test]
fn a_wrong_answer_names_the_member_that_differs() {
    check(
        "ok",
        &[CONNECT, "expect: {json: {type: hello, id: 5}}"],
        1,
        &["no match: `id` is `0`, expected `5`", "error expect_mismatch", "user: failed"],
    );
}

#[test]
fn a_time_out_shows_what_came_instead() {
    check(
        "ok",
        &[
            CONNECT,
            "send: hi",
            "expect: {json: {body: mine}, skip_others: true, timeout: 300ms}",
            "send: never",
        ],
        1,
        &[
            "skipped: `body` is `\"other\"`, expected `\"mine\"`",
            "time-out: no match came; expected JSON with `{\"body\":\"mine\"}` within 300ms",
            "error expect_timeout",
        ],
    );
}

#[test]
fn what_is_expected_is_shown_with_its_values_and_a_token_nowhere() {
    check(
        "ok",
        &[
            CONNECT,
            "send: {json: {body: \"mine-${user.id}\", token: \"tok-${user.id}\"}}",
            "expect: {json: {body: \"${sent.body}\"}, skip_others: true, timeout: 300ms}",
        ],
        1,
        &[
            "`{\"body\":\"mine-0\",\"token\":\"***\"}`",
            "step 3 expect (line 6): JSON with `{\"body\":\"mine-0\"}`",
            "skipped: `body` is `\"other\"`, expected `\"mine-0\"`",
        ],
    );
}

#[test]
fn a_refused_upgrade_shows_the_servers_answer() {
    check(
        "401",
        &[CONNECT, "stay"],
        1,
        &[
            "< HTTP/1.1 401 Unauthorized",
            "< www-authenticate: Bearer",
            "< set-cookie: session=***",
            "error http_401: expected 101 Switching Protocols, received status 401",
        ],
    );
}

#[test]
fn what_is_not_http_is_shown() {
    check(
        "redis",
        &[CONNECT, "stay"],
        1,
        &["< 17 bytes: `+OK hello redis\\r\\n`", "no match: not HTTP", "error upgrade_violation"],
    );
}

#[test]
fn a_refused_connect_says_that_no_process_listens() {
    // The port is bound, so that no other process takes it, and does not listen.
    let says = ["error ECONNREFUSED", "no process listens on that port"];
    check("bound", &[CONNECT, "stay"], 1, &says);
}

#[test]
fn a_trial_that_cannot_begin_is_exit_code_2() {
    let place = TestDir::new();
    place.write("s.yaml", &scenario(1, &["conect"]));
    place.throng(&["try", "s.yaml"]).exits_with(2).stderr_contains(&["s.yaml:4", "`connect`"]);
    place.write("s.yaml", &scenario(1, &["connect"]));
    let unknown = place.throng(&["try", "s.yaml", "--class", "chat"]).exits_with(2);
    unknown.stderr_contains(&["no such class", "it has user"]);
    place
        .throng(&["try", "s.yaml", "--target", "ws://203.0.113.9:80"])
        .exits_with(2)
        .stderr_contains(&["--i-am-allowed"]);
}

#[test]
fn a_trial_is_bounded_and_skips_waits_if_asked() {
    let place = TestDir::new();
    let Some(server) = PythonServer::start(&place, "ok") else { return };
    place.write("s.yaml", &scenario(server.port, &[CONNECT, "wait: 1h"]));
    let finished = place.throng(&["try", "s.yaml", "--for", "500ms"]).exits_with(4);
    for part in ["step 2 wait (line 5)", "waits 3600 s", "stopped after 500ms", "--no-wait"] {
        assert!(finished.stdout.contains(part), "{part:?} is not in {finished:#?}");
    }
    let finished = place.throng(&["try", "s.yaml", "--no-wait"]).exits_with(0);
    assert!(!finished.stdout.contains("waits 3"), "{finished:#?}");
}

#[test]
fn a_run_shows_the_users_that_are_watched_and_the_first_error_of_each_kind() {
    let place = TestDir::new();
    let Some(server) = PythonServer::start(&place, "ok") else { return };
    let steps = [CONNECT, "send: hi", "expect: {json: {body: mine}}"];
    place.write("s.yaml", &(scenario(server.port, &steps) + "on_error: stop\n"));
    let run = [
        "run",
        "s.yaml",
        "--trace-user",
        "0,2",
        "--trace-file",
        "t.txt",
        "--report",
        "r.json",
        "--details",
    ];
    let finished = place.throng(&run);
    let trace = std::fs::read_to_string(place.path("t.txt")).unwrap();
    for part in ["user 0 ", "user 2 ", "no match: `body` is ", "step 3 expect (line 6)"] {
        assert!(trace.contains(part), "{part:?} is not in {trace}");
    }
    assert!(!trace.contains("user 1 "), "{trace}");
    for part in [
        "first error of each kind",
        "step 3 `expect` (line 6), user ",
        "expected JSON with `{\"body\":\"mine\"}`",
        "expected `\"mine\"`",
    ] {
        assert!(finished.stdout.contains(part), "{part:?} is not in {finished:#?}");
    }
    let exchange = &place.json("r.json")["exchanges"][0];
    assert_eq!((&exchange["step"], &exchange["line"]), (&"3".into(), &6.into()), "{exchange}");
    let [first, last] = ["first_ms", "last_ms"].map(|key| exchange[key].as_u64().unwrap());
    assert!(first <= last, "{exchange}");
    let text = std::fs::read_to_string(place.path("run.jsonl")).unwrap();
    assert!(!text.contains("tok-0"), "a token is in the run file");
    let lines = run_file(&place.path("run.jsonl"));
    let times = |line: &serde_json::Value| line["load"]["error_times"].is_object();
    assert!(lines.iter().any(times), "no line has the times of errors");
}
