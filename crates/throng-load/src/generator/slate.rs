//! What one core has counted: written by the core alone, handed over whole.

use throng_driver::Errno;
use throng_engine::CloseReason;
use throng_report::{ClassCounters, CoreCounters, Histogram, LoadCounters};

/// One core's counters since the start, and its histograms since the slate before.
#[derive(Clone, Debug, Default)]
pub struct Slate {
    /// Whose it is.
    pub core_id: usize,
    /// The phase of the load, by number.
    pub phase: usize,
    /// Whether the schedule is over and everybody has left.
    pub finished: bool,
    /// What the users did.
    pub counters: LoadCounters,
    /// What the loop counted.
    pub core: CoreCounters,
    /// The same by class of users.
    pub classes: Vec<ClassCounters>,
    /// Errors of established connections.
    pub errors: [u64; ErrorKind::ALL.len()],
    /// Failed connects by errno; `None` is the time-out of the step.
    pub connect_failures: Vec<(Option<Errno>, u64)>,
    /// From the intended moment of a connect until it was established.
    pub connect: Histogram,
    /// From the intended moment of a message until its answer was whole.
    pub message: Histogram,
    /// How late the generator did what depended on nobody else.
    pub lag: Histogram,
    /// Gauge: users that rest after an error.
    pub(super) resting: u64,
}

impl Slate {
    /// A slate with nothing on it.
    pub fn new(core_id: usize, classes: usize) -> Self {
        Self { core_id, classes: vec![ClassCounters::default(); classes], ..Self::default() }
    }

    /// Takes over everything but the histograms.
    pub(crate) fn clone_counters_from(&mut self, other: &Self) {
        self.core_id = other.core_id;
        self.phase = other.phase;
        self.finished = other.finished;
        self.resting = other.resting;
        self.errors = other.errors;
        self.counters.clone_from(&other.counters);
        self.core.clone_from(&other.core);
        self.classes.clone_from(&other.classes);
        self.connect_failures.clone_from(&other.connect_failures);
    }

    /// Makes this used slate the one that goes on after `other`: counters go on, histograms begin anew.
    pub(super) fn carry_on(mut self: Box<Self>, other: &Self) -> Box<Self> {
        self.connect.clear();
        self.message.clear();
        self.lag.clear();
        self.clone_counters_from(other);
        self
    }

    /// Counts a connect; its latency too, while the measurement goes on.
    pub(super) fn connected(&mut self, waited_us: Option<u64>, class: u16) {
        if let Some(waited_us) = waited_us {
            self.connect.record_us(waited_us);
        }
        self.counters.connects_ok += 1;
        self.counters.connected += 1;
        self.classes[usize::from(class)].connects_ok += 1;
    }

    /// Counts an answer; its latency too, while the measurement goes on.
    pub(super) fn answered(&mut self, waited_us: Option<u64>, class: u16) {
        if let Some(waited_us) = waited_us {
            self.message.record_us(waited_us);
        }
        self.counters.messages_answered += 1;
        self.classes[usize::from(class)].messages_answered += 1;
    }

    pub(super) fn connect_failed(&mut self, errno: Option<Errno>) {
        self.counters.connects_failed += 1;
        match self.connect_failures.iter_mut().find(|(known, _)| *known == errno) {
            Some((_, count)) => *count += 1,
            None => self.connect_failures.push((errno, 1)),
        }
    }
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
}

impl ErrorKind {
    /// Every kind, in the order of [`Slate::errors`].
    pub const ALL: [Self; 10] = [
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
        }
    }

    /// Why a connection that nobody meant to end has ended.
    pub(super) fn of(reason: CloseReason) -> Self {
        match reason {
            CloseReason::Finished | CloseReason::Asked => Self::ClosedByPeer,
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
        let mut slate = Slate::new(3, 1);
        slate.connected(Some(10), 0);
        slate.connect_failed(None);
        slate.connect_failed(None);
        slate.connect_failed(Some(Errno::CONN_REFUSED));
        let fresh = Box::new(Slate::new(0, 0)).carry_on(&slate);
        assert_eq!(
            (fresh.core_id, fresh.counters.connects_ok, fresh.classes[0].connects_ok),
            (3, 1, 1)
        );
        assert_eq!(fresh.connect_failures, [(None, 2), (Some(Errno::CONN_REFUSED), 1)]);
        assert!(fresh.connect.is_empty());
    }
}
