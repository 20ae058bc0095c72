//! Polls the server without a long wait.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant};

use throng_measure::{RunEventKind, SERVER_SILENT, ServerSnapshot};

use super::probes::ServerProbe;

/// The longest wait for a server's snapshot: 200 ms.
pub const SERVER_TIMEOUT: Duration = Duration::from_millis(200);

/// A server's probe on a thread of its own.
///
/// A request that times out stays pending, and the poller sends no second one until the reply
/// arrives or the request fails. So requests do not pile up at a server that hangs.
#[derive(Debug)]
pub(crate) struct ServerPoller {
    requests: Sender<()>,
    replies: Receiver<SnapshotReply>,
    /// True while a request has no reply.
    is_pending: bool,
    /// The time without a reply after which the server is lost.
    lost_after: Duration,
    /// The start of the first request without a reply in time; none while the server replies.
    silent_since: Option<Instant>,
    is_lost: bool,
}

type SnapshotReply = Result<ServerSnapshot, String>;

/// The reason why a poll has no snapshot.
enum PollError {
    /// The reply is late, but may still arrive.
    Late,
    /// The request failed.
    Failed(String),
}

impl ServerPoller {
    pub(crate) fn new(mut probe: Box<dyn ServerProbe>, lost_after: Duration) -> Self {
        let (requests, pending) = mpsc::channel();
        let (reply, replies) = mpsc::channel();
        let run = move || {
            while pending.recv().is_ok() {
                if reply.send(probe.snapshot()).is_err() {
                    return;
                }
            }
        };
        // No thread joins this one: it may hang for as long as the server does.
        let thread = std::thread::Builder::new().name("poll-server".into()).spawn(run);
        thread.expect("a thread that polls the server");
        Self {
            requests,
            replies,
            is_pending: false,
            lost_after,
            silent_since: None,
            is_lost: false,
        }
    }

    /// Returns the server's counters. Calls `event` when the server is lost or back.
    pub(crate) fn snapshot(
        &mut self,
        event: &mut impl FnMut(RunEventKind),
    ) -> Option<ServerSnapshot> {
        let began = Instant::now();
        let reason = match self.poll() {
            Ok(snapshot) => {
                self.silent_since = None;
                if std::mem::take(&mut self.is_lost) {
                    event(RunEventKind::ServerBack { pid: snapshot.process.pid });
                }
                return Some(snapshot);
            }
            Err(PollError::Failed(reason)) => reason,
            Err(PollError::Late) => {
                let silence = self.silent_since.get_or_insert(began).elapsed();
                if silence < self.lost_after {
                    return None;
                }
                format!("{SERVER_SILENT} for {:.1} s", silence.as_secs_f64())
            }
        };
        if !std::mem::replace(&mut self.is_lost, true) {
            event(RunEventKind::ServerLost { reason });
        }
        None
    }

    /// Reports whether the server counts as lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn poll(&mut self) -> Result<ServerSnapshot, PollError> {
        if self.is_pending {
            // A reply that arrives now belongs to an earlier interval.
            match self.replies.try_recv() {
                Ok(_) => {
                    self.is_pending = false;
                    self.silent_since = None;
                }
                Err(TryRecvError::Empty) => return Err(PollError::Late),
                Err(TryRecvError::Disconnected) => return Err(PollError::Failed(ENDED.into())),
            }
        }
        if self.requests.send(()).is_err() {
            return Err(PollError::Failed(ENDED.into()));
        }
        match self.replies.recv_timeout(SERVER_TIMEOUT) {
            Ok(reply) => reply.map_err(PollError::Failed),
            Err(RecvTimeoutError::Timeout) => {
                self.is_pending = true;
                Err(PollError::Late)
            }
            Err(RecvTimeoutError::Disconnected) => Err(PollError::Failed(ENDED.into())),
        }
    }
}

const ENDED: &str = "the thread that polls it has ended";
