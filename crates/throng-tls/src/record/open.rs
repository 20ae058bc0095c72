//! Records to plaintext, in place.

use std::ops::Range;

use ring::aead::{Aad, LessSafeKey, Nonce};

use super::header::{ContentType, HEADER_BYTES, PLAINTEXT_BYTES_MAX, TAG_BYTES};
use super::seal::aad_12;
use crate::TlsError;
use crate::keys::HalfKeys;

/// Opener of the records of one read: the key is expanded once, when the first record is whole.
pub(crate) struct Opener<'a> {
    half: HalfKeys<'a>,
    key: Option<LessSafeKey>,
}

impl<'a> Opener<'a> {
    pub(crate) fn new(half: HalfKeys<'a>) -> Self {
        Self { half, key: None }
    }

    /// Opens a record with a checked header. Returns what it carries, and where in `record`.
    ///
    /// All failures to decrypt are alike to the peer.
    pub(crate) fn open(
        &mut self,
        record: &mut [u8],
    ) -> Result<(ContentType, Range<usize>), TlsError> {
        let suite = self.half.suite;
        let header = *record.first_chunk::<HEADER_BYTES>().ok_or(TlsError::BadRecordMac)?;
        let cipher_at = HEADER_BYTES + suite.explicit_nonce_bytes();
        let plain_bytes =
            record.len().checked_sub(cipher_at + TAG_BYTES).ok_or(TlsError::BadRecordMac)?;
        // The limit is the sender's. A number that would wrap is refused here, too.
        let sequence = self.half.next(u64::MAX)?;
        let (explicit, text) = record[HEADER_BYTES..].split_at_mut(suite.explicit_nonce_bytes());
        let nonce =
            if explicit.is_empty() { sequence.nonce } else { self.half.explicit_nonce(explicit) };
        let key = self.key.get_or_insert_with(|| self.half.expand());
        let nonce = Nonce::assume_unique_for_key(nonce);
        let opened = if suite.is_13() {
            key.open_in_place(nonce, Aad::from(header), text)
        } else {
            let aad = aad_12(sequence.number, header[0], plain_bytes);
            key.open_in_place(nonce, Aad::from(aad), text)
        };
        let plain = &*opened.map_err(|_| TlsError::BadRecordMac)?;
        let (typ, bytes) = match suite.is_13() {
            true => inner(plain)?,
            false => (header[0], plain.len()),
        };
        if bytes > PLAINTEXT_BYTES_MAX {
            return Err(TlsError::PlaintextTooLong);
        }
        let typ = ContentType::of(typ).ok_or(TlsError::UnknownContentType)?;
        Ok((typ, cipher_at..cipher_at + bytes))
    }

    /// Takes the next key, after a KeyUpdate of the peer.
    pub(crate) fn update(&mut self) {
        self.half.update();
        self.key = None;
    }
}

/// Returns the type and the length of the content in an inner plaintext.
///
/// "the receiving implementation scans the field from the end toward the beginning until it finds
/// a non-zero octet. This non-zero octet is the content type of the message." "If a receiving
/// implementation does not find a non-zero octet in the cleartext, it MUST terminate the
/// connection" (RFC 8446 section 5.4).
fn inner(plain: &[u8]) -> Result<(u8, usize), TlsError> {
    // "The full encoded TLSInnerPlaintext MUST NOT exceed 2^14 + 1 octets."
    if plain.len() > PLAINTEXT_BYTES_MAX + 1 {
        return Err(TlsError::PlaintextTooLong);
    }
    let at = plain.iter().rposition(|byte| *byte != 0).ok_or(TlsError::NoContentType)?;
    Ok((plain[at], at))
}
