//! An import of a file with many constructs: `import_loops artillery 1000`.
//!
//! `make count` runs it under callgrind, with one number of constructs and twice as many: what
//! an import costs must grow with its file, and not with the square of it.

use std::fmt::Write;

use throng_import::{ImportOptions, import, import_log};

/// A kind of file.
struct Shape {
    name: &'static str,
    /// Returns a file with this many constructs.
    write: fn(usize) -> String,
    is_log: bool,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let count = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1);
    let Some(shape) = SHAPES.iter().find(|shape| shape.name == name) else {
        let names: Vec<_> = SHAPES.iter().map(|shape| shape.name).collect();
        eprintln!("import_loops {} COUNT", names.join("|"));
        std::process::exit(2);
    };
    let text = (shape.write)(count);
    if arguments.next().is_some() {
        print!("{text}");
        return;
    }
    let written = if shape.is_log {
        import_log(&text, "many.log", None).map(|import| import.run_file.len())
    } else {
        import(&text, "many", &ImportOptions::default()).map(|import| import.scenario.len())
    };
    match written {
        Ok(bytes) => assert!(bytes > 0),
        Err(mistakes) => panic!("{}", mistakes.iter().next().expect("a mistake").title),
    }
}

const SHAPES: &[Shape] = &[
    Shape { name: "artillery", write: artillery, is_log: false },
    Shape { name: "artillery-scenarios", write: artillery_scenarios, is_log: false },
    Shape { name: "artillery-captures", write: artillery_captures, is_log: false },
    Shape { name: "artillery-ws", write: artillery_ws, is_log: false },
    Shape { name: "artillery-json", write: artillery_json, is_log: false },
    Shape { name: "k6", write: k6, is_log: false },
    Shape { name: "k6-captures", write: k6_captures, is_log: false },
    Shape { name: "k6-socket", write: k6_socket, is_log: false },
    Shape { name: "k6-constants", write: k6_constants, is_log: false },
    Shape { name: "tsung", write: tsung, is_log: false },
    Shape { name: "tsung-captures", write: tsung_captures, is_log: false },
    Shape { name: "tsung-sessions", write: tsung_sessions, is_log: false },
    Shape { name: "tsung-line", write: tsung_line, is_log: false },
    Shape { name: "mzbench", write: mzbench, is_log: false },
    Shape { name: "mzbench-erlang", write: mzbench_erlang, is_log: false },
    Shape { name: "tcpkali", write: tcpkali, is_log: false },
    Shape { name: "stressgrid", write: stressgrid, is_log: false },
    Shape { name: "stressgrid-captures", write: stressgrid_captures, is_log: false },
    Shape { name: "stressgrid-socket", write: stressgrid_socket, is_log: false },
    Shape { name: "connscale", write: connscale, is_log: false },
    Shape { name: "k6-points", write: k6_points, is_log: true },
    Shape { name: "tsung-log", write: tsung_log, is_log: true },
    Shape { name: "artillery-report", write: artillery_report, is_log: true },
];

/// Returns `head`, as many lines as there are constructs, and `tail`.
fn many(head: &str, count: usize, tail: &str, line: impl Fn(usize, &mut String)) -> String {
    let mut text = head.to_owned();
    for number in 0..count {
        line(number, &mut text);
    }
    text + tail
}

fn artillery(count: usize) -> String {
    let head = "config:\n  target: http://127.0.0.1:8080\n  phases:\n    - duration: 60\n      \
                arrivalRate: 5\nscenarios:\n  - name: many\n    flow:\n";
    many(head, count, "", |n, out| {
        let _ = writeln!(
            out,
            "      - get:\n          url: /items/{n}?x=1\n          headers: {{accept: text/{n}}}"
        );
    })
}

fn artillery_scenarios(count: usize) -> String {
    let head = "config:\n  target: http://127.0.0.1:8080\n  phases:\n    - duration: 60\n      \
                arrivalRate: 5\nscenarios:\n";
    many(head, count, "", |n, out| {
        let _ = writeln!(out, "  - name: one {n}\n    flow:\n      - get: {{url: /items/{n}}}");
    })
}

fn artillery_captures(count: usize) -> String {
    let head = "config:\n  target: http://127.0.0.1:8080\n  phases:\n    - duration: 60\n      \
                arrivalRate: 5\nscenarios:\n  - flow:\n";
    many(head, count, "", |n, out| {
        let _ = writeln!(
            out,
            "      - get: {{url: /items/{n}, capture: {{json: $.id, as: id{n}}}}}\n      - get: \
             {{url: \"/of/{{{{ id{n} }}}}\"}}"
        );
    })
}

