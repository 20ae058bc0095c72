//! Each construct of the reference: what the scenario has for it, and what the report says.

use crate::import_text;

/// Shows the steps of these statements, and the notes of the report.
fn steps(statements: &[&str]) -> String {
    let show = |statement: &&str| {
        let body = statement.replace('\n', "\n    ");
        let text = format!(
            "#!benchDL\ndefaults(\"host\" = \"h\", \"n\" = 3)\n\
             pool(size = 2, worker_type = tcp_worker):\n    connect_sync(\"h\", 1)\n    \
             request_sync()\n    {body}\n"
        );
        let import = import_text(&text, "statement.bdl").unwrap_or_else(|error| panic!("{error}"));
        let (_, steps) = import.scenario.split_once("timeout: 5s}\n").unwrap();
        // The last step closes what the first one opened.
        let steps = match steps.rsplit_once("  - close\n") {
            Some((steps, rest)) => format!("{steps}{rest}"),
            None => steps.to_owned(),
        };
        let notes = import.fidelity.entries.iter().filter(|entry| entry.line > 5);
        let notes = notes
            .map(|entry| format!("{}, {}: {}", entry.fidelity.name(), entry.construct, entry.note));
        let notes: Vec<_> = notes.collect();
        format!("== {statement}\n{}{}", steps, notes.join("\n"))
    };
    statements.iter().map(show).collect::<Vec<_>>().join("\n\n")
}

