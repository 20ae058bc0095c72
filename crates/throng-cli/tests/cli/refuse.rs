//! The errors of `throng run` and `throng serve` before anything is sent.

use std::net::{IpAddr, SocketAddr};
use std::process::Stdio;

use throng_driver::netlink;
use throng_load::scenario::Reach;

use crate::process::{Finished, TestDir};

const STAY: &str =
    "target: tcp://127.0.0.1:5555\nload: [{ramp: {to: 5, over: 1s}}]\nuser: [connect, stay]\n";

#[test]
fn a_typo_is_shown_where_it_stands_with_the_nearest_name() {
    let place = TestDir::new();
    place.write("typo.yaml", &STAY.replace("connect,", "conect,"));
    let finished = place.throng(&["run", "typo.yaml"]).exits_with(2);
    assert!(!place.path("run.jsonl").exists(), "the run was not started");
    finished.stderr_contains(&["typo.yaml:3", "user: [conect, stay]", "^^^^^^", "`connect`"]);
}

#[test]
fn a_text_that_is_not_utf_8_is_shown_at_its_first_byte_at_fault() {
    let place = TestDir::new();
    let text = STAY.replace("[connect, stay]", "\n  - connect\n  - send: cafX");
    let bytes: Vec<_> = text.bytes().map(|byte| if byte == b'X' { 0xe9 } else { byte }).collect();
    std::fs::write(place.path("latin.yaml"), bytes).unwrap();
    let finished = place.throng(&["run", "latin.yaml"]).exits_with(2);
    let said = ["not UTF-8", "latin.yaml:5:14", "the byte 0xe9", "iconv -f latin1 -t utf-8"];
    finished.stderr_contains(&said);
}

#[test]
fn topics_are_shared_by_the_kinds_that_have_topics_and_over_a_bus_that_is_there() {
    let place = TestDir::new();
    let bus = "nats://127.0.0.1:1";
    let refused = place.throng(&["serve", "ok", "--bus", bus]).exits_with(2);
    refused.stderr_contains(&["`--bus`", "`throng serve chat` and `throng serve channels`"]);
    place.throng(&["serve", "chat", "--bus", bus]).exits_with(2).stderr_contains(&["--bus", bus]);
    for flag in [["--node", "one"], ["--advertise", "10.0.0.2:4000"]] {
        let args = [&["serve", "chat"], &flag[..]].concat();
        place.throng(&args).exits_with(2).stderr_contains(&["--bus"]);
    }
    // The environment may name a bus for other commands.
    let beside = |args: &[&str]| {
        let mut command = place.command(&[&["serve"], args, &["--exit-with-parent"]].concat());
        command.env("THRONG_BUS", bus).stdin(Stdio::null());
        Finished::from(command.output().unwrap())
    };
    for kind in ["ok", "echo", "pingpong", "hold"] {
        beside(&[kind, "--listen", "127.0.0.1:0"]).exits_with(0);
        let other = "nats://127.0.0.1:2";
        beside(&[kind, "--bus", other]).exits_with(2).stderr_contains(&["`--bus`"]);
        for flag in [["--node", "one"], ["--advertise", "10.0.0.2:4000"]] {
            let refused = beside(&[&[kind], &flag[..]].concat()).exits_with(2);
            refused.stderr_contains(&[&format!("`{}`", flag[0]), "`throng serve chat`"]);
        }
    }
    beside(&["chat"]).exits_with(2).stderr_contains(&["--bus", bus]);
}

#[test]
fn a_run_of_one_machine_ignores_a_bus_of_the_environment_and_refuses_one_of_its_own() {
    let place = TestDir::new();
    let server = place.serve(&["ok"]);
    let load = "[{arrivals: {rate: 20/s, for: 100ms}}]";
    place.write("few.yaml", &server.scenario(load, "[connect, close]"));
    let run = |flags: &[&str]| {
        let mut command = place.command(&[&["run", "few.yaml"], flags].concat());
        Finished::from(command.env("THRONG_BUS", "nats://127.0.0.1:1").output().unwrap())
    };
    let finished = run(&[]);
    assert!(matches!(finished.code, Some(0 | 3)), "{finished:?}");
    let other = run(&["--bus", "nats://127.0.0.1:2"]).exits_with(2);
    other.stderr_contains(&["--bus needs --agents"]);
}

