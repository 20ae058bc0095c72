//! Events that a user records: everything that is more than one counter.

use throng_base::Instant;
use throng_measure::Operation;
use throng_proto::http::{HttpResponse, PartialResponse, Response, ResponseError};
use throng_proto::phoenix::client::PushReply;
use throng_proto::websocket::Violation;

use super::error::{ConnectFailure, ErrorKind};
use super::timing::AnswerTiming;
use crate::program::{IncomingMessage, Loop, StepIndex, UnsendablePart, VariableScope};
use crate::protocols::http::request::HttpDifference;

/// Event that a user records. A latency counts from the intended moment `from` to the arrival of
/// what ended it.
#[derive(Clone, Debug)]
pub(crate) enum Record<'a> {
    /// An iteration of the program begins.
    Begin,
    /// It ends.
    End(IterationEnd),
    /// A connect succeeded.
    Connected { from: Instant, timing: AnswerTiming },
    /// A connection was established that a request has opened.
    RequestConnected { from: Instant, timing: AnswerTiming },
    /// An HTTP request that left at `sent` was answered with this status, and not as expected if
    /// there is a difference.
    HttpAnswered {
        status: u16,
        difference: Option<HttpDifference>,
        from: Instant,
        sent: Instant,
        timing: AnswerTiming,
    },
    /// A connect failed; `is_upgrade` if TCP was established.
    ConnectFailed { why: ConnectFailure, is_upgrade: bool },
    /// The server ended a connection during the handshake of TLS, which began at `from`.
    HandshakeCut { why: ConnectFailure, from: Instant },
    /// The server refused a connect (`ECONNREFUSED`).
    ConnectRefused,
    /// The server ended a connection unexpectedly.
    ConnectionLost,
    /// The server ended a WebSocket by a close frame.
    PeerClosed { code: Option<u16>, reason: &'a str },
    /// This many joined channels ended.
    ChannelsLost(u64),
    /// The answer to an `expect` arrived. Without `from`, its latency would mean nothing.
    Answered { from: Option<Instant>, timing: AnswerTiming },
    /// The reply to a request arrived.
    Replied { from: Instant, timing: AnswerTiming },
    /// The pong to a ping arrived.
    Ponged { from: Instant, timing: AnswerTiming },
    /// An operation ended as expected, and its time is all that is recorded: a join, a push, or
    /// TCP's part of a WebSocket's connect.
    Done { operation: Operation, from: Instant, timing: AnswerTiming },
    /// An `expect` skips this message.
    Skipped(IncomingMessage<'a>),
    /// An `expect` skips this message, which arrived before it.
    SkippedKept(IncomingMessage<'a>),
    /// An error of an established connection.
    Error(ErrorKind),
    /// What was expected and what arrived, kept for the first error of each kind, and the values of
    /// the user's variables.
    Sample(Sample<'a>, VariableScope<'a>),
    /// A wait for the server since `from` ended without an answer; `is_tcp_part` if TCP's part of a
    /// WebSocket's connect was missing.
    Unanswered { kind: Option<Operation>, is_tcp_part: bool, from: Instant },
    /// A step with a name, or a transaction, is done. Without `from`, its latency would mean
    /// nothing.
    StepDone { step: StepIndex, from: Option<Instant>, timing: AnswerTiming },
    /// An error ended a step with a name, or a transaction.
    StepFailed(StepIndex),
    /// The user was stopped in a step with a name, or in a transaction.
    StepCut(StepIndex),
    /// The wait of a step with a name, or a transaction, since `from` ended without an answer.
    StepUnanswered { step: StepIndex, from: Instant },
    /// Turns of a loop came due and never begin.
    MissedTurns(MissedTurns),
    /// This many turns of loops came due.
    TurnsDue(u64),
    /// The user acts after this due moment, and only this generator delayed it.
    Late(Instant),
    /// A limit gives the user this turn.
    TurnGiven { limit: u16, turn: Instant },
    /// A wait for other users begins. So many wait at the barrier now; 0 for a signal.
    CueWaitBegun { cue: u16, waiting: u32 },
    /// A wait for other users since `from` has ended.
    CueWaitEnded { cue: u16, from: Instant },
    /// The end of the run has cut off a wait for other users since `from`.
    CueWaitCut { cue: u16, from: Instant },
    /// The user has opened a barrier, or given a signal for the first time.
    CueOpened { cue: u16 },
    /// The user begins to rest after an error.
    RestBegun,
    /// It rests no more.
    RestOver,
}

impl Record<'_> {
    /// Reports whether an answer has arrived that the user waits for, right or wrong.
    pub(crate) fn is_of_answer(&self) -> bool {
        matches!(
            self,
            Self::Answered { .. }
                | Self::Replied { .. }
                | Self::HttpAnswered { .. }
                | Self::Error(ErrorKind::ExpectMismatch)
        )
    }
}

/// End of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IterationEnd {
    /// The program ran to its end.
    Finished,
    /// An error ended it, or occurred in it.
    Failed,
    /// The user was stopped.
    Cut,
}

/// Turns of a loop that came due and never begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MissedTurns {
    /// True if an error ended their loop; false if their user is stopped.
    pub(crate) has_failed: bool,
    /// Histogram of their first latency.
    pub(crate) kind: Option<Operation>,
    pub(crate) looping: Loop,
    /// Beginning of the loop.
    pub(crate) begun_at: Instant,
    /// The first turn that does not begin.
    pub(crate) first: u64,
    /// The turn after the last one.
    pub(crate) end: u64,
}

/// Error with what was expected and what arrived.
#[derive(Clone, Debug)]
pub(crate) enum Sample<'a> {
    /// Something else arrived than the op expects; bytes of a stream as a binary message.
    /// `came_first` if nothing had come before on its connection.
    Mismatch { kind: ErrorKind, got: IncomingMessage<'a>, came_first: bool },
    /// What the op expects did not arrive, except for these first bytes.
    Timeout { matched: u32 },
    /// The server violated the WebSocket protocol.
    Violation(Violation),
    /// TLS failed, in the handshake or later, and says this of it.
    TlsFailure(ErrorKind, &'a str),
    /// The answer to the upgrade, which begins with these bytes, violates the protocol.
    UpgradeViolation(Violation, &'a [u8]),
    /// The server refused the upgrade.
    UpgradeRefused(Response<'a>, &'a [u8]),
    /// A message is not one of Phoenix Channels.
    BadMessage(&'a [u8]),
    /// A request was answered with another status than ok.
    Refusal(ErrorKind, &'a PushReply<'a>),
    /// An HTTP request was answered otherwise than expected.
    HttpResponse(ErrorKind, HttpDifference, HttpResponse<'a>),
    /// The answer to an HTTP request, which begins with these bytes, cannot be read.
    HttpViolation(ErrorKind, ResponseError, &'a [u8]),
    /// Only this part of the answer to an HTTP request arrived.
    HttpPart(ErrorKind, PartialResponse<'a>),
    /// These bytes answer no HTTP request.
    HttpUnasked(&'a [u8]),
    /// A part of the request of the step cannot be sent.
    Unsendable(&'a UnsendablePart),
}
