//! k6's scripts.

mod fidelity;
mod steps;
mod tls;

use throng_import::{Fidelity, Import, ImportOptions, import};

use crate::{assert_same, check_lines, import_file, import_text, show, show_mistakes};

/// Returns a script with these options and this body.
fn script(options: &str, body: &str) -> String {
    format!(
        "import http from 'k6/http';\nimport ws from 'k6/ws';\n\
         export const options = {{ {options} }};\nexport default function () {{\n{body}\n}}\n"
    )
}

const USERS: &str = "vus: 5, duration: '10s'";
const GET: &str = "http.get('http://127.0.0.1:80/');";
const HTTPS: &str = "http.get('https://127.0.0.1/');";

fn imported(text: &str) -> Import {
    import_text(text, "k6/load.js").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"))
}

/// Checks that the scenario of a script has these lines. Quotes do not count.
fn check(text: &str, expected: &[&str]) {
    check_lines(&imported(text), text, expected);
}

fn check_options(options: &str, expected: &[&str]) {
    check(&script(options, GET), expected);
}

/// Checks the step of a statement, of a user that arrives and does it once.
fn check_step(statement: &str, expected: &[&str]) {
    let rate = "scenarios: { a: { executor: 'constant-arrival-rate', rate: 1, duration: '1s' } }";
    check(&script(rate, statement), expected);
}

fn check_session(body: &str, expected: &[&str]) {
    check_step(
        &format!("ws.connect('ws://127.0.0.1:9000/', null, function (socket) {{ {body} }});"),
        expected,
    );
}

