//! Artillery's scenarios.

mod fidelity;
mod steps;
mod tls;

use throng_import::{Import, ImportOptions, import};

use crate::{assert_same, check_lines, import_file, import_text, show, show_mistakes};

/// Returns a file whose only scenario has these steps. `config` is added to its `config`.
fn file(config: &str, flow: &str) -> String {
    let phases = if config.contains("phases") { "" } else { PHASES };
    let target =
        if config.starts_with("  target:") { "" } else { "  target: http://127.0.0.1:8080\n" };
    format!("config:\n{target}{phases}{config}scenarios:\n  - flow:\n{flow}")
}

fn web_socket(flow: &str) -> String {
    file("  target: ws://127.0.0.1:9000\n", flow).replace("- flow", "- engine: ws\n    flow")
}

const PHASES: &str = "  phases: [{duration: 10, arrivalRate: 2}]\n";

fn imported(text: &str) -> Import {
    import_text(text, "artillery/load.yml").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"))
}

/// Checks that the scenario of a file has these lines. Quotes do not count, because most of the
/// steps are in them already.
fn check(text: &str, expected: &[&str]) {
    check_lines(&imported(text), text, expected);
}

fn check_phases(phases: &str, expected: &[&str]) {
    check(&file(&format!("  phases: {phases}\n"), GET), expected);
}

fn check_step(step: &str, expected: &[&str]) {
    check(&file("", &format!("      - {step}\n")), expected);
}

fn check_config(config: &str, expected: &[&str]) {
    check(&file(config, GET), expected);
}

const GET: &str = "      - get: {url: /}\n";

