//! The vectors of Wycheproof, for the calls of ring that records and key updates make: the ciphers
//! through the keys of a connection, HKDF through the key schedule.

use ring::aead::{Aad, Nonce, Tag};
use ring::hmac;
use wycheproof::TestResult;
use wycheproof::aead::{TestName as Cipher, TestSet as CipherSet};
use wycheproof::hkdf::{TestName as Hkdf, TestSet as HkdfSet};
use zeroize::Zeroizing;

use crate::key_schedule::{SECRET_BYTES_MAX, expand};
use crate::keys::tests::build;
use crate::keys::{ConnKeys, HalfMaterial, KeyMaterial, Way};
use crate::suite::Suite;

/// Returns keys of a connection that has this key and this first nonce in both directions.
fn keys(suite: Suite, key: &[u8], iv: &[u8]) -> Box<dyn ConnKeys> {
    let half = || {
        let mut half = HalfMaterial {
            secret: Zeroizing::new([0; SECRET_BYTES_MAX]),
            key: Zeroizing::new([0; 32]),
            iv: iv.try_into().unwrap(),
            seq: 0,
        };
        half.key[..key.len()].copy_from_slice(key);
        half
    };
    build(&KeyMaterial { suite, send: half(), receive: half() }, true)
}

/// Seals and opens all vectors with the keys that this suite may have. Returns how many there are:
/// valid ones, and changed ones, which must not open.
fn check_cipher(suite: Suite, cipher: Cipher) -> (usize, usize) {
    let (mut valid, mut changed) = (0, 0);
    let groups = CipherSet::load(cipher).unwrap().test_groups;
    let is_ours = |bits: [usize; 3]| bits == [8 * suite.key_bytes(), 96, 128];
    for group in groups.iter().filter(|it| is_ours([it.key_size, it.nonce_size, it.tag_size])) {
        for test in &group.tests {
            let mut keys = keys(suite, &test.key, &test.nonce);
            let mut half = keys.half(Way::Send);
            let key = half.expand();
            let sequence = half.next(1).unwrap();
            assert_eq!(sequence.nonce, test.nonce[..], "the first nonce is the iv");
            let nonce = || Nonce::assume_unique_for_key(sequence.nonce);
            let aad = || Aad::from(&test.aad[..]);
            let mut sealed = [&test.ct[..], &test.tag].concat();
            let opened = key.open_in_place(nonce(), aad(), &mut sealed).ok();
            if test.result == TestResult::Invalid {
                assert_eq!(opened, None, "{suite:?}, vector {}: {}", test.tc_id, test.comment);
                changed += 1;
                continue;
            }
            assert_eq!(opened.as_deref(), Some(&test.pt[..]), "{suite:?}, vector {}", test.tc_id);
            let mut text = test.pt.to_vec();
            let tag: Tag = key.seal_in_place_separate_tag(nonce(), aad(), &mut text).unwrap();
            assert_eq!((&text[..], tag.as_ref()), (&test.ct[..], &test.tag[..]), "{suite:?}");
            valid += 1;
        }
    }
    (valid, changed)
}

#[test]
fn the_keys_of_each_suite_seal_and_open_the_vectors_of_its_cipher() {
    for (suite, cipher) in [
        (Suite::Tls13Aes128, Cipher::AesGcm),
        (Suite::Tls12Aes128, Cipher::AesGcm),
        (Suite::Tls13Aes256, Cipher::AesGcm),
        (Suite::Tls12Aes256, Cipher::AesGcm),
        (Suite::Tls13ChaCha20, Cipher::ChaCha20Poly1305),
        (Suite::Tls12ChaCha20, Cipher::ChaCha20Poly1305),
    ] {
        let (valid, changed) = check_cipher(suite, cipher);
        assert!(valid >= 39 && changed >= 27, "{suite:?}: only {valid} and {changed} vectors");
    }
}

/// HKDF-Extract (RFC 5869 section 2.2): rustls makes it in the handshake.
fn extract(suite: Suite, salt: &[u8], ikm: &[u8]) -> Vec<u8> {
    let hash = if suite.secret_bytes() == 48 { hmac::HMAC_SHA384 } else { hmac::HMAC_SHA256 };
    hmac::sign(&hmac::Key::new(hash, salt), ikm).as_ref().to_vec()
}

#[test]
fn secrets_expand_to_the_vectors_of_hkdf() {
    for (suite, hash) in [
        (Suite::Tls13Aes128, Hkdf::HkdfSha256),
        (Suite::Tls13ChaCha20, Hkdf::HkdfSha256),
        (Suite::Tls13Aes256, Hkdf::HkdfSha384),
    ] {
        let tests = HkdfSet::load(hash).unwrap().test_groups.into_iter().flat_map(|it| it.tests);
        let (mut valid, mut too_long) = (0, 0);
        for test in tests {
            let secret = extract(suite, &test.salt, &test.ikm);
            assert_eq!(secret.len(), suite.secret_bytes());
            let mut out = vec![0; test.size];
            let expanded = expand(suite, &secret, &[&test.info], &mut out);
            if test.result == TestResult::Invalid {
                assert!(expanded.is_err(), "{suite:?}, vector {}", test.tc_id);
                too_long += 1;
            } else {
                assert_eq!(out, test.okm[..], "{suite:?}, vector {}", test.tc_id);
                valid += 1;
            }
        }
        assert!(valid >= 80 && too_long >= 3, "{suite:?}: only {valid} and {too_long} vectors");
    }
}
