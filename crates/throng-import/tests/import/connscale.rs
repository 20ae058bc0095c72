//! connscale's configuration.

use crate::{import_file, import_text, show, show_mistakes};

#[test]
fn the_largest_run_of_the_article() {
    insta::assert_snapshot!(show(&import_file("connscale/example.config")), @r#"
# Imported from example.config (connscale).
# The largest run of the article.
target: tcp://127.0.0.1:8989
load:
  - ramp: {to: 200k, over: 3m20s}
  # connscale holds its connections until it is stopped.
  - hold: {for: 5m}
user:
  - connect
  - wait: uniform(1ms, 20s)
  - every:
      period: 20s
      do: [send: Ping, expect: {text: Pong, timeout: 20s}]
on_error: stop

7 constructs of connscale: 3 translated, 2 not needed, 2 approximated
not needed
  line 3, acceptors
    a setting of connscale's server; the scenario is its client; see `throng serve pingpong
    --help`
  line 4, backlog
    a setting of connscale's server; the scenario is its client; see `throng serve pingpong
    --help`
approximated
  line 6, interval
    connscale counts the interval from the answer; the scenario pings at equal distances,
    whenever the answers arrive
  line 7, connections_start
    connscale starts the 200k at random moments within 3m20s; the scenario starts them at equal
    distances
"#);
}

#[test]
fn calls_in_the_console_alone() {
    let import = import_text("client:connections_start(10)\n", "calls").unwrap();
    insta::assert_snapshot!(show(&import), @r#"
# Imported from calls (connscale).
target: tcp://127.0.0.1:8989
load:
  - ramp: {to: 10, over: 10ms}
  # connscale holds its connections until it is stopped.
  - hold: {for: 5m}
user:
  - connect
  - wait: uniform(1ms, 5s)
  - every:
      period: 5s
      do: [send: Ping, expect: {text: Pong, timeout: 1s}]
on_error: stop

1 construct of connscale: 1 approximated
approximated
  line 1, connections_start
    connscale starts the 10 at random moments within 10ms; the scenario starts them at equal
    distances
"#);
}

#[test]
fn mistakes() {
    let files = [
        "[{server, [{listen_port, 0}]}].",
        "[{server, [{listen_port, 70000}]}].",
        "[{server, [{listen_port, 8989}, {server, {1,2,3}}]}].",
        "[{server, [{listen_port, 8989}, {server, {1,2,3,400}}]}].",
        "[{server, [{listen_port, 8989}, {server, 17}]}].",
        "[{server, [{listen_port, 8989}, {intervall, 5}]}].",
        "[{server, [{listen_port, 8989}, {interval, soon}]}].",
        "[{server, [{listen_port, 8989}, {timeout, 0}]}].",
        "[{server, [{listen_port, 8989}, {timeout, 100000000000}]}].",
        "[{server, [{listen_port, 8989}, backlog]}].",
        "[{server, {listen_port, 8989}}].",
        "[server, {x, [{listen_port, 8989}]}, {server}].",
        "[{server, [{listen_port, 8989}]}]",
        "[{server, [{listen_port, 8989]}].",
        "[{server, [{listen_port, 8989}}].",
        "[{server, [{listen_port, 8989}, {cookie, 'a}]}].",
        "[{server, [{listen_port, 8989}, {ebin_dir, \"a}]}].",
        "[{server, [{listen_port, 99999999999999999999}]}].",
        "[{server, [{listen_port, 8989}, {server, <<1,2>>}]}].",
        "[{server, [{listen_port, 8989}, Acceptors]}].",
        "[{server, [{listen_port, -1}]}].",
        "[{server, [{listen_port, 89.5}]}].",
        "[{server, [{listen_port, \"8989\"}]}].",
        "[{server, [{listen_port, []}]}].",
        "[{server, [{listen_port, 8989}, {server, {}}]}].",
        "[{server, [{listen_port, 8989}, {server, \"a b\"}]}].",
        "[{server, [{listen_port, 8989}, {server, \"\"}]}].",
        "[{server, [{listen_port, 8989}, {server, {a,b,c,d}}]}].",
        "[{server, [{listen_port, 8989}, {interval, -5}]}].",
        "[{server, [{listen_port, 8989}, {interval, 1.5}]}].",
        "[{server, [{listen_port, 8989}, {interval}]}].",
        "[{server, [{listen_port, 8989}, {interval, 1, 2}]}].",
        "[{server, [{listen_port, 8989}, {1, 2}]}].",
        "[{server, [{listen_port, 8989}, []]}].",
        "[{server}]. [{server, [{listen_port,1}]}].",
        "{server, [{listen_port, 8989}]} {x}.",
        "[{server, [{listen_port, 16#zz}]}].",
        "[{server, [{listen_port, 8989}, {cookie, \"\\x{zz}\"}]}].",
        "[{server, [{listen_port, 8989}]}]. client:connections_start(10).",
        "[{server, [{listen_port, 8989}]}].\nclient:connections_start(9999999999).",
        "[{server, [{listen_port, 8989},,{timeout, 1}]}].",
    ];
    insta::assert_snapshot!(show_mistakes("connscale/broken.config", &files));
}
