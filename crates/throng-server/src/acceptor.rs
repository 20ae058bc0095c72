//! The acceptor of one core: it takes a permit, then accepts a connection, then chooses its core.
//!
//! While there is a reason not to accept, the [accept state](crate::accept_state) is paused. To
//! resume, the acceptor accepts first and watches the listener afterwards, so that a busy acceptor
//! makes no calls to epoll.

use std::sync::mpsc::Sender;

use throng_base::Instant;
use throng_driver::{Blame, CoreId, Driver, Errno, SocketClose};
use throng_engine::CoreContext;

use crate::accept_state::{AcceptState, Pause, PauseReason};
use crate::app::{ServerApp, Slot};
use crate::core_message::{CoreMessage, CoreMessageKind, ListenReport};
use crate::events::handler_panic;
use crate::{AcceptTopology, Handler};

/// The accept side of a core.
pub(crate) struct Acceptor<F> {
    pub(crate) core: CoreId,
    cores: usize,
    pub(crate) listener: Option<F>,
    pub(crate) state: AcceptState,
    /// Accepts in the next batch: as many as the queue held last time, so that a quiet listener
    /// costs no empty accept. It doubles while batches fill in turn after turn.
    burst: usize,
    /// True if a batch of this turn took `burst` connections.
    batch_filled: bool,
    /// True if a batch of the previous turn did.
    last_batch_filled: bool,
    /// Connections that this core's fd table holds beside the listener.
    room: usize,
    /// The next core to receive a connection that this core's table has no room for.
    overflow_to: CoreId,
    /// Sockets handed off in this turn; they stay in this table until the driver sends them.
    handoffs: usize,
    /// The core that received the last handoff.
    last_handoff_to: CoreId,
    /// Dispatch: an accepted connection that waits for the registry to name its core.
    pub(crate) awaiting_placement: Option<F>,
    /// The channel to report on when core 0 has shared its listener.
    pub(crate) listener_reply: Option<Sender<ListenReport>>,
    /// Connections of this core that ended in this turn and are not counted yet.
    pub(crate) uncounted_closes: usize,
    /// True if a connection has ended since the last check.
    pub(crate) has_closed: bool,
    /// True if a permit may have been returned for this core.
    pub(crate) permit_signaled: bool,
    handoff_failures: u64,
    pub(crate) errors: Vec<(Errno, u64)>,
}

/// The outcome of one accept.
pub(crate) enum AcceptStep {
    /// Accept the next one.
    Continue,
    /// The accept queue is empty.
    Empty,
    /// The table holds no more sockets on their way to other cores.
    HandoffsMax,
    /// The connection waits for the registry.
    AwaitPlacement,
    Pause(PauseReason),
    /// There is no listener.
    Closed,
}

impl<F> Default for Acceptor<F> {
    fn default() -> Self {
        Self {
            core: 0,
            cores: 1,
            listener: None,
            state: AcceptState::Closed,
            burst: 1,
            batch_filled: false,
            last_batch_filled: false,
            room: usize::MAX,
            overflow_to: 0,
            handoffs: 0,
            last_handoff_to: 0,
            awaiting_placement: None,
            listener_reply: None,
            uncounted_closes: 0,
            has_closed: false,
            permit_signaled: false,
            handoff_failures: 0,
            errors: Vec::new(),
        }
    }
}

impl<F> Acceptor<F> {
    pub(crate) fn start(&mut self, core: CoreId, cores: usize, room: usize) {
        self.core = core;
        self.cores = cores;
        // A single core has no other core to hand off to: the kernel reports a full table.
        self.room = if cores > 1 { room } else { usize::MAX };
        self.overflow_to = core;
    }