#[test]
fn a_shop() {
    insta::assert_snapshot!(show(&import_file("artillery/shop.yml")), @r#"
# Imported from shop.yml (artillery).
# The shop on a Friday evening.
target: http://127.0.0.1:8080
load:
  # caches are cold
  # warm up
  - arrivals: {rate: 5/s, for: 1m, spacing: even}
  - arrivals: {rate: {from: 5/s, to: 50/s}, for: 2m, spacing: even}
  - hold: {for: 10s}
  - arrivals: {rate: 50/s, for: 10m, spacing: even}
  # Artillery runs until the last user has finished.
  - hold: {for: 1h, until: done}
users:
  browse_and_buy:
    weight: 9
    user:
      - set: {colour: "${choice('red', 'green', 'dark blue')}", user_uuid: "${uuid()}"}
      # a login gives a token
      - post:
          path: /api/login
          name: log_in
          headers: {user-agent: Artillery}
          json: {user: "${random(1,1000)}", password: secret, remember: true}
          expect:
            status: 200
            json: {session: {token: {$exists: true}}}
          capture: {token: /session/token, id: {header: x-id}}
          timeout: 8s
      - wait: 2s ±20%
      - foreach:
          name: loop_count
          in: [0, 1, 2]
          do:
            - get:
                path: /api/items?colour=${colour}&page=${loop_count}&size=42
                headers: {authorization: "Bearer ${token}", user-agent: Artillery}
                timeout: 8s
            - wait: 500ms ±20%
      - repeat:
          times: 1000
          do:
            - put:
                path: /api/basket
                headers: {user-agent: Artillery}
                form: {item: "${user_uuid}", id: "${id}"}
                timeout: 8s
      - if:
          condition: ${id} > 10
          do:
            - delete: {path: /api/session, headers: {user-agent: Artillery}, timeout: 8s}
    on_error: stop
  search:
    weight: 1
    user:
      - get:
          path: /api/search?q=$${x}
          headers: {user-agent: Artillery, authorization: "Basic ${base64('ann:secret')}"}
          capture: {found: {regex: 'id=(\d+)'}}
          timeout: 8s
      - foreach:
          name: element
          in: [a, b]
          do:
            - get:
                path: /api/items/${raw(found)}/${element}
                headers: {user-agent: Artillery}
                timeout: 8s
    on_error: stop
thresholds:
  - http.p95 < 250ms
  - errors <= 1%

41 constructs of artillery: 33 translated, 2 not needed, 6 approximated
not needed
  line 30, processor
    JavaScript is not run; each step that calls it is named below
  line 62, log
    see `--log` of `throng run`
approximated
  line 1, requests
    Artillery goes on after any status and follows redirects; in the scenario a status other
    than 2xx is an error and ends the user, unless `expect` names it; Artillery asks for
    compressed answers, and the scenario does not
  line 1, variables in forms and queries
    a blank in the value of a variable is `+` in the forms and the queries of Artillery, and
    `%20` in those of the scenario
  line 6, phases
    Artillery gives each of its workers a share of the rate, at equal distances; the scenario's
    users all arrive at equal distances
  line 9, phase
    Artillery changes the rate in steps, the scenario linearly
  line 29, ensure maxErrorRate
    Artillery counts users that failed; the scenario counts errors among all connects, messages
    and requests
  line 68, values in a URL
    Artillery percent-encodes blanks and letters beyond ASCII in the values of variables; in the
    scenario a blank there is the error `bad_value`
"#);
}

#[test]
fn a_chat() {
    insta::assert_snapshot!(show(&import_file("artillery/chat.yml")), @r#"
# Imported from chat.yml (artillery).
# A chat room.
target: ws://127.0.0.1:7900/ws
load:
  - arrivals: {rate: 1k/m, for: 1m, most: 1k, spacing: even}
  # Artillery runs until the last user has finished.
  - hold: {for: 1h, until: done}
users:
  chatter:
    weight: 1
    user:
      - set: {user_uuid: "${uuid()}"}
      - connect: {path: /ws?room=1, headers: {cookie: a=1}, subprotocols: [chat], deflate: true}
      - send: {text: hello, reply: false}
      # say something, and wait for the answer
      - send: '{"type": "ping", "id": "${user_uuid}"}'
      - expect: {json: {$exists: true}, capture: {id: /id}, timeout: 10s}
      - repeat:
          times: 10
          do:
            - send: {json: {type: say, to: "${id}", "n": 1}, reply: false}
            - wait: 1s
    on_error: stop
  scenario:
    weight: 3
    user:
      - connect: {subprotocols: [chat], deflate: true}
      - wait: 1m
    on_error: stop

18 constructs of artillery: 14 translated, 3 approximated, 1 suspicious
approximated
  line 1, connect timeout
    a connect may take as long as it needs in Artillery, and 5s in the scenario
  line 5, phases
    Artillery gives each of its workers a share of the rate, at equal distances; the scenario's
    users all arrive at equal distances
  line 22, {{ id }}
    a value that a step has stored is a text in JSON, where Artillery sends a number as one
suspicious
  line 20, answer
    Artillery takes the next message for the answer, also another user's; so does the scenario:
    expect what only the answer has, with `skip_others: true`
"#);
}

#[test]
fn a_file_of_json() {
    insta::assert_snapshot!(show(&import_file("artillery/minimal.json")), @r#"
# Imported from minimal.json (artillery).
target: http://127.0.0.1:8080
load:
  - arrivals: {rate: 2/s, for: 10s, spacing: even}
  # Artillery runs until the last user has finished.
  - hold: {for: 1h, until: done}
user:
  - get: /
  - get: {path: /items, expect: {json: {ok: true}}}
on_error: stop

9 constructs of artillery: 6 translated, 3 approximated
approximated
  line 1, phases
    Artillery gives each of its workers a share of the rate, at equal distances; the scenario's
    users all arrive at equal distances
  line 1, requests
    Artillery goes on after any status and follows redirects; in the scenario a status other
    than 2xx is an error and ends the user, unless `expect` names it; Artillery asks for
    compressed answers, and the scenario does not
  line 1, http timeout
    a request may take 10s in Artillery, and 5s in the scenario
"#);
}

#[test]
fn a_chat_does_the_same_as_its_scenario_by_hand() {
    let written = "\
target: ws://127.0.0.1:7900/ws
load:
  - arrivals: {rate: 1000/m, for: 60s, most: 1000, spacing: even}
  - hold: {for: 1h, until: done}
users:
  chatter:
    weight: 1
    on_error: stop
    user:
      - set: {user_uuid: '${uuid()}'}
      - connect: {path: '/ws?room=1', headers: {cookie: a=1}, subprotocols: [chat], deflate: true}
      - send: {text: hello, reply: false}
      - send: {text: '{\"type\": \"ping\", \"id\": \"${user_uuid}\"}'}
      - expect: {json: {$exists: true}, capture: {id: /id}, timeout: 10s}
      - repeat:
          times: 10
          do:
            - send: {json: {type: say, to: '${id}', n: 1}, reply: false}
            - wait: 1s
  scenario:
    weight: 3
    on_error: stop
    user: [connect: {subprotocols: [chat], deflate: true}, wait: 60s]
";
    assert_same(&import_file("artillery/chat.yml"), written);
}

#[test]
fn each_phase_has_its_place() {
    check_each! { check_phases:
        "[{duration: 10, arrivalRate: 2}]" => "- arrivals: {rate: 2/s, for: 10s, spacing: even}";
        "[{duration: 1h, arrivalRate: 0.5, name: long}]" =>
            "# long", "- arrivals: {rate: 30/m, for: 1h, spacing: even}";
        "[{duration: 1m, arrivalRate: 1, rampTo: 10}]" =>
            "- arrivals: {rate: {from: 1/s, to: 10/s}, for: 1m, spacing: even}";
        "[{duration: 1m, rampTo: 10}]" =>
            "- arrivals: {rate: {from: 0/s, to: 10/s}, for: 1m, spacing: even}";
        "[{duration: 30s, arrivalCount: 20}]" =>
            "- arrivals: {rate: 40/m, for: 30s, most: 20, spacing: even}";
        "[{duration: 7, arrivalCount: 3}]" =>
            "- arrivals: {rate: 0.428572/s, for: 7s, most: 3, spacing: even}";
        "[{pause: 5}, {duration: 1, arrivalRate: 1}, {pause: 2 min}, {duration: 1, arrivalRate: \
         1}]" =>
            "- hold: {for: 2m}", "- hold: {for: 1h, until: done}";
    }
}

#[test]
fn each_key_of_the_configuration_has_its_place() {
    check_each! { check_config:
        "  defaults: {headers: {X-A: b}}\n" => "- get: {path: /, headers: {x-a: b}}";
        "  http: {timeout: 3}\n" => "- get: {path: /, timeout: 3s}";
        "  ensure: {p95: 200, maxErrorRate: 2}\n" => "- http.p95 < 200ms", "- errors <= 2%";
        "  ensure: {conditions: [{expression: http.response_time.p99 < 80 and vusers.failed == \
         0}]}\n" =>
            "- http.p99 < 80ms", "- users.failed == 0";
    }
    let drawn = "      - get: {url: '/{{ a }}/{{ b }}'}\n";
    check(
        &file("  variables: {a: [x, \"it's\"], b: 1}\n", drawn),
        &["- set: {a: \"${choice('x', \\\"it's\\\")}\"}", "- get: \"/${raw(a)}/1\""],
    );
    let think = "      - think: 10\n";
    check(&file("  defaults: {think: {jitter: 15%}}\n", think), &["- wait: 10s ±15%"]);
    check(&file("  defaults: {think: {jitter: 2000}}\n", think), &["- wait: uniform(8s, 12s)"]);
    let turn = "      - {loop: [think: 10], count: 2}\n";
    let expected = "- repeat: {times: 2, do: [wait: uniform(8s, 12s)]}";
    check(&file("  defaults: {think: {jitter: 2000ms}}\n", turn), &[expected]);
    check(&file("  target: http://[::1]:81\n", GET), &["target: http://[::1]:81"]);
}

#[test]
fn rows_of_a_file_are_those_of_data() {
    let row = "      - get: {url: '/{{ name }}'}\n";
    let payload = "  payload: {path: users.csv, fields: [name, token], skipHeader: true}\n";
    check(
        &file(payload, row),
        &["data: {file: users.csv, order: random}", "- get: \"/${raw(row.name)}\""],
    );
    assert_eq!(imported(&file(payload, row)).data_files, ["users.csv"]);
    let payload = payload.replace("skipHeader", "order: sequence, skipHeader");
    check(&file(&payload, row), &["data: users.csv"]);
    let payload = "  payload: {path: users.csv, fields: [user-id, user_id], delimiter: ';', \
                   order: sequence}\n";
    check(
        &file(payload, "      - get: {url: '/{{ user-id }}/{{ user_id }}'}\n"),
        &[
            "data: {file: users.csv, columns: [user_id, user_id_2], delimiter: ;}",
            "- get: /${raw(row.user_id)}/${raw(row.user_id_2)}",
        ],
    );
    let two = "  payload: [{path: users.csv, fields: [name], skipHeader: true}, \
               {path: ./users.csv, fields: [token], skipHeader: true, order: sequence}]\n";
    check(
        &file(two, row),
        &[
            "data: {users: {file: users.csv, order: random}, users_2: ./users.csv}",
            "- get: \"/${raw(users.name)}\"",
        ],
    );
}

#[test]
fn what_is_done_once_is_setup_and_teardown() {
    let text = file("", "      - get: {url: '/{{ id }}', headers: {x: '{{ user-id }}'}}\n")
        + "before:\n  flow:\n    - post: {url: /login, name: login, json: {a: b}, capture: \
           [{json: $.id, as: id}, {json: $.user, as: user-id}]}\n\
           after:\n  flow:\n    - delete: {url: '/{{ id }}'}\n";
    let import = imported(&text);
    assert!(!import.fidelity.is_partial(), "{}", import.fidelity);
    insta::assert_snapshot!(import.scenario, @r#"
# Imported from load.yml (artillery).
target: http://127.0.0.1:8080
setup:
  - post: {path: /login, json: {a: b}, capture: {id: /id, user_id: /user}}
load:
  - arrivals: {rate: 2/s, for: 10s, spacing: even}
  # Artillery runs until the last user has finished.
  - hold: {for: 1h, until: done}
user:
  - get: {path: "/${raw(setup.id)}", headers: {x: "${setup.user_id}"}}
on_error: stop
teardown:
  - delete: /${raw(setup.id)}
"#);
    let of_socket = web_socket("      - send: '{{ id }}'\n")
        + "before: {flow: [get: {url: /id, capture: {json: $.id, as: id}}]}\n";
    check(
        &of_socket,
        &[
            "- get: {path: /id, capture: {id: /id}}",
            "- send: {text: \"${setup.id}\", reply: false}",
        ],
    );
}

#[test]
fn another_target_takes_the_place_of_the_one_in_the_file() {
    let options = ImportOptions { target: Some("http://127.0.0.9:1".parse().unwrap()) };
    let text = file("  target: https://shop.example\n", GET);
    let import = import(&text, "load.yml", &options).unwrap();
    assert!(import.scenario.contains("target: http://127.0.0.9:1\n"), "{}", import.scenario);
    assert!(!import.fidelity.is_partial(), "{}", import.fidelity);
}

#[test]
fn deep_lists_and_aliases_of_aliases_are_refused() {
    let deep = file("", &format!("      - {}{}\n", "[".repeat(20_000), "]".repeat(20_000)));
    assert!(import_text(&deep, "load.yml").is_err());
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n\
                c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n\
                e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";
    assert!(import_text(&format!("{bomb}{}", file("", GET)), "load.yml").is_err());
}

#[test]
fn mistakes() {
    let step = |step: &str| file("", &format!("      - {step}\n"));
    let config = |config: &str| file(config, GET);
    let phase = |phase: &str| file(&format!("  phases: [{phase}]\n"), GET);
    let scenarios =
        |text: &str| format!("config:\n  target: http://127.0.0.1:1\n{PHASES}scenarios: {text}\n");
    let files = [
        file("", "      - get: {url: /\n"),
        file("", "      - get:\n\t  url: /\n"),
        file("", "      - get: \"/a\n"),
        "config:\n  phases: []\n".to_owned(),
        "scenarios:\n  - flow: [get: /]\n".to_owned(),
        scenarios("[{name: a}]"),
        scenarios("{}"),
        scenarios("[]"),
        scenarios("[1]"),
        config("  target: 127.0.0.1:80\n"),
        config("  target: 'http://:80'\n"),
        config("  target: 'ftp://a:21'\n"),
        config("  traget: x\n"),
        config("  variables: []\n"),
        config("  variables: {a: []}\n"),
        config("  payload: {fields: [a]}\n"),
        config("  payload: {path: users.csv, fields: [a], order: shuffled}\n"),
        config("  http: {timeout: soon}\n"),
        config("  defaults: {think: {jitter: much}}\n"),
        config("  ensure: {p95: fast}\n"),
        phase("{arrivalRate: 1}"),
        phase("{duration: 1}"),
        phase("{duration: 0, arrivalRate: 1}"),
        phase("{duration: -1, arrivalRate: 1}"),
        phase("{duration: 10 parsecs, arrivalRate: 1}"),
        phase("{duration: 1, arrivalRate: many}"),
        phase("{duration: 1, arrivalRate: -1}"),
        phase("{duration: 1, arrivalCount: 1.5}"),
        phase("{duration: 1, arivalRate: 1}"),
        phase("{duration: 1, arrivalRate: 0}"),
        phase("60"),
        config("").replace("- flow", "- weight: heavy\n    flow"),
        config("").replace("- flow", "- wieght: 1\n    flow"),
        config("").replace("- flow", "- engine: playwright\n    flow"),
        step("gte: {url: /}"),
        step("thinking"),
        step("send: hello"),
        step("get: {}"),
        step("get: {url: [a]}"),
        step("get: {url: /, hedaers: {a: b}}"),
        step("get: {url: /, headers: {'a b': c}}"),
        step("get: {url: '/{{ a'}"),
        step("get: {url: '/{{ $randomNumber(9, x) }}'}"),
        step("get: {url: /, capture: {json: $.a}}"),
        step("get: {url: /, capture: {as: a}}"),
        step("get: {url: /, capture: {regexp: '(', as: a}}"),
        step("get: {url: /, expect: {statusCode: 99}}"),
        step("think: long"),
        step("{loop: {think: 1}, count: 2}"),
        web_socket("      - get: {url: /}\n"),
        web_socket("      - connect: {subprotocols: ['a b']}\n"),
        step("[[[[[[[[[[[[]]]]]]]]]]]]"),
    ];
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    insta::assert_snapshot!(show_mistakes("load.yml", &files));
}
