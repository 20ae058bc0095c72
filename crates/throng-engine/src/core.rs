//! One core: its loop, and how an event finds its way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{Driver, Errno, IoEvent, Ready, SocketClose, Token};
use throng_proto::{Input, Session};

use crate::apply;
use crate::arrival::Arrival;
use crate::budget::{Budget, EVENT_WORK_BYTES};
use crate::conn::{Actions, Conn};
use crate::context::{CoreContext, Effect};
use crate::entry::{PackedDeadline, SocketState};
use crate::{AfterClose, App, CloseReason, Deadline};

/// Limits of a core.
#[derive(Clone, Copy, Debug)]
pub struct CoreLimits {
    /// Bytes that may wait for one slow peer. What one callback adds while nothing waits is beside
    /// it, up to eight times as much; so is one frame that many connections share, however long it
    /// is. Default 1 MiB.
    pub pending_bytes_max: usize,
    /// How long a connection that closes may take to deliver what waits. Default 5 s.
    pub drain_timeout: Duration,
    /// The core's one receive buffer. Default 64 KiB.
    pub receive_bytes: usize,
    /// Work that one connection may have done at a time, in bytes of input of the same cost: an event
    /// counts 1 KiB beside its bytes, an inflated message its whole length. What it sent beyond that
    /// waits for the next turn, up to `receive_bytes` in this process. Default 256 KiB.
    pub connection_work_bytes_max: usize,
    /// The same for all connections of a turn. Those that come after it wait for the next turn.
    /// Default 4 MiB.
    pub turn_work_bytes_max: usize,
}

impl Default for CoreLimits {
    fn default() -> Self {
        Self {
            pending_bytes_max: 1 << 20,
            drain_timeout: Duration::from_secs(5),
            receive_bytes: 64 << 10,
            connection_work_bytes_max: 256 << 10,
            turn_work_bytes_max: 4 << 20,
        }
    }
}

/// An event loop with its connections and its app.
pub struct Core<D: Driver, A: App<D>> {
    app: A,
    cx: CoreContext<D, A>,
    receive: Box<[u8]>,
    scratch: <A::Session as Session>::Scratch,
    events: Vec<IoEvent>,
    mail: Vec<D::Mail>,
    mail_left: bool,
}

impl<D: Driver, A: App<D>> Core<D, A> {
    /// A core at rest; its app's [`App::started`] has been called.
    pub fn new(driver: D, app: A, limits: CoreLimits) -> Self {
        let mut core = Self {
            scratch: app.scratch(),
            app,
            cx: CoreContext::new(driver, limits),
            receive: vec![0; limits.receive_bytes].into_boxed_slice(),
            events: Vec::new(),
            mail: Vec::new(),
            // Mail may have been posted before the first wait.
            mail_left: true,
        };
        core.app.started(&mut core.cx);
        core.run_effects();
        core
    }

    /// Turns until the app stops the core.
    pub fn run(mut self) {
        while self.turn() {}
    }

