//! `throng doctor --watch`: any server's host, seen while somebody loads it.

use std::net::{TcpListener, TcpStream};

use rustix::process::Signal;
use serde_json::Value;

use crate::process::{Place, Running, eventually, run_file};

/// A server of somebody else: this test.
fn server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    (listener, port)
}

#[test]
fn a_server_that_is_not_ours_is_watched_by_its_port() {
    let place = Place::new();
    let (listener, port) = server();
    // Nobody accepts these.
    let clients = [0, 1, 2].map(|_| TcpStream::connect(listener.local_addr().unwrap()).unwrap());
    let watch = ["doctor", "--watch", "--port", &port, "--seconds", "1", "--interval", "200ms"];
    let finished = place.throng(&[&watch[..], &["--json"]].concat()).exits(0);
    let lines: Vec<Value> =
        finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (header, end) = (&lines[0], lines.last().unwrap());
    assert_eq!(header["schema"], "throng.watch/1");
    assert!(lines.len() >= 3, "a header, looks, an end: {}", finished.stdout);
    for look in &lines[1..lines.len() - 1] {
        assert_eq!(look["process"]["pid"], std::process::id());
        assert_eq!(look["kernel"]["listener.accept_queue"], 3);
        assert!(look["kernel"]["process.server.threads"].as_u64().unwrap() >= 1);
    }
    assert!(end["end"]["looks"].as_u64().unwrap() >= 2 && end["end"]["moved"].is_array(), "{end}");
    assert!(end["end"]["verdict"].as_str().unwrap().ends_with('.'), "{end}");

    let told = place.throng(&watch).exits(0).stdout;
    assert!(told.contains(&format!("(pid {})", std::process::id())), "{told}");
    assert!(
        told.contains("accept queue") && told.contains("3/") && told.contains("samples in"),
        "{told}"
    );
    drop(clients);
}

#[test]
fn a_run_takes_the_facts_of_a_watch_and_those_of_a_throng_server_with_them() {
    let place = Place::new();
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
    // In a folder of its own, so that the server is known by the watch alone.
    let elsewhere = place.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut run =
        place.command(&["run", "load.yaml", "--server-facts", &at, "--interval", "250ms"]);
    run.env("XDG_RUNTIME_DIR", elsewhere);
    let run = Running::new(run);
    // One kernel, the server's process, and what it says itself.
    let has_facts = |line: &Value| {
        let of_server = line["kernel"].get("process.server.threads");
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
fn a_run_without_the_facts_that_it_was_promised_does_not_begin() {
    let place = Place::new();
    let (listener, port) = server();
    drop(listener);
    place.write(
        "load.yaml",
        "target: tcp://127.0.0.1:1\nload: [{ramp: {to: 1, over: 1s}}]\nuser: [connect]\n",
    );
    let run = ["run", "load.yaml", "--server-facts", &format!("127.0.0.1:{port}")];
    let finished = place.throng(&run).exits(2);
    assert!(!place.path("run.jsonl").exists());
    finished.complains(&["--server-facts 127.0.0.1:", "throng doctor --watch --port 1 --listen"]);
}

#[test]
fn flags_of_a_watch_are_refused_without_it() {
    let place = Place::new();
    place.throng(&["doctor", "--listen", "0"]).exits(2).complains(&["--watch"]);
    place.throng(&["doctor", "--port", "1", "--port", "2"]).exits(2).complains(&["--watch"]);
    place.throng(&["doctor", "--watch", "--for", "10"]).exits(2).complains(&["--for"]);
    let nobody = ["doctor", "--watch", "--pid", "4294967295"];
    place.throng(&nobody).exits(2).complains(&["process 4294967295"]);
}