#[test]
fn a_shop() {
    insta::assert_snapshot!(show(&import_file("k6/shop.js")), @r#"
# Imported from shop.js (k6).
# A shop: people log in, look around, and think.
target: http://127.0.0.1:8080
load:
  - ramp: {to: 1, over: 1ms}
  - ramp: {to: 20, over: 30s}
  - hold: {for: 1m30s}
  - ramp: {to: 0, over: 20s}
user:
  - repeat:
      for: 2m20s
      do:
        # a login gives a token
        - post:
            path: /login
            name: login
            headers: {content-type: application/json}
            json: {user: "user ${user.id + 1}", "n": 1}
            expect: {status: 200, contains: token}
            capture: {token: /session/token}
        - transaction:
            name: browse
            do:
              - get:
                  path: /items?page=${random(1,9)}
                  headers: {authorization: "Bearer ${token}"}
                  timeout: 10s
              - wait: 500ms
        - delete: /basket
        - wait: uniform(1s, 3s)
on_error: continue
thresholds:
  - http.p95 < 500ms
  - http.mean < 200ms
  - errors < 1%

24 constructs of k6: 14 translated, 4 not needed, 6 approximated
not needed
  line 2, import k6/http
    its functions are known
  line 3, import k6
    its functions are known
  line 4, import https://jslib.k6.io/k6-utils/1.4.0/index.js
    its functions are known
  line 38, console.log
    see `--log` of `throng run`
approximated
  line 1, requests
    k6 follows redirects, and takes any status; in the scenario a status other than 2xx is an
    error, unless `expect` names it, and the user goes on
  line 1, timeouts
    a request without `timeout` may take 60s in k6, and 5s in the scenario
  line 1, cookies
    k6 forgets cookies after each iteration; a user of the scenario keeps them
  line 8, gracefulStop
    k6 waits 30s for iterations that are under way at the end; a scenario waits for none of a
    closed model and 10s for those of an open one, and counts the others as cut off
  line 16, threshold http_req_failed
    the scenario counts errors among all connects, messages and requests
  line 37, sleep
    think times are evenly distributed, and not whole seconds
"#);
}

#[test]
fn a_chat() {
    insta::assert_snapshot!(show(&import_file("k6/chat.js")), @r#"
# Imported from chat.js (k6).
target: ws://127.0.0.1:7900/ws
load:
  - ramp: {to: 100, over: 1ms}
  - hold: {for: 1m}
user:
  - connect: {headers: {origin: http://localhost}}
  - send: {json: {type: hello, name: "user ${user.id + 1}"}, reply: false}
  - wait: 2s
  - every:
      period: 2s
      for: 28s
      do: [send: {text: ping, reply: false}]
  - wait: 2s
  - close

13 constructs of k6: 7 translated, 5 not needed, 1 approximated
not needed
  line 1, import k6/ws
    its functions are known
  line 2, import k6
    its functions are known
  line 17, on message
    what a user receives is counted
  line 18, on close
    what a user receives is counted
  line 23, check status is 101
    `connect` checks it
approximated
  line 4, gracefulStop
    k6 waits 30s for iterations that are under way at the end; a scenario waits for none of a
    closed model and 10s for those of an open one, and counts the others as cut off
"#);
}

#[test]
fn a_web_socket_with_handlers() {
    insta::assert_snapshot!(show(&import_file("k6/socket.js")), @r#"
# Imported from socket.js (k6).
target: ws://127.0.0.1:9000/a
load:
  - arrivals: {rate: 10/m, for: 1m, spacing: even}
  - arrivals: {rate: {from: 10/m, to: 600/m}, for: 2m, spacing: even}
user:
  - connect
  - send: hello
  - expect: {regex: ".*"}
  - close
on_error: stop

10 constructs of k6: 6 translated, 1 not needed, 2 approximated, 1 suspicious
not needed
  line 1, import k6/websockets
    its functions are known
approximated
  line 5, gracefulStop
    k6 waits 30s for iterations that are under way at the end; a scenario waits for none of a
    closed model and 10s for those of an open one, and counts the others as cut off
  line 9, preAllocatedVUs
    k6 drops an iteration for which it has no user; the scenario begins each
suspicious
  line 23, on message
    the first message ends the session, whatever it says; expect what only the answer has
"#);
}

#[test]
fn a_chat_does_the_same_as_its_scenario_by_hand() {
    let written = "\
target: ws://127.0.0.1:7900/ws
load:
  - ramp: {to: 100, over: 1ms}
  - hold: {for: 60s}
user:
  - connect:
      headers: {origin: 'http://localhost'}
  - send: {json: {type: hello, name: 'user ${user.id + 1}'}, reply: false}
  - wait: 2s
  - every: {period: 2000ms, for: 28s, do: [send: {text: ping, reply: false}]}
  - wait: 2s
  - close
";
    assert_same(&import_file("k6/chat.js"), written);
}

#[test]
fn each_executor_has_its_load() {
    check_options(USERS, &["- ramp: {to: 5, over: 1ms}", "- hold: {for: 10s}"]);
    check_each! { check_options:
        "vus: 2, stages: [{duration: '1m', target: 2}, {duration: '5s', target: 9}]" =>
            "- ramp: {to: 2, over: 1ms}", "- hold: {for: 1m}", "- ramp: {to: 9, over: 5s}";
        "stages: [{duration: '1m', target: 3}, {duration: '0s', target: 9}]" =>
            "- ramp: {to: 1, over: 1ms}", "- ramp: {to: 3, over: 1m}", "- ramp: {to: 9, over: 1ms}";
        "vus: 10, iterations: 100" =>
            "- arrivals: {rate: 10k/s, for: 1ms, most: 10, spacing: even}",
            "- repeat: {times: 10, do: [get: /]}";
    }
    let scenario = |options: &str, expected: &[&str]| {
        check_options(&format!("scenarios: {{ load: {{ {options} }} }}"), expected);
    };
    scenario("executor: 'constant-vus', vus: 7, duration: '1h'", &["- ramp: {to: 7, over: 1ms}"]);
    scenario(
        "executor: 'ramping-vus', stages: [{duration: '1s', target: 4}]",
        &["- ramp: {to: 1, over: 1ms}", "- ramp: {to: 4, over: 1s}"],
    );
    let from_none = "executor: 'ramping-vus', startVUs: 0, stages: [{duration: '1s', target: 4}]";
    scenario(from_none, &["- ramp: {to: 4, over: 1s}"]);
    let text = script(&format!("scenarios: {{ load: {{ {from_none} }} }}"), GET);
    assert!(!imported(&text).scenario.contains("over: 1ms"));
    scenario(
        "executor: 'constant-arrival-rate', rate: 30, timeUnit: '1m', duration: '1h', maxVUs: 9",
        &["- arrivals: {rate: 30/m, for: 1h, spacing: even}", "on_error: continue"],
    );
    scenario(
        "executor: 'ramping-arrival-rate', stages: [{duration: '1m', target: 4}, \
         {duration: '1m', target: 4}, {duration: '1m', target: 0}, {duration: '5s', target: 0}]",
        &[
            "- arrivals: {rate: {from: 0/s, to: 4/s}, for: 1m, spacing: even}",
            "- arrivals: {rate: 4/s, for: 1m, spacing: even}",
            "- arrivals: {rate: {from: 4/s, to: 0/s}, for: 1m, spacing: even}",
            "- hold: {for: 5s}",
        ],
    );
    scenario(
        "executor: 'per-vu-iterations', vus: 3, iterations: 20, maxDuration: '1m'",
        &[
            "- arrivals: {rate: 3k/s, for: 1ms, most: 3, spacing: even}",
            "- hold: {for: 1m, until: done}",
        ],
    );
    scenario(
        "executor: 'shared-iterations', vus: 3, iterations: 20, startTime: '0s'",
        &[
            "- repeat: {times: 6, do: [get: /]}",
            "- repeat: {times: 7, do: [get: /]}",
            "- hold: {for: 10m, until: done}",
        ],
    );
    check_options("vus: 3, duration: 30000", &["- hold: {for: 30s}"]);
}

/// The run ends with its users.
#[test]
fn a_set_number_of_iterations_is_made_exactly() {
    for options in ["", "vus: 1, iterations: 1", "vus: 5, iterations: 1"] {
        let import = imported(&script(options, GET));
        for line in ["most: 1,", "- hold: {for: 10m, until: done}"] {
            assert!(import.scenario.contains(line), "{line}\n{}", import.scenario);
        }
        let ends = import.fidelity.of(Fidelity::Approximated);
        assert!(!ends.map(|entry| &*entry.construct).any(|it| it == "end"));
    }
    let eleven = imported(&script("vus: 10, iterations: 11", GET)).scenario;
    for line in ["most: 10,", "weight: 9", "weight: 1", "times: 2"] {
        assert!(eleven.contains(line), "{line}\n{eleven}");
    }
}

#[test]
fn options_of_all_requests_have_their_places() {
    check_options(
        &format!("{USERS}, rps: 50, userAgent: 'shop'"),
        &["limits: {all: {request: 50/s}}", "- get: {path: /, headers: {user-agent: shop}}"],
    );
    let own = "http.get('http://127.0.0.1/', {headers: {'User-Agent': 'own'}});";
    check(
        &script(&format!("{USERS}, userAgent: 'shop'"), own),
        &["- get: {path: /, headers: {user-agent: own}}"],
    );
}

#[test]
fn what_is_done_once_is_setup_and_teardown() {
    let text =
        script(USERS, "").replace("default function () {", "default function (data) {").replace(
            "\n\n}",
            "\nhttp.get(`http://127.0.0.1/${data.id}`, \
             {headers: {authorization: 'Bearer ' + data.token, x: data.fixed}});\n}",
        ) + "export function setup() {\n\
           const res = http.post('http://127.0.0.1/login', {a: 'b'}, {tags: {name: 'login'}});\n\
           const id = res.json('id');\n\
           return { token: res.json('token'), id, fixed: 'f' };\n}\n\
           export function teardown(all) { http.del(`http://127.0.0.1/${all.id}`); }\n";
    let text = text.replace(", id, fixed", ", id: id, fixed");
    let import = imported(&text);
    assert!(!import.fidelity.is_partial(), "{}", import.fidelity);
    insta::assert_snapshot!(import.scenario, @r#"
# Imported from load.js (k6).
target: http://127.0.0.1
setup:
  - post: {path: /login, form: {a: b}, capture: {id: /id, returned_token: /token}}
load:
  - ramp: {to: 5, over: 1ms}
  - hold: {for: 10s}
user:
  - repeat:
      for: 10s
      do:
        - get:
            path: /${raw(setup.id)}
            headers: {authorization: "Bearer ${setup.returned_token}", x: f}
on_error: continue
teardown:
  - delete: /${raw(setup.id)}
"#);
}

#[test]
fn each_threshold_has_its_name() {
    let check = |goal: &str, expected: &str| {
        check_options(&format!("{USERS}, thresholds: {{ {goal} }}"), &[&format!("- {expected}")]);
    };
    check("http_req_duration: ['p(99.9)<100']", "http.p99.9 < 100ms");
    check("http_req_duration: ['med<=100']", "http.p50 <= 100ms");
    check("http_req_duration: 'max<100'", "http.max < 100ms");
    check("http_req_duration: [{threshold: 'avg<100', abortOnFail: true}]", "http.mean < 100ms");
    check("http_req_failed: ['rate<0.01']", "errors < 1%");
    check("checks: ['rate>=0.95']", "errors <= 5%");
    check("checks: ['rate>0.95']", "errors < 5%");
    check("checks: ['rate<1']", "errors > 0%");
    check("checks: ['rate<=0.9']", "errors >= 10%");
    check("checks: ['rate==1.0']", "errors == 0%");
    check("checks: ['rate===1']", "errors == 0%");
    check("http_reqs: ['count>10']", "http.started > 10");
    check("http_reqs: ['rate>10']", "http.rate_mean > 10/s");
    check("iterations: ['count>10']", "users.iterations > 10");
}

#[test]
fn the_server_of_a_variable_is_another_target() {
    let options = ImportOptions { target: Some("http://127.0.0.9:1".parse().unwrap()) };
    let text = script(USERS, "http.get(`http://${__ENV.HOST}/a`);");
    let import = import(&text, "load.js", &options).unwrap();
    assert!(import.scenario.contains("target: http://127.0.0.9:1\n"), "{}", import.scenario);
    assert!(import.scenario.contains("- get: /a") || import.scenario.contains("get: /a"));
}

#[test]
fn bombs_are_refused() {
    let doubled: String =
        (1..60).map(|n| format!("const a{n} = a{} + a{};\n", n - 1, n - 1)).collect();
    let text = script(USERS, &format!("const a0 = 'x';\n{doubled}http.get('http://a/' + a59);"));
    assert!(import_text(&text, "load.js").is_err());
    for bomb in ["(", "[", "{a:", "f(", "a=>", "a.b", "`${", "1+", "-"] {
        let text = script(USERS, &bomb.repeat(50_000));
        assert!(import_text(&text, "load.js").is_err(), "{bomb}");
    }
}

#[test]
fn mistakes() {
    let body = |body: &str| script(USERS, body);
    let options = |options: &str| script(options, GET);
    let session = |text: &str| {
        body(&format!("ws.connect('ws://127.0.0.1:9000/', function (s) {{ {text} }});"))
    };
    let files = [
        body("for (let i = 0; i < 3; i++) { http.get('http://a/'); }"),
        body("if (__VU == 1) { http.get('http://a/'); }"),
        body("const { a } = x;"),
        body("let i;"),
        body("i++;"),
        body("i = 3;"),
        body("http.get(url());"),
        body("http.get(a ? b : c);"),
        body("http.get('/relative');"),
        body("http.get();"),
        body("http.get('http://a/'); http.get('http://b/');"),
        body("http.batch([['GET', 'http://a/']]);"),
        body("http.get('http://a/', {timeout: 'soon'});"),
        body("http.get('http://a/', {headers: {'a b': 'c'}});"),
        body("http.post('http://a/', open('f'));"),
        body("sleep(x);"),
        body("sleep(-1);"),
        body("sleep('1s');"),
        body("check(res);"),
        body("doIt();"),
        body("await x;"),
        body("http.get('http://a/"),
        body("http.get(`http://a/"),
        body("http.get('http://a/'"),
        body("/* no end"),
        body("#"),
        body("1x;"),
        body("return 5;"),
        body("http.get(`http://${__ENV.HOST}/`);"),
        body("http.get('http://a/' + unknown);"),
        body(""),
        session("s.on('opened', () => s.send('a'));"),
        session("s.on('open', () => { if (x) { s.send('a'); } });"),
        session("s.setTimeout(() => s.close(), 0);"),
        session("s.setTimeout(f, 10);"),
        session("while (true) {}"),
        session("s.setInterval(() => s.send('a'), 9); s.setInterval(() => s.send('b'), 9);"),
        body("ws.connect('ws://a/');"),
        options("vus: -5, duration: '1s'"),
        options("vus: 5, duration: -10"),
        options("vus: 5, duration: '0s'"),
        options("vsu: 5, duration: '1s'"),
        options("stages: []"),
        options("stages: [{target: 5}]"),
        options("vus: 0, stages: [{duration: '1s', target: 0}]"),
        options("scenarios: {}"),
        options("scenarios: {a: {executor: 'externally-controlled'}}"),
        options("scenarios: {a: {executor: 'constant-arrival-rate', duration: '1s'}}"),
        options("scenarios: {a: {executor: 'constant-vus', duration: '1s', exec: 'other'}}"),
        options("vus: 1, duration: '1s', thresholds: {checks: ['often']}"),
        options("...other"),
        "import http from 'k6/http';\nimport x from './x.js';\nexport default () => 1;\n"
            .to_owned(),
        "import http from 'k6/http';\n".to_owned(),
        "import http from 'k6/http';\nexport default class {}\n".to_owned(),
    ];
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    insta::assert_snapshot!(show_mistakes("load.js", &files));
}