fn artillery_ws(count: usize) -> String {
    let head = "config:\n  target: ws://127.0.0.1:8080\n  phases:\n    - duration: 60\n      \
                arrivalRate: 5\nscenarios:\n  - engine: ws\n    flow:\n";
    many(head, count, "", |n, out| {
        let _ = writeln!(out, "      - send: \"message {n}\"\n      - think: 1");
    })
}

fn artillery_json(count: usize) -> String {
    let head = "{\"config\": {\"target\": \"http://127.0.0.1:8080\", \"phases\": [{\"duration\": \
                60, \"arrivalRate\": 5}]}, \"scenarios\": [{\"flow\": [{\"think\": 1}";
    many(head, count, "]}]}", |n, out| {
        let _ =
            write!(out, ", {{\"post\": {{\"url\": \"/items/{n}\", \"json\": {{\"n\": {n}}}}}}}");
    })
}

fn k6(count: usize) -> String {
    let head = "import http from 'k6/http';\nimport { sleep } from 'k6';\nexport const options = \
                { vus: 10, duration: '30s' };\nexport default function () {\n";
    many(head, count, "}\n", |n, out| {
        let _ = writeln!(out, "  http.get('http://127.0.0.1:8080/items/{n}');\n  sleep(1);");
    })
}

fn k6_captures(count: usize) -> String {
    let head = "import http from 'k6/http';\nexport const options = { vus: 10, duration: '30s' };\n\
                export default function () {\n";
    many(head, count, "}\n", |n, out| {
        let _ = writeln!(
            out,
            "  const r{n} = http.get('http://127.0.0.1:8080/items/{n}');\n  const id{n} = \
             r{n}.json('id');\n  http.get(`http://127.0.0.1:8080/of/${{id{n}}}`);"
        );
    })
}

fn k6_socket(count: usize) -> String {
    let head = "import ws from 'k6/ws';\nexport const options = { vus: 10, duration: '30s' };\n\
                export default function () {\n  ws.connect('ws://127.0.0.1:8080/', {}, function \
                (socket) {\n    socket.on('open', function () {\n";
    many(head, count, "      socket.close();\n    });\n  });\n}\n", |n, out| {
        let _ = writeln!(out, "      socket.send('message {n}');");
    })
}

fn k6_constants(count: usize) -> String {
    let head =
        "import http from 'k6/http';\nexport const options = { vus: 10, duration: '30s' };\n";
    let constants = many(head, count, "export default function () {\n", |n, out| {
        let _ = writeln!(out, "const U{n} = 'http://127.0.0.1:8080/items/{n}';");
    });
    many(&constants, count, "}\n", |n, out| {
        let _ = writeln!(out, "  http.get(U{n});");
    })
}

const TSUNG_HEAD: &str = "<?xml version=\"1.0\"?>\n<tsung><servers><server host=\"127.0.0.1\" \
                          port=\"8080\" type=\"tcp\"/></servers>\n<load><arrivalphase \
                          phase=\"1\" duration=\"1\" unit=\"minute\"><users interarrival=\"1\" \
                          unit=\"second\"/></arrivalphase></load>\n<sessions>\n";

fn tsung(count: usize) -> String {
    let head = format!("{TSUNG_HEAD}<session name=\"s\" probability=\"100\" type=\"ts_http\">\n");
    many(&head, count, "</session></sessions></tsung>\n", |n, out| {
        let _ = writeln!(
            out,
            "<request><http url=\"/items/{n}\" method=\"GET\" version=\"1.1\"/></request>\n\
             <thinktime value=\"1\"/>"
        );
    })
}

fn tsung_captures(count: usize) -> String {
    let head = format!("{TSUNG_HEAD}<session name=\"s\" probability=\"100\" type=\"ts_http\">\n");
    many(&head, count, "</session></sessions></tsung>\n", |n, out| {
        let _ = writeln!(
            out,
            "<request><dyn_variable name=\"v{n}\" jsonpath=\"$.id\"/><http url=\"/items/{n}\" \
             method=\"GET\"/></request>\n<request subst=\"true\"><http url=\"/of/%%_v{n}%%\" \
             method=\"GET\"/></request>"
        );
    })
}

fn tsung_sessions(count: usize) -> String {
    many(TSUNG_HEAD, count, "</sessions></tsung>\n", |n, out| {
        let _ = writeln!(
            out,
            "<session name=\"s{n}\" weight=\"1\" type=\"ts_http\"><request><http \
             url=\"/items/{n}\" method=\"GET\"/></request></session>"
        );
    })
}

fn tsung_line(count: usize) -> String {
    tsung(count).replace('\n', " ")
}

