//! Where the next record is: in the bytes that were just received, or in those and a part of it
//! that arrived before.

use std::ops::Range;

use super::header::{HEADER_BYTES, Phase, record_bytes};
use crate::TlsError;

/// Reader of the received bytes, and the plaintext of the records that were opened.
///
/// The plaintext of all records of a read stands together: `plain.end <= at`.
pub(crate) struct Cursor<'a> {
    buffer: &'a mut [u8],
    at: usize,
    end: usize,
    plain: Range<usize>,
}

/// Place of a whole record.
pub(crate) enum Place {
    /// In the buffer.
    Buffer(Range<usize>),
    /// In bytes of its own.
    Part(Vec<u8>),
}

impl<'a> Cursor<'a> {
    /// Creates a reader of these bytes of the buffer.
    pub(crate) fn new(buffer: &'a mut [u8], received: Range<usize>) -> Self {
        let plain = received.start..received.start;
        Self { at: received.start, end: received.end, buffer, plain }
    }

    /// Returns the next whole record. The bytes of an incomplete one are moved to `part`.
    ///
    /// `part` grows with what arrives and not with what a header announces: a peer makes us keep no
    /// more than a multiple of what it sent.
    pub(crate) fn next(
        &mut self,
        part: &mut Vec<u8>,
        phase: Phase,
    ) -> Result<Option<Place>, TlsError> {
        if part.is_empty() {
            let rest = &self.buffer[self.at..self.end];
            if let Some(header) = rest.first_chunk() {
                let bytes = record_bytes(*header, phase)?;
                if bytes <= rest.len() {
                    let begin = self.at;
                    self.at += bytes;
                    return Ok(Some(Place::Buffer(begin..self.at)));
                }
            }
            part.extend_from_slice(rest);
            self.at = self.end;
            return Ok(None);
        }
        self.move_to(part, HEADER_BYTES);
        let Some(header) = part.first_chunk() else { return Ok(None) };
        let bytes = record_bytes(*header, phase)?;
        self.move_to(part, bytes);
        Ok((part.len() == bytes).then(|| Place::Part(std::mem::take(part))))
    }

    /// Moves bytes to `part` until it has so many.
    fn move_to(&mut self, part: &mut Vec<u8>, bytes: usize) {
        let missing = bytes.saturating_sub(part.len()).min(self.end - self.at);
        part.extend_from_slice(&self.buffer[self.at..self.at + missing]);
        self.at += missing;
    }

    /// Returns bytes of the buffer.
    pub(crate) fn bytes(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.buffer[range]
    }

    /// Adds plaintext that stands in the buffer.
    pub(crate) fn keep(&mut self, range: Range<usize>) {
        if self.plain.is_empty() {
            self.plain = range;
            return;
        }
        let end = self.plain.end + range.len();
        self.buffer.copy_within(range, self.plain.end);
        self.plain.end = end;
    }

    /// Adds the plaintext of a record that arrived in parts. It is the first of a read: later
    /// records of the read stand in the buffer.
    pub(crate) fn keep_part(&mut self, plain: &[u8]) {
        assert!(self.plain.is_empty(), "only the first record of a read began before it");
        assert!(plain.len() <= self.at, "the buffer has no headroom");
        self.plain = self.at - plain.len()..self.at;
        self.buffer[self.plain.clone()].copy_from_slice(plain);
    }

    /// Returns where the plaintext stands.
    pub(crate) fn into_plain(self) -> Range<usize> {
        self.plain
    }
}
