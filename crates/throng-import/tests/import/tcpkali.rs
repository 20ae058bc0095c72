//! tcpkali's command lines.

use throng_import::{Fidelity, Import, ImportOptions, import};

use crate::{import_file, import_text, show, show_mistakes};

fn imported(options: &str) -> Import {
    let text = format!("tcpkali {options} 127.0.0.1:5555\n");
    import_text(&text, "load.sh").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Checks that a command line with these options has these lines in its scenario.
fn check(options: &str, expected: &[&str]) {
    let import = imported(options);
    for line in expected {
        let has_it = import.scenario.lines().any(|written| written.trim() == *line);
        assert!(has_it, "{options}: {line} is not in\n{}", import.scenario);
    }
    assert!(!import.fidelity.is_partial(), "{options}: {}", import.fidelity);
}

#[test]
fn a_thousand_clients_ping() {
    insta::assert_snapshot!(show(&import_file("tcpkali/ping.sh")), @r#"
# Imported from ping.sh (tcpkali).
# A thousand clients ping ten times a second.
target: tcp://127.0.0.1:5555
load:
  - ramp: {to: 1k, over: 2s}
  - hold: {for: 30s}
user:
  - connect: {timeout: 1s}
  - send: {text: "hello ${user.id + 1}\n", reply: false}
  - every:
      rate: 10/s
      do: [send: "ping ${choice('red', 'green')}\n", expect: {until: pong}]

13 constructs of tcpkali: 11 translated, 1 not needed, 1 approximated
not needed
  line 4, --statsd
    pass --metrics to `throng run`, for Prometheus
approximated
  line 4, --latency-marker
    tcpkali sends on while it waits for the marker; the scenario sends the next message after it
"#);
}

#[test]
fn a_websocket_with_a_bandwidth() {
    insta::assert_snapshot!(show(&import_file("tcpkali/websocket.sh")), @r#"
# Imported from websocket.sh (tcpkali).
target: ws://127.0.0.1:9000
load:
  - ramp: {to: 10k, over: 1m40s}
  - hold: {for: 1h}
user:
  - connect: {timeout: 1s, headers: {authorization: Bearer x}}
  - every:
      rate: 961.54/s
      do: [send: {text: '{"n": "$${x}"}', reply: false}]

9 constructs of tcpkali: 7 translated, 2 approximated
approximated
  line 1, --duration
    tcpkali runs until it is stopped, the scenario 1h
  line 1, --channel-bandwidth-upstream
    the bandwidth is that of 961.54 messages a second
"#);
}

#[test]
fn connections_that_close_at_once() {
    insta::assert_snapshot!(show(&import_file("tcpkali/connect.sh")), @r#"
# Imported from connect.sh (tcpkali).
target: tcp://[::1]:5555
load:
  - ramp: {to: 10, over: 2ms}
  - hold: {for: 10s}
limits: {user: {connect: 500/s}}
user:
  - connect: {timeout: 1s}
  - close

4 constructs of tcpkali: 4 translated
"#);
}

#[test]
fn each_option_has_its_place() {
    check("", &["- ramp: {to: 1, over: 10ms}", "- hold: {for: 10s}", "- stay"]);
    check("-c 2k --connect-rate 1k", &["- ramp: {to: 2k, over: 2s}"]);
    check("--connections=1.5k -T1m", &["- ramp: {to: 1.5k, over: 15s}", "- hold: {for: 1m}"]);
    check("--connect-timeout 250ms", &["- connect: {timeout: 250ms}"]);
    check("--channel-lifetime 2s", &["- wait: 2s", "- close"]);
    check("--channel-lifetime 2s -m x -r 5", &["for: 2s", "- close"]);
    check("--channel-lifetime 2s -m x -r 1", &["for: 2s", "- wait: 1s", "- close"]);
    check(
        "--channel-lifetime 1s -m x -r 4 --delay-send 500ms",
        &["- wait: 500ms", "for: 500ms", "- wait: 250ms", "- close"],
    );
    check("--channel-lifetime 1s -m x -r 3", &["for: 1s", "- wait: 333.333333ms"]);
    check("--channel-lifetime 1s -m x --delay-send 300ms", &["for: 700ms", "- close"]);
    check("--channel-lifetime 300ms -m x --delay-send 1s", &["- wait: 300ms", "- close"]);
    check("--channel-lifetime 2s -1 x --delay-send 500ms", &["- wait: 500ms", "- wait: 1.5s"]);
    check(
        "--connect-rate 1 --channel-lifetime 0.1",
        &["limits: {user: {connect: 1/s}}", "- wait: 100ms", "- close"],
    );
    check("-c 4 --connect-rate 2 --channel-lifetime 1s", &["limits: {user: {connect: 30/m}}"]);
    check(r"-em 'a\n'", &[r#"do: [send: {text: "a\n", reply: false}]"#]);
    check(r"-dem 'a\n'", &[r#"do: [send: {text: "a\n", reply: false}]"#]);
    check(r"-em'a\n' -c5", &["- ramp: {to: 5, over: 50ms}"]);
    check("--delay-send 100ms -m x", &["- wait: 100ms"]);
    check("-1 hello -m x -r 2", &["- send: {text: hello, reply: false}"]);
    check(r"-m 'a\n'", &[r"do: [send: {text: 'a\n', reply: false}]"]);
    // What `unescape_data` of tcpkali 1.1.1 makes of each, when it is compiled and called.
    check(r"-e -m 'a\n\x41\0102'", &[r#"do: [send: {text: "a\nAB", reply: false}]"#]);
    check(r"-e -m 'a\t'", &["do: [send: {text: at, reply: false}]"]);
    check(r"-e -m '\102\12'", &[r#"do: [send: {text: "10212", reply: false}]"#]);
    check(r"-e -m 'a\\b'", &[r"do: [send: {text: 'a\\b', reply: false}]"]);
    check(r"-e -m '\xfz\f\q'", &[r#"do: [send: {text: "\u000fz\u000cq", reply: false}]"#]);
    check(r"-m '\\{a}'", &[r"do: [send: {text: '\\{a}', reply: false}]"]);
    check(
        r"-m 'a\n' -e -1 'b\n'",
        &[r#"- send: {text: "b\n", reply: false}"#, r"do: [send: {text: 'a\n', reply: false}]"],
    );
    check(
        r"-em x --latency-marker 'a\n\{connection.uid}'",
        &[r#"do: [send: x, expect: {until: "a\n${user.id + 1}"}]"#],
    );
    check(
        r"--ws -H 'X-User: \{connection.uid}'",
        &[r#"- connect: {timeout: 1s, headers: {x-user: "${user.id + 1}"}}"#],
    );
    check("-m 12345 --channel-bandwidth-upstream 50", &["rate: 10/s"]);
    check("-T 2min", &["- hold: {for: 2m}"]);
    check(r"-e -m '\x00\xff'", &[r#"do: [send: {hex: "00 ff", reply: false}]"#]);
    check(r"--ws -e -m '\x00'", &[r#"do: [send: {binary: "00", reply: false}]"#]);
    check("-m a -m b -r 10", &["rate: 5/s"]);
    check(
        r"-m 'u\{connection.uid%7}'",
        &["do: [send: {text: \"u${(user.id + 1) % 7}\", reply: false}]"],
    );
    check(r"-m '\{re (a|b)}'", &["do: [send: {text: \"${choice('a', 'b')}\", reply: false}]"]);
    check(
        r"-m 'costs $\{connection.uid}'",
        &["do: [send: {text: \"costs ${'$'}${user.id + 1}\", reply: false}]"],
    );
    check(r"-m '\{message.marker}'", &["do: [send: {text: \"${time('us')}\", reply: false}]"]);
    check("-m ping --latency-marker pong", &["do: [send: ping, expect: {until: pong}]"]);
    check(
        "--ws -m ping --latency-marker pong",
        &["do: [send: ping, expect: {contains: pong, skip_others: true}]"],
    );
    check("--ws --header 'Origin: x'", &["- connect: {timeout: 1s, headers: {origin: x}}"]);
    check("-m 123456789 --channel-bandwidth-upstream 9kBps", &["rate: 1k/s"]);
}

#[test]
fn connections_that_live_longer_than_the_ramp_need_no_limit() {
    assert!(!imported("-c 2 --channel-lifetime 1s").scenario.contains("limits"));
}

#[test]
fn a_user_that_connects_again_keeps_its_number() {
    let fidelity = |options: &str| {
        let entries = imported(options).fidelity.entries;
        let entry = entries.into_iter().find(|entry| entry.construct.contains("connection.uid"));
        entry.unwrap().fidelity
    };
    assert_eq!(fidelity(r"-m '\{connection.uid}'"), Fidelity::Translated);
    let again = r"-m '\{connection.uid%5}' --channel-lifetime 1s";
    assert_eq!(fidelity(again), Fidelity::Approximated);
}

#[test]
fn a_scenario_that_throng_refuses_is_a_mistake() {
    let options = ImportOptions { target: Some("http://127.0.0.1:1".parse().unwrap()) };
    let mistakes = import("tcpkali 127.0.0.1:5555\n", "load.sh", &options).unwrap_err();
    insta::assert_snapshot!(mistakes, @"
    error: `protocol: http` has no step `connect`
     --> load.sh:1:1
      |
    1 | tcpkali 127.0.0.1:5555
      | ^ it belongs to the protocols `tcp`, `ws` and `phoenix`
      |
      = help: in the scenario it is the line `- connect: {timeout: 1s}`
    ");
}

#[test]
fn headers_that_a_handshake_cannot_have_are_told() {
    for (options, fidelity) in [
        ("--ws -H 'Host: shop'", Fidelity::NotSupported),
        ("-H 'Sec-WebSocket-Protocol: chat' --ws", Fidelity::NotSupported),
        ("--ws -H 'A: b' -H 'a: c'", Fidelity::NotSupported),
        ("--ws -H 'Connection: upgrade'", Fidelity::NotNeeded),
    ] {
        let import = imported(options);
        let told: Vec<_> = import.fidelity.of(fidelity).map(|entry| &*entry.construct).collect();
        assert_eq!(told, ["--header"], "{options}: {}", import.fidelity);
    }
}

#[test]
fn what_throng_has_by_itself_is_not_needed() {
    for option in [
        "--latency-connect",
        "--latency-percentiles 95,99",
        "--nagle=off",
        "--write-combine=off",
        "--source-ip 127.0.0.2",
        "-w 2",
        "--statsd",
        "--statsd-host h",
        "--statsd-port 1",
        "--statsd-namespace n",
        "--statsd-latency-window 1s",
        "-d",
        "--dump-one-in",
        "--dump-one-out",
        "--dump-all",
        "--dump-all-in",
        "--dump-all-out",
        "--ssl-cert a",
        "--ssl-key a",
        "--verbose 2",
        "-v",
        "-vvv",
        "--help",
        "--version",
    ] {
        let import = imported(option);
        assert_eq!(import.fidelity.of(Fidelity::NotNeeded).count(), 1, "{option}");
    }
}

#[test]
fn what_a_scenario_lacks_has_a_remedy() {
    for option in [
        "--channel-bandwidth-downstream 0",
        "--first-message-file a",
        "-f a",
        "-m x -r @50ms",
        "--message-stop x",
        "--latency-marker-skip 3",
        "--latency-first-byte",
        "--message-marker",
        "--rcvbuf 1k",
        "--sndbuf 1k",
        "-l 5555",
        "--listen-mode active",
        "--server h:1",
        "127.0.0.1:5556",
        r"-m 'x\{connection.ptr}'",
        r"-m 'x\{re [a-z]+}'",
        r"-m 'x\{ws.ping}'",
        r"-m 'x\{raw y}'",
        r"-m 'x\{<file>}'",
    ] {
        let import = imported(option);
        assert_eq!(import.fidelity.of(Fidelity::NotSupported).count(), 1, "{option}");
    }
}

#[test]
fn a_ramp_that_tcpkali_would_not_survive_is_suspicious() {
    let import = imported("-c 2k");
    insta::assert_snapshot!(import.fidelity, @r#"
3 constructs of tcpkali: 2 translated, 1 suspicious
suspicious
  line 1, --connections
    tcpkali gives up: 2k connections at 100/s take 20s, longer than --duration
"#);
}

#[test]
fn a_connection_over_tls() {
    check("--ssl", &["target: tls://127.0.0.1:5555", "tls: {verify: none, resume: 0%}"]);
    check("--ssl --ws", &["target: wss://127.0.0.1:5555"]);
    let options = ImportOptions { target: Some("tcp://127.0.0.9:1".parse().unwrap()) };
    let import = import("tcpkali --ssl 10.0.0.1:5555", "load.sh", &options).unwrap();
    assert!(!import.scenario.contains("tls:"), "{}", import.scenario);
    assert_eq!(import.fidelity.of(Fidelity::NotNeeded).count(), 1, "{}", import.fidelity);
}

#[test]
fn another_target_takes_the_place_of_the_destination() {
    let options = ImportOptions { target: Some("tcp://127.0.0.9:1".parse().unwrap()) };
    let import = import("tcpkali 10.0.0.1:5555", "load.sh", &options).unwrap();
    assert!(import.scenario.contains("target: tcp://127.0.0.9:1\n"), "{}", import.scenario);
}

/// A script that does more than to call tcpkali has the command in it.
#[test]
fn a_call_behind_other_commands_is_told() {
    insta::assert_snapshot!(show_mistakes(
        "load.sh",
        &[
            "#!/bin/bash\nset -eu\nhost=$1\nexec /usr/bin/tcpkali -m x $host:80\n",
            "TIME=1 sudo -u me tcpkali 127.0.0.1:1\n",
            "# tcpkali\necho hello\n",
        ]
    ));
}

#[test]
fn mistakes() {
    let commands = [
        "tcpkali",
        "tcpkali -c 10",
        "tcpkali -l 5555",
        "tcpkali -c 127.0.0.1:5555",
        "tcpkali 127.0.0.1",
        "tcpkali 127.0.0.1:0",
        "tcpkali 127.0.0.1:99999",
        "tcpkali http://127.0.0.1:80",
        "tcpkali a b:1",
        "tcpkali ::1:5555",
        "tcpkali -c 0 127.0.0.1:5555",
        "tcpkali -c -1 127.0.0.1:5555",
        "tcpkali -c many 127.0.0.1:5555",
        "tcpkali -c 1e9 127.0.0.1:5555",
        "tcpkali -c 1g 127.0.0.1:5555",
        "tcpkali --conections 10 127.0.0.1:5555",
        "tcpkali --whatever 127.0.0.1:5555",
        "tcpkali -z 127.0.0.1:5555",
        "tcpkali --connect-rate 0 127.0.0.1:5555",
        "tcpkali --connect-rate fast 127.0.0.1:5555",
        "tcpkali --connect-timeout 0 127.0.0.1:5555",
        "tcpkali --connect-timeout 5x 127.0.0.1:5555",
        "tcpkali -T 0 127.0.0.1:5555",
        "tcpkali -T forever 127.0.0.1:5555",
        "tcpkali -T 9999d 127.0.0.1:5555",
        "tcpkali --channel-lifetime x 127.0.0.1:5555",
        "tcpkali --delay-send -1 127.0.0.1:5555",
        "tcpkali --channel-bandwidth-upstream fast -m x 127.0.0.1:5555",
        "tcpkali --channel-bandwidth-upstream 1kbps -m x -r 1 127.0.0.1:5555",
        "tcpkali -m '' 127.0.0.1:5555",
        "tcpkali -m '\\{re (a|b)' 127.0.0.1:5555",
        "tcpkali -m '\\{connection.uid%0}' 127.0.0.1:5555",
        "tcpkali -m '\\{connection.uid%x}' 127.0.0.1:5555",
        "tcpkali -e -m '\\xff\\{connection.uid}' 127.0.0.1:5555",
        "tcpkali -m 'ping 127.0.0.1:5555",
        "tcpkali -m x -r 0 127.0.0.1:5555",
        "tcpkali -m x -r lots 127.0.0.1:5555",
        "tcpkali --latency-marker pong 127.0.0.1:5555",
        "tcpkali -m x --latency-marker '' 127.0.0.1:5555",
        "tcpkali --ws -H novalue 127.0.0.1:5555",
        "tcpkali --ws=yes 127.0.0.1:5555",
        "tcpkali $HOST:5555",
        "tcpkali 127.0.0.1:5555 | tee log",
        "tcpkali 127.0.0.1:5555 > log",
        "tcpkali 127.0.0.1:5555 -m",
    ];
    insta::assert_snapshot!(show_mistakes("load.sh", &commands));
}
