//! Steps of WebSocket users over real sockets, against the server half of the codec.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use throng_measure::{ErrorKind, Operation};

use throng_base::Instant;
use throng_load::run::{LoadOptions, LoadPlan};
use throng_proto::websocket::{
    Scratch, ServerEvent, WebSocketLimits, WebSocketServer, offered_subprotocols,
};
use throng_proto::{Input, Session};

use crate::run::{Run, parsed, run_scenario, run_text, server};

const ONE: &str = "load: [{arrivals: {rate: 1/s, for: 1s, spacing: even}}]\n";

/// Answer of the server to a text message.
type Answer = fn(&mut WebSocketServer, &str, &mut Vec<u8>);

/// Accepts the upgrade, then answers every text by `answer` and echoes binary messages.
fn serve(mut stream: TcpStream, answer: Answer) {
    let mut session = WebSocketServer::new(Instant::ZERO, &WebSocketLimits::default());
    let (mut scratch, mut buffer) = (Scratch::default(), vec![0; 1 << 16]);
    while let Ok(received @ 1..) = stream.read(&mut buffer) {
        let (mut out, mut is_over) = (Vec::new(), false);
        let mut input = Input::new(&mut buffer[..received]);
        while let Some(event) = session.next(Instant::ZERO, &mut input, &mut scratch, &mut out) {
            match event {
                ServerEvent::Request(request) if request.path() == "/refused" => {
                    let _ = session.respond(429, &[], b"slow down", &mut out);
                }
                ServerEvent::Request(request) if request.path() == "/closed" => return,
                ServerEvent::Request(request) => {
                    let described = format!(
                        "{} {} {}",
                        request.target,
                        request.header("x-user").unwrap_or("-"),
                        request.header("host").unwrap_or("-"),
                    );
                    let upgrade = session.check_upgrade(&request).unwrap();
                    let chosen = offered_subprotocols(&request).find(|name| *name == "chat");
                    session.accept(&upgrade, chosen, &[], true, &mut out);
                    answer(&mut session, &described, &mut out);
                }
                ServerEvent::Text(text) => {
                    let text = text.to_owned();
                    answer(&mut session, &text, &mut out);
                }
                ServerEvent::Binary(bytes) => {
                    let bytes = bytes.to_vec();
                    session.binary(&bytes, None, &mut out);
                }
                ServerEvent::Closed { .. } | ServerEvent::Failed(_) => is_over = true,
                ServerEvent::Ping(_) | ServerEvent::Pong(_) => {}
            }
        }
        if stream.write_all(&out).is_err() || is_over {
            return;
        }
    }
}

fn run(target: SocketAddr, path: &str, rest: &str) -> Run {
    run_text(&format!("target: ws://{target}{path}\n{ONE}{rest}"))
}

/// Asserts that the only user has finished its steps without an error.
#[track_caller]
fn assert_no_errors(run: &Run) {
    let counters = &run.last.counters;
    assert_eq!(run.last.errors.total(), 0, "{:?}", run.last.errors);
    assert_eq!(counters.connects_failed, 0, "{:?}", run.last.connect_failed);
    assert_eq!((counters.users_finished, counters.connected), (1, 0), "{counters:?}");
}

fn echo(session: &mut WebSocketServer, text: &str, out: &mut Vec<u8>) {
    session.text(text, None, out);
}

