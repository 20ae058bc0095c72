//! How one core accepts: a permit first, then the connection, then the core that it goes to.
//!
//! While there is a reason not to accept, the [accept state](crate::gate) is shut. Whoever goes on first accepts and
//! only then watches again, so that a busy acceptor costs no calls to epoll.

use std::sync::mpsc::Sender;

use throng_base::Instant;
use throng_driver::{Blame, CoreId, Driver, Errno, SocketClose};
use throng_engine::CoreContext;

use crate::accept_state::{AcceptState, Pause, PauseReason};
use crate::app::{ServerApp, Slot};
use crate::core_message::{CoreMessage, CoreMessageKind, ListenReport};
use crate::events::handler_panicked;
use crate::{AcceptTopology, Handler};

/// What a core knows about its accepting.
pub(crate) struct Acceptor<F> {
    pub(crate) core: CoreId,
    cores: usize,
    pub(crate) listener: Option<F>,
    pub(crate) state: AcceptState,
    /// Accepts of the next batch: as many as the queue held last time, so that a quiet one costs no empty accept. It
    /// grows when batches fill turn after turn.
    burst: usize,
    has_filled: bool,
    had_filled: bool,
    /// Connections that this core's fd table holds beside the listener.
    room: usize,
    /// The next core to get what does not fit in here.
    overflow_to: CoreId,
    /// Sockets that wait to leave this table since the last wait.
    leaving: usize,
    /// To which core a socket was passed on last.
    passed_to: CoreId,
    /// Dispatch: accepted, and waiting to hear where it goes.
    pub(crate) asking: Option<F>,
    /// Who waits for the listener that core 0 shares.
    pub(crate) expects: Option<Sender<ListenReport>>,
    /// Connections of this core that ended in this turn and are not booked yet.
    pub(crate) ended: usize,
    /// A connection has ended since this core looked last.
    pub(crate) has_freed: bool,
    /// A permit may have come back for this core.
    pub(crate) was_named: bool,
    pass_failures: u64,
    pub(crate) errors: Vec<(Errno, u64)>,
}

/// What came of one accept.
pub(crate) enum AcceptStep {
    Again,
    Empty,
    /// The table can hold no more that are on their way to others.
    Enough,
    Asking,
    Pause(PauseReason),
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
            has_filled: false,
            had_filled: false,
            room: usize::MAX,
            overflow_to: 0,
            leaving: 0,
            passed_to: 0,
            asking: None,
            expects: None,
            ended: 0,
            has_freed: false,
            was_named: false,
            pass_failures: 0,
            errors: Vec::new(),
        }
    }
}

impl<F> Acceptor<F> {
    pub(crate) fn started(&mut self, core: CoreId, cores: usize, room: usize) {
        self.core = core;
        self.cores = cores;
        // A core alone has nobody to pass to; then the kernel says when the table is full.
        self.room = if cores > 1 { room } else { usize::MAX };
        self.overflow_to = core;
    }

    pub(crate) fn is_paused(&self) -> bool {
        matches!(self.state, AcceptState::Paused(_))
    }

    /// When the core must be awake: to try again, or at once, to book what ended when the turn was over already.
    pub(crate) fn due(&self) -> Instant {
        match self.state {
            _ if self.ended > 0 || self.was_named => Instant::ZERO,
            AcceptState::Paused(pause) => pause.until,
            _ => Instant::FAR,
        }
    }

