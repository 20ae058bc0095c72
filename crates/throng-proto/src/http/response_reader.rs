//! The reader of a response that does not arrive in one piece.

use super::chunked::Chunked;
use super::reader::FIELDS_MAX;
use super::response_head::{BodyFraming, HeadShape, ParsedHead, ResponseHead};
use super::response_limits::{
    BODY_BYTES_MAX, BODY_EXCERPT_BYTES_MAX, HEAD_BYTES_MAX, INTERIM_RESPONSES_MAX,
};
use super::{Response, ResponseError};
use crate::held::HeldBuffer;
use crate::{HeldBudget, Input};

/// What the caller wants of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseNeeds {
    /// The request was `HEAD`: the response has no body.
    pub(super) head_only: bool,
    /// The caller needs the whole body.
    pub(super) keeps_body: bool,
}

/// An incomplete response.
#[derive(Debug)]
pub(super) struct ResponseReader {
    needs: ResponseNeeds,
    /// The head, and after it what is kept of the body.
    pub(super) bytes: HeldBuffer,
    /// The head; `None` while it is incomplete.
    pub(super) head: Option<HeadShape>,
    body: Body,
    /// Bytes of the body so far, those that are not kept included.
    pub(super) body_bytes: u64,
    /// Interim responses before this one.
    interim: u32,
}

/// What has arrived of an incomplete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialResponse<'a> {
    /// The head; `None` while it is incomplete.
    pub head: Option<Response<'a>>,
    /// The bytes of an incomplete head, else what is kept of the body.
    pub bytes: &'a [u8],
    /// Bytes of the body so far, those that are not kept included.
    pub body_bytes: u64,
    /// The length of the whole body, if the head says it.
    pub declared_bytes: Option<u64>,
    /// Interim responses before this one.
    pub interim: u32,
}

impl PartialResponse<'_> {
    /// Reports whether a byte of the response has arrived. An interim response is none of it.
    pub const fn has_begun(&self) -> bool {
        self.head.is_some() || !self.bytes.is_empty()
    }
}

#[derive(Clone, Copy, Debug)]
enum Body {
    Length { left: u64 },
    Chunked(Chunked),
    UntilClose,
}

impl ResponseReader {
    /// Creates a reader at the beginning of a response. What it keeps counts in the budget.
    pub(super) fn new(needs: ResponseNeeds, budget: &HeldBudget) -> Self {
        let (bytes, body) = (HeldBuffer::new(budget), Body::Length { left: 0 });
        Self { needs, bytes, head: None, body, body_bytes: 0, interim: 0 }
    }

    /// Reads `input`. Returns true once the response is complete; before that, all of `input` is
    /// consumed.
    pub(super) fn read(&mut self, input: &mut Input<'_>) -> Result<bool, ResponseError> {
        let head_bytes = loop {
            match self.head {
                Some(head) => break head.length,
                None if input.is_empty() => return Ok(false),
                None => self.read_head(input)?,
            }
        };
        let declared = head_bytes + self.kept_bytes_max();
        let room = |bytes: &[u8]| declared - bytes.len();
        let (bytes, body_bytes) = (&mut self.bytes, &mut self.body_bytes);
        let keeps_body = self.needs.keeps_body;
        let mut keep = |piece: &[u8]| {
            *body_bytes += piece.len() as u64;
            let room = room(bytes);
            if piece.len() > room && keeps_body {
                return Err(ResponseError::BodyTooLarge);
            }
            Ok(bytes.append(&piece[..piece.len().min(room)], declared)?)
        };
        match &mut self.body {
            Body::Length { left } => {
                let received = input.peek().len();
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(received);
                keep(input.take(count))?;
                *left -= count as u64;
                Ok(*left == 0)
            }
            Body::Chunked(chunked) => {
                let (count, is_done) = chunked.feed(input.peek(), keep)?;
                input.take(count);
                Ok(is_done)
            }
            Body::UntilClose => {
                keep(input.take_all())?;
                Ok(false)
            }
        }
    }

    /// Reports whether the response lasts until the end of the connection.
    pub(super) const fn ends_with_connection(&self) -> bool {
        self.head.is_some() && matches!(self.body, Body::UntilClose)
    }

