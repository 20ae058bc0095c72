//! Sockets, and the establishment of connections: SYN, accept queue, accept.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use throng_base::Key;
use throng_driver::{ConnectSpec, Errno, Interest, ListenSpec, Ready, SourceAddress};

use crate::stream::{Phase, Stream};
use crate::trace::Note;
use crate::world::{Action, State};

/// Sockets that listen at each address; more than one with SO_REUSEPORT.
pub(crate) type Listeners = BTreeMap<SocketAddr, Vec<Key>>;

#[derive(Debug)]
pub(crate) enum Socket {
    Listener(Listener),
    Stream(Box<Stream>),
}

/// Listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) addr: SocketAddr,
    reuseport: bool,
    backlog: usize,
    /// Number of cores that hold the listener.
    pub(crate) refs: usize,
    /// Accept queue: established connections that are not accepted yet.
    queue: VecDeque<Key>,
}

impl State {
    pub(crate) fn stream(&self, socket: Key) -> Option<&Stream> {
        match self.sockets.get(socket) {
            Some(Socket::Stream(stream)) => Some(stream),
            _ => None,
        }
    }

    pub(crate) fn stream_mut(&mut self, socket: Key) -> Option<&mut Stream> {
        match self.sockets.get_mut(socket) {
            Some(Socket::Stream(stream)) => Some(stream),
            _ => None,
        }
    }

    pub(crate) fn listener(&mut self, socket: Key) -> Option<&mut Listener> {
        match self.sockets.get_mut(socket) {
            Some(Socket::Listener(listener)) => Some(listener),
            _ => None,
        }
    }

    /// Returns the readiness of a socket for `interest`. Records that a full send buffer is of
    /// interest.
    pub(crate) fn poll(&mut self, socket: Key, interest: Interest) -> Ready {
        match self.sockets.get_mut(socket) {
            Some(Socket::Listener(listener)) => {
                Ready { readable: !listener.queue.is_empty(), ..Ready::default() }
            }
            Some(Socket::Stream(stream)) => stream.poll(interest),
            None => Ready::default(),
        }
    }

    pub(crate) fn listen(&mut self, spec: &ListenSpec) -> Result<Key, Errno> {
        let mut addr = spec.addr;
        if addr.port() == 0 {
            let range = self.faults.ports.clone();
            let free = range.into_iter().find(|port| {
                addr.set_port(*port);
                !self.listeners.contains_key(&addr)
            });
            free.ok_or(Errno::ADDR_IN_USE)?;
        }
        let group = self.listeners.get(&addr).cloned().unwrap_or_default();
        let shares = |key: &Key| {
            let other = self.sockets.get(*key);
            matches!(other, Some(Socket::Listener(other)) if other.reuseport)
        };
        let is_free = group.is_empty() || (spec.reuseport && group.iter().all(shares));
        if !is_free {
            return Err(Errno::ADDR_IN_USE);
        }
        let socket = self.sockets.insert(Socket::Listener(Listener {
            addr,
            reuseport: spec.reuseport,
            backlog: spec.backlog as usize,
            refs: 1,
            queue: VecDeque::new(),
        }));
        self.listeners.entry(addr).or_default().push(socket);
        self.note(Note::Listen { socket, addr });
        Ok(socket)
    }

    /// Closes a listener, and resets the connections in its queue.
    pub(crate) fn close_listener(&mut self, socket: Key) {
        let Some(Socket::Listener(listener)) = self.sockets.remove(socket) else { return };
        if let Some(group) = self.listeners.get_mut(&listener.addr) {
            group.retain(|key| *key != socket);
            if group.is_empty() {
                self.listeners.remove(&listener.addr);
            }
        }
        for child in listener.queue {
            self.abort(child);
        }
    }

    pub(crate) fn accept(&mut self, listener: Key) -> Result<Key, Errno> {
        self.listener(listener).ok_or(Errno::INVALID)?.queue.pop_front().ok_or(Errno::AGAIN)
    }

    pub(crate) fn connect(&mut self, spec: &ConnectSpec) -> Result<Key, Errno> {
        let source = match spec.source {
            SourceAddress::Any => SocketAddr::new(loopback(spec.target), 0),
            SourceAddress::IpOnly(ip) => SocketAddr::new(ip, 0),
            SourceAddress::Explicit(addr) => addr,
        };
        let (range, now) = (self.faults.ports.clone(), self.now);
        let source = self.ports.bind(source, spec.target, &range, now, &mut self.prng)?;
        let mut stream = self.new_stream(source, spec.target, Phase::Connecting, None);
        (stream.is_stamped, stream.syn_sent_at) = (spec.options.arrival_stamps, Some(now));
        let client = self.sockets.insert(Socket::Stream(Box::new(stream)));
        self.note(Note::Connect { socket: client, from: source, to: spec.target });
        let at = self.now + self.delay();
        self.schedule(at, Action::Syn { client, attempt: 0 });
        Ok(client)
    }

