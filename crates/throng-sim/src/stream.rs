//! One end of an established connection: bytes in bounded windows, FIN, RST, and what poll says about them.
//!
//! The rules are those of Linux's TCP as a program sees them: what arrived stays readable after a reset, a
//! close with unread bytes resets, bytes that arrive for a closed end are answered by a reset, a
//! buffer is writable again when a third of it is free.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{Errno, Interest, Ready, SocketClose};

use crate::socket::Socket;
use crate::trace::Note;
use crate::world::{Action, State};

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) phase: Phase,
    /// The other end, once it exists; it may be gone again.
    pub(crate) peer: Option<Key>,
    /// The end that connected; it owns the port.
    began: bool,
    /// A program, or the accept queue, still has it.
    held: bool,
    /// Who is told of its readiness.
    pub(crate) seat: Option<usize>,
    pub(crate) error: Option<Errno>,
    /// What this end has sent and the network has not taken yet.
    queue: VecDeque<u8>,
    queue_max: usize,
    /// Bytes on their way to the other end.
    flying: usize,
    /// When the last of what is on its way arrives; nothing overtakes.
    last_arrival: Instant,
    /// This end sends nothing more; and that is on its way too.
    finished: bool,
    fin_sent: bool,
    /// This end finished first, so TIME-WAIT is its.
    finished_first: bool,
    /// What has arrived and not been received.
    arrived: VecDeque<u8>,
    /// How many bytes of it arrived when.
    arrivals: VecDeque<(usize, Instant)>,
    /// Its program is told when bytes arrived.
    pub(crate) is_stamped: bool,
    /// When its first SYN left; none once a second one has.
    pub(crate) syn_sent_at: Option<Instant>,
    /// What its handshake took, if no segment of it was sent again.
    pub(crate) handshake_rtt: Option<Duration>,
    arrived_max: usize,
    /// The other end sends nothing more.
    fin_arrived: bool,
    /// Somebody wants to be told of room in the send buffer.
    wants_space: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Connecting,
    Established,
    /// Reset, refused or timed out.
    Dead,
}

impl Stream {
    /// What tcp_poll says.
    pub(crate) fn poll(&mut self, interest: Interest) -> Ready {
        if self.phase == Phase::Connecting {
            return Ready::default();
        }
        let dead = self.phase == Phase::Dead;
        let hung_up = dead || (self.finished && self.fin_arrived);
        let finished = dead || self.fin_arrived;
        let writable = dead || self.finished || self.has_space();
        self.wants_space |= !writable && interest == Interest::ReadWrite;
        Ready {
            readable: finished || !self.arrived.is_empty(),
            writable: writable && interest == Interest::ReadWrite,
            finished,
            error: hung_up || self.error.is_some(),
        }
    }

    fn room(&self) -> usize {
        self.queue_max.saturating_sub(self.queue.len() + self.flying)
    }

    /// Enough room to be worth telling: a third.
    fn has_space(&self) -> bool {
        self.room() * 3 >= self.queue_max
    }

    /// Forgets when the next `count` bytes arrived; returns when the last of them did.
    fn arrived_until(&mut self, mut count: usize) -> Instant {
        let mut last = Instant::ZERO;
        while count > 0 {
            let Some((bytes, at)) = self.arrivals.front_mut() else { break };
            let taken = count.min(*bytes);
            (count, *bytes, last) = (count - taken, *bytes - taken, *at);
            if *bytes == 0 {
                self.arrivals.pop_front();
            }
        }
        last
    }

    /// Both directions have ended and nothing is on its way.
    fn is_over(&self) -> bool {
        self.phase == Phase::Dead || (self.fin_sent && self.flying == 0 && self.fin_arrived)
    }
}

impl State {
    pub(crate) fn new_stream(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        phase: Phase,
        peer: Option<Key>,
    ) -> Stream {
        let (least, most) = (self.faults.window_bytes_min, self.faults.window_bytes_max);
        let mut window = || self.prng.between(least as u64, most as u64) as usize;
        Stream {
            local,
            remote,
            phase,
            peer,
            began: peer.is_none(),
            held: true,
            seat: None,
            error: None,
            queue: VecDeque::new(),
            queue_max: window(),
            flying: 0,
            last_arrival: Instant::ZERO,
            finished: false,
            fin_sent: false,
            finished_first: false,
            arrived: VecDeque::new(),
            arrivals: VecDeque::new(),
            is_stamped: false,
            syn_sent_at: None,
            handshake_rtt: None,
            arrived_max: window(),
            fin_arrived: false,
            wants_space: false,
        }
    }

