//! Points and summaries of k6.

use throng_measure::ErrorKind;
use throng_report::Summary;

use super::{assert_whole, import, import_text, last, show, text_of};

/// Returns the values of a metric that a tag selects.
fn values(text: &str, metric: &str, tag: &str) -> Vec<f64> {
    let lines = text.lines().filter(|line| line.contains("\"type\":\"Point\""));
    let lines = lines.filter(|line| line.ends_with("}") && line.contains(tag));
    let of = |line: &str| -> Option<f64> {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        (line["metric"] == metric).then(|| line["data"]["value"].as_f64().unwrap())
    };
    lines.filter_map(of).collect()
}

#[test]
fn points_of_http() {
    insta::assert_snapshot!(show("k6/http.json"));
}

#[test]
fn points_of_websockets() {
    insta::assert_snapshot!(show("k6/socket.json"));
}

#[test]
fn a_summary_export() {
    insta::assert_snapshot!(show("k6/export.json"));
}

#[test]
fn a_summary_of_handle_summary() {
    insta::assert_snapshot!(show("k6/handle.json"));
}

#[test]
fn the_sums_of_points_are_those_of_the_run() {
    let (text, load) = (text_of("k6/http.json"), last("k6/http.json"));
    let counters = &load.counters;
    let sum = |metric: &str, tag: &str| values(&text, metric, tag).iter().sum::<f64>() as u64;
    assert_eq!(counters.http_started, sum("http_reqs", ""));
    assert_eq!(counters.http_ok, sum("http_reqs", "\"expected_response\":\"true\""));
    assert_eq!(counters.http_failed, sum("http_req_failed", ""));
    assert_eq!(load.http_statuses.get("404"), sum("http_reqs", "\"status\":\"404\""));
    assert_eq!(
        load.errors.get(ErrorKind::HttpStatus.with(404)),
        sum("http_reqs", "\"status\":\"404\"")
    );
    assert_eq!(counters.users_finished, sum("iterations", ""));
    let dropped = sum("dropped_iterations", "");
    assert_eq!(counters.users_intended - counters.users_started, dropped);
    let checks = values(&text, "checks", "");
    let failed = checks.iter().filter(|value| **value == 0.0).count();
    assert_eq!(load.errors.get("check_failed"), failed as u64);
    assert_eq!(load.core.bytes_sent, sum("data_sent", ""));
    assert_eq!(load.core.bytes_received, sum("data_received", ""));
    let connects = values(&text, "http_req_connecting", "").iter().filter(|ms| **ms > 0.0).count();
    assert_eq!(counters.connects_ok, connects as u64);

    let (text, load) = (text_of("k6/socket.json"), last("k6/socket.json"));
    let sum = |metric: &str, tag: &str| values(&text, metric, tag).iter().sum::<f64>() as u64;
    assert_eq!(load.counters.messages_sent, sum("ws_msgs_sent", ""));
    assert_eq!(load.counters.messages_received, sum("ws_msgs_received", ""));
    assert_eq!(load.counters.connects_ok, sum("ws_sessions", "\"status\":\"101\""));
    assert_eq!(
        load.connect_failed.get(ErrorKind::UpgradeStatus.with(403)),
        sum("ws_sessions", "\"status\":\"403\"")
    );
}

#[test]
fn percentiles_of_points_are_those_of_their_values() {
    let (run, _) = import("k6/http.json");
    let summary = Summary::of(&run);
    let http = summary.http.unwrap();
    let text = text_of("k6/http.json");
    let expected = "\"expected_response\":\"true\"";
    let mut values = values(&text, "http_req_duration", expected);
    values.sort_by(f64::total_cmp);
    let near = |us: u64, ms: f64| (us as f64 / (1_000.0 * ms) - 1.0).abs() < 0.002;
    let (median, most) = (values[values.len() / 2], values[values.len() - 1]);
    assert_eq!(http.latency_us.count, values.len() as u64);
    assert!(near(http.latency_us.p50, median), "{} {median}", http.latency_us.p50);
    assert!(near(http.latency_us.max, most), "{} {most}", http.latency_us.max);
    assert_eq!(run.header.target, "http://127.0.0.1:5573");
    assert_eq!(run.header.started, "2026-11-23T21:40:00Z");
}

#[test]
fn seconds_without_points_are_a_part_of_the_next_interval() {
    let (run, _) = import("k6/http.json");
    let spans: Vec<_> = run.intervals.iter().map(|interval| interval.span_ms).collect();
    assert_eq!(spans[0], 0);
    assert!(spans.iter().any(|span| *span > 1_000), "{spans:?}");
    assert_whole(&run);
}

#[test]
fn points_need_not_be_in_order() {
    let text = text_of("k6/socket.json");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.reverse();
    let (in_order, reversed) =
        (import_text(&text, "k6.json").0, import_text(&lines.join("\n"), "k6.json").0);
    let summaries = [Summary::of(&in_order), Summary::of(&reversed)];
    assert_eq!(summaries[0].connect, summaries[1].connect);
    assert_eq!(summaries[0].message, summaries[1].message);
}

#[test]
fn points_that_were_cut_are_of_a_run_that_was_killed() {
    let text = text_of("k6/http.json");
    let (run, fidelity) = import_text(&text[..text.len() - 30], "k6.json");
    assert_eq!(run.end, None);
    assert!(fidelity.to_string().contains("cut line"), "{fidelity}");
}

#[test]
fn a_summary_has_the_percentiles_of_k6_and_no_others() {
    let (run, _) = import("k6/export.json");
    assert_whole(&run);
    let summary = Summary::of(&run);
    let http = &summary.latency_stats["http"];
    assert_eq!((http.named("p95"), http.named("p99")), (Some(170_000.0), None));
    assert_eq!((http.count, summary.duration_s), (3_400, 80.0));
    let loads: Vec<_> = run.intervals.iter().map(|line| line.load.as_ref().unwrap()).collect();
    assert_eq!((loads.len(), loads[1].counters.http_failed), (2, 34));
    assert_eq!(run.header.started, "", "the summary does not say it");
}
