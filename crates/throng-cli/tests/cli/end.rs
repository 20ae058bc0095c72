//! Unplanned ends: signals to the generator, signals to the server.

use std::time::Duration;

use rustix::process::Signal;

use serde_json::Value;

use crate::process::{Running, Serving, TestDir, eventually, run_file};

/// Starts a run of a minute against `server`, with 10 users who exchange messages all the time.
fn long_run(place: &TestDir, server: &Serving) -> Running {
    let talk = "[connect, {every: {period: 50ms, \
                do: [{send: Ping}, {expect: {text: Ping, timeout: 10s}}]}}]";
    let load = "[{ramp: {to: 10, over: 200ms}}, {hold: {for: 1m}}]";
    let thresholds = "thresholds: [errors == 0, users.failed == 0]\n";
    place.write("talk.yaml", &(server.scenario(load, talk) + thresholds));
    let mut run = place.start(&["run", "talk.yaml", "--interval", "200ms", "--json", "out.json"]);
    run.line_with("connected 10 ");
    run.line_with("messages");
    eventually("the server's own count is recorded", || {
        let accepted = |line: &Value| line["server"]["counters"]["accepted"].as_u64();
        run_file(&place.path("run.jsonl")).iter().any(|line| accepted(line) >= Some(10))
    });
    run
}

#[test]
fn ctrl_c_ramps_down_and_reports() {
    for (signal, name) in [(Signal::INT, "Ctrl-C"), (Signal::TERM, "SIGTERM")] {
        let place = TestDir::new();
        let server = place.serve(&["echo"]);
        let run = long_run(&place, &server);
        run.signal(signal);
        let finished = run.finish();
        assert_eq!(finished.code, Some(4), "{finished:#?}");
        for part in [
            &format!("{name}: ramping down"),
            &format!("Incomplete: {name} ended it after "),
            " s of its 60 s",
            "at most ",
            "all 2 thresholds met so far",
            &format!("interrupted by {name}"),
        ] {
            assert!(finished.stdout.contains(part), "{part:?} is not in {}", finished.stdout);
        }
        let lines = run_file(&place.path("run.jsonl"));
        assert_eq!(lines.last().unwrap()["end"]["reason"], "interrupted");
        let summary = place.json("out.json");
        assert_eq!(summary["run"]["end"], "interrupted");
        let incomplete = summary["run"]["incomplete"].as_str().unwrap();
        assert!(incomplete.starts_with(&format!("{name} ended it after ")), "{incomplete}");
        // A report from the run file shows the same.
        let report = place.throng(&["report"]).exits_with(4);
        assert!(report.stdout.contains(incomplete), "{report:#?}");
        assert!(report.stdout.contains("all 2 thresholds met so far"), "{report:#?}");
        eventually("every connection is closed", || {
            place.throng(&["ctl", "count", "--json"]).json()["open"] == 0
        });
    }
}

