//! The stage between an established socket and an open connection: the handshake of its transport.

use throng_base::{Instant, Key};
use throng_driver::{Driver, Errno, Interest, SocketClose, Sockets, Token};
use throng_proto::{OpenedRecords, TransportError, TransportKey, TransportRole, TransportStatus};

use crate::budget::Budget;
use crate::entry::SocketState;
use crate::handshake::Handshake;
use crate::io::CoreIo;
use crate::record_layer::RecordLayer;
use crate::send::send;
use crate::send_queue::SendQueue;
use crate::{App, Arrival, CloseReason, Core, CoreContext};

/// What follows a step of a handshake.
enum Step {
    /// Nothing until the next event, or until the queue's turn.
    Wait,
    /// Bytes were received, so more may be there. A short read means that nothing is left.
    GoOn { is_short: bool },
    /// The connection is open, and plaintext may have arrived behind the handshake.
    Open { transport: TransportKey, opened: OpenedRecords, arrival: Arrival, is_short: bool },
    /// The handshake has failed. The alert that says so is sent.
    Fail(TransportError),
    /// The connection is closed.
    Close(CloseReason),
}

impl Handshake {
    /// Sends what the kernel did not take, after the socket has room again.
    fn resume<D: Sockets>(
        &mut self,
        io: &mut CoreIo<D>,
        key: Key,
        fd: &D::Fd,
    ) -> Result<(), Errno> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        let taken = send(&mut io.driver, &mut io.counters, fd, &self.unsent)?;
        io.count_sent(key, taken);
        self.unsent.drain(..taken);
        self.watch(io, key, fd)
    }

    /// Sends the transport's out buffer, behind what the kernel did not take.
    fn send<D: Sockets>(&mut self, io: &mut CoreIo<D>, key: Key, fd: &D::Fd) -> Result<(), Errno> {
        if self.unsent.is_empty() {
            self.unsent = io.send_records(key, fd)?;
            return self.watch(io, key, fd);
        }
        self.unsent.append(&mut io.transport().sealed);
        Ok(())
    }

    /// Asks the driver for a report of room, if bytes wait.
    fn watch<D: Sockets>(&self, io: &mut CoreIo<D>, key: Key, fd: &D::Fd) -> Result<(), Errno> {
        match self.unsent.is_empty() {
            true => Ok(()),
            false => io.driver.reregister(fd, Token::connection(key), Interest::ReadWrite),
        }
    }

    /// Reports whether this turn has work left for the handshake, and the core a place if it has
    /// not begun. Else it waits in one of the core's queues.
    fn may_go_on<D: Sockets>(&mut self, io: &mut CoreIo<D>, key: Key) -> bool {
        let handshakes_max = io.limits.handshakes_max;
        let handshakes = &mut io.transport().handshakes;
        let queue = if handshakes.budget.is_spent() {
            &mut handshakes.deferred
        } else if self.key.is_none() && handshakes.under_way >= handshakes_max {
            &mut handshakes.waiting
        } else {
            return true;
        };
        if !std::mem::replace(&mut self.is_queued, true) {
            queue.push_back(key);
        }
        false
    }

    /// Begins the handshake if it has not begun.
    fn begin<D: Sockets>(
        &mut self,
        io: &mut CoreIo<D>,
        key: Key,
        fd: &D::Fd,
    ) -> Result<TransportKey, Errno> {
        if let Some(transport) = self.key {
            return Ok(transport);
        }
        let now = io.now;
        let context = io.transport();
        context.handshakes.under_way += 1;
        context.counters.handshakes += 1;
        context.sealed.clear();
        context.transport.for_client(self.client);
        let transport = context.transport.begin(self.role, now, &mut context.sealed);
        self.key = Some(transport);
        self.send(io, key, fd)?;
        Ok(transport)
    }

    /// Receives once, and gives it to the transport.
    fn step<D: Sockets>(
        &mut self,
        io: &mut CoreIo<D>,
        key: Key,
        fd: &D::Fd,
        buffer: &mut [u8],
        wants_arrival: bool,
    ) -> Result<Step, Errno> {
        if !self.may_go_on(io, key) {
            return Ok(Step::Wait);
        }
        if self.role == TransportRole::Client {
            self.begin(io, key, fd)?;
        }
        let kept = io.part_of(key, self.has_part, buffer);
        let (received, arrival) = match io.recv(fd, &mut buffer[kept..], wants_arrival) {
            Ok((0, _)) => {
                return Ok(Step::Fail(TransportError::HandshakeClosed));
            }
            Ok(received) => received,
            Err(Errno::AGAIN) => return Ok(Step::Wait),
            Err(Errno::INTR) => return Ok(Step::GoOn { is_short: false }),
            Err(errno) => return Err(errno),
        };
        let transport = self.begin(io, key, fd)?;
        let is_short = kept + received < buffer.len();
        io.counters.bytes_received += received as u64;
        let input = &mut buffer[..kept + received];
        let opened = match io.open_records(key, transport, self.has_part, input) {
            Ok(opened) => opened,
            Err(reason) => return Ok(Step::Close(reason)),
        };
        self.has_part = opened.incomplete_bytes > 0;
        io.budget.spend(received);
        io.transport().handshakes.budget.spend(received + opened.work_bytes);
        self.send(io, key, fd)?;
        Ok(match opened.status {
            TransportStatus::Opening => Step::GoOn { is_short },
            // A peer that has finished was open before: it may do both in one flight.
            TransportStatus::Open | TransportStatus::Finished => {
                Step::Open { transport, opened, arrival, is_short }
            }
            TransportStatus::Failed(error) => Step::Fail(error),
        })
    }
}

