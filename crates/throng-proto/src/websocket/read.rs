//! The next message, or control frame, of a stream of frames.

use crate::Input;
use crate::websocket::header::{Header, Role};
use crate::websocket::inflate::Inflater;
use crate::websocket::reassembly::{Message, Progress, Reassembly};
use crate::websocket::scratch::ScratchBuffers;
use crate::websocket::{Violation, WebSocketLimits, mask};

/// What the peer said. Both ends' events are made of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PeerEvent<'a> {
    Text(&'a str),
    Binary(&'a [u8]),
    Ping(&'a [u8]),
    Pong(&'a [u8]),
    Closed { code: Option<u16>, reason: &'a str },
    Failed(Violation),
}

/// The next thing said in `input`; all of it is consumed if there is none. A message of one frame that is all there is
/// unmasked where it stands and lent from there. Everything else goes through `unfinished`.
#[inline]
pub(super) fn read<'a, 'i: 'a>(
    unfinished: &mut Option<Box<Reassembly>>,
    role: Role,
    deflate: bool,
    input: &mut Input<'i>,
    limits: &WebSocketLimits,
    room: &'a mut ScratchBuffers,
) -> Result<Option<PeerEvent<'a>>, Violation> {
    room.tidy();
    loop {
        if let Some(kept) = unfinished.as_deref_mut().filter(|kept| kept.is_inside()) {
            let count = kept.wants().min(input.peek().len());
            match kept.take(input.take(count))? {
                Progress::Wanting => return Ok(None),
                Progress::Frame => continue,
                Progress::Message(message) => {
                    release(unfinished);
                    return finish(message, limits, room, input).map(Some);
                }
            }
        }
        if input.is_empty() {
            return Ok(None);
        }
        let header = match unfinished.as_deref_mut().filter(|kept| !kept.pending.is_empty()) {
            None => match Header::parse(input.peek(), role, deflate, limits)? {
                Some(header) if input.peek().len() >= header.reach() => {
                    input.take(header.size);
                    if header.is_control() {
                        let payload = input.take(header.length);
                        mask::apply(header.mask, 0, payload);
                        return say(header.opcode, payload).map(Some);
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
                let known = kept.pending.len();
                // Neither a header nor a control frame is longer than this.
                let more = input.peek().len().min(Header::SIZE_MAX + room.control.len() - known);
                kept.pending.extend_from_slice(&input.peek()[..more]);
                let header = Header::parse(&kept.pending, role, deflate, limits)?;
                let Some(header) = header.filter(|one| kept.pending.len() >= one.reach()) else {
                    input.take_all();
                    return Ok(None);
                };
                input.take(header.reach() - known);
                if header.is_control() {
                    let payload = &mut room.control[..header.length];
                    payload.copy_from_slice(&kept.pending[header.size..header.reach()]);
                    mask::apply(header.mask, 0, payload);
                    kept.pending.clear();
                    release(unfinished);
                    return say(header.opcode, payload).map(Some);
                }
                kept.pending.clear();
                header
            }
        };
        let begun = unfinished.as_deref().and_then(Reassembly::message_bytes);
        check_place(&header, begun, limits)?;
        if begun.is_none() && header.is_final && input.peek().len() >= header.length {
            let payload = input.take(header.length);
            mask::apply(header.mask, 0, payload);
            release(unfinished);
            let (is_text, is_deflated) = (header.opcode == Header::TEXT, header.is_deflated);
            let inflater = &mut room.inflater;
            return whole(payload, is_text, is_deflated, limits, inflater, input).map(Some);
        }
        unfinished.get_or_insert_default().begin(&header);
    }
}

/// A frame in its place: does it continue what was begun, and does it still fit?
#[inline]
fn check_place(
    header: &Header,
    begun: Option<usize>,
    limits: &WebSocketLimits,
) -> Result<(), Violation> {
    match (header.opcode == Header::CONTINUATION, begun) {
        (true, None) => Err(Violation::Continuation),
        (false, Some(_)) => Err(Violation::Interleaved),
        _ if begun.unwrap_or(0) + header.length > limits.message_bytes_max => {
            Err(Violation::MessageTooLarge)
        }
        _ => Ok(()),
    }
}

/// A message that came in pieces moves to the room, for the event to borrow.
#[cold]
fn finish<'a>(
    message: Message,
    limits: &WebSocketLimits,
    room: &'a mut ScratchBuffers,
    input: &mut Input<'_>,
) -> Result<PeerEvent<'a>, Violation> {
    room.whole = message.bytes;
    let (is_text, is_deflated) = (message.is_text, message.is_deflated);
    whole(&room.whole, is_text, is_deflated, limits, &mut room.inflater, input)
}

/// A message of which all bytes are there, unmasked.
#[inline]
fn whole<'a>(
    payload: &'a [u8],
    is_text: bool,
    is_deflated: bool,
    limits: &WebSocketLimits,
    inflater: &'a mut Inflater,
    input: &mut Input<'_>,
) -> Result<PeerEvent<'a>, Violation> {
    let payload = if is_deflated {
        let inflated = inflater.inflate(payload, limits.message_bytes_max)?;
        input.charge(inflated.work);
        inflated.bytes
    } else {
        payload
    };
    if is_text {
        simdutf8::basic::from_utf8(payload).map(PeerEvent::Text).map_err(|_| Violation::NotUtf8)
    } else {
        Ok(PeerEvent::Binary(payload))
    }
}

/// What a control frame says.
fn say(opcode: u8, payload: &[u8]) -> Result<PeerEvent<'_>, Violation> {
    match (opcode, payload) {
        (Header::PING, payload) => Ok(PeerEvent::Ping(payload)),
        (Header::CLOSE, []) => Ok(PeerEvent::Closed { code: None, reason: "" }),
        (Header::CLOSE, &[high, low, ref reason @ ..]) => {
            let code = u16::from_be_bytes([high, low]);
            if !may_be_sent(code) {
                return Err(Violation::CloseCode);
            }
            let reason = str::from_utf8(reason).map_err(|_| Violation::NotUtf8)?;
            Ok(PeerEvent::Closed { code: Some(code), reason })
        }
        (Header::CLOSE, _) => Err(Violation::CloseCode),
        (_, payload) => Ok(PeerEvent::Pong(payload)),
    }
}

/// RFC 6455 section 7.4 and the registry that it founded: 1004 to 1006 and 1015 are for use inside an endpoint.
const fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// Gives the memory back when nothing is unfinished.
fn release(unfinished: &mut Option<Box<Reassembly>>) {
    unfinished.take_if(|kept| kept.is_empty());
}