#[test]
fn mistakes_of_a_scenario_can_be_annotations() {
    let place = TestDir::new();
    let text = STAY.replace("connect,", "conect,") + "thresholds:\n  - conect.p99 < 1s\n";
    place.write("typo.yaml", &text);
    let finished = place.throng(&["run", "./typo.yaml", "--annotations"]).exits_with(2);
    let lines: Vec<_> = finished.stderr.lines().filter(|line| line.starts_with("::")).collect();
    assert_eq!(
        lines,
        [
            "::error file=typo.yaml,line=3,title=throng scenario::unknown step `conect`: did you \
             mean `connect`?",
            "::error file=typo.yaml,line=5,title=throng scenario::invalid threshold: unknown \
             measurement `conect.p99`: did you mean `connect.p99`?",
        ]
    );
    let finished = place.throng(&["run", "typo.yaml"]).exits_with(2);
    assert!(!finished.stderr.contains("::error"), "{finished:#?}");
}

#[test]
fn a_threshold_with_a_typo_is_shown_where_it_stands() {
    let place = TestDir::new();
    place.write("typo.yaml", &format!("{STAY}thresholds:\n  - conect.p99 < 1s\n"));
    let finished = place.throng(&["run", "typo.yaml"]).exits_with(2);
    finished.stderr_contains(&["typo.yaml:5", "conect.p99 < 1s", "^", "connect"]);
}

#[test]
fn a_public_target_is_refused_and_the_flag_is_named_once() {
    let place = TestDir::new();
    place.write("stay.yaml", STAY);
    let public = ["run", "stay.yaml", "--target", "tcp://203.0.113.9:80"];
    let finished =
        place.throng(&public).exits_with(2).stderr_contains(&["public address 203.0.113.9"]);
    assert_eq!(finished.stderr.matches("--i-am-allowed").count(), 1, "{finished:#?}");
    assert!(!place.path("run.jsonl").exists());
    for target in ["tcp://198.18.0.9:80", "tcp://[::1]:80"] {
        place.throng(&["run", "stay.yaml", "--dry-run", "--target", target]).exits_with(0);
    }
    let allowed = [&public[..], &["--i-am-allowed", "--dry-run"]].concat();
    place.throng(&allowed).exits_with(0);
}

#[test]
fn a_private_target_is_refused_unless_this_machine_is_in_its_network() {
    let place = TestDir::new();
    place.write("stay.yaml", STAY);
    let run = |address: IpAddr, flag: &str| {
        let target = format!("tcp://{}", SocketAddr::new(address, 80));
        place.throng(&["run", "stay.yaml", "--dry-run", "--target", &target, flag])
    };
    let own = netlink::subnets().unwrap_or_default();
    let is_own = |address: &IpAddr| own.iter().any(|network| network.contains(*address));
    let candidates: Vec<IpAddr> = (0..=255).map(|net| IpAddr::from([10, net, 255, 250])).collect();
    let foreign = *candidates.iter().find(|address| !is_own(address)).expect("not all of 10/8");
    run(foreign, "--no-record")
        .exits_with(2)
        .stderr_contains(&["private address 10.", "--i-am-allowed"]);
    run(foreign, "--i-am-allowed").exits_with(0);
    let metadata = IpAddr::from([169, 254, 169, 254]);
    run(metadata, "--no-record").exits_with(2).stderr_contains(&["link-local", "--i-am-allowed"]);
    let private = |address: &IpAddr| Reach::of(*address) == Reach::Private;
    match std::net::UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        // Nothing is sent: the kernel only chooses the source address.
        socket.connect("198.51.100.1:9")?;
        Ok(socket.local_addr()?.ip())
    }) {
        Ok(address) if private(&address) => _ = run(address, "--no-record").exits_with(0),
        other => println!("skipped in part: no private address here: {other:?}"),
    }
}

