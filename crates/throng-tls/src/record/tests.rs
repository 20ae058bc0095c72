//! Records of one end opened by the other, and what must not open.

use std::collections::HashSet;

use proptest::prelude::*;

use super::header::{HEADER_BYTES, record_bytes};
use super::vectors::{CLIENT, SERVER, bytes};
use super::*;
use crate::TlsError;
use crate::keys::tests::{SUITES, pair};
use crate::keys::{ConnKeys, HalfMaterial, KeyMaterial, SmallKeys, Way};
use crate::suite::Suite;

/// Seals data with the keys of an end.
fn seal(keys: &mut dyn ConnKeys, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Sealer::new(keys.half(Way::Send)).data([data], &mut out).unwrap();
    out
}

/// Seals one record, be it empty.
fn seal_one(keys: &mut dyn ConnKeys, typ: ContentType, plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Sealer::new(keys.half(Way::Send)).one(typ, plain, &mut out).unwrap();
    out
}

/// Checks the header of a record and opens it.
fn open(keys: &mut dyn ConnKeys, record: &[u8]) -> Result<(ContentType, Vec<u8>), TlsError> {
    let phase = Phase::Open(keys.state().suite.version());
    let length = record_bytes(*record.first_chunk::<HEADER_BYTES>().unwrap(), phase)?;
    assert_eq!(length, record.len(), "the record is not whole");
    let mut record = record.to_vec();
    let (typ, plain) = Opener::new(keys.half(Way::Receive)).open(&mut record)?;
    Ok((typ, record[plain].to_vec()))
}

#[test]
fn records_are_those_of_rfc_8448_byte_for_byte() {
    let plain: Vec<u8> = (0..50).collect();
    let suite = Suite::Tls13Aes128;
    for (ours, theirs) in [(&CLIENT, &SERVER), (&SERVER, &CLIENT)] {
        let half =
            |trace: &vectors::Trace| HalfMaterial::from_secret(suite, &trace.secret, trace.seq);
        let agreed = KeyMaterial { suite, send: half(ours), receive: half(theirs) };
        let mut keys = SmallKeys::new(&agreed, true);
        assert_eq!(seal(&mut keys, &plain), bytes(ours.record));
        assert_eq!(seal_one(&mut keys, ContentType::Alert, &[1, 0]), bytes(ours.close));
        assert_eq!(open(&mut keys, &bytes(theirs.record)), Ok((ContentType::Data, plain.clone())));
        assert_eq!(open(&mut keys, &bytes(theirs.close)), Ok((ContentType::Alert, vec![1, 0])));
    }
}

#[test]
fn many_frames_fill_few_records() {
    for suite in SUITES {
        let [mut client, mut server] = pair(suite);
        let frames: Vec<Vec<u8>> = (0..60u8).map(|at| vec![at; 700]).collect();
        let mut out = Vec::new();
        let mut sealer = Sealer::new(client.half(Way::Send));
        sealer.data(frames.iter().map(Vec::as_slice), &mut out).unwrap();
        assert_eq!(sealer.records, 3, "60 frames of 700 bytes have less than 3 * 16 KiB");
        let (mut plain, mut at) = (Vec::new(), 0);
        while at < out.len() {
            let phase = Phase::Open(suite.version());
            let length = record_bytes(*out[at..].first_chunk().unwrap(), phase).unwrap();
            plain.extend(open(&mut *server, &out[at..at + length]).unwrap().1);
            at += length;
        }
        assert_eq!(plain, frames.concat());
    }
}

#[test]
fn a_record_with_any_bit_changed_is_refused_or_not_complete() {
    for suite in SUITES {
        let [mut client, _] = pair(suite);
        let record = seal(&mut *client, b"12 bytes of x");
        let mut incomplete = 0;
        for bit in 0..record.len() * 8 {
            let [_, mut server] = pair(suite);
            let mut changed = record.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let phase = Phase::Open(suite.version());
            match record_bytes(*changed.first_chunk().unwrap(), phase) {
                Ok(length) if length > changed.len() => incomplete += 1,
                Ok(length) => {
                    let mut cut = changed[..length].to_vec();
                    let opened = Opener::new(server.half(Way::Receive)).open(&mut cut);
                    assert_eq!(opened, Err(TlsError::BadRecordMac), "{suite:?}, bit {bit}");
                }
                Err(_) => assert!(bit < HEADER_BYTES * 8, "{suite:?}, bit {bit}"),
            }
        }
        assert!((8..=13).contains(&incomplete), "{suite:?}: {incomplete} lengths");
    }
}

