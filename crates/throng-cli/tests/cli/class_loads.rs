//! Classes of users that have a load of their own.

use crate::process::TestDir;

#[test]
fn users_who_stay_and_arrivals_are_one_run_with_one_report() {
    let place = TestDir::new();
    let server = place.serve(&["echo"]);
    place.write(
        "beside.yaml",
        &format!(
            "target: tcp://{}
users:
  resident:
    load: [ramp: {{to: 5, over: 100ms}}, hold: {{for: 900ms}}]
    user: [connect, stay]
  visitor:
    load: [arrivals: {{rate: 20/s, for: 2s, spacing: even}}, hold: {{for: 1m, until: done}}]
    user: [connect, send: Ping, expect: Ping, close]
",
            server.addr
        ),
    );
    let plan = place.throng(&["run", "beside.yaml", "--dry-run"]).exits_with(0).stdout;
    let load = "resident: ramp to 5 over 100ms, hold for 900ms; visitor: arrivals 20/s, hold for \
                1m at most; 1m2s in total";
    assert!(plan.contains(load), "{plan}");
    let run = place.throng(&["run", "beside.yaml", "--json", "out.json"]);
    // A busy machine can make the generator late, which makes the run invalid.
    assert!(matches!(run.code, Some(0 | 3)), "{run:#?}");
    let summary = place.json("out.json");
    let of = |class: &str| {
        let counters = &summary["classes"][class];
        ["users_started", "users_failed", "connects_ok", "messages_answered"]
            .map(|name| counters[name].as_u64().unwrap_or_else(|| panic!("{name}: {counters}")))
    };
    assert_eq!(of("resident"), [5, 0, 5, 0], "{summary:#}");
    assert_eq!(of("visitor"), [40, 0, 40, 40], "{summary:#}");
}

#[test]
fn a_search_and_a_start_by_hand_say_that_each_class_has_its_load() {
    let place = TestDir::new();
    let server = place.serve(&["hold"]);
    place.write(
        "stay.yaml",
        &format!(
            "target: tcp://{}
users:
  one: {{load: [ramp: {{to: 3, over: 10ms}}, hold: {{for: 1m}}], user: [connect, stay]}}
  two: {{load: [ramp: {{to: 4, over: 10ms}}, hold: {{for: 1m}}], user: [connect, stay]}}
",
            server.addr
        ),
    );
    let search = place.throng(&["find", "stay.yaml", "--slo", "errors == 0"]).exits_with(2);
    search.stderr_contains(&["each class has a load of its own", "name it with --knob"]);
    let peak = place.throng(&["run", "stay.yaml", "--users", "9"]).exits_with(2);
    peak.stderr_contains(&["this load cannot have another peak", "--set"]);
    let mut run = place.start(&["run", "stay.yaml", "--interval", "100ms"]);
    run.line_with("connected 7 ");
    let pid = run.pid().to_string();
    let start = place.throng(&["ctl", "start", "5", "--pid", &pid]).exits_with(2);
    start.stderr_contains(&["each class of users has a load of its own"]);
    place.throng(&["ctl", "stop", "2", "--pid", &pid]).exits_with(0);
    run.line_with("connected 5 ");
    place.throng(&["ctl", "shutdown", "--pid", &pid]).exits_with(0);
    run.finish().exits_with(4);
}
