//! One side of an established connection: bytes in bounded windows, FIN, RST, and readiness.
//!
//! The rules are those of TCP on Linux as a program sees them: bytes that arrived stay readable
//! after a reset; a close with unread bytes resets; a closed side answers bytes by a reset; a send
//! buffer is writable again when a third of it is free.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{Errno, Interest, Ready, SocketClose};

use crate::socket::Socket;
use crate::trace::Note;
use crate::world::{Action, State};

/// One side of a connection.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) phase: Phase,
    /// Peer, after it exists. Its socket may be gone again.
    pub(crate) peer: Option<Key>,
    /// This side connected, and owns the port.
    is_client: bool,
    /// A program or the accept queue still holds the socket.
    is_open: bool,
    /// Slot of the driver that gets the socket's readiness.
    pub(crate) slot: Option<usize>,
    pub(crate) error: Option<Errno>,
    /// Bytes that this side has sent and the network has not taken yet.
    send_buffer: VecDeque<u8>,
    send_buffer_max: usize,
    /// Bytes in transit to the peer.
    in_flight: usize,
    /// Arrival of the last bytes in transit. No segment overtakes another.
    last_arrival: Instant,
    /// This side sends nothing more.
    finished: bool,
    /// The FIN was sent.
    fin_sent: bool,
    /// This side finished first, so TIME-WAIT is on this side.
    closed_first: bool,
    /// Bytes that have arrived and were not received.
    receive_buffer: VecDeque<u8>,
    /// Number and arrival of the bytes of each segment in the receive buffer.
    arrivals: VecDeque<(usize, Instant)>,
    /// The program gets arrival stamps.
    pub(crate) is_stamped: bool,
    /// Time of the SYN; `None` after a retransmission.
    pub(crate) syn_sent_at: Option<Instant>,
    /// Duration of the handshake, if no segment of it was retransmitted.
    pub(crate) handshake_rtt: Option<Duration>,
    receive_buffer_max: usize,
    /// The peer sends nothing more.
    fin_arrived: bool,
    /// The program waits for room in the send buffer.
    wants_space: bool,
}

/// Phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Connecting,
    Established,
    /// Reset, refused or timed out.
    Dead,
}

impl Stream {
    /// Returns the readiness, as Linux's `tcp_poll` does.
    pub(crate) fn poll(&mut self, interest: Interest) -> Ready {
        if self.phase == Phase::Connecting {
            return Ready::default();
        }
        let is_dead = self.phase == Phase::Dead;
        let hung_up = is_dead || (self.finished && self.fin_arrived);
        let finished = is_dead || self.fin_arrived;
        let writable = is_dead || self.finished || self.has_space();
        self.wants_space |= !writable && interest == Interest::ReadWrite;
        Ready {
            readable: finished || !self.receive_buffer.is_empty(),
            writable: writable && interest == Interest::ReadWrite,
            finished,
            error: hung_up || self.error.is_some(),
        }
    }

    fn send_room(&self) -> usize {
        self.send_buffer_max.saturating_sub(self.send_buffer.len() + self.in_flight)
    }

    /// Reports whether there is enough room for a readiness event: a third of the buffer.
    fn has_space(&self) -> bool {
        self.send_room() * 3 >= self.send_buffer_max
    }

