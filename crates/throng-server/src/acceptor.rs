//! The acceptor of one core: it takes a permit, then accepts a connection, then says which core
//! takes it.
//!
//! The acceptor opens no connection. Each accept returns an [`AcceptStep`], which the core carries
//! out. While there is a reason not to accept, the [accept state](state) is paused. To resume, the
//! acceptor accepts first and watches the listener afterwards, so that a busy acceptor makes no
//! calls to epoll.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use throng_base::Instant;
use throng_driver::{Blame, CoreId, CoreLink, Errno, SocketClose, Sockets};
use throng_measure::{Merge, RunEventKind, ServerCounters};

use crate::ServerConfig;
use crate::core_message::{ListenReport, RegistryMessage, ServerDriver};
use crate::events::EventSink;
use placement::Placement;
pub(crate) use state::PauseReason;
use state::{AcceptState, Pause};

mod listener;
mod placement;
mod registry;
mod state;

/// The accept side of a core.
pub(crate) struct Acceptor<D: Sockets> {
    config: Arc<ServerConfig>,
    core: CoreId,
    cores: usize,
    listener: Option<D::Fd>,
    state: AcceptState,
    placement: Placement<D::Fd>,
    burst: Burst,
    /// Connections that this core's fd table holds beside the listener.
    room: usize,
    /// The next core to receive a connection that this core's table has no room for.
    overflow_to: CoreId,
    /// Sockets handed off in this turn; they stay in this table until the driver sends them.
    handoffs: usize,
    /// The core that received the last handoff.
    last_handoff_to: CoreId,
    /// Failed handoffs that were counted.
    handoff_failures: u64,
    /// The channel to report on when core 0 has shared its listener.
    listener_reply: Option<Sender<ListenReport>>,
    /// Connections of this core that ended in this turn and are not counted yet.
    uncounted_closes: usize,
    /// True if a connection has ended since the last check.
    has_closed: bool,
    /// True if a permit may have been returned for this core.
    permit_signaled: bool,
    /// True to close connections that arrive: the server is ending.
    is_closing: bool,
    events: EventSink,
    counters: ServerCounters,
    errors: Vec<(Errno, u64)>,
}

/// The number of accepts in the next batch: as many as the queue held last time, so that a quiet
/// listener costs no empty accept. It doubles while batches fill in turn after turn.
#[derive(Debug)]
struct Burst {
    accepts: usize,
    /// True if a batch of this turn took that many connections.
    is_filled: bool,
    /// True if a batch of the previous turn did.
    was_filled: bool,
}

/// What a core lends its acceptor for one call.
pub(crate) struct AcceptContext<'a, D> {
    pub(crate) driver: &'a mut D,
    pub(crate) now: Instant,
    /// Connections with a socket in this core's table.
    pub(crate) open: usize,
}

/// What the core does after one accept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AcceptStep<F> {
    /// Open the connection on this core. It has a permit.
    Accepted(F),
    /// Hand the connection off to the core `to`.
    PassOn { fd: F, to: CoreId },
    /// Accept the next connection: this one has ended.
    Skip,
}

/// The reason why a batch of accepts ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchEnd {
    /// The batch took as many connections as it may.
    Filled,
    /// The accept queue is empty.
    Empty,
    /// The table holds no more sockets on their way to other cores.
    HandoffsMax,
    /// The connection waits for the registry.
    AwaitPlacement,
    /// Accepting pauses.
    Pause(PauseReason),
    /// There is no listener.
    NoListener,
}

impl<D: ServerDriver> Acceptor<D> {
    pub(crate) fn new(config: &Arc<ServerConfig>) -> Self {
        Self {
            config: Arc::clone(config),
            core: 0,
            cores: 1,
            listener: None,
            state: AcceptState::Closed,
            placement: Placement::new(config.accept),
            burst: Burst { accepts: 1, is_filled: false, was_filled: false },
            room: usize::MAX,
            overflow_to: 0,
            handoffs: 0,
            last_handoff_to: 0,
            handoff_failures: 0,
            listener_reply: None,
            uncounted_closes: 0,
            has_closed: false,
            permit_signaled: false,
            is_closing: false,
            events: EventSink::new(config),
            counters: ServerCounters::default(),
            errors: Vec::new(),
        }
    }

