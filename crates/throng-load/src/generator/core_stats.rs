//! Counters and histograms of one core: written by the core alone, handed over as a whole.

use std::fmt;

use throng_base::Instant;
use throng_driver::Errno;
use throng_engine::CloseReason;
use throng_report::{
    ArrivalLatencies, ClassCounters, CoreCounters, Histogram, LoadCounters, UnansweredWaits,
};

use super::error_samples::ErrorSample;
use super::incidents::Incidents;
use super::probe_ledger::ProbeTally;
use super::timing::AnswerTiming;

/// One core's counters since the start, and its histograms since the previous hand-over.
#[derive(Clone, Debug, Default)]
pub struct CoreStats {
    /// The core's number.
    pub core_id: usize,
    /// Number of the load phase.
    pub phase: usize,
    /// True once the schedule is over and all users have left.
    pub finished: bool,
    /// Moment of the hand-over, which the counters are valid for.
    pub taken_at: Instant,
    /// Counters of the users' actions.
    pub counters: LoadCounters,
    /// Counters of the event loop.
    pub core: CoreCounters,
    /// Counters by class of users.
    pub classes: Vec<ClassCounters>,
    /// Errors of established connections, in the order of [`ErrorKind::ALL`].
    pub errors: [u64; ErrorKind::ALL.len()],
    /// Connections that the server closed unexpectedly by a close frame, by its code.
    pub close_codes: Vec<(Option<u16>, u64)>,
    /// Failed connects by reason.
    pub connect_failures: Vec<(ConnectFailure, u64)>,
    /// Latency from the intended moment of a connect until it succeeded.
    pub connect: Histogram,
    /// TCP's part of the connect latency; of WebSockets only.
    pub tcp: Histogram,
    /// Latency from the intended moment of a message until its answer was complete.
    pub message: Histogram,
    /// Latency from the intended moment of a join until it was answered ok.
    pub join: Histogram,
    /// Latency from the intended moment of a push until it was answered ok.
    pub push: Histogram,
    /// The same latencies, with the end of each by the kernel's clock.
    pub arrival: ArrivalLatencies,
    /// Waits of users without an answer, until the time-out or until they were stopped.
    pub unanswered: UnansweredWaits,
    /// Counts and latencies of probes since the previous hand-over.
    pub probes: Vec<ProbeTally>,
    /// Lag: lateness of actions that only depended on the generator.
    pub lag: Histogram,
    /// Times without answers, and times in which the target was away.
    pub incidents: Incidents,
    /// The first error of each kind.
    pub samples: Vec<ErrorSample>,
    /// Gauge: users that rest after an error.
    pub(super) resting: u64,
}

impl CoreStats {
    /// Creates empty stats.
    pub fn new(core_id: usize, classes: usize) -> Self {
        Self { core_id, classes: vec![ClassCounters::default(); classes], ..Self::default() }
    }

    /// Copies everything but the histograms from `other`.
    pub(crate) fn clone_counters_from(&mut self, other: &Self) {
        self.core_id = other.core_id;
        self.phase = other.phase;
        self.finished = other.finished;
        self.taken_at = other.taken_at;
        self.resting = other.resting;
        self.errors = other.errors;
        self.counters.clone_from(&other.counters);
        self.core.clone_from(&other.core);
        self.classes.clone_from(&other.classes);
        self.connect_failures.clone_from(&other.connect_failures);
        self.close_codes.clone_from(&other.close_codes);
    }

    /// Clears the measurements and frees their memory. Counters stay.
    pub(crate) fn clear_measured(&mut self) {
        for histogram in [
            &mut self.connect,
            &mut self.tcp,
            &mut self.message,
            &mut self.join,
            &mut self.push,
            &mut self.lag,
        ] {
            *histogram = Histogram::new();
        }
        self.arrival = ArrivalLatencies::default();
        self.unanswered = UnansweredWaits::default();
        self.probes.clear();
        self.samples.clear();
        self.incidents = Incidents::default();
    }

    /// Reuses these stats as the successor of `other`: counters continue, histograms start empty.
    pub(super) fn continue_from(mut self: Box<Self>, other: &Self) -> Box<Self> {
        self.clear_measured();
        self.clone_counters_from(other);
        self.incidents = other.incidents.for_next_interval();
        self
    }

    /// Returns the tally of probe `number` since the previous hand-over.
    pub(super) fn probe(&mut self, number: u32) -> &mut ProbeTally {
        // It is nearly always the latest.
        let found = self.probes.iter().rposition(|tally| tally.number == number);
        let index = found.unwrap_or_else(|| {
            self.probes.push(ProbeTally { number, ..ProbeTally::default() });
            self.probes.len() - 1
        });
        &mut self.probes[index]
    }