#[test]
fn a_record_is_opened_once_and_in_order() {
    for suite in SUITES {
        let [mut client, mut server] = pair(suite);
        let records = [b"one", b"two"].map(|data| seal(&mut *client, data));
        assert!(open(&mut *server, &records[0]).is_ok());
        let [_, mut again] = pair(suite);
        assert!(open(&mut *again, &records[0]).is_ok());
        assert_eq!(open(&mut *again, &records[0]), Err(TlsError::BadRecordMac), "replayed");
        let [_, mut early] = pair(suite);
        assert_eq!(open(&mut *early, &records[1]), Err(TlsError::BadRecordMac), "reordered");
        let [mut own, _] = pair(suite);
        assert_eq!(open(&mut *own, &records[0]), Err(TlsError::BadRecordMac), "reflected");
    }
}

#[test]
fn lengths_have_the_limits_of_the_standard() {
    for suite in SUITES {
        let [mut client, mut server] = pair(suite);
        let most = vec![1; PLAINTEXT_BYTES_MAX];
        let record = seal_one(&mut *client, ContentType::Data, &most);
        assert_eq!(open(&mut *server, &record), Ok((ContentType::Data, most.clone())));
        let more = vec![1; PLAINTEXT_BYTES_MAX + 1];
        let record = seal_one(&mut *client, ContentType::Data, &more);
        assert_eq!(open(&mut *server, &record), Err(TlsError::PlaintextTooLong));
        let empty = seal_one(&mut *client, ContentType::Data, &[]);
        assert_eq!(open(&mut *server, &empty).unwrap().1, [0_u8; 0]);
    }
    let header = |length: u16| [23, 3, 3, (length >> 8) as u8, length as u8];
    for (suite, over) in [(Suite::Tls13Aes128, 256), (Suite::Tls12Aes128, 2048)] {
        let (phase, most) = (Phase::Open(suite.version()), (1 << 14) + over);
        assert_eq!(record_bytes(header(most), phase), Ok(usize::from(most) + HEADER_BYTES));
        assert_eq!(record_bytes(header(most + 1), phase), Err(TlsError::RecordTooLong));
    }
}

#[test]
fn a_record_that_is_too_short_does_not_open() {
    for suite in SUITES {
        for length in 0..=header::TAG_BYTES + suite.explicit_nonce_bytes() {
            let [_, mut server] = pair(suite);
            let mut record = vec![0; HEADER_BYTES + length];
            record[..5].copy_from_slice(&[23, 3, 3, 0, length as u8]);
            assert_eq!(open(&mut *server, &record), Err(TlsError::BadRecordMac));
        }
    }
}

/// Seals an inner plaintext of TLS 1.3 as it is, padding included.
fn seal_inner(keys: &mut dyn ConnKeys, inner: &[u8]) -> Vec<u8> {
    let mut half = keys.half(Way::Send);
    let (key, sequence) = (half.expand(), half.next(9).unwrap());
    let [high, low] = ((inner.len() + 16) as u16).to_be_bytes();
    let header = [23, 3, 3, high, low];
    let nonce = ring::aead::Nonce::assume_unique_for_key(sequence.nonce);
    let mut text = inner.to_vec();
    key.seal_in_place_append_tag(nonce, ring::aead::Aad::from(header), &mut text).unwrap();
    [&header[..], &text].concat()
}

#[test]
fn padding_is_removed_and_content_types_are_checked() {
    let suite = Suite::Tls13Aes128;
    let check = |inner: &[u8]| {
        let [mut client, mut server] = pair(suite);
        open(&mut *server, &seal_inner(&mut *client, inner))
    };
    for padding in [0, 1, 255, PLAINTEXT_BYTES_MAX - 3] {
        let inner = [b"abc\x17", &vec![0; padding][..]].concat();
        assert_eq!(check(&inner), Ok((ContentType::Data, b"abc".to_vec())), "{padding}");
    }
    let too_long = [b"abc\x17", &vec![0; PLAINTEXT_BYTES_MAX - 2][..]].concat();
    assert_eq!(check(&too_long), Err(TlsError::PlaintextTooLong));
    assert_eq!(check(&[]), Err(TlsError::NoContentType));
    assert_eq!(check(&[0; 40]), Err(TlsError::NoContentType));
    assert_eq!(check(b"abc\x18"), Err(TlsError::UnknownContentType));
}

