//! The output of a session, independent of how its input is cut.

use throng_base::{Instant, Prng};
use throng_proto::websocket::{Scratch, WebSocketLimits};
use throng_proto::{Input, Session};

/// The complete output of a session.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The events in their debug form.
    pub events: Vec<String>,
    /// The bytes that the session sends.
    pub sent: Vec<u8>,
}

/// The next step after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Continue to read.
    Go,
    /// The connection closes; the remaining bytes are not read.
    Stop,
    /// The connection closes with an error. Which error is found first may depend on the cut, so
    /// its bytes are ignored.
    Fault,
}

/// Runs `bytes` through sessions of `begin`: whole, byte by byte, and cut at random. Checks that
/// all transcripts are equal. `on_event` receives each event; `respond` runs after it, when the
/// event has ended.
pub fn check<S: Session<Scratch = Scratch>>(
    bytes: &[u8],
    begin: impl Fn(&mut Scratch, &mut Vec<u8>) -> S,
    on_event: impl Fn(&S, S::Event<'_>) -> (String, Then),
    respond: impl Fn(&mut S, &mut Vec<u8>) -> Then,
) -> Transcript {
    let run = |cut: &mut dyn FnMut() -> usize| {
        let mut scratch = Scratch::new(LIMITS, 7);
        let mut transcript = Transcript::default();
        let mut session = begin(&mut scratch, &mut transcript.sent);
        let mut left = bytes.to_vec();
        let mut left = &mut left[..];
        let mut then = Then::Go;
        while !left.is_empty() && then == Then::Go {
            let (piece, rest) = left.split_at_mut(cut().clamp(1, left.len()));
            left = rest;
            let mut input = Input::new(piece);
            while then == Then::Go {
                let sent = &mut transcript.sent;
                let sent_before = sent.len();
                let Some(event) = session.next(NOW, &mut input, &mut scratch, sent) else { break };
                let (text, next) = on_event(&session, event);
                transcript.events.push(text);
                then = next;
                match then {
                    Then::Go => then = respond(&mut session, sent),
                    Then::Stop => {}
                    Then::Fault => sent.truncate(sent_before),
                }
            }
            assert!(then != Then::Go || input.is_empty(), "input left over: {:?}", input.peek());
        }
        transcript.sent = without_continue(&transcript.sent);
        transcript
    };
    let whole = run(&mut || usize::MAX);
    assert_eq!(run(&mut || 1), whole, "byte by byte, and whole");
    let mut prng = Prng::new(bytes.len() as u64);
    assert_eq!(run(&mut || prng.between(1, 40) as usize), whole, "cut at random, and whole");
    whole
}

/// Removes `100 Continue`, which is sent only to a client whose body has not arrived with the head
/// (RFC 9110 section 10.1.1).
fn without_continue(mut sent: &[u8]) -> Vec<u8> {
    const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    let mut kept = Vec::new();
    while let Some((&first, rest)) = sent.split_first() {
        sent = sent.strip_prefix(CONTINUE).unwrap_or_else(|| {
            kept.push(first);
            rest
        });
    }
    kept
}

/// Limits that inputs of a few hundred bytes can reach.
pub const LIMITS: WebSocketLimits = WebSocketLimits {
    head_bytes_max: 512,
    body_bytes_max: 256,
    frame_bytes_max: 1_024,
    message_bytes_max: 2_048,
    inflate_ratio_max: 100,
    handshake_timeout_ms: 10_000,
    message_timeout_ms: 60_000,
    close_timeout_ms: 5_000,
};

pub const NOW: Instant = Instant::from_nanos(1);
