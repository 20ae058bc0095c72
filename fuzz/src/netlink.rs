//! The kernel's responses over netlink, which an emulation may write differently.

use throng_driver::netlink::{DiagMessage, parse_addresses, parse_diag};

/// Checks that a parser stops at the end or at the first malformed message.
pub fn check(bytes: &[u8]) {
    // The parser skips responses to other requests, so the test uses the sequence number that the
    // input contains.
    let sequence = bytes.get(8..12).map_or(0, |at| u32::from_ne_bytes(at.try_into().unwrap()));
    let messages: Vec<_> = parse_diag(bytes, sequence).collect();
    assert!(messages.len() <= bytes.len() / HEADER_BYTES + 1);
    let is_last_alone =
        messages.iter().rposition(Result::is_err).is_none_or(|at| at + 1 == messages.len());
    assert!(is_last_alone, "no message follows a malformed one");
    for message in messages {
        if let Ok(DiagMessage::Socket(diag)) = message {
            assert_eq!(diag.local.is_ipv4(), diag.peer.is_ipv4());
        }
    }
    let mut found = Vec::new();
    let _ = parse_addresses(bytes, sequence, &mut found);
    for network in found {
        let shown = network.to_string();
        let (address, prefix) = shown.split_once('/').unwrap();
        assert!(network.contains(address.parse().unwrap()), "{shown}");
        assert!((1..=128).contains(&prefix.parse::<u8>().unwrap()), "{shown}");
    }
}

const HEADER_BYTES: usize = 16;