/// Shows what a directive or a pool becomes.
fn files(texts: &[&str]) -> String {
    let show = |text: &&str| {
        let pool = "pool(size = 2, worker_type = tcp_worker):\n    connect_sync(\"h\", 1)\n";
        let text = format!("#!benchDL\n{}", text.replace("POOL", pool));
        let import = import_text(&text, "file.bdl").unwrap_or_else(|error| panic!("{error}"));
        let (_, scenario) = import.scenario.split_once("(MZBench).\n").unwrap();
        format!("== {text}{scenario}{}", import.fidelity)
    };
    texts.iter().map(show).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn loops() {
    insta::assert_snapshot!(steps(&[
        "loop(time = 10 sec):\n    request_sync()",
        "loop(time = 10 sec, rate = 12 rpm):\n    request_sync()",
        "loop(time = 500 ms, rate = 0 rps):\n    request_sync()",
        "loop(time = 0 sec, rate = 1 rps):\n    request_sync()",
        "loop(time = numvar(\"n\") min, rate = ramp(linear, 1 rps, 5 rps)):\n    request_sync()",
        "loop(time = 10 sec, rate = [ramp, linear, 5 rps, 0 rps]):\n    request_sync()",
        "loop(time = 10 sec, rate = [ramp, linear, 5 rps, 5 rps]):\n    request_sync()",
        "loop(time = 10 sec, rate = comb(1 rps, 4 sec, 5 rps, 1 sec)):\n    request_sync()",
        "loop(time = 5 sec, rate = comb(1 rps, 4 sec, 5 rps, 1 sec)):\n    request_sync()",
        "loop(time = 1 min, rate = think_time(9 sec, 10 rps)):\n    request_sync()",
        "loop(time = 1 min, rate = 1 rps, think_time = [9 sec, 10 rps]):\n    request_sync()",
        "loop(time = 10 sec, rate = 5 rps, parallel = 4):\n    request_sync()",
        "loop(time = 10 sec, parallel = 4):\n    request_sync()",
        "loop(time = 10 sec, rate = 5 rps, spawn = true):\n    request_sync()",
        "loop(time = 10 sec, rate = 5 rps, poisson = true):\n    request_sync()",
        "loop(time = 10 sec, rate = 5 rps, iterator = \"i\"):\n    request_sync(var(\"i\"))",
        "loop(time = 10 sec, rate = 1 rps, iterator = \"i\"):\n    \
         loop(time = 1 sec, rate = var(\"i\") rps):\n        request_sync()",
        "loop(time = 10 sec, while = \"request.ok\" < 5):\n    request_sync()",
        "loop(time = 10 sec):\n    print(\"nothing\")",
        "loop(time = 9 sec):\n  loop(time = 8 sec):\n    loop(time = 7 sec):\n      \
         loop(time = 6 sec):\n        loop(time = 5 sec):\n          request_sync()",
    ]), @r#"
== loop(time = 10 sec):
    request_sync()
  - repeat:
      for: 10s
      do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
on_error: continue
translated, loop: 
translated, request_sync: 

== loop(time = 10 sec, rate = 12 rpm):
    request_sync()
  - every:
      rate: 12/m
      for: 10s
      do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
on_error: continue
translated, loop rate: 
translated, loop: 
approximated, request_sync: request_sync counts a latency from the moment of its sending, so a slow server hides delays (coordinated omission); the scenario counts it from the moment at which the turn was due

== loop(time = 500 ms, rate = 0 rps):
    request_sync()
  - wait: 500ms
on_error: continue
translated, loop rate: 
translated, loop: 
approximated, request_sync: request_sync counts a latency from the moment of its sending, so a slow server hides delays (coordinated omission); the scenario counts it from the moment at which the turn was due

== loop(time = 0 sec, rate = 1 rps):
    request_sync()
on_error: stop
translated, loop rate: 
not needed, loop: its time is zero

== loop(time = numvar("n") min, rate = ramp(linear, 1 rps, 5 rps)):
    request_sync()
  - every:
      rate: {from: 1/s, to: 5/s, over: $(n)}
      for: $(n)
      do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
on_error: continue
translated, loop rate: 
translated, loop: 
approximated, request_sync: request_sync counts a latency from the moment of its sending, so a slow server hides delays (coordinated omission); the scenario counts it from the moment at which the turn was due

== loop(time = 10 sec, rate = [ramp, linear, 5 rps, 0 rps]):
    request_sync()
  - every:
      rate: {from: 5/s, to: 18/h, over: 10s}
      for: 10s
      do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
on_error: continue
approximated, loop rate: the last rate is a thousandth of the first, and not 0
translated, loop: 
approximated, request_sync: request_sync counts a latency from the moment of its sending, so a slow server hides delays (coordinated omission); the scenario counts it from the moment at which the turn was due

== loop(time = 10 sec, rate = [ramp, linear, 5 rps, 5 rps]):
    request_sync()
  - every:
      rate: 5/s
      for: 10s
      do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
on_error: continue
translated, loop rate: 
translated, loop: 
approximated, request_sync: request_sync counts a latency from the moment of its sending, so a slow server hides delays (coordinated omission); the scenario counts it from the moment at which the turn was due

== loop(time = 10 sec, rate = comb(1 rps, 4 sec, 5 rps, 1 sec)):
    request_sync()
  - repeat:
      times: 2
      do:
        - every:
            rate: 1/s
            for: 4s
            do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
        - every:
            rate: 5/s
            for: 1s
            do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
on_error: continue
translated, loop rate: 
translated, loop: 
approximated, request_sync: request_sync counts a latency from the moment of its sending, so a slow server hides delays (coordinated omission); the scenario counts it from the moment at which the turn was due

== loop(time = 5 sec, rate = comb(1 rps, 4 sec, 5 rps, 1 sec)):
    request_sync()
  - every:
      rate: 1/s
      for: 4s
      do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
  - every:
      rate: 5/s
      for: 1s
      do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
on_error: continue
translated, loop rate: 
translated, loop: 
approximated, request_sync: request_sync counts a latency from the moment of its sending, so a slow server hides delays (coordinated omission); the scenario counts it from the moment at which the turn was due

== loop(time = 1 min, rate = think_time(9 sec, 10 rps)):
    request_sync()
  - repeat:
      times: 6
      do:
        - every:
            rate: 10/s
            for: 1s
            do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
        - wait: 9s
on_error: continue
translated, loop think_time: 
translated, loop: 
approximated, request_sync: request_sync counts a latency from the moment of its sending, so a slow server hides delays (coordinated omission); the scenario counts it from the moment at which the turn was due

== loop(time = 1 min, rate = 1 rps, think_time = [9 sec, 10 rps]):
    request_sync()
  - repeat:
      times: 6
      do:
        - every:
            rate: 10/s
            for: 1s
            do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
        - wait: 9s
on_error: continue
translated, loop rate: 
translated, loop think_time: 
translated, loop: 
approximated, request_sync: request_sync counts a latency from the moment of its sending, so a slow server hides delays (coordinated omission); the scenario counts it from the moment at which the turn was due

== loop(time = 10 sec, rate = 5 rps, parallel = 4):
    request_sync()
  - every:
      rate: 5/s
      for: 10s
      do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
on_error: continue
translated, loop rate: 
approximated, loop parallel: the turns of a user follow one another: a late one counts its latency from when it was due
translated, loop: 
approximated, request_sync: request_sync counts a latency from the moment of its sending, so a slow server hides delays (coordinated omission); the scenario counts it from the moment at which the turn was due

== loop(time = 10 sec, parallel = 4):
    request_sync()
  - repeat:
      for: 10s
      do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
on_error: continue
not supported, loop parallel: make the pool 4 times as large: a user takes one turn at a time
translated, loop: 
translated, request_sync: 

== loop(time = 10 sec, rate = 5 rps, spawn = true):
    request_sync()
  - every:
      rate: 5/s
      for: 10s
      do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
on_error: continue
translated, loop rate: 
approximated, loop spawn: MZBench takes each turn in a process of its own; the turns of the scenario follow one another: a late one counts its latency from when it was due
translated, loop: 
approximated, request_sync: request_sync counts a latency from the moment of its sending, so a slow server hides delays (coordinated omission); the scenario counts it from the moment at which the turn was due

== loop(time = 10 sec, rate = 5 rps, poisson = true):
    request_sync()
  - every:
      period: 200ms ±50%
      for: 10s
      do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
on_error: continue
translated, loop rate: 
approximated, loop poisson: the distances of turns vary evenly, by at most half of one, and not exponentially; the rate is the same
translated, loop: 
approximated, request_sync: request_sync counts a latency from the moment of its sending, so a slow server hides delays (coordinated omission); the scenario counts it from the moment at which the turn was due

== loop(time = 10 sec, rate = 5 rps, iterator = "i"):
    request_sync(var("i"))
  - every:
      rate: 5/s
      for: 10s
      do: [send: "${counter}", expect: {bytes: 1, timeout: 5s}]
on_error: continue
translated, loop rate: 
translated, loop iterator: 
translated, loop: 
approximated, request_sync: request_sync counts a latency from the moment of its sending, so a slow server hides delays (coordinated omission); the scenario counts it from the moment at which the turn was due
approximated, iterator: the number of the turn is `${counter}`, which counts the user's messages with such a number, from 0

== loop(time = 10 sec, rate = 1 rps, iterator = "i"):
    loop(time = 1 sec, rate = var("i") rps):
        request_sync()
  - wait: 10s
on_error: continue
translated, loop rate: 
translated, loop iterator: 
translated, loop: 
not supported, loop rate: a rate cannot change with a turn: write a `ramp`, or a loop for each

== loop(time = 10 sec, while = "request.ok" < 5):
    request_sync()
  - repeat:
      for: 10s
      do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
on_error: continue
not supported, loop while: a loop of the scenario ends by its time: shorten it, or stop the run with `throng ctl`
translated, loop: 
translated, request_sync: 

== loop(time = 10 sec):
    print("nothing")
  - wait: 10s
on_error: stop
translated, loop: 
not needed, print: `throng try` shows what a user does

== loop(time = 9 sec):
  loop(time = 8 sec):
    loop(time = 7 sec):
      loop(time = 6 sec):
        loop(time = 5 sec):
          request_sync()
  - repeat:
      for: 9s
      do:
        - repeat:
            for: 8s
            do:
              - repeat:
                  for: 7s
                  do:
                    - repeat: {for: 6s, do: [wait: 5s]}
on_error: continue
translated, loop: 
translated, loop: 
translated, loop: 
translated, loop: 
not supported, loop: loops may be nested 4 deep: write it with fewer
"#);
}

#[test]
fn the_worker() {
    insta::assert_snapshot!(steps(&[
        "connect_sync(var(\"host\"), 1)",
        "connect_sync(\"other\", 2)",
        "connect(\"h\", 1)\nwait(1 sec)\nrequest()\nwait_finish()\nrequest()\nwait_finish()",
        "loop(time = 1 sec, rate = 2 rps):\n    connect(\"h\", 1)\n    request()",
        "request(\"a\")\nwait(1 sec)\nrequest(\"b\")\nrequest(\"c\")\nwait_finish()",
        "request_sync(42)",
        "send_everything()",
    ]), @r#"
== connect_sync(var("host"), 1)
  - close
  - connect
on_error: stop
translated, connect_sync: 

== connect_sync("other", 2)
  - close
  - connect
on_error: stop
not supported, connect: a scenario has one target: this connects to h:1, too; run a scenario of its own for other:2
translated, connect_sync: 

== connect("h", 1)
wait(1 sec)
request()
wait_finish()
request()
wait_finish()
  - close
  - wait: 1s
  - connect
  - send: "I'm requesting the service"
  - expect: {bytes: 1, timeout: 5s}
  - close
  - connect
  - send: "I'm requesting the service"
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
translated, connect: 
translated, wait: 
translated, request: 
translated, wait_finish: 
translated, request: 
translated, wait_finish: 

== loop(time = 1 sec, rate = 2 rps):
    connect("h", 1)
    request()
  - every:
      rate: 2/s
      for: 1s
      do: [connect, send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}, close]
on_error: continue
translated, loop rate: 
translated, loop: 
translated, connect: 
translated, request: 

== request("a")
wait(1 sec)
request("b")
request("c")
wait_finish()
  - send: a
  - expect: {bytes: 1, timeout: 5s}
  - wait: 1s
  - send: b
  - expect: {bytes: 1, timeout: 5s}
  - send: c
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
approximated, request: request does not wait for its answer, and the scenario does: what follows begins later by that time
translated, wait: 
translated, request: 
translated, request: 
translated, wait_finish: 

== request_sync(42)
  - send: "42"
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
translated, request_sync: 

== send_everything()
on_error: stop
not supported, send_everything: the code of this function is not here: write what it sends and expects as steps
"#);
}

#[test]
fn the_standard_library() {
    insta::assert_snapshot!(steps(&[
        "wait(1.5 min)",
        "wait(numvar(\"n\") sec)",
        "wait(random_number(1, 5) sec)",
        "wait(random_number(2) sec)",
        "request_sync(random_number(10))",
        "request_sync(random_number(5, 10))",
        "request_sync(random_binary(1000))",
        "request_sync(random_binary(2 kb))",
        "request_sync(random_string(10))",
        "request_sync(random_list(10))",
        "request_sync(choose([\"a\", 2]))",
        "request_sync(round_robin([\"a\", \"b\"]))",
        "request_sync(concat(\"a$\", \"{b}\", var(\"n\")))",
        "request_sync(sprintf(\"~p ~s~n\", [1, \"two\"]))",
        "request_sync(resource(names))",
        "request_sync(term_to_binary(t(a, b)))",
        "request_sync(tokens(\"a b\"))",
        "request_sync(seq(1, 5))",
        "round_robin([1, 2])",
        "dump(\"text\")",
        "ignore_failure():\n    request_sync()",
        "parallel():\n    thread():\n        request_sync()",
        "error(\"the end\")\nrequest_sync()",
        "set_signal(\"a\")\nwait_signal(\"a\")",
        "set_signal(\"a\", 3)\nwait_signal(\"a\", 3, 10 sec)",
        "set_signal(1)",
        "wait_signal(\"b\")",
    ]), @r#"
== wait(1.5 min)
  - wait: 1m30s
on_error: stop
translated, wait: 

== wait(numvar("n") sec)
  - wait: $(n)
on_error: stop
translated, wait: 

== wait(random_number(1, 5) sec)
  - wait: uniform(1s, 5s)
on_error: stop
approximated, wait: MZBench waits for a whole number of units; the scenario for any time between

== wait(random_number(2) sec)
  - wait: uniform(0s, 2s)
on_error: stop
approximated, wait: MZBench waits for a whole number of units; the scenario for any time between

== request_sync(random_number(10))
  - send: ${random(0,9)}
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
translated, request_sync: 
translated, random_number: 

== request_sync(random_number(5, 10))
  - send: ${random(5,9)}
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
translated, request_sync: 
translated, random_number: 

== request_sync(random_binary(1000))
  - send: {random: 1kB}
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
translated, request_sync: 
translated, random_binary: 

== request_sync(random_binary(2 kb))
  - send: {random: 2KiB}
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
translated, request_sync: 
translated, random_binary: 

== request_sync(random_string(10))
  - send: {random: 10}
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
translated, request_sync: 
approximated, random_string: the random bytes have all values, not only those of letters

== request_sync(random_list(10))
  - send: {random: 10}
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
translated, request_sync: 
approximated, random_list: the random bytes have all values, not only those of letters

== request_sync(choose(["a", 2]))
  - send: "${choice('a', '2')}"
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
translated, request_sync: 
translated, choose: 

== request_sync(round_robin(["a", "b"]))
  - send: "${choice('a', 'b')}"
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
translated, request_sync: 
approximated, round_robin: MZBench takes the values in turn over all workers; the scenario takes them at random

== request_sync(concat("a$", "{b}", var("n")))
  - send: "a${'$'}{b}3"
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
translated, request_sync: 
translated, concat: 

== request_sync(sprintf("~p ~s~n", [1, "two"]))
  - send: "1 two\n"
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
translated, request_sync: 
translated, sprintf: 

== request_sync(resource(names))
  - send: "I'm requesting the service"
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
translated, request_sync: 
not supported, resource: write the file as CSV, add `data: FILE.csv`, and use `${row.COLUMN}`

== request_sync(term_to_binary(t(a, b)))
  - send: "I'm requesting the service"
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
translated, request_sync: 
not supported, term_to_binary: throng does not encode terms of Erlang: write the bytes, `send: {hex: ...}`

== request_sync(tokens("a b"))
  - send: "I'm requesting the service"
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
translated, request_sync: 
not supported, tokens: write the text that it stands for

== request_sync(seq(1, 5))
  - send: "I'm requesting the service"
  - expect: {bytes: 1, timeout: 5s}
on_error: stop
translated, request_sync: 
not supported, seq: write the text that it stands for

== round_robin([1, 2])
on_error: stop
not needed, round_robin: its value is not used

== dump("text")
on_error: stop
not needed, dump: `throng try` shows what a user does

== ignore_failure():
    request_sync()
  - send: "I'm requesting the service"
  - expect: {bytes: 1, timeout: 5s}
on_error: continue
approximated, ignore_failure: `on_error: continue` is for all steps of the user
translated, request_sync: 

== parallel():
    thread():
        request_sync()
on_error: stop
not supported, parallel: a user does one thing at a time: make a pool of each thread

== error("the end")
request_sync()
on_error: stop
approximated, error: MZBench counts the worker as failed; the user of the scenario ends here without an error

== set_signal("a")
wait_signal("a")
  - signal: a
  - wait_for: a
on_error: stop
translated, set_signal: 
translated, wait_signal: 

== set_signal("a", 3)
wait_signal("a", 3, 10 sec)
  - signal: a
  - wait_for: {name: a, timeout: 10s}
on_error: stop
approximated, set_signal count: a signal is given once: the steps that wait for it go on at once
translated, set_signal: 
not supported, wait_signal count: the scenario waits for the first signal only; to wait for several users, use `barrier: {name, users}`

== set_signal(1)
on_error: stop
not needed, set_signal: no step waits for this signal

== wait_signal("b")
on_error: stop
not supported, wait_signal: no step of the scenario gives this signal: add `signal` to the steps that it stands for
"#);
}

#[test]
fn directives_and_pools() {
    insta::assert_snapshot!(files(&[
        "make_install(git = \"u\", branch = \"b\", dir = \"d\")\nPOOL",
        "make_install(rsync = \"u\", exclude = \"e\")\nPOOL",
        "include_resource(names, \"names.tsv\", tsv)\nPOOL",
        "pre_hook():\n    exec(all, \"a\")\npost_hook():\n    worker_call(f, m)\nPOOL",
        "assert(always, \"request.error\" < 3)\nassert(always, 3 > \"workers.pool1.failed\")\nPOOL",
        "assert(always, \"request.ok\" >= 3)\nassert(1 min, \"latency.999\" < 50)\nPOOL",
        "assert(always, \"workers.pool1.started\" == numvar(\"n\", 2) and \"latency.max\" < 9)\nPOOL",
        "assert(always, \"request.ok\" > 3 or \"latency.50\" < 9)\nPOOL",
        "assert(always, not \"request.ok\" > 3)\nassert(always, \"print\" < 3)\nPOOL",
        "assert(always, \"request.ok\" != 3)\nassert(always, 1 < 2)\nPOOL",
        "POOLpool(size = 3, worker_type = dummy_worker):\n    print(\"x\")\n",
        "POOLpool(size = 3, worker_type = http_worker):\n    get(\"x\")\n",
        "POOLpool(size = 3, worker_type = amqp_worker):\n    get(\"x\")\n",
        "pool(size = 6, per_node = 3, worker_type = tcp_worker,\n     \
         worker_start = linear(numvar(\"pace\", 2) rps)):\n    connect_sync(\"h\", 1)\n",
        "pool(size = numvar(\"users\", 60), worker_type = tcp_worker,\n     \
         worker_start = linear(30 rpm)):\n    connect_sync(\"h\", 1)\n",
        "pool(size = 10, worker_type = tcp_worker, worker_start = poisson(5 rps)):\n    \
         connect_sync(\"h\", 1)\n    wait(1 min)\n",
        "pool(size = 60, worker_type = tcp_worker, worker_start = [exp, 2, 1 sec]):\n    \
         connect_sync(\"h\", 1)\n",
        "pool(size = 500, worker_type = tcp_worker, worker_start = pow(3, 2, 1 sec)):\n    \
         connect_sync(\"h\", 1)\n",
        "pool(size = 3, worker_type = tcp_worker):\n    parallel():\n        thread():\n            \
         connect_sync(\"h\", 1)\n        thread():\n            wait(1 sec)\n",
    ]), @r#"
== #!benchDL
make_install(git = "u", branch = "b", dir = "d")
pool(size = 2, worker_type = tcp_worker):
    connect_sync("h", 1)
target: tcp://h:1
load:
  - arrivals: {rate: 2k/s, for: 1ms, most: 2, spacing: even}
user:
  - connect
  - close
on_error: stop
5 constructs of MZBench: 3 translated, 1 not needed, 1 approximated
not needed
  line 2, make_install
    throng has the worker's functions as steps
approximated
  line 3, worker_start
    MZBench starts all workers as fast as it can; the scenario starts them within 1ms

== #!benchDL
make_install(rsync = "u", exclude = "e")
pool(size = 2, worker_type = tcp_worker):
    connect_sync("h", 1)
target: tcp://h:1
load:
  - arrivals: {rate: 2k/s, for: 1ms, most: 2, spacing: even}
user:
  - connect
  - close
on_error: stop
5 constructs of MZBench: 3 translated, 1 not needed, 1 approximated
not needed
  line 2, make_install
    throng has the worker's functions as steps
approximated
  line 3, worker_start
    MZBench starts all workers as fast as it can; the scenario starts them within 1ms

== #!benchDL
include_resource(names, "names.tsv", tsv)
pool(size = 2, worker_type = tcp_worker):
    connect_sync("h", 1)
target: tcp://h:1
load:
  - arrivals: {rate: 2k/s, for: 1ms, most: 2, spacing: even}
user:
  - connect
  - close
on_error: stop
5 constructs of MZBench: 3 translated, 1 approximated, 1 not supported
approximated
  line 3, worker_start
    MZBench starts all workers as fast as it can; the scenario starts them within 1ms
not supported
  line 2, include_resource
    write the file as CSV with the names of its columns in the first line, add `data: FILE.csv`,
    and use `${row.COLUMN}`

== #!benchDL
pre_hook():
    exec(all, "a")
post_hook():
    worker_call(f, m)
pool(size = 2, worker_type = tcp_worker):
    connect_sync("h", 1)
target: tcp://h:1
load:
  - arrivals: {rate: 2k/s, for: 1ms, most: 2, spacing: even}
user:
  - connect
  - close
on_error: stop
6 constructs of MZBench: 3 translated, 1 not needed, 1 approximated, 1 not supported
not needed
  line 3, pre_hook exec
    run `a` before `throng run`, on each machine
approximated
  line 6, worker_start
    MZBench starts all workers as fast as it can; the scenario starts them within 1ms
not supported
  line 5, post_hook worker_call
    do what the worker does after `throng run`; variables keep their defaults

== #!benchDL
assert(always, "request.error" < 3)
assert(always, 3 > "workers.pool1.failed")
pool(size = 2, worker_type = tcp_worker):
    connect_sync("h", 1)
target: tcp://h:1
load:
  - arrivals: {rate: 2k/s, for: 1ms, most: 2, spacing: even}
user:
  - connect
  - close
on_error: stop
thresholds:
  - message.failed < 3
  - users.failed < 3
6 constructs of MZBench: 5 translated, 1 approximated
approximated
  line 4, worker_start
    MZBench starts all workers as fast as it can; the scenario starts them within 1ms

== #!benchDL
assert(always, "request.ok" >= 3)
assert(1 min, "latency.999" < 50)
pool(size = 2, worker_type = tcp_worker):
    connect_sync("h", 1)
target: tcp://h:1
load:
  - arrivals: {rate: 2k/s, for: 1ms, most: 2, spacing: even}
user:
  - connect
  - close
on_error: stop
thresholds:
  - message.answered >= 3
  - message.p99.9 < 50ms
6 constructs of MZBench: 3 translated, 3 approximated
approximated
  line 2, assert
    MZBench judges the condition all the time; the scenario judges the whole run at its end
  line 3, assert
    the condition is judged once, at the end of the run
  line 4, worker_start
    MZBench starts all workers as fast as it can; the scenario starts them within 1ms

== #!benchDL
assert(always, "workers.pool1.started" == numvar("n", 2) and "latency.max" < 9)
pool(size = 2, worker_type = tcp_worker):
    connect_sync("h", 1)
target: tcp://h:1
load:
  - arrivals: {rate: 2k/s, for: 1ms, most: 2, spacing: even}
user:
  - connect
  - close
on_error: stop
thresholds:
  - users.started == 2
  - message.max < 9ms
5 constructs of MZBench: 3 translated, 2 approximated
approximated
  line 2, assert
    MZBench judges the condition all the time; the scenario judges the whole run at its end
  line 3, worker_start
    MZBench starts all workers as fast as it can; the scenario starts them within 1ms

== #!benchDL
assert(always, "request.ok" > 3 or "latency.50" < 9)
pool(size = 2, worker_type = tcp_worker):
    connect_sync("h", 1)
target: tcp://h:1
load:
  - arrivals: {rate: 2k/s, for: 1ms, most: 2, spacing: even}
user:
  - connect
  - close
on_error: stop
5 constructs of MZBench: 3 translated, 1 approximated, 1 not supported
approximated
  line 3, worker_start
    MZBench starts all workers as fast as it can; the scenario starts them within 1ms
not supported
  line 2, assert
    all thresholds must hold: write one for each condition that must

== #!benchDL
assert(always, not "request.ok" > 3)
assert(always, "print" < 3)
pool(size = 2, worker_type = tcp_worker):
    connect_sync("h", 1)
target: tcp://h:1
load:
  - arrivals: {rate: 2k/s, for: 1ms, most: 2, spacing: even}
user:
  - connect
  - close
on_error: stop
6 constructs of MZBench: 3 translated, 1 approximated, 2 not supported
approximated
  line 4, worker_start
    MZBench starts all workers as fast as it can; the scenario starts them within 1ms
not supported
  line 2, assert
    all thresholds must hold: write one for each condition that must
  line 3, assert
    throng does not measure `print`; choose a threshold of docs/scenario.md

== #!benchDL
assert(always, "request.ok" != 3)
assert(always, 1 < 2)
pool(size = 2, worker_type = tcp_worker):
    connect_sync("h", 1)
target: tcp://h:1
load:
  - arrivals: {rate: 2k/s, for: 1ms, most: 2, spacing: even}
user:
  - connect
  - close
on_error: stop
6 constructs of MZBench: 3 translated, 1 approximated, 2 not supported
approximated
  line 4, worker_start
    MZBench starts all workers as fast as it can; the scenario starts them within 1ms
not supported
  line 2, assert
    throng has `<`, `<=`, `==`, `>=` and `>`: write one of these
  line 3, assert
    a threshold compares one metric with one number

== #!benchDL
pool(size = 2, worker_type = tcp_worker):
    connect_sync("h", 1)
pool(size = 3, worker_type = dummy_worker):
    print("x")
target: tcp://h:1
load:
  - arrivals: {rate: 2k/s, for: 1ms, most: 2, spacing: even}
user:
  - connect
  - close
on_error: stop
6 constructs of MZBench: 4 translated, 1 not needed, 1 approximated
not needed
  line 4, worker_type
    a dummy_worker makes no traffic; its pool is left out
approximated
  line 2, worker_start
    MZBench starts all workers as fast as it can; the scenario starts them within 1ms

== #!benchDL
pool(size = 2, worker_type = tcp_worker):
    connect_sync("h", 1)
pool(size = 3, worker_type = http_worker):
    get("x")
target: tcp://h:1
load:
  - arrivals: {rate: 2k/s, for: 1ms, most: 2, spacing: even}
user:
  - connect
  - close
on_error: stop
6 constructs of MZBench: 4 translated, 1 approximated, 1 not supported
approximated
  line 2, worker_start
    MZBench starts all workers as fast as it can; the scenario starts them within 1ms
not supported
  line 4, worker_type
    write the requests as steps: `get`, `post`, `put`, `delete`

== #!benchDL
pool(size = 2, worker_type = tcp_worker):
    connect_sync("h", 1)
pool(size = 3, worker_type = amqp_worker):
    get("x")
target: tcp://h:1
load:
  - arrivals: {rate: 2k/s, for: 1ms, most: 2, spacing: even}
user:
  - connect
  - close
on_error: stop
6 constructs of MZBench: 4 translated, 1 approximated, 1 not supported
approximated
  line 2, worker_start
    MZBench starts all workers as fast as it can; the scenario starts them within 1ms
not supported
  line 4, worker_type
    the code of `amqp_worker` is not here; only tcp_worker is known: write what it sends and
    expects as steps

== #!benchDL
pool(size = 6, per_node = 3, worker_type = tcp_worker,
     worker_start = linear(numvar("pace", 2) rps)):
    connect_sync("h", 1)
target: tcp://h:1
params: {pace: 2/s}
load:
  - arrivals: {rate: $(pace), for: $(6 / pace), most: 6, spacing: even}
user:
  - connect
  - close
on_error: stop
5 constructs of MZBench: 4 translated, 1 not needed
not needed
  line 2, per_node
    throng has no nodes; start it on each machine

== #!benchDL
pool(size = numvar("users", 60), worker_type = tcp_worker,
     worker_start = linear(30 rpm)):
    connect_sync("h", 1)
target: tcp://h:1
params: {users: 60}
load:
  - arrivals: {rate: 30/m, for: $(users / (30/m)), most: $(users), spacing: even}
user:
  - connect
  - close
on_error: stop
4 constructs of MZBench: 4 translated

== #!benchDL
pool(size = 10, worker_type = tcp_worker, worker_start = poisson(5 rps)):
    connect_sync("h", 1)
    wait(1 min)
target: tcp://h:1
load:
  - arrivals: {rate: 5/s, for: 5.17s, most: 10}
  - hold: {for: 1m}
user:
  - connect
  - wait: 1m
  - close
on_error: stop
5 constructs of MZBench: 4 translated, 1 approximated
approximated
  line 2, worker_start
    MZBench sleeps at random between two starts, and its own delays add to that; the scenario
    keeps the rate, and its last user may arrive a little later

== #!benchDL
pool(size = 60, worker_type = tcp_worker, worker_start = [exp, 2, 1 sec]):
    connect_sync("h", 1)
target: tcp://h:1
load:
  - arrivals: {rate: 1k/s, for: 1ms, most: 1, spacing: even}
  - hold: {for: 999ms}
  - arrivals:
      rate: {from: 2/s, to: 61/s, curve: exponential}
      for: 3.417727s
      most: 59
      spacing: even
user:
  - connect
  - close
on_error: stop
4 constructs of MZBench: 4 translated

== #!benchDL
pool(size = 500, worker_type = tcp_worker, worker_start = pow(3, 2, 1 sec)):
    connect_sync("h", 1)
target: tcp://h:1
load:
  - arrivals: {rate: {from: 0/s, to: 4.03226/s}, for: 992ms, most: 2, spacing: even}
  - arrivals: {rate: {from: 5.00038/s, to: 15.5829/s}, for: 583ms, most: 6, spacing: even}
  - arrivals: {rate: {from: 12.6561/s, to: 28.2438/s}, for: 489ms, most: 10, spacing: even}
  - arrivals: {rate: {from: 23.0931/s, to: 36.5401/s}, for: 436ms, most: 13, spacing: even}
  - arrivals: {rate: {from: 38.7818/s, to: 50.9938/s}, for: 401ms, most: 18, spacing: even}
  - arrivals: {rate: {from: 49.828/s, to: 62.1721/s}, for: 375ms, most: 21, spacing: even}
  - arrivals: {rate: {from: 66.0077/s, to: 80.885/s}, for: 354ms, most: 26, spacing: even}
  - arrivals: {rate: {from: 76.1143/s, to: 94.9772/s}, for: 339ms, most: 29, spacing: even}
  - arrivals: {rate: {from: 95.5847/s, to: 108.12/s}, for: 324ms, most: 33, spacing: even}
  - arrivals: {rate: {from: 113.763/s, to: 123.418/s}, for: 312ms, most: 37, spacing: even}
  - arrivals: {rate: {from: 131.219/s, to: 140.305/s}, for: 302ms, most: 41, spacing: even}
  - arrivals: {rate: {from: 148.276/s, to: 158.892/s}, for: 293ms, most: 45, spacing: even}
  - arrivals: {rate: {from: 164.555/s, to: 179.305/s}, for: 285ms, most: 49, spacing: even}
  - arrivals: {rate: {from: 180.104/s, to: 201.192/s}, for: 278ms, most: 53, spacing: even}
  - arrivals: {rate: {from: 198.448/s, to: 214.838/s}, for: 271ms, most: 56, spacing: even}
  - arrivals: {rate: {from: 223.088/s, to: 235.56/s}, for: 266ms, most: 61, spacing: even}
user:
  - connect
  - close
on_error: stop
4 constructs of MZBench: 3 translated, 1 approximated
approximated
  line 2, worker_start
    16 linear rates stand for the curve; the number of users that have started differs by less
    than 1 of 500, after 2.07s

== #!benchDL
pool(size = 3, worker_type = tcp_worker):
    parallel():
        thread():
            connect_sync("h", 1)
        thread():
            wait(1 sec)
target: tcp://h:1
load:
  - arrivals: {rate: 6k/s, for: 1ms, most: 6, spacing: even}
  - hold: {for: 1s}
users:
  pool1_thread1:
    weight: 1
    user:
      - connect
      - close
    on_error: stop
  pool1_thread2:
    weight: 1
    user:
      - wait: 1s
    on_error: stop
6 constructs of MZBench: 5 translated, 1 approximated
approximated
  line 2, worker_start
    MZBench starts all workers as fast as it can; the scenario starts them within 1ms
"#);
}

#[test]
fn erlang_terms() {
    let text = r#"[
        {defaults, [{"n", 2}]},
        {include_resource, names, "names.json", json},
        {pre_hook, [{exec, all, "a"}]},
        {assert, always, {lt, "request.error", 3}},
        {assert, {30, sec}, {'and', {gt, "request.ok.rps", 10}, {lte, "latency.95", 20}}},
        {pool, [{size, {numvar, "n"}}, {worker_type, tcp_worker, erlang}, {worker_start, {poisson, {1, rps}}}], [
            {connect_sync, "h", 1},
            {set_signal, go},
            {wait_signal, go},
            {ignore_failure, {request_sync, <<"binary">>}},
            {loop, [{time, {9, sec}}, {rate, {comb, {2, rps}, {1, sec}, {0, rps}, {2, sec}}}], [
                {request_sync, {sprintf, "~p", [{random_number, 1, 5}]}}
            ]},
            {loop, [{time, {6, sec}}, {rate, {think_time, {2, sec}, {1, rps}}}, {parallel, 1}], [
                {request_sync, {choose, ["a", "b"]}}
            ]},
            {wait, {100, ms}}
        ]},
        {pool, [{size, 2}, {worker_type, tcp_worker}, {worker_start, {poisson, {1, rps}}}], [
            {parallel, [{connect, "h", 1}, {request}], {wait, {1, sec}}}
        ]}
    ]."#;
    let import = import_text(text, "terms.erl").unwrap_or_else(|error| panic!("{error}"));
    insta::assert_snapshot!(crate::show(&import), @r#"
# Imported from terms.erl (MZBench).
target: tcp://h:1
load:
  - arrivals: {rate: {from: 2/s, to: 6/s}, for: 500ms, most: 2, spacing: even}
  - arrivals: {rate: {from: 0/s, to: 4/s}, for: 500ms, most: 1, spacing: even}
  - arrivals: {rate: {from: 2/s, to: 6/s}, for: 500ms, most: 2, spacing: even}
  - arrivals: {rate: {from: 0/s, to: 4/s}, for: 500ms, most: 1, spacing: even}
  - hold: {for: 15.1s}
users:
  pool1:
    weight: 1
    user:
      - connect
      - signal: go
      - wait_for: go
      - send: binary
      - expect: {bytes: 1, timeout: 5s}
      - repeat:
          times: 3
          do:
            - every:
                rate: 2/s
                for: 1s
                do: [send: "${random(1,4)}", expect: {bytes: 1, timeout: 5s}]
            - wait: 2s
      - repeat:
          times: 2
          do:
            - every:
                rate: 1/s
                for: 1s
                do: [send: "${choice('a', 'b')}", expect: {bytes: 1, timeout: 5s}]
            - wait: 2s
      - wait: 100ms
      - close
    on_error: continue
  pool2_thread1:
    weight: 1
    user:
      - connect
      - send: "I'm requesting the service"
      - expect: {bytes: 1, timeout: 5s}
      - close
    on_error: stop
  pool2_thread2:
    weight: 1
    user:
      - wait: 1s
    on_error: stop
thresholds:
  - message.failed < 3
  - message.rate_mean > 10/s
  - message.p95 <= 20ms

30 constructs of MZBench: 22 translated, 1 not needed, 6 approximated, 1 not supported
not needed
  line 4, pre_hook exec
    run `a` before `throng run`, on each machine
approximated
  line 6, assert
    the condition is judged once, at the end of the run
  line 7, worker_start
    the pools start together, mixed by their sizes; 4 linear rates stand for the curve; the
    number of users that have started differs by less than 1 of 6, after 500ms
  line 11, ignore_failure
    `on_error: continue` is for all steps of the user
  line 11, request_sync
    tcp_worker takes any data for the answer, and so does the scenario: it waits for one byte
    and ignores the rest; if you know the answer, write `expect: ok`
  line 13, request_sync
    request_sync counts a latency from the moment of its sending, so a slow server hides delays
    (coordinated omission); the scenario counts it from the moment at which the turn was due
  line 16, request_sync
    request_sync counts a latency from the moment of its sending, so a slow server hides delays
    (coordinated omission); the scenario counts it from the moment at which the turn was due
not supported
  line 3, include_resource
    write the file as CSV with the names of its columns in the first line, add `data: FILE.csv`,
    and use `${row.COLUMN}`
"#);
}