fn mzbench(count: usize) -> String {
    let head = "#!benchDL\npool(size = 25, worker_type = tcp_worker):\n    \
                connect_sync(\"127.0.0.1\", 4444)\n";
    many(head, count, "", |n, out| {
        let _ = writeln!(out, "    request_sync(\"request {n}\")\n    wait(1 sec)");
    })
}

fn mzbench_erlang(count: usize) -> String {
    let head = "[{pool, [{size, 25}, {worker_type, tcp_worker}], [{connect_sync, \"127.0.0.1\", \
                4444}";
    many(head, count, "]}].\n", |n, out| {
        let _ = write!(out, ",\n  {{request_sync, \"request {n}\"}}");
    })
}

fn tcpkali(count: usize) -> String {
    many("tcpkali -c 10 -T 30s -r 1", count, " 127.0.0.1:5555\n", |n, out| {
        let _ = write!(out, " -1 'message {n}\\n'");
    })
}

fn stressgrid(count: usize) -> String {
    many("# sgcli run many script.exs -t 127.0.0.1\n", count, "", |n, out| {
        let _ = writeln!(out, "get(\"/items/{n}\")\ndelay(1000)");
    })
}

fn stressgrid_captures(count: usize) -> String {
    many("# sgcli run many script.exs -t 127.0.0.1\n", count, "", |n, out| {
        let _ = writeln!(
            out,
            "{{200, _, {{:json, r{n}}}}} = get(\"/items/{n}\")\nget(\"/of/#{{r{n}[\"id\"]}}\")"
        );
    })
}

fn stressgrid_socket(count: usize) -> String {
    many("ws_upgrade(\"/socket\")\n", count, "", |n, out| {
        let _ = writeln!(out, "ws_send_text(\"message {n}\")");
    })
}

fn connscale(count: usize) -> String {
    let head = "[{server, [{listen_port, 8989}, {server, {127,0,0,1}}]},\n {client, [{interval, \
                20000}, {timeout, 20000}]}].\n";
    many(head, count, "", |_, out| out.push_str("client:connections_start(10).\n"))
}

fn k6_points(count: usize) -> String {
    let head = "{\"type\":\"Metric\",\"data\":{\"name\":\"http_req_duration\",\"type\":\"trend\",\
                \"contains\":\"time\"},\"metric\":\"http_req_duration\"}\n";
    many(head, count, "", |n, out| {
        let _ = writeln!(
            out,
            "{{\"metric\":\"http_req_duration\",\"type\":\"Point\",\"data\":{{\"time\":\
             \"2026-11-21T06:{:02}:{:02}.{:03}Z\",\"value\":{}.5,\"tags\":{{\"name\":\
             \"/items/{n}\",\"status\":\"200\"}}}}}}",
            n / 60_000 % 60,
            n / 1_000 % 60,
            n % 1_000,
            n % 90
        );
    })
}

fn tsung_log(count: usize) -> String {
    many("", count, "EndMonitor:{1795,471045,970668}\n", |n, out| {
        let _ = writeln!(
            out,
            "# stats: dump at {}\nstats: users 0 3\nstats: request 30 2.4 2.6 24.9 0.5 2.4 {}\n\
             stats: 200 30 {}\nstats: tr_page{} 5 1.0 2.0 3.0 0.5 1.0 {}",
            1_795_471_029 + 10 * n,
            30 * n,
            30 * (n + 1),
            n % 8,
            5 * (n / 8 + 1)
        );
    })
}

fn artillery_report(count: usize) -> String {
    let counters = "{\"counters\": {\"vusers.created\": 5, \"http.requests\": 10, \
                    \"http.responses\": 10, \"http.codes.200\": 10}, \"rates\": {}, \
                    \"firstMetricAt\": 1795470802100, \"lastMetricAt\": 1795470821400, \
                    \"period\": ";
    let head = format!(
        "{{\"aggregate\": {counters}1795470800000, \"summaries\": {{}}, \"histograms\": {{}}}}, \
         \"intermediate\": [{counters}\"1795470800000\"}}"
    );
    many(&head, count, "]}\n", |n, out| {
        let period = 1_795_470_810_000_usize + 10_000 * n;
        let _ = write!(
            out,
            ",\n{counters}\"{period}\", \"summaries\": {{\"http.response_time\": {{\"min\": 1, \
             \"max\": 9, \"count\": 10, \"mean\": 5, \"p50\": 5, \"median\": 5, \"p75\": 6, \
             \"p90\": 7, \"p95\": 8, \"p99\": 9, \"p999\": 9}}}}}}"
        );
    })
}
