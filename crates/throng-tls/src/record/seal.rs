//! Plaintext to records.

use ring::aead::{Aad, LessSafeKey, Nonce};

use super::header::{ContentType, HEADER_BYTES, PLAINTEXT_BYTES_MAX, TAG_BYTES};
use crate::TlsError;
use crate::keys::HalfKeys;

/// Sealer of the records of one flush: the key is expanded once, for the first record.
pub(crate) struct Sealer<'a> {
    half: HalfKeys<'a>,
    key: Option<LessSafeKey>,
    /// Records that were sealed.
    pub records: u64,
    /// Keys that were taken.
    pub updates: u64,
}

impl<'a> Sealer<'a> {
    pub(crate) fn new(half: HalfKeys<'a>) -> Self {
        Self { half, key: None, records: 0, updates: 0 }
    }

    /// Appends records with all bytes of `pieces`, as few as possible.
    ///
    /// What was sealed must be sent, and never sealed again: it has its sequence number.
    pub(crate) fn data<'p>(
        &mut self,
        pieces: impl IntoIterator<Item = &'p [u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), TlsError> {
        let mut open: Option<usize> = None;
        let prefix = HEADER_BYTES + self.half.suite.explicit_nonce_bytes();
        for mut piece in pieces {
            while !piece.is_empty() {
                let begin = match open {
                    Some(begin) => begin,
                    None => self.begin(out)?,
                };
                let room = PLAINTEXT_BYTES_MAX - (out.len() - begin - prefix);
                let (now, later) = piece.split_at(piece.len().min(room));
                out.extend_from_slice(now);
                piece = later;
                open = Some(begin);
                if now.len() == room {
                    self.finish(ContentType::Data, begin, out)?;
                    open = None;
                }
            }
        }
        match open {
            Some(begin) => self.finish(ContentType::Data, begin, out),
            None => Ok(()),
        }
    }

    /// Appends one record.
    pub(crate) fn one(
        &mut self,
        typ: ContentType,
        plain: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), TlsError> {
        let begin = begin_record(self.half.suite.explicit_nonce_bytes(), out);
        out.extend_from_slice(plain);
        self.finish(typ, begin, out)
    }

    /// Appends a KeyUpdate, and seals with the next key from then on.
    ///
    /// "After sending a KeyUpdate message, the sender SHALL send all its traffic using the next
    /// generation of keys" (RFC 8446 section 4.6.3).
    pub(crate) fn key_update(&mut self, ask: bool, out: &mut Vec<u8>) -> Result<(), TlsError> {
        self.one(ContentType::Handshake, &[KEY_UPDATE, 0, 0, 1, u8::from(ask)], out)?;
        self.half.update();
        self.key = None;
        self.updates += 1;
        Ok(())
    }

    /// Begins a record of data. A key that sealed half of what it may is replaced before.
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<usize, TlsError> {
        if self.half.records() >= self.half.suite.update_after() {
            self.key_update(false, out)?;
        }
        Ok(begin_record(self.half.suite.explicit_nonce_bytes(), out))
    }

    /// Seals the record whose plaintext stands at the end of `out`. The record is removed if that
    /// fails.
    fn finish(
        &mut self,
        typ: ContentType,
        begin: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), TlsError> {
        let suite = self.half.suite;
        let plain_at = begin + HEADER_BYTES + suite.explicit_nonce_bytes();
        let plain_bytes = out.len() - plain_at;
        // The alert that ends a connection may follow the last record.
        let records_max = suite.records_max() + u64::from(typ == ContentType::Alert);
        let sequence = match self.half.next(records_max) {
            Ok(sequence) => sequence,
            Err(error) => {
                out.truncate(begin);
                return Err(error);
            }
        };
        out[plain_at - suite.explicit_nonce_bytes()..plain_at]
            .copy_from_slice(&sequence.nonce[12 - suite.explicit_nonce_bytes()..]);
        let outer = if suite.is_13() {
            out.push(typ as u8);
            ContentType::Data
        } else {
            typ
        };
        let length = (out.len() - begin - HEADER_BYTES + TAG_BYTES) as u16;
        let [high, low] = length.to_be_bytes();
        let header = [outer as u8, 3, 3, high, low];
        out[begin..begin + HEADER_BYTES].copy_from_slice(&header);
        let nonce = Nonce::assume_unique_for_key(sequence.nonce);
        let (aad_13, aad_12) = (Aad::from(header), aad_12(sequence.number, typ as u8, plain_bytes));
        let key = self.key.get_or_insert_with(|| self.half.expand());
        let text = &mut out[plain_at..];
        let tag = if suite.is_13() {
            key.seal_in_place_separate_tag(nonce, aad_13, text)
        } else {
            key.seal_in_place_separate_tag(nonce, Aad::from(aad_12), text)
        };
        out.extend_from_slice(tag.expect("a record is short enough").as_ref());
        self.records += 1;
        Ok(())
    }
}

/// Reserves the place of a header. Returns where the record begins.
fn begin_record(explicit_nonce_bytes: usize, out: &mut Vec<u8>) -> usize {
    let begin = out.len();
    out.resize(begin + HEADER_BYTES + explicit_nonce_bytes, 0);
    begin
}

/// Returns the additional data of TLS 1.2: "seq_num + TLSCompressed.type + TLSCompressed.version +
/// TLSCompressed.length" (RFC 5246 section 6.2.3.3).
pub(super) fn aad_12(number: u64, typ: u8, plain_bytes: usize) -> [u8; 13] {
    let mut aad = [0; 13];
    aad[..8].copy_from_slice(&number.to_be_bytes());
    aad[8..11].copy_from_slice(&[typ, 3, 3]);
    aad[11..].copy_from_slice(&(plain_bytes as u16).to_be_bytes());
    aad
}

/// Type of a KeyUpdate among the messages of a handshake.
pub(crate) const KEY_UPDATE: u8 = 24;
