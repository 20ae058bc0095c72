//! `throng serve`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::process::TestDir;

fn answer(addr: &str, said: &[u8], bytes: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(said).unwrap();
    let mut answer = vec![0; bytes];
    stream.read_exact(&mut answer).unwrap();
    answer
}

#[test]
fn each_handler_answers_in_each_topology() {
    let place = TestDir::new();
    for accept in ["reuseport", "shared", "dispatch"] {
        for (handler, said, expected) in [
            ("ok", &b"hello"[..], &b"ok"[..]),
            ("echo", b"hello", b"hello"),
            ("pingpong", b"Ping", b"Pong"),
        ] {
            let server = place.serve(&[handler, "--accept", accept]);
            assert_eq!(answer(&server.addr, said, expected.len()), expected, "{handler} {accept}");
        }
    }
}

#[test]
fn it_prints_its_address_and_the_source_of_its_limits() {
    let place = TestDir::new();
    let mut server = place.start(&[
        "serve",
        "hold",
        "--listen",
        "[::1]:0",
        "--cores",
        "3",
        "--connections-max",
        "1k",
        "--idle-timeout",
        "90s",
    ]);
    assert!(server.line().starts_with("hold listens on [::1]:"));
    for (name, says) in [
        ("cores", "3 (--cores), accept reuseport"),
        ("connections", "at most 1000 (--connections-max)"),
        ("backlog", "4096"),
        ("idle", "closed after 1m30s"),
        ("control", "throng ctl count"),
    ] {
        let line = server.line_with(name);
        assert!(line.contains(says), "{line}");
    }
}

#[test]
fn as_json_it_prints_its_address_and_at_the_end_its_counters() {
    let place = TestDir::new();
    let server = place.serve(&["echo", "--stats", "100ms"]);
    assert_eq!(server.hello["pid"], server.process.pid());
    assert!(server.hello["control"].as_str().unwrap().ends_with(".sock"));
    answer(&server.addr, b"x", 1);
    server.process.signal(Signal::TERM);
    let finished = server.process.finish().exits_with(0);
    let lines: Vec<Value> =
        finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().unwrap();
    assert_eq!((&last["event"], &last["by"]), (&"stopped".into(), &"SIGTERM".into()));
    assert_eq!(last["snapshot"]["counters"]["accepted"], 1);
    assert_eq!(last["snapshot"]["counters"]["messages_sent"], 1);
}

#[test]
fn the_first_signal_drains_connections_and_the_second_ends_at_once() {
    let place = TestDir::new();
    let mut server = place.serve(&["hold", "--drain-timeout", "1h"]);
    let open = TcpStream::connect(&server.addr).unwrap();
    crate::process::eventually("it is open", || place.count(server.process.pid())["open"] == 1);
    server.process.signal(Signal::TERM);
    server.process.line_with("draining");
    assert!(TcpStream::connect(&server.addr).is_err(), "no new connection is accepted");
    let begin = Instant::now();
    server.process.signal(Signal::TERM);
    assert_eq!(server.process.finish().code, Some(128 + 15));
    assert!(begin.elapsed() < Duration::from_secs(30));
    drop(open);
}

#[test]
fn an_address_in_use_is_exit_code_2_with_the_command_that_shows_by_whom() {
    let place = TestDir::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap();
    let finished = place.throng(&["serve", "echo", "--listen", &addr.to_string()]).exits_with(2);
    finished.stderr_contains(&[
        &addr.to_string(),
        "EADDRINUSE",
        &format!("ss -ltnp sport = :{}", addr.port()),
    ]);
}

#[test]
fn a_mistyped_name_gets_a_suggestion() {
    let place = TestDir::new();
    place.throng(&["serve", "ehco"]).exits_with(2).stderr_contains(&["echo"]);
    place.throng(&["serve", "ok", "--sndbuf", "64Kib"]).exits_with(2).stderr_contains(&["KiB"]);
    place
        .throng(&["serve", "ok", "--control", "/no/such/folder/x"])
        .exits_with(2)
        .stderr_contains(&["/no/such/folder/x"]);
}

#[test]
fn a_chat_accepts_its_limits_and_describes_itself_to_other_clients() {
    let place = TestDir::new();
    let flags = ["chat", "--policy", "keep-latest", "--queue", "64KiB", "--message-max", "1KiB"];
    let server = place.serve(&[&flags[..], &["--handshake-timeout", "2s", "--deflate"]].concat());
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(&server.addr).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    let answer = ask("GET / HTTP/1.1\r\nHost: chat\r\nConnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 426 ") && answer.contains("WebSocket"), "{answer}");
    let begin = Instant::now();
    let answer = ask("GET / HTTP/1.1\r\nHost: ");
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(begin.elapsed() >= Duration::from_secs(2));
    place.throng(&["serve", "chat", "--policy", "drop"]).exits_with(2).stderr_contains(&["drop"]);
}
