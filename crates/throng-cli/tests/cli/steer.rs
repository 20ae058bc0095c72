//! `throng ctl`.

use rustix::process::Signal;

use crate::process::{TestDir, eventually};

#[test]
fn users_of_a_running_load_are_started_and_stopped() {
    let place = TestDir::new();
    let server = place.serve(&["hold"]);
    place.write(
        "stay.yaml",
        &server.scenario("[{ramp: {to: 10, over: 100ms}}, {hold: {for: 1m}}]", "[connect, stay]"),
    );
    let mut run = place.start(&["run", "stay.yaml", "--interval", "100ms"]);
    run.line_with("connected 10 ");
    let pid = run.pid().to_string();
    let started =
        place.throng(&["ctl", "start", "15", "--json", "--pid", &pid]).exits_with(0).json();
    assert_eq!(started["users"], 25, "the printed count includes the command");
    run.line_with("connected 25 ");
    let stopped = place.throng(&["ctl", "stop", "5", "--pid", &pid]).exits_with(0).stdout;
    assert!(stopped.contains("users 20"), "{stopped}");
    run.line_with("connected 20 ");
    let count = place.count(run.pid());
    assert_eq!((count["users"].as_u64(), count["connected"].as_u64()), (Some(20), Some(20)));
    eventually("the server counts the same", || place.count(server.process.pid())["open"] == 20);
    place.throng(&["ctl", "shutdown", "--pid", &run.pid().to_string()]).exits_with(0);
    let finished = run.finish();
    assert!(finished.stdout.contains("interrupted by throng ctl shutdown"), "{finished:#?}");
    let lines = crate::process::run_file(&place.path("run.jsonl"));
    let steered = lines.iter().filter_map(|line| line["events"].as_array()).flatten();
    let commands: Vec<_> = steered.filter_map(|event| event["command"].as_str()).collect();
    assert_eq!(commands[..2], ["start 15", "stop 5"], "the run file contains the commands");
}

#[test]
fn a_paused_run_says_so_in_each_line_and_in_its_report() {
    let place = TestDir::new();
    let server = place.serve(&["hold"]);
    let load = "[{ramp: {to: 10, over: 100ms}}, {hold: {for: 1m}}]";
    place.write("stay.yaml", &server.scenario(load, "[connect, stay]"));
    let mut run = place.start(&["run", "stay.yaml", "--interval", "100ms"]);
    run.line_with("connected 10 ");
    let pid = run.pid().to_string();
    let says = format!("paused; throng ctl resume --pid {pid}");
    place.throng(&["ctl", "pause", "--pid", &pid]).exits_with(0);
    run.line_with(&says);
    let next = run.line();
    assert!(next.contains(&says), "{next}");
    place.throng(&["ctl", "resume", "--pid", &pid]).exits_with(0);
    run.line_with("[steered: resume]");
    assert!(!run.line().contains("paused"));
    place.throng(&["ctl", "shutdown", "--pid", &pid]).exits_with(0);
    let finished = run.finish();
    assert!(finished.stdout.contains("s of them paused"), "{finished:#?}");
    let report = place.throng(&["report", "--json"]).json();
    assert!(report["paused_s"].as_f64() > Some(0.0), "{report}");
}

#[test]
fn a_run_that_stays_paused_ends_by_itself() {
    let place = TestDir::new();
    let server = place.serve(&["hold"]);
    let load = "[{ramp: {to: 10, over: 100ms}}, {hold: {for: 1h}}]";
    place.write("stay.yaml", &server.scenario(load, "[connect, stay]"));
    let mut run = place.start(&["run", "stay.yaml", "--interval", "100ms", "--pause-max", "300ms"]);
    run.line_with("connected 10 ");
    place.throng(&["ctl", "pause", "--pid", &run.pid().to_string()]).exits_with(0);
    run.line_with("[interrupted by a pause of 300ms (--pause-max), ramping down]");
    let finished = run.finish();
    finished.exits_with(4);
    let check = place.throng(&["report", "--check"]).exits_with(4).stdout;
    assert!(check.starts_with("incomplete\n  a pause of 300ms (--pause-max) ended it"), "{check}");
    let lines = crate::process::run_file(&place.path("run.jsonl"));
    let end = &lines.last().unwrap()["end"];
    assert_eq!(end["detail"], "a pause of 300ms (--pause-max)");
}

#[test]
fn a_server_pauses_and_resumes() {
    let place = TestDir::new();
    let server = place.serve(&["hold"]);
    let pid = server.process.pid().to_string();
    let unnamed = place.throng(&["ctl", "pause"]).exits_with(2);
    unnamed.stderr_contains(&["`throng ctl pause` changes a process", "--pid N", &pid]);
    let _open = std::net::TcpStream::connect(&server.addr).unwrap();
    place.throng(&["ctl", "pause", "--pid", &pid]).exits_with(0);
    assert!(std::net::TcpStream::connect(&server.addr).is_err());
    place.throng(&["ctl", "resume", "--pid", &pid]).exits_with(0);
    let _more = std::net::TcpStream::connect(&server.addr).unwrap();
    eventually("it is let in", || place.count(server.process.pid())["open"] == 2);
}

#[test]
fn the_process_is_found_or_must_be_named() {
    let place = TestDir::new();
    place.throng(&["ctl", "count"]).exits_with(2).stderr_contains(&["no throng process"]);
    let list = place.throng(&["ctl", "list"]).exits_with(0);
    assert!(list.stdout.contains("no throng process"), "{list:#?}");
    let one = place.serve(&["hold"]);
    let other = place.serve(&["echo", "--control", "there.sock"]);
    let finished = place
        .throng(&["ctl", "count"])
        .exits_with(2)
        .stderr_contains(&["--pid", "hold on", "echo on"]);
    assert!(finished.stderr.contains(&one.process.pid().to_string()), "{finished:#?}");
    let pid = other.process.pid();
    assert_eq!(place.count(pid)["open"], 0);
    place.throng(&["ctl", "count", "--control", "there.sock"]).exits_with(0);
    let list = place.throng(&["ctl", "list", "--json"]).json();
    assert_eq!(list.as_array().map(Vec::len), Some(2), "{list}");
    place
        .throng(&["ctl", "start", "5", "--pid", &pid.to_string()])
        .exits_with(2)
        .stderr_contains(&["does not support `start`"]);
    place
        .throng(&["ctl", "count", "--pid", "4194999"])
        .exits_with(2)
        .stderr_contains(&["4194999", "ctl list"]);
}

#[test]
fn a_stopped_server_is_not_reported_as_gone() {
    let place = TestDir::new();
    let server = place.serve(&["ok"]);
    server.process.signal(Signal::STOP);
    let pid = server.process.pid().to_string();
    let listed = place.throng(&["ctl", "list"]).exits_with(0);
    listed.stderr_contains(&[&pid, "does not answer"]);
    place.throng(&["ctl", "count"]).exits_with(2).stderr_contains(&[&pid, "does not answer"]);
    server.process.signal(Signal::CONT);
    assert!(place.throng(&["ctl", "list"]).exits_with(0).stdout.contains(&pid));
}