    /// Counts a successful connect and records its latency.
    pub(super) fn count_connect(&mut self, (from, timing): (Instant, AnswerTiming), class: u16) {
        timing.record(from, &mut self.connect, &mut self.arrival.connect);
        self.counters.connects_ok += 1;
        self.counters.connected += 1;
        self.classes[usize::from(class)].connects_ok += 1;
    }

    /// Counts an answer. Records its latency if that means something.
    pub(super) fn count_answer(&mut self, measured: Option<(Instant, AnswerTiming)>, class: u16) {
        if let Some((from, timing)) = measured {
            timing.record(from, &mut self.message, &mut self.arrival.message);
            self.arrival.by_own_clock += timing.by_own_clock();
        }
        self.counters.messages_answered += 1;
        self.classes[usize::from(class)].messages_answered += 1;
    }

    /// Counts a join that was answered ok and records its latency.
    pub(super) fn count_join(&mut self, from: Instant, timing: AnswerTiming) {
        timing.record(from, &mut self.join, &mut self.arrival.join);
        self.arrival.by_own_clock += timing.by_own_clock();
        self.counters.joins_ok += 1;
        self.counters.joined += 1;
    }

    /// Counts a push that was answered ok and records its latency.
    pub(super) fn count_push(&mut self, from: Instant, timing: AnswerTiming) {
        timing.record(from, &mut self.push, &mut self.arrival.push);
        self.arrival.by_own_clock += timing.by_own_clock();
        self.counters.pushes_ok += 1;
    }

    pub(super) fn count_connect_failure(&mut self, why: ConnectFailure) {
        self.counters.connects_failed += 1;
        count(&mut self.connect_failures, why);
    }

    /// Counts a connection that the server closed with `code`.
    pub(super) fn count_close(&mut self, code: Option<u16>) {
        count(&mut self.close_codes, code);
    }

    /// Returns the number of errors of established connections.
    pub fn errors_total(&self) -> u64 {
        let closed: u64 = self.close_codes.iter().map(|(_, count)| count).sum();
        closed + self.errors.iter().sum::<u64>()
    }
}

/// Adds one to the count of `kind`.
fn count<T: PartialEq>(counts: &mut Vec<(T, u64)>, kind: T) {
    match counts.iter_mut().find(|(known, _)| *known == kind) {
        Some((_, count)) => *count += 1,
        None => counts.push((kind, 1)),
    }
}

/// Reason of a failed connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectFailure {
    /// No result within the time-out of the step.
    Timeout,
    /// An error of the kernel.
    Errno(Errno),
    /// The server answered the upgrade with this HTTP status.
    Http(u16),
    /// The server's answer to the upgrade violates the protocol.
    Violation,
    /// The server closed the connection instead of answering the upgrade.
    Closed,
    /// The kernel connected the socket to itself: the target's own address and port were its
    /// source.
    SelfConnected,
    /// A fault of throng itself.
    Internal,
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("timeout"),
            Self::Errno(errno) => match errno.name() {
                "E?" => write!(f, "errno {}", errno.0),
                name => f.write_str(name),
            },
            Self::Http(status) => write!(f, "http_{status}"),
            Self::Violation => f.write_str("upgrade_violation"),
            Self::Closed => f.write_str("upgrade_closed"),
            Self::SelfConnected => f.write_str("self_connected"),
            Self::Internal => f.write_str("internal"),
        }
    }
}

/// Returns the name of a close code among the errors: `ws_close_1011`, or `ws_close_none` without a
/// code.
pub(crate) fn close_code_name(code: Option<u16>) -> String {
    code.map_or_else(|| "ws_close_none".to_owned(), |code| format!("ws_close_{code}"))
}

/// Errors of an established connection. A mismatch and a time-out are different errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The server closed the connection unexpectedly.
    ClosedByPeer,
    /// The server reset the connection.
    ResetByPeer,
    /// The answer that `expect` waits for did not arrive in time.
    ExpectTimeout,
    /// Something else arrived.
    ExpectMismatch,
    /// The kernel refused to send.
    SendFailed,
    /// The server did not accept what was sent.
    SendOverflow,
    /// More than `inbox_bytes_max` arrived while no step waited for it.
    InboxOverflow,
    /// A step needed a connection that an earlier error had closed (`on_error: continue`).
    NotConnected,
    /// The kernel closed the connection with another error.
    SocketError,
    /// A fault of throng itself.
    Internal,
    /// The server violated the WebSocket protocol, or exceeded a limit.
    WebSocketViolation,
    /// The server sent a message that is not valid in Phoenix Channels.
    BadMessage,
    /// A heartbeat was not answered until the next one was due.
    HeartbeatTimeout,
    /// A join was answered with another status than ok.
    JoinRefused,
    /// A join was not answered in time.
    JoinTimeout,
    /// A push was answered with another status than ok.
    PushRefused,
    /// A push was not answered in time.
    PushTimeout,
    /// A leave was answered with another status than ok.
    LeaveRefused,
    /// A leave was not answered in time.
    LeaveTimeout,
    /// A step needed a channel that an earlier error had closed (`on_error: continue`).
    NotJoined,
    /// A channel of the user crashed (`phx_error`).
    ChannelError,
    /// A channel of the user was closed (`phx_close`).
    ChannelClosed,
    /// The push of a probe was answered with another status than ok.
    ProbeRefused,
}

