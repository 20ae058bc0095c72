//! The reader that finds messages and control frames in a stream of frames.

use crate::websocket::context::DeflateWindow;
use crate::websocket::header::{Header, Role};
use crate::websocket::inflate::Inflater;
use crate::websocket::reassembly::{Message, Progress, Reassembly};
use crate::websocket::scratch::ScratchBuffers;
use crate::websocket::{Violation, WebSocketLimits, mask};
use crate::{HeldBudget, Input};

/// An event from the peer, the common form of client and server events.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PeerEvent<'a> {
    Text(&'a str),
    Binary(&'a [u8]),
    Ping(&'a [u8]),
    Pong(&'a [u8]),
    Closed { code: Option<u16>, reason: &'a str },
    Failed(Violation),
}

/// Returns the next event of `input`; consumes all of `input` if there is none. A message that is
/// one complete frame is unmasked in place and borrows `input`. Every other message passes through
/// `unfinished`.
#[inline]
pub(super) fn next_event<'a, 'i: 'a>(
    unfinished: &mut Option<Box<Reassembly>>,
    role: Role,
    window: DeflateWindow,
    input: &mut Input<'i>,
    limits: &WebSocketLimits,
    buffers: &'a mut ScratchBuffers,
) -> Result<Option<PeerEvent<'a>>, Violation> {
    let deflate = window.bits != 0;
    buffers.shrink();
    loop {
        if let Some(kept) = unfinished.as_deref_mut().filter(|kept| kept.is_in_frame()) {
            let count = kept.frame_bytes_missing().min(input.peek().len());
            match kept.append_payload(input.take(count))? {
                Progress::Incomplete => return Ok(None),
                Progress::Frame => continue,
                Progress::MessageComplete(message) => {
                    release(unfinished);
                    let context = (window, &mut *unfinished);
                    return decode_reassembled(message, context, limits, buffers, input).map(Some);
                }
            }
        }
        if input.is_empty() {
            return Ok(None);
        }
        let header = match unfinished.as_deref_mut().filter(|kept| !kept.pending.is_empty()) {
            None => match Header::parse(input.peek(), role, deflate, limits)? {
                Some(header) if input.peek().len() >= header.bytes_needed() => {
                    input.take(header.header_bytes);
                    if header.is_control() {
                        let payload = input.take(header.payload_bytes);
                        mask::apply(header.mask, 0, payload);
                        return decode_control(header.opcode, payload).map(Some);
                    }
                    header
                }
                _ => {
                    let kept = unfinished.get_or_insert_default();
                    kept.pending.extend_from_slice(input.take_all());
                    return Ok(None);
                }
            },
            Some(kept) => {
                let pending_bytes = kept.pending.len();
                // A header or a control frame is never longer than this.
                let most = Header::HEADER_BYTES_MAX + buffers.control.len() - pending_bytes;
                let more = input.peek().len().min(most);
                kept.pending.extend_from_slice(&input.peek()[..more]);
                let header = Header::parse(&kept.pending, role, deflate, limits)?;
                let Some(header) = header.filter(|one| kept.pending.len() >= one.bytes_needed())
                else {
                    input.take_all();
                    return Ok(None);
                };
                input.take(header.bytes_needed() - pending_bytes);
                if header.is_control() {
                    let payload = &mut buffers.control[..header.payload_bytes];
                    payload
                        .copy_from_slice(&kept.pending[header.header_bytes..header.bytes_needed()]);
                    mask::apply(header.mask, 0, payload);
                    kept.pending.clear();
                    release(unfinished);
                    return decode_control(header.opcode, payload).map(Some);
                }
                kept.pending.clear();
                header
            }
        };
        let started = unfinished.as_deref().and_then(Reassembly::message_bytes);
        check_sequence(&header, started, limits)?;
        if started.is_none() && header.is_final && input.peek().len() >= header.payload_bytes {
            let payload = input.take(header.payload_bytes);
            mask::apply(header.mask, 0, payload);
            let context = (window, &mut *unfinished);
            return decode_frame(&header, payload, context, limits, buffers, input).map(Some);
        }
        unfinished.get_or_insert_default().begin_frame(&header, &buffers.held);
    }
}

/// Returns the message that is one frame, from its unmasked payload.
#[inline]
fn decode_frame<'a>(
    header: &Header,
    payload: &'a [u8],
    (window, unfinished): (DeflateWindow, &mut Option<Box<Reassembly>>),
    limits: &WebSocketLimits,
    buffers: &'a mut ScratchBuffers,
    input: &mut Input<'_>,
) -> Result<PeerEvent<'a>, Violation> {
    release(unfinished);
    let is_text = header.opcode == Header::TEXT;
    if header.is_deflated {
        let context = (window, unfinished, &buffers.held);
        let payload = inflate(payload, context, limits, &mut buffers.inflater, input)?;
        return decode_message(payload, is_text);
    }
    decode_message(payload, is_text)
}