impl<D: Driver, A: App<D>> Core<D, A> {
    /// Reports that a socket in its handshake is ready.
    pub(crate) fn handshake_ready(&mut self, key: Key, has_room: bool, until_again: bool) {
        if has_room
            && let Some(entry) = self.cx.table.entries.get_mut(key)
            && let SocketState::Opening(fd, handshake) = &mut entry.socket
            && let Err(errno) = handshake.resume(&mut self.cx.io, key, fd)
        {
            return self.cx.close_now(key, CloseReason::Failed(errno), SocketClose::Finish);
        }
        self.handshake(key, until_again);
    }

    /// Continues the handshake of a connection. When its transport is open, the app learns of the
    /// connection, and what has arrived behind the handshake is read.
    pub(crate) fn handshake(&mut self, key: Key, until_again: bool) {
        loop {
            let Some(entry) = self.cx.table.entries.get_mut(key) else { return };
            let wants_arrival = self.app.wants_arrival(&entry.state);
            let SocketState::Opening(fd, handshake) = &mut entry.socket else { return };
            let (io, buffer) = (&mut self.cx.io, &mut self.receive);
            match handshake.step(io, key, fd, buffer, wants_arrival) {
                Ok(Step::Wait) => return,
                Ok(Step::GoOn { is_short }) if is_short && !until_again => return,
                Ok(Step::GoOn { .. }) => {}
                Ok(Step::Open { transport, opened, arrival, is_short }) => {
                    let plain = &self.receive[..opened.plain_bytes];
                    if !plain.is_empty() {
                        self.cx.io.backlog.keep(key, plain, arrival);
                    }
                    if let Err(errno) = self.cx.handshake_ended(key, opened) {
                        let reason = CloseReason::Failed(errno);
                        return self.cx.close_now(key, reason, SocketClose::Finish);
                    }
                    self.cx.io.arrival = arrival;
                    self.call(key, A::opened);
                    self.cx.io.arrival = Arrival::Unknown;
                    // What arrived with the handshake is read after the effects of `opened`.
                    self.run_effects();
                    if self.has_ended(key, transport) {
                        return;
                    }
                    if opened.plain_bytes > 0 || !is_short || until_again {
                        self.receive(key, until_again);
                    }
                    return;
                }
                Ok(Step::Fail(error)) => return self.close_failed(key, error),
                Ok(Step::Close(reason)) => {
                    return self.cx.close_now(key, reason, SocketClose::Finish);
                }
                Err(errno) => {
                    let reason = CloseReason::Failed(errno);
                    return self.cx.close_now(key, reason, SocketClose::Finish);
                }
            }
        }
    }

