//! What one core has counted: written by the core alone, handed over whole.

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

/// One core's counters since the start, and its histograms since the stats before.
#[derive(Clone, Debug, Default)]
pub struct CoreStats {
    /// Whose it is.
    pub core_id: usize,
    /// The phase of the load, by number.
    pub phase: usize,
    /// Whether the schedule is over and everybody has left.
    pub finished: bool,
    /// When it was handed over: the moment that its counters are of.
    pub handed_over_at: Instant,
    /// What the users did.
    pub counters: LoadCounters,
    /// What the loop counted.
    pub core: CoreCounters,
    /// The same by class of users.
    pub classes: Vec<ClassCounters>,
    /// Errors of established connections.
    pub errors: [u64; ErrorKind::ALL.len()],
    /// Connections that the server closed by a close frame while more was wanted from it, by its code.
    pub close_codes: Vec<(Option<u16>, u64)>,
    /// Failed connects by what was the matter.
    pub connect_failures: Vec<(ConnectFailure, u64)>,
    /// From the intended moment of a connect until it was established.
    pub connect: Histogram,
    /// The part of that until TCP was established; of WebSockets only.
    pub tcp: Histogram,
    /// From the intended moment of a message until its answer was whole.
    pub message: Histogram,
    /// From the intended moment of a join until it was answered ok.
    pub join: Histogram,
    /// From the intended moment of a push until it was answered ok.
    pub push: Histogram,
    /// The same by the kernel's clock.
    pub arrival: ArrivalLatencies,
    /// How long users waited for what they did not get, until it timed out or they were stopped.
    pub unanswered: UnansweredWaits,
    /// What this core counted and measured of probes since the stats before.
    pub probes: Vec<ProbeTally>,
    /// How late the generator did what depended on nobody else.
    pub lag: Histogram,
    /// When nobody was answered, and when the target was away.
    pub incidents: Incidents,
    /// The first error of each kind.
    pub samples: Vec<ErrorSample>,
    /// Gauge: users that rest after an error.
    pub(super) resting: u64,
}

impl CoreStats {
    /// A stats with nothing on it.
    pub fn new(core_id: usize, classes: usize) -> Self {
        Self { core_id, classes: vec![ClassCounters::default(); classes], ..Self::default() }
    }

    /// Takes over everything but the histograms.
    pub(crate) fn clone_counters_from(&mut self, other: &Self) {
        self.core_id = other.core_id;
        self.phase = other.phase;
        self.finished = other.finished;
        self.handed_over_at = other.handed_over_at;
        self.resting = other.resting;
        self.errors = other.errors;
        self.counters.clone_from(&other.counters);
        self.core.clone_from(&other.core);
        self.classes.clone_from(&other.classes);
        self.connect_failures.clone_from(&other.connect_failures);
        self.close_codes.clone_from(&other.close_codes);
    }

    /// Forgets what was measured, and gives its memory back; what was counted stays.
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

    /// Makes this used stats the one that goes on after `other`: counters go on, histograms begin anew.
    pub(super) fn carry_on(mut self: Box<Self>, other: &Self) -> Box<Self> {
        self.clear_measured();
        self.clone_counters_from(other);
        self.incidents = other.incidents.carried_on();
        self
    }

    /// What was counted of probe `number` since the stats before.
    pub(super) fn probe(&mut self, number: u32) -> &mut ProbeTally {
        // The latest is nearly always the one.
        let found = self.probes.iter().rposition(|tally| tally.number == number);
        let place = found.unwrap_or_else(|| {
            self.probes.push(ProbeTally { number, ..ProbeTally::default() });
            self.probes.len() - 1
        });
        &mut self.probes[place]
    }

    /// Counts a connect and its latency.
    pub(super) fn connected(&mut self, (from, timing): (Instant, AnswerTiming), class: u16) {
        timing.record(from, &mut self.connect, &mut self.arrival.connect);
        self.counters.connects_ok += 1;
        self.counters.connected += 1;
        self.classes[usize::from(class)].connects_ok += 1;
    }

    /// Counts an answer; its latency too, where it means something.
    pub(super) fn answered(&mut self, measured: Option<(Instant, AnswerTiming)>, class: u16) {
        if let Some((from, timing)) = measured {
            timing.record(from, &mut self.message, &mut self.arrival.message);
            self.arrival.by_own_clock += timing.by_own_clock();
        }
        self.counters.messages_answered += 1;
        self.classes[usize::from(class)].messages_answered += 1;
    }

    /// Counts a join that was answered ok, and its latency.
    pub(super) fn joined(&mut self, from: Instant, timing: AnswerTiming) {
        timing.record(from, &mut self.join, &mut self.arrival.join);
        self.arrival.by_own_clock += timing.by_own_clock();
        self.counters.joins_ok += 1;
        self.counters.joined += 1;
    }

