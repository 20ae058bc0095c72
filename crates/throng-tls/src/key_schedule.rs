//! The key schedule of TLS 1.3, as far as it is needed after the handshake (RFC 8446 section 7).

use ring::error::Unspecified;
use ring::hkdf::{KeyType, Prk};

use crate::suite::Suite;

/// Derives the key and the first nonce of a traffic secret.
///
/// "[sender]_write_key = HKDF-Expand-Label(Secret, "key", "", key_length)", and "iv" likewise
/// (section 7.3).
pub(crate) fn traffic_key(suite: Suite, secret: &[u8], key: &mut [u8], iv: &mut [u8]) {
    expand_label(suite, secret, b"key", key);
    expand_label(suite, secret, b"iv", iv);
}

/// Replaces a traffic secret by the next one.
///
/// "application_traffic_secret_N+1 = HKDF-Expand-Label(application_traffic_secret_N, "traffic upd",
/// "", Hash.length)" (section 7.2).
pub(crate) fn next_secret(suite: Suite, secret: &mut [u8]) {
    let mut next = zeroize::Zeroizing::new([0; SECRET_BYTES_MAX]);
    let next = &mut next[..secret.len()];
    expand_label(suite, secret, b"traffic upd", next);
    secret.copy_from_slice(next);
}

/// HKDF-Expand-Label with an empty context (section 7.1).
fn expand_label(suite: Suite, secret: &[u8], label: &[u8], out: &mut [u8]) {
    const PREFIX: &[u8] = b"tls13 ";
    let length = (out.len() as u16).to_be_bytes();
    let label_bytes = [(PREFIX.len() + label.len()) as u8];
    let info = [&length[..], &label_bytes, PREFIX, label, &[0]];
    expand(suite, secret, &info, out).expect("at most 255 hashes are asked for");
}

/// HKDF-Expand (RFC 5869 section 2.3). Fails if more than 255 hashes are asked for.
pub(crate) fn expand(
    suite: Suite,
    secret: &[u8],
    info: &[&[u8]],
    out: &mut [u8],
) -> Result<(), Unspecified> {
    Prk::new_less_safe(suite.hkdf(), secret).expand(info, Bytes(out.len()))?.fill(out)
}

struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

/// Longest traffic secret: a hash of SHA-384.
pub(crate) const SECRET_BYTES_MAX: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::vectors::{CLIENT, SERVER};

    #[test]
    fn keys_of_a_traffic_secret_are_those_of_rfc_8448() {
        for trace in [&CLIENT, &SERVER] {
            let (mut key, mut iv) = ([0; 16], [0; 12]);
            traffic_key(Suite::Tls13Aes128, &trace.secret, &mut key, &mut iv);
            assert_eq!((key, iv), (trace.key, trace.iv));
        }
    }

    #[test]
    fn each_update_makes_another_secret_of_the_same_length() {
        for suite in [Suite::Tls13Aes128, Suite::Tls13Aes256, Suite::Tls13ChaCha20] {
            let mut secret = vec![7; suite.secret_bytes()];
            let mut seen = std::collections::HashSet::new();
            for _ in 0..10 {
                next_secret(suite, &mut secret);
                assert!(seen.insert(secret.clone()));
            }
        }
    }
}