    /// Returns what has arrived.
    pub(super) fn part(&self) -> PartialResponse<'_> {
        let head = self.head.and_then(|head| head.response(&self.bytes));
        let declared_bytes = match self.body {
            Body::Length { left } if self.head.is_some() => Some(self.body_bytes + left),
            _ => None,
        };
        let bytes = &self.bytes[self.head.map_or(0, |head| head.length)..];
        let (body_bytes, interim) = (self.body_bytes, self.interim);
        PartialResponse { head, bytes, body_bytes, declared_bytes, interim }
    }

    /// Reads a part of a head. Interim responses are skipped.
    fn read_head(&mut self, input: &mut Input<'_>) -> Result<(), ResponseError> {
        let before = self.bytes.len();
        if before > 0 {
            let count = input.peek().len().min(HEAD_BYTES_MAX + 1 - before);
            self.bytes.append(&input.peek()[..count], usize::MAX)?;
        }
        // A head that is whole in the input is copied only if it is not interim.
        let received = if before == 0 { input.peek() } else { &self.bytes };
        let found = match FoundHead::in_bytes(received, self.needs.head_only) {
            Ok(found) => found,
            Err(error) => return Err(self.fail(input, error)),
        };
        let Some(FoundHead { shape, framing, length, utf8 }) = found else {
            let rest = input.take_all();
            if before == 0 {
                self.bytes.append(rest, usize::MAX)?;
            }
            return Ok(());
        };
        if shape.status == 101 {
            return Err(self.fail(input, ResponseError::SwitchedProtocols));
        }
        if shape.status < 200 {
            // Another head follows instead of a body (RFC 9110 section 15.2).
            if self.interim == INTERIM_RESPONSES_MAX {
                return Err(self.fail(input, ResponseError::TooManyInterim));
            }
            self.interim += 1;
            input.take(length - before);
            self.bytes.take();
            return Ok(());
        }
        let rest = input.take(length - before);
        match utf8 {
            Some(utf8) => self.bytes.replace(utf8),
            None if before == 0 => self.bytes.append(rest, usize::MAX)?,
            None => self.bytes.truncate(length),
        }
        self.head = Some(shape);
        self.body = match framing {
            BodyFraming::Length(left) if self.needs.keeps_body && left > BODY_BYTES_MAX as u64 => {
                return Err(ResponseError::BodyTooLarge);
            }
            BodyFraming::Length(left) => Body::Length { left },
            BodyFraming::Chunked => Body::Chunked(Chunked::new()),
            BodyFraming::UntilClose => Body::UntilClose,
        };
        Ok(())
    }

    /// Keeps the beginning of a head that cannot be read, for people, and returns the error.
    fn fail(&mut self, input: &Input<'_>, error: ResponseError) -> ResponseError {
        if self.bytes.is_empty() {
            let count = input.peek().len().min(BODY_EXCERPT_BYTES_MAX);
            self.bytes.replace(input.peek()[..count].to_vec());
        }
        error
    }

    /// Returns the most bytes of the body that are kept.
    const fn kept_bytes_max(&self) -> usize {
        if self.needs.keeps_body { BODY_BYTES_MAX } else { BODY_EXCERPT_BYTES_MAX }
    }
}

/// A complete head that was found in received bytes.
struct FoundHead {
    shape: HeadShape,
    framing: BodyFraming,
    /// Its length in the received bytes.
    length: usize,
    /// Its text, to which `shape` belongs, if the received bytes are not UTF-8.
    utf8: Option<Vec<u8>>,
}

impl FoundHead {
    /// Finds the head at the start of `bytes`; returns `None` while it is incomplete.
    fn in_bytes(bytes: &[u8], head_only: bool) -> Result<Option<Self>, ResponseError> {
        let found = |head: &ResponseHead<'_>, length, utf8| {
            Some(Self { shape: head.shape(), framing: head.framing, length, utf8 })
        };
        match ResponseHead::parse(bytes, head_only)? {
            None => Ok(None),
            Some(ParsedHead::Utf8(head)) => Ok(found(&head, head.length, None)),
            Some(ParsedHead::Latin1 { length }) => {
                let text = as_text(&bytes[..length]);
                // Its text is longer than the limit of its bytes.
                match ResponseHead::parse_within(text.as_bytes(), head_only, text.len())? {
                    Some(ParsedHead::Utf8(head)) => {
                        let found = found(&head, length, None);
                        Ok(found.map(|mut found| {
                            let before = &text.as_bytes()[..found.shape.fields_at];
                            found.shape.latin1_fields = latin1_lines(&bytes[..length], before);
                            Self { utf8: Some(text.into_bytes()), ..found }
                        }))
                    }
                    // Its bytes as characters are as many lines.
                    _ => Err(ResponseError::Malformed),
                }
            }
        }
    }
}

/// Returns which lines of a head are not UTF-8, a bit each. Those that stand in `before` are not
/// counted.
fn latin1_lines(head: &[u8], before: &[u8]) -> u64 {
    let before = before.iter().filter(|byte| **byte == b'\n').count();
    let lines = head.split_inclusive(|byte| *byte == b'\n').skip(before).take(FIELDS_MAX);
    let bits = lines.enumerate().map(|(index, line)| match std::str::from_utf8(line) {
        Ok(_) => 0,
        Err(_) => 1 << index,
    });
    bits.sum()
}

/// Returns the text of a head. Each line that is not UTF-8 is read as ISO 8859-1.
fn as_text(head: &[u8]) -> String {
    let lines = head.split_inclusive(|byte| *byte == b'\n');
    lines.fold(String::with_capacity(head.len() + head.len() / 8), |mut text, line| {
        match std::str::from_utf8(line) {
            Ok(line) => text.push_str(line),
            Err(_) => text.extend(line.iter().copied().map(char::from)),
        }
        text
    })
}
