//! The server: its events for frames.

use throng_base::Instant;
use throng_proto::Session;
use throng_proto::websocket::{
    Deflater, Opcode, Violation, WebSocketClient, WebSocketServer, encode_deflated, encode_frame,
};

use crate::support::{Harness, frame, masked, open_client, open_server};

/// Checks the events for `bytes`, and the bytes that the server sends, with every cut.
#[track_caller]
fn check(deflate: bool, bytes: &[u8], events: &[&str], sent: &[u8]) {
    let mut whole = open_server(deflate);
    whole.receive(bytes);
    assert_eq!(whole.events, events);
    assert_eq!(whole.out, sent, "{:?}", String::from_utf8_lossy(&whole.out));
    let step = (bytes.len() / 200).max(1);
    for cut in (1..bytes.len()).step_by(step) {
        let mut halves = open_server(deflate);
        halves.receive(&bytes[..cut]).receive(&bytes[cut..]);
        assert_eq!((&halves.events, &halves.out), (&whole.events, &whole.out), "cut at {cut}");
    }
    let mut single = open_server(deflate);
    for byte in bytes {
        single.receive(std::slice::from_ref(byte));
    }
    assert_eq!((&single.events, &single.out), (&whole.events, &whole.out), "byte by byte");
}

/// Checks like [`check`] that the connection fails with `code` after `events`.
#[track_caller]
fn check_failure(deflate: bool, bytes: &[u8], events: &[&str], code: u16) {
    let mut harness = open_server(deflate);
    harness.receive(bytes);
    assert_eq!(harness.events, events);
    assert_eq!(harness.out[0], 0x88, "a close frame and nothing before it");
    assert_eq!(harness.out[2..4], code.to_be_bytes());
    let out = harness.sent();
    check(deflate, bytes, events, &out);
    harness.receive(&masked(0x81, b"later"));
    assert_eq!(
        (harness.events.len(), harness.out.len()),
        (events.len(), 0),
        "nothing is read after it"
    );
}

#[test]
fn a_session_is_24_bytes() {
    assert!(size_of::<WebSocketServer>() <= 24, "{}", size_of::<WebSocketServer>());
    assert!(size_of::<WebSocketClient>() <= 24, "{}", size_of::<WebSocketClient>());
}

#[test]
fn messages_of_every_length_are_read() {
    for length in [0, 1, 2, 125, 126, 127, 128, 65_535, 65_536, 200_000] {
        let payload: Vec<u8> = (0..length).map(|index: usize| (index * 7) as u8).collect();
        let mut harness = open_server(false);
        harness.receive(&masked(0x82, &payload));
        let whole = harness.events.clone();
        assert_eq!(whole.len(), 1);
        if length > 100 {
            assert!(whole[0].starts_with(&format!("binary {length} bytes")), "{}", whole[0]);
        }
        let bytes = masked(0x82, &payload);
        for piece in [1_000, 1_001, 1_448, 65_536] {
            let mut harness = open_server(false);
            for piece in bytes.chunks(piece) {
                harness.receive(piece);
            }
            assert_eq!(harness.events, whole, "{length} bytes in pieces of {piece}");
        }
    }
}

#[test]
fn many_messages_in_one_receive_are_many_events() {
    let bytes = [masked(0x81, b"one"), masked(0x82, b"two"), masked(0x81, "drei ä".as_bytes())];
    check(false, &bytes.concat(), &["text one", "binary two", "text drei ä"], b"");
}

#[test]
fn fragments_are_reassembled_around_control_frames() {
    let bytes = [
        masked(0x01, "a ä".as_bytes()),
        masked(0x89, b"are you there?"),
        masked(0x00, b""),
        masked(0x8a, b"unasked"),
        masked(0x80, b" b"),
        masked(0x02, b"x"),
        masked(0x80, b""),
    ];
    let pong = frame(0x8a, b"are you there?", false);
    let events = ["ping are you there?", "pong unasked", "text a ä b", "binary x"];
    check(false, &bytes.concat(), &events, &pong);
}

#[test]
fn a_character_may_be_cut_by_fragments() {
    let text = "κόσμε 😀".as_bytes();
    for cut in 0..text.len() {
        let bytes = [masked(0x01, &text[..cut]), masked(0x80, &text[cut..])].concat();
        check(false, &bytes, &["text κόσμε 😀"], b"");
    }
}

