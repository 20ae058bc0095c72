//! Data that arrived before a step expected it, and answers that arrive late.

use std::collections::VecDeque;

use throng_base::Instant;

use super::encoder::as_text;
use super::timing::AnswerTiming;
use crate::program::IncomingMessage;

/// Data that no step has waited for yet, and late answers. Almost no user has one.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) bytes: Vec<u8>,
    /// Messages that the bytes consist of; empty on a TCP stream.
    pub(crate) messages: VecDeque<KeptMessage>,
    /// Arrival of the last bytes: a complete answer in here was complete by then.
    pub(crate) timing: AnswerTiming,
    /// Answers to requests that timed out, which may still arrive.
    pub(crate) late_answers: u16,
    /// Moment until which late answers are accepted as late.
    pub(crate) late_until: Instant,
    /// An answer that may be a late one.
    pub(crate) set_aside: Option<AnswerTiming>,
    /// Intended moments of the unanswered messages, for a user that sends the next ones before
    /// their answers.
    pub(crate) window: VecDeque<Instant>,
    /// Moment of the last message, where a `receive` follows it.
    pub(crate) asked_at: Option<Instant>,
    /// Op of the user in which the first message was found to fit the step that reads next.
    pub(crate) first_fits_in: Option<u32>,
}

/// A message in an inbox.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptMessage {
    pub(crate) timing: AnswerTiming,
    bytes: u32,
    is_text: bool,
}

impl Inbox {
    /// Creates an empty inbox.
    pub(crate) fn new(timing: AnswerTiming) -> Self {
        Self {
            bytes: Vec::new(),
            messages: VecDeque::new(),
            timing,
            late_answers: 0,
            late_until: Instant::ZERO,
            set_aside: None,
            window: VecDeque::new(),
            asked_at: None,
            first_fits_in: None,
        }
    }

    /// Reports whether it has room for `bytes` more. A message may be empty, so their number is
    /// limited, too.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.bytes.len() + bytes <= INBOX_BYTES_MAX && self.messages.len() < INBOX_BYTES_MAX
    }

    /// Returns the memory that it takes for what it holds.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.messages.capacity() * size_of::<KeptMessage>()
    }

    /// Adds a message. The caller has checked that there is room.
    pub(crate) fn push(&mut self, message: IncomingMessage<'_>, timing: AnswerTiming) {
        let bytes = message.bytes();
        self.bytes.extend_from_slice(bytes);
        let is_text = matches!(message, IncomingMessage::Text(_));
        self.messages.push_back(KeptMessage { timing, bytes: bytes.len() as u32, is_text });
    }

    /// Takes the first message out.
    pub(crate) fn pop<R>(
        &mut self,
        read: impl FnOnce(IncomingMessage<'_>, AnswerTiming) -> R,
    ) -> Option<R> {
        let kept = self.messages.pop_front()?;
        self.first_fits_in = None;
        let (message, _) = kept.split_from(&self.bytes);
        let result = read(message, kept.timing);
        self.bytes.drain(..kept.bytes as usize);
        Some(result)
    }

    /// Reports whether it holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
            && self.messages.is_empty()
            && self.late_answers == 0
            && self.set_aside.is_none()
            && self.window.is_empty()
            && self.asked_at.is_none()
    }

    /// Reports whether an answer that arrived at `arrived_at` may be a late one.
    pub(crate) fn may_be_late_answer(&self, arrived_at: Instant) -> bool {
        self.late_answers > 0 && arrived_at <= self.late_until
    }
}

impl KeptMessage {
    /// Splits this message from `bytes`, which begin with it.
    pub(crate) fn split_from(self, bytes: &[u8]) -> (IncomingMessage<'_>, &[u8]) {
        let (own, rest) = bytes.split_at(self.bytes as usize);
        let message = if self.is_text {
            IncomingMessage::Text(as_text(own))
        } else {
            IncomingMessage::Binary(own)
        };
        (message, rest)
    }
}

/// Bytes that are kept for one user.
pub(crate) const INBOX_BYTES_MAX: usize = 64 << 10;
