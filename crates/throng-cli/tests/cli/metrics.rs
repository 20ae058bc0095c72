//! `--metrics`: what Prometheus scrapes while a server and a run go on.

use rustix::process::Signal;

use crate::exposition::{Exposition, fetch};
use crate::process::{TestDir, eventually};

#[test]
fn scraped_sums_are_those_of_the_summary() {
    let place = TestDir::new();
    let server = place.serve(&["echo", "--metrics", "0"]);
    let url = server.hello["metrics"].as_str().unwrap();
    let user = "[connect, {repeat: {times: 3, do: [{send: hi}, {expect: {bytes: 2}}]}}, stay]";
    let load = "[{ramp: {to: 10, over: 300ms}}, {hold: {for: 10m}}]";
    place.write("s.yaml", &server.scenario(load, user));
    let args = ["run", "s.yaml", "--metrics", "0", "--json", "out.json", "--interval", "100ms"];
    let mut run = place.start(&args);
    let line = run.line_with("metrics: ");
    let of_run = line.trim().trim_start_matches("metrics: ");

    let mut last = Exposition::default();
    eventually("all messages are answered", || {
        let now = scrape(of_run);
        now.has_grown_since(&last);
        last = now;
        last.get("throng_load_messages_answered_total", &[]) == Some(30.0)
    });
    last.check("throng_load_connected", &[], 10.0);
    last.check("throng_load_users_intended_total", &[], 10.0);
    let of_server = scrape(url);
    of_server.check("throng_server_accepted_total", &[], 10.0);
    of_server.check("throng_server_messages_received_total", &[], 30.0);

    run.signal(Signal::INT);
    run.finish().exits_with(4);
    let summary = place.json("out.json");
    let check = |metric, labels: &[(&str, &str)], path: &str| {
        last.check(metric, labels, summary.pointer(path).unwrap().as_f64().unwrap());
    };
    check("throng_load_connects_ok_total", &[], "/connect/ok");
    check("throng_load_messages_sent_total", &[], "/message/sent");
    check("throng_load_messages_answered_total", &[], "/message/answered");
    check("throng_load_users_started_total", &[], "/users/started");
    let count = "throng_load_latency_seconds_count";
    check(count, &[("operation", "connect")], "/connect/latency_us/count");
    check(count, &[("operation", "message")], "/message/latency_us/count");
    of_server.check("throng_server_open", &[], 10.0);
    // The server goes on without the run, and its counters grow.
    eventually("the server has closed all", || {
        let now = scrape(url);
        now.has_grown_since(&of_server);
        now.get("throng_server_open", &[]) == Some(0.0)
    });
}

#[test]
fn an_address_in_use_is_said_before_the_run() {
    let place = TestDir::new();
    let server = place.serve(&["hold", "--metrics", "0"]);
    let url = server.hello["metrics"].as_str().unwrap();
    let addr = url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap();
    let scenario = server.scenario("[{ramp: {to: 1, over: 1s}}]", "[connect]");
    place.write("s.yaml", &scenario);
    let said = ["--metrics", addr, "Address already in use", "0"];
    let run = place.throng(&["run", "s.yaml", "--metrics", addr]).exits_with(2);
    run.stderr_contains(&said);
    assert!(!place.path("run.jsonl").exists(), "an earlier run file would be gone");
    let other = ["serve", "hold", "--listen", "127.0.0.1:0", "--metrics", addr];
    place.throng(&other).exits_with(2).stderr_contains(&said);
    let wrong = place.throng(&["run", "s.yaml", "--metrics", "somewhere"]).exits_with(2);
    wrong.stderr_contains(&["a port of this machine, such as 9464"]);
}

fn scrape(url: &str) -> Exposition {
    Exposition::parse(&fetch(url))
}
