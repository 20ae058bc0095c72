//! What holds for all inputs.

use proptest::prelude::*;
use throng_proto::websocket::Deflater;

use crate::support::{
    HANDSHAKE, REQUEST, Talk, Told, begun_client, masked, open_client, open_server, server,
};

/// Frames as a client might send them: mostly legal, sometimes not.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let first = prop_oneof![
        4 => prop::sample::select(vec![0x81u8, 0x82, 0x01, 0x02, 0x00, 0x80, 0x89, 0x8a, 0xc1, 0xc2, 0x41]),
        1 => any::<u8>(),
    ];
    let payload = prop_oneof![
        "\\PC{0,40}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..300),
        Just(vec![0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00]),
    ];
    prop::collection::vec((first, payload), 0..12).prop_map(|frames| {
        frames.iter().flat_map(|(first, payload)| masked(*first, payload)).collect()
    })
}

/// Gives `bytes` in pieces of these sizes, over and over.
fn receive<S: Told>(talk: &mut Talk<S>, mut bytes: &[u8], sizes: &[usize]) {
    for &size in sizes.iter().cycle() {
        if bytes.is_empty() {
            return;
        }
        let (piece, rest) = bytes.split_at(size.clamp(1, bytes.len()));
        talk.receive(piece);
        bytes = rest;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn cutting_frames_anywhere_changes_nothing(bytes in frames(), sizes in prop::collection::vec(1usize..60, 1..20)) {
        let (mut whole, mut pieces) = (open_server(true), open_server(true));
        whole.receive(&bytes);
        receive(&mut pieces, &bytes, &sizes);
        // A text that fails in pieces fails at its first bad byte; whole, it is its frame that fails. What
        // was said before is the same.
        prop_assert_eq!(&whole.said, &pieces.said);
        prop_assert_eq!(&whole.out, &pieces.out);
    }

    #[test]
    fn cutting_requests_anywhere_changes_nothing(bodies in prop::collection::vec("[a-z]{0,100}", 0..5), tail in frames(), sizes in prop::collection::vec(1usize..200, 1..20)) {
        let mut bytes = Vec::new();
        for body in &bodies {
            bytes.extend(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len()).bytes());
        }
        bytes.extend(REQUEST.bytes());
        bytes.extend(tail);
        let (mut whole, mut pieces) = (server(true), server(true));
        whole.receive(&bytes);
        receive(&mut pieces, &bytes, &sizes);
        prop_assert!(whole.said.len() > bodies.len());
        prop_assert_eq!(&whole.said, &pieces.said);
        prop_assert_eq!(&whole.out, &pieces.out);
    }

    #[test]
    fn what_a_client_encodes_a_server_decodes(text in "\\PC{0,400}", bytes in prop::collection::vec(any::<u8>(), 0..70_000), mask in any::<[u8; 4]>(), size in 1usize..5_000) {
        let (client, mut deflater, mut sent) = (open_client(), Deflater::new(), Vec::new());
        client.session.text(&text, mask, Some(&mut deflater), &mut sent);
        client.session.binary(&bytes, mask, None, &mut sent);
        client.session.ping(b"p", mask, &mut sent);
        let mut server = open_server(false);
        receive(&mut server, &sent, &[size]);
        let mut expected = open_server(false);
        expected.receive(&[masked(0x81, text.as_bytes()), masked(0x82, &bytes), masked(0x89, b"p")].concat());
        prop_assert_eq!(&server.said, &expected.said);
        prop_assert_eq!(server.said.len(), 3);
    }

    #[test]
    fn what_is_compressed_comes_back(text in "[a-d]{0,3000}|\\PC{0,200}") {
        let server = open_server(true);
        let (mut deflater, mut sent) = (Deflater::new(), Vec::new());
        server.session.server.text(&text, Some(&mut deflater), &mut sent);
        let handshake = throng_proto::websocket::ClientHandshake { deflate: true, ..HANDSHAKE };
        let mut client = begun_client(&handshake);
        let answer = crate::support::ANSWER.replace("Upgrade:", "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\nUpgrade:");
        client.receive(answer.as_bytes()).receive(&sent);
        let mut expected = open_client();
        expected.receive(&crate::support::frame(0x81, text.as_bytes(), false));
        prop_assert_eq!(&client.said[1..], &expected.said[..]);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), sizes in prop::collection::vec(1usize..60, 1..5)) {
        receive(&mut open_server(true), &bytes, &sizes);
        receive(&mut open_server(false), &bytes, &sizes);
        receive(&mut open_client(), &bytes, &sizes);
        receive(&mut server(false), &bytes, &sizes);
        receive(&mut begun_client(&HANDSHAKE), &bytes, &sizes);
    }
}
