//! `throng init`: what it writes runs at once against a server of the same protocol.

use crate::process::TestDir;

/// Writes the scenario for a URL, and runs it against the server, for a shorter time.
#[track_caller]
fn check(kind: &str, url: impl Fn(&str) -> String, protocol: &str, answered: &str) {
    let place = TestDir::new();
    let server = place.serve(&[kind]);
    let written = place.throng(&["init", &url(&server.addr)]).exits_with(0);
    written.stdout_contains(&[protocol, "\n  throng try scenario.yaml ", "throng run"]);
    place.throng(&["try", "scenario.yaml", "--no-wait"]).exits_with(0);
    let text = std::fs::read_to_string(place.path("scenario.yaml")).unwrap();
    // No threshold depends on the machine.
    let text = text.replace("over: 5s", "over: 500ms").replace("for: 1", "for: 1.");
    let text = text.replace("0ms\n", "00s\n");
    place.write("short.yaml", &text);
    let run = place.throng(&["run", "short.yaml", "--json", "short.json"]);
    assert!(matches!(run.code, Some(0 | 3)), "{run:#?}");
    let summary = place.json("short.json");
    let count = summary.pointer(answered).and_then(serde_json::Value::as_u64);
    assert!(count.is_some_and(|count| count > 0), "{answered}: {summary:#}");
}

#[test]
fn a_first_scenario_of_tcp_runs() {
    check("echo", |addr| format!("tcp://{addr}"), "over TCP", "/message/answered");
}

#[test]
fn a_first_scenario_of_websockets_runs() {
    check("chat", |addr| format!("ws://{addr}/ws"), "over WebSockets", "/message/answered");
}

#[test]
fn a_first_scenario_of_channels_runs() {
    let socket = |addr: &str| format!("ws://{addr}/socket/websocket");
    check("channels", socket, "of Phoenix Channels", "/push/ok");
}

#[test]
fn a_first_scenario_of_http_runs() {
    check("channels", |addr| format!("http://{addr}/"), "over HTTP", "/http/ok");
}

#[test]
fn no_file_is_overwritten_without_force() {
    let place = TestDir::new();
    place.write("scenario.yaml", "mine\n");
    let text = || std::fs::read_to_string(place.path("scenario.yaml")).unwrap();
    let init = ["init", "tcp://127.0.0.1:5555"];
    place.throng(&init).exits_with(2).stderr_contains(&["scenario.yaml", "--force"]);
    assert_eq!(text(), "mine\n");
    place.throng(&[&init[..], &["--force"]].concat()).exits_with(0);
    assert!(text().contains("target: tcp://127.0.0.1:5555\n"));
    let other = [&init[..], &["-o", "other.yaml"]].concat();
    place.throng(&other).exits_with(0).stdout_contains(&["throng try other.yaml"]);
    place.throng(&["init", "udp://h/ws"]).exits_with(2).stderr_contains(&["not supported"]);
    place.write("run.jsonl", "{\"schema\":\"throng.run/1\",\"started\":\"\"}\n");
    let run_file = [&init[..], &["-o", "run.jsonl", "--force"]].concat();
    place.throng(&run_file).exits_with(2).stderr_contains(&["it is a run file"]);
}