    /// One wait, a bounded batch of events, then what is due. False once the app has stopped the core.
    pub fn turn(&mut self) -> bool {
        self.cx.io.driver.wait(self.next_due(), &mut self.events);
        let begun = self.read_clock();
        let counters = &mut self.cx.io.counters;
        counters.turns += 1;
        counters.events += self.events.len() as u64;
        self.cx.io.budget = Budget::new(self.cx.io.limits.turn_work_bytes_max);
        self.cx.io.sampler.begin_turn(begun);
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            self.handle(event);
        }
        self.events = events;
        self.read_rest();
        self.read_mail();
        self.run_timers();
        if self.app.due() <= self.read_clock() {
            self.app.run_due(&mut self.cx);
            self.run_effects();
        }
        self.app.turn_ended(&mut self.cx);
        self.run_effects();
        let took_us = self.read_clock().micros_since(begun);
        let counters = &mut self.cx.io.counters;
        counters.turn_us_most = counters.turn_us_most.max(took_us);
        !self.cx.io.stopped
    }

    /// When the next turn has something to do even if nothing happens; [`Instant::ZERO`] for at once.
    pub fn next_due(&self) -> Instant {
        let io = &self.cx.io;
        // Effects are left only when somebody has used the context between two turns.
        let is_busy = self.mail_left || !io.ready.is_empty() || !io.effects.is_empty();
        if is_busy || io.stopped {
            return Instant::ZERO;
        }
        self.cx.timers.next_due().min(self.app.due())
    }

    /// The app, to look at.
    pub fn app(&self) -> &A {
        &self.app
    }

    /// The context, to look at and to test with.
    pub fn cx(&mut self) -> &mut CoreContext<D, A> {
        &mut self.cx
    }

    fn handle(&mut self, event: IoEvent) {
        if let Some(key) = event.token.as_connection() {
            self.read_clock();
            self.connection_ready(key, event.ready);
        } else if let Some(number) = event.token.as_listener() {
            self.app.acceptable(&mut self.cx, number);
        } else if event.token == Token::PASSED {
            self.app.passed(&mut self.cx);
        } else {
            self.mail_left = true;
            self.app.woken(&mut self.cx);
        }
        self.run_effects();
    }

    fn connection_ready(&mut self, key: Key, ready: Ready) {
        let Some(entry) = self.cx.table.0.get_mut(key) else { return };
        match &entry.socket {
            SocketState::Connecting(fd) => {
                if ready.error
                    && let Err(errno) = self.cx.io.driver.error(fd)
                {
                    return apply::close_now(
                        &mut self.cx,
                        key,
                        CloseReason::ConnectFailed(errno),
                        SocketClose::Finish,
                    );
                }
                if !ready.writable {
                    return;
                }
                if let SocketState::Connecting(fd) =
                    std::mem::replace(&mut entry.socket, SocketState::Detached)
                {
                    entry.socket = SocketState::Open(fd);
                }
                self.call(key, A::opened);
                // Whatever came with it is read in its place, after what `opened` asked for.
                if ready.readable {
                    self.run_effects();
                    self.receive(key, ready.finished);
                }
            }
            SocketState::Open(_) => {
                if ready.readable || ready.error {
                    self.receive(key, ready.finished || ready.error);
                }
            }
            SocketState::Blocked(..) => {
                if ready.writable || ready.error {
                    apply::resume(&mut self.cx, key);
                    // What it had waited to send comes before what has arrived.
                    self.run_effects();
                }
                if ready.readable || ready.error {
                    self.receive(key, ready.finished || ready.error);
                }
            }
            SocketState::Draining(..) => apply::resume(&mut self.cx, key),
            SocketState::Detached => {}
        }
    }

    /// Receives until nothing is left, or until others must have their turn. `to_the_end`: a short read does
    /// not mean that nothing is left.
    fn receive(&mut self, key: Key, to_the_end: bool) {
        let mut share = Budget::new(self.cx.io.limits.connection_work_bytes_max);
        while !share.is_spent() && !self.cx.io.budget.is_spent() {
            let Some(entry) = self.cx.table.0.get_mut(key) else { return };
            let wants_arrival = entry.wants_arrival;
            let io = &mut self.cx.io;
            let fd = match &entry.socket {
                SocketState::Open(fd) => fd,
                SocketState::Blocked(fd, _) if A::READS_WHILE_BLOCKED => fd,
                SocketState::Blocked(..) => {
                    entry.has_unread = true;
                    return;
                }
                _ => return,
            };
            if let Some((length, arrival)) = io.backlog.take(key, &mut self.receive) {
                io.arrival = arrival;
                self.run_session(key, length, false, &mut share);
                continue;
            }
            if entry.peer_finished {
                // A receive says nothing but the end again; an error is asked for.
                if let Err(errno) = io.driver.error(fd) {
                    let reason = CloseReason::Failed(errno);
                    apply::close_now(&mut self.cx, key, reason, SocketClose::Finish);
                }
                return;
            }
            let received: usize = match io.recv(fd, &mut self.receive, wants_arrival) {
                Ok((0, _)) => {
                    entry.peer_finished = true;
                    return self.call(key, A::finished);
                }
                Ok((received, arrival)) => {
                    io.arrival = arrival;
                    received
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => continue,
                Err(errno) => {
                    let reason = CloseReason::Failed(errno);
                    return apply::close_now(&mut self.cx, key, reason, SocketClose::Finish);
                }
            };
            io.counters.bytes_received += received as u64;
            let whole = received < self.receive.len();
            self.run_session(key, received, false, &mut share);
            if whole && !to_the_end && !self.cx.io.backlog.holds(key) {
                return;
            }
        }
        self.cx.defer(key);
    }

    /// Gives the session what was received, or tells it that its deadline has come; then lets the app answer
    /// every event that it has to tell. What is left when `share` is spent waits in the backlog.
    fn run_session(&mut self, key: Key, received: usize, timed_out: bool, share: &mut Budget) {
        let Self { app, cx, receive, scratch, .. } = self;
        let Some(entry) = cx.table.0.get_mut(key) else { return };
        let mut input = Input::new(&mut receive[..received]);
        let mut conn = Conn::<D, A>::new(entry, &mut cx.io, key);
        let (mut events, mut spent, mut is_cut) = (0, 0, false);
        let shielded = catch_unwind(AssertUnwindSafe(|| {
            if timed_out {
                conn.entry.session.handle_timeout(conn.io.now, &mut conn.io.out);
            }
            while conn.actions.close.is_none() {
                if share.is_spent() || conn.io.budget.is_spent() {
                    is_cut = true;
                    break;
                }
                conn.actions.was_empty = conn.entry.socket.pending_bytes() == 0;
                let io = &mut *conn.io;
                let session = &mut conn.entry.session;
                let Some(event) = session.next(io.now, &mut input, scratch, &mut io.out) else {
                    break;
                };
                app.event(&mut conn, event);
                events += 1;
                let work = input.work_since(received) + events * EVENT_WORK_BYTES;
                conn.io.budget.spend(work - spent);
                share.spend(work - spent);
                spent = work;
                // Many small questions may have large answers.
                if conn.io.out.len() >= apply::OUT_KEPT_BYTES {
                    conn.send_now(&[]);
                }
                let bytes_max = conn.io.limits.pending_bytes_max;
                if apply::overflows(&mut conn.entry.socket, &conn.actions, bytes_max) {
                    break;
                }
            }
        }));
        let verdict = conn.actions;
        let arrival = std::mem::replace(&mut cx.io.arrival, Arrival::UNKNOWN);
        // What was consumed without an event: a part of a message.
        let silent_work = (input.work_since(received) + events * EVENT_WORK_BYTES) - spent;
        share.spend(silent_work);
        cx.io.budget.spend(silent_work);
        if is_cut {
            cx.io.backlog.keep(key, input.peek(), arrival);
            cx.defer(key);
        }
        self.settle(key, verdict, shielded.is_err());
    }

    /// Calls the app about one connection, unless it has closed it, then does what it asked for.
    fn call(&mut self, key: Key, callback: impl FnOnce(&mut A, &mut Conn<'_, D, A>)) {
        let Self { app, cx, .. } = self;
        let Some(entry) = cx.table.0.get_mut(key) else { return };
        if entry.socket.is_draining() {
            return;
        }
        let mut conn = Conn::<D, A>::new(entry, &mut cx.io, key);
        let shielded = catch_unwind(AssertUnwindSafe(|| callback(app, &mut conn)));
        let verdict = conn.actions;
        self.settle(key, verdict, shielded.is_err());
    }

    fn settle(&mut self, key: Key, verdict: Actions, panicked: bool) {
        if panicked {
            apply::panicked(&mut self.cx, key);
        } else {
            apply::apply(&mut self.cx, key, verdict);
        }
    }

    fn run_effects(&mut self) {
        while let Some(effect) = self.cx.io.effects.pop_front() {
            match effect {
                Effect::Opened(key) => self.call(key, A::opened),
                Effect::Notified(key) => self.call(key, A::notified),
                Effect::Drained(key) => self.call(key, A::drained),
                Effect::Close(key, reason, how) => apply::close(&mut self.cx, key, reason, how),
                Effect::Closed(key, reason) => self.closed(key, reason),
            }
        }
    }

    fn closed(&mut self, key: Key, reason: CloseReason) {
        let Self { app, cx, .. } = self;
        let Some(entry) = cx.table.0.get_mut(key) else { return };
        let mut conn = Conn::<D, A>::new(entry, &mut cx.io, key);
        let after = catch_unwind(AssertUnwindSafe(|| app.closed(&mut conn, reason)));
        let verdict = conn.actions;
        // What panics here is not asked a second time.
        cx.io.counters.panics += u64::from(after.is_err());
        if let Ok(AfterClose::Keep) = after {
            return apply::apply(cx, key, verdict);
        }
        cx.io.out.clear();
        apply::free(cx, key);
    }

    /// Entries that have more to be read than one turn's share.
    fn read_rest(&mut self) {
        // Events cannot use up what those are given who wait since the turn before.
        self.cx.io.budget = Budget::new(self.cx.io.limits.turn_work_bytes_max);
        for _ in 0..self.cx.io.ready.len() {
            if self.cx.io.budget.is_spent() {
                return;
            }
            let Some(key) = self.cx.io.ready.pop_front() else { return };
            let Some(entry) = self.cx.table.0.get_mut(key) else { continue };
            entry.is_ready_queued = false;
            self.read_clock();
            self.receive(key, true);
            self.run_effects();
        }
    }

    fn read_mail(&mut self) {
        if !std::mem::take(&mut self.mail_left) {
            return;
        }
        self.mail_left = self.cx.io.driver.receive_messages(&mut self.mail);
        let mut mail = std::mem::take(&mut self.mail);
        self.cx.io.counters.mail_received += mail.len() as u64;
        for message in mail.drain(..) {
            self.app.message(&mut self.cx, message);
            self.run_effects();
        }
        self.mail = mail;
    }

    fn run_timers(&mut self) {
        let now = self.read_clock();
        if self.cx.timers.next_due() > now {
            return;
        }
        self.cx.timers.advance(&mut self.cx.table, now);
        self.cx.io.budget = Budget::new(self.cx.io.limits.turn_work_bytes_max);
        for _ in 0..TIMERS_MAX {
            if self.cx.io.budget.is_spent() {
                return;
            }
            let Some(key) = self.cx.timers.pop(&mut self.cx.table) else { return };
            self.read_clock();
            self.timer_due(key);
            self.run_effects();
        }
    }

    fn timer_due(&mut self, key: Key) {
        let Some(entry) = self.cx.table.0.get_mut(key) else { return };
        let now = self.cx.io.now;
        let is_patience = entry.session.deadline() <= now
            || matches!(entry.deadline.get(), Deadline::Coarse(moment) if moment <= now);
        if entry.socket.is_live() && is_patience {
            // What the other end has sent in time is not too late because this core is.
            self.receive(key, false);
            self.run_effects();
        }
        let Some(entry) = self.cx.table.0.get_mut(key) else { return };
        let sequence = entry.timer_sequence;
        // A connection whose input waits here is not silent: it is timed out once that was read.
        let is_live = entry.socket.is_live();
        let is_silent = !(is_live && self.cx.io.backlog.holds(key));
        if is_live && is_silent && entry.session.deadline() <= now {
            let mut share = Budget::new(self.cx.io.limits.connection_work_bytes_max);
            self.run_session(key, 0, true, &mut share);
        }
        let Some(entry) = self.cx.table.0.get_mut(key) else { return };
        let wanted = entry.deadline.get();
        let may_be_due = is_silent || matches!(wanted, Deadline::Exact(_));
        if may_be_due && wanted.moment() <= now {
            entry.deadline = PackedDeadline::NEVER;
            if entry.socket.is_draining() {
                self.cx.io.counters.pending_overflows += 1;
                let reason = CloseReason::Overflow;
                return apply::close_now(&mut self.cx, key, reason, SocketClose::Reset);
            }
            self.call(key, A::deadline);
        }
        // Whatever was not due is still to come, unless a callback has set it anew.
        let CoreContext { table, timers, .. } = &mut self.cx;
        if table.0.get_mut(key).is_some_and(|entry| entry.timer_sequence == sequence) {
            timers.set(table, key, now);
        }
    }

    fn read_clock(&mut self) -> Instant {
        self.cx.io.now = self.cx.io.driver.now();
        self.cx.io.now
    }
}

/// Timers that fire in a turn.
const TIMERS_MAX: usize = 256;
