//! Stressgrid's scripts, plans and commands.

mod constructs;
mod mistakes;
mod ramps;

use std::fs;
use std::path::Path;

use throng_import::{Import, ImportOptions, import};
use throng_load::program::Program;
use throng_load::scenario::Scenario;

use crate::{import_file, show};

#[test]
fn the_line_of_the_article() {
    insta::assert_snapshot!(show(&import_file("stressgrid/delay.exs")), @r#"
# Imported from delay.exs (Stressgrid).
target: tcp://localhost:5000
load:
  - ramp: {to: 10k, over: 15m}
  - hold: {for: 15m}
  - ramp: {to: 0, over: 15m}
user:
  - connect
  - wait: 1s ±10%
  - close

4 constructs of Stressgrid: 1 translated, 2 approximated, 1 suspicious
approximated
  line 1, sgcli run
    the script has no comment `# sgcli run ...`: the load is that of sgcli without options, 10k
    devices for 45 minutes at localhost:5000
  line 1, ramps
    Stressgrid starts and stops devices in steps of 10 for each generator; the scenario does one
    after another
suspicious
  line 1, protocol http
    the script sends no request, and an HTTP device connects with its first: it would open no
    connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
"#);
}

#[test]
fn a_script_with_its_command_in_a_comment() {
    insta::assert_snapshot!(show(&import_file("stressgrid/article.exs")), @r#"
# Imported from article.exs (Stressgrid).
target: tcp://localhost:5555
load:
  - ramp: {to: 100k, over: 15m}
  - hold: {for: 1m}
  - ramp: {to: 0, over: 15m}
user:
  - connect
  # 100k devices connect, wait for a second, and come back.
  - wait: 1s ±10%
  - close

6 constructs of Stressgrid: 5 translated, 1 approximated
approximated
  line 1, ramps
    Stressgrid starts and stops devices in steps of 10 for each generator; the scenario does one
    after another
"#);
}

#[test]
fn a_command() {
    insta::assert_snapshot!(show(&import_file("stressgrid/run.sh")), @r#"
# Imported from run.sh (Stressgrid).
# Not supported, and left out:
#   line 3, script
# Browsing, for an hour.
target: http://shop.test:8080
load:
  - ramp: {to: 25k, over: 10m}
  - hold: {for: 1h}
  - ramp: {to: 0, over: 1m}
user:
  # The steps of the script.
  - wait: 1s

10 constructs of Stressgrid: 7 translated, 1 not needed, 1 approximated, 1 not supported
not needed
  line 3, --coordinator-host
    throng needs no coordinator; start it on each machine
approximated
  line 3, ramps
    Stressgrid starts and stops devices in steps of 10 for each generator; the scenario does one
    after another
not supported
  line 3, script
    the steps are in browse.exs: put this command into it as a comment, `# sgcli run ...`, and
    import browse.exs
"#);
}

#[test]
fn a_plan() {
    insta::assert_snapshot!(show(&import_file("stressgrid/plan.json")), @r#"
# Imported from plan.json (Stressgrid).
target: ws://chat.test:4000
load:
  - steps: {from: 13, to: 1.3k, by: 13, each: 500ms}
  - hold: {for: 1m}
  - steps: {from: 1287, to: 0, by: 13, each: 100ms}
users:
  block1:
    weight: 10
    user:
      # Talks.
      - connect: {path: /chat?name=ann}
      - repeat:
          times: 3
          do: [send: hello, expect: {regex: ".*"}, wait: 1s ±50%]
      - close
  block2:
    weight: 3
    user:
      - connect: {path: /chat}
      - wait: 1m
      - close

13 constructs of Stressgrid: 11 translated, 1 not needed, 1 approximated
not needed
  line 2, remove_report
    the report of a run is a file
approximated
  line 10, size
    Stressgrid starts the same number of devices in each step: 1300 of 1400; so does the
    scenario
"#);
}

#[test]
fn requests() {
    insta::assert_snapshot!(show(&import_file("stressgrid/http.exs")), @r#"
# Imported from http.exs (Stressgrid).
target: http://localhost:8080
load:
  - ramp: {to: 1k, over: 15m}
  - hold: {for: 15m}
  - ramp: {to: 0, over: 15m}
user:
  # A visitor of the shop.
  - transaction:
      name: visit
      do:
        - post:
            path: /login
            headers: {accept: application/json}
            json: {name: user, "n": 3}
            expect: 200
            capture: {token: /token, id: /id}
        - set: {key: "${random(1000,9999)}"}
        - repeat:
            times: 2
            do:
              - get:
                  path: /items/${key}
                  headers: {authorization: "Bearer ${token}", host: other}
              - wait: 500ms
  # Pays, and leaves.
  - put: {path: /pay, body: shop=s1}
  - delete: /cart/${id}
  - patch: {path: /x, body: "y"}
  - close: reset

17 constructs of Stressgrid: 11 translated, 1 not needed, 4 approximated, 1 not checked
not needed
  line 12, inc_counter
    throng counts what each kind of step does; a step with a `name` has a row of its own
approximated
  line 1, ramps
    Stressgrid starts and stops devices in steps of 10 for each generator; the scenario does one
    after another
  line 4, post
    Stressgrid adds `; charset=utf-8` to the content type of JSON
  line 6, Base.url_encode64
    the scenario's text is as long, of digits and not of letters
  line 8, get
    Stressgrid takes an answer of any status; here others than 2xx are errors, after which a
    user rests for 1s and begins again
not checked
  line 15, pattern
    a check of a value: write it as `expect` of the step that it comes from
"#);
}

#[test]
fn web_sockets() {
    insta::assert_snapshot!(show(&import_file("stressgrid/socket.exs")), @r#"
# Imported from socket.exs (Stressgrid).
# Not supported, and left out:
#   line 17, ws_receive_binary
target: ws://localhost:5000
load:
  - ramp: {to: 10k, over: 15m}
  - hold: {for: 15m}
  - ramp: {to: 0, over: 15m}
user:
  # A chat.
  - get: /health
  - connect: {path: /socket, headers: {origin: http://localhost}}
  - receive: {json: {type: hello, id: {$exists: true}}, timeout: 2s, capture: {id: /id}}
  - send: {json: {type: join, room: red, "n": 7, seen: null}}
  - expect: joined
  - transaction:
      name: talk
      do:
        - repeat:
            times: 5
            do:
              - send: from ${id} in red
              - expect: {json: {room: red}}
              - wait: 1s ±5%
  - transaction:
      name: end
      do: [send: {binary: "01 ff"}, send: {random: 100}]
  - close

19 constructs of Stressgrid: 14 translated, 1 not needed, 3 approximated, 1 not supported
not needed
  line 12, ws_fetch_json
    what no step waits for is set aside
approximated
  line 1, sgcli run
    the script has no comment `# sgcli run ...`: the load is that of sgcli without options, 10k
    devices for 45 minutes at localhost:5000
  line 1, ramps
    Stressgrid starts and stops devices in steps of 10 for each generator; the scenario does one
    after another
  line 2, get
    Stressgrid takes an answer of any status; here others than 2xx are errors, after which a
    user rests for 1s and begins again
not supported
  line 17, ws_receive_binary
    write what must come: `expect: {binary: de ad}`, or how much: `expect: {bytes: 4}`
"#);
}

#[test]
fn plain_tcp() {
    insta::assert_snapshot!(show(&import_file("stressgrid/tcp.exs")), @r#"
# Imported from tcp.exs (Stressgrid).
target: tcp://localhost:5000
load:
  - ramp: {to: 10, over: 15m}
  - hold: {for: 15m}
  - ramp: {to: 0, over: 15m}
user:
  - connect
  - send: "hello $${x}\n"
  - expect: "ok\n"
  - send: {hex: "01 02 61 62"}
  - expect: {bytes: 1, timeout: 1s}
  - send: {random: 64}
  - wait: 10ms
  - close

10 constructs of Stressgrid: 8 translated, 2 approximated
approximated
  line 1, ramps
    Stressgrid starts and stops devices in steps of 10 for each generator; the scenario does one
    after another
  line 5, recv
    recv takes any data, and so does the scenario: it waits for one byte and ignores the rest;
    if you know the answer, write `expect: ok`
"#);
}

#[test]
fn the_target_decides_the_protocol() {
    let notes = |text: &str, target: &str| match import_for(text, target) {
        Ok(import) => {
            let steps = import.scenario.split_once("user:\n").unwrap().1.to_owned();
            format!("{steps}{}", import.fidelity)
        }
        Err(mistakes) => mistakes.to_string(),
    };
    let shown = [
        notes("delay(1000, 0.1)\n", "tcp://127.0.0.1:5555"),
        notes("delay(1000, 0.1)\n", "http://127.0.0.1:5555"),
        notes("delay(1000, 0.1)\nget(\"/\")\n", "tcp://127.0.0.1:5555"),
        notes("ws_upgrade(\"/x\")\ndelay(1000)\n", "http://127.0.0.1:5555"),
    ];
    insta::assert_snapshot!(shown.join("\n\n"), @r#"
  - connect
  - wait: 1s ±10%
  - close
3 constructs of Stressgrid: 1 translated, 2 approximated
approximated
  line 1, sgcli run
    the script has no comment `# sgcli run ...`: the load is that of sgcli without options, 10k
    devices for 45 minutes at localhost:5000
  line 1, ramps
    Stressgrid starts and stops devices in steps of 10 for each generator; the scenario does one
    after another

  - wait: 1s ±10%
  - close: reset
4 constructs of Stressgrid: 1 translated, 2 approximated, 1 suspicious
approximated
  line 1, sgcli run
    the script has no comment `# sgcli run ...`: the load is that of sgcli without options, 10k
    devices for 45 minutes at localhost:5000
  line 1, ramps
    Stressgrid starts and stops devices in steps of 10 for each generator; the scenario does one
    after another
suspicious
  line 1, protocol http
    the script sends no request, and an HTTP device connects with its first: it opens no
    connection; for plain TCP, take a target tcp://

  - connect
  - wait: 1s ±10%
  - close
4 constructs of Stressgrid: 1 translated, 2 approximated, 1 not supported
approximated
  line 1, sgcli run
    the script has no comment `# sgcli run ...`: the load is that of sgcli without options, 10k
    devices for 45 minutes at localhost:5000
  line 1, ramps
    Stressgrid starts and stops devices in steps of 10 for each generator; the scenario does one
    after another
not supported
  line 2, get
    a TCP device sends no requests: choose the protocol `http`

error: the target is not one of WebSockets
 --> script.exs:1:1
  |
1 | ws_upgrade("/x")
  | ^ expected a target ws://: the script opens a WebSocket
"#);
}

fn import_for(text: &str, target: &str) -> Result<Import, throng_load::scenario::Diagnostics> {
    let options = ImportOptions { target: Some(target.parse().unwrap()) };
    import(text, "script.exs", &options)
}

/// The lab was written by hand from the article.
#[test]
fn the_article_is_the_lab() {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/stressgrid-100k.yaml");
    let lab = parse(&fs::read_to_string(lab).unwrap());
    let import = parse(&import_file("stressgrid/article.exs").scenario);
    assert_eq!(lab.load, import.load);
    let [lab_ops, import_ops] =
        [&lab, &import].map(|scenario| format!("{:?}", Program::compile(scenario).ops()));
    assert_eq!(lab_ops, import_ops);
    assert_eq!(lab.classes[0].on_error, import.classes[0].on_error);
}

fn parse(scenario: &str) -> Scenario {
    Scenario::parse(scenario, "import.yaml").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}
