//! `throng run` against `throng serve chat` and `throng serve channels`: 500 users, and every
//! broadcast reaches all of them.

use std::collections::HashSet;
use throng_measure::ErrorKind;

use serde_json::Value;

use crate::process::{TestDir, eventually, run_file};

/// The load: 500 users within a second, who stay until they leave on command, and a probe every
/// second.
const LOAD: &str = "load: [{arrivals: {rate: 500/s, for: 1s, spacing: even}}, {hold: {for: 5m}}]\n\
                    probe:\n\x20 - every: 1s\n\x20   timeout: 30s\n";

/// Runs the scenario until three probes have reached all 500 users and every user has sent
/// `heartbeats`, however long that takes on this machine.
fn run(server: &str, scenario: &str, heartbeats: u64) -> Value {
    let place = TestDir::new();
    let server = place.serve(&[server]);
    place.write("scenario.yaml", &scenario.replace("ADDRESS", &server.addr));
    let run = place.start(&["run", "scenario.yaml", "--json", "out.json"]);
    eventually("three probes have reached all users", || {
        let path = place.path("run.jsonl");
        let lines = if path.exists() { run_file(&path) } else { Vec::new() };
        let probes = lines.iter().filter_map(|line| line["load"]["probes"].as_array()).flatten();
        let full = probes.filter(|probe| probe["delivered"] == 500);
        let full: HashSet<_> = full.filter_map(|probe| probe["number"].as_u64()).collect();
        let sent =
            lines.last().and_then(|line| line["load"]["counters"]["heartbeats_sent"].as_u64());
        full.len() >= 3 && sent >= Some(500 * heartbeats)
    });
    // All users leave in order, and no probe is in flight.
    place.throng(&["ctl", "drain", "--pid", &run.pid().to_string()]).exits_with(0);
    let finished = run.finish();
    assert!(!matches!(finished.code, Some(2) | None), "{finished:#?}");
    let text = std::fs::read_to_string(place.path("out.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Asserts that there are no errors, and that every probe has reached all users.
fn assert_all_reached(summary: &Value) {
    assert_eq!(summary["errors"], serde_json::json!({}), "{summary:#}");
    assert_eq!(summary["connect"]["ok"], 500, "{summary:#}");
    let broadcast = &summary["broadcast"];
    for wrong in ["missing", "late", "duplicates", "out_of_order"] {
        assert_eq!(broadcast[wrong], 0, "{wrong}: {summary:#}");
    }
    // A probe may be in flight when the users receive the command to leave.
    let [delivered, expected, left] =
        ["delivered", "expected", "left"].map(|field| broadcast[field].as_u64().unwrap());
    assert_eq!(delivered + left, expected, "{summary:#}");
    let probes = broadcast["probes"].as_array().unwrap();
    let full = probes.iter().filter(|probe| probe["delivered"] == 500).count();
    assert!(full >= 3, "{summary:#}");
    for probe in probes.iter().filter(|probe| probe["delivered"] != 0) {
        let [first, p50, p99, last] =
            ["first_us", "p50_us", "p99_us", "last_us"].map(|field| probe[field].as_u64().unwrap());
        // Percentiles are the upper bounds of their histogram cells, at most 0.1 % too large.
        assert!(first <= p50 && p50 <= p99 && p99 <= last + last / 1_000 + 1, "{probe}");
    }
    for threshold in summary["thresholds"].as_array().unwrap() {
        assert_eq!(threshold["met"], true, "{threshold}");
    }
}

#[test]
fn channels_reach_all_joined_users() {
    for vsn in ["1.0.0", "2.0.0"] {
        let scenario = format!(
            "target: ws://ADDRESS/socket/websocket
protocol: phoenix
{LOAD}    broadcast: {{topic: \"rooms:lobby\", event: new_msg, payload: {{body: hello}}}}
user:
  - connect: {{vsn: {vsn}, deflate: true, heartbeat: 2s}}
  - join: {{topic: \"rooms:lobby\", payload: {{user: \"${{user.id}}\"}}}}
  - join: {{topic: \"rooms:${{user.id % 10}}\"}}
  - push: {{topic: \"rooms:${{user.id % 10}}\", event: echo, payload: {{n: \"${{counter}}\"}}}}
  - leave: {{topic: \"rooms:${{user.id % 10}}\"}}
  - stay
thresholds: [broadcast.missing == 0, join.ok == 1000, push.ok == 500, joined_most >= 500, \
             heartbeat.missed == 0]
"
        );
        let summary = run("channels", &scenario, 1);
        assert_all_reached(&summary);
        assert!(summary["heartbeat"]["sent"].as_u64().unwrap() >= 500, "{summary:#}");
        assert_eq!(summary["join"]["latency_us"]["count"], 1000);
        assert_eq!(summary["push"]["latency_us"]["count"], 500);
    }
}

#[test]
fn a_chat_reaches_all_connected_users() {
    let scenario = format!(
        "target: ws://ADDRESS/
{LOAD}    broadcast: {{text: hello all}}
user: [connect, stay]
thresholds: [broadcast.missing == 0, errors == 0]
"
    );
    let summary = run("chat", &scenario, 0);
    assert_all_reached(&summary);
    let received = summary["message"]["received"].as_u64().unwrap();
    assert!(received >= summary["broadcast"]["delivered"].as_u64().unwrap(), "{summary:#}");
}

#[test]
fn a_server_that_does_not_upgrade_is_named_with_its_status() {
    let place = TestDir::new();
    let server = place.serve(&["channels"]);
    let scenario = format!(
        "target: ws://{}/nowhere
{}",
        server.addr,
        "load: [{arrivals: {rate: 5/s, for: 1s, spacing: even}}]\n\
         user: [connect, stay]\non_error: stop\n"
    );
    place.write("scenario.yaml", &scenario);
    let finished = place.throng(&["run", "scenario.yaml", "--no-record"]);
    assert_eq!(finished.code, Some(2), "{finished:#?}");
    let refused = format!("{} 5", ErrorKind::UpgradeStatus.with(404));
    assert!(finished.stdout.contains(&refused), "{finished:#?}");
}
