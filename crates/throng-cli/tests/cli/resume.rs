//! The run file of a fleet's run whose start is refused, and of one that `--resume` takes over.

use std::fs;

use rustix::process::Signal;

use crate::fleet::Fleet;
use crate::process::{TestDir, eventually, run_file};

const STAY: &str =
    "target: tcp://127.0.0.1:1\nload: [{ramp: {to: 5, over: 1s}}]\nuser: [connect, stay]\n";

#[test]
fn a_run_that_agents_do_not_begin_leaves_the_run_file_as_it_was() {
    let Some(fleet) = Fleet::start() else { return };
    let (bus, place) = (fleet.url(), &fleet.place);
    place.write("s.yaml", STAY);
    let earlier = "{\"schema\":\"throng.run/1\",\"started\":\"\"}\n";
    place.write("run.jsonl", earlier);
    let check_refused = |agents: &str, why: &str| {
        let run = ["run", "s.yaml", "--bus", &bus, "--agents", agents, "--no-tui"];
        place.throng(&run).exits_with(2).stderr_contains(&[why]);
        assert_eq!(fs::read_to_string(place.path("run.jsonl")).unwrap(), earlier, "{why}");
        place.throng(&[&run[..], &["--record", "new.jsonl"]].concat()).exits_with(2);
        assert!(!place.path("new.jsonl").exists(), "{why}");
    };
    check_refused("all", "no agent of the group");
    let _agent = fleet.agent("default", "one");
    check_refused("5", "only 1 agent is free");
}

#[test]
fn a_resumed_run_needs_the_run_file_and_says_how_to_name_it() {
    let place = TestDir::new();
    place.write("s.yaml", STAY);
    let resume = ["run", "s.yaml", "--bus", "nats://127.0.0.1:1", "--resume", "8fe4407a"];
    let goes_on = "--resume goes on in the run's file; name it with --record";
    let missing = place.throng(&resume).exits_with(2);
    missing.stderr_contains(&["--resume 8fe4407a: cannot read the run file run.jsonl", goes_on]);
    assert!(!place.path("run.jsonl").exists());
    let unrecorded = place.throng(&[&resume[..], &["--no-record"]].concat()).exits_with(2);
    unrecorded.stderr_contains(&["--no-record writes none", goes_on]);
}

#[test]
fn a_run_that_fleet_stop_ended_is_incomplete_and_is_collected_once() {
    let Some(fleet) = Fleet::start() else { return };
    let (bus, place) = (fleet.url(), &fleet.place);
    let mut agent = fleet.agent("default", "one");
    let server = place.serve(&["hold"]);
    let load = "[{ramp: {to: 2, over: 100ms}}, {hold: {for: 10m}}]";
    place.write("long.yaml", &server.scenario(load, "[connect, stay]"));
    let run = ["run", "long.yaml", "--bus", &bus, "--no-tui"];
    let first = place.start(&[&run[..], &["--agents", "1", "--force"]].concat());
    let record = place.path("run.jsonl");
    eventually("lines", || record.exists() && run_file(&record).len() > 2);
    let id = run_file(&record)[0]["id"].as_str().unwrap().to_owned();
    first.signal(Signal::KILL);
    let stop = || fleet.run(&["stop", &id]);
    eventually("it stops the run", || stop().stdout.contains("one: ramps its load down"));
    agent.line_with("the load has ended");
    let resume = || place.throng(&[&run[..], &["--resume", &id]].concat());
    let resumed = resume().exits_with(4);
    resumed.stdout_contains(&["interrupted by throng fleet stop: the report covers the part"]);
    let lines = run_file(&record);
    let end = &lines.last().unwrap()["end"];
    assert_eq!(end["reason"], "interrupted", "{end:#}");
    let events = lines.iter().filter_map(|line| line["events"].as_array()).flatten();
    let by: Vec<_> = events.filter(|event| event["event"] == "interrupted").collect();
    assert!(by.len() == 1 && by[0]["by"] == "throng fleet stop", "{by:#?}");
    let whole = fs::read(&record).unwrap();
    resume().exits_with(2).stderr_contains(&["there is nothing to collect", "throng report"]);
    assert_eq!(fs::read(&record).unwrap(), whole, "it is as it was");
}
