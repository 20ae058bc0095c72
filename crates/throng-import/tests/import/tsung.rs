//! tsung's XML.

mod arrivals;
mod broken;
mod constructs;
mod file;
mod parts;

use throng_load::program::Program;
use throng_load::scenario::{Phase, Scenario};
use throng_load::schedule::{Arrivals, length};

use crate::{import_file, show};

#[test]
fn the_file_of_the_phoenix_article() {
    insta::assert_snapshot!(show(&import_file("tsung/phoenix.xml")), @r#"
# Imported from phoenix.xml (tsung).
target: ws://server_ip_address:4000/socket/websocket
load:
  - arrivals: {rate: 1k/s, for: 1m40s, most: 100k}
  # tsung runs until the last user has finished.
  - hold: {for: 8h20m}
user:
  - connect: {timeout: 10m}
  - send: '{"topic":"rooms:lobby", "event":"phx_join", "payload": {"user":"${user.id + 1}"}, "ref":"1"}'
  - expect: {regex: ".*", timeout: 10m}
  - repeat: {times: 1000, do: [wait: 30s]}
on_error: stop

28 constructs of tsung: 8 translated, 15 not needed, 5 approximated
not needed
  line 5, tsung loglevel: throng has no log level
  line 5, tsung version: tsung ignores it
  line 9, client: one throng loads all cores of its machine; to load from several machines, start it on each with its share of the arrivals
  line 9, client maxusers: one throng holds millions of users
  line 9, client cpu: throng uses all cores; `throng run --cores N` sets their number
  line 9, client use_controller_vm: throng has no other process
  line 11, client: as in line 9
  line 11, client maxusers: as in line 9
  line 11, client cpu: as in line 9
  line 11, client use_controller_vm: as in line 9
  line 13, client: as in line 9
  line 13, client maxusers: as in line 9
  line 13, client cpu: as in line 9
  line 13, client use_controller_vm: as in line 9
  line 38, option ports_range: throng uses all ports of the kernel's range; `throng run --source ADDRESS --source-ports MIN-MAX` sets another one
approximated
  line 29, users: tsung cuts the times between arrivals to whole milliseconds, and starts 100k in this phase at most; the scenario keeps the moments exactly, and their number varies as that of independent people does
  line 43, sessions: a user stops when its connect fails or its connection ends; tsung tries three more times, and connects anew at the next request
  line 56, %%ts_user_server:get_unique_id%%: the numbers begin at 1 and no two users have the same one, as in tsung; where users arrive at random, some numbers are left out
  line 56, websocket message: tsung 1.7 sends a binary frame where no `frame` is written; the scenario sends text, as servers of text messages need it
  line 56, websocket ack parse: the next message counts as the answer, as in tsung, whichever it is; where messages come unasked, throng calls such answers doubtful
"#);
}

#[test]
fn the_file_of_the_haskell_article() {
    insta::assert_snapshot!(show(&import_file("tsung/haskell.xml")), @r#"
# Imported from haskell.xml (tsung).
# 15 addresses with 64000 ports each
target: ws://172.31.17.1:8080
load:
  - arrivals: {rate: 1k/s, for: 1h}
  # tsung runs until its users have finished, and these may never.
  - hold: {for: 5m}
user:
  - connect: {timeout: 10m}
  - repeat:
      times: 1000
      do:
        # until somebody says something
        - receive: {regex: ".*", timeout: 24h}
on_error: stop

17 constructs of tsung: 5 translated, 6 not needed, 5 approximated, 1 suspicious
not needed
  line 3, tsung loglevel: throng has no log level
  line 3, tsung version: tsung ignores it
  line 6, client: one throng loads all cores of its machine; to load from several machines, start it on each with its share of the arrivals
  line 6, client maxusers: one throng holds millions of users
  line 6, client use_controller_vm: throng has no other process
  line 33, option ports_range: throng uses all ports of the kernel's range; `throng run --source ADDRESS --source-ports MIN-MAX` sets another one
approximated
  line 1, load: tsung runs until the last user has finished; the scenario ends 5m after the last arrival
  line 7, ip: a scenario names no addresses of its machine; run it with `--source 172.31.23.115 --source 172.31.23.113 --source 172.31.23.114 --source 172.31.23.112 --source 172.31.18.80 --source 172.31.18.81 --source 172.31.18.82 --source 172.31.18.83 --source 172.31.26.100 --source 172.31.26.99 --source 172.31.18.106 --source 172.31.30.220 --source 172.31.18.240 --source 172.31.30.188 --source 172.31.22.1`
  line 29, users: tsung cuts the times between arrivals to whole milliseconds, and starts 3.6M in this phase at most; the scenario keeps the moments exactly, and their number varies as that of independent people does
  line 35, sessions: a user stops when its connect fails or its connection ends; tsung tries three more times, and connects anew at the next request
  line 42, thinktime wait_bidi: tsung waits for ever for the next message; a user of the scenario stops after a day
suspicious
  line 38, websocket connect: the server's type is `websocket`, too: tsung makes one handshake for it, and sends this second one over that WebSocket, where no server answers it; the scenario makes one plain handshake, with the path of this element
"#);
}

#[test]
fn raw_sessions() {
    insta::assert_snapshot!(show(&import_file("tsung/raw.xml")), @r#"
# Imported from raw.xml (tsung).
# A line protocol.
target: tcp://127.0.0.1:5555
data: {users: {file: users.csv, columns: [username, token], delimiter: ";"}}
load:
  # slowly at first
  - arrivals: {rate: 2/s, for: 2m}
  - arrivals: {rate: 50/s, for: 1m, most: 2k}
  # No more users arrive; tsung stops all of them after its `duration`.
  - hold: {for: 7m}
users:
  reader:
    weight: 7
    user:
      # most of them read
      - connect: {timeout: 2m}
      - send: "hello ${users.username} ${users.token}\n"
      - expect: {until: "\n", capture: {sid: {regex: 'sid=(\w+)'}}, timeout: 10m}
      # think
      - wait: exponential(2s)
      - transaction:
          name: reads
          do:
            - foreach:
                name: i
                in: [1, 2, 3, 4, 5]
                do:
                  - send: "read ${i} of ${sid}\n"
                  - expect: {bytes: 1, timeout: 10m}
                  - wait: uniform(1s, 3s)
      - if:
          condition: ${sid} == admin
          do: [send: {text: "stop\n", reply: false}]
    on_error: continue
  writer:
    weight: 3
    user:
      - connect: {timeout: 2m}
      - send: {random: 512, reply: false}
      - wait: 3s
      - send: {hex: "00 00 00 00 00 00 00 00"}
      - expect: {bytes: 1, timeout: 10m}
    on_error: stop

43 constructs of tsung: 29 translated, 5 not needed, 9 approximated
not needed
  line 4, tsung loglevel: throng has no log level
  line 4, tsung version: tsung ignores it
  line 6, client: one throng loads all cores of its machine; to load from several machines, start it on each with its share of the arrivals
  line 6, client maxusers: one throng holds millions of users
  line 6, client use_controller_vm: throng has no other process
approximated
  line 14, users: tsung cuts the times between arrivals to whole milliseconds, and starts 240 in this phase at most; the scenario keeps the moments exactly, and their number varies as that of independent people does
  line 17, users: tsung cuts the times between arrivals to whole milliseconds, and starts 2k in this phase at most; the scenario keeps the moments exactly, and their number varies as that of independent people does
  line 24, sessions: a user stops when its connect fails or its connection ends; tsung tries three more times, and connects anew at the next request
  line 27, setdynvars file: tsung gives the next row to the next user of this session; the scenario gives row k to user k, whatever its session
  line 32, dyn_variable re: the scenario looks for it in the first line of the answer; tsung does in the first packet
  line 33, raw ack local: the first byte that comes is the answer, as the first packet is in tsung, whichever it is; where bytes come unasked, throng calls such answers doubtful
  line 39, raw ack local: as in line 33
  line 48, raw datasize: the scenario sends as many random bytes; tsung's are zeros
  line 50, raw ack local: as in line 33
"#);
}

#[test]
fn requests_of_http() {
    insta::assert_snapshot!(show(&import_file("tsung/shop.xml")), @r#"
# Imported from shop.xml (tsung).
target: http://127.0.0.1:8080
load:
  - arrivals: {rate: 0.5/s, for: 10m}
user:
  - choose:
      - weight: 4
        do: [set: {user_agent: Mozilla/5.0 (X11; Linux)}]
      - weight: 1
        do: [set: {user_agent: curl/8}]
  - get:
      path: /login
      headers: {user-agent: "${user_agent}"}
      capture: {csrf: {regex: "name=[\"']csrf[\"'] (?:[^>]* )?value=[\"']([^\"']*)[\"']"}}
      timeout: 10m
  - post:
      path: /login
      headers: {user-agent: "${user_agent}", content-type: application/x-www-form-urlencoded}
      body: user=${user.id + 1}&csrf=${csrf}
      expect: {status: ["2xx"], regex: welcome}
      capture: {token: /session/token, place: {header: location}}
      timeout: 10m
  - set: {pages_goes_on: "1"}
  - repeat:
      times: 4
      do:
        - if:
            condition: ${pages_goes_on} == 1
            do:
              - get:
                  path: /items
                  headers: {user-agent: "${user_agent}", Authorization: "Bearer ${token}"}
                  capture: {more: /more}
                  timeout: 10m
              - wait: 1.5s
              - if:
                  condition: ${more} != yes
                  do: [set: {pages_goes_on: "0"}]
  - if:
      condition: ${token} != none
      do:
        - delete: {path: /logout, headers: {user-agent: "${user_agent}"}, timeout: 10m}
on_error: stop

31 constructs of tsung: 20 translated, 3 not needed, 8 approximated
not needed
  line 3, tsung loglevel: throng has no log level
  line 4, client: one throng loads all cores of its machine; to load from several machines, start it on each with its share of the arrivals
  line 4, client use_controller_vm: throng has no other process
approximated
  line 8, users: tsung cuts the times between arrivals to whole milliseconds, and starts 300 in this phase at most; the scenario keeps the moments exactly, and their number varies as that of independent people does
  line 17, sessions: a user stops when its connect fails or its connection ends; tsung tries three more times, and connects anew at the next request
  line 20, dyn_variable form: an answer without it is an error, after which the user goes on with an empty text, as in tsung
  line 24, match abort: an answer that does not match is an error, after which the user stops; so it does after all other errors
  line 25, dyn_variable jsonpath: as in line 20
  line 26, dyn_variable header: as in line 20
  line 27, %%_tsung_userid%%: the numbers begin at 1 and no two users have the same one, as in tsung; where users arrive at random, some numbers are left out
  line 31, dyn_variable jsonpath: as in line 20
"#);
}

/// The article's file and the scenario that a person writes for it are the same program, and give
/// the same arrivals.
#[test]
fn the_phoenix_article_by_hand() {
    let by_hand = r#"
target: ws://server_ip_address:4000/socket/websocket
load:
  - arrivals: {rate: 1000/s, for: 100s, most: 100_000}
  - hold: {for: 500m}
user:
  - connect: {timeout: 600s}
  - send:
      text: '{"topic":"rooms:lobby", "event":"phx_join", "payload": {"user":"${user.id + 1}"}, "ref":"1"}'
  - expect: {regex: ".*", timeout: 600s}
  - repeat:
      times: 1000
      do:
        - wait: 30s
on_error: stop
"#;
    let by_hand = Scenario::parse(by_hand, "hand.yaml").unwrap();
    let imported = import_file("tsung/phoenix.xml").scenario;
    let imported = Scenario::parse(&imported, "imported.yaml").unwrap();
    let program = |scenario| format!("{:?}", Program::compile(scenario));
    // Lines of the steps differ.
    let without_lines = |text: String| {
        let digits = regex::Regex::new("(line|span|index|origin)[^,}]*").unwrap();
        digits.replace_all(&text, "").into_owned()
    };
    assert_eq!(without_lines(program(&by_hand)), without_lines(program(&imported)));
    assert_eq!(by_hand.target, imported.target);
    let moments = |load: &[Phase]| Arrivals::new(load, 0, 1, 1).collect::<Vec<_>>();
    assert_eq!(moments(&by_hand.load), moments(&imported.load));
    assert_eq!(length(&by_hand.load), length(&imported.load));
}
