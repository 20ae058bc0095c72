//! MZBench's scenarios.

mod constructs;
mod mistakes;
mod starts;

use std::fs;
use std::path::Path;

use throng_load::program::Program;
use throng_load::scenario::Scenario;
use throng_load::schedule::Arrivals;

use crate::{import_file, show};

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
#   line 4, include_resource
#   line 7, pre_hook worker_call
#   line 24, loop while
# Every construct that the importer knows.
target: tcp://127.0.0.1:4444
load:
  - arrivals: {rate: 1k/s, for: 1ms, most: 1, spacing: even}
  - arrivals: {rate: {from: 4.54687/s, to: 8.39812/s}, for: 927ms, most: 6, spacing: even}
  - arrivals: {rate: {from: 9.5878/s, to: 16.3022/s}, for: 927ms, most: 12, spacing: even}
  - arrivals: {rate: {from: 16.2486/s, to: 33.3739/s}, for: 927ms, most: 23, spacing: even}
  - arrivals: {rate: {from: 30.22/s, to: 66.7629/s}, for: 928ms, most: 45, spacing: even}
  - arrivals: {rate: {from: 13.1718/s, to: 12.1447/s}, for: 632ms, most: 8, spacing: even}
  - arrivals: {rate: {from: 10.6674/s, to: 14.6092/s}, for: 633ms, most: 8, spacing: even}
  - arrivals: {rate: {from: 11.6111/s, to: 13.6655/s}, for: 633ms, most: 8, spacing: even}
  - arrivals: {rate: {from: 14.1777/s, to: 14.2136/s}, for: 634ms, most: 9, spacing: even}
  - hold: {for: 1m13s, until: done}
users:
  pool1:
    weight: 2
    user:
      # A paced conversation.
      - connect
      - wait_for: {name: go, timeout: 10s}
      - repeat:
          times: 4
          do:
            - every:
                rate: 10/s
                for: 5s
                do:
                  - send: turn ${counter} of $${x} ${random(1,6)}
                  - expect: {bytes: 1, timeout: 5s}
            - wait: 10s
      - repeat:
          times: 3
          do:
            - every:
                rate: 3/s
                for: 1s
                do: [send: {random: 64}, expect: {bytes: 1, timeout: 5s}]
            - wait: 2s
      - every:
          rate: 3/s
          for: 1s
          do: [send: {random: 64}, expect: {bytes: 1, timeout: 5s}]
      - every:
          period: 200ms ±50%
          for: 2s
          do: [send: "${choice('a', 'b')}", expect: {bytes: 1, timeout: 5s}]
      - repeat:
          for: 1s
          do:
            - send: "x${choice('1', '2', '3')}"
            - expect: {bytes: 1, timeout: 5s}
            - wait: uniform(1ms, 5ms)
      - close
    on_error: continue
  pool2_thread1:
    weight: 1
    user:
      - signal: go
      - connect
      - send: hello
      - expect: {bytes: 1, timeout: 5s}
      - wait: 1s
      - send: again
      - expect: {bytes: 1, timeout: 5s}
      - close
    on_error: stop
  pool2_thread2:
    weight: 1
    user:
      - wait: 100ms
    on_error: stop
thresholds:
  - message.failed < 10
  - message.p95 <= 200ms
  - message.rate_mean > 100/s

53 constructs of MZBench: 26 translated, 6 not needed, 18 approximated, 3 not supported
not needed
  line 6, pre_hook exec
    run `echo begin` before `throng run`, on each machine
  line 9, post_hook exec
    run `echo end` after `throng run`, on each machine
  line 13, per_node
    throng has no nodes; start it on each machine
  line 33, set_signal
    no step waits for this signal
  line 39, print
    `throng try` shows what a user does
  line 43, worker_type
    a dummy_worker makes no traffic; its pool is left out
approximated
  line 10, assert
    MZBench judges the condition all the time; the scenario judges the whole run at its end
  line 11, assert
    the condition is judged once, at the end of the run
  line 13, worker_start
    the pools start together, mixed by their sizes; 8 linear rates stand for the curve; the
    number of users that have started differs by less than 1 of 120, after 3.71s
  line 17, loop rate
    MZBench takes the first turn at a random moment of the first period, and the others as far
    behind it; the scenario takes the first at once
  line 18, request_sync
    request_sync counts a latency from the moment of its sending, so a slow server hides delays
    (coordinated omission); the scenario counts it from the moment at which the turn was due;
    tcp_worker takes any data for the answer, and so does the scenario: it waits for one byte
    and ignores the rest; if you know the answer, write `expect: ok`
  line 18, iterator
    the number of the turn is `${counter}`, which counts the user's messages with such a number,
    from 0
  line 19, loop think_time
    MZBench takes the first turn at a random moment of the first period, and the others as far
    behind it; the scenario takes the first at once
  line 19, loop parallel
    the turns of a user follow one another: a late one counts its latency from when it was due
  line 20, request_sync
    request_sync counts a latency from the moment of its sending, so a slow server hides delays
    (coordinated omission); the scenario counts it from the moment at which the turn was due
  line 21, loop rate
    MZBench takes the first turn at a random moment of the first period, and the others as far
    behind it; the scenario takes the first at once
  line 21, loop poisson
    the distances of turns vary evenly, by at most half of one, and not exponentially; the rate
    is the same
  line 21, loop spawn
    MZBench takes each turn in a process of its own; the turns of the scenario follow one
    another: a late one counts its latency from when it was due
  line 22, ignore_failure
    `on_error: continue` is for all steps of the user
  line 23, request_sync
    request_sync counts a latency from the moment of its sending, so a slow server hides delays
    (coordinated omission); the scenario counts it from the moment at which the turn was due
  line 25, round_robin
    MZBench takes the values in turn over all workers; the scenario takes them at random
  line 26, wait
    MZBench waits for a whole number of units; the scenario for any time between
  line 34, request
    request does not wait for its answer, and the scenario does: what follows begins later by
    that time
  line 41, error
    MZBench counts the worker as failed; the user of the scenario ends here without an error
not supported
  line 4, include_resource
    add `data: {file: FILE, columns: [NAME], delimiter: "\t"}` for a TSV, without the delimiter
    for a CSV, and use `${row.NAME}`
  line 7, pre_hook worker_call
    do what the worker does before `throng run`; variables keep their defaults
  line 24, loop while
    a loop of the scenario ends by its time: shorten it, or stop the run with `throng ctl`
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
        let [ours, theirs] = [&import, &lab].map(|it| Arrivals::new(&it.load, 0, 1, 7));
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
