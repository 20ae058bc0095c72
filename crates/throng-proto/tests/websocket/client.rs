//! The client: its events for a server's response and frames.

use throng_proto::HeldBudget;
use throng_proto::websocket::{ClientHandshake, DeflateOffer, Deflater, Scratch};

use crate::support::{HANDSHAKE, LIMITS, RESPONSE, connecting_client, frame, masked, open_client};

/// Checks the events of a client that began `handshake` and receives `response`, with every cut.
#[track_caller]
fn check(handshake: &ClientHandshake<'_>, response: &[u8], events: &[&str]) {
    for cut in 0..=response.len() {
        let mut harness = connecting_client(handshake);
        harness.receive(&response[..cut]).receive(&response[cut..]);
        assert_eq!(harness.events, events, "cut at {cut}");
        assert!(harness.out.is_empty());
    }
}

fn with(from: &str, to: &str) -> Vec<u8> {
    let response = RESPONSE.replace(from, to);
    assert_ne!(response, RESPONSE);
    response.into_bytes()
}

#[test]
fn the_request_is_that_of_the_rfc() {
    let mut out = Vec::new();
    let handshake = ClientHandshake {
        headers: &[("origin", "http://b")],
        subprotocols: &["chat", "superchat"],
        deflate: &[DeflateOffer::BROWSER],
        ..HANDSHAKE
    };
    throng_proto::websocket::WebSocketClient::new().begin(&handshake, &mut out);
    let expected = "GET /chat?x=1 HTTP/1.1\r\nhost: a:1\r\n\
        upgrade: websocket\r\nconnection: Upgrade\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\
        sec-websocket-extensions: permessage-deflate; client_max_window_bits\r\n\
        sec-websocket-protocol: chat, superchat\r\norigin: http://b\r\n\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_response_opens_and_the_frames_after_it_are_read() {
    check(&HANDSHAKE, RESPONSE.as_bytes(), &["opened None"]);
    let bytes = [RESPONSE.as_bytes(), &frame(0x81, b"welcome", false)].concat();
    check(&HANDSHAKE, &bytes, &["opened None", "text welcome"]);
    let interim = [&b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"[..], &bytes].concat();
    check(&HANDSHAKE, &interim, &["opened None", "text welcome"]);
}

#[test]
fn a_choice_that_was_not_offered_is_refused() {
    let protocols = ClientHandshake { subprotocols: &["a", "chat"], ..HANDSHAKE };
    let deflate = ClientHandshake { deflate: &[DeflateOffer::BROWSER], ..HANDSHAKE };
    check(
        &protocols,
        &with("Upgrade:", "Sec-WebSocket-Protocol: chat\r\nUpgrade:"),
        &["opened Some(\"chat\")"],
    );
    check(
        &protocols,
        &with("Upgrade:", "Sec-WebSocket-Protocol: b\r\nUpgrade:"),
        &["failed ResponseSubprotocol"],
    );
    check(
        &HANDSHAKE,
        &with("Upgrade:", "Sec-WebSocket-Protocol: b\r\nUpgrade:"),
        &["failed ResponseSubprotocol"],
    );
    // Another case, two subprotocols, an empty field.
    for subprotocol in ["CHAT", "a, chat", ""] {
        let field = format!("Sec-WebSocket-Protocol: {subprotocol}\r\nUpgrade:");
        check(&protocols, &with("Upgrade:", &field), &["failed ResponseSubprotocol"]);
    }
    let extension =
        |value: &str| with("Upgrade:", &format!("Sec-WebSocket-Extensions: {value}\r\nUpgrade:"));
    for (value, event) in [
        ("permessage-deflate", "opened, contexts: server true, client true"),
        ("permessage-deflate; server_no_context_takeover", FORGETS),
        ("permessage-deflate; server_max_window_bits=16", "failed ResponseDeflate"),
        ("x-webkit-deflate-frame", "failed ResponseExtension"),
        ("", "opened None"),
    ] {
        check(&deflate, &extension(value), &[event]);
        let not_offered = if value.is_empty() { event } else { "failed ResponseExtension" };
        check(&HANDSHAKE, &extension(value), &[not_offered]);
    }
}

const FORGETS: &str = "opened, contexts: server false, client true";

/// A message is cut at every byte, and each end refers to the messages before.
#[test]
fn contexts_are_taken_over_from_message_to_message() {
    let deflate = ClientHandshake { deflate: &[DeflateOffer::BROWSER], ..HANDSHAKE };
    let response = with("Upgrade:", "Sec-WebSocket-Extensions: permessage-deflate\r\nUpgrade:");
    // RFC 7692 section 7.2.3.2: "Hello" twice, the second time as a reference.
    let frames = [
        frame(0xc1, &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00], false),
        frame(0xc1, &[0xf2, 0x00, 0x11, 0x00, 0x00], false),
        frame(0x81, b"Hello", false),
        frame(0xc1, &[0xf2, 0x00, 0x11, 0x00, 0x00], false),
    ];
    let events = ["text Hello"; 4];
    let bytes = frames.concat();
    for cut in 0..=bytes.len() {
        let mut harness = connecting_client(&deflate);
        harness.receive(&response).events.clear();
        harness.receive(&bytes[..cut]).receive(&bytes[cut..]);
        assert_eq!(harness.events, events, "cut at {cut}");
    }
    let mut harness = connecting_client(&deflate);
    harness.receive(&response);
    let (mut deflater, mut sent) = (Deflater::new(), Vec::new());
    let text = "a text that is sent again and again, with some more of it. ".repeat(3);
    for _ in 0..3 {
        harness.session.text(&text, [0; 4], Some(&mut deflater), &mut harness.out);
        sent.push(harness.sent());
    }
    assert!(sent[0][0] == 0xc1 && sent[1].len() < 20, "{sent:?}");
    assert_eq!(sent[1], sent[2]);
}