impl ErrorKind {
    /// All kinds, in the order of [`CoreStats::errors`].
    pub const ALL: [Self; 23] = [
        Self::ClosedByPeer,
        Self::ResetByPeer,
        Self::ExpectTimeout,
        Self::ExpectMismatch,
        Self::SendFailed,
        Self::SendOverflow,
        Self::InboxOverflow,
        Self::NotConnected,
        Self::SocketError,
        Self::Internal,
        Self::WebSocketViolation,
        Self::BadMessage,
        Self::HeartbeatTimeout,
        Self::JoinRefused,
        Self::JoinTimeout,
        Self::PushRefused,
        Self::PushTimeout,
        Self::LeaveRefused,
        Self::LeaveTimeout,
        Self::NotJoined,
        Self::ChannelError,
        Self::ChannelClosed,
        Self::ProbeRefused,
    ];

    /// Returns the name of the kind in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClosedByPeer => "closed_by_peer",
            Self::ResetByPeer => "reset_by_peer",
            Self::ExpectTimeout => "expect_timeout",
            Self::ExpectMismatch => "expect_mismatch",
            Self::SendFailed => "send_failed",
            Self::SendOverflow => "send_overflow",
            Self::InboxOverflow => "inbox_overflow",
            Self::NotConnected => "not_connected",
            Self::SocketError => "socket_error",
            Self::Internal => "internal",
            Self::WebSocketViolation => "ws_violation",
            Self::BadMessage => "bad_message",
            Self::HeartbeatTimeout => "heartbeat_timeout",
            Self::JoinRefused => "join_refused",
            Self::JoinTimeout => "join_timeout",
            Self::PushRefused => "push_refused",
            Self::PushTimeout => "push_timeout",
            Self::LeaveRefused => "leave_refused",
            Self::LeaveTimeout => "leave_timeout",
            Self::NotJoined => "not_joined",
            Self::ChannelError => "channel_error",
            Self::ChannelClosed => "channel_closed",
            Self::ProbeRefused => "probe_refused",
        }
    }

    /// Reports whether the server had all the time that it was given.
    pub(super) const fn is_timeout(self) -> bool {
        matches!(
            self,
            Self::ExpectTimeout | Self::JoinTimeout | Self::PushTimeout | Self::LeaveTimeout
        )
    }

    /// Returns the error for an unexpected end of a connection.
    pub(super) fn of(reason: CloseReason) -> Self {
        match reason {
            CloseReason::Finished | CloseReason::Requested => Self::ClosedByPeer,
            CloseReason::Failed(Errno::CONN_RESET) => Self::ResetByPeer,
            CloseReason::Failed(Errno::PIPE) => Self::SendFailed,
            CloseReason::Failed(_) | CloseReason::ConnectFailed(_) => Self::SocketError,
            CloseReason::Overflow => Self::SendOverflow,
            CloseReason::Panicked => Self::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_place_and_name() {
        for (index, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
        }
        let names: std::collections::HashSet<_> =
            ErrorKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), ErrorKind::ALL.len());
        for name in names {
            let threshold = format!("errors.{name} < 1").parse::<throng_report::Threshold>();
            assert!(threshold.is_ok(), "{name} cannot be a threshold");
        }
    }

    #[test]
    fn counters_go_on_and_histograms_begin_anew() {
        let mut stats = CoreStats::new(3, 1);
        let seen_at = Instant::from_nanos(10_000);
        let timing = AnswerTiming { seen_at, arrival: throng_engine::Arrival::UNKNOWN };
        stats.count_connect((Instant::ZERO, timing), 0);
        stats.count_connect_failure(ConnectFailure::Timeout);
        stats.count_connect_failure(ConnectFailure::Timeout);
        stats.count_connect_failure(ConnectFailure::Errno(Errno::CONN_REFUSED));
        stats.count_close(Some(1011));
        stats.probe(3).counters.sent += 1;
        let fresh = Box::new(CoreStats::new(0, 0)).continue_from(&stats);
        assert_eq!(
            (fresh.core_id, fresh.counters.connects_ok, fresh.classes[0].connects_ok),
            (3, 1, 1)
        );
        let shown: Vec<_> =
            fresh.connect_failures.iter().map(|(why, count)| format!("{why} {count}")).collect();
        assert_eq!(shown, ["timeout 2", "ECONNREFUSED 1"]);
        assert_eq!(
            (fresh.close_codes.as_slice(), fresh.errors_total()),
            (&[(Some(1011), 1)][..], 1)
        );
        assert!(fresh.connect.is_empty() && fresh.probes.is_empty());
    }
}