#[test]
fn a_run_that_cannot_be_recorded_does_not_start() {
    let place = TestDir::new();
    let server = place.serve(&["hold"]);
    place.write("stay.yaml", &server.scenario("[{ramp: {to: 5, over: 1s}}]", "[connect, stay]"));
    let finished =
        place.throng(&["run", "stay.yaml", "--record", "no/such/folder.jsonl"]).exits_with(2);
    finished.stderr_contains(&["no/such/folder.jsonl", "was not started", "--no-record"]);
    let place_of_none = ["--record", "no/such/folder.jsonl", "--json", "sum.json"];
    place.throng(&[&["run", "stay.yaml"], &place_of_none[..]].concat()).exits_with(2);
    let written = std::fs::read_to_string(place.path("sum.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&written).expect(&written);
    assert_eq!(json["schema"], "throng.not_started/1");
    assert!(json["error"].as_str().unwrap().contains("no/such/folder.jsonl"), "{json}");
    let finished = place.throng(&["run", "stay.yaml", "--json", "no/such/out.json"]).exits_with(2);
    finished.stderr_contains(&["no/such/out.json"]);
    let snapshot = place.throng(&["ctl", "snapshot"]).json();
    assert_eq!(snapshot["counters"]["accepted"], 0);
}

#[test]
fn too_few_ports_or_fds_are_said_with_numbers_and_the_command() {
    let place = TestDir::new();
    place.write("many.yaml", &STAY.replace("to: 5,", "to: 100k,"));
    let finished = place.throng(&["run", "many.yaml", "--source", "127.0.0.1"]).exits_with(2);
    finished.stderr_contains(&["100k connections", "1 source address", "--source"]);
    let finished = place.throng(&[
        "run",
        "many.yaml",
        "--source",
        "127.0.0.1",
        "--source-ports",
        "10000-10009",
    ]);
    finished.exits_with(2).stderr_contains(&["100k connections", "10"]);
}

#[test]
fn a_source_that_is_not_ours_is_refused_with_the_command() {
    let place = TestDir::new();
    place.write("stay.yaml", STAY);
    let finished = place.throng(&["run", "stay.yaml", "--source", "198.51.100.7"]).exits_with(2);
    finished.stderr_contains(&["ip address add 198.51.100.7/32"]);
    let finished = place.throng(&["run", "stay.yaml", "--source", "::1"]).exits_with(2);
    finished.stderr_contains(&["one is IPv4, the other IPv6"]);
}

#[test]
fn flags_that_make_no_sense_are_exit_code_2() {
    let place = TestDir::new();
    place.write("stay.yaml", STAY);
    for (flags, says) in [
        (&["--interval", "5"][..], "unit is missing"),
        (&["--interval", "1ms"], "at least 100ms"),
        (&["--target", "127.0.0.1:80"], "scheme is missing"),
        (&["--source", "10.0.0.0/8"], "a prefix of /16"),
        (&["--source-ports", "9-5"], "9 is above 5"),
        (&["--server-control", "/nowhere.sock"], "/nowhere.sock"),
        (&["--recrod", "x"], "--record"),
    ] {
        let args = [&["run", "stay.yaml"][..], flags].concat();
        place.throng(&args).exits_with(2).stderr_contains(&[says]);
    }
    place
        .throng(&["run", "missing.yaml"])
        .exits_with(2)
        .stderr_contains(&["cannot read missing.yaml", "throng init URL"]);
}

#[test]
fn a_flag_that_means_nothing_to_a_server_is_refused() {
    let place = TestDir::new();
    let refused = |args: &[&str], flag: &str, where_it_belongs: &str| {
        place.throng(args).exits_with(2).stderr_contains(&[flag, where_it_belongs]);
    };
    refused(&["serve", "echo", "--deflate"], "`--deflate`", "serve chat");
    refused(&["serve", "hold", "--policy", "close"], "`--policy`", "serve chat");
    refused(&["serve", "chat", "--max-channels", "5"], "`--max-channels`", "serve channels");
}

#[test]
fn a_run_writes_no_file_that_it_reads_and_none_twice() {
    let place = TestDir::new();
    let rows = "name\nann\n";
    place.write("users.csv", rows);
    place.write("times.txt", "0\n1\n");
    let earlier = "{\"schema\":\"throng.run/1\"}\n";
    place.write("earlier.jsonl", earlier);
    let stay = STAY.replace("{ramp: {to: 5, over: 1s}}", "{arrivals: {file: times.txt}}");
    let stay = format!("{stay}data: users.csv\n");
    place.write("stay.yaml", &stay);
    let trace = |file| ["--trace-user", "0", "--trace-file", file];
    for (flags, says) in [
        (&trace("stay.yaml")[..], "cannot write stay.yaml: it is the scenario; name another file"),
        (&trace("./users.csv"), "cannot write ./users.csv: the scenario reads it"),
        (&trace("times.txt"), "cannot write times.txt: the scenario reads it"),
        (&trace("run.jsonl"), "it is the run file; name another file with --trace-file"),
        (&trace("earlier.jsonl"), "cannot write earlier.jsonl: it is a run file"),
        (&trace("nowhere/trace.txt"), "there is no folder nowhere"),
        (&["--json", "stay.yaml"], "it is the scenario; name another file with --json"),
        (&["--json", "earlier.jsonl"], "cannot write earlier.jsonl: it is a run file"),
        (&["--record", "stay.yaml"], "it is the scenario; name another file with --record"),
        (&["--report", "users.csv"], "the scenario reads it; name another file with --report"),
        (&["--json", "a.json", "--report", "a.json"], "--json names it, too"),
    ] {
        let args = [&["run", "stay.yaml"], flags].concat();
        place.throng(&args).exits_with(2).stderr_contains(&[says]);
    }
    for (name, text) in [("stay.yaml", &*stay), ("users.csv", rows), ("earlier.jsonl", earlier)] {
        assert_eq!(std::fs::read_to_string(place.path(name)).unwrap(), text);
    }
    let left: Vec<_> = std::fs::read_dir(place.path(".")).unwrap().map(Result::unwrap).collect();
    assert_eq!(left.len(), 4, "nothing else was written: {left:?}");
}
