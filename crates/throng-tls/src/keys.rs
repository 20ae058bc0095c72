//! Keys, secrets and sequence numbers of a connection: all that an idle connection owns.

use std::num::NonZeroU32;

use ring::aead::{LessSafeKey, NONCE_LEN, UnboundKey};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::TlsError;
use crate::key_schedule::{SECRET_BYTES_MAX, next_secret, traffic_key};
use crate::suite::Suite;

/// Bytes of a connection with a key of 16 bytes, and of any connection of TLS 1.2.
pub const CONN_BYTES: usize = size_of::<SmallKeys>();

/// Keys of a connection. The form is `Keys<secret, key>`: the bytes of a secret and of a key.
///
/// A key of TLS 1.2 stands in the place of the secret, which that version does not have. The struct
/// is no `Clone`: a copy would use a nonce a second time.
pub(crate) struct Keys<const SECRET: usize, const KEY: usize> {
    secret: [[u8; SECRET]; 2],
    key: [[u8; KEY]; 2],
    iv: [[u8; NONCE_LEN]; 2],
    seq: [u64; 2],
    state: ConnState,
}

/// Form of AES-128 in TLS 1.3, and of all suites of TLS 1.2.
pub(crate) type SmallKeys = Keys<32, 16>;

/// Form of the suites of TLS 1.3 with keys of 32 bytes.
pub(crate) type LargeKeys = Keys<48, 32>;

const _: () = assert!(size_of::<SmallKeys>() == 144, "an idle connection is small");
const _: () = assert!(size_of::<LargeKeys>() == 208, "an idle connection is small");
const _: () = assert!(size_of::<Option<SmallKeys>>() == 144, "a place adds no flag of its own");

/// What an open connection keeps beside its keys.
pub(crate) struct ConnState {
    pub suite: Suite,
    flags: u8,
    /// Records in a row that carried no data: a peer that sends only these wastes our time.
    pub idle_records: u8,
    /// Place in the side table, if the connection has something there.
    pub side: Option<NonZeroU32>,
}

/// Property of an open connection: a bit.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Flag {
    IsClient = 1,
    /// The peer sent `close_notify`.
    PeerClosed = 2,
    /// We sent `close_notify` or a fatal alert: nothing may follow.
    WeClosed = 4,
    /// The peer asked for a key update, which goes before the next data.
    OwesUpdate = 8,
}

impl ConnState {
    pub(crate) const fn is(&self, flag: Flag) -> bool {
        self.flags & flag as u8 != 0
    }

    /// Sets a flag. Returns whether it was set before.
    pub(crate) const fn set(&mut self, flag: Flag) -> bool {
        let was = self.is(flag);
        self.flags |= flag as u8;
        was
    }

    /// Clears a flag. Returns whether it was set before.
    pub(crate) const fn take(&mut self, flag: Flag) -> bool {
        let was = self.is(flag);
        self.flags &= !(flag as u8);
        was
    }
}

/// Direction of a record, and index of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Send = 0,
    Receive = 1,
}

/// Keys of either form.
pub(crate) trait ConnKeys {
    /// Returns the keys of a direction, and what belongs to both.
    fn split(&mut self, way: Way) -> (HalfKeys<'_>, &mut ConnState);

    fn half(&mut self, way: Way) -> HalfKeys<'_> {
        self.split(way).0
    }

    fn state(&mut self) -> &mut ConnState {
        self.split(Way::Send).1
    }
}

impl<const SECRET: usize, const KEY: usize> Keys<SECRET, KEY> {
    /// Creates the keys from what the handshake agreed.
    pub(crate) fn new(agreed: &KeyMaterial, is_client: bool) -> Self {
        let suite = agreed.suite;
        let mut keys = Self {
            secret: [[0; SECRET]; 2],
            key: [[0; KEY]; 2],
            iv: [[0; NONCE_LEN]; 2],
            seq: [0; 2],
            state: ConnState {
                suite,
                flags: if is_client { Flag::IsClient as u8 } else { 0 },
                idle_records: 0,
                side: None,
            },
        };
        for (way, from) in [(Way::Send, &agreed.send), (Way::Receive, &agreed.receive)] {
            let half = keys.half(way);
            half.secret.copy_from_slice(&from.secret[..suite.secret_bytes()]);
            half.key.copy_from_slice(&from.key[..suite.key_bytes()]);
            *half.iv = from.iv;
            *half.seq = from.seq;
        }
        keys
    }
}

