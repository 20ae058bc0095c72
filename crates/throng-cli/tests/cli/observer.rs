//! `throng agent --observe`: the server's side of a run, over a real bus.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use throng_measure::ProcessMetric;

use crate::process::{Running, TestDir, eventually, run_file};

/// Starts a NATS server. Returns `None` if `make clients` did not find one.
fn nats(place: &TestDir) -> Option<(Running, String)> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients/nats-server");
    if !program.exists() {
        println!("skipped: there is no nats-server: run `make clients`");
        return None;
    }
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut command = Command::new(program);
    command.args(["--addr", "127.0.0.1", "--port", &port.to_string()]);
    let server = place.spawn(command);
    eventually("the bus listens", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
    Some((server, format!("nats://127.0.0.1:{port}")))
}

#[test]
fn a_run_records_the_servers_side_from_an_observer_and_notes_its_loss() {
    let place = TestDir::new();
    let Some((_nats, bus)) = nats(&place) else { return };
    let server = place.serve(&["ok"]);
    let port = server.addr.rsplit_once(':').unwrap().1.to_owned();
    let bus = ["--bus", &bus];
    let observe =
        ["agent", "--observe", "--port", &port, "--name", "beside", "--interval", "200ms"];
    let mut observer = place.start(&[&observe[..], &bus].concat());
    let hello = observer.line();
    assert!(hello.starts_with("observer beside of group default: port "), "{hello}");
    assert!(hello.contains(&format!("pid {}", server.process.pid())), "{hello}");

    let listed = place.throng(&[&["fleet", "ls"], &bus[..]].concat()).exits_with(0);
    listed.stdout_contains(&["beside", &port, &format!("pid {}", server.process.pid())]);

    let load = "[{ramp: {to: 5, over: 100ms}}, {hold: {for: 2m}}]";
    let user = "[connect, {every: {period: 100ms, do: [send: x, expect: ok]}}]";
    place.write("load.yaml", &server.scenario(load, user));
    let missing = [&["run", "load.yaml", "--observer", "other"], &bus[..]].concat();
    place.throng(&missing).exits_with(2).stderr_contains(&["there are: beside"]);

    // In its own folder, so that only the observer knows the server.
    let elsewhere = place.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let run = ["run", "load.yaml", "--observer", "beside", "--interval", "250ms"];
    let mut run = place.command(&[&run[..], &bus].concat());
    run.env("XDG_RUNTIME_DIR", elsewhere);
    let run = Running::new(run);
    let lines = || match place.path("run.jsonl").exists() {
        true => run_file(&place.path("run.jsonl")),
        false => Vec::new(),
    };
    let has_facts = |line: &&Value| {
        let of_server = line["kernel"].get(ProcessMetric::THREADS.server.name());
        line["server"]["handler"] == "ok" && of_server.is_some()
    };
    eventually("the server's side is in the run file", || {
        lines().iter().filter(has_facts).count() >= 2
    });
    observer.signal(Signal::INT);
    assert_eq!(observer.finish().code, Some(0));
    eventually("its silence is noted", || {
        let is_lost = |event: &Value| event["event"] == "facts_lost";
        lines()
            .iter()
            .any(|line| line["events"].as_array().is_some_and(|events| events.iter().any(is_lost)))
    });
    run.signal(Signal::INT);
    let finished = run.finish();
    assert!(!matches!(finished.code, Some(2) | None), "{finished:#?}");
    finished.stdout_contains(&["server's side: from observer beside"]);
}

#[test]
fn a_dry_run_of_agents_shows_the_part_of_each() {
    let place = TestDir::new();
    let Some((_nats, bus)) = nats(&place) else { return };
    let bus = ["--bus", &bus];
    let agents = ["one", "two"].map(|name| {
        let mut agent = place.start(&[&["agent", "--name", name], &bus[..]].concat());
        assert!(agent.line().starts_with(&format!("agent {name} of group default: ")));
        agent
    });
    let target = "target: tcp://127.0.0.1:1\n";
    let load = "load: [{ramp: {to: 1000, over: 1s}}]\nuser: [connect]\n";
    place.write("load.yaml", &(target.to_owned() + load));
    let run = ["run", "load.yaml", "--agents", "2", "--dry-run", "--cores", "3"];
    let shown = place.throng(&[&run[..], &bus].concat()).exits_with(0).stdout;
    for name in ["one", "two"] {
        let row = shown.lines().find(|line| line.starts_with(name)).expect("a row");
        let cells: Vec<_> = row.split_whitespace().collect();
        assert_eq!(cells[3..], ["3", "50.0", "%", "500"], "{shown}");
    }
    drop(agents);
}