    pub(crate) fn send(&mut self, socket: Key, bytes: &[u8]) -> Result<usize, Errno> {
        let partial = self.happens(self.faults.partial_send);
        let limit =
            if partial { self.prng.between(1, bytes.len() as u64) as usize } else { bytes.len() };
        let stream = self.stream_mut(socket).ok_or(Errno::BAD_FD)?;
        if let Some(errno) = stream.error.take() {
            return Err(errno);
        }
        if stream.phase == Phase::Dead || stream.finished {
            return Err(Errno::PIPE);
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        if stream.phase == Phase::Connecting || stream.room() == 0 {
            stream.wants_space = true;
            return Err(Errno::AGAIN);
        }
        let taken = limit.min(stream.room());
        stream.queue.extend(&bytes[..taken]);
        if taken < bytes.len() {
            stream.wants_space = true;
            if stream.has_space() {
                // As if memory had been short: room is told a little later.
                let at = self.now + self.delay();
                self.schedule(at, Action::Space { socket });
            }
        }
        self.note(Note::Sent { socket, bytes: taken, of: bytes.len() });
        self.pump(socket);
        Ok(taken)
    }

    /// Receives bytes; returns how many, and when the last of them arrived.
    pub(crate) fn recv(
        &mut self,
        socket: Key,
        buffer: &mut [u8],
    ) -> Result<(usize, Instant), Errno> {
        let now = self.now;
        let stream = self.stream_mut(socket).ok_or(Errno::BAD_FD)?;
        if stream.arrived.is_empty() {
            return match stream {
                Stream { fin_arrived: true, .. } => Ok((0, now)),
                Stream { error: Some(_), .. } => Err(stream.error.take().unwrap_or(Errno::PIPE)),
                Stream { phase: Phase::Dead, .. } => Ok((0, now)),
                _ => Err(Errno::AGAIN),
            };
        }
        let count = buffer.len().min(stream.arrived.len());
        for (place, byte) in buffer.iter_mut().zip(stream.arrived.drain(..count)) {
            *place = byte;
        }
        let peer = stream.peer;
        let arrived = stream.arrived_until(count);
        self.note(Note::Received { socket, bytes: count });
        // There is room for more of what waits at the other end.
        if let Some(peer) = peer {
            self.pump(peer);
        }
        Ok((count, arrived))
    }

    pub(crate) fn finish(&mut self, socket: Key) -> Result<(), Errno> {
        let stream = self.stream_mut(socket).ok_or(Errno::BAD_FD)?;
        if stream.phase != Phase::Established {
            return Err(Errno::NOT_CONNECTED);
        }
        stream.finished = true;
        stream.finished_first |= !stream.fin_arrived;
        self.pump(socket);
        Ok(())
    }

    /// Ends a stream as `close` does, with or without a linger time of zero.
    pub(crate) fn close_stream(&mut self, socket: Key, how: SocketClose) {
        let Some(stream) = self.stream_mut(socket) else { return };
        stream.held = false;
        stream.seat = None;
        let in_order = how == SocketClose::Finish
            && stream.phase == Phase::Established
            && stream.arrived.is_empty();
        self.note(Note::Closed { socket, reset: !in_order });
        if !in_order {
            return self.abort(socket);
        }
        // An error means that it is dead already, which was looked at.
        let _ = self.finish(socket);
        self.free_if_over(socket);
    }

    /// Ends a stream by RST, or forgets one that is dead.
    pub(crate) fn abort(&mut self, socket: Key) {
        let Some(stream) = self.stream(socket) else { return };
        let (peer, dead) = (stream.peer, stream.phase == Phase::Dead);
        if let (Some(peer), false) = (peer, dead) {
            let at = self.arrival(socket);
            self.schedule(at, Action::Reset { to: peer });
        }
        self.free(socket);
    }

    /// When what leaves now arrives: after everything that left before.
    pub(crate) fn arrival(&mut self, socket: Key) -> Instant {
        let at = self.now + self.delay();
        let Some(stream) = self.stream_mut(socket) else { return at };
        stream.last_arrival = at.max(stream.last_arrival + Duration::from_nanos(1));
        stream.last_arrival
    }

    /// Sends what the other end has room for, then the FIN.
    fn pump(&mut self, from: Key) {
        loop {
            let segment_max = self.faults.segment_bytes_max as u64;
            let Some(stream) = self.stream(from) else { return };
            let Stream { phase: Phase::Established, peer: Some(to), .. } = *stream else { return };
            if stream.queue.is_empty() {
                break;
            }
            // Who is gone takes everything, and answers by RST.
            let window = self.stream(to).map_or(usize::MAX, |peer| {
                peer.arrived_max.saturating_sub(peer.arrived.len() + stream.flying)
            });
            if window == 0 {
                return;
            }
            let count = stream.queue.len().min(window);
            let count = count.min(self.prng.between(1, segment_max) as usize);
            let at = self.arrival(from);
            let Some(stream) = self.stream_mut(from) else { return };
            stream.flying += count;
            let bytes = stream.queue.drain(..count).collect();
            self.schedule(at, Action::Segment { from, to, bytes });
        }
        let Some(stream) = self.stream_mut(from) else { return };
        if stream.finished
            && !std::mem::replace(&mut stream.fin_sent, true)
            && let Some(to) = stream.peer
        {
            let at = self.arrival(from);
            self.schedule(at, Action::Fin { from, to });
        }
    }

    pub(crate) fn segment_arrived(&mut self, from: Key, to: Key, bytes: &[u8]) {
        let now = self.now;
        let taken = match self.stream_mut(to) {
            Some(stream) if stream.held && stream.phase == Phase::Established => {
                stream.arrived.extend(bytes);
                stream.arrivals.push_back((bytes.len(), now));
                true
            }
            _ => false,
        };
        if !taken {
            // Nobody is there any more: the answer is a reset, and what this end still had to send is lost.
            if self.stream(to).is_some_and(|stream| !stream.held) {
                self.free(to);
            }
            let at = self.now + self.delay();
            return self.schedule(at, Action::Reset { to: from });
        }
        self.note(Note::Arrived { socket: to, bytes: bytes.len() });
        self.tell(to);
        if let Some(sender) = self.stream_mut(from) {
            sender.flying -= bytes.len();
        }
        self.tell_space(from);
        self.pump(from);
        self.free_if_over(from);
    }

    /// Tells that the send buffer has room, if somebody waits for it.
    pub(crate) fn tell_space(&mut self, socket: Key) {
        let Some(stream) = self.stream_mut(socket) else { return };
        if stream.wants_space && stream.has_space() {
            stream.wants_space = false;
            self.tell(socket);
        }
    }

    pub(crate) fn fin_arrived(&mut self, from: Key, to: Key) {
        self.note(Note::FinArrived { socket: to });
        if let Some(stream) = self.stream_mut(to) {
            stream.fin_arrived = true;
            self.tell(to);
        }
        // Linux wakes who finished, too, once the other end has acknowledged it.
        self.tell(from);
        self.free_if_over(to);
        self.free_if_over(from);
    }

    pub(crate) fn reset_arrived(&mut self, to: Key) {
        let Some(stream) = self.stream_mut(to) else { return };
        if stream.phase == Phase::Dead {
            return;
        }
        stream.error = Some(match stream.phase {
            Phase::Connecting => Errno::CONN_REFUSED,
            _ if stream.fin_arrived => Errno::PIPE,
            _ => Errno::CONN_RESET,
        });
        stream.phase = Phase::Dead;
        stream.queue.clear();
        self.note(Note::ResetArrived { socket: to });
        self.tell(to);
        self.free_if_over(to);
    }

    pub(crate) fn cut(&mut self, socket: Key) {
        let Some(peer) = self.stream(socket).map(|stream| stream.peer) else { return };
        self.note(Note::Cut { socket });
        self.reset_arrived(socket);
        if let Some(peer) = peer {
            self.reset_arrived(peer);
        }
    }

    /// Forgets a stream that no program has and whose both directions have ended.
    fn free_if_over(&mut self, socket: Key) {
        if self.stream(socket).is_some_and(|stream| !stream.held && stream.is_over()) {
            self.free(socket);
        }
    }

    fn free(&mut self, socket: Key) {
        let Some(Socket::Stream(stream)) = self.sockets.remove(socket) else { return };
        if stream.began {
            let waits =
                stream.phase == Phase::Established && stream.finished_first && stream.is_over();
            let until = waits.then(|| self.now + self.faults.time_wait);
            self.ports.give(stream.local, stream.remote, until);
        }
    }
}