#[test]
fn a_server_that_is_killed_is_noticed_and_reported_by_kind_of_error() {
    let place = TestDir::new();
    let server = place.serve(&["echo"]);
    let mut run = long_run(&place, &server);
    server.process.signal(Signal::KILL);
    let line = run.line_with("the server");
    assert!(line.contains("control socket") || line.contains("throng"), "{line}");
    run.line_with("connected 0 ");
    eventually("a user that has lost its connection reconnects and is refused", || {
        let refused = |line: &Value| line["load"]["connect_failed"]["ECONNREFUSED"].as_u64();
        run_file(&place.path("run.jsonl")).iter().any(|line| refused(line) > Some(0))
    });
    run.signal(Signal::INT);
    let finished = run.finish();
    let text = std::fs::read_to_string(place.path("out.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(summary["connect"]["failed"]["ECONNREFUSED"].as_u64() > Some(0), "{finished:#?}");
    let errors = summary["errors"].as_object().unwrap();
    let lost: u64 =
        errors.iter().filter(|(kind, _)| *kind != "connect").filter_map(|(_, n)| n.as_u64()).sum();
    assert!(lost >= 10, "each of the 10 connections was lost: {errors:?}");
    assert!(summary["server"]["accepted"].is_u64(), "its last counters are kept: {text}");
}

#[test]
fn a_generator_that_is_killed_leaves_a_run_file_up_to_the_last_interval() {
    let place = TestDir::new();
    let server = place.serve(&["echo"]);
    let mut run = long_run(&place, &server);
    let seen: f64 = run.line().split_whitespace().next().unwrap().parse().unwrap();
    run.signal(Signal::KILL);
    run.finish();
    let lines = run_file(&place.path("run.jsonl"));
    let last = lines.last().unwrap();
    assert!(last["at_ms"].as_f64().unwrap() >= seen * 1000.0 - 50.0, "{seen} s were shown: {last}");
    let report = place.throng(&["report"]).exits_with(4);
    assert!(report.stdout.contains("Incomplete: its file has no last line"), "{report:#?}");
    assert!(report.stdout.contains("has no last line"), "{report:#?}");
    eventually("the server forgets the connections", || {
        place.throng(&["ctl", "count", "--json"]).json()["open"] == 0
    });
}

#[test]
fn a_generator_that_was_stopped_for_a_while_grades_itself_invalid() {
    let place = TestDir::new();
    let server = place.serve(&["echo"]);
    let run = long_run(&place, &server);
    run.signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(3));
    run.signal(Signal::CONT);
    std::thread::sleep(Duration::from_secs(1));
    run.signal(Signal::INT);
    let finished = run.finish().exits_with(4);
    assert!(
        finished.stdout.contains("Measurement: incomplete (Ctrl-C ended it after"),
        "{finished:#?}"
    );
    assert!(
        finished
            .stdout
            .contains("and invalid, its numbers are not the target's: the generator was late"),
        "{finished:#?}"
    );
}

#[test]
fn a_run_that_is_ended_over_the_control_socket_is_incomplete() {
    for verb in ["shutdown", "drain"] {
        let place = TestDir::new();
        let server = place.serve(&["echo"]);
        let run = long_run(&place, &server);
        let pid = run.pid().to_string();
        place.throng(&["ctl", verb, "--pid", &pid]).exits_with(0);
        let finished = run.finish().exits_with(4);
        let said = format!("Incomplete: throng ctl {verb} ended it after ");
        assert!(finished.stdout.contains(&said), "{finished:#?}");
        assert_eq!(place.json("out.json")["run"]["end"], "interrupted");
    }
}

#[test]
fn a_run_whose_files_are_not_whole_is_no_success() {
    let place = TestDir::new();
    let server = place.serve(&["ok"]);
    let load = "[{arrivals: {rate: 50/s, for: 1s}}]";
    place.write("few.yaml", &server.scenario(load, "[connect, close]"));
    let run = ["run", "few.yaml", "--interval", "100ms"];
    let whole = place.throng(&[&run[..], &["--json", "whole.json"]].concat());
    assert!(matches!(whole.code, Some(0 | 3)), "{whole:#?}");
    // Files may grow to half of what the run has to write.
    let limited = |bytes: u64, args: &[&str]| {
        let args = [&run[..], args].concat().join(" ");
        let blocks = bytes / 512;
        // Without the signal, a write beyond the limit fails as it does on a full disk.
        let line = format!("trap '' XFSZ; ulimit -f {blocks}; exec throng {args} --no-calibrate");
        let finished = place.shell(&line);
        // On a busy machine, the run is invalid besides.
        assert!(matches!(finished.code, Some(3 | 5)), "{finished:#?}");
        finished
    };
    let lines = std::fs::read_to_string(place.path("run.jsonl")).unwrap();
    let header = lines.lines().next().unwrap().len() as u64;
    let half = header + (lines.len() as u64 - header) / 2;
    limited(half, &[]).stdout_contains(&["the run file is incomplete: File too large"]);
    // The last line is short: it may have had room.
    let report = place.throng(&["report"]);
    assert!(matches!(report.code, Some(3..=5)), "{report:#?}");
    let json = std::fs::metadata(place.path("whole.json")).unwrap().len();
    let flags = ["--no-record", "--json", "half.json"];
    limited(json / 2, &flags).stderr_contains(&["cannot write half.json: File too large"]);
}

#[test]
fn what_standard_output_does_not_take_is_an_error_unless_its_reader_has_gone() {
    let place = TestDir::new();
    let full = place.shell("throng schema > /dev/full").exits_with(5);
    full.stderr_contains(&["error: cannot write standard output: No space left on device"]);
    place.shell("throng schema | true").exits_with(0);
}

#[test]
fn a_run_without_a_finished_iteration_is_not_met() {
    let place = TestDir::new();
    let server = place.serve(&["echo"]);
    let load = "[{arrivals: {rate: 25/s, for: 1s, spacing: even}}]";
    let wrong = "[connect, {send: Ping}, {expect: Pong}, close]";
    place.write("wrong.yaml", &(server.scenario(load, wrong) + "on_error: stop\n"));
    let finished = place.throng(&["run", "wrong.yaml"]).misses_threshold();
    let said = "no user finished: all 25 iterations failed";
    assert!(finished.stdout.contains(said), "{finished:#?}");
    let report = place.throng(&["report"]).misses_threshold();
    assert!(report.stdout.contains(said), "{report:#?}");
}

#[test]
fn a_target_that_is_gone_at_the_end_is_not_met() {
    let place = TestDir::new();
    let server = place.serve(&["echo"]);
    let load = "[{ramp: {to: 5, over: 200ms}}, {hold: {for: 6s}}]";
    let talk = "[connect, {every: {period: 50ms, do: [{send: Ping}, {expect: Ping}]}}]";
    place.write("talk.yaml", &server.scenario(load, talk));
    let mut run = place.start(&["run", "talk.yaml", "--interval", "200ms"]);
    run.line_with("connected 5 ");
    run.line_with("messages");
    eventually("the server's own count is recorded", || {
        let accepted = |line: &Value| line["server"]["counters"]["accepted"].as_u64();
        run_file(&place.path("run.jsonl")).iter().any(|line| accepted(line) >= Some(5))
    });
    server.process.signal(Signal::KILL);
    let finished = run.finish().misses_threshold();
    assert!(
        finished.stdout.contains("the target had stopped answering when the run ended"),
        "{finished:#?}"
    );
    let lines = run_file(&place.path("run.jsonl"));
    assert_eq!(lines.last().unwrap()["end"]["reason"], "target_lost");
}

#[test]
fn a_process_ends_with_its_parent() {
    let place = TestDir::new();
    let mut server = place.serve(&["echo", "--exit-with-parent"]);
    let talk =
        server.scenario("[{ramp: {to: 2, over: 100ms}}, {hold: {for: 1m}}]", "[connect, stay]");
    place.write("stay.yaml", &talk);
    let mut run = place.start(&["run", "stay.yaml", "--interval", "200ms", "--exit-with-parent"]);
    run.line_with("connected 2 ");
    run.close_stdin();
    let finished = run.finish();
    assert!(finished.stdout.contains("the end of the parent process"), "{finished:#?}");
    server.process.close_stdin();
    let stopped = server.process.finish().exits_with(0);
    assert!(stopped.stdout.contains("\"by\":\"the end of the parent process\""), "{stopped:#?}");
}

#[test]
fn a_run_file_that_cannot_grow_is_reported_and_the_run_continues() {
    let place = TestDir::new();
    let server = place.serve(&["echo"]);
    let load = "[{ramp: {to: 5, over: 200ms}}, {hold: {for: 5s}}]";
    let talk = "[connect, {every: {period: 50ms, do: [{send: Ping}, {expect: Ping}]}}]";
    place.write("talk.yaml", &server.scenario(load, talk));
    // 80 blocks of 512 bytes hold the first line and a few intervals.
    let finished =
        place.shell("ulimit -f 80; exec throng run talk.yaml --no-calibrate --interval 100ms");
    // On a busy machine, the run is invalid besides.
    assert!(matches!(finished.code, Some(5 | 3)), "{finished:#?}");
    assert!(finished.stdout.contains("the run file is incomplete"), "{finished:#?}");
    let lines = finished.stdout.lines().filter(|line| line.contains("connected 5 ")).count();
    assert!(lines >= 3, "the run continued: {finished:#?}");
    let report = place.throng(&["report", "--json"]).json();
    assert!(report["connect"]["ok"].as_u64() > Some(0), "the written part is readable: {report}");
}
