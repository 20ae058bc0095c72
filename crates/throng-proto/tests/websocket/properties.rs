//! Properties of all inputs.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use proptest::prelude::*;
use throng_proto::websocket::{ClientHandshake, DeflateOffer, Deflater, Scratch, WebSocketLimits};

use crate::support::{
    DescribeEvents, HANDSHAKE, Harness, LIMITS, REQUEST, connecting_client, masked, open_client,
    open_server, server,
};

/// Generates frames of a client: mostly legal, sometimes not.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let legal = vec![0x81u8, 0x82, 0x01, 0x02, 0x00, 0x80, 0x89, 0x8a, 0xc1, 0xc2, 0x41];
    let first = prop_oneof![
        4 => prop::sample::select(legal),
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

/// Delivers `bytes` in pieces of these sizes, in a cycle.
fn receive<S: DescribeEvents>(harness: &mut Harness<S>, mut bytes: &[u8], sizes: &[usize]) {
    for &size in sizes.iter().cycle() {
        if bytes.is_empty() {
            return;
        }
        let (piece, rest) = bytes.split_at(size.clamp(1, bytes.len()));
        harness.receive(piece);
        bytes = rest;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn cutting_frames_anywhere_changes_nothing(
        bytes in frames(),
        sizes in prop::collection::vec(1usize..60, 1..20),
    ) {
        let (mut whole, mut pieces) = (open_server(true), open_server(true));
        whole.receive(&bytes);
        receive(&mut pieces, &bytes, &sizes);
        // In pieces, a text fails at its first bad byte; whole, it fails with its frame. The events
        // before are the same.
        prop_assert_eq!(&whole.events, &pieces.events);
        prop_assert_eq!(&whole.out, &pieces.out);
    }

    #[test]
    fn cutting_requests_anywhere_changes_nothing(
        bodies in prop::collection::vec("[a-z]{0,100}", 0..5),
        tail in frames(),
        sizes in prop::collection::vec(1usize..200, 1..20),
    ) {
        let mut bytes = Vec::new();
        for body in &bodies {
            let length = body.len();
            let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
            bytes.extend(head.bytes().chain(body.bytes()));
        }
        bytes.extend(REQUEST.bytes());
        bytes.extend(tail);
        let (mut whole, mut pieces) = (server(true), server(true));
        whole.receive(&bytes);
        receive(&mut pieces, &bytes, &sizes);
        prop_assert!(whole.events.len() > bodies.len());
        prop_assert_eq!(&whole.events, &pieces.events);
        prop_assert_eq!(&whole.out, &pieces.out);
    }

    #[test]
    fn a_server_decodes_the_frames_of_a_client(
        text in "\\PC{0,400}",
        bytes in prop::collection::vec(any::<u8>(), 0..70_000),
        mask in any::<[u8; 4]>(),
        size in 1usize..5_000,
    ) {
        let (mut client, mut deflater, mut sent) = (open_client(), Deflater::new(), Vec::new());
        client.session.text(&text, mask, Some(&mut deflater), &mut sent);
        client.session.binary(&bytes, mask, None, &mut sent);
        client.session.ping(b"p", mask, &mut sent);
        let mut server = open_server(false);
        receive(&mut server, &sent, &[size]);
        let mut expected = open_server(false);
        let frames = [masked(0x81, text.as_bytes()), masked(0x82, &bytes), masked(0x89, b"p")];
        expected.receive(&frames.concat());
        prop_assert_eq!(&server.events, &expected.events);
        prop_assert_eq!(server.events.len(), 3);
    }

    #[test]
    fn compressed_messages_round_trip(text in "[a-d]{0,3000}|\\PC{0,200}") {
        let server = open_server(true);
        let (mut deflater, mut sent) = (Deflater::new(), Vec::new());
        server.session.server.text(&text, Some(&mut deflater), &mut sent);
        let handshake = ClientHandshake { deflate: &[DeflateOffer::BROWSER], ..HANDSHAKE };
        let mut client = connecting_client(&handshake);
        let extension = "Sec-WebSocket-Extensions: permessage-deflate; \
                         server_no_context_takeover\r\nUpgrade:";
        let response = crate::support::RESPONSE.replace("Upgrade:", extension);
        client.receive(response.as_bytes()).receive(&sent);
        let mut expected = open_client();
        expected.receive(&crate::support::frame(0x81, text.as_bytes(), false));
        prop_assert_eq!(&client.events[1..], &expected.events[..]);
    }

    /// The judge is a compressor and a decompressor that keep their own state from message to
    /// message, as browsers and most servers have them.
    #[test]
    fn contexts_are_those_of_a_stream(
        texts in prop::collection::vec("[a-d]{0,900}|\\PC{0,60}|(abcdefgh){100,9000}", 1..9),
        bits in 9u8..=15,
        size in 1usize..5_000,
    ) {
        let handshake = ClientHandshake { deflate: &[DeflateOffer::BROWSER], ..HANDSHAKE };
        let mut client = connecting_client(&handshake);
        // A stream of one text shrinks by more than a server lets a client send.
        let limits = WebSocketLimits { inflate_ratio_max: usize::MAX, ..LIMITS };
        client.scratch = Scratch::new(limits, 1);
        let extension = format!(
            "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits={bits}; \
             client_max_window_bits={bits}\r\nUpgrade:"
        );
        client.receive(crate::support::RESPONSE.replace("Upgrade:", &extension).as_bytes());
        client.events.clear();
        let mut deflate = Compress::new_with_window_bits(Compression::default(), false, bits);
        let mut inflate = Decompress::new_with_window_bits(false, bits);
        let mut deflater = Deflater::new();
        for text in &texts {
            let mut payload = Vec::with_capacity(text.len() + 1_000);
            deflate.compress_vec(text.as_bytes(), &mut payload, FlushCompress::Sync).unwrap();
            match payload.len() {
                // RFC 7692 section 7.2.3.6.
                0 => payload.push(0),
                length => payload.truncate(length - 4),
            }
            let frames = crate::support::frame(0xc1, &payload, false);
            receive(&mut client, &frames, &[size]);

            client.session.text(text, [0; 4], Some(&mut deflater), &mut client.out);
            let frame = client.sent();
            let head = match frame[1] & 0x7f { 126 => 8, 127 => 14, _ => 6 };
            if frame[0] == 0x81 {
                prop_assert_eq!(&frame[head..], text.as_bytes());
                continue;
            }
            let message = [&frame[head..], &[0, 0, 0xff, 0xff]].concat();
            let mut inflated = Vec::with_capacity(text.len() + 1);
            inflate.decompress_vec(&message, &mut inflated, FlushDecompress::Sync).unwrap();
            prop_assert_eq!(inflated, text.as_bytes());
        }
        let mut expected = open_client();
        for text in &texts {
            expected.receive(&crate::support::frame(0x81, text.as_bytes(), false));
        }
        prop_assert_eq!(&client.events, &expected.events);
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        sizes in prop::collection::vec(1usize..60, 1..5),
    ) {
        receive(&mut open_server(true), &bytes, &sizes);
        receive(&mut open_server(false), &bytes, &sizes);
        receive(&mut open_client(), &bytes, &sizes);
        receive(&mut server(false), &bytes, &sizes);
        receive(&mut connecting_client(&HANDSHAKE), &bytes, &sizes);
    }
}
