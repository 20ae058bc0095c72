//! The server before the upgrade.

use throng_base::Instant;
use throng_proto::Session;

use crate::support::{LIMITS, REQUEST, frame, masked, open_server, request, server};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn responses_follow_the_order_of_requests_and_the_connection_stays() {
    let mut harness = server(false);
    harness.receive(
        b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n\
          POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    );
    assert_eq!(harness.events, ["GET /a", "POST /b hello"]);
    let ok = "HTTP/1.1 200 OK\r\ncontent-length: ";
    assert_eq!(text(&harness.sent()), format!("{ok}0\r\n\r\n{ok}5\r\n\r\nhello"));
    harness.receive(
        b"HEAD /c HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
    );
    assert_eq!(
        text(&harness.sent()),
        format!("{ok}5\r\nconnection: close\r\n\r\n"),
        "no body to HEAD"
    );
    harness.receive(b"GET /d HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(harness.events.len(), 3, "nothing is read after close");
}

#[test]
fn the_next_request_waits_for_a_late_response() {
    let mut harness = server(false);
    harness.receive(
        b"GET /late HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\nGET /third",
    );
    harness.receive(b" HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(harness.events, ["GET /late"]);
    assert_eq!(harness.session.deadline(), Instant::FAR, "a late response has no deadline here");
    assert!(harness.session.server.respond(204, &[], b"", &mut harness.out));
    harness.wait_until(1);
    assert_eq!(harness.events, ["GET /late", "GET /next", "GET /third"]);
    assert!(text(&harness.out).starts_with("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK"));
}

#[test]
fn a_client_that_sends_much_before_the_response_is_disconnected() {
    let mut harness = server(false);
    harness.receive(b"GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    harness.receive(&[b'x'; 1_000]);
    assert_eq!(harness.events, ["GET /late"]);
    harness.receive(b"y");
    assert_eq!(harness.events, ["GET /late", "failed DataBeforeResponse"]);
    assert!(harness.out.is_empty(), "the client would take a status for the response");
    assert!(!harness.session.server.respond(200, &[], b"late", &mut harness.out));
    assert!(harness.out.is_empty(), "the response comes too late");
}

#[test]
fn bad_requests_are_answered_with_their_status() {
    let check = |bytes: &str, status: u16, what: &str| {
        let mut harness = server(false);
        harness.receive(bytes.as_bytes());
        assert_eq!(harness.events, [format!("failed Http({what})")], "{bytes}");
        let response = text(&harness.out);
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
        assert!(response.contains("connection: close"), "{response}");
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
fn an_incomplete_request_times_out_with_408() {
    let mut harness = server(false);
    harness.receive(b"GET / HTTP/1.1\r\nHo");
    harness.wait_until(9_999);
    assert!(harness.events.is_empty());
    harness.receive(b"st");
    harness.wait_until(10_000);
    assert_eq!(harness.events, ["failed Http(Timeout)"]);
    assert!(text(&harness.out).starts_with("HTTP/1.1 408 Request Timeout\r\n"));
}

#[test]
fn the_deadline_of_a_request_starts_at_its_first_byte() {
    let mut harness = server(false);
    harness.wait_until(9_000).receive(b"GET /");
    harness.wait_until(18_000).receive(b"a");
    harness.wait_until(18_999);
    assert!(harness.events.is_empty());
    harness.wait_until(19_000);
    assert_eq!(harness.events, ["failed Http(Timeout)"], "more bytes do not extend the deadline");
}

#[test]
fn an_idle_connection_is_closed_without_a_response() {
    let mut harness = server(false);
    harness.wait_until(10_000);
    assert_eq!(
        (&harness.events[..], harness.out.len()),
        (&["failed Http(Timeout)".to_owned()][..], 0)
    );
    let mut harness = server(false);
    harness.wait_until(9_000).receive(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    harness.wait_until(18_999);
    assert_eq!(harness.events, ["GET /a"], "each response restarts the deadline");
    harness.wait_until(19_000);
    assert_eq!(harness.events, ["GET /a", "failed Http(Timeout)"]);
}

#[test]
fn an_upgrade_response_fits_the_request() {
    let mut harness = server(true);
    harness.receive(
        request(
            "Sec-WebSocket-Protocol: chat, other\r\n\
             Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=10\r\n",
        )
        .as_bytes(),
    );
    let expected = "HTTP/1.1 101 Switching Protocols\r\n\
        upgrade: websocket\r\nconnection: Upgrade\r\n\
        sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
        sec-websocket-extensions: permessage-deflate; server_no_context_takeover; \
        client_no_context_takeover; server_max_window_bits=10\r\n\
        sec-websocket-protocol: chat\r\nserver: t\r\n\r\n";
    assert_eq!(text(&harness.out), expected);
    assert!(harness.session.server.is_open());
    assert!(!harness.session.server.is_deflated(), "a shared frame has a larger window");
    let mut harness = server(false);
    harness.receive(request("Sec-WebSocket-Extensions: permessage-deflate\r\n").as_bytes());
    assert!(!text(&harness.out).contains("permessage-deflate"));
}

#[test]
fn frames_after_the_upgrade_are_read() {
    let bytes = [REQUEST.as_bytes(), &masked(0x81, b"early"), &masked(0x81, b"bird")].concat();
    for cut in 0..bytes.len() {
        let mut harness = server(false);
        harness.receive(&bytes[..cut]).receive(&bytes[cut..]);
        assert_eq!(
            harness.events,
            ["GET /socket?vsn=2.0.0", "text early", "text bird"],
            "cut at {cut}"
        );
    }
}

#[test]
fn frames_before_a_late_upgrade_are_read_after_it() {
    let bytes = [masked(0x01, b"early"), masked(0x89, b"p"), masked(0x80, b" bird")].concat();
    for cut in 0..bytes.len() {
        let mut harness = server(false);
        harness.receive(REQUEST.replace("/socket?vsn=2.0.0", "/late").as_bytes());
        harness.receive(&bytes[..cut]);
        let request = REQUEST.replace("/socket?vsn=2.0.0", "/late");
        let mut other = server(false);
        other.receive(request.as_bytes());
        assert_eq!(harness.events, ["GET /late"]);
        let upgrade = late_upgrade(&harness.session.server);
        harness.session.server.accept(&upgrade, None, &[], false, &mut harness.out);
        harness.sent();
        harness.wait_until(1);
        harness.receive(&bytes[cut..]);
        assert_eq!(harness.events, ["GET /late", "ping p", "text early bird"], "cut at {cut}");
        assert_eq!(harness.out, frame(0x8a, b"p", false));
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
fn a_refused_upgrade_carries_its_reason() {
    let check = |bytes: String, status: &str| {
        let mut harness = server(false);
        harness.receive(bytes.as_bytes());
        let response = text(&harness.out);
        assert!(response.starts_with(status), "{response}");
        assert!(!harness.session.server.is_open());
        response
    };
    check(REQUEST.replace("GET", "POST"), "HTTP/1.1 405 Method Not Allowed\r\nallow: GET\r\n");
    check(REQUEST.replace("HTTP/1.1", "HTTP/1.0"), "HTTP/1.1 400 ");
    check(REQUEST.replace("dGhl", "dGh"), "HTTP/1.1 400 ");
    let response = check(REQUEST.replace("13", "12"), "HTTP/1.1 426 Upgrade Required\r\n");
    assert!(response.contains("sec-websocket-version: 13\r\n"), "{response}");
}

#[test]
fn an_idle_session_keeps_nothing() {
    // The debug form of a session shows the memory that it keeps.
    let idle = format!("{:?}", open_server(false).session.server);
    assert!(idle.contains("unfinished: None"), "{idle}");
    let mut harness = open_server(false);
    for byte in masked(0x81, b"in pieces") {
        harness.receive(&[byte]);
    }
    assert_eq!(format!("{:?}", harness.session.server), idle);
    harness.receive(&masked(0x01, b"a"));
    assert_ne!(format!("{:?}", harness.session.server), idle);
    for byte in [masked(0x89, b"ping"), masked(0x80, b"")].concat() {
        harness.receive(&[byte]);
    }
    assert_eq!(format!("{:?}", harness.session.server), idle);
}

#[test]
fn with_one_body_path_any_other_path_responds_413_before_the_body_arrives() {
    let mut harness = server(false);
    harness.scratch = throng_proto::websocket::Scratch::new(LIMITS, 1).with_bodies_at("/poll");
    harness.receive(b"POST /poll?a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(harness.events, ["POST /poll?a hello"]);
    harness.sent();
    harness.receive(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(harness.events[1..], ["failed Http(BodyTooLarge)"]);
    assert!(text(&harness.sent()).starts_with("HTTP/1.1 413 "));
}