#[test]
fn messages_of_every_kind_are_sent_and_expected() {
    let target = server(|stream| serve(stream, echo));
    let run = run(
        target,
        "/a?b=c",
        "user:
  - connect:
      headers: {x-user: \"user ${user.id}\"}
      query: {d: \"é ${user.id}\"}
      subprotocols: [chat]
      deflate: true
  - expect: {contains: \"/a?b=c&d=%C3%A9%200 user 0 127.0.0.1:\"}
  - send: hello ${counter}
  - expect: hello 0
  - send: {json: {n: 1, list: [a, {b: null}], text: \"${user.id}\"}}
  - expect: {json: {list: [a, {}], text: \"0\"}}
  - send: {binary: de ad be ef}
  - expect: {binary: deadbeef}
  - send: {random: 100KiB}
  - expect: {bytes: 100KiB}
  - send: one
  - send: two
  - wait: 100ms
  - expect: one
  - expect: two
  - close
",
    );
    assert_no_errors(&run);
    assert_eq!((run.last.counters.messages_answered, run.last.counters.messages_received), (7, 7));
    assert_eq!((run.times[Operation::Connect].count(), run.times[Operation::Tcp].count()), (1, 1));
    assert!(
        run.times[Operation::Tcp].percentile(100.0)
            <= run.times[Operation::Connect].percentile(100.0)
    );
}

#[test]
fn other_messages_are_skipped_on_request_and_a_mismatch_otherwise() {
    fn noisy(session: &mut WebSocketServer, text: &str, out: &mut Vec<u8>) {
        for text in ["noise", "more noise", text] {
            session.text(text, None, out);
        }
    }
    let target = server(|stream| serve(stream, noisy));
    for wait in ["wait: 0s", "wait: 200ms"] {
        let rest = format!(
            "user: [connect, send: hello, {wait}, expect: {{text: hello, skip_others: true}}, \
             close]"
        );
        assert_no_errors(&run(target, "/", &rest));
        let rest =
            format!("user: [connect, send: hello, {wait}, expect: hello, close]\non_error: stop");
        let run = run(target, "/", &rest);
        assert_eq!(run.last.errors.get(ErrorKind::ExpectMismatch), 1, "{:?}", run.last.errors);
        assert_eq!(run.last.errors.total(), 1, "{:?}", run.last.errors);
    }
    let rest = "user: [connect, send: hello, expect: {text: never, skip_others: true, \
        timeout: 200ms}]\non_error: stop";
    assert_eq!(run(target, "/", rest).last.errors.get(ErrorKind::ExpectTimeout), 1);
}

#[test]
fn a_chatty_server_does_not_overflow_a_user_that_skips_others() {
    fn chatty(session: &mut WebSocketServer, text: &str, out: &mut Vec<u8>) {
        let noise = "x".repeat(10_000);
        (0..20).for_each(|_| session.text(&noise, None, out));
        session.text(text, None, out);
    }
    let target = server(|stream| serve(stream, chatty));
    let steps = |expect: &str| {
        format!(
            "user: [connect, send: hello, wait: 500ms, expect: {expect}, close]\non_error: stop"
        )
    };
    assert_no_errors(&run(target, "/", &steps("{text: hello, skip_others: true}")));
    let run = run(target, "/", &steps("hello"));
    assert_eq!(run.last.errors.get(ErrorKind::InboxOverflow), 1, "{:?}", run.last.errors);
}

#[test]
fn the_servers_close_is_an_error_by_its_code_unless_the_user_closes() {
    fn closing(session: &mut WebSocketServer, text: &str, out: &mut Vec<u8>) {
        if text == "go" {
            session.close(1001, "going away", out);
        }
    }
    let target = server(|stream| serve(stream, closing));
    let run_steps = |steps: &str| run(target, "/", &format!("user: {steps}\non_error: stop"));
    let left = run_steps("[connect, send: go, wait: 2s, close]");
    assert_eq!(left.last.errors.get(ErrorKind::CloseFrame.with(1001)), 1, "{:?}", left.last.errors);
    assert_eq!(left.last.errors.total(), 1);
    assert_no_errors(&run_steps("[connect, send: hello, close]"));
    assert_no_errors(&run_steps("[connect, send: hello, close: reset]"));
    assert_no_errors(&run_steps("[repeat: {times: 3, do: [connect, send: hello, close]}]"));
}

#[test]
fn an_upgrade_that_does_not_come_about_is_named() {
    let target = server(|stream| serve(stream, echo));
    let nonsense = server(|mut stream| {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n\r\n");
        let _ = stream.read(&mut [0; 10]);
    });
    let silent = server(|mut stream| while let Ok(1..) = stream.read(&mut [0; 1_000]) {});
    for (target, path, timeout, failure) in [
        (target, "/refused", "30s", &*ErrorKind::UpgradeStatus.with(429)),
        (target, "/closed", "30s", ErrorKind::UpgradeClosed.name()),
        (nonsense, "/", "30s", ErrorKind::UpgradeViolation.name()),
        (silent, "/", "300ms", "timeout"),
    ] {
        let steps = format!("user: [connect: {{timeout: {timeout}}}, stay]\non_error: stop");
        let run = run(target, path, &steps);
        let failed = &run.last.connect_failed;
        assert_eq!((failed.get(failure), failed.total()), (1, 1), "{failed:?}");
        assert_eq!(run.last.errors.total(), 0, "{:?}", run.last.errors);
        assert_eq!((run.last.counters.connects_ok, run.times[Operation::Connect].count()), (0, 0));
    }
}

#[test]
fn a_server_that_breaks_the_rules_is_a_violation() {
    let target = server(|stream| {
        serve(stream, |_, text, out| {
            if text == "break" {
                // A reserved opcode.
                out.extend_from_slice(&[0x83, 0]);
            }
        });
    });
    let run = run(target, "/", "user: [connect, send: break, expect: x]\non_error: stop");
    assert_eq!(run.last.errors.get(ErrorKind::WebSocketViolation), 1, "{:?}", run.last.errors);
    assert_eq!(run.last.errors.total(), 1);
}

#[test]
fn another_target_keeps_the_path_and_must_speak_the_same() {
    let scenario =
        format!("target: ws://127.0.0.1:1/refused\n{ONE}user: [connect, stay]\non_error: stop");
    let scenario = parsed(&scenario);
    let target = server(|stream| serve(stream, echo));
    let with = |url: String| LoadOptions {
        target: Some(url.parse().unwrap()),
        cores: Some(1),
        ..LoadOptions::default()
    };
    let run = run_scenario(&scenario, &with(format!("ws://{target}")));
    assert_eq!(
        run.last.connect_failed.get(ErrorKind::UpgradeStatus.with(429)),
        1,
        "{:?}",
        run.last.connect_failed
    );
    let error = LoadPlan::new(&scenario, &with(format!("tcp://{target}"))).unwrap_err();
    assert!(error.to_string().contains("`ws://`"), "{error}");
}

#[test]
fn the_counters_of_a_load_over_websockets_add_up() {
    let target = server(|stream| serve(stream, echo));
    let text = format!(
        "target: ws://{target}/\nload: [{{arrivals: {{rate: 100/s, for: 1s}}}}]\n\
         user:\n  - connect\n  - repeat: {{times: 3, do: [send: \"${{counter}}\", \
         expect: {{bytes: 1, skip_others: true}}, wait: 20ms ±50%]}}\n  - close\n"
    );
    let run = run_text(&text);
    let counters = &run.last.counters;
    assert_eq!(run.last.errors.total(), 0, "{:?}", run.last.errors);
    assert_eq!(counters.users_finished, counters.users_started);
    assert_eq!(
        (counters.messages_sent, counters.messages_answered),
        (counters.users_started * 3, counters.users_started * 3)
    );
}