    /// Learns the core's number and the room in its fd table.
    pub(crate) fn start(&mut self, driver: &D) {
        (self.core, self.cores) = (driver.link().core(), driver.link().cores());
        // The listener takes one place in the table.
        let room = driver.fd_room().map_or(usize::MAX, |room| room.saturating_sub(1));
        // A single core has no other core to hand off to: the kernel reports a full table.
        self.room = if self.cores > 1 { room } else { usize::MAX };
        self.overflow_to = self.core;
        self.placement.start(self.core, self.cores, room);
    }

    /// Adds the counters of this acceptor, without its maxima.
    pub(crate) fn add_totals(&self, server: &mut ServerCounters) {
        server.merge(&self.counters);
        server.closed += self.uncounted_closes as u64;
        server.paused_cores = u64::from(matches!(self.state, AcceptState::Paused(_)));
    }

    /// Adds the counters of this acceptor, and resets its maxima.
    pub(crate) fn report(&mut self, server: &mut ServerCounters) {
        self.add_totals(server);
        if let Some(registry) = self.placement.registry() {
            server.registry_mailbox_most = registry.take_mailbox_most();
        }
    }

    /// Returns the errors of accept and of epoll's watches, by errno.
    pub(crate) fn errors(&self) -> &[(Errno, u64)] {
        &self.errors
    }

    /// Returns when the core must be awake: at the retry after a pause, or at once to count closes
    /// that came after the turn had ended.
    pub(crate) fn due(&self) -> Instant {
        match self.state {
            _ if self.uncounted_closes > 0 || self.permit_signaled => Instant::ZERO,
            AcceptState::Paused(pause) => pause.retry_at,
            _ => Instant::FAR,
        }
    }

    /// Returns the number of accepts in the next batch.
    pub(crate) fn burst(&self) -> usize {
        self.burst.accepts
    }

    /// Returns the number of accepts before the listener is closed: the accept queue, where the
    /// kernel allows one more than the backlog. In `dispatch` each accept waits for the registry,
    /// so nothing more is accepted there.
    pub(crate) fn last_accepts(&self) -> usize {
        if self.placement.is_dispatch() { 0 } else { self.config.backlog as usize + 1 }
    }

    /// Takes a permit, accepts one connection and places it. Returns the reason if nothing more is
    /// to be accepted now.
    pub(crate) fn accept_one(
        &mut self,
        cx: &mut AcceptContext<'_, D>,
    ) -> Result<AcceptStep<D::Fd>, BatchEnd> {
        let listener = self.listener.as_ref().ok_or(BatchEnd::NoListener)?;
        if self.placement.is_waiting() {
            return Err(BatchEnd::AwaitPlacement);
        }
        if self.handoffs >= HANDOFFS_MAX {
            return Err(BatchEnd::HandoffsMax);
        }
        if !cx.driver.link().permits().acquire_or_register(self.core) {
            return Err(BatchEnd::Pause(PauseReason::Permits));
        }
        let errno = match cx.driver.accept(listener) {
            Ok(fd) => {
                self.counters.accepted += 1;
                let placed = self.placement.accepted(cx.driver.link(), self.core, fd);
                return placed.map(|fd| self.place(cx, fd)).ok_or(BatchEnd::AwaitPlacement);
            }
            Err(errno) => errno,
        };
        self.release_permit(cx.driver);
        match errno {
            Errno::AGAIN => {
                self.counters.accepts_empty += 1;
                return Err(BatchEnd::Empty);
            }
            Errno::INTR => return Ok(AcceptStep::Skip),
            _ => self.count_error(errno),
        }
        match errno.blame() {
            // The connection ended before the accept; the next one may be fine.
            Blame::Peer | Blame::Transient => Ok(AcceptStep::Skip),
            Blame::Limit | Blame::Misuse => Err(BatchEnd::Pause(PauseReason::Kernel(errno))),
        }
    }

    /// Places a connection that has a permit: here, or on another core if the fd table is full.
    /// Some core has room for it, because there are no more permits than places in the tables.
    pub(crate) fn place(&mut self, cx: &mut AcceptContext<'_, D>, fd: D::Fd) -> AcceptStep<D::Fd> {
        if self.is_closing {
            cx.driver.close(fd, SocketClose::Finish);
            self.connection_ended(cx.driver, self.core);
            return AcceptStep::Skip;
        }
        if cx.open < self.room {
            return AcceptStep::Accepted(fd);
        }
        self.overflow_to = (self.overflow_to + 1) % self.cores;
        if self.overflow_to == self.core {
            self.overflow_to = (self.core + 1) % self.cores;
        }
        self.pass_on(fd, self.overflow_to)
    }

