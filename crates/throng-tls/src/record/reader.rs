//! The records of the bytes that were received, and the plaintext of those that were opened.

use std::ops::Range;

use super::header::{Phase, record_bytes};
use crate::TlsError;

/// Reader of records. The plaintext is moved together at the start of the input: no record's
/// plaintext is longer than the record, so `plain <= at`.
pub(crate) struct Records<'a> {
    input: &'a mut [u8],
    at: usize,
    plain: usize,
}

impl<'a> Records<'a> {
    pub(crate) const fn new(input: &'a mut [u8]) -> Self {
        Self { input, at: 0, plain: 0 }
    }

    /// Returns the place of the next whole record.
    pub(crate) fn next(&mut self, phase: Phase) -> Result<Option<Range<usize>>, TlsError> {
        let rest = &self.input[self.at..];
        let Some(header) = rest.first_chunk() else { return Ok(None) };
        let bytes = record_bytes(*header, phase)?;
        if bytes > rest.len() {
            return Ok(None);
        }
        let begin = self.at;
        self.at += bytes;
        Ok(Some(begin..self.at))
    }

    /// Returns bytes of the input.
    pub(crate) fn bytes(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.input[range]
    }

    /// Adds the plaintext that stands here to that of earlier records.
    pub(crate) fn keep(&mut self, range: Range<usize>) {
        let end = self.plain + range.len();
        self.input.copy_within(range, self.plain);
        self.plain = end;
    }

    pub(crate) const fn plain_bytes(&self) -> usize {
        self.plain
    }

    pub(crate) const fn rest_bytes(&self) -> usize {
        self.input.len() - self.at
    }
}
