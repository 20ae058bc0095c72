//! `throng import-log`, and what `throng report` and `throng compare` make of its runs.

use std::path::Path;

use serde_json::json;

use crate::process::TestDir;

/// Copies a log of another tool to the folder of a test.
fn copy_log(dir: &TestDir, path: &str, name: &str) {
    const LOGS: &str = "../throng-import/tests/import/log_files";
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join(LOGS).join(path);
    std::fs::copy(log, dir.path(name)).unwrap();
}

/// Makes the run file of a log.
fn import(dir: &TestDir, path: &str, run: &str) {
    copy_log(dir, path, "other.log");
    let imported = dir.throng(&["import-log", "other.log", "-o", run]).exits_with(0);
    imported.stdout_contains(&[&format!("run: {run}; show it with: throng report {run}")]);
}

fn report(dir: &TestDir, run: &str, format: &str, code: i32) -> String {
    dir.throng(&["report", run, "--format", format]).exits_with(code).stdout
}

#[test]
fn a_run_of_tsung_has_means_and_no_percentiles() {
    let dir = TestDir::new();
    import(&dir, "tsung/tcp.log", "tsung.jsonl");
    for (format, parts) in [
        ("text", ["Imported from tsung.log: no cause", "(mean 361 µs over the run)"]),
        ("markdown", ["imported from tsung.log", "mean 361 µs"]),
    ] {
        let text = report(&dir, "tsung.jsonl", format, 0);
        assert!(parts.iter().all(|part| text.contains(part)), "{format}: {text}");
    }
    let text = dir.throng(&["report", "tsung.jsonl", "--details"]).exits_with(0).stdout;
    let row = text.lines().find(|line| line.starts_with("messages ")).unwrap();
    let cells: Vec<_> = row.split_whitespace().collect();
    assert_eq!(cells[1..], ["1.36k", "52.3/s", "-", "-", "-", "-", "-", "12.2", "ms"], "{row}");

    let summary = dir.throng(&["report", "tsung.jsonl", "--json"]).exits_with(0).json();
    let of = json!({"tool": "tsung", "format": "tsung.log", "file": "other.log"});
    assert_eq!(summary["run"]["imported"], of);
    let message = &summary["latency_stats"]["message"];
    assert_eq!((&message["count"], &message["percentiles_us"]), (&1359.into(), &json!(null)));
    assert_eq!(summary["message"]["judged_us"]["count"], 0, "no histogram is made up");
    assert_eq!(summary["diagnosis"]["findings"], json!([]));

    let csv = report(&dir, "tsung.jsonl", "csv", 0);
    assert!(csv.contains("\n10.000,message.mean,latency,us,440\n"), "{csv}");
    assert!(!csv.contains("message.p50") && !csv.contains("connect.p99"), "{csv}");
}

#[test]
fn a_run_of_k6_has_the_percentiles_of_its_points() {
    let dir = TestDir::new();
    import(&dir, "k6/http.json", "k6.jsonl");
    // k6 dropped a fifth of the iterations, so that the run is invalid.
    let summary = dir.throng(&["report", "k6.jsonl", "--json"]).exits_with(3).json();
    assert_eq!(summary["run"]["imported"]["format"], "k6 --out json");
    let latency = &summary["http"]["judged_us"];
    assert!(latency["count"].as_u64() > Some(0) && latency["p99"].as_u64() > Some(0), "{latency}");
    assert!(summary.get("latency_stats").is_none(), "{summary:#}");
    for format in ["text", "markdown"] {
        let text = report(&dir, "k6.jsonl", format, 3);
        assert!(text.contains("mported from k6 --out json") && text.contains("p99"), "{text}");
    }
    let csv = report(&dir, "k6.jsonl", "csv", 3);
    assert!(csv.contains(",http.p99,latency,us,"), "{csv}");
}

#[test]
fn an_imported_run_has_a_page() {
    let dir = TestDir::new();
    import(&dir, "tsung/tcp.log", "tsung.jsonl");
    dir.throng(&["report", "tsung.jsonl", "-o", "tsung.html"]).exits_with(0);
    let page = std::fs::read_to_string(dir.path("tsung.html")).unwrap();
    assert!(page.starts_with("<!doctype html>"), "{}", &page[..80]);
}