    pub(crate) fn is_paused(&self) -> bool {
        matches!(self.state, AcceptState::Paused(_))
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

    /// Returns a permit and wakes the core that waits for it.
    pub(crate) fn release_permit<D: Driver>(&mut self, driver: &mut D) {
        match driver.permits().release() {
            Some(core) if core == self.core => self.permit_signaled = true,
            Some(core) => driver.wake(core),
            None => {}
        }
    }

    pub(crate) fn count_error(&mut self, errno: Errno) {
        match self.errors.iter_mut().find(|(known, _)| *known == errno) {
            Some((_, count)) => *count += 1,
            None => self.errors.push((errno, 1)),
        }
    }

    fn next_overflow_core(&mut self) -> CoreId {
        self.overflow_to = (self.overflow_to + 1) % self.cores;
        if self.overflow_to == self.core {
            self.overflow_to = (self.core + 1) % self.cores;
        }
        self.overflow_to
    }
}

impl<H, D> ServerApp<H, D>
where
    H: Handler,
    D: Driver<Message = CoreMessage<H::Message>>,
{
    /// Accepts a batch, then watches the listener unless there is a reason not to.
    pub(crate) fn accept(&mut self, cx: &mut CoreContext<D, Self>) {
        let mut accepted = 0;
        while accepted < self.acceptor.burst {
            match self.accept_one(cx) {
                AcceptStep::Continue => accepted += 1,
                AcceptStep::Empty => {
                    self.acceptor.burst = accepted.max(1);
                    return self.resume_accepting(cx);
                }
                AcceptStep::HandoffsMax => return self.resume_accepting(cx),
                AcceptStep::AwaitPlacement => {
                    return self.stop_accepting(cx, AcceptState::AwaitingPlacement);
                }
                AcceptStep::Pause(why) => return self.pause(cx, why),
                AcceptStep::Closed => return,
            }
        }
        self.acceptor.batch_filled = true;
        if self.acceptor.last_batch_filled {
            self.acceptor.burst = (self.acceptor.burst * 2).min(BURST_MAX);
        }
        self.resume_accepting(cx);
    }

    /// Accepts again if the retry time after a kernel error has passed.
    pub(crate) fn retry(&mut self, cx: &mut CoreContext<D, Self>) {
        if let AcceptState::Paused(pause) = self.acceptor.state
            && pause.retry_at <= cx.now()
        {
            self.accept(cx);
        }
    }

    /// Takes a permit, accepts one connection and places it.
    pub(crate) fn accept_one(&mut self, cx: &mut CoreContext<D, Self>) -> AcceptStep {
        let Some(listener) = &self.acceptor.listener else { return AcceptStep::Closed };
        if self.acceptor.awaiting_placement.is_some() {
            return AcceptStep::AwaitPlacement;
        }
        if self.acceptor.handoffs >= HANDOFFS_MAX {
            return AcceptStep::HandoffsMax;
        }
        let driver = cx.driver();
        if !driver.permits().acquire_or_register(self.acceptor.core) {
            return AcceptStep::Pause(PauseReason::Permits);
        }
        let errno = match driver.accept(listener) {
            Ok(fd) => {
                self.counters.accepted += 1;
                return self.place_accepted(cx, fd);
            }
            Err(errno) => errno,
        };
        self.acceptor.release_permit(driver);
        match errno {
            Errno::AGAIN => {
                self.counters.accepts_empty += 1;
                return AcceptStep::Empty;
            }
            Errno::INTR => return AcceptStep::Continue,
            _ => self.acceptor.count_error(errno),
        }
        match errno.blame() {
            // The connection ended before the accept; the next one may be fine.
            Blame::Peer | Blame::Transient => AcceptStep::Continue,
            Blame::Limit | Blame::Misuse => AcceptStep::Pause(PauseReason::Kernel(errno)),
        }
    }

    fn place_accepted(&mut self, cx: &mut CoreContext<D, Self>, fd: D::Fd) -> AcceptStep {
        if self.config.accept == AcceptTopology::Dispatch {
            debug_assert!(self.acceptor.awaiting_placement.is_none(), "one accept at a time waits");
            self.acceptor.awaiting_placement = Some(fd);
            self.send_to_registry(
                cx.driver(),
                CoreMessageKind::PlacementRequest(self.acceptor.core),
            );
            return AcceptStep::AwaitPlacement;
        }
        match self.place(cx, fd) {
            Ok(()) => AcceptStep::Continue,
            Err(errno) => AcceptStep::Pause(PauseReason::Kernel(errno)),
        }
    }

    /// Places the waiting connection on the core that the registry has named.
    pub(crate) fn placement_received(&mut self, cx: &mut CoreContext<D, Self>, to: CoreId) {
        let Some(fd) = self.acceptor.awaiting_placement.take() else { return };
        if to != self.acceptor.core {
            self.hand_off(cx.driver(), fd, to);
        } else if let Err(errno) = self.place(cx, fd) {
            return self.pause(cx, PauseReason::Kernel(errno));
        }
        self.accept(cx);
    }

    /// Places a connection that another core has handed off.
    pub(crate) fn handoff_received(&mut self, cx: &mut CoreContext<D, Self>, fd: D::Fd) {
        if let Err(errno) = self.place(cx, fd) {
            self.pause(cx, PauseReason::Kernel(errno));
        }
    }

    /// Takes a connection, or hands it off if the fd table is full. Some core has room for it: it
    /// has a permit, and there are no more permits than places in the tables.
    fn place(&mut self, cx: &mut CoreContext<D, Self>, fd: D::Fd) -> Result<(), Errno> {
        if self.is_closing {
            cx.driver().close(fd, SocketClose::Finish);
            self.connection_ended(cx.driver(), self.acceptor.core);
            return Ok(());
        }
        if self.connections(cx) >= self.acceptor.room {
            let to = self.acceptor.next_overflow_core();
            self.hand_off(cx.driver(), fd, to);
            return Ok(());
        }
        // User code makes the handler's state. If it panics here, there is no connection to end
        // yet.
        let now = cx.now();
        let made = cx.catch_panic(|| (self.handler.session(now), Slot::default()));
        let Some((session, slot)) = made else {
            self.events.emit_panic(cx.now(), || handler_panic::<H>(self.acceptor.core));
            self.refuse(cx.driver(), fd);
            return Ok(());
        };
        cx.adopt(fd, session, slot).map(drop).map_err(|(fd, errno)| {
            // No epoll watches left, or no memory.
            self.acceptor.count_error(errno);
            self.refuse(cx.driver(), fd);
            errno
        })
    }

    /// Resets a connection that has a permit and no place.
    fn refuse(&mut self, driver: &mut D, fd: D::Fd) {
        driver.close(fd, SocketClose::Reset);
        self.connection_ended(driver, self.acceptor.core);
    }

    fn hand_off(&mut self, driver: &mut D, fd: D::Fd, to: CoreId) {
        self.counters.handed_over += 1;
        self.acceptor.handoffs += 1;
        self.acceptor.last_handoff_to = to;
        // Failed handoffs are counted at the end of the turn.
        driver.hand_off(fd, to);
    }

    /// Ends the turn: counts closes and failed handoffs, and resumes accepting if they or other
    /// cores made it possible.
    pub(crate) fn after_turn(&mut self, cx: &mut CoreContext<D, Self>) {
        self.acceptor.handoffs = 0;
        self.acceptor.last_batch_filled = std::mem::take(&mut self.acceptor.batch_filled);
        for _ in 0..std::mem::take(&mut self.acceptor.uncounted_closes) {
            self.connection_ended(cx.driver(), self.acceptor.core);
        }
        self.count_handoff_failures(cx.driver());
        if std::mem::take(&mut self.acceptor.has_closed)
            && let AcceptState::Paused(Pause { reason: PauseReason::Kernel(_), .. }) =
                self.acceptor.state
        {
            self.accept(cx);
        }
        while std::mem::take(&mut self.acceptor.permit_signaled) {
            self.permit_returned(cx);
        }
    }

    /// Uses a permit that may have been returned for this core. If the core does not need it,
    /// signals the next waiting core.
    fn permit_returned(&mut self, cx: &mut CoreContext<D, Self>) {
        if let AcceptState::Paused(Pause { reason: PauseReason::Permits, .. }) = self.acceptor.state
        {
            return self.accept(cx);
        }
        let driver = cx.driver();
        if driver.permits().has_waiters() && driver.permits().try_acquire() {
            self.acceptor.release_permit(driver);
        }
    }

    fn count_handoff_failures(&mut self, driver: &mut D) {
        let failures = driver.pass_failures();
        while self.acceptor.handoff_failures < failures {
            self.acceptor.handoff_failures += 1;
            self.counters.hand_over_failures += 1;
            // Only `dispatch` needs the core, and there one handoff is in flight at a time.
            self.connection_ended(driver, self.acceptor.last_handoff_to);
        }
    }
}

/// Accepts in one turn at most, so that open connections get their turn too.
const BURST_MAX: usize = 64;
/// Sockets in flight to other cores at most when the table is full: the table reserves this room.
const HANDOFFS_MAX: usize = 32;
