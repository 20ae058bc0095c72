//! HTTP heads and bodies: the same bytes as requests to a server and as the answer to a client.

use throng_proto::http::{self, Request};
use throng_proto::websocket::{Client, ClientEvent, Scratch, Server, ServerEvent};

use super::transcript::{self, LIMITS, NOW, Then};
use super::websocket_server::handshake;

/// What is read does not depend on how the bytes arrive, and a request written anew is read as the same.
pub fn check(bytes: &[u8]) {
    requests(bytes);
    answer(bytes);
}

fn requests(bytes: &[u8]) {
    let begin = |_: &mut Scratch, _: &mut Vec<u8>| Server::new(NOW, &LIMITS);
    let hear = |server: &Server, event: ServerEvent<'_>| {
        let then = match event {
            ServerEvent::Request(request) => {
                if server.check_upgrade(&request).is_ok() {
                    assert_eq!((request.method, request.body), ("GET", &b""[..]));
                }
                assert!(request.body.len() <= LIMITS.body_bytes_max);
                look_at_the_query(&request);
                Then::Go
            }
            ServerEvent::Failed(_) => Then::Stop,
            _ => panic!("a frame without an upgrade: {event:?}"),
        };
        (format!("{event:?}"), then)
    };
    let answer = |server: &mut Server, out: &mut Vec<u8>| {
        let stays = server.respond(200, &[("x", "y")], b"body", out);
        if stays { Then::Go } else { Then::Stop }
    };
    transcript::check(bytes, begin, hear, answer);
}

/// Decoding never yields more than it was given, and decoded text without `%` and `+` is left alone.
fn look_at_the_query(request: &Request<'_>) {
    for (name, value) in request.query().into_iter().flat_map(http::query_pairs) {
        for text in [&*name, &*value] {
            if !text.contains(['%', '+']) {
                assert_eq!(http::percent_decode(text), text);
            }
        }
    }
}

fn answer(bytes: &[u8]) {
    let begin = |_: &mut Scratch, _: &mut Vec<u8>| {
        let mut client = Client::new();
        client.begin(&handshake(true), &mut Vec::new());
        client
    };
    let hear = |_: &Client, event: ClientEvent<'_>| {
        // Behind an upgrade come frames: they are another target's.
        assert!(matches!(
            event,
            ClientEvent::Opened { .. } | ClientEvent::Refused(_) | ClientEvent::Failed(_)
        ));
        (format!("{event:?}"), Then::Stop)
    };
    transcript::check(bytes, begin, hear, |_, _| Then::Go);
}
