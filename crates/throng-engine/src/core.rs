//! One core: the event loop, and the dispatch of events.

use std::panic::{AssertUnwindSafe, catch_unwind};

use throng_base::{Instant, Key, Slab};
use throng_driver::{CoreLink, Driver, Errno, IoEvent, Ready, SocketClose, Token};
use throng_proto::{Input, Session, SocketTransport, TransportRole};

use crate::actions::Actions;
use crate::budget::{Budget, EVENT_WORK_BYTES};
use crate::conn::Conn;
use crate::deadline::PackedDeadline;
use crate::entry::{Entry, SocketState};
use crate::io::{Effect, OUT_KEPT_BYTES};
use crate::record_layer::RecordLayer;
use crate::transport::TransportContext;
use crate::{AfterClose, App, Arrival, CloseReason, CoreContext, CoreLimits, Deadline};

/// Event loop with its connections and its app.
pub struct Core<D: Driver, A: App<D>> {
    pub(crate) app: A,
    pub(crate) cx: CoreContext<D, A>,
    pub(crate) receive: Box<[u8]>,
    scratch: <A::Session as Session>::Scratch,
    events: Vec<IoEvent>,
    messages: Vec<D::Message>,
    /// The mailbox may hold messages.
    has_messages: bool,
}

impl<D: Driver, A: App<D>> Core<D, A> {
    /// Bytes of memory for each idle connection or user.
    pub const ENTRY_BYTES: usize = Slab::<Entry<D::Fd, A::Session, A::State>>::ENTRY_BYTES;

    /// Creates a core and calls its app's [`App::started`].
    pub fn new(driver: D, app: A, limits: CoreLimits) -> Self {
        let mut core = Self {
            scratch: app.scratch(),
            app,
            cx: CoreContext::new(driver, limits),
            receive: vec![0; limits.receive_bytes].into_boxed_slice(),
            events: Vec::new(),
            messages: Vec::new(),
            // Messages may arrive before the first wait.
            has_messages: true,
        };
        core.app.started(&mut core.cx);
        core.run_effects();
        core
    }

    /// Puts all connections of the core over a transport. Call it before the first turn.
    pub fn set_transport(&mut self, transport: Box<dyn SocketTransport>) {
        // A part of a record is in front of what is received next.
        let bytes_min = 2 * transport.record_bytes_max();
        if self.receive.len() < bytes_min {
            self.receive = vec![0; bytes_min].into_boxed_slice();
        }
        let context = TransportContext::new(transport, &self.cx.io.limits);
        self.cx.io.transport = Some(Box::new(context));
    }

    /// Runs turns until the app stops the core.
    pub fn run(mut self) {
        while self.turn() {}
    }

