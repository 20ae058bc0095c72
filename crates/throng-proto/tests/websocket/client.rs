//! What a client makes of a server's answer and frames.

use throng_proto::websocket::ClientHandshake;

use crate::support::{ANSWER, HANDSHAKE, begun_client, frame, masked, open_client};

/// What a client that began `handshake` makes of `answer`, wherever it is cut.
#[track_caller]
fn check(handshake: &ClientHandshake<'_>, answer: &[u8], said: &[&str]) {
    for cut in 0..=answer.len() {
        let mut talk = begun_client(handshake);
        talk.receive(&answer[..cut]).receive(&answer[cut..]);
        assert_eq!(talk.said, said, "cut at {cut}");
        assert!(talk.out.is_empty());
    }
}

fn with(from: &str, to: &str) -> Vec<u8> {
    let answer = ANSWER.replace(from, to);
    assert_ne!(answer, ANSWER);
    answer.into_bytes()
}

#[test]
fn the_request_is_that_of_the_rfc() {
    let mut out = Vec::new();
    let handshake = ClientHandshake {
        headers: &[("origin", "http://b")],
        subprotocols: &["chat", "superchat"],
        deflate: true,
        ..HANDSHAKE
    };
    throng_proto::websocket::WebSocketClient::new().begin(&handshake, &mut out);
    let expected = "GET /chat?x=1 HTTP/1.1\r\nhost: a:1\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\
        sec-websocket-extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover; client_max_window_bits\r\n\
        sec-websocket-protocol: chat, superchat\r\norigin: http://b\r\n\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn an_answer_opens_and_frames_behind_it_are_read() {
    check(&HANDSHAKE, ANSWER.as_bytes(), &["opened None"]);
    let bytes = [ANSWER.as_bytes(), &frame(0x81, b"welcome", false)].concat();
    check(&HANDSHAKE, &bytes, &["opened None", "text welcome"]);
    let interim = [&b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"[..], &bytes].concat();
    check(&HANDSHAKE, &interim, &["opened None", "text welcome"]);
}

#[test]
fn what_was_not_offered_is_refused() {
    let protocols = ClientHandshake { subprotocols: &["a", "chat"], ..HANDSHAKE };
    let deflate = ClientHandshake { deflate: true, ..HANDSHAKE };
    check(
        &protocols,
        &with("Upgrade:", "Sec-WebSocket-Protocol: chat\r\nUpgrade:"),
        &["opened Some(\"chat\")"],
    );
    check(
        &protocols,
        &with("Upgrade:", "Sec-WebSocket-Protocol: b\r\nUpgrade:"),
        &["failed AnswerSubprotocol"],
    );
    check(
        &HANDSHAKE,
        &with("Upgrade:", "Sec-WebSocket-Protocol: b\r\nUpgrade:"),
        &["failed AnswerSubprotocol"],
    );
    let forgets =
        "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\nUpgrade:";
    check(&deflate, &with("Upgrade:", forgets), &["opened None"]);
    check(&HANDSHAKE, &with("Upgrade:", forgets), &["failed AnswerExtension"]);
    let keeps = "Sec-WebSocket-Extensions: permessage-deflate\r\nUpgrade:";
    check(&deflate, &with("Upgrade:", keeps), &["failed AnswerExtension"]);
}

#[test]
fn a_wrong_answer_is_no_upgrade() {
    check(&HANDSHAKE, &with("s3pP", "S3pP"), &["failed AnswerKey"]);
    check(&HANDSHAKE, &with("Sec-WebSocket-Accept", "X"), &["failed AnswerKey"]);
    check(&HANDSHAKE, &with("WebSocket\r\n", "h2c\r\n"), &["failed AnswerUpgrade"]);
    check(&HANDSHAKE, &with("keep-alive, Upgrade", "keep-alive"), &["failed AnswerUpgrade"]);
    check(&HANDSHAKE, b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno", &["refused 403"]);
    check(&HANDSHAKE, b"SSH-2.0-OpenSSH\r\n", &["failed Answer"]);
    let mut talk = begun_client(&HANDSHAKE);
    talk.receive(format!("HTTP/1.1 101 x\r\nx: {}", "y".repeat(1_000)).as_bytes());
    assert_eq!(talk.said, ["failed Answer"]);
}

#[test]
fn pings_and_closes_are_answered_with_a_mask() {
    let mut talk = open_client();
    talk.receive(&frame(0x89, b"hello", false));
    assert_eq!(talk.said, ["ping hello"]);
    let pong = talk.sent();
    assert_eq!(pong[..2], [0x8a, 0x85]);
    let payload: Vec<u8> =
        pong[6..].iter().zip(pong[2..6].iter().cycle()).map(|(byte, key)| byte ^ key).collect();
    assert_eq!(payload, b"hello");
    talk.receive(&frame(0x88, b"\x03\xe8bye", false));
    assert_eq!(talk.said[1..], ["closed Some(1000) bye"]);
    assert_eq!(talk.out[..2], [0x88, 0x82]);
}

#[test]
fn a_masked_frame_fails() {
    let mut talk = open_client();
    talk.receive(&masked(0x81, b"hello"));
    assert_eq!(talk.said, ["failed Masked"]);
    assert_eq!(talk.out[..2], [0x88, 0x80 | (2 + 50)]);
}

#[test]
fn what_a_client_sends_is_masked() {
    let mut talk = open_client();
    talk.session.text("Hello", [0x37, 0xfa, 0x21, 0x3d], None, &mut talk.out);
    assert_eq!(talk.sent(), masked(0x81, b"Hello"));
    talk.session.close(1000, "bye", [0x37, 0xfa, 0x21, 0x3d], &mut talk.out);
    talk.session.binary(b"never", [0; 4], None, &mut talk.out);
    assert_eq!(talk.sent(), masked(0x88, b"\x03\xe8bye"));
    talk.wait_until(0).wait_until(1).wait_until(5_001);
    assert_eq!(talk.said, ["failed CloseTimeout"]);
}
