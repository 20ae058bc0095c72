//! Frames in, messages out: what both ends do once the handshake is over.

use crate::Input;
use crate::websocket::frame::{append_close, append_control, append_message};
use crate::websocket::header::Role;
use crate::websocket::read::{PeerEvent, read};
use crate::websocket::reassembly::Reassembly;
use crate::websocket::scratch::ScratchBuffers;
use crate::websocket::{Deflater, Opcode, Scratch, Violation, WebSocketLimits};

/// One end of an upgraded connection.
///
/// What is unfinished is kept beside it, by whoever owns it: an end has no room for two pointers.
#[derive(Debug)]
pub(super) struct Endpoint {
    /// The window that we may compress with; 0 if compression was not agreed on.
    bits: u8,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Messages go both ways.
    Open,
    /// We have sent a close frame; the peer has not.
    Closing,
    /// It has not within the time it had.
    Expired,
    /// The rest of a message that the peer has begun did not come in time.
    Overdue,
    /// Nothing is read or written any more.
    Done,
}

impl Endpoint {
    /// Open. `bits` are those of the window that we may compress with; 0 if compression was not agreed on.
    pub(super) const fn new(bits: u8) -> Self {
        Self { bits, state: State::Open }
    }

    /// One on which nothing is said any more.
    pub(super) const fn done() -> Self {
        Self { bits: 0, state: State::Done }
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    pub(super) fn is_closing(&self) -> bool {
        self.state == State::Closing
    }

    /// Whether the peer takes messages that were compressed with the largest window.
    pub(super) const fn is_deflated(&self) -> bool {
        self.bits == Deflater::BITS_MAX
    }

    /// What was waited for has taken too long: the answer to our close frame, or else the rest of a
    /// message.
    pub(super) fn expire(&mut self) {
        self.state = match self.state {
            State::Closing => State::Expired,
            State::Open => State::Overdue,
            over @ (State::Expired | State::Overdue | State::Done) => over,
        };
    }

    /// The next thing that the peer says. Pings and its close frame are answered here.
    #[inline]
    pub(super) fn next<'a, 'i: 'a>(
        &mut self,
        role: Role,
        unfinished: &mut Option<Box<Reassembly>>,
        input: &mut Input<'i>,
        scratch: &'a mut Scratch,
        out: &mut Vec<u8>,
    ) -> Option<PeerEvent<'a>> {
        match self.state {
            State::Open | State::Closing => {}
            State::Expired => {
                self.state = State::Done;
                *unfinished = None;
                return Some(PeerEvent::Failed(Violation::CloseTimeout));
            }
            State::Overdue => {
                let (violation, bits) = (Violation::MessageTimeout, scratch.masks.bits() as u32);
                let mask = (role == Role::Client).then(|| bits.to_ne_bytes());
                append_close(Some(violation.code()), violation.sentence(), mask, out);
                self.state = State::Done;
                *unfinished = None;
                return Some(PeerEvent::Failed(violation));
            }
            State::Done => {
                input.take_all();
                return None;
            }
        }
        let Scratch { limits, masks, room, early, .. } = scratch;
        let mut key = || (role == Role::Client).then(|| (masks.bits() as u32).to_ne_bytes());
        let deflate = self.bits != 0;
        let read = match unfinished {
            Some(kept) if !kept.early.is_empty() => {
                *early = kept.early.take();
                early.extend_from_slice(input.take_all());
                read_early(unfinished, role, deflate, early, limits, room)
            }
            _ => read(unfinished, role, deflate, input, limits, room),
        };
        let said = read.unwrap_or_else(|violation| Some(PeerEvent::Failed(violation)))?;
        match said {
            PeerEvent::Ping(payload) if self.is_open() => {
                append_control(Opcode::Pong, payload, key(), out);
            }
            PeerEvent::Closed { code, .. } => {
                if self.is_open() {
                    append_close(code, "", key(), out);
                }
                self.state = State::Done;
                *unfinished = None;
            }
            PeerEvent::Failed(violation) => {
                if self.is_open() {
                    append_close(Some(violation.code()), violation.sentence(), key(), out);
                }
                self.state = State::Done;
                *unfinished = None;
            }
            _ => {}
        }
        Some(said)
    }

    /// Appends a message, unless a close frame was sent.
    pub(super) fn message(
        &self,
        opcode: Opcode,
        payload: &[u8],
        mask: Option<[u8; 4]>,
        deflater: Option<&mut Deflater>,
        out: &mut Vec<u8>,
    ) {
        if self.is_open() {
            let deflate = deflater.map(|deflater| (deflater, self.bits));
            append_message(opcode, payload, mask, deflate, out);
        }
    }

    /// Appends a ping, unless a close frame was sent.
    pub(super) fn ping(&self, payload: &[u8], mask: Option<[u8; 4]>, out: &mut Vec<u8>) {
        if self.is_open() {
            append_control(Opcode::Ping, payload, mask, out);
        }
    }

    /// Appends a close frame, unless one was sent. Whether it was appended.
    pub(super) fn close(
        &mut self,
        code: u16,
        reason: &str,
        mask: Option<[u8; 4]>,
        out: &mut Vec<u8>,
    ) -> bool {
        let is_open = self.is_open();
        if is_open {
            append_close(Some(code), reason, mask, out);
            self.state = State::Closing;
        }
        is_open
    }
}

/// The next of what came before the upgrade was answered and what came now, as if it had come together. It is short
/// and rare, so what is behind a frame is copied for each frame.
#[cold]
fn read_early<'a>(
    unfinished: &mut Option<Box<Reassembly>>,
    role: Role,
    deflate: bool,
    early: &'a mut [u8],
    limits: &WebSocketLimits,
    room: &'a mut ScratchBuffers,
) -> Result<Option<PeerEvent<'a>>, Violation> {
    let mut input = Input::new(early);
    let said = read(unfinished, role, deflate, &mut input, limits, room);
    if !input.is_empty() {
        unfinished.get_or_insert_default().early.keep(input.peek());
    }
    said
}
