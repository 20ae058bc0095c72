//! Frames in, messages out: the part after the handshake, which client and server share.

use crate::Input;
use crate::websocket::context::{DeflateContext, DeflateWindow};
use crate::websocket::frame::{append_close, append_compressed, append_control, append_message};
use crate::websocket::header::Role;
use crate::websocket::read::{PeerEvent, next_event};
use crate::websocket::reassembly::Reassembly;
use crate::websocket::scratch::ScratchBuffers;
use crate::websocket::{Deflater, Opcode, Scratch, Violation, WebSocketLimits};

/// One endpoint of an upgraded connection.
///
/// The owner keeps incomplete data beside the endpoint, which has no room for two pointers.
#[derive(Debug)]
pub(super) struct Endpoint {
    /// How this endpoint may compress.
    sends: DeflateWindow,
    /// How the peer may compress.
    receives: DeflateWindow,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Messages travel in both directions.
    Open,
    /// This endpoint has sent a close frame; the peer has not.
    Closing,
    /// The peer did not answer the close frame in time.
    CloseOverdue,
    /// The peer began a message and did not complete it in time.
    MessageOverdue,
    /// The endpoint reads and writes no more.
    Closed,
}

impl Endpoint {
    /// Creates an open endpoint, which may compress as `sends` says, and its peer as `receives`.
    pub(super) const fn new(sends: DeflateWindow, receives: DeflateWindow) -> Self {
        Self { sends, receives, state: State::Open }
    }

    /// Creates an endpoint that reads and writes nothing.
    pub(super) const fn closed() -> Self {
        let none = DeflateWindow::NONE;
        Self { sends: none, receives: none, state: State::Closed }
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    pub(super) fn is_closing(&self) -> bool {
        self.state == State::Closing
    }

    /// Reports whether the peer accepts messages that were compressed with the largest window.
    pub(super) const fn is_deflated(&self) -> bool {
        self.sends.bits == Deflater::WINDOW_BITS_MAX
    }

    /// Handles the deadline: the peer has not answered a close frame or has not completed a message
    /// in time.
    pub(super) fn handle_timeout(&mut self) {
        self.state = match self.state {
            State::Closing => State::CloseOverdue,
            State::Open => State::MessageOverdue,
            over @ (State::CloseOverdue | State::MessageOverdue | State::Closed) => over,
        };
    }

    /// Returns the next event from the peer. Pings and the peer's close frame are answered here.
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
            State::CloseOverdue => {
                self.state = State::Closed;
                *unfinished = None;
                return Some(PeerEvent::Failed(Violation::CloseTimeout));
            }
            State::MessageOverdue => {
                let (violation, random) =
                    (Violation::MessageTimeout, scratch.mask_prng.bits() as u32);
                let mask = (role == Role::Client).then(|| random.to_ne_bytes());
                append_close(Some(violation.code()), violation.description(), mask, out);
                self.state = State::Closed;
                *unfinished = None;
                return Some(PeerEvent::Failed(violation));
            }
            State::Closed => {
                input.take_all();
                return None;
            }
        }
        let Scratch { limits, mask_prng, buffers, early, .. } = scratch;
        let mut mask = || (role == Role::Client).then(|| (mask_prng.bits() as u32).to_ne_bytes());
        let window = self.receives;
        let read = match unfinished {
            Some(kept) if !kept.early.is_empty() => {
                *early = kept.early.take();
                early.extend_from_slice(input.take_all());
                read_early(unfinished, role, window, early, limits, buffers)
            }
            _ => next_event(unfinished, role, window, input, limits, buffers),
        };
        let event = read.unwrap_or_else(|violation| Some(PeerEvent::Failed(violation)))?;
        match event {
            PeerEvent::Ping(payload) if self.is_open() => {
                append_control(Opcode::Pong, payload, mask(), out);
            }
            PeerEvent::Closed { code, .. } => {
                if self.is_open() {
                    append_close(code, "", mask(), out);
                }
                self.state = State::Closed;
                *unfinished = None;
            }
            PeerEvent::Failed(violation) => {
                if self.is_open() {
                    append_close(Some(violation.code()), violation.description(), mask(), out);
                }
                self.state = State::Closed;
                *unfinished = None;
            }
            _ => {}
        }
        Some(event)
    }

    /// Appends a message, unless a close frame was sent.
    pub(super) fn write_message(
        &self,
        opcode: Opcode,
        payload: &[u8],
        mask: Option<[u8; 4]>,
        deflater: Option<&mut Deflater>,
        out: &mut Vec<u8>,
    ) {
        if self.is_open() {
            let deflate = deflater.map(|deflater| (deflater, self.sends.bits));
            append_message(opcode, payload, mask, deflate, out);
        }
    }

    /// Appends a message like [`Self::write_message`]. If this endpoint takes its context over, the
    /// message may refer to earlier ones, and later ones to this.
    pub(super) fn write_in_context(
        &self,
        opcode: Opcode,
        payload: &[u8],
        mask: [u8; 4],
        deflater: Option<&mut Deflater>,
        unfinished: &mut Option<Box<Reassembly>>,
        out: &mut Vec<u8>,
    ) {
        let deflater = match deflater {
            Some(deflater) if self.sends.takes_over && self.is_open() => deflater,
            other => return self.write_message(opcode, payload, Some(mask), other, out),
        };
        let contexts = unfinished.as_deref().and_then(|kept| kept.contexts.as_deref());
        let context = contexts.map_or(&[][..], |contexts| contexts.sent.bytes());
        match deflater.compress_behind(context, payload, self.sends.bits) {
            Some(compressed) => append_compressed(opcode, compressed, Some(mask), out),
            None => return self.write_message(opcode, payload, Some(mask), None, out),
        }
        let contexts = unfinished.get_or_insert_default().contexts.get_or_insert_default();
        contexts.sent.append(payload, self.sends.bits.min(DeflateContext::SENT_BITS_MAX));
    }

    /// Appends a pong, unless a close frame was sent.
    pub(super) fn write_pong(&self, payload: &[u8], mask: Option<[u8; 4]>, out: &mut Vec<u8>) {
        if self.is_open() {
            append_control(Opcode::Pong, payload, mask, out);
        }
    }

    /// Appends a ping, unless a close frame was sent.
    pub(super) fn write_ping(&self, payload: &[u8], mask: Option<[u8; 4]>, out: &mut Vec<u8>) {
        if self.is_open() {
            append_control(Opcode::Ping, payload, mask, out);
        }
    }

    /// Appends a close frame, unless one was sent. Reports whether it appended the frame.
    pub(super) fn write_close(
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

/// Reads the bytes that arrived before the upgrade response together with those that arrive now.
/// They are few and rare, so the remaining bytes are copied for each frame.
#[cold]
fn read_early<'a>(
    unfinished: &mut Option<Box<Reassembly>>,
    role: Role,
    window: DeflateWindow,
    early: &'a mut [u8],
    limits: &WebSocketLimits,
    buffers: &'a mut ScratchBuffers,
) -> Result<Option<PeerEvent<'a>>, Violation> {
    let mut input = Input::new(early);
    let event = next_event(unfinished, role, window, &mut input, limits, buffers);
    if !input.is_empty() {
        unfinished.get_or_insert_default().early.append(input.peek());
    }
    event
}
