//! The server before the upgrade.

use throng_base::Instant;
use throng_proto::Session;

use crate::support::{LIMITS, REQUEST, frame, masked, open_server, request, server};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn requests_are_answered_in_order_and_the_connection_stays() {
    let mut talk = server(false);
    talk.receive(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\nPOST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(talk.said, ["GET /a", "POST /b hello"]);
    let ok = "HTTP/1.1 200 OK\r\ncontent-length: ";
    assert_eq!(text(&talk.sent()), format!("{ok}0\r\n\r\n{ok}5\r\n\r\nhello"));
    talk.receive(
        b"HEAD /c HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
    );
    assert_eq!(
        text(&talk.sent()),
        format!("{ok}5\r\nconnection: close\r\n\r\n"),
        "no body to HEAD"
    );
    talk.receive(b"GET /d HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(talk.said.len(), 3, "nothing is read after close");
}

#[test]
fn a_late_answer_holds_the_next_request_back() {
    let mut talk = server(false);
    talk.receive(
        b"GET /late HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\nGET /third",
    );
    talk.receive(b" HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(talk.said, ["GET /late"]);
    assert_eq!(talk.session.deadline(), Instant::FAR, "who answers late has no deadline here");
    assert!(talk.session.server.respond(204, &[], b"", &mut talk.out));
    talk.wait_until(1);
    assert_eq!(talk.said, ["GET /late", "GET /next", "GET /third"]);
    assert!(text(&talk.out).starts_with("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK"));
}

#[test]
fn whoever_sends_much_before_the_answer_is_cut_off() {
    let mut talk = server(false);
    talk.receive(b"GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    talk.receive(&[b'x'; 1_000]);
    assert_eq!(talk.said, ["GET /late"]);
    talk.receive(b"y");
    assert_eq!(talk.said, ["GET /late", "failed Impatient"]);
    assert!(talk.out.is_empty(), "a status would be taken for the answer");
    assert!(!talk.session.server.respond(200, &[], b"late", &mut talk.out));
    assert!(talk.out.is_empty(), "the answer comes too late");
}

#[test]
fn bad_requests_are_answered_with_their_status() {
    let check = |bytes: &str, status: u16, what: &str| {
        let mut talk = server(false);
        talk.receive(bytes.as_bytes());
        assert_eq!(talk.said, [format!("failed Http({what})")], "{bytes}");
        let answer = text(&talk.out);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    };
    let long = "x".repeat(1_001);
    check("\x16\x03\x01 hello\r\n\r\n", 400, "Malformed");
    check("GET / HTTP/1.1\r\n\r\n", 400, "Host");
    check("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400, "ContentLength");
    check(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        411,
        "LengthRequired",
    );
    check("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n", 413, "BodyTooLarge");
    check(&format!("GET /{long}"), 414, "TargetTooLong");
    check(&format!("GET / HTTP/1.1\r\nHost: {long}"), 431, "HeadTooLarge");
    check("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "TransferEncoding");
    check("GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505, "Version");
}

#[test]
fn half_a_request_and_silence_is_answered_408() {
    let mut talk = server(false);
    talk.receive(b"GET / HTTP/1.1\r\nHo");
    talk.wait_until(9_999);
    assert!(talk.said.is_empty());
    talk.receive(b"st");
    talk.wait_until(10_000);
    assert_eq!(talk.said, ["failed Http(Timeout)"]);
    assert!(text(&talk.out).starts_with("HTTP/1.1 408 Request Timeout\r\n"));
}

#[test]
fn a_request_has_its_time_from_its_first_byte() {
    let mut talk = server(false);
    talk.wait_until(9_000).receive(b"GET /");
    talk.wait_until(18_000).receive(b"a");
    talk.wait_until(18_999);
    assert!(talk.said.is_empty());
    talk.wait_until(19_000);
    assert_eq!(talk.said, ["failed Http(Timeout)"], "more bytes give no more time");
}

#[test]
fn silence_is_closed_without_a_word() {
    let mut talk = server(false);
    talk.wait_until(10_000);
    assert_eq!((&talk.said[..], talk.out.len()), (&["failed Http(Timeout)".to_owned()][..], 0));
    let mut talk = server(false);
    talk.wait_until(9_000).receive(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    talk.wait_until(18_999);
    assert_eq!(talk.said, ["GET /a"], "each answer gives as much time again");
    talk.wait_until(19_000);
    assert_eq!(talk.said, ["GET /a", "failed Http(Timeout)"]);
}

#[test]
fn an_upgrade_answers_what_was_asked() {
    let mut talk = server(true);
    talk.receive(request("Sec-WebSocket-Protocol: chat, other\r\nSec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=10\r\n").as_bytes());
    let expected = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
        sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
        sec-websocket-extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=10\r\n\
        sec-websocket-protocol: chat\r\nserver: t\r\n\r\n";
    assert_eq!(text(&talk.out), expected);
    assert!(talk.session.server.is_open());
    assert!(!talk.session.server.is_deflated(), "a shared frame has a larger window");
    let mut talk = server(false);
    talk.receive(request("Sec-WebSocket-Extensions: permessage-deflate\r\n").as_bytes());
    assert!(!text(&talk.out).contains("permessage-deflate"));
}

#[test]
fn frames_behind_the_upgrade_are_read() {
    let bytes = [REQUEST.as_bytes(), &masked(0x81, b"early"), &masked(0x81, b"bird")].concat();
    for cut in 0..bytes.len() {
        let mut talk = server(false);
        talk.receive(&bytes[..cut]).receive(&bytes[cut..]);
        assert_eq!(talk.said, ["GET /socket?vsn=2.0.0", "text early", "text bird"], "cut at {cut}");
    }
}

#[test]
fn frames_before_a_late_upgrade_are_read_after_it() {
    let bytes = [masked(0x01, b"early"), masked(0x89, b"p"), masked(0x80, b" bird")].concat();
    for cut in 0..bytes.len() {
        let mut talk = server(false);
        talk.receive(REQUEST.replace("/socket?vsn=2.0.0", "/late").as_bytes());
        talk.receive(&bytes[..cut]);
        let request = REQUEST.replace("/socket?vsn=2.0.0", "/late");
        let mut other = server(false);
        other.receive(request.as_bytes());
        assert_eq!(talk.said, ["GET /late"]);
        let upgrade = late_upgrade(&talk.session.server);
        talk.session.server.accept(&upgrade, None, &[], false, &mut talk.out);
        talk.sent();
        talk.wait_until(1);
        talk.receive(&bytes[cut..]);
        assert_eq!(talk.said, ["GET /late", "ping p", "text early bird"], "cut at {cut}");
        assert_eq!(talk.out, frame(0x8a, b"p", false));
    }
}

fn late_upgrade(
    server: &throng_proto::websocket::WebSocketServer,
) -> throng_proto::websocket::UpgradeRequest {
    let mut bytes = REQUEST.as_bytes().to_vec();
    let mut scratch = throng_proto::websocket::Scratch::default();
    let mut input = throng_proto::Input::new(&mut bytes);
    let mut another =
        throng_proto::websocket::WebSocketServer::new(Instant::ZERO, scratch.limits());
    let mut out = Vec::new();
    match another.next(Instant::ZERO, &mut input, &mut scratch, &mut out) {
        Some(throng_proto::websocket::ServerEvent::Request(request)) => {
            server.check_upgrade(&request).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_upgraded_is_told_why() {
    let check = |bytes: String, status: &str| {
        let mut talk = server(false);
        talk.receive(bytes.as_bytes());
        let answer = text(&talk.out);
        assert!(answer.starts_with(status), "{answer}");
        assert!(!talk.session.server.is_open());
        answer
    };
    check(REQUEST.replace("GET", "POST"), "HTTP/1.1 405 Method Not Allowed\r\nallow: GET\r\n");
    check(REQUEST.replace("HTTP/1.1", "HTTP/1.0"), "HTTP/1.1 400 ");
    check(REQUEST.replace("dGhl", "dGh"), "HTTP/1.1 400 ");
    let answer = check(REQUEST.replace("13", "12"), "HTTP/1.1 426 Upgrade Required\r\n");
    assert!(answer.contains("sec-websocket-version: 13\r\n"), "{answer}");
}

#[test]
fn an_idle_session_keeps_nothing() {
    // What a session keeps is in its debug form.
    let idle = format!("{:?}", open_server(false).session.server);
    assert!(idle.contains("unfinished: None"), "{idle}");
    let mut talk = open_server(false);
    for byte in masked(0x81, b"in pieces") {
        talk.receive(&[byte]);
    }
    assert_eq!(format!("{:?}", talk.session.server), idle);
    talk.receive(&masked(0x01, b"a"));
    assert_ne!(format!("{:?}", talk.session.server), idle);
    for byte in [masked(0x89, b"ping"), masked(0x80, b"")].concat() {
        talk.receive(&[byte]);
    }
    assert_eq!(format!("{:?}", talk.session.server), idle);
}

#[test]
fn where_one_path_takes_bodies_any_other_is_answered_413_before_its_body_comes() {
    let mut talk = server(false);
    talk.scratch = throng_proto::websocket::Scratch::new(LIMITS, 1).with_bodies_at("/poll");
    talk.receive(b"POST /poll?a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(talk.said, ["POST /poll?a hello"]);
    talk.sent();
    talk.receive(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(talk.said[1..], ["failed Http(BodyTooLarge)"]);
    assert!(text(&talk.sent()).starts_with("HTTP/1.1 413 "));
}