    /// Gives a permit back and wakes the core that it is for.
    pub(crate) fn give<D: Driver>(&mut self, driver: &mut D) {
        match driver.permits().release() {
            Some(core) if core == self.core => self.was_named = true,
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

    fn next_overflow(&mut self) -> CoreId {
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
    D: Driver<Mail = CoreMessage<H::Message>>,
{
    /// Accepts a batch, and watches the listener from then on unless there is a reason not to.
    pub(crate) fn accept(&mut self, cx: &mut CoreContext<D, Self>) {
        let mut accepted = 0;
        while accepted < self.acceptor.burst {
            match self.accept_one(cx) {
                AcceptStep::Again => accepted += 1,
                AcceptStep::Empty => {
                    self.acceptor.burst = accepted.max(1);
                    return self.resume_accepting(cx);
                }
                AcceptStep::Enough => return self.resume_accepting(cx),
                AcceptStep::Asking => return self.stop_accepting(cx, AcceptState::Asking),
                AcceptStep::Pause(why) => return self.pause(cx, why),
                AcceptStep::Closed => return,
            }
        }
        self.acceptor.has_filled = true;
        if self.acceptor.had_filled {
            self.acceptor.burst = (self.acceptor.burst * 2).min(BURST_MAX);
        }
        self.resume_accepting(cx);
    }

    /// Tries again what the kernel refused a while ago.
    pub(crate) fn retry(&mut self, cx: &mut CoreContext<D, Self>) {
        if let AcceptState::Paused(pause) = self.acceptor.state
            && pause.until <= cx.now()
        {
            self.accept(cx);
        }
    }

    pub(crate) fn accept_one(&mut self, cx: &mut CoreContext<D, Self>) -> AcceptStep {
        let Some(listener) = &self.acceptor.listener else { return AcceptStep::Closed };
        if self.acceptor.asking.is_some() {
            return AcceptStep::Asking;
        }
        if self.acceptor.leaving >= LEAVING_MAX {
            return AcceptStep::Enough;
        }
        let driver = cx.driver();
        if !driver.permits().acquire_or_register(self.acceptor.core) {
            return AcceptStep::Pause(PauseReason::Permits);
        }
        let errno = match driver.accept(listener) {
            Ok(fd) => {
                self.counters.accepted += 1;
                return self.accepted(cx, fd);
            }
            Err(errno) => errno,
        };
        self.acceptor.give(driver);
        match errno {
            Errno::AGAIN => {
                self.counters.accepts_empty += 1;
                return AcceptStep::Empty;
            }
            Errno::INTR => return AcceptStep::Again,
            _ => self.acceptor.count_error(errno),
        }
        match errno.blame() {
            // The connection ended before it was accepted; the next one is fine.
            Blame::Peer | Blame::Transient => AcceptStep::Again,
            Blame::Limit | Blame::Misuse => AcceptStep::Pause(PauseReason::Kernel(errno)),
        }
    }

    fn accepted(&mut self, cx: &mut CoreContext<D, Self>, fd: D::Fd) -> AcceptStep {
        if self.config.accept == AcceptTopology::Dispatch {
            debug_assert!(self.acceptor.asking.is_none(), "one accept at a time waits");
            self.acceptor.asking = Some(fd);
            self.tell_registry(cx.driver(), CoreMessageKind::Ask(self.acceptor.core));
            return AcceptStep::Asking;
        }
        match self.place(cx, fd) {
            Ok(()) => AcceptStep::Again,
            Err(errno) => AcceptStep::Pause(PauseReason::Kernel(errno)),
        }
    }

    /// The registry has said where the connection goes that waits here.
    pub(crate) fn go(&mut self, cx: &mut CoreContext<D, Self>, to: CoreId) {
        let Some(fd) = self.acceptor.asking.take() else { return };
        if to != self.acceptor.core {
            self.pass(cx.driver(), fd, to);
        } else if let Err(errno) = self.place(cx, fd) {
            return self.pause(cx, PauseReason::Kernel(errno));
        }
        self.accept(cx);
    }

    /// Another core has handed a connection over.
    pub(crate) fn arrived(&mut self, cx: &mut CoreContext<D, Self>, fd: D::Fd) {
        if let Err(errno) = self.place(cx, fd) {
            self.pause(cx, PauseReason::Kernel(errno));
        }
    }

    /// Takes a connection, or passes it on when the fd table is full. A permit was taken for it, and there are no more
    /// permits than places: somewhere is one.
    fn place(&mut self, cx: &mut CoreContext<D, Self>, fd: D::Fd) -> Result<(), Errno> {
        if self.is_closing {
            cx.driver().close(fd, SocketClose::Finish);
            self.ended(cx.driver(), self.acceptor.core);
            return Ok(());
        }
        if self.connections(cx) >= self.acceptor.room {
            let to = self.acceptor.next_overflow();
            self.pass(cx.driver(), fd, to);
            return Ok(());
        }
        // The handler's state is made by the user's code, and no connection has it yet that could end for a panic.
        let now = cx.now();
        let made = cx.catch_panic(|| (self.handler.session(now), Slot::default()));
        let Some((session, slot)) = made else {
            self.events.panicked(cx.now(), || handler_panicked::<H>(self.acceptor.core));
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

    /// Ends a connection that has a permit and no place.
    fn refuse(&mut self, driver: &mut D, fd: D::Fd) {
        driver.close(fd, SocketClose::Reset);
        self.ended(driver, self.acceptor.core);
    }

    fn pass(&mut self, driver: &mut D, fd: D::Fd, to: CoreId) {
        self.counters.handed_over += 1;
        self.acceptor.leaving += 1;
        self.acceptor.passed_to = to;
        // What cannot be passed on is booked at the end of a turn.
        driver.pass(fd, to);
    }

    /// The last thing of a turn: what other cores, and this one's closes, have made possible.
    pub(crate) fn after_turn(&mut self, cx: &mut CoreContext<D, Self>) {
        self.acceptor.leaving = 0;
        self.acceptor.had_filled = std::mem::take(&mut self.acceptor.has_filled);
        for _ in 0..std::mem::take(&mut self.acceptor.ended) {
            self.ended(cx.driver(), self.acceptor.core);
        }
        self.book_pass_failures(cx.driver());
        if std::mem::take(&mut self.acceptor.has_freed)
            && let AcceptState::Paused(Pause { why: PauseReason::Kernel(_), .. }) =
                self.acceptor.state
        {
            self.accept(cx);
        }
        while std::mem::take(&mut self.acceptor.was_named) {
            self.permit_came(cx);
        }
    }

    /// A permit may have come back for this core. When it has no use for it, the next core that waits is to hear of it.
    fn permit_came(&mut self, cx: &mut CoreContext<D, Self>) {
        if let AcceptState::Paused(Pause { why: PauseReason::Permits, .. }) = self.acceptor.state {
            return self.accept(cx);
        }
        let driver = cx.driver();
        if driver.permits().has_waiters() && driver.permits().try_acquire() {
            self.acceptor.give(driver);
        }
    }

    fn book_pass_failures(&mut self, driver: &mut D) {
        let failures = driver.pass_failures();
        while self.acceptor.pass_failures < failures {
            self.acceptor.pass_failures += 1;
            self.counters.hand_over_failures += 1;
            // In `dispatch`, the one topology in which it matters, one is on its way at a time.
            self.ended(driver, self.acceptor.passed_to);
        }
    }
}

/// Accepts of one turn, so that connections that are open get their turn too.
const BURST_MAX: usize = 64;
/// Sockets of a full table that may be on their way to others: what the table keeps free for them.
const LEAVING_MAX: usize = 32;