    /// Removes the arrivals of the next `count` bytes. Returns the arrival of the last of them.
    fn take_arrivals(&mut self, mut count: usize) -> Instant {
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

    /// Reports whether both directions have ended and nothing is in transit.
    fn is_over(&self) -> bool {
        self.phase == Phase::Dead || (self.fin_sent && self.in_flight == 0 && self.fin_arrived)
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
            is_client: peer.is_none(),
            is_open: true,
            slot: None,
            error: None,
            send_buffer: VecDeque::new(),
            send_buffer_max: window(),
            in_flight: 0,
            last_arrival: Instant::ZERO,
            finished: false,
            fin_sent: false,
            closed_first: false,
            receive_buffer: VecDeque::new(),
            arrivals: VecDeque::new(),
            is_stamped: false,
            syn_sent_at: None,
            handshake_rtt: None,
            receive_buffer_max: window(),
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
        if stream.phase == Phase::Connecting || stream.send_room() == 0 {
            stream.wants_space = true;
            return Err(Errno::AGAIN);
        }
        let taken = limit.min(stream.send_room());
        stream.send_buffer.extend(&bytes[..taken]);
        if taken < bytes.len() {
            stream.wants_space = true;
            if stream.has_space() {
                // As if memory had been short: the driver reports room a little later.
                let at = self.now + self.delay();
                self.schedule(at, Action::Space { socket });
            }
        }
        self.note(Note::Sent { socket, bytes: taken, of: bytes.len() });
        self.transmit(socket);
        Ok(taken)
    }

    /// Receives bytes. Returns how many, and when the last of them arrived.
    pub(crate) fn recv(
        &mut self,
        socket: Key,
        buffer: &mut [u8],
    ) -> Result<(usize, Instant), Errno> {
        let now = self.now;
        let stream = self.stream_mut(socket).ok_or(Errno::BAD_FD)?;
        if stream.receive_buffer.is_empty() {
            return match stream {
                Stream { fin_arrived: true, .. } => Ok((0, now)),
                Stream { error: Some(_), .. } => Err(stream.error.take().unwrap_or(Errno::PIPE)),
                Stream { phase: Phase::Dead, .. } => Ok((0, now)),
                _ => Err(Errno::AGAIN),
            };
        }
        let count = buffer.len().min(stream.receive_buffer.len());
        for (place, byte) in buffer.iter_mut().zip(stream.receive_buffer.drain(..count)) {
            *place = byte;
        }
        let peer = stream.peer;
        let arrived = stream.take_arrivals(count);
        self.note(Note::Received { socket, bytes: count });
        // There is room for more bytes of the peer.
        if let Some(peer) = peer {
            self.transmit(peer);
        }
        Ok((count, arrived))
    }

    pub(crate) fn finish(&mut self, socket: Key) -> Result<(), Errno> {
        let stream = self.stream_mut(socket).ok_or(Errno::BAD_FD)?;
        if stream.phase != Phase::Established {
            return Err(Errno::NOT_CONNECTED);
        }
        stream.finished = true;
        stream.closed_first |= !stream.fin_arrived;
        self.transmit(socket);
        Ok(())
    }

    /// Closes a stream as `close` does, with or without a linger time of zero.
    pub(crate) fn close_stream(&mut self, socket: Key, how: SocketClose) {
        let Some(stream) = self.stream_mut(socket) else { return };
        stream.is_open = false;
        stream.slot = None;
        let in_order = how == SocketClose::Finish
            && stream.phase == Phase::Established
            && stream.receive_buffer.is_empty();
        self.note(Note::Closed { socket, reset: !in_order });
        if !in_order {
            return self.abort(socket);
        }
        // The phase was checked above, so there is no error.
        let _ = self.finish(socket);
        self.free_if_over(socket);
    }

    /// Closes a stream by RST, or removes a dead stream.
    pub(crate) fn abort(&mut self, socket: Key) {
        let Some(stream) = self.stream(socket) else { return };
        let (peer, is_dead) = (stream.peer, stream.phase == Phase::Dead);
        if let (Some(peer), false) = (peer, is_dead) {
            let at = self.arrival(socket);
            self.schedule(at, Action::Reset { to: peer });
        }
        self.free(socket);
    }

    /// Returns the arrival of a segment that leaves now: after all earlier ones.
    pub(crate) fn arrival(&mut self, socket: Key) -> Instant {
        let at = self.now + self.delay();
        let Some(stream) = self.stream_mut(socket) else { return at };
        stream.last_arrival = at.max(stream.last_arrival + Duration::from_nanos(1));
        stream.last_arrival
    }

    /// Sends the bytes for which the peer has room, then the FIN.
    fn transmit(&mut self, from: Key) {
        loop {
            let segment_max = self.faults.segment_bytes_max as u64;
            let Some(stream) = self.stream(from) else { return };
            let Stream { phase: Phase::Established, peer: Some(to), .. } = *stream else { return };
            if stream.send_buffer.is_empty() {
                break;
            }
            // A peer that is gone takes all bytes, and answers by RST.
            let window = self.stream(to).map_or(usize::MAX, |peer| {
                peer.receive_buffer_max.saturating_sub(peer.receive_buffer.len() + stream.in_flight)
            });
            if window == 0 {
                return;
            }
            let count = stream.send_buffer.len().min(window);
            let count = count.min(self.prng.between(1, segment_max) as usize);
            let at = self.arrival(from);
            let Some(stream) = self.stream_mut(from) else { return };
            stream.in_flight += count;
            let bytes = stream.send_buffer.drain(..count).collect();
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
            Some(stream) if stream.is_open && stream.phase == Phase::Established => {
                stream.receive_buffer.extend(bytes);
                stream.arrivals.push_back((bytes.len(), now));
                true
            }
            _ => false,
        };
        if !taken {
            // The socket is closed: the answer is a reset, and the bytes that it still had to send
            // are lost.
            if self.stream(to).is_some_and(|stream| !stream.is_open) {
                self.free(to);
            }
            let at = self.now + self.delay();
            return self.schedule(at, Action::Reset { to: from });
        }
        self.note(Note::Arrived { socket: to, bytes: bytes.len() });
        self.notify(to);
        if let Some(sender) = self.stream_mut(from) {
            sender.in_flight -= bytes.len();
        }
        self.notify_space(from);
        self.transmit(from);
        self.free_if_over(from);
    }

    /// Reports that the send buffer has room, if the program waits for it.
    pub(crate) fn notify_space(&mut self, socket: Key) {
        let Some(stream) = self.stream_mut(socket) else { return };
        if stream.wants_space && stream.has_space() {
            stream.wants_space = false;
            self.notify(socket);
        }
    }

    pub(crate) fn fin_arrived(&mut self, from: Key, to: Key) {
        self.note(Note::FinArrived { socket: to });
        if let Some(stream) = self.stream_mut(to) {
            stream.fin_arrived = true;
            self.notify(to);
        }
        // Linux also wakes the side that finished, when the peer has acknowledged the FIN.
        self.notify(from);
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
        stream.send_buffer.clear();
        self.note(Note::ResetArrived { socket: to });
        self.notify(to);
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

    /// Removes a stream that no program holds and whose directions have both ended.
    fn free_if_over(&mut self, socket: Key) {
        if self.stream(socket).is_some_and(|stream| !stream.is_open && stream.is_over()) {
            self.free(socket);
        }
    }

    fn free(&mut self, socket: Key) {
        let Some(Socket::Stream(stream)) = self.sockets.remove(socket) else { return };
        if stream.is_client {
            let has_time_wait =
                stream.phase == Phase::Established && stream.closed_first && stream.is_over();
            let until = has_time_wait.then(|| self.now + self.faults.time_wait);
            self.ports.release(stream.local, stream.remote, until);
        }
    }
}
