//! `throng doctor --watch`: the host of any server, observed under load.

use std::net::{TcpListener, TcpStream};
use throng_measure::{Metric, ProcessMetric};

use rustix::process::Signal;
use serde_json::Value;

use crate::process::{Running, TestDir, eventually, run_file};

/// Starts a foreign server: this test.
fn server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    (listener, port)
}

#[test]
fn a_server_that_is_not_ours_is_watched_by_its_port() {
    let place = TestDir::new();
    let (listener, port) = server();
    // The server accepts none of these.
    let clients = [0, 1, 2].map(|_| TcpStream::connect(listener.local_addr().unwrap()).unwrap());
    let watch = ["doctor", "--watch", "--port", &port, "--seconds", "1", "--interval", "200ms"];
    let finished = place.throng(&[&watch[..], &["--json"]].concat()).exits_with(0);
    let lines: Vec<Value> =
        finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (header, end) = (&lines[0], lines.last().unwrap());
    assert_eq!(header["schema"], "throng.watch/1");
    assert!(lines.len() >= 3, "a header, looks, an end: {}", finished.stdout);
    for look in &lines[1..lines.len() - 1] {
        assert_eq!(look["process"]["pid"], std::process::id());
        assert_eq!(look["kernel"][Metric::LISTENER_ACCEPT_QUEUE.name()], 3);
        assert!(look["kernel"][ProcessMetric::THREADS.server.name()].as_u64().unwrap() >= 1);
    }
    assert!(end["end"]["looks"].as_u64().unwrap() >= 2 && end["end"]["moved"].is_array(), "{end}");
    assert!(end["end"]["verdict"].as_str().unwrap().ends_with('.'), "{end}");

    let told = place.throng(&watch).exits_with(0).stdout;
    assert!(told.contains(&format!("(pid {})", std::process::id())), "{told}");
    assert!(
        told.contains("accept queue") && told.contains("3/") && told.contains("samples in"),
        "{told}"
    );
    drop(clients);
}

#[test]
fn a_run_records_the_facts_of_a_watch_and_those_of_a_throng_server() {
    let place = TestDir::new();
    let server = place.serve(&["ok"]);
    let port = server.addr.rsplit_once(':').unwrap().1.to_owned();
    let watch = ["doctor", "--watch", "--port", &port, "--listen", "0", "--interval", "200ms"];
    let mut watch = place.start(&watch);
    let at = loop {
        let line = watch.line();
        if let Some((_, rest)) = line.split_once("facts available at ") {
            break rest.split_once(' ').unwrap().0.to_owned();
        }
    };
    assert!(at.starts_with("127.0.0.1:"), "{at}");
    let load = "[{ramp: {to: 5, over: 100ms}}, {hold: {for: 2m}}]";
    let user = "[connect, {every: {period: 100ms, do: [send: x, expect: ok]}}]";
    place.write("load.yaml", &server.scenario(load, user));
    // In its own folder, so that only the watch knows the server.
    let elsewhere = place.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut run =
        place.command(&["run", "load.yaml", "--server-facts", &at, "--interval", "250ms"]);
    run.env("XDG_RUNTIME_DIR", elsewhere);
    let run = Running::new(run);
    // One kernel, the server's process, and its own counters.
    let has_facts = |line: &Value| {
        let of_server = line["kernel"].get(ProcessMetric::THREADS.server.name());
        line["server"]["handler"] == "ok"
            && of_server.is_some()
            && line.get("server_kernel").is_none()
    };
    eventually("the facts are in the run file", || {
        place.path("run.jsonl").exists()
            && run_file(&place.path("run.jsonl")).iter().filter(|line| has_facts(line)).count() >= 2
    });
    run.signal(Signal::INT);
    let finished = run.finish();
    assert!(!matches!(finished.code, Some(2) | None), "{finished:#?}");
}

#[test]
fn a_run_without_the_facts_of_its_watch_does_not_begin() {
    let place = TestDir::new();
    let (listener, port) = server();
    drop(listener);
    place.write(
        "load.yaml",
        "target: tcp://127.0.0.1:1\nload: [{ramp: {to: 1, over: 1s}}]\nuser: [connect]\n",
    );
    let run = ["run", "load.yaml", "--server-facts", &format!("127.0.0.1:{port}")];
    let finished = place.throng(&run).exits_with(2);
    assert!(!place.path("run.jsonl").exists());
    finished
        .stderr_contains(&["--server-facts 127.0.0.1:", "throng doctor --watch --port 1 --listen"]);
}

#[test]
fn flags_of_a_watch_are_refused_without_it() {
    let place = TestDir::new();
    place.throng(&["doctor", "--listen", "0"]).exits_with(2).stderr_contains(&["--watch"]);
    place
        .throng(&["doctor", "--port", "1", "--port", "2"])
        .exits_with(2)
        .stderr_contains(&["--watch"]);
    place.throng(&["doctor", "--watch", "--for", "10"]).exits_with(2).stderr_contains(&["--for"]);
    let no_process = ["doctor", "--watch", "--pid", "4294967295"];
    place.throng(&no_process).exits_with(2).stderr_contains(&["process 4294967295"]);
}