#[test]
fn imported_runs_are_compared_by_means() {
    let dir = TestDir::new();
    import(&dir, "tsung/http.log", "tsung.jsonl");
    import(&dir, "k6/http.json", "k6.jsonl");
    let compare = ["compare", "tsung.jsonl", "k6.jsonl"];
    let compared = dir.throng(&[&compare[..], &["--json"]].concat()).exits_with(3).json();
    let figures = compared["figures"].as_array().unwrap();
    let mean = figures.iter().find(|figure| figure["name"] == "http.mean").unwrap();
    assert!(mean["values"].as_array().unwrap().iter().all(|us| us.as_f64() > Some(0.0)), "{mean}");
    let p99 = figures.iter().find(|figure| figure["name"] == "http.p99");
    assert!(p99.is_none_or(|figure| figure["values"][0].is_null()), "{p99:?}");

    let slower = ["--regression", "http.mean > +0%"];
    let itself = ["compare", "tsung.jsonl", "tsung.jsonl"];
    dir.throng(&[&itself[..], &slower].concat()).exits_with(0);
    let unknown = ["--regression", "http.p99 > +10%"];
    let said = dir.throng(&[&itself[..], &unknown].concat()).exits_with(1).stdout;
    assert!(said.contains("not measured: cannot be compared"), "{said}");
    let text = dir.throng(&compare).exits_with(3).stdout;
    assert!(text.contains("the latencies of A: connect, http"), "{text}");
}

#[test]
fn files_that_are_no_logs_are_refused() {
    let dir = TestDir::new();
    let refused = |args: &[&str], parts: &[&str]| {
        let args = [&["import-log"], args].concat();
        dir.throng(&args).exits_with(2).stderr_contains(parts);
    };
    dir.write("notes.txt", "hello\n");
    refused(&["notes.txt"], &["no importer recognises this log", "tsung.log of tsung"]);
    dir.write("load.sh", "tcpkali -c 2 -T 1s -m ping 10.0.0.1:1\n");
    refused(&["load.sh"], &["this is a scenario of tcpkali", "throng import load.sh"]);
    refused(&["missing.log"], &["cannot read missing.log"]);
    std::fs::write(dir.path("packed.log"), b"\x1f\x8b\x08").unwrap();
    refused(&["packed.log"], &["it is compressed", "gunzip packed.log"]);
    std::fs::write(dir.path("bytes.log"), b"one\n\xff\n").unwrap();
    refused(&["bytes.log"], &["line 2 is no UTF-8"]);
    copy_log(&dir, "tsung/tcp.log", "tsung.log");
    refused(&["tsung.log", "--tool", "k6"], &["k6"]);
    refused(&["tsung.log", "--tool", "jmeter"], &["[possible values: artillery, k6, tsung]"]);

    import(&dir, "tsung/tcp.log", "run.jsonl");
    refused(&["tsung.log", "-o", "run.jsonl"], &["it exists; --force overwrites it"]);
    refused(&["run.jsonl"], &["a run file of throng already", "throng report run.jsonl"]);
    dir.throng(&["import", "tsung.log"]).exits_with(2).stderr_contains(&["throng import-log"]);
}

#[test]
fn the_tool_of_a_log_has_letters_of_either_case() {
    let dir = TestDir::new();
    copy_log(&dir, "tsung/tcp.log", "tsung.log");
    dir.throng(&["import-log", "tsung.log", "--tool", "Tsung"]).exits_with(0);
}

#[test]
fn without_an_output_the_run_is_on_standard_output() {
    let dir = TestDir::new();
    copy_log(&dir, "tsung/tcp.log", "tsung.log");
    let said = dir.throng(&["import-log", "tsung.log"]).exits_with(0);
    assert!(said.stdout.starts_with("{\"schema\":\"throng.run/1\""), "{}", said.stdout);
    said.stderr_contains(&["constructs of tsung", "approximated"]);
}