    /// Places the waiting connection on the core that the registry has named.
    pub(crate) fn placement_received(
        &mut self,
        cx: &mut AcceptContext<'_, D>,
        to: CoreId,
    ) -> Option<AcceptStep<D::Fd>> {
        let fd = self.placement.take_waiting()?;
        Some(if to == self.core { self.place(cx, fd) } else { self.pass_on(fd, to) })
    }

    fn pass_on(&mut self, fd: D::Fd, to: CoreId) -> AcceptStep<D::Fd> {
        // Failed handoffs are counted at the end of the turn.
        self.counters.handed_over += 1;
        self.handoffs += 1;
        self.last_handoff_to = to;
        AcceptStep::PassOn { fd, to }
    }

    /// Passes a message to the registry of `dispatch`.
    pub(crate) fn registry_message(&mut self, driver: &mut D, message: RegistryMessage) {
        self.placement.registry_message(driver.link(), message);
    }

    /// Ends a batch that took `accepted` connections: watches the listener unless there is a reason
    /// not to.
    pub(crate) fn end_batch(
        &mut self,
        cx: &mut AcceptContext<'_, D>,
        accepted: usize,
        end: BatchEnd,
    ) {
        match end {
            BatchEnd::Filled => self.burst.filled(),
            BatchEnd::Empty => self.burst.accepts = accepted.max(1),
            BatchEnd::HandoffsMax => {}
            BatchEnd::AwaitPlacement => {
                return self.leave_listening(cx, AcceptState::AwaitingPlacement);
            }
            BatchEnd::Pause(reason) => return self.pause(cx, reason),
            BatchEnd::NoListener => return,
        }
        self.resume(cx);
    }

    /// Ends the turn: counts closes and failed handoffs. Returns true if a close may have ended a
    /// pause.
    pub(crate) fn turn_ended(&mut self, driver: &mut D) -> bool {
        if let Some(registry) = self.placement.registry() {
            registry.turn_ended();
        }
        self.handoffs = 0;
        self.burst.was_filled = std::mem::take(&mut self.burst.is_filled);
        for _ in 0..std::mem::take(&mut self.uncounted_closes) {
            self.connection_ended(driver, self.core);
        }
        while self.handoff_failures < driver.pass_failures() {
            self.handoff_failures += 1;
            self.counters.hand_over_failures += 1;
            // Only `dispatch` needs the core, and there one handoff is in flight at a time.
            self.connection_ended(driver, self.last_handoff_to);
        }
        let is_paused = matches!(self.state, AcceptState::Paused(pause)
            if matches!(pause.reason, PauseReason::Kernel(_)));
        std::mem::take(&mut self.has_closed) && is_paused
    }

    /// Reports whether the time has come to accept again after a kernel error.
    pub(crate) fn is_retry_due(&self, now: Instant) -> bool {
        matches!(self.state, AcceptState::Paused(pause) if pause.retry_at <= now)
    }

    /// Reports whether this core needs a permit that may have been returned for it. If it does not,
    /// signals the next waiting core.
    pub(crate) fn needs_permit(&mut self, driver: &mut D) -> bool {
        while std::mem::take(&mut self.permit_signaled) {
            if let AcceptState::Paused(Pause { reason: PauseReason::Permits, .. }) = self.state {
                return true;
            }
            if driver.link().permits().has_waiters() && driver.link().permits().try_acquire() {
                self.release_permit(driver);
            }
        }
        false
    }

    /// Notes that a permit may have been returned; the end of the turn checks.
    pub(crate) fn permit_returned(&mut self) {
        self.permit_signaled = true;
    }

    /// Notes that a connection has closed. It is counted at the end of the turn: its permit goes to
    /// another connection only after the handler's `close` has returned.
    pub(crate) fn connection_closed(&mut self) {
        self.uncounted_closes += 1;
    }

    /// Closes connections that arrive, or no longer does so.
    pub(crate) fn set_closing(&mut self, is_closing: bool) {
        self.is_closing = is_closing;
    }

    /// Resets a connection that has a permit and no place, because of `errno` or of a panic.
    pub(crate) fn refuse(&mut self, driver: &mut D, fd: D::Fd, errno: Option<Errno>) {
        if let Some(errno) = errno {
            self.count_error(errno);
        }
        driver.close(fd, SocketClose::Reset);
        self.connection_ended(driver, self.core);
    }