    /// Continues the handshakes that had no turn, as far as this turn has work left for them.
    pub(crate) fn continue_handshakes(&mut self) {
        let handshakes_max = self.cx.io.limits.handshakes_max;
        let work_bytes_max = self.cx.io.limits.handshake_work_bytes_max;
        let Some(context) = &mut self.cx.io.transport else { return };
        context.handshakes.budget = Budget::new(work_bytes_max);
        let mut deferred = context.handshakes.deferred.len();
        loop {
            let queues = &mut self.cx.io.transport().handshakes;
            if queues.budget.is_spent() {
                return;
            }
            let next = if deferred > 0 {
                deferred -= 1;
                queues.deferred.pop_front()
            } else if queues.under_way < handshakes_max {
                queues.waiting.pop_front()
            } else {
                None
            };
            let Some(key) = next else { return };
            let Some(entry) = self.cx.table.entries.get_mut(key) else { continue };
            let SocketState::Opening(_, handshake) = &mut entry.socket else { continue };
            handshake.is_queued = false;
            self.read_clock();
            self.handshake(key, true);
            self.run_effects();
        }
    }
}

impl<D: Driver, A: App<D>> Core<D, A> {
    /// Closes a connection whose handshake or record is too slow. Returns false if bytes that
    /// arrived in time complete it.
    pub(crate) fn transport_timed_out(&mut self, key: Key, now: Instant) -> bool {
        self.receive(key, false);
        self.run_effects();
        let Some(entry) = self.cx.table.entries.get_mut(key) else { return true };
        let Some(reason) = CloseReason::of_slow_transport(&entry.socket, now) else { return false };
        self.cx.close_now(key, reason, SocketClose::Finish);
        true
    }
}

impl<D: Driver, A: App<D>> CoreContext<D, A> {
    /// Makes a connection open after its handshake.
    fn handshake_ended(&mut self, key: Key, opened: OpenedRecords) -> Result<(), Errno> {
        let Some(entry) = self.table.entries.get_mut(key) else { return Ok(()) };
        let socket = std::mem::replace(&mut entry.socket, SocketState::Detached);
        let SocketState::Opening(fd, handshake) = socket else {
            unreachable!("only a connection in its handshake becomes open by it");
        };
        let mut layer = handshake.key.map(RecordLayer::new).unwrap_or_default();
        let timeout = self.io.limits.record_timeout;
        layer.note(opened, opened.incomplete_bytes, self.io.now, timeout);
        entry.socket = SocketState::Open(fd, layer);
        let context = self.io.transport();
        context.handshakes.under_way -= 1;
        context.counters.opened += 1;
        context.counters.resumed += u64::from(opened.has_resumed);
        context.has_resumed = opened.has_resumed;
        if handshake.unsent.is_empty() {
            return Ok(());
        }
        entry.block(&mut self.io, key, SendQueue::behind(handshake.unsent))
    }
}

impl CloseReason {
    /// Returns the reason to close a connection whose transport is too slow at `now`.
    pub(crate) fn of_slow_transport<F>(socket: &SocketState<F>, now: Instant) -> Option<Self> {
        match socket {
            _ if socket.transport_deadline() > now => None,
            SocketState::Opening(..) => Some(Self::HandshakeTimeout),
            _ => Some(Self::TransportFailed(TransportError::RecordTimeout)),
        }
    }
}
