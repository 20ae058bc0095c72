//! The calibration of the generator: its measurement, its output, and its comparison with the run.

use std::io::Write as _;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::process::{Finished, TestDir, eventually, run_file};

/// Returns the ceiling in the header of the run file.
fn ceiling(place: &TestDir) -> Value {
    run_file(&place.path("run.jsonl"))[0]["ceiling"].clone()
}

/// Runs `throng` with `args` and calibrations of increasing length, until `rates` of the ceiling
/// are known. Returns `None` if other programs keep the CPUs too busy for each of them.
fn calibrated(place: &TestDir, args: &[&str], rates: &[&str]) -> Option<Finished> {
    let run = |length| place.throng(&[args, &["--calibrate", length]].concat());
    let is_known = || rates.iter().all(|rate| ceiling(place)[rate].is_number());
    let mut last = None;
    for length in ["1s", "4s", "16s"] {
        let finished = run(length);
        if is_known() {
            return Some(finished);
        }
        last = Some(finished);
    }
    let said = last.unwrap().stdout;
    let is_busy = said.contains("other programs keep the CPUs busy");
    assert!(is_busy || said.contains("this machine: "), "it did not measure: {said}");
    // Past the capture of the test's output: a skipped check does not pass silently.
    let why = "skipped: other programs keep the CPUs too busy for a calibration of 16s";
    let _ = writeln!(std::io::stderr(), "{why}");
    None
}

/// Counts the sentences about the ceiling among the reasons of the grade.
fn reasons_of_the_ceiling(summary: &Value) -> usize {
    let reasons = summary["validity"]["reasons"].as_array().unwrap();
    reasons.iter().filter(|reason| reason.as_str().unwrap().contains("capacity")).count()
}

#[test]
fn the_capacity_of_the_generator_is_measured_shown_and_recorded() {
    let place = TestDir::new();
    let server = place.serve(&["ok"]);
    let load = "[{arrivals: {rate: 50/s, for: 1s, spacing: even}}]";
    let user = "[connect, {send: a}, {expect: ok}, close]";
    place.write("few.yaml", &server.scenario(load, user));
    let rates = ["connects_per_s", "messages_per_s"];
    let run = ["run", "few.yaml", "--json", "out.json", "--details"];
    let Some(finished) = calibrated(&place, &run, &rates) else { return };
    // On a busy machine the generator may be late, and the grade invalid.
    assert!(matches!(finished.code, Some(0 | 3)), "{finished:#?}");
    let line = finished.stdout.lines().find(|line| line.starts_with("this machine: ")).unwrap();
    assert!(line.contains("/s connects, ") && line.contains("/s messages at most"), "{line}");
    let ceiling = ceiling(&place);
    for what in rates {
        assert!(ceiling[what].as_f64().unwrap() > 0.0, "{what} in {ceiling}");
    }
    let summary: Value =
        serde_json::from_slice(&std::fs::read(place.path("out.json")).unwrap()).unwrap();
    let share = summary["generator"]["ceiling_share"].as_f64().unwrap();
    assert!(share > 0.0 && share < 0.8, "{share} of {ceiling}");
    assert_eq!(reasons_of_the_ceiling(&summary), 0, "{summary:#}");
    assert!(finished.stdout.contains("of this generator's capacity."), "{}", finished.stdout);
}

#[test]
fn a_run_that_offers_far_more_than_the_generator_can_do_is_not_valid() {
    let place = TestDir::new();
    let server = place.serve(&["ok"]);
    // First measure the ceiling here, in a run with nearly no load.
    let few = "[{arrivals: {rate: 10/s, for: 200ms}}]";
    place.write("few.yaml", &server.scenario(few, "[connect, {close: reset}]"));
    if calibrated(&place, &["run", "few.yaml"], &["connects_per_s"]).is_none() {
        return;
    }
    let few = ceiling(&place);
    let connects = few["connects_per_s"].as_f64().unwrap();
    assert!(few.get("messages_per_s").is_none(), "no user sends a message: {few}");

    // A tenth of a second brings as many arrivals as the generator makes in a second.
    let (rate, most) = (connects * 10.0, connects);
    let many = format!("[{{arrivals: {{rate: {rate:.0}/s, for: 100ms, most: {most:.0}}}}}]");
    place.write("many.yaml", &server.scenario(&many, "[connect, {close: reset}]"));
    let finished =
        place.throng(&["run", "many.yaml", "--calibrate", "1s", "--json", "-", "--force"]);
    assert_ne!(finished.json()["validity"]["grade"], "valid", "{few} {}", finished.stdout);
}

#[test]
fn a_calibration_ends_at_once_when_it_is_interrupted_and_leaves_nothing() {
    let place = TestDir::new();
    let server = place.serve(&["ok"]);
    place.write("stay.yaml", &server.scenario("[{ramp: {to: 5, over: 1s}}]", "[connect, stay]"));
    let temporary = place.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = place.command(&["run", "stay.yaml", "--calibrate", "1m"]);
    command.env("TMPDIR", &temporary);
    let mut run = place.spawn(command);
    run.line_with("--no-calibrate skips it");
    let left = || std::fs::read_dir(&temporary).unwrap().map(Result::unwrap).collect::<Vec<_>>();
    eventually("the calibration has begun", || !left().is_empty());
    let began = Instant::now();
    run.signal(Signal::INT);
    let finished =
        run.finish().exits_with(4).stderr_contains(&["Ctrl-C", "the run was not started"]);
    assert!(began.elapsed() < Duration::from_secs(45), "of a minute: {:?}", began.elapsed());
    assert!(!finished.stdout.contains("connects"), "{finished:#?}");
    assert!(left().is_empty(), "{:?}", left());
}

#[test]
fn a_run_continues_if_its_calibration_fails() {
    let place = TestDir::new();
    let server = place.serve(&["ok"]);
    let load = "[{arrivals: {rate: 20/s, for: 500ms}}]";
    place.write("few.yaml", &server.scenario(load, "[connect, close]"));
    let mut run = place.command(&["run", "few.yaml", "--calibrate", "1s"]);
    // The calibration cannot create its folder inside a file.
    run.env("TMPDIR", place.path("few.yaml"));
    let output = run.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    assert!(said.contains("connections at most by the plan, 500ms"), "{said}");
    assert!(said.contains("calibration failed: "), "{said}");
    assert!(!said.contains("of this generator's capacity"), "{said}");
    assert_eq!(ceiling(&place), Value::Null);
}