#[test]
fn frames_that_break_a_rule_fail_with_1002() {
    let cases: [(&str, Vec<u8>, &[&str]); 14] = [
        ("Unmasked", frame(0x81, b"hello", false), &[]),
        ("ReservedBit", masked(0xc1, b"hello"), &[]),
        ("ReservedBit", masked(0xa1, b"hello"), &[]),
        ("ReservedBit", masked(0x99, b"hello"), &[]),
        ("ReservedOpcode", masked(0x83, b"hello"), &[]),
        ("ReservedOpcode", masked(0x8f, b""), &[]),
        ("ControlFragmented", masked(0x09, b"hello"), &[]),
        ("ControlTooLong", masked(0x89, &[0; 126]), &[]),
        ("ControlTooLong", masked(0x88, &[0; 70_000]), &[]),
        ("Continuation", masked(0x80, b"hello"), &[]),
        ("Continuation", [masked(0x81, b"a"), masked(0x00, b"b")].concat(), &["text a"]),
        ("Interleaved", [masked(0x01, b"a"), masked(0x81, b"b")].concat(), &[]),
        ("CloseCode", masked(0x88, &[3]), &[]),
        ("Length", [&[0x82, 0xfe, 0, 5, 0, 0, 0, 0][..], b"hello"].concat(), &[]),
    ];
    for (what, bytes, before) in cases {
        let failed = format!("failed {what}");
        let events: Vec<&str> = before.iter().copied().chain([&failed[..]]).collect();
        check_failure(false, &bytes, &events, 1002);
    }
}

#[test]
fn close_codes_are_echoed_or_refused() {
    for code in
        [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 3000, 3999, 4000, 4999u16]
    {
        let payload = [&code.to_be_bytes()[..], b"why"].concat();
        let events = format!("closed Some({code}) why");
        check(false, &masked(0x88, &payload), &[&events], &frame(0x88, &code.to_be_bytes(), false));
    }
    check(false, &masked(0x88, b""), &["closed None"], &[0x88, 0]);
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535u16] {
        check_failure(false, &masked(0x88, &code.to_be_bytes()), &["failed CloseCode"], 1002);
    }
    check_failure(false, &masked(0x88, &[3, 232, 0xc0]), &["failed NotUtf8"], 1007);
}

#[test]
fn text_that_is_not_utf8_fails_with_1007() {
    for bad in [&b"\xff"[..], b"a\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xce"] {
        check_failure(false, &masked(0x81, bad), &["failed NotUtf8"], 1007);
    }
}

#[test]
fn a_text_fails_at_its_first_bad_byte() {
    let text = [&b"good "[..], &[0xce, 0xba, 0xf4]].concat();
    // An incomplete frame, and an incomplete message: the next byte decides.
    for bytes in [
        masked(0x81, &[&text[..], &[0x90; 100]].concat()),
        masked(0x01, &[&text[..], &[0x90]].concat()),
    ] {
        let mut harness = open_server(false);
        harness.receive(&bytes[..6 + text.len()]);
        assert!(harness.events.is_empty(), "it could still become UTF-8");
        harness.receive(&bytes[6 + text.len()..=6 + text.len()]);
        assert_eq!(harness.events, ["failed NotUtf8"]);
    }
    let bytes = [masked(0x01, &[0xce]), masked(0x00, b""), masked(0x00, b"a")].concat();
    check_failure(false, &bytes, &["failed NotUtf8"], 1007);
}

#[test]
fn frames_and_messages_beyond_the_limit_fail_with_1009_before_they_are_kept() {
    let frame_header = [&[0x82, 0xff][..], &200_001u64.to_be_bytes()].concat();
    check_failure(false, &frame_header, &["failed FrameTooLarge"], 1009);
    let second = [&[0x80, 0xff][..], &150_001u64.to_be_bytes(), &[0; 4]].concat();
    let bytes = [masked(0x02, &[0; 150_000]), second].concat();
    let mut harness = open_server(false);
    harness.receive(&bytes);
    assert_eq!(harness.events, ["failed MessageTooLarge"]);
    assert_eq!(harness.out[2..4], 1009u16.to_be_bytes());
    let exactly = [masked(0x02, &[0; 150_000]), masked(0x80, &[0; 150_000])].concat();
    let mut harness = open_server(false);
    harness.receive(&exactly);
    assert!(harness.events[0].starts_with("binary 300000"), "{:?}", harness.events);
}