impl<const SECRET: usize, const KEY: usize> Keys<SECRET, KEY> {
    /// Reports whether the peer sent `close_notify`.
    pub(crate) const fn is_finished(&self) -> bool {
        self.state.is(Flag::PeerClosed)
    }
}

impl<const SECRET: usize, const KEY: usize> ConnKeys for Keys<SECRET, KEY> {
    fn split(&mut self, way: Way) -> (HalfKeys<'_>, &mut ConnState) {
        let (suite, at) = (self.state.suite, way as usize);
        let (secret, key): (&mut [u8], &mut [u8]) = if suite.is_13() {
            (&mut self.secret[at][..suite.secret_bytes()], &mut self.key[at][..suite.key_bytes()])
        } else {
            (&mut [], &mut self.secret[at][..suite.key_bytes()])
        };
        let half = HalfKeys { suite, secret, key, iv: &mut self.iv[at], seq: &mut self.seq[at] };
        (half, &mut self.state)
    }
}

impl<const SECRET: usize, const KEY: usize> Zeroize for Keys<SECRET, KEY> {
    fn zeroize(&mut self) {
        self.secret.zeroize();
        self.key.zeroize();
        self.iv.zeroize();
        self.seq.zeroize();
    }
}

impl<const SECRET: usize, const KEY: usize> Drop for Keys<SECRET, KEY> {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl<const SECRET: usize, const KEY: usize> ZeroizeOnDrop for Keys<SECRET, KEY> {}

/// Keys of one direction.
pub(crate) struct HalfKeys<'a> {
    pub suite: Suite,
    secret: &'a mut [u8],
    key: &'a mut [u8],
    iv: &'a mut [u8; NONCE_LEN],
    seq: &'a mut u64,
}

impl HalfKeys<'_> {
    /// Expands the key for the records of one read or one flush.
    pub(crate) fn expand(&self) -> LessSafeKey {
        let key = UnboundKey::new(self.suite.aead(), self.key);
        LessSafeKey::new(key.expect("the key has the length of its suite"))
    }

    /// Returns the next sequence number and its nonce. No number is returned twice.
    ///
    /// "The padded sequence number is XORed with either the static client_write_iv or
    /// server_write_iv" (RFC 8446 section 5.3).
    pub(crate) fn next(&mut self, records_max: u64) -> Result<Sequence, TlsError> {
        if *self.seq >= records_max {
            return Err(TlsError::KeysExhausted);
        }
        let number = *self.seq;
        *self.seq += 1;
        let mut nonce = *self.iv;
        for (byte, of_number) in nonce[NONCE_LEN - 8..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= of_number;
        }
        Ok(Sequence { number, nonce })
    }

    /// Returns the nonce of a received record that carries its own half of it (RFC 5288).
    pub(crate) fn explicit_nonce(&self, explicit: &[u8]) -> [u8; NONCE_LEN] {
        let mut nonce = *self.iv;
        nonce[NONCE_LEN - explicit.len()..].copy_from_slice(explicit);
        nonce
    }

    /// Returns the number of records that the key has sealed or opened.
    pub(crate) fn records(&self) -> u64 {
        *self.seq
    }

    /// Takes the next key. Its sequence begins anew: "Each sequence number is set to zero at the
    /// beginning of a connection and whenever the key is changed" (RFC 8446 section 5.3).
    pub(crate) fn update(&mut self) {
        next_secret(self.suite, self.secret);
        traffic_key(self.suite, self.secret, self.key, self.iv);
        *self.seq = 0;
    }

    #[cfg(test)]
    pub(crate) fn set_records(&mut self, records: u64) {
        *self.seq = records;
    }

    #[cfg(test)]
    pub(crate) fn key_bytes(&self) -> Vec<u8> {
        self.key.to_vec()
    }
}

/// Sequence number of a record, and its nonce.
pub(crate) struct Sequence {
    pub number: u64,
    pub nonce: [u8; NONCE_LEN],
}

