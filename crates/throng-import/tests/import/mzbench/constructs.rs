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
        "loop(time = 1 min, rate = think_time(9 sec, 10 rps)):\n    request_sync()",
        "loop(time = 10 sec, parallel = 4):\n    request_sync()",
        "loop(time = 10 sec, rate = 5 rps, spawn = true):\n    request_sync()",
        "loop(time = 10 sec, rate = 5 rps, poisson = true):\n    request_sync()",
        "loop(time = 10 sec, rate = 5 rps, iterator = \"i\"):\n    request_sync(var(\"i\"))",
        "loop(time = 10 sec, while = \"request.ok\" < 5):\n    request_sync()",
        "loop(time = 10 sec):\n    print(\"nothing\")",
        "loop(time = 9 sec):\n  loop(time = 8 sec):\n    loop(time = 7 sec):\n      \
         loop(time = 6 sec):\n        loop(time = 5 sec):\n          request_sync()",
    ]));
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
        "send(\"a\")\nwait(1 sec)\nsend(\"b\")\ndisconnect()",
        "connect(\"h\", 1)\nloop(time = 1 sec, rate = 2 rps):\n    send(\"a\")\ndisconnect()",
        "start_receivers(var(\"port\", 1), 100, infinity, 100 sec)",
    ]));
}

#[test]
fn the_standard_library() {
    insta::assert_snapshot!(steps(&[
        "wait(1.5 min)",
        "wait(numvar(\"n\") sec)",
        "wait(random_number(1, 5) sec)",
        "request_sync(var(\"n\"))",
        "request_sync(random_binary(1000))",
        "round_robin([1, 2])",
        "dump(\"text\")",
        "ignore_failure():\n    request_sync()",
        "parallel():\n    thread():\n        request_sync()",
        "error(\"the end\")\nrequest_sync()",
        "set_signal(\"a\")\nwait_signal(\"a\")",
    ]));
}

#[test]
fn directives_and_pools() {
    insta::assert_snapshot!(files(&[
        "make_install(git = \"u\", branch = \"b\", dir = \"d\")\nPOOL",
        "make_install(rsync = \"u\", exclude = \"e\")\nPOOL",
        "include_resource(names, \"names.tsv\", tsv)\nPOOL",
        "pre_hook():\n    exec(all, \"a\")\npost_hook():\n    worker_call(f, m)\nPOOL",
        "assert(always, \"request.error\" < 3)\nassert(1 min, not \"a\" > 1 or 3 < \"b\")\nPOOL",
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
        "pool(size = 3, worker_type = tcp_worker):\n    parallel():\n        thread():\n\
         \x20           \
         connect_sync(\"h\", 1)\n        thread():\n            wait(1 sec)\n",
    ]));
}

#[test]
fn erlang_terms() {
    let text = r#"[
        {defaults, [{"n", 2}]},
        {include_resource, names, "names.json", json},
        {pre_hook, [{exec, all, "a"}]},
        {assert, always, {lt, "request.error", 3}},
        {assert, {30, sec}, {'and', {gt, "request.ok.rps", 10}, {lte, "latency.95", 20}}},
        {pool, [{size, {numvar, "n"}}, {worker_type, tcp_worker, erlang},
                {worker_start, {poisson, {1, rps}}}], [
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
    insta::assert_snapshot!(crate::show(&import));
}
