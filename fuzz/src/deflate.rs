//! permessage-deflate (RFC 7692) against another implementation of deflate. The first byte selects
//! the direction.

use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_HAS_MORE_INPUT as HAS_MORE_INPUT,
    TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF as ONE_BUFFER,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use throng_proto::websocket::{Scratch, ServerEvent, Violation};
use throng_proto::{Input, Session};

use super::transcript::{LIMITS, NOW};
use super::websocket_server::open;

/// Checks that both implementations inflate the same bytes, and that ours inflates the output of
/// the other.
pub fn check(bytes: &[u8]) {
    let Some((direction, bytes)) = bytes.split_first() else { return };
    match direction & 1 {
        0 => inflate_both(bytes),
        _ => inflate_output_of_the_other(bytes, direction >> 1),
    }
}

fn inflate_both(payload: &[u8]) {
    match (ours(payload), theirs(payload)) {
        // zlib reports a block with invalid codes only when it decodes by them, and the message may
        // end before that.
        (Ok(ours), Ok(theirs) | Err(Failure::NotDeflate { after: theirs })) => {
            assert_eq!(ours, theirs, "{payload:?}");
        }
        // The limit applies to frames, too.
        (Err(Violation::MessageTooLarge), _) if payload.len() > LIMITS.message_bytes_max => {}
        (Err(Violation::MessageTooLarge), theirs) => {
            assert_eq!(theirs, Err(Failure::TooLarge), "{payload:?}");
        }
        // The other implementation accepts some codes that are not legal, and any number of final
        // blocks.
        (Err(Violation::NotDeflate), _) => {}
        (ours, theirs) => panic!("{ours:?}, {theirs:?}: {payload:?}"),
    }
}

fn inflate_output_of_the_other(message: &[u8], level: u8) {
    let message = &message[..message.len().min(LIMITS.message_bytes_max)];
    let payload = compress_to_vec(message, level % 11);
    match ours(&payload) {
        // A message that cannot be compressed becomes longer.
        Err(Violation::MessageTooLarge) => assert!(payload.len() > LIMITS.message_bytes_max),
        ours => assert_eq!(ours, Ok(message.to_vec())),
    }
}

/// Returns the server's result for a message with this payload, in frames as long as it permits.
fn ours(payload: &[u8]) -> Result<Vec<u8>, Violation> {
    let mut scratch = Scratch::new(LIMITS, 1);
    let mut server = open(true, &mut scratch);
    let mut frames = Vec::new();
    let mut pieces = payload.chunks(1_000).peekable();
    let mut opcode = RSV1 | BINARY;
    loop {
        let piece = pieces.next().unwrap_or_default();
        let fin = if pieces.peek().is_some() { 0 } else { FIN };
        frames.extend_from_slice(&[fin | opcode, MASKED | 126]);
        match piece.len() {
            short @ ..126 => *frames.last_mut().unwrap() = MASKED | short as u8,
            long => frames.extend_from_slice(&(long as u16).to_be_bytes()),
        }
        // A mask of zeros changes nothing.
        frames.extend_from_slice(&[0; 4]);
        frames.extend_from_slice(piece);
        opcode = 0;
        if fin == FIN {
            break;
        }
    }
    let mut input = Input::new(&mut frames);
    match server.next(NOW, &mut input, &mut scratch, &mut Vec::new()) {
        Some(ServerEvent::Binary(message)) => Ok(message.to_vec()),
        Some(ServerEvent::Failed(violation)) => Err(violation),
        event => panic!("{event:?}"),
    }
}

const FIN: u8 = 0x80;
const RSV1: u8 = 0x40;
const BINARY: u8 = 2;
const MASKED: u8 = 0x80;

#[derive(Debug, PartialEq, Eq)]
enum Failure {
    /// The payload is not deflate; `after` is the output before the error.
    NotDeflate {
        after: Vec<u8>,
    },
    TooLarge,
}

/// Inflates by miniz_oxide: one stream after another until no input is left.
fn theirs(payload: &[u8]) -> Result<Vec<u8>, Failure> {
    let input = [payload, &[0, 0, 0xff, 0xff]].concat();
    let mut message = Vec::new();
    let mut from = 0;
    while from < input.len() {
        // No stream refers to an earlier one, so each has its own buffer. One byte beyond the limit
        // shows that the message is too large.
        let mut out = vec![0; LIMITS.message_bytes_max + 1 - message.len()];
        let mut state = DecompressorOxide::new();
        let flags = ONE_BUFFER | HAS_MORE_INPUT;
        let (status, read, written) = decompress(&mut state, &input[from..], &mut out, 0, flags);
        message.extend_from_slice(&out[..written]);
        if message.len() > LIMITS.message_bytes_max {
            return Err(Failure::TooLarge);
        }
        from += read;
        match status {
            TINFLStatus::Done => {}
            TINFLStatus::NeedsMoreInput => break,
            TINFLStatus::HasMoreOutput => return Err(Failure::TooLarge),
            _ => return Err(Failure::NotDeflate { after: message }),
        }
    }
    Ok(message)
}
