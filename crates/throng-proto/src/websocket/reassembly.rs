//! The received part of an incomplete request, frame or message.

use crate::http::PendingInput;
use crate::websocket::Violation;
use crate::websocket::context::DeflateContexts;
use crate::websocket::header::Header;
use crate::websocket::mask;
use crate::{HeldBudget, held::HeldBuffer};

/// The incomplete data of a connection. It exists only while something is incomplete, so an idle
/// connection owns none, unless it takes contexts over.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    /// The start of a header or of a control frame.
    pub(super) pending: Vec<u8>,
    /// The message so far, unmasked.
    message: Option<Message>,
    /// The data frame whose payload is incomplete.
    frame: Option<Frame>,
    /// A part of a request, or bytes that arrived before the last response: requests or already
    /// frames.
    pub(super) early: PendingInput,
    /// The contexts of compressed messages, once there was one. Only a client takes them over.
    pub(super) contexts: Option<Box<DeflateContexts>>,
}

/// A message whose frames have not all arrived.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) is_text: bool,
    pub(super) is_deflated: bool,
    pub(super) bytes: HeldBuffer,
    /// The number of bytes of a text that are known to be UTF-8.
    utf8_bytes: usize,
}

#[derive(Debug)]
struct Frame {
    mask: [u8; 4],
    /// The received bytes of the payload.
    received_bytes: usize,
    payload_bytes: usize,
    is_final: bool,
}

/// The result of adding bytes to a data frame.
pub(super) enum Progress {
    /// The frame is incomplete.
    Incomplete,
    /// The frame is complete, the message is not.
    Frame,
    /// The message is complete.
    MessageComplete(Message),
}

impl Reassembly {
    /// Creates a reassembly that holds only bytes that cannot be read yet.
    pub(super) fn with_early(early: PendingInput) -> Self {
        Self { early, ..Self::default() }
    }

    /// Returns the received bytes of the message that has begun; `None` if none has.
    pub(super) fn message_bytes(&self) -> Option<usize> {
        self.message.as_ref().map(|message| message.bytes.len())
    }

    /// Reports whether the next bytes belong to a data frame that has begun.
    pub(super) const fn is_in_frame(&self) -> bool {
        self.frame.is_some()
    }

    /// Reports whether nothing is incomplete.
    pub(super) const fn is_empty(&self) -> bool {
        self.pending.is_empty()
            && self.message.is_none()
            && self.frame.is_none()
            && self.early.is_empty()
            && self.contexts.is_none()
    }

    /// Begins a data frame. The message counts in the budget.
    pub(super) fn begin_frame(&mut self, header: &Header, budget: &HeldBudget) {
        let Header { mask, payload_bytes: length, is_final, .. } = *header;
        self.frame = Some(Frame { mask, received_bytes: 0, payload_bytes: length, is_final });
        self.message.get_or_insert_with(|| Message {
            is_text: header.opcode == Header::TEXT,
            is_deflated: header.is_deflated,
            bytes: HeldBuffer::of_message(budget),
            utf8_bytes: 0,
        });
    }

    /// Returns the missing bytes of the data frame.
    pub(super) fn frame_bytes_missing(&self) -> usize {
        self.frame.as_ref().map_or(0, |frame| frame.payload_bytes - frame.received_bytes)
    }

    /// Appends a piece of at most [`Self::frame_bytes_missing`] bytes. A text that can no longer
    /// become UTF-8 fails here, not at its end.
    pub(super) fn append_payload(&mut self, piece: &mut [u8]) -> Result<Progress, Violation> {
        let (Some(frame), Some(message)) = (&mut self.frame, &mut self.message) else {
            return Ok(Progress::Frame);
        };
        mask::apply(frame.mask, frame.received_bytes, piece);
        let declared = message.bytes.len() + frame.payload_bytes - frame.received_bytes;
        message.bytes.append(piece, declared).map_err(|_| Violation::HeldTooMuch)?;
        frame.received_bytes += piece.len();
        message.check_utf8()?;
        if frame.received_bytes < frame.payload_bytes {
            return Ok(Progress::Incomplete);
        }
        let is_final = frame.is_final;
        self.frame = None;
        Ok(match self.message.take_if(|_| is_final) {
            Some(message) => Progress::MessageComplete(message),
            None => Progress::Frame,
        })
    }
}

impl Message {
    fn check_utf8(&mut self) -> Result<(), Violation> {
        if !self.is_text || self.is_deflated {
            return Ok(());
        }
        match simdutf8::compat::from_utf8(&self.bytes[self.utf8_bytes..]) {
            Ok(_) => self.utf8_bytes = self.bytes.len(),
            Err(error) if error.error_len().is_none() => self.utf8_bytes += error.valid_up_to(),
            Err(_) => return Err(Violation::NotUtf8),
        }
        Ok(())
    }
}