    /// Counts the end of a connection of `core`, or of one that was in flight to it, and returns
    /// its permit.
    fn connection_ended(&mut self, driver: &mut D, core: CoreId) {
        self.counters.closed += 1;
        self.has_closed = true;
        self.release_permit(driver);
        self.placement.connection_ended(driver.link(), core);
    }

    /// Returns a permit and wakes the core that waits for it.
    fn release_permit(&mut self, driver: &mut D) {
        match driver.link().permits().release() {
            Some(core) if core == self.core => self.permit_signaled = true,
            Some(core) => driver.link().wake(core),
            None => {}
        }
    }

    fn count_error(&mut self, errno: Errno) {
        match self.errors.iter_mut().find(|(known, _)| *known == errno) {
            Some((_, count)) => *count += 1,
            None => self.errors.push((errno, 1)),
        }
    }

    /// Watches the listener, and reports the end of a pause.
    fn resume(&mut self, cx: &mut AcceptContext<'_, D>) {
        let Some(listener) = &self.listener else { return };
        if self.state == AcceptState::Listening {
            return;
        }
        if let Err(errno) = cx.driver.watch(listener, LISTENER) {
            self.count_error(errno);
            return self.pause(cx, PauseReason::Kernel(errno));
        }
        self.set_state(cx.now, AcceptState::Listening);
    }

    /// Stops watching the listener, for the reason that `state` gives.
    fn leave_listening(&mut self, cx: &mut AcceptContext<'_, D>, state: AcceptState) {
        if self.state == AcceptState::Listening
            && let Some(listener) = &self.listener
        {
            // Closing the fd is not enough: a reference in another core's table keeps it in the
            // set.
            let _ = cx.driver.unwatch(listener);
        }
        self.set_state(cx.now, state);
    }

    /// Sets the accept state. Emits the end of a pause if its start was emitted.
    fn set_state(&mut self, now: Instant, state: AcceptState) {
        if let AcceptState::Paused(Pause { since, is_reported: true, .. }) = self.state {
            let paused_ms = now.since(since).as_millis() as u64;
            self.events
                .emit(now, RunEventKind::AcceptResumed { core: self.core as u32, paused_ms });
        }
        self.state = state;
    }

    /// Pauses accepting, and counts and reports the pause.
    fn pause(&mut self, cx: &mut AcceptContext<'_, D>, reason: PauseReason) {
        if self.listener.is_none() || self.placement.is_waiting() {
            // Already not accepting. Resuming checks the limit again and pauses if it still holds.
            return;
        }
        let retry_at = reason.retry_at(cx.now);
        if let AcceptState::Paused(pause) = self.state {
            // Events show one pause, but the counters count each reason.
            if pause.reason != reason {
                self.emit_paused(cx, reason);
            }
            self.state = AcceptState::Paused(Pause { reason, retry_at, ..pause });
            return;
        }
        let is_reported = self.emit_paused(cx, reason);
        let pause = Pause { reason, since: cx.now, is_reported, retry_at };
        self.leave_listening(cx, AcceptState::Paused(pause));
    }

    /// Counts a pause and emits it. Returns false if the event was suppressed.
    fn emit_paused(&mut self, cx: &AcceptContext<'_, D>, reason: PauseReason) -> bool {
        let errno = match reason {
            PauseReason::Kernel(errno) => Some(errno),
            PauseReason::Permits if self.config.limited_by_fds => Some(Errno::TABLE_FULL),
            PauseReason::Permits => None,
        };
        match errno {
            Some(_) => self.counters.pauses_fd += 1,
            None => self.counters.pauses_max += 1,
        }
        let (core, open) = (self.core as u32, cx.open as u64);
        let connections_max = self.config.connections_max as u64;
        self.events.emit_rarely(cx.now, || match errno {
            Some(errno) => RunEventKind::FdTableFull { core, errno: errno.name().to_owned(), open },
            None => RunEventKind::ConnectionsMaxReached { connections_max },
        })
    }
}

impl Burst {
    fn filled(&mut self) {
        self.is_filled = true;
        if self.was_filled {
            self.accepts = (self.accepts * 2).min(BURST_MAX);
        }
    }
}

/// Accepts in one turn at most, so that open connections get their turn too.
const BURST_MAX: usize = 64;
/// Sockets in flight to other cores at most when the table is full: the table reserves this room.
const HANDOFFS_MAX: usize = 32;
/// The number by which epoll reports a core's one listener.
const LISTENER: u32 = 0;

#[cfg(test)]
mod tests;