#[test]
fn header_of_an_open_connection_is_compared_with_the_standard() {
    for suite in SUITES {
        let phase = Phase::Open(suite.version());
        for (at, error) in [(1, TlsError::RecordVersion), (2, TlsError::RecordVersion)] {
            let mut header = [23, 3, 3, 0, 30];
            header[at] = 1;
            assert_eq!(record_bytes(header, phase), Err(error));
        }
        let unprotected = record_bytes([21, 3, 3, 0, 2], phase);
        assert_eq!(unprotected.is_err(), suite.is_13(), "an alert of TLS 1.2 is sealed as one");
    }
    let get = *b"GET /";
    assert_eq!(record_bytes(get, Phase::First), Err(TlsError::NotTls(get)));
}

#[test]
fn a_key_seals_as_many_records_as_it_may() {
    for suite in SUITES {
        let [mut client, mut server] = pair(suite);
        let before = suite.update_after().min(suite.records_max()) - 1;
        for (keys, way) in [(&mut client, Way::Send), (&mut server, Way::Receive)] {
            keys.half(way).set_records(before);
        }
        let mut out = Vec::new();
        let mut sealer = Sealer::new(client.half(Way::Send));
        sealer.data([&b"last"[..]], &mut out).unwrap();
        assert_eq!(open(&mut *server, &out).unwrap().1, b"last");
        out.clear();
        let next = sealer.data([&b"next"[..]], &mut out);
        if suite.is_13() {
            // A KeyUpdate without a request, then data with the next key.
            assert_eq!((next, sealer.updates), (Ok(()), 1));
            let update = record_bytes(*out.first_chunk().unwrap(), Phase::First).unwrap();
            let message = open(&mut *server, &out[..update]).unwrap();
            assert_eq!(message, (ContentType::Handshake, vec![24, 0, 0, 1, 0]));
            server.half(Way::Receive).update();
            assert_eq!(open(&mut *server, &out[update..]).unwrap().1, b"next");
        } else {
            assert_eq!((next, &out[..]), (Err(TlsError::KeysExhausted), &[][..]));
            // The alert that says so still goes out.
            sealer.one(ContentType::Alert, &[1, 0], &mut out).unwrap();
            assert_eq!(open(&mut *server, &out).unwrap().0, ContentType::Alert);
        }
    }
}

proptest! {
    /// Nonces, over key updates and both ends of several connections.
    #[test]
    fn no_key_seals_two_records_with_the_same_nonce(
        suite in prop::sample::select(&SUITES[..]),
        steps in prop::collection::vec((any::<bool>(), 0..5u8), 1..200),
    ) {
        let mut ends = pair(suite);
        let mut seen = HashSet::new();
        for (is_server, step) in steps {
            let keys = &mut ends[usize::from(is_server)];
            let mut half = keys.half(Way::Send);
            if step == 0 && suite.is_13() {
                half.update();
            }
            for _ in 0..step {
                let key = half.key_bytes();
                prop_assert!(seen.insert((key, half.next(u64::MAX).unwrap().nonce)));
            }
        }
    }

    #[test]
    fn data_of_any_length_arrives(
        suite in prop::sample::select(&SUITES[..]),
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3_000), 0..20),
        cut in 1..5_000usize,
    ) {
        let [mut client, mut server] = pair(suite);
        let mut out = Vec::new();
        let mut sealer = Sealer::new(client.half(Way::Send));
        sealer.data(pieces.iter().map(Vec::as_slice), &mut out).unwrap();
        let mut opener = Opener::new(server.half(Way::Receive));
        let (mut kept, mut plain) = (Vec::new(), Vec::new());
        for bytes in out.chunks(cut) {
            let mut input = [&kept[..], bytes].concat();
            let mut records = Records::new(&mut input);
            while let Some(at) = records.next(Phase::Open(suite.version())).unwrap() {
                let (_, text) = opener.open(records.bytes(at.clone())).unwrap();
                records.keep(at.start + text.start..at.start + text.end);
            }
            let (opened, rest) = (records.plain_bytes(), records.rest_bytes());
            plain.extend_from_slice(&input[..opened]);
            kept = input[input.len() - rest..].to_vec();
        }
        prop_assert_eq!(plain, pieces.concat());
    }
}