    /// Sends the SYN again 1 s after the first, 2 s after the second, and so on, then gives up, as
    /// Linux does.
    fn retry_syn(&mut self, client: Key, attempt: u32) {
        if let Some(stream) = self.stream_mut(client) {
            stream.syn_sent_at = None;
        }
        let at = self.now + Duration::from_secs(1 << attempt);
        if attempt < SYN_RETRIES {
            self.schedule(at, Action::Syn { client, attempt: attempt + 1 });
        } else {
            self.schedule(at, Action::SynFailed { client, errno: Errno::TIMED_OUT });
        }
    }

    pub(crate) fn syn_arrived(&mut self, client: Key, attempt: u32) {
        let Some(stream) = self.stream(client) else { return };
        let (from, to) = (stream.local, stream.remote);
        if self.happens(self.faults.syn_loss) {
            self.note(Note::SynLost { socket: client, attempt });
            return self.retry_syn(client, attempt);
        }
        let answer = self.now + self.delay();
        let refused = self.happens(self.faults.refuse);
        let Some(listener) = self.listener_for(from, to).filter(|_| !refused) else {
            let errno = Errno::CONN_REFUSED;
            return self.schedule(answer, Action::SynFailed { client, errno });
        };
        let full =
            self.listener(listener).is_some_and(|listener| listener.queue.len() > listener.backlog);
        if full {
            self.note(Note::QueueFull { socket: client, listener });
            return self.retry_syn(client, attempt);
        }
        let child = self.new_stream(to, from, Phase::Established, Some(client));
        let child = self.sockets.insert(Socket::Stream(Box::new(child)));
        // The answer uses the child's arrival order, so that no byte of the child arrives before
        // it.
        let at = self.arrival(child);
        self.schedule(at, Action::SynAnswered { client });
        if let Some(stream) = self.stream_mut(client) {
            stream.peer = Some(child);
        }
        if let Some(listener) = self.listener(listener) {
            listener.queue.push_back(child);
        }
        self.notify_one(listener);
        self.note(Note::Established { socket: client, child });
    }

    /// Returns the listener for a pair of addresses. In a SO_REUSEPORT group, a hash of the pair
    /// selects it.
    fn listener_for(&self, from: SocketAddr, to: SocketAddr) -> Option<Key> {
        let any = match to.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let group = self
            .listeners
            .get(&to)
            .or_else(|| self.listeners.get(&SocketAddr::new(any, to.port())))?;
        let ip = match from.ip() {
            IpAddr::V4(ip) => u64::from(ip.to_bits()),
            IpAddr::V6(ip) => ip.to_bits() as u64,
        };
        let mut hash = throng_base::Prng::derive(ip, u64::from(from.port()));
        group.get(hash.below(group.len() as u64) as usize).copied()
    }

    pub(crate) fn syn_answered(&mut self, client: Key) {
        let now = self.now;
        let Some(stream) = self.stream_mut(client) else { return };
        if stream.phase != Phase::Connecting {
            return;
        }
        stream.phase = Phase::Established;
        stream.handshake_rtt = stream.syn_sent_at.map(|sent_at| now.since(sent_at));
        self.notify(client);
        if self.happens(self.faults.cut) {
            let within = self.faults.cut_within.as_nanos() as u64;
            let at = self.now + Duration::from_nanos(self.prng.below(within));
            self.schedule(at, Action::Cut { socket: client });
        }
    }

    pub(crate) fn connect_failed(&mut self, client: Key, errno: Errno) {
        let Some(stream) = self.stream_mut(client) else { return };
        stream.phase = Phase::Dead;
        stream.error = Some(errno);
        self.note(Note::ConnectFailed { socket: client, errno });
        self.notify(client);
    }
}

/// Returns the local address of a connect that requests none: the target's own, or the loopback
/// address.
fn loopback(target: SocketAddr) -> IpAddr {
    match target.ip() {
        IpAddr::V4(ip) if ip.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        ip => ip,
    }
}

/// Retransmissions of a SYN: Linux's `tcp_syn_retries`.
const SYN_RETRIES: u32 = 6;