    /// Runs one turn: a wait, a bounded batch of events, then the due timers. Returns false after
    /// the app has stopped the core.
    pub fn turn(&mut self) -> bool {
        self.cx.io.driver.wait(self.next_due(), &mut self.events);
        let begun = self.read_clock();
        let counters = &mut self.cx.io.counters;
        counters.turns += 1;
        counters.events += self.events.len() as u64;
        self.cx.io.budget = Budget::new(self.cx.io.limits.turn_work_bytes_max);
        // Those that wait since an earlier turn come first, so none of them waits for ever.
        self.continue_handshakes();
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            self.handle(event);
        }
        self.events = events;
        self.read_deferred();
        self.receive_messages();
        self.run_timers();
        if self.app.due() <= self.read_clock() {
            self.app.run_due(&mut self.cx);
            self.run_effects();
        }
        self.app.turn_ended(&mut self.cx);
        self.run_effects();
        let took_us = self.read_clock().micros_since(begun);
        let io = &mut self.cx.io;
        io.counters.turn_us_most = io.counters.turn_us_most.max(took_us);
        if let Some(activity) = &mut io.activity {
            activity.turn_ended(took_us);
        }
        !self.cx.io.stopped
    }

    /// Returns when the next turn has work without any event; [`Instant::ZERO`] for at once.
    pub fn next_due(&self) -> Instant {
        let io = &self.cx.io;
        // Effects remain only if a test used the context between two turns.
        let is_busy = self.has_messages || !io.ready.is_empty() || !io.effects.is_empty();
        let is_busy = is_busy || io.transport.as_ref().is_some_and(|it| it.has_work(&io.limits));
        if is_busy || io.stopped {
            return Instant::ZERO;
        }
        self.cx.timers.next_due().min(self.app.due())
    }

    /// Returns the app, for inspection.
    pub fn app(&self) -> &A {
        &self.app
    }

    /// Returns the context, for inspection and tests.
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
            self.has_messages = true;
            self.app.woken(&mut self.cx);
        }
        self.run_effects();
    }

    fn connection_ready(&mut self, key: Key, ready: Ready) {
        let Some(entry) = self.cx.table.entries.get_mut(key) else { return };
        match &entry.socket {
            SocketState::Connecting(fd) => {
                if ready.error
                    && let Err(errno) = self.cx.io.driver.error(fd)
                {
                    return self.cx.close_now(
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
                    if self.cx.io.transport.is_some() {
                        self.cx.begin_handshake(key, fd, TransportRole::Client);
                        self.call(key, A::opening);
                        self.run_effects();
                        return self.handshake(key, ready.finished);
                    }
                    entry.socket = SocketState::Open(fd, RecordLayer::default());
                }
                self.call(key, A::opened);
                // Bytes that arrived with the handshake are read after the effects of `opened`.
                if ready.readable {
                    self.run_effects();
                    self.receive(key, ready.finished);
                }
            }
            SocketState::Opening(..) => {
                let has_room = ready.writable || ready.error;
                self.handshake_ready(key, has_room, ready.finished || ready.error);
            }
            SocketState::Open(..) => {
                if ready.readable || ready.error {
                    self.receive(key, ready.finished || ready.error);
                }
            }
            SocketState::Blocked(..) => {
                if ready.writable || ready.error {
                    self.cx.resume(key);
                    // Effects of the drained queue come before the input.
                    self.run_effects();
                }
                if ready.readable || ready.error {
                    self.receive(key, ready.finished || ready.error);
                }
            }
            SocketState::Draining(_, queue) if queue.after_flush.is_linger() => self.linger(key),
            SocketState::Draining(..) => self.cx.resume(key),
            SocketState::Detached => {}
        }
    }

    /// Receives until nothing is left or the share of work is spent. With `until_again`, a short
    /// read does not mean that nothing is left.
    pub(crate) fn receive(&mut self, key: Key, until_again: bool) {
        let mut share = Budget::new(self.cx.io.limits.connection_work_bytes_max);
        while !share.is_spent() && !self.cx.io.budget.is_spent() {
            let Some(entry) = self.cx.table.entries.get_mut(key) else { return };
            let wants_arrival = self.app.wants_arrival(&entry.state);
            let io = &mut self.cx.io;
            let (fd, layer) = match &entry.socket {
                SocketState::Open(fd, layer) => (fd, *layer),
                SocketState::Blocked(fd, queue) if A::READS_WHILE_BLOCKED => (fd, queue.layer),
                SocketState::Opening(..) => return self.handshake(key, until_again),
                SocketState::Blocked(..) => {
                    entry.has_unread = true;
                    return;
                }
                _ => return,
            };
            if let Some((length, arrival)) = io.backlog.take(key, &mut self.receive) {
                io.arrival = arrival;
                self.run_session(key, length, false, &mut share);
                if layer.key.is_some_and(|transport| self.has_ended(key, transport)) {
                    return;
                }
                continue;
            }
            if entry.peer_finished {
                // A receive would only report the end again, so read the socket's error instead.
                if let Err(errno) = io.driver.error(fd) {
                    let reason = CloseReason::Failed(errno);
                    self.cx.close_now(key, reason, SocketClose::Finish);
                }
                return;
            }
            let kept = io.part_of(key, layer.has_part(), &mut self.receive);
            let buffer = &mut self.receive[kept..];
            let received: usize = match io.recv(fd, buffer, wants_arrival) {
                Ok((0, _)) => {
                    entry.peer_finished = true;
                    if layer.key.is_some() {
                        io.transport().counters.truncated += 1;
                    }
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
                    return self.cx.close_now(key, reason, SocketClose::Finish);
                }
            };
            io.counters.bytes_received += received as u64;
            if let Some(activity) = &mut io.activity {
                activity.received(key, received);
            }
            let is_short = kept + received < self.receive.len();
            if layer.key.is_none() {
                self.run_session(key, received, false, &mut share);
            } else if !self.receive_records(key, layer, kept + received, &mut share) {
                return;
            }
            if is_short && !until_again && !self.cx.io.backlog.holds(key) {
                return;
            }
        }
        self.cx.defer(key);
    }

    /// Gives the session the received bytes, or reports its expired deadline; then passes each
    /// event to the app. Input that remains when `share` is spent waits in the backlog.
    pub(crate) fn run_session(
        &mut self,
        key: Key,
        received: usize,
        timed_out: bool,
        share: &mut Budget,
    ) {
        let Self { app, cx, receive, scratch, .. } = self;
        let Some(entry) = cx.table.entries.get_mut(key) else { return };
        let mut input = Input::new(&mut receive[..received]);
        let arrival = std::mem::take(&mut cx.io.arrival);
        let mut conn = Conn::<D, A>::new(entry, &mut cx.io, key);
        let (mut events, mut spent, mut has_more) = (0, 0, false);
        let result = catch_unwind(AssertUnwindSafe(|| {
            if timed_out {
                conn.entry.session.handle_timeout(conn.io.now, &mut conn.io.out);
            }
            while conn.actions.close.is_none() {
                if share.is_spent() || conn.io.budget.is_spent() {
                    has_more = true;
                    break;
                }
                conn.actions.queue_was_empty = conn.entry.socket.pending_bytes() == 0;
                let io = &mut *conn.io;
                let session = &mut conn.entry.session;
                let Some(event) = session.next(io.now, &mut input, scratch, &mut io.out) else {
                    break;
                };
                io.arrival = match input.peek() {
                    [] => arrival,
                    _ => arrival.of_earlier_bytes(),
                };
                app.event(&mut conn, event);
                events += 1;
                let work = input.work_since(received) + events * EVENT_WORK_BYTES;
                conn.io.budget.spend(work - spent);
                share.spend(work - spent);
                spent = work;
                // Many small requests may have large answers.
                if conn.io.out.len() >= OUT_KEPT_BYTES {
                    conn.send_now(&[]);
                }
                let bytes_max = conn.io.limits.pending_bytes_max;
                if conn.entry.overflows(conn.actions.queue_was_empty, bytes_max) {
                    break;
                }
            }
        }));
        let actions = conn.actions;
        if let Some(activity) = &mut cx.io.activity
            && events > 0
        {
            activity.decoded(key, events);
        }
        cx.io.arrival = Arrival::Unknown;
        // Bytes consumed without an event: a part of a message.
        let silent_work = (input.work_since(received) + events * EVENT_WORK_BYTES) - spent;
        share.spend(silent_work);
        cx.io.budget.spend(silent_work);
        if has_more {
            cx.io.backlog.keep(key, input.peek(), arrival);
            cx.defer(key);
        }
        self.finish_callback(key, actions, result.is_err());
    }

    /// Calls the app about one connection, unless the app has closed it, then applies its actions.
    pub(crate) fn call(&mut self, key: Key, callback: impl FnOnce(&mut A, &mut Conn<'_, D, A>)) {
        let Self { app, cx, .. } = self;
        let Some(entry) = cx.table.entries.get_mut(key) else { return };
        if entry.socket.is_draining() {
            return;
        }
        let mut conn = Conn::<D, A>::new(entry, &mut cx.io, key);
        let result = catch_unwind(AssertUnwindSafe(|| callback(app, &mut conn)));
        let actions = conn.actions;
        self.finish_callback(key, actions, result.is_err());
    }

    fn finish_callback(&mut self, key: Key, actions: Actions, panicked: bool) {
        if panicked {
            self.cx.close_panicked(key);
        } else {
            self.cx.apply_actions(key, actions);
        }
    }

    pub(crate) fn run_effects(&mut self) {
        while let Some(effect) = self.cx.io.effects.pop_front() {
            match effect {
                Effect::Opened(key) => self.call(key, A::opened),
                Effect::Notified(key) => self.call(key, A::notified),
                Effect::Drained(key) => self.call(key, A::drained),
                Effect::Close(key, reason, how) => self.cx.close_drained(key, reason, how),
                Effect::Closed(key, reason) => {
                    self.closed(key, reason);
                    if !self.cx.io.failure_texts.is_empty() {
                        self.cx.io.failure_texts.retain(|(of, _)| *of != key);
                    }
                }
            }
        }
    }

    fn closed(&mut self, key: Key, reason: CloseReason) {
        let Self { app, cx, .. } = self;
        let Some(entry) = cx.table.entries.get_mut(key) else { return };
        let mut conn = Conn::<D, A>::new(entry, &mut cx.io, key);
        let after = catch_unwind(AssertUnwindSafe(|| app.closed(&mut conn, reason)));
        let actions = conn.actions;
        // After a panic here the app gets no further callback about this entry.
        cx.io.counters.panics += u64::from(after.is_err());
        if let Ok(AfterClose::Keep) = after {
            return cx.apply_actions(key, actions);
        }
        cx.io.out.clear();
        cx.free(key);
    }

    /// Reads from the entries whose input exceeded their share in an earlier turn.
    fn read_deferred(&mut self) {
        // A new budget: this turn's events cannot use up the work of connections that wait since
        // the last turn.
        self.cx.io.budget = Budget::new(self.cx.io.limits.turn_work_bytes_max);
        for _ in 0..self.cx.io.ready.len() {
            if self.cx.io.budget.is_spent() {
                return;
            }
            let Some(key) = self.cx.io.ready.pop_front() else { return };
            let Some(entry) = self.cx.table.entries.get_mut(key) else { continue };
            entry.is_ready_queued = false;
            self.read_clock();
            self.receive(key, true);
            self.run_effects();
        }
    }

    fn receive_messages(&mut self) {
        if !std::mem::take(&mut self.has_messages) {
            return;
        }
        let io = &mut self.cx.io;
        if let Some(activity) = &mut io.activity {
            activity.mailbox_most = activity.mailbox_most.max(io.driver.link().messages_waiting());
        }
        self.has_messages = io.driver.link().receive_messages(&mut self.messages);
        let mut messages = std::mem::take(&mut self.messages);
        self.cx.io.counters.mail_received += messages.len() as u64;
        for message in messages.drain(..) {
            self.app.message(&mut self.cx, message);
            self.run_effects();
        }
        self.messages = messages;
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
        let Some(entry) = self.cx.table.entries.get_mut(key) else { return };
        let now = self.cx.io.now;
        if entry.socket.transport_deadline() <= now && self.transport_timed_out(key, now) {
            return;
        }
        let Some(entry) = self.cx.table.entries.get_mut(key) else { return };
        let is_timeout = entry.session.deadline() <= now
            || matches!(entry.deadline.get(), Deadline::Coarse(moment) if moment <= now);
        if entry.socket.is_live() && is_timeout {
            // Bytes that the peer sent in time count, even if this core is late.
            self.receive(key, false);
            self.run_effects();
        }
        let Some(entry) = self.cx.table.entries.get_mut(key) else { return };
        let sequence = entry.timer_sequence;
        // A connection whose input waits here is not silent: it can time out after that input was
        // read.
        let is_live = entry.socket.is_live();
        let is_silent = !(is_live && self.cx.io.backlog.holds(key));
        if is_live && is_silent && entry.session.deadline() <= now {
            let mut share = Budget::new(self.cx.io.limits.connection_work_bytes_max);
            self.run_session(key, 0, true, &mut share);
        }
        let Some(entry) = self.cx.table.entries.get_mut(key) else { return };
        let wanted = entry.deadline.get();
        let may_be_due = is_silent || matches!(wanted, Deadline::Exact(_));
        if may_be_due && wanted.moment() <= now {
            entry.deadline = PackedDeadline::NEVER;
            if entry.socket.is_draining() {
                return self.drain_timed_out(key);
            }
            self.call(key, A::deadline);
        }
        // A deadline that is not due stays, unless a callback has set a new one.
        let CoreContext { table, timers, .. } = &mut self.cx;
        if table.entries.get_mut(key).is_some_and(|entry| entry.timer_sequence == sequence) {
            timers.set(table, key, now);
        }
    }

    pub(crate) fn read_clock(&mut self) -> Instant {
        self.cx.io.now = self.cx.io.driver.now();
        self.cx.io.now
    }
}

/// Most timers that fire in a turn.
const TIMERS_MAX: usize = 256;
