//! What has arrived of a request, a frame or a message that is not whole.

use crate::grow;
use crate::http::Partial;
use crate::websocket::Violation;
use crate::websocket::header::Header;
use crate::websocket::mask;

/// It exists only while something is unfinished, so an idle connection owns none.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    /// The start of a header, or of a control frame.
    pub(super) pending: Vec<u8>,
    /// The message so far, unmasked.
    message: Option<Message>,
    /// The data frame of which bytes are still to come.
    frame: Option<Frame>,
    /// Part of a request, or what came before the last request was answered: requests or already frames.
    pub(super) early: Partial,
}

/// A message of which frames are still to come.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) is_text: bool,
    pub(super) is_deflated: bool,
    pub(super) bytes: Vec<u8>,
    /// So many bytes of a text are known to be UTF-8.
    checked: usize,
}

#[derive(Debug)]
struct Frame {
    mask: [u8; 4],
    /// Bytes of the payload that have come.
    at: usize,
    length: usize,
    is_final: bool,
}

/// What became of the bytes that were given to a data frame.
pub(super) enum Progress {
    /// All of them were taken and more are needed.
    Wanting,
    /// The frame is whole, the message is not.
    Frame,
    /// The message is whole.
    Message(Message),
}

impl Reassembly {
    /// Nothing but bytes that cannot be read yet.
    pub(super) fn of_early(early: Partial) -> Self {
        Self { early, ..Self::default() }
    }

    /// Bytes of the message that began; nothing if none did.
    pub(super) fn message_bytes(&self) -> Option<usize> {
        self.message.as_ref().map(|message| message.bytes.len())
    }

    /// Whether the next bytes belong to a data frame that began.
    pub(super) const fn is_inside(&self) -> bool {
        self.frame.is_some()
    }

    /// Whether there is nothing in it.
    pub(super) const fn is_empty(&self) -> bool {
        self.pending.is_empty()
            && self.message.is_none()
            && self.frame.is_none()
            && self.early.is_empty()
    }

    /// A data frame begins.
    pub(super) fn begin(&mut self, header: &Header) {
        let Header { mask, length, is_final, .. } = *header;
        self.frame = Some(Frame { mask, at: 0, length, is_final });
        self.message.get_or_insert_with(|| Message {
            is_text: header.opcode == Header::TEXT,
            is_deflated: header.is_deflated,
            bytes: Vec::new(),
            checked: 0,
        });
    }

    /// Bytes the data frame still wants.
    pub(super) fn wants(&self) -> usize {
        self.frame.as_ref().map_or(0, |frame| frame.length - frame.at)
    }

    /// Takes at most [`Self::wants`] bytes. A text that cannot become UTF-8 any more fails here, not at its end.
    pub(super) fn take(&mut self, piece: &mut [u8]) -> Result<Progress, Violation> {
        let (Some(frame), Some(message)) = (&mut self.frame, &mut self.message) else {
            return Ok(Progress::Frame);
        };
        mask::apply(frame.mask, frame.at, piece);
        let declared = message.bytes.len() + frame.length - frame.at;
        grow::append(&mut message.bytes, piece, declared);
        frame.at += piece.len();
        message.check()?;
        if frame.at < frame.length {
            return Ok(Progress::Wanting);
        }
        let is_final = frame.is_final;
        self.frame = None;
        Ok(match self.message.take_if(|_| is_final) {
            Some(message) => Progress::Message(message),
            None => Progress::Frame,
        })
    }
}

impl Message {
    fn check(&mut self) -> Result<(), Violation> {
        if !self.is_text || self.is_deflated {
            return Ok(());
        }
        match simdutf8::compat::from_utf8(&self.bytes[self.checked..]) {
            Ok(_) => self.checked = self.bytes.len(),
            Err(error) if error.error_len().is_none() => self.checked += error.valid_up_to(),
            Err(_) => return Err(Violation::NotUtf8),
        }
        Ok(())
    }
}