/// Checks that a frame continues the message that has begun, and that the message stays within its
/// limit.
#[inline]
fn check_sequence(
    header: &Header,
    started: Option<usize>,
    limits: &WebSocketLimits,
) -> Result<(), Violation> {
    match (header.opcode == Header::CONTINUATION, started) {
        (true, None) => Err(Violation::Continuation),
        (false, Some(_)) => Err(Violation::Interleaved),
        _ if started.unwrap_or(0) + header.payload_bytes > limits.message_bytes_max => {
            Err(Violation::MessageTooLarge)
        }
        _ => Ok(()),
    }
}

/// Moves a message that arrived in pieces to the buffers, for the event to borrow, and decodes it.
#[cold]
fn decode_reassembled<'a>(
    mut message: Message,
    context: (DeflateWindow, &mut Option<Box<Reassembly>>),
    limits: &WebSocketLimits,
    buffers: &'a mut ScratchBuffers,
    input: &mut Input<'_>,
) -> Result<PeerEvent<'a>, Violation> {
    buffers.reassembled = message.bytes.take();
    let (is_text, is_deflated) = (message.is_text, message.is_deflated);
    let context = (context.0, context.1, &buffers.held);
    let payload = match is_deflated {
        true => inflate(&buffers.reassembled, context, limits, &mut buffers.inflater, input)?,
        false => &buffers.reassembled,
    };
    decode_message(payload, is_text)
}

/// Inflates a complete, unmasked message. If the peer takes its context over, the message may refer
/// to earlier ones, and later ones to this.
#[cold]
fn inflate<'a>(
    payload: &[u8],
    (window, unfinished, budget): (DeflateWindow, &mut Option<Box<Reassembly>>, &HeldBudget),
    limits: &WebSocketLimits,
    inflater: &'a mut Inflater,
    input: &mut Input<'_>,
) -> Result<&'a [u8], Violation> {
    let contexts = unfinished.as_deref().and_then(|kept| kept.contexts.as_deref());
    let context = contexts.map_or(&[][..], |contexts| contexts.received.bytes());
    let bytes_max = limits.inflated_bytes_max(payload.len());
    let inflated =
        inflater.inflate(context, payload, bytes_max).map_err(|violation| match violation {
            Violation::MessageTooLarge if bytes_max < limits.message_bytes_max => {
                Violation::InflateRatio
            }
            violation => violation,
        })?;
    input.charge(inflated.work);
    if window.takes_over {
        let contexts = unfinished.get_or_insert_default().contexts.get_or_insert_default();
        contexts.received.append(inflated.bytes, window.bits);
        contexts.count(budget).map_err(|_| Violation::HeldTooMuch)?;
    }
    Ok(inflated.bytes)
}

/// Checks the UTF-8 of a text.
#[inline]
fn decode_message(payload: &[u8], is_text: bool) -> Result<PeerEvent<'_>, Violation> {
    if is_text {
        simdutf8::basic::from_utf8(payload).map(PeerEvent::Text).map_err(|_| Violation::NotUtf8)
    } else {
        Ok(PeerEvent::Binary(payload))
    }
}

/// Decodes a control frame.
fn decode_control(opcode: u8, payload: &[u8]) -> Result<PeerEvent<'_>, Violation> {
    match (opcode, payload) {
        (Header::PING, payload) => Ok(PeerEvent::Ping(payload)),
        (Header::CLOSE, []) => Ok(PeerEvent::Closed { code: None, reason: "" }),
        (Header::CLOSE, &[high, low, ref reason @ ..]) => {
            let code = u16::from_be_bytes([high, low]);
            if !is_close_code_legal(code) {
                return Err(Violation::CloseCode);
            }
            let reason = str::from_utf8(reason).map_err(|_| Violation::NotUtf8)?;
            Ok(PeerEvent::Closed { code: Some(code), reason })
        }
        (Header::CLOSE, _) => Err(Violation::CloseCode),
        (_, payload) => Ok(PeerEvent::Pong(payload)),
    }
}

/// Reports whether an endpoint may send this close code. RFC 6455 section 7.4 and its registry
/// reserve 1004 to 1006 and 1015 for use inside an endpoint.
const fn is_close_code_legal(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// Frees the reassembly when it is empty.
fn release(unfinished: &mut Option<Box<Reassembly>>) {
    unfinished.take_if(|kept| kept.is_empty());
}
