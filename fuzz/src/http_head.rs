//! HTTP heads and bodies: the same bytes as requests to a server and as the response to a client.

use throng_proto::http::{self, Request};
use throng_proto::websocket::{
    ClientEvent, Scratch, ServerEvent, WebSocketClient, WebSocketLimits, WebSocketServer,
};
use throng_proto::{Input, Session};

use super::transcript::{self, LIMITS, NOW, Then};
use super::websocket_server::handshake;

/// Checks that the result does not depend on how the bytes arrive, and that an encoded request
/// round-trips.
pub fn check(bytes: &[u8]) {
    // A reader parses a head when a line ends; otherwise it might miss an error in the last line.
    let bytes = [bytes, b"\n\n"].concat();
    requests(&bytes);
    response(&bytes);
}

fn requests(bytes: &[u8]) {
    let begin = |_: &mut Scratch, _: &mut Vec<u8>| WebSocketServer::new(NOW, &LIMITS);
    let on_event = |server: &WebSocketServer, event: ServerEvent<'_>| {
        let then = match event {
            ServerEvent::Request(request) => {
                if server.check_upgrade(&request).is_ok() {
                    assert_eq!((request.method, request.body), ("GET", &b""[..]));
                }
                assert!(request.body.len() <= LIMITS.body_bytes_max);
                check_query(&request);
                check_round_trip(&request);
                Then::Go
            }
            // A head that is both too long and malformed may have either error.
            ServerEvent::Failed(_) => return ("failed".to_owned(), Then::Fault),
            _ => panic!("a frame without an upgrade: {event:?}"),
        };
        (format!("{event:?}"), then)
    };
    let respond = |server: &mut WebSocketServer, out: &mut Vec<u8>| {
        let keep_alive = server.respond(200, &[("x", "y")], b"body", out);
        if keep_alive { Then::Go } else { Then::Stop }
    };
    transcript::check(bytes, begin, on_event, respond);
}

/// Checks that the request round-trips, with a body of known length.
fn check_round_trip(request: &Request<'_>) {
    let mut bytes = format!("{} {} HTTP/1.1\r\n", request.method, request.target).into_bytes();
    for (name, value) in request.headers.iter() {
        if !["content-length", "expect"].iter().any(|own| name.eq_ignore_ascii_case(own)) {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
    }
    if request.header("host").is_none() {
        bytes.extend_from_slice(b"Host: again\r\n");
    }
    bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", request.body.len()).as_bytes());
    bytes.extend_from_slice(request.body);
    let mut scratch = Scratch::new(WebSocketLimits { head_bytes_max: 4 << 10, ..LIMITS }, 1);
    let mut input = Input::new(&mut bytes);
    match WebSocketServer::new(NOW, &LIMITS).next(NOW, &mut input, &mut scratch, &mut Vec::new()) {
        Some(ServerEvent::Request(again)) => {
            assert_eq!(
                (again.method, again.target, again.body),
                (request.method, request.target, request.body)
            );
        }
        // HTTP/1.0 permits several hosts, and the new request has one or two more fields.
        Some(ServerEvent::Failed(_)) => {
            let hosts = request
                .headers
                .iter()
                .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
                .count();
            assert!(hosts > 1 || request.headers.iter().count() > 62);
        }
        event => panic!("{event:?}"),
    }
}

/// Checks that text without `%` and `+` stays the same.
fn check_query(request: &Request<'_>) {
    for (name, value) in request.query().into_iter().flat_map(http::query_pairs) {
        for text in [&*name, &*value] {
            if !text.contains(['%', '+']) {
                assert_eq!(http::percent_decode(text), text);
            }
        }
    }
}

fn response(bytes: &[u8]) {
    let begin = |_: &mut Scratch, _: &mut Vec<u8>| {
        let mut client = WebSocketClient::new();
        client.begin(&handshake(true), &mut Vec::new());
        client
    };
    let on_event = |_: &WebSocketClient, event: ClientEvent<'_>| {
        // Frames follow an upgrade; another target covers them.
        assert!(matches!(
            event,
            ClientEvent::Opened { .. } | ClientEvent::Refused(_) | ClientEvent::Failed(_)
        ));
        match event {
            ClientEvent::Failed(_) => ("failed".to_owned(), Then::Fault),
            _ => (format!("{event:?}"), Then::Stop),
        }
    };
    transcript::check(bytes, begin, on_event, |_, _| Then::Go);
}
