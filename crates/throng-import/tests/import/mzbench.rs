//! MZBench's scenarios.

mod constructs;
mod mistakes;
mod starts;

use std::fs;
use std::path::Path;

use throng_import::ImportOptions;
use throng_load::program::Program;
use throng_load::scenario::Scenario;
use throng_load::schedule::Arrivals;

use crate::{files, import_file, import_with, show};

#[test]
fn fast_connect_of_the_article() {
    insta::assert_snapshot!(show(&import_file("mzbench/fast_connect.bdl")), @r#"
# Imported from fast_connect.bdl (MZBench).
# "Fast TCP sockets": ever more connections, one request on each.
# 44.4 more each second
target: tcp://service-host:4444
load:
  - arrivals: {rate: {from: 0/s, to: 42177.8/s}, for: 15m49s, most: 20M, spacing: even}
user:
  - connect
  - send: "I'm requesting the service"
  - expect: {bytes: 1, timeout: 5s}
  - close
on_error: stop

7 constructs of MZBench: 5 translated, 1 not needed, 1 approximated
not needed
  line 3, make_install
    throng has the worker's functions as steps
approximated
  line 10, request
    tcp_worker takes any data for the answer, and so does the scenario: it waits for one byte
    and ignores the rest; if you know the answer, write `expect: ok`
"#);
}

#[test]
fn fast_receive_of_the_article() {
    insta::assert_snapshot!(show(&import_file("mzbench/fast_receive.bdl")), @r#"
# Imported from fast_receive.bdl (MZBench).
# "Fast TCP sockets": 25,000 connections, and ever more requests on each.
target: tcp://service-host:4444
params: {time: 20m, max: 10/s}
load:
  - arrivals: {rate: 500/s, for: 50s, most: 25k, spacing: even}
  - hold: {for: $(time), until: done}
user:
  - connect
  # From 25,000 to 250,000 requests a second in all.
  - every:
      rate: {from: 1/s, to: $(max), over: $(time)}
      for: $(time)
      do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
  - close
on_error: continue

8 constructs of MZBench: 6 translated, 2 approximated
approximated
  line 10, loop rate
    MZBench takes the first turn at a random moment of the first period, and the others as far
    behind it; the scenario takes the first at once
  line 11, request_sync
    request_sync counts a latency from the moment of its sending, so a slow server hides delays
    (coordinated omission); the scenario counts it from the moment at which the turn was due;
    tcp_worker takes any data for the answer, and so does the scenario: it waits for one byte
    and ignores the rest; if you know the answer, write `expect: ok`
"#);
}

#[test]
fn all_constructs() {
    insta::assert_snapshot!(show(&import_file("mzbench/all.bdl")), @r#"
# Imported from all.bdl (MZBench).
# Not supported, and left out:
#   line 5, include_resource
#   line 6, pre_hook
#   line 8, post_hook
#   line 15, wait_signal
#   line 18, loop think_time
#   line 20, loop parallel
#   line 20, loop iterator
#   line 21, sprintf
#   line 22, loop while
#   line 23, ignore_failure
#   line 25, wait
#   line 30, set_signal
#   line 35, parallel
#   line 38, error
# Every construct that the importer knows.
target: tcp://127.0.0.1:4444
load:
  - arrivals: {rate: 1k/s, for: 1ms, most: 1, spacing: even}
  - arrivals: {rate: {from: 1.65762/s, to: 6.97237/s}, for: 927ms, most: 4, spacing: even}
  - arrivals: {rate: {from: 8.70133/s, to: 10.7162/s}, for: 927ms, most: 9, spacing: even}
  - arrivals: {rate: {from: 13.1498/s, to: 21.3702/s}, for: 927ms, most: 16, spacing: even}
  - arrivals: {rate: {from: 19.9578/s, to: 38.232/s}, for: 928ms, most: 27, spacing: even}
  - arrivals: {rate: {from: 13.1718/s, to: 12.1447/s}, for: 632ms, most: 8, spacing: even}
  - arrivals: {rate: {from: 10.6674/s, to: 14.6092/s}, for: 633ms, most: 8, spacing: even}
  - arrivals: {rate: {from: 11.6111/s, to: 13.6655/s}, for: 633ms, most: 8, spacing: even}
  - arrivals: {rate: {from: 14.1777/s, to: 14.2136/s}, for: 634ms, most: 9, spacing: even}
  - hold: {for: 1m3s, until: done}
users:
  pool1:
    weight: 2
    user:
      # A paced conversation.
      - connect
      - every:
          rate: {from: 10/s, to: 36/h, over: 1m}
          for: 1m
          do: [send: hello, expect: {bytes: 1, timeout: 5s}]
      - every:
          rate: 5/s
          for: 2s
          do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
      - repeat: {for: 1s, do: [wait: 5ms]}
      - close
    on_error: continue
  pool2:
    weight: 1
    user:
      - connect
      - send: hello
      - expect: {bytes: 1, timeout: 5s}
      - wait: 1s
      - send: again
      - expect: {bytes: 1, timeout: 5s}
      - close
    on_error: stop

40 constructs of MZBench: 15 translated, 3 not needed, 8 approximated, 14 not supported
not needed
  line 3, make_install
    throng has the worker's functions as steps
  line 12, per_node
    throng has no nodes; start it on each machine
  line 40, worker_type
    a dummy_worker makes no traffic; its pool is left out
approximated
  line 12, worker_start
    the pools start together, mixed by their sizes; 8 linear rates stand for the curve; the
    number of users that have started differs by less than 1 of 90, after 3.71s
  line 16, loop rate
    the last rate is a thousandth of the first, and not 0
  line 17, request_sync
    request_sync counts a latency from the moment of its sending, so a slow server hides delays
    (coordinated omission); the scenario counts it from the moment at which the turn was due;
    tcp_worker takes any data for the answer, and so does the scenario: it waits for one byte
    and ignores the rest; if you know the answer, write `expect: ok`
  line 20, loop rate
    MZBench takes the first turn at a random moment of the first period, and the others as far
    behind it; the scenario takes the first at once
  line 20, loop poisson
    the turns are at equal distances; the rate is the same; `every: {period: 200ms ±50%}` varies
    them
  line 20, loop spawn
    MZBench takes each turn in a process of its own; the turns of the scenario follow one
    another: a late one counts its latency from when it was due
  line 21, request_sync
    request_sync counts a latency from the moment of its sending, so a slow server hides delays
    (coordinated omission); the scenario counts it from the moment at which the turn was due
  line 31, request
    request does not wait for its answer, and the scenario does: what follows begins later by
    that time
not supported
  line 5, include_resource
    add `data: {file: FILE, columns: [NAME], delimiter: "\t"}` for a TSV, without the delimiter
    for a CSV, and use `${row.NAME}`
  line 6, pre_hook
    run its commands before `throng run`, on each machine; variables keep their defaults
  line 8, post_hook
    run its commands after `throng run`, on each machine
  line 15, wait_signal
    write the step `wait_for: NAME`, or `barrier: {name, users}` to wait for several users
  line 18, loop think_time
    write a `repeat` of an `every` for 1s and a `wait`
  line 20, loop parallel
    make the pool as many times as large: a user takes one turn at a time
  line 20, loop iterator
    it is 0 each time: write `${counter}` in its place, which counts the messages of the user
    with such a number, from 0
  line 21, sprintf
    write the text that it stands for, with `${random(1,9)}` or `${choice('a', 'b')}` in it, or
    `send: {random: 1kb}`
  line 22, loop while
    a loop of the scenario ends by its time: shorten it, or stop the run with `throng ctl`
  line 23, ignore_failure
    write its statements without it, and `on_error: continue` beside the steps
  line 25, wait
    write the time, for example `wait: uniform(1s, 5s)`
  line 30, set_signal
    write the step `signal: NAME`
  line 35, parallel
    a user does one thing at a time: make a pool of each thread
  line 38, error
    remove the steps behind it: the user ends at its last step
"#);
}

#[test]
fn both_forms_of_a_scenario_are_the_same() {
    for name in ["fast_connect", "fast_receive"] {
        let [bdl, erlang] = ["bdl", "erl"].map(|form| {
            let import = import_file(&format!("mzbench/{name}.{form}"));
            import.scenario.replace(&format!("{name}.{form}"), name)
        });
        // A parameter that is a default has a name in the older form, too.
        assert_eq!(bdl, erlang, "{name}");
    }
}

/// The scenarios of the labs were written by hand, from the same article. They differ in what the
/// import cannot know: that the answer is `ok`, and that users stop after an error.
#[test]
fn imports_do_what_the_labs_do() {
    for name in ["fast-connect", "fast-receive"] {
        let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../labs/{name}.yaml"));
        let lab = parse(&fs::read_to_string(lab).unwrap());
        let import = import_file(&format!("mzbench/{}.bdl", name.replace('-', "_")));
        let import = parse(&import.scenario.replace("bytes: 1,", "text: ok,"));
        let [lab_ops, import_ops] = [&lab, &import].map(|scenario| {
            let program = Program::compile(scenario);
            let loops = if name == "fast-receive" { vec![*program.loop_at(0)] } else { vec![] };
            format!("{:#?} {:?} {loops:?}", program.ops(), program.template(0))
        });
        assert_eq!(lab_ops, import_ops, "{name}");
        // The lab has its rate of the end from a rounded slope.
        let [ours, theirs] = [&import, &lab].map(|it| Arrivals::new(it.load.shared(), 0, 1, 7));
        let mut count = 0;
        for (ours, theirs) in ours.zip(theirs).step_by(997) {
            let (ours, theirs) = (ours.as_secs_f64(), theirs.as_secs_f64());
            assert!((ours - theirs).abs() <= 0.001 * theirs, "{name}: {ours} {theirs}");
            count += 1;
        }
        assert!(count > 20, "{name}");
    }
}

fn parse(scenario: &str) -> Scenario {
    Scenario::parse(scenario, "import.yaml").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// The tcp_worker has no TLS; a target may have it all the same.
#[test]
fn a_target_over_tls() {
    let text = fs::read_to_string(files().join("mzbench/fast_connect.bdl")).unwrap();
    let options = ImportOptions { target: Some("tls://127.0.0.9:1".parse().unwrap()) };
    let import = import_with(&text, "mzbench/fast_connect.bdl", &options).unwrap();
    assert!(import.scenario.contains("target: tls://127.0.0.9:1\n"), "{}", import.scenario);
}