#[test]
fn compressed_messages_are_inflated_whole_or_in_fragments() {
    // RFC 7692 section 7.2.3.1 and 7.2.3.2.
    let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    let bytes = [
        masked(0xc1, &hello),
        masked(0x41, &hello[..3]),
        masked(0x89, b""),
        masked(0x80, &hello[3..]),
        masked(0xc2, &[0]),
        masked(0x81, b"as it is"),
    ];
    let events = ["text Hello", "ping", "text Hello", "binary", "text as it is"];
    check(true, &bytes.concat(), &events, &[0x8a, 0]);
    // Each message is independent: this one refers to a window that is not kept.
    let bytes = [masked(0xc1, &hello), masked(0xc1, &[0xf2, 0x00, 0x11, 0x00, 0x00])].concat();
    check_failure(true, &bytes, &["text Hello", "failed NotDeflate"], 1007);
}

#[test]
fn each_kind_of_bad_compression_has_its_own_violation() {
    check_failure(true, &masked(0xc1, &[0xff; 20]), &["failed NotDeflate"], 1007);
    check_failure(true, &masked(0xc9, b""), &["failed ReservedBit"], 1002);
    let bytes = [masked(0x41, &[0xf2, 0x48]), masked(0xc0, &[0])].concat();
    check_failure(true, &bytes, &["failed ReservedBit"], 1002);
    // Stored block of one byte that is not UTF-8.
    check_failure(true, &masked(0xc1, &[0, 1, 0, 0xfe, 0xff, 0xff, 0]), &["failed NotUtf8"], 1007);
}

#[test]
fn a_deflate_bomb_fails_with_1009() {
    let mut bomb = Vec::new();
    // A new value each 97 bytes: they inflate 70-fold, less than the limit of that.
    let value = |at: u32| (at / 97).wrapping_mul(2_654_435_761).to_be_bytes()[0];
    let bytes: Vec<u8> = (0..300_001).map(value).collect();
    encode_deflated(Opcode::Binary, &bytes, &mut Deflater::new(), &mut bomb);
    let payload = bomb[4..].to_vec();
    assert!((3_001..20_000).contains(&bomb.len()), "{}", bomb.len());
    let mut harness = open_server(true);
    harness.receive(&masked(0xc2, &payload));
    assert_eq!(harness.events, ["failed MessageTooLarge"]);
    assert_eq!(harness.out[2..4], 1009u16.to_be_bytes());
}

#[test]
fn a_message_that_inflates_by_too_much_fails_with_1009_unless_it_is_small() {
    for (zeros, event) in [(65_536, "binary"), (65_537, "failed InflateRatio")] {
        let mut bomb = Vec::new();
        encode_deflated(Opcode::Binary, &vec![0; zeros], &mut Deflater::new(), &mut bomb);
        let mut harness = open_server(true);
        // The header of so short a frame has two or four bytes.
        let head = if bomb[1] < 126 { 2 } else { 4 };
        harness.receive(&masked(0xc2, &bomb[head..]));
        assert!(harness.events[0].starts_with(event), "{:?}", harness.events[0].get(..40));
    }
}

#[test]
fn one_frame_serves_all_receivers() {
    let text = concat!(
        r#"[null,null,"rooms:lobby","new_msg",{"body":"hello hello hello hello hello hello "#,
        r#"hello hello hello hello hello hello, everyone"}]"#
    );
    let (mut plain, mut deflated, mut deflater) = (Vec::new(), Vec::new(), Deflater::new());
    encode_frame(Opcode::Text, text.as_bytes(), &mut plain);
    encode_deflated(Opcode::Text, text.as_bytes(), &mut deflater, &mut deflated);
    assert!(deflated.len() < plain.len());
    let harness = open_server(true);
    let mut out = Vec::new();
    harness.session.server.text(text, Some(&mut deflater), &mut out);
    assert_eq!(out, deflated);
    out.clear();
    harness.session.server.text(text, None, &mut out);
    assert_eq!(out, plain);
    out.clear();
    let harness = open_server(false);
    harness.session.server.text(text, Some(&mut deflater), &mut out);
    assert_eq!(out, plain, "nothing is compressed without negotiation");
    let mut client = open_client();
    client.receive(&plain);
    assert_eq!(client.events.len(), 1);
    assert!(client.events[0].starts_with(&format!("text {} bytes", text.len())));
}

