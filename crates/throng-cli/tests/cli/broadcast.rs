//! `throng run` against `throng serve chat` and `throng serve channels`: both ends, 500 users, everybody is reached.

use serde_json::Value;

use crate::process::Place;

/// 500 users within a second, who stay for five more; a probe every second.
const LOAD: &str = "load: [{arrivals: {rate: 500/s, for: 1s, spacing: even}}, {hold: {for: 5s}}]\nprobe:\n  - every: 1s\n    timeout: 30s\n";

fn run(server: &str, scenario: &str) -> (Option<i32>, Value) {
    let place = Place::new();
    let server = place.serve(&[server]);
    let target = server.addr.clone();
    place.write("scenario.yaml", &scenario.replace("ADDRESS", &target));
    let finished = place.throng(&["run", "scenario.yaml", "--json", "out.json"]);
    // A busy machine can make the generator late, which makes the run invalid and nothing else wrong.
    assert!(matches!(finished.code, Some(0 | 3)), "{finished:#?}");
    let text = std::fs::read_to_string(place.path("out.json")).unwrap();
    (finished.code, serde_json::from_str(&text).unwrap())
}

/// Nothing went wrong, and every probe has reached everybody who was there.
fn everybody_was_reached(summary: &Value) {
    assert_eq!(summary["errors"], serde_json::json!({}), "{summary:#}");
    assert_eq!(summary["connect"]["ok"], 500, "{summary:#}");
    let broadcast = &summary["broadcast"];
    for wrong in ["missing", "late", "duplicates", "out_of_order", "left"] {
        assert_eq!(broadcast[wrong], 0, "{wrong}: {summary:#}");
    }
    assert_eq!(broadcast["delivered"], broadcast["expected"], "{summary:#}");
    let probes = broadcast["probes"].as_array().unwrap();
    let full = probes.iter().filter(|probe| probe["delivered"] == 500).count();
    assert!(full >= 3, "{summary:#}");
    for probe in probes {
        let [first, p50, p99, last] =
            ["first_us", "p50_us", "p99_us", "last_us"].map(|field| probe[field].as_u64().unwrap());
        // Percentiles are the upper ends of their cells, at most 0.1 % too large.
        assert!(first <= p50 && p50 <= p99 && p99 <= last + last / 1_000 + 1, "{probe}");
    }
    for threshold in summary["thresholds"].as_array().unwrap() {
        assert_eq!(threshold["met"], true, "{threshold}");
    }
}

#[test]
fn channels_reach_everybody_who_joined() {
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
thresholds: [broadcast.missing == 0, join.ok == 1000, push.ok == 500, joined_most >= 500, heartbeat.missed == 0]
"
        );
        let (_, summary) = run("channels", &scenario);
        everybody_was_reached(&summary);
        assert!(summary["heartbeat"]["sent"].as_u64().unwrap() >= 500, "{summary:#}");
        assert_eq!(summary["join"]["latency_us"]["count"], 1000);
        assert_eq!(summary["push"]["latency_us"]["count"], 500);
    }
}

#[test]
fn a_chat_reaches_everybody_who_is_connected() {
    let scenario = format!(
        "target: ws://ADDRESS/
{LOAD}    broadcast: {{text: hello everybody}}
user: [connect, stay]
thresholds: [broadcast.missing == 0, errors == 0]
"
    );
    let (_, summary) = run("chat", &scenario);
    everybody_was_reached(&summary);
    let received = summary["message"]["received"].as_u64().unwrap();
    assert!(received >= summary["broadcast"]["delivered"].as_u64().unwrap(), "{summary:#}");
}

#[test]
fn a_server_that_does_not_upgrade_is_named_with_its_status() {
    let place = Place::new();
    let server = place.serve(&["channels"]);
    let scenario = format!(
        "target: ws://{}/nowhere
{}",
        server.addr,
        "load: [{arrivals: {rate: 5/s, for: 1s, spacing: even}}]\nuser: [connect, stay]\non_error: stop\n"
    );
    place.write("scenario.yaml", &scenario);
    let finished = place.throng(&["run", "scenario.yaml", "--no-record"]);
    assert_eq!(finished.code, Some(2), "{finished:#?}");
    assert!(finished.stdout.contains("http_404 5"), "{finished:#?}");
}
