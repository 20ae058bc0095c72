//! Events that a user records: everything that is more than one counter.

use throng_base::Instant;
use throng_proto::phoenix::client::PushReply;
use throng_proto::websocket::Violation;

use super::error::{ConnectFailure, ErrorKind};
use super::timing::AnswerTiming;
use crate::program::{LatencyKind, Loop};

/// Event that a user records.
#[derive(Clone, Debug)]
pub(crate) enum Record<'a> {
    /// An iteration of the program begins.
    Begin,
    /// It ends.
    End(IterationEnd),
    /// TCP's part of a WebSocket's connect succeeded.
    TcpConnected {
        /// Intended moment of the connect.
        from: Instant,
        /// Arrival of the server's SYN-ACK.
        timing: AnswerTiming,
    },
    /// A connect succeeded.
    Connected {
        /// Intended moment of the connect.
        from: Instant,
        /// Arrival of its last part.
        timing: AnswerTiming,
    },
    /// A connect failed.
    ConnectFailed(ConnectFailure),
    /// The server refused a connect (`ECONNREFUSED`).
    ConnectRefused,
    /// The server ended a connection unexpectedly.
    ConnectionLost,
    /// The server ended a WebSocket by a close frame.
    PeerClosed {
        /// Its close code.
        code: Option<u16>,
        /// Its reason; often empty.
        reason: &'a str,
    },
    /// This many joined channels ended with their connection.
    ChannelsLost(u64),
    /// The answer to an `expect`.
    Answered {
        /// Arrival of the answer.
        timing: AnswerTiming,
        /// Moment from which its latency counts; `None` if a latency would mean nothing.
        from: Option<Instant>,
    },
    /// The reply to a request that has waited since then.
    Replied {
        /// Arrival of the reply.
        timing: AnswerTiming,
        /// Intended moment of the request.
        from: Instant,
    },
    /// A join was answered ok.
    Joined {
        /// Intended moment of the join.
        from: Instant,
        /// Arrival of the reply.
        timing: AnswerTiming,
    },
    /// A push was answered ok.
    Pushed {
        /// Intended moment of the push.
        from: Instant,
        /// Arrival of the reply.
        timing: AnswerTiming,
    },
    /// Something arrived at this moment that no step waits for: the target is alive.
    Unasked(Instant),
    /// An `expect` skips this message.
    Skipped(&'a [u8]),
    /// An error of an established connection.
    Error(ErrorKind),
    /// What was expected and what arrived, kept for the first error of each kind.
    Sample(Sample<'a>),
    /// A wait ended without an answer.
    Unanswered {
        /// Histogram of the wait; `None` if only TCP's part is measured.
        kind: Option<LatencyKind>,
        /// True if TCP's part of a WebSocket's connect was missing.
        is_tcp_part: bool,
        /// Moment from which it counts.
        from: Instant,
    },
    /// Turns of a loop that came due and never begin.
    MissedTurns(MissedTurns),
    /// Turns of loops that came due.
    TurnsDue(u64),
    /// The user was late by the time since then, and only because of this generator.
    Late(Instant),
    /// The user begins to rest after an error.
    RestBegun,
    /// It rests no more.
    RestOver,
}

/// End of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IterationEnd {
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
    pub(crate) kind: Option<LatencyKind>,
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
    /// Something else arrived than the op at `pc` expects.
    Mismatch {
        /// The op.
        pc: u32,
        /// What arrived.
        got: &'a [u8],
    },
    /// What the op at `pc` expects did not arrive.
    Timeout {
        /// The op.
        pc: u32,
        /// Bytes of it that did.
        matched: u32,
    },
    /// The server violated the WebSocket protocol.
    Violation(Violation),
    /// The answer to the upgrade, which begins with these bytes, violates the protocol.
    UpgradeViolation(Violation, &'a [u8]),
    /// A message is not one of Phoenix Channels.
    BadMessage(&'a [u8]),
    /// A request was answered with another status than ok.
    Refusal(ErrorKind, &'a PushReply<'a>),
}