#[test]
fn a_wrong_response_is_no_upgrade() {
    check(&HANDSHAKE, &with("s3pP", "S3pP"), &["failed ResponseKey"]);
    check(&HANDSHAKE, &with("Sec-WebSocket-Accept", "X"), &["failed ResponseKey"]);
    check(&HANDSHAKE, &with("WebSocket\r\n", "h2c\r\n"), &["failed ResponseUpgrade"]);
    check(&HANDSHAKE, &with("keep-alive, Upgrade", "keep-alive"), &["failed ResponseUpgrade"]);
    check(&HANDSHAKE, b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno", &["refused 403"]);
    check(&HANDSHAKE, b"SSH-2.0-OpenSSH\r\n", &["failed ResponseInvalid"]);
    let mut harness = connecting_client(&HANDSHAKE);
    harness.receive(format!("HTTP/1.1 101 x\r\nx: {}", "y".repeat(1_000)).as_bytes());
    assert_eq!(harness.events, ["failed ResponseHeadTooLong"]);
}

#[test]
fn pings_and_closes_are_answered_with_a_mask() {
    let mut harness = open_client();
    harness.receive(&frame(0x89, b"hello", false));
    assert_eq!(harness.events, ["ping hello"]);
    let pong = harness.sent();
    assert_eq!(pong[..2], [0x8a, 0x85]);
    let payload: Vec<u8> =
        pong[6..].iter().zip(pong[2..6].iter().cycle()).map(|(byte, key)| byte ^ key).collect();
    assert_eq!(payload, b"hello");
    harness.receive(&frame(0x88, b"\x03\xe8bye", false));
    assert_eq!(harness.events[1..], ["closed Some(1000) bye"]);
    assert_eq!(harness.out[..2], [0x88, 0x82]);
}

#[test]
fn a_masked_frame_fails() {
    let mut harness = open_client();
    harness.receive(&masked(0x81, b"hello"));
    assert_eq!(harness.events, ["failed Masked"]);
    assert_eq!(harness.out[..2], [0x88, 0x80 | (2 + 50)]);
}

#[test]
fn the_client_that_is_over_the_budget_of_its_core_fails_and_no_other() {
    let budget = HeldBudget::new(10_000);
    let open = || {
        let mut harness = open_client();
        harness.scratch = Scratch::new(LIMITS, 1).with_budget(budget.clone());
        harness
    };
    let [mut large, mut small, mut idle] = [open(), open(), open()];
    // A message in fragments, one in a frame that arrives in pieces, and whole ones.
    large.receive(&frame(0x01, &[b'x'; 3_000], false));
    let begun = frame(0x82, &[0; 2_000], false);
    small.receive(&begun[..1_000]);
    assert_eq!(budget.messages(), 2);
    large.receive(&frame(0x00, &[b'x'; 3_000], false));
    assert_eq!(large.events, ["failed HeldTooMuch"]);
    assert_eq!(large.out[..2], [0x88, 0x80 | (2 + 75)], "a close frame with 1009");
    small.receive(&begun[1_000..]);
    idle.receive(&frame(0x82, &[0; 150_000], false));
    assert_eq!((small.events.len(), idle.events.len()), (1, 1), "{:?}", small.events);
    assert_eq!((budget.used_bytes(), budget.messages(), budget.refused()), (0, 0, 1));
    // A connection that is dropped holds no more.
    small.receive(&begun[..1_000]);
    drop(small);
    assert_eq!((budget.used_bytes(), budget.messages()), (0, 0));
}

#[test]
fn the_contexts_of_compressed_messages_count_in_the_budget() {
    let budget = HeldBudget::new(100_000);
    let open = || {
        let deflate = ClientHandshake { deflate: &[DeflateOffer::BROWSER], ..HANDSHAKE };
        let mut harness = connecting_client(&deflate);
        harness.scratch = Scratch::new(LIMITS, 1).with_budget(budget.clone());
        let value = "Sec-WebSocket-Extensions: permessage-deflate\r\nUpgrade:";
        harness.receive(&with("Upgrade:", value));
        harness
    };
    // A stored block of 20,000 bytes, which no compression makes shorter.
    let mut payload = vec![0, 0x20, 0x4e, 0xdf, 0xb1];
    payload.extend([b'x'; 20_000]);
    payload.push(0);
    let mut message = frame(0x82, &payload, false);
    message[0] |= 0x40;
    let mut users: Vec<_> = (0..4).map(|_| open()).collect();
    for (at, user) in users.iter_mut().enumerate() {
        user.receive(&message);
        let event = user.events.last().unwrap();
        assert!(event.starts_with("binary 20000 bytes"), "user {at}: {event}");
        assert!(budget.used_bytes() >= 20_000 * (at + 1), "{budget:?}");
    }
    let mut last = open();
    last.receive(&message);
    assert_eq!(last.events.last().unwrap(), "failed HeldTooMuch");
    assert_eq!((budget.refused(), budget.messages()), (1, 0));
    drop((users, last));
    assert_eq!(budget.used_bytes(), 0, "a connection that is dropped holds no more");
}

#[test]
fn the_head_of_a_response_counts_in_the_budget() {
    let budget = HeldBudget::new(1_000);
    let mut harness = connecting_client(&HANDSHAKE);
    harness.scratch = Scratch::new(LIMITS, 1).with_budget(budget.clone());
    harness.receive(&RESPONSE.as_bytes()[..20]);
    assert!(budget.used_bytes() >= 20, "{budget:?}");
    assert_eq!(harness.session.response_so_far(), &RESPONSE.as_bytes()[..20]);
    harness.receive(&RESPONSE.as_bytes()[20..]);
    assert_eq!((harness.events.len(), budget.used_bytes()), (1, 0));
    let mut endless = connecting_client(&HANDSHAKE);
    endless.scratch = Scratch::new(LIMITS, 1).with_budget(budget.clone());
    (0..9).for_each(|_| _ = endless.receive(b"HTTP/1.1 101 x\r\nx: ").receive(&[b'y'; 90]));
    assert_eq!(endless.events[..1], ["failed HeldTooMuch"]);
    assert_eq!(budget.used_bytes(), 0);
}

#[test]
fn what_a_client_sends_is_masked() {
    let mut harness = open_client();
    harness.session.text("Hello", [0x37, 0xfa, 0x21, 0x3d], None, &mut harness.out);
    assert_eq!(harness.sent(), masked(0x81, b"Hello"));
    harness.session.close(1000, "bye", [0x37, 0xfa, 0x21, 0x3d], &mut harness.out);
    harness.session.binary(b"never", [0; 4], None, &mut harness.out);
    assert_eq!(harness.sent(), masked(0x88, b"\x03\xe8bye"));
    harness.wait_until(0).wait_until(1).wait_until(5_001);
    assert_eq!(harness.events, ["failed CloseTimeout"]);
}
