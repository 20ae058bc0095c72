//! Broken files: each mistake has its place and a way out.

use crate::show_mistakes;

/// Returns a pool with these statements.
fn pool(body: &str) -> String {
    let body = body.replace('\n', "\n    ");
    format!("#!benchDL\npool(size = 2, worker_type = tcp_worker):\n    {body}\n")
}

#[test]
fn of_bdl() {
    let connected = |body: &str| pool(&format!("connect_sync(\"h\", 1)\n{body}"));
    let options = |options: &str| {
        format!("#!benchDL\npool({options}):\n    connect_sync(\"h\", 1)\n    request_sync()\n")
    };
    let directive =
        |text: &str| format!("{}{text}\n", options("size = 1, worker_type = tcp_worker"));
    let files = [
        "#!benchDL\n".to_owned(),
        "#!benchDL\npool\n".to_owned(),
        "#!benchDL\npool(size = 1\n".to_owned(),
        "#!benchDL\n  pool(size = 1, worker_type = tcp_worker):\n    request()\n".to_owned(),
        pool("connect(\"h\", 1)\n  request()"),
        pool("connect(\"h, 1)"),
        pool("connect(\"h\", 1) request()"),
        pool("connect(\"h\", ?)"),
        pool("connect(\"h\", 99999999999999999999)"),
        pool("connect(\"h\", 70000)"),
        pool("connect(\"two words\", 80)\nrequest()"),
        pool("connekt(\"h\", 80)"),
        pool("connect(\"h\")"),
        pool("request()"),
        connected("request_sync(\"\")"),
        connected("wait(10)"),
        connected("wait(10 rps)"),
        connected("wait(time = 10 sec)"),
        connected("wait(9999999 h)"),
        connected("request_sync(var(\"unknown\"))"),
        connected("\"text\""),
        connected("loop(rate = 1 rps):\n    request_sync()"),
        connected("loop(time = 1 sec, rat = 1 rps):\n    request_sync()"),
        connected("loop(time = 1 sec, rate = 1 sec):\n    request_sync()"),
        connected("loop(time = 1 sec, rate = 9T rps):\n    request_sync()"),
        connected("loop(time = 1 sec, rate = ramp(1 rps, 2 rps)):\n    request_sync()"),
        connected("loop(time = 1 sec, rate = 1 rps)"),
        options("worker_type = tcp_worker"),
        options("size = 1"),
        options("size = 0, worker_type = tcp_worker"),
        options("size = 1.5, worker_type = tcp_worker"),
        options("size = \"many\", worker_type = tcp_worker"),
        options("siz = 1, size = 1, worker_type = tcp_worker"),
        options("size = 1, worker_type = amqp_worker"),
        options("size = 1, worker_type = tcp_worker, worker_start = linear(0 rps)"),
        options("size = 1, worker_type = tcp_worker, worker_start = slowly(1 rps)"),
        options("size = 1, worker_type = tcp_worker, worker_start = pow(99, 1, 1 sec)"),
        options("size = 10, worker_type = tcp_worker, worker_start = linear(0.0000001 rps)"),
        options("size = 1G, worker_type = tcp_worker, worker_start = linear(1 rps)"),
        directive("asert(always, \"request.ok\" > 3)"),
        directive("wait(1 sec)"),
        directive(&format!("assert(always, {}1{})", "(".repeat(60), ")".repeat(60))),
    ];
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    insta::assert_snapshot!(show_mistakes("broken.bdl", &files));
}

#[test]
fn of_erlang_terms() {
    let files = [
        "[{pool, [{worker_type, tcp_worker}], [{request}]}]",
        "[{pool, [{worker_type, tcp_worker}], [{request}]}].",
        "[{pool, [{size, 1}, {worker_type, tcp_worker}], [{request}]}]. more.",
        "{pool, [{size, 1}, {worker_type, tcp_worker}], [{request}]}.",
        "[{pool, [{size, 1}, {worker_type, tcp_worker}], []}].",
        "[{pool, [{size, 1}, {worker_type, tcp_worker}], [request]}].",
        "[{pool, [{size, 1}, size, {worker_type, tcp_worker}], [{request}]}].",
        "[{pool, [{size, 1}, {worker_type, tcp_worker}], [{loop, [{time, 5}], [{request}]}]}].",
        "[{pool, [{size, 1}, {worker_type, tcp_worker}], [{loop, [{rate, 5}], [{request}]}]}].",
        "[{pool, [{size, 1}, {worker_type, tcp_worker}], [{wait, {1, second}}]}].",
    ];
    insta::assert_snapshot!(show_mistakes("broken.erl", &files));
}
