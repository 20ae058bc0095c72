//! `throng run` from start to end.

use crate::process::{TestDir, run_file};

const LOAD: &str = "[{ramp: {to: 20, over: 500ms}}, {hold: {for: 4s}}]";
const PING: &str =
    "[connect, {every: {period: 100ms, for: 5s, do: [{send: Ping}, {expect: Ping}]}}]";

#[test]
fn a_run_reports_both_ends() {
    let place = TestDir::new();
    let server = place.serve(&["echo"]);
    place.write(
        "ping.yaml",
        &(server.scenario(LOAD, PING) + "thresholds: [connected_most >= 20]\n"),
    );
    let run = ["run", "ping.yaml", "--json", "out.json", "--interval", "500ms"];
    let finished = place.throng(&run);
    // A busy machine can make the generator late, which makes the run invalid and has no other
    // effect.
    assert!(matches!(finished.code, Some(0 | 3)), "{finished:#?}");
    let text = std::fs::read_to_string(place.path("out.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    let number = |pointer: &str| {
        let value = summary.pointer(pointer);
        value.and_then(serde_json::Value::as_f64).unwrap_or_else(|| panic!("{pointer} in {text}"))
    };
    assert_eq!(summary["schema"], "throng.summary/1");
    assert!(summary["validity"]["grade"].is_string());
    assert_eq!(number("/users/connected_most"), 20.0);
    assert_eq!(number("/connect/ok"), 20.0);
    assert_eq!(summary["connect"]["failed"], serde_json::json!({}));
    for quantile in ["p50", "p90", "p99", "p999", "max"] {
        assert!(number(&format!("/connect/latency_us/{quantile}")) > 0.0);
        assert!(number(&format!("/message/latency_us/{quantile}")) > 0.0);
    }
    assert!(number("/connect/rate_most") > 0.0 && number("/message/rate_most") > 0.0);
    // The load may end between a message and its answer, once for each of the 20 users.
    let (sent, answered) = (number("/message/sent"), number("/message/answered"));
    assert!(answered <= sent && sent - answered <= 20.0, "{text}");
    assert!(number("/generator/lag_us/p99") >= 0.0 && number("/machine/cpus") >= 1.0);
    // The counters of the server at its first response, on a busy machine some connections, do not
    // belong to the run.
    assert!((1.0..=20.0).contains(&number("/server/accepted")), "{text}");
    assert_eq!(summary["thresholds"][0]["met"], true);

    let lines = run_file(&place.path("run.jsonl"));
    assert_eq!(lines[0]["schema"], "throng.run/1");
    assert_eq!(lines[0]["scenario"]["path"], "ping.yaml");
    assert_eq!(lines.last().unwrap()["end"]["reason"], "finished");
    // A busy server may not answer in the last seconds. What it said in one second is at least
    // what the generator had seen answered a second before.
    let last = lines.iter().rposition(|line| line["server"]["counters"].is_object()).unwrap();
    let server = &lines[last]["server"]["counters"];
    assert_eq!(server["accepted"], 20, "both ends count the same connections");
    let received = server["messages_received"].as_f64().unwrap();
    let load_before = &lines[last - 1]["load"]["counters"];
    let answered_before = load_before["messages_answered"].as_f64().unwrap_or_default();
    assert!((answered_before..=sent).contains(&received), "{received} of {sent}");
    let report = place.throng(&["report", "--json"]).json();
    assert_eq!(report["connect"], summary["connect"], "the report is made from the run file");
    let kept = std::fs::read(place.path("run.jsonl")).unwrap();
    let refused = place.throng(&["report", "-o", "run.jsonl"]).exits_with(2);
    refused.stderr_contains(&["cannot write run.jsonl", "it is a run file"]);
    assert_eq!(std::fs::read(place.path("run.jsonl")).unwrap(), kept);
    // It exits as the run did.
    let _ = place.throng(&["report", "-o", "report.html"]);
    assert!(place.path("report.html").exists());
}

#[test]
fn a_run_file_that_another_run_is_writing_is_refused() {
    let place = TestDir::new();
    let server = place.serve(&["hold"]);
    let scenario =
        server.scenario("[{ramp: {to: 2, over: 100ms}}, {hold: {for: 1m}}]", "[connect, stay]");
    place.write("stay.yaml", &scenario);
    let mut first = place.start(&["run", "stay.yaml", "--interval", "200ms"]);
    first.line_with("connected 2 ");
    place.throng(&["run", "stay.yaml"]).exits_with(2).stderr_contains(&[
        "run.jsonl",
        "another run is writing it",
        "--record FILE",
    ]);
    first.line_with("connected 2 ");
    assert!(run_file(&place.path("run.jsonl")).len() > 1, "the first one's lines are still there");
}

#[test]
fn piped_output_has_a_line_for_ten_intervals_and_no_escape_sequences() {
    let place = TestDir::new();
    let server = place.serve(&["hold"]);
    place.write(
        "stay.yaml",
        &server.scenario("[{ramp: {to: 5, over: 1s}}, {hold: {for: 1s}}]", "[connect, stay]"),
    );
    let finished = place.throng(&["run", "stay.yaml", "--interval", "200ms", "--no-record"]);
    let lines = finished.stdout.lines().filter(|line| line.contains("  connected "));
    let lines: Vec<_> = lines.collect();
    // One line for each two seconds of the run, for the phase that begins, for the leaving, and for
    // each event, of which a busy machine has some.
    let took_s: f64 =
        lines.last().and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap();
    let without_event = lines.iter().filter(|line| !line.ends_with(']')).count();
    assert!(without_event >= 1 && without_event as f64 <= took_s / 2.0 + 2.0, "{finished:#?}");
    assert!(lines.iter().any(|line| line.contains("hold for 1s")), "{finished:#?}");
    assert!(!finished.stdout.contains('\x1b') && !finished.stderr.contains('\x1b'));
    assert!(!place.path("run.jsonl").exists(), "--no-record");
}

#[test]
fn json_on_standard_output_is_nothing_but_json() {
    let place = TestDir::new();
    let server = place.serve(&["hold"]);
    place.write(
        "stay.yaml",
        &server.scenario("[{ramp: {to: 5, over: 300ms}}, {hold: {for: 3s}}]", "[connect, stay]"),
    );
    let finished = place.throng(&["run", "stay.yaml", "--json", "-", "--interval", "100ms"]);
    assert_eq!(finished.json()["connect"]["ok"], 5);
    assert!(
        finished.stderr.contains("connected 5"),
        "progress is on standard error: {finished:#?}"
    );
}

#[test]
fn a_report_fits_one_screen_and_details_has_the_rest() {
    let place = TestDir::new();
    let server = place.serve(&["hold"]);
    let scenario =
        server.scenario("[{ramp: {to: 5, over: 300ms}}, {hold: {for: 2s}}]", "[connect, stay]");
    place.write("stay.yaml", &(scenario + "thresholds: [connected_most >= 5]\n"));
    let ran = place.throng(&["run", "stay.yaml"]);
    let brief = place.throng(&["report", "run.jsonl"]).stdout;
    assert!(brief.lines().count() <= 30, "{brief}");
    assert!(brief.contains("\nResult: "), "{ran:#?}");
    let more = "; details: `throng report run.jsonl --details`";
    assert!((ran.stdout.clone() + &ran.stderr).contains(more), "{ran:#?}");
    let details = place.throng(&["report", "run.jsonl", "--details"]).stdout;
    for part in ["\nResult: ", "CPU/connect", "generator lag", "p99.9"] {
        assert!(details.contains(part), "{part:?} is not in {details}");
    }
    assert!(!brief.contains("CPU/connect") && !details.contains("--details"), "{brief}");
}

#[test]
fn a_dry_run_names_the_members_of_a_probe() {
    let place = TestDir::new();
    let scenario = "target: ws://127.0.0.1:7900/ws\nload: [{ramp: {to: 9, over: 1s}}]\n\
                    user: [connect, stay]\nprobe:\n\x20 - every: 3s\n\
                    \x20   members: \"${user.id % 3} == 1\"\n\
                    \x20   broadcast: {json: {type: msg, body: \"${probe}\"}}\n";
    place.write("rooms.yaml", scenario);
    let plan = place.throng(&["run", "rooms.yaml", "--dry-run"]).exits_with(0);
    plan.stdout_contains(&["every 3s to the users with `${user.id % 3} == 1`; missing after"]);
}

#[test]
fn a_missed_threshold_is_exit_code_1() {
    let place = TestDir::new();
    let server = place.serve(&["hold"]);
    let scenario =
        server.scenario("[{ramp: {to: 5, over: 300ms}}, {hold: {for: 2s}}]", "[connect, stay]");
    place.write("stay.yaml", &(scenario + "thresholds: [connected_most >= 6]\n"));
    let finished = place.throng(&["run", "stay.yaml"]);
    assert!(finished.stdout.contains("missed  connected_most >= 6"), "{finished:#?}");
    // On a machine that is busy enough, invalid (3) would outrank it.
    assert!(matches!(finished.code, Some(1 | 3)), "{finished:#?}");
}

#[test]
fn a_target_that_refuses_everything_is_exit_code_2_and_named() {
    let place = TestDir::new();
    let server = place.serve(&["hold"]);
    let scenario =
        server.scenario("[{ramp: {to: 5, over: 300ms}}, {hold: {for: 2s}}]", "[connect, stay]");
    place.write("stay.yaml", &scenario);
    drop(server);
    let finished = place.throng(&["run", "stay.yaml"]).exits_with(2);
    finished.stderr_contains(&[
        "no connection to the target was ever established",
        "ECONNREFUSED",
        "throng serve",
    ]);
    // A threshold on something that no user could do is not a success.
    place.write("never.yaml", &(scenario + "thresholds: [errors.expect_timeout == 0]\n"));
    place.throng(&["run", "never.yaml"]).exits_with(1);
}

#[test]
fn a_dry_run_shows_the_plan_and_connects_to_nothing() {
    let place = TestDir::new();
    let server = place.serve(&["hold"]);
    let scenario = server.scenario("[{ramp: {to: 1k, over: 1m}}]", "[connect, stay]");
    place.write("stay.yaml", &(scenario + "thresholds: [connect.p99 < 1s]\n"));
    let plan = place.throng(&["run", "stay.yaml", "--dry-run"]).exits_with(0).stdout;
    for part in
        ["ramp to 1k over 1m", "connect.p99 < 1s", "1k connections", "ports", "fd tables", "memory"]
    {
        assert!(plan.contains(part), "{part} is not in {plan}");
    }
    assert!(!place.path("run.jsonl").exists());
    for flag in [&["--json", "-"][..], &["--json", "a.json"], &["--report", "a.html"]] {
        let args = [&["run", "stay.yaml", "--dry-run"], flag].concat();
        place.throng(&args).exits_with(2).stderr_contains(&["cannot be used with", flag[0]]);
    }
    let snapshot = place.throng(&["ctl", "snapshot"]).json();
    assert_eq!(snapshot["counters"]["accepted"], 0);
}