#[test]
fn the_answer_to_a_close_frame_has_a_timeout() {
    let mut harness = open_server(false);
    harness.session.server.close(1001, "restart", &mut harness.out);
    harness.session.server.close(1001, "twice", &mut harness.out);
    harness.session.server.text("never", None, &mut harness.out);
    assert_eq!(harness.sent(), frame(0x88, b"\x03\xe9restart", false));
    assert!(!harness.session.server.is_open());
    harness.wait_until(1_000);
    harness.receive(&[masked(0x81, b"on its way"), masked(0x89, b"ping")].concat());
    assert_eq!(harness.events, ["text on its way", "ping ping"]);
    assert!(harness.out.is_empty(), "nothing is sent after a close frame");
    harness.wait_until(5_999);
    assert_eq!(harness.events.len(), 2);
    harness.wait_until(6_000);
    assert_eq!(harness.events[2..], ["failed CloseTimeout"]);

    let mut harness = open_server(false);
    harness.session.server.close(1001, "restart", &mut harness.out);
    harness.sent();
    harness.receive(&masked(0x88, b"\x03\xe9"));
    assert_eq!(
        (&harness.events[..], harness.out.len()),
        (&["closed Some(1001)".to_owned()][..], 0)
    );
    assert_eq!(harness.session.deadline(), Instant::FAR);
}

#[test]
fn an_open_session_needs_no_timer() {
    let mut harness: Harness<_> = open_server(false);
    assert_eq!(harness.session.deadline(), Instant::FAR);
    harness.receive(&masked(0x81, b"a"));
    assert_eq!(harness.session.deadline(), Instant::FAR);
}

#[test]
fn an_incomplete_message_has_a_minute_and_pings_do_not_extend_it() {
    let whole = masked(0x81, b"hello");
    let longer = masked(0x82, &[7; 70_000]);
    for begun in [
        &masked(0x01, b"a fragment")[..],
        &whole[..1],
        &whole[..7],
        &longer[..70_000],
        &[masked(0x01, b"one"), masked(0x00, b"two")].concat(),
    ] {
        let mut harness = open_server(false);
        harness.wait_until(1_000);
        harness.receive(begun);
        if begun.len() > whole.len() && begun[0] == 0x01 {
            for second in 2..60 {
                harness.wait_until(second * 1_000);
                harness.receive(&masked(0x89, b"ping"));
                harness.receive(&masked(0x8a, b"pong"));
            }
        }
        harness.wait_until(60_999);
        assert!(
            harness.events.iter().all(|event| event.starts_with("pi") || event.starts_with("po"))
        );
        harness.events.clear();
        harness.out.clear();
        harness.wait_until(61_000);
        assert_eq!(harness.events, ["failed MessageTimeout"]);
        let (out, description) = (harness.sent(), Violation::MessageTimeout.description());
        let close = [&1008u16.to_be_bytes()[..], description.as_bytes()].concat();
        assert_eq!(out, frame(0x88, &close, false));
        harness.receive(&masked(0x00, b"too late"));
        assert_eq!(harness.events.len(), 1);
    }
}

#[test]
fn every_message_has_its_own_deadline() {
    let mut harness = open_server(false);
    for second in 1..200 {
        // One message ends and the next begins in the same receive, never a minute after the start
        // of the first.
        harness.wait_until(second * 30_000);
        harness.receive(
            &[masked(0x80, b"end"), masked(0x01, b"begin")].concat()
                [if second == 1 { 9 } else { 0 }..],
        );
    }
    assert_eq!(harness.events.len(), 198);
    assert!(harness.events.iter().all(|event| event == "text beginend"));
    harness.receive(&masked(0x80, b"end"));
    assert_eq!(harness.session.deadline(), Instant::FAR);
}

#[test]
fn the_deadline_of_our_close_frame_replaces_that_of_a_message() {
    let mut harness = open_server(false);
    harness.receive(&masked(0x01, b"a fragment"));
    harness.session.server.close(1001, "", &mut harness.out);
    harness.wait_until(1_000);
    harness.wait_until(5_999);
    assert_eq!(harness.events.len(), 0);
    harness.wait_until(6_000);
    assert_eq!(harness.events, ["failed CloseTimeout"]);
}