/// What a handshake agreed.
pub(crate) struct KeyMaterial {
    pub suite: Suite,
    pub send: HalfMaterial,
    pub receive: HalfMaterial,
}

/// What a handshake agreed for one direction. Shorter secrets and keys are followed by zeros.
pub(crate) struct HalfMaterial {
    pub secret: Zeroizing<[u8; SECRET_BYTES_MAX]>,
    pub key: Zeroizing<[u8; 32]>,
    pub iv: [u8; NONCE_LEN],
    pub seq: u64,
}

impl HalfMaterial {
    /// Creates the material of a traffic secret of TLS 1.3.
    pub(crate) fn from_secret(suite: Suite, secret: &[u8], seq: u64) -> Self {
        let mut half = Self {
            secret: Zeroizing::new([0; SECRET_BYTES_MAX]),
            key: Zeroizing::new([0; 32]),
            iv: [0; NONCE_LEN],
            seq,
        };
        half.secret[..secret.len()].copy_from_slice(secret);
        traffic_key(suite, secret, &mut half.key[..suite.key_bytes()], &mut half.iv);
        half
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const SUITES: [Suite; 6] = [
        Suite::Tls13Aes128,
        Suite::Tls13Aes256,
        Suite::Tls13ChaCha20,
        Suite::Tls12Aes128,
        Suite::Tls12Aes256,
        Suite::Tls12ChaCha20,
    ];

    /// Returns keys of two ends that understand each other.
    pub(crate) fn pair(suite: Suite) -> [Box<dyn ConnKeys>; 2] {
        let [client, server] = agreed(suite);
        [build(&client, true), build(&server, false)]
    }

    /// Returns what a client and a server agreed.
    pub(crate) fn agreed(suite: Suite) -> [KeyMaterial; 2] {
        let half = |byte: u8| match suite.secret_bytes() {
            0 => HalfMaterial {
                secret: Zeroizing::new([0; SECRET_BYTES_MAX]),
                key: Zeroizing::new([byte; 32]),
                iv: [byte + 1; NONCE_LEN],
                seq: 0,
            },
            bytes => HalfMaterial::from_secret(suite, &vec![byte; bytes], 0),
        };
        let client = KeyMaterial { suite, send: half(1), receive: half(5) };
        let server = KeyMaterial { suite, send: half(5), receive: half(1) };
        [client, server]
    }

    /// Returns keys in the form of their suite.
    pub(crate) fn build(agreed: &KeyMaterial, is_client: bool) -> Box<dyn ConnKeys> {
        if agreed.suite.needs_large_keys() {
            Box::new(LargeKeys::new(agreed, is_client))
        } else {
            Box::new(SmallKeys::new(agreed, is_client))
        }
    }

    #[test]
    fn wiped_keys_are_zeros() {
        let agreed = KeyMaterial {
            suite: Suite::Tls13Aes128,
            send: HalfMaterial::from_secret(Suite::Tls13Aes128, &[3; 32], 9),
            receive: HalfMaterial::from_secret(Suite::Tls13Aes128, &[4; 32], 9),
        };
        let mut keys = SmallKeys::new(&agreed, true);
        keys.zeroize();
        let bytes = [&keys.secret[0][..], &keys.secret[1], &keys.key[0], &keys.key[1]];
        assert!(bytes.iter().all(|bytes| bytes.iter().all(|byte| *byte == 0)));
        assert_eq!((keys.iv, keys.seq), ([[0; 12]; 2], [0; 2]));
    }

    #[test]
    fn a_sequence_ends_before_its_limit() {
        for suite in SUITES {
            let [mut keys, _] = pair(suite);
            let mut half = keys.half(Way::Send);
            half.set_records(suite.records_max() - 1);
            assert!(half.next(suite.records_max()).is_ok());
            assert!(matches!(half.next(suite.records_max()), Err(TlsError::KeysExhausted)));
        }
    }

    #[test]
    fn an_update_begins_the_sequence_anew_with_another_key() {
        for suite in SUITES.into_iter().filter(|suite| suite.is_13()) {
            let [mut keys, _] = pair(suite);
            let mut half = keys.half(Way::Send);
            let before = half.key_bytes();
            half.set_records(99);
            half.update();
            assert_eq!(half.records(), 0);
            assert_ne!(half.key_bytes(), before);
        }
    }
}