    /// Counts a push that was answered ok, and its latency.
    pub(super) fn pushed(&mut self, from: Instant, timing: AnswerTiming) {
        timing.record(from, &mut self.push, &mut self.arrival.push);
        self.arrival.by_own_clock += timing.by_own_clock();
        self.counters.pushes_ok += 1;
    }

    pub(super) fn connect_failed(&mut self, why: ConnectFailure) {
        self.counters.connects_failed += 1;
        count(&mut self.connect_failures, why);
    }

    /// Counts a connection that the server has closed with `code`.
    pub(super) fn count_close(&mut self, code: Option<u16>) {
        count(&mut self.close_codes, code);
    }

    /// Errors of established connections.
    pub fn errors_total(&self) -> u64 {
        let closed: u64 = self.close_codes.iter().map(|(_, count)| count).sum();
        closed + self.errors.iter().sum::<u64>()
    }
}

/// One more of `kind`.
fn count<T: PartialEq>(counts: &mut Vec<(T, u64)>, kind: T) {
    match counts.iter_mut().find(|(known, _)| *known == kind) {
        Some((_, count)) => *count += 1,
        None => counts.push((kind, 1)),
    }
}

/// Why a connect failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectFailure {
    /// Neither success nor failure within the time-out of the step.
    Timeout,
    /// The kernel says so.
    Errno(Errno),
    /// The server answered the upgrade with this status.
    Http(u16),
    /// The server answered the upgrade with something that breaks a rule.
    Violation,
    /// The server closed the connection in place of an answer to the upgrade.
    Closed,
    /// The kernel connected the socket to itself: it had the target's own address and port as its
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

/// The name of a close code among the errors: `ws_close_1011`, and `ws_close_none` for a close without one.
pub(crate) fn close_name(code: Option<u16>) -> String {
    code.map_or_else(|| "ws_close_none".to_owned(), |code| format!("ws_close_{code}"))
}

/// What can go wrong on an established connection. A mismatch and a time-out are different errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The other end closed while more was wanted from it.
    ClosedByPeer,
    /// The other end reset the connection.
    ResetByPeer,
    /// What `expect` waits for did not come in time.
    ExpectTimeout,
    /// Something else came.
    ExpectMismatch,
    /// The kernel refused to send.
    SendFailed,
    /// The other end did not take what was sent.
    SendOverflow,
    /// More arrived than `inbox_bytes_max` while no step waited for it.
    InboxOverflow,
    /// A step needed a connection that an earlier error had ended (`on_error: continue`).
    NotConnected,
    /// The kernel ended the connection with another error.
    SocketError,
    /// A fault of throng itself.
    Internal,
    /// The server broke a rule of WebSocket, or a limit.
    WebSocketViolation,
    /// The server sent what is no message of Phoenix Channels.
    BadMessage,
    /// A heartbeat was not answered until the next was due.
    HeartbeatTimeout,
    /// A join was answered with something else than ok.
    JoinRefused,
    /// A join was not answered in time.
    JoinTimeout,
    /// A push was answered with something else than ok.
    PushRefused,
    /// A push was not answered in time.
    PushTimeout,
    /// A leave was answered with something else than ok.
    LeaveRefused,
    /// A leave was not answered in time.
    LeaveTimeout,
    /// A step needed a channel that an earlier error had ended (`on_error: continue`).
    NotJoined,
    /// A channel that the user was in crashed (`phx_error`).
    ChannelError,
    /// A channel that the user was in was closed (`phx_close`).
    ChannelClosed,
    /// The push of a probe was answered with something else than ok.
    ProbeRefused,
}

impl ErrorKind {
    /// Every kind, in the order of [`Slate::errors`].
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

    /// Its name in reports.
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

    /// Whether the server had all the time that it was given.
    pub(super) const fn is_timeout(self) -> bool {
        matches!(
            self,
            Self::ExpectTimeout | Self::JoinTimeout | Self::PushTimeout | Self::LeaveTimeout
        )
    }

    /// Why a connection that nobody meant to end has ended.
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
        for (place, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
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
        stats.connected((Instant::ZERO, timing), 0);
        stats.connect_failed(ConnectFailure::Timeout);
        stats.connect_failed(ConnectFailure::Timeout);
        stats.connect_failed(ConnectFailure::Errno(Errno::CONN_REFUSED));
        stats.count_close(Some(1011));
        stats.probe(3).counters.sent += 1;
        let fresh = Box::new(CoreStats::new(0, 0)).carry_on(&stats);
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
