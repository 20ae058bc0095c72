//! `throng compare` with the files of real, short runs.

use serde_json::Value;

use crate::process::{Finished, TestDir};

const LOAD: &str = "[{ramp: {to: 10, over: 300ms}}, {hold: {for: 3s}}]";
const PING: &str =
    "[connect, {every: {period: 50ms, for: 4s, do: [{send: Ping}, {expect: Ping}]}}]";

/// Makes the run file `name` of a short run.
fn record(place: &TestDir, name: &str) {
    let server = place.serve(&["echo"]);
    let scenario = place.write(&format!("{name}.yaml"), &server.scenario(LOAD, PING));
    // A busy machine can make a run invalid; the comparison then says so.
    let _ = place.throng(&["run", &scenario, "--record", name, "--interval", "100ms"]);
}

/// A run on a busy machine may be invalid, and then the exit code is 3.
#[track_caller]
fn exits_with(finished: Finished, code: i32) -> Finished {
    assert!(matches!(finished.code, Some(3)) || finished.code == Some(code), "{finished:#?}");
    finished
}

fn rows(comparison: &Value) -> &Vec<Value> {
    comparison["figures"].as_array().unwrap()
}

#[test]
fn a_run_compared_with_itself_has_no_difference() {
    let place = TestDir::new();
    record(&place, "a.jsonl");
    let flags = ["--regression", "connect.p99 > +0%", "--regression", "errors > +0"];
    let compare = |more: &[&str]| {
        let files = ["compare", "a.jsonl", "a.jsonl"];
        exits_with(place.throng(&[&files, &flags[..], more].concat()), 0)
    };
    let comparison = compare(&["--json", "-o", "page.html"]).json();
    assert_eq!(comparison["schema"], "throng.comparison/1");
    assert!(rows(&comparison).iter().any(|row| row["name"] == "message.p99"), "{comparison:#}");
    for row in rows(&comparison) {
        let change = &row["changes"][0];
        assert_eq!((&change["difference"], &change["ratio"]), (&0.0.into(), &1.0.into()), "{row}");
    }
    let summary = place.throng(&["report", "a.jsonl", "--json"]).json();
    let connected = rows(&comparison).iter().find(|row| row["name"] == "users.connected_most");
    let most = summary["users"]["connected_most"].as_f64();
    assert_eq!(connected.unwrap()["values"][0].as_f64(), most);
    for (file, beginning) in [
        ("page.html", "<!doctype html>"),
        ("all.json", "{"),
        ("pr.md", "- **A**"),
        ("text.txt", ""),
    ] {
        compare(&["-o", file]);
        let content = std::fs::read_to_string(place.path(file)).unwrap();
        assert!(content.starts_with(beginning) && content.contains("message"), "{content}");
    }
    let written = std::fs::read(place.path("all.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), comparison);
    let text = compare(&[]).stdout;
    // A busy machine may record too few intervals.
    let none = ["no difference that these runs can show", "these runs are too short to tell"];
    assert!(none.iter().any(|said| text.contains(said)), "{text}");
    assert!(text.contains("within  errors > +0 in B"), "{text}");
    let markdown = compare(&["--format", "markdown"]).stdout;
    assert!(markdown.contains("| message p99 |"), "{markdown}");
}

#[test]
fn a_change_beyond_a_regression_is_exit_code_1() {
    let place = TestDir::new();
    record(&place, "a.jsonl");
    record(&place, "b.jsonl");
    // Any change of the rate is above this one.
    let limit = ["--regression", "message.rate > -100%"];
    let finished = place.throng(&[&["compare", "a.jsonl", "b.jsonl"], &limit[..]].concat());
    let finished = exits_with(finished, 1);
    assert!(finished.stdout.contains("beyond  message.rate > -100% in B"), "{finished:#?}");
    assert!(finished.stdout.contains("the targets differ"), "each server has its own port");
    let repeats = ["compare", "a.jsonl", "b.jsonl", "--to", "b.jsonl", "a.jsonl", "--json"];
    let comparison = exits_with(place.throng(&repeats), 0).json();
    assert_eq!(comparison["method"]["name"], "repeats");
    assert_eq!(comparison["sides"][1]["runs"][1]["name"], "B2");
}

#[test]
fn a_mistake_is_exit_code_2_and_named() {
    let place = TestDir::new();
    let refused = |args: &[&str], parts: &[&str]| {
        let _ = place.throng(&[&["compare"], args].concat()).exits_with(2).stderr_contains(parts);
    };
    refused(&["a.jsonl", "b.jsonl"], &["cannot read a.jsonl"]);
    refused(&["a.jsonl"], &["nothing to compare a.jsonl with"]);
    let typo = ["a.jsonl", "b.jsonl", "--regression", "conect.p99 > +10%"];
    refused(&typo, &["unknown measurement `conect.p99`", "^^^^^^^^^^", "`connect.p99`"]);
    let unsigned = ["a.jsonl", "b.jsonl", "--regression", "connect.p99 > 10%"];
    refused(&unsigned, &["the sign of the change is missing"]);
    record(&place, "a.jsonl");
    place.write("no-run.jsonl", "hello\n");
    refused(&["a.jsonl", "no-run.jsonl"], &["cannot read no-run.jsonl", "not a run file"]);
    refused(&["a.jsonl", "a.jsonl", "-o", "a.jsonl"], &["it is a run file"]);
    // The file is checked before the runs are read.
    for (file, why) in [
        ("a.pdf", "is written as .html, .md, .json or .txt"),
        ("a.csv", "is written as .html, .md, .json or .txt"),
        ("nowhere/a.html", "there is no folder nowhere"),
        ("-", "name a file; --format says"),
    ] {
        refused(&["no-run.jsonl", "no-run.jsonl", "-o", file], &[why]);
        assert!(!place.path(file).is_file(), "{file}");
    }
}

#[test]
fn a_file_cut_anywhere_is_compared_as_far_as_it_goes() {
    let place = TestDir::new();
    record(&place, "a.jsonl");
    let whole = std::fs::read(place.path("a.jsonl")).unwrap();
    let header = whole.iter().position(|byte| *byte == b'\n').unwrap();
    for cut in [header + 1, header + 20, whole.len() / 2, whole.len() - 3] {
        std::fs::write(place.path("cut.jsonl"), &whole[..cut]).unwrap();
        let finished = exits_with(place.throng(&["compare", "a.jsonl", "cut.jsonl"]), 0);
        assert!(finished.stdout.contains("B is incomplete"), "{finished:#?}");
    }
}
