//! The fleet that a load needs, as `throng plan` shows it.

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpListener;

use crate::process::{Finished, TestDir};

#[test]
fn a_plan_has_machines_formulas_and_its_weakest_assumption() {
    let place = TestDir::new();
    let fleet = "plan --connections 100M --machine-memory 64GiB --machine-cores 32 --nic 25Gbit";
    let args: Vec<_> = fleet.split(' ').collect();
    let text = place.throng(&args).exits_with(0).stdout;
    for part in [
        "100M connections; machines of 64.0 GiB, 32 cores, 25Gbit/s",
        "memory decides",
        "= 100M connections × (",
        "source addresses of a generator",
        "a broadcast to all",
        "the weakest assumption: connections are idle",
        "documented: docs/numbers.md",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let json = place.throng(&[&args[..], &["--json"]].concat()).exits_with(0).json();
    let machines = json["plan"]["servers"]["machines"].as_u64().unwrap();
    assert!((5..=12).contains(&machines), "{json:#}");
    assert_eq!(json["costs"]["server"]["connect_us"]["source"], "documented");
}

#[test]
fn the_costs_of_a_plan_come_from_a_run_file() {
    let place = TestDir::new();
    let server = place.serve(&["ok"]);
    let load = "[{arrivals: {rate: 50/s, for: 3s}}]";
    place.write("few.yaml", &server.scenario(load, "[connect, {send: a}, {expect: ok}, close]"));
    let run = place.throng(&["run", "few.yaml", "--json", "-"]);
    // On a busy machine the run is invalid; its costs are those of the run all the same.
    assert!(matches!(run.code, Some(0 | 3)), "{run:#?}");
    let run = run.json();
    let args = ["plan", "--connections", "1M", "--from", "run.jsonl"];
    let json = place.throng(&[&args[..], &["--json"]].concat()).exits_with(0).json();
    for end in ["server", "generator"] {
        // A server that was too busy to answer in a second has no cost in that second.
        let is_known = !run[end]["cpu_us_per_message"].is_null();
        let source = if is_known { "run" } else { "documented" };
        assert_eq!(json["costs"][end]["message_us"]["source"], source, "{json:#}");
        assert_eq!(json["costs"][end]["bytes"]["source"], "documented", "of too few: {json:#}");
    }
    let text = place.throng(&args).exits_with(0).stdout;
    assert!(text.contains("the run: run.jsonl"), "{text}");
    place
        .throng(&["plan", "--connections", "1M", "--from", "no.jsonl"])
        .exits_with(2)
        .stderr_contains(&["no.jsonl"]);
}

#[test]
fn a_server_that_is_not_throngs_has_costs_of_its_own() {
    let place = TestDir::new();
    // A foreign server: this test. It works for each message, so that its CPU time shows.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut byte = [0];
                while stream.read(&mut byte).is_ok_and(|read| read > 0) {
                    let sum = (0..2_000_000_u64).fold(0, |sum: u64, n| black_box(sum ^ n));
                    black_box(sum);
                    let _ = stream.write_all(b"k");
                }
            });
        }
    });
    place.write(
        "s.yaml",
        &format!(
            "target: tcp://{addr}\nload:\n- ramp: {{to: 3, over: 300ms}}\n- hold: {{for: 2s}}\n\
             user: [connect, {{every: {{period: 20ms, do: [{{send: a}}, {{expect: k}}]}}}}]\n"
        ),
    );
    let run = place.throng(&["run", "s.yaml", "--interval", "200ms"]);
    assert!(matches!(run.code, Some(0 | 3)), "{run:#?}");
    let args = ["plan", "--connections", "1M", "--from", "run.jsonl"];
    let json = place.throng(&[&args[..], &["--json"]].concat()).exits_with(0).json();
    assert_eq!(json["costs"]["server_is_other"], true, "{json:#}");
    assert_eq!(json["costs"]["server"]["message_us"]["source"], "run", "{json:#}");
    assert_eq!(json["costs"]["server"]["bytes"]["source"], "documented", "of too few: {json:#}");
    let text = place.throng(&args).exits_with(0).stdout;
    for part in ["222 B  of throng's server", "does not tell the memory", "throng's own costs"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

#[test]
fn the_costs_of_a_plan_can_be_measured_now() {
    let place = TestDir::new();
    let args = ["plan", "--connections", "1M", "--messages-per-s", "1k", "--measure", "--json"];
    let json = place.throng(&args).exits_with(0).json();
    // A busy machine can hide what one of the two operations costs in what the other one does.
    for end in ["server", "generator"] {
        let is_measured = |what: &str| json["costs"][end][what]["source"] == "measured";
        assert!(is_measured("connect_us") || is_measured("message_us"), "{json:#}");
    }
}

#[test]
fn a_mesh_has_a_first_limit() {
    let place = TestDir::new();
    let mesh = ["plan", "--per-node", "3", "--plus", "15"];
    // The numbers of the article: 1024 fds a process are enough for 336 nodes.
    let line = "ulimit -Sn 1024; exec throng plan --per-node 3 --plus 15";
    let text = place.shell(line).exits_with(0).stdout;
    let first = "the first limit is RLIMIT_NOFILE, soft (1024): it is enough for 336 nodes";
    assert!(text.contains(first), "{text}");
    let json =
        place.throng(&[&mesh[..], &["--nodes", "1G", "--json"]].concat()).exits_with(0).json();
    let rows = json["mesh"]["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["limit"] == "ports" && row["needs"].is_u64()), "{json:#}");
    assert!(json["verdict"].as_str().unwrap().contains("do not fit"), "{json:#}");
}

#[test]
fn mistakes_in_a_plan_are_pointed_at() {
    let place = TestDir::new();
    for per_node in ["3x", "-1", "inf"] {
        let flag = format!("--per-node={per_node}");
        place.throng(&["plan", &flag]).exits_with(2).stderr_contains(&["a number from 0"]);
    }
    let nic = ["plan", "--connections", "1M", "--nic", "25GB"];
    place.throng(&nic).exits_with(2).stderr_contains(&["did you mean `Gbit`?"]);
    place.throng(&["plan"]).exits_with(2).stderr_contains(&["--connections"]);
    let both = ["plan", "--connections", "1M", "--per-node", "1"];
    place.throng(&both).exits_with(2).stderr_contains(&["cannot be used with"]);
}

#[test]
fn a_plan_refuses_the_flags_of_another_kind_of_plan() {
    let place = TestDir::new();
    place.write(
        "s.yaml",
        "target: tcp://127.0.0.1:1\nload: [{ramp: {to: 1, over: 1s}}]\nuser: [connect]\n",
    );
    let connections = ["plan", "--connections", "1M"];
    let agents = ["plan", "s.yaml", "--agents"];
    let mesh = ["plan", "--per-node", "1", "--plus", "-1"];
    let refused = |kind: &[&str], flags: &[&str], says: &[&str]| {
        place.throng(&[kind, flags].concat()).exits_with(2).stderr_contains(says);
    };
    refused(&agents, &["--connections", "1M"], &["cannot be used with", "--connections"]);
    refused(&agents, &["--messages-per-s", "1k"], &["cannot be used with", "--messages-per-s"]);
    refused(&agents, &["--nodes-per-machine", "2"], &["cannot be used with"]);
    refused(&connections, &["--users", "5"], &["required", "--agents"]);
    refused(&connections, &["--set", "a=1"], &["required", "--agents"]);
    refused(&connections, &["--bus-group", "g"], &["required", "--agents"]);
    refused(&connections, &["--nodes-per-machine", "2"], &["cannot be used with"]);
    refused(&connections, &["--bus", "nats://h:1"], &["--bus is for a plan of a scenario"]);
    refused(&mesh, &["--nic", "1Gbit"], &["cannot be used with"]);
    refused(&mesh, &["--message-bytes", "9"], &["cannot be used with"]);
    // The environment may name a bus for other commands.
    let mut command = place.command(&connections);
    Finished::from(command.env("THRONG_BUS", "nats://h:1").output().unwrap()).exits_with(0);
}

#[test]
fn the_json_of_a_run_and_of_a_plan_has_the_warnings_about_the_scenario() {
    let place = TestDir::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let text = format!(
        "target: ws://127.0.0.1:{port}\nload: [{{arrivals: {{rate: 5/s, for: 1s}}}}]\nuser:\n  \
         - connect\n  - wait: 2s\n  - receive: hi\n"
    );
    place.write("s.yaml", &text);
    let check = |json: &serde_json::Value| {
        let warnings = json["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), 1, "{json:#}");
        assert_eq!(warnings[0]["line"], 5);
        let title = warnings[0]["title"].as_str().unwrap();
        assert!(title.starts_with("line 6 may leave messages unread"), "{title}");
    };
    place.throng(&["run", "s.yaml", "--json", "sum.json"]);
    check(&place.json("sum.json"));
    place.throng(&["run", "s.yaml", "--record", "no/run.jsonl", "--json", "not.json"]);
    let not_started = place.json("not.json");
    assert_eq!(not_started["schema"], "throng.not_started/1");
    check(&not_started);
    check(&place.throng(&["plan", "s.yaml", "--agents", "--json"]).exits_with(0).json());
    place.write(
        "cured.yaml",
        &text.replace("receive: hi", "receive: {text: hi, skip_others: true}"),
    );
    let cured = place.throng(&["plan", "cured.yaml", "--agents", "--json"]).exits_with(0).json();
    assert_eq!(cured["warnings"], serde_json::json!([]));
}
