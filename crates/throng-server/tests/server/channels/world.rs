//! A server of channels and its clients in a simulated world, and transcripts of their messages.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use flate2::read::DeflateDecoder;
use throng_base::{Key, Prng};
use throng_driver::{ConnectSpec, SocketOptions, SourceAddress};
use throng_engine::{AfterClose, App, CloseReason, Conn, Core, CoreContext, CoreLimits};
use throng_measure::{Merge, ServerCounters};
use throng_proto::Raw;
use throng_server::channels::{ChannelMessage, Channels};
use throng_server::{
    AcceptTopology, CoreMessage, CoreReport, ListenReport, ServerApp, ServerConfig,
};
use throng_sim::{Faults, Sim, SimCores, SimCoresOptions, SimDriver, check_over_all};

type ClientCore = Rc<RefCell<Core<SimDriver<()>, Clients>>>;

/// Runs a transcript against `channels`, in several worlds.
///
/// A line names a client, which is connected when it is first named, and gives its action:
///
/// ```text
/// a > ["1","1","rooms:lobby","phx_join",{}]     it sends this text
/// a >+ ["1","1","rooms:lobby","echo",{}]        the same, in one segment with what it sends next
/// a < ["1","1","rooms:lobby","phx_reply",{}]    the next message that it gets is this text
/// a >> 00 01 "x"                                it sends these bytes
/// a << 00 01 "x"                                the next message that it gets are these bytes
/// a x 1011                                      the server sends this close code, then closes
/// a close                                       it closes its connection
/// wait 60s                                      time passes
/// drain                                         the server is about to end
/// ```
///
/// A client whose name begins with `v1` speaks V1, any other V2. A message that no line expects is
/// an error.
#[track_caller]
pub(crate) fn transcript(channels: &Channels, text: &str) {
    check_over_all(RUNS, |sim| {
        let faults = rough(&mut sim.prng());
        sim.set_faults(faults);
        let mut world = World::new(sim, channels, 1);
        let mut names = BTreeMap::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            eprintln!("{:?} {line}", world.sim.now());
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            if name == "wait" {
                world.wait(Duration::from_secs(rest.trim_end_matches('s').parse().unwrap()));
                continue;
            }
            if name == "drain" {
                world.cores.send_message(0, CoreMessage::drain());
                continue;
            }
            let client = *names.entry(name.to_owned()).or_insert_with(|| {
                let vsn = if name.starts_with("v1") { "1.0.0" } else { "2.0.0" };
                world.open(&format!("/socket/websocket?vsn={vsn}"), "")
            });
            match rest.split_once(' ').unwrap_or((rest, "")) {
                (">", text) => world.send(client, TEXT, text.as_bytes()),
                (">+", text) => world.hold(client, text),
                (">>", bytes) => world.send(client, BINARY, &bytes_of(bytes)),
                ("<", text) => assert_eq!(world.next(client), Got::Text(text.to_owned()), "{line}"),
                ("<<", bytes) => {
                    assert_eq!(world.next(client), Got::Binary(bytes_of(bytes)), "{line}")
                }
                ("x", code) => {
                    assert_eq!(world.next(client), Got::Close(code.parse().ok()), "{line}");
                    world.send(client, CLOSE, &code.parse::<u16>().unwrap().to_be_bytes());
                    assert_eq!(world.next(client), Got::End, "{line}");
                }
                ("close", _) => world.close(client),
                _ => panic!("what is `{line}`?"),
            }
        }
        world.wait(A_WHILE);
        for (name, client) in names {
            assert_eq!(world.try_next(client), None, "{name} was told something else");
        }
    });
}

/// A server and clients.
pub(crate) struct World<'s> {
    pub(crate) sim: &'s mut Sim,
    pub(crate) cores: SimCores<CoreMessage<ChannelMessage>>,
    clients: ClientCore,
    /// The number of cores.
    count: usize,
    /// Frames that are sent with the next one.
    held: Vec<u8>,
}

/// An item that a client receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    Text(String),
    Binary(Vec<u8>),
    /// A text that was compressed.
    Deflated(String),
    Close(Option<u16>),
    /// A part of a text, before the rest has arrived.
    Fragment(Vec<u8>),
    /// An answer to a request: its head and its body.
    Answer(String, String),
    /// The connection has ended.
    End,
}

impl<'s> World<'s> {
    /// Starts a server of `count` cores.
    pub(crate) fn new(sim: &'s mut Sim, channels: &Channels, count: usize) -> Self {
        Self::with_idle_timeout(sim, channels, count, None)
    }

    /// Starts a server that closes idle connections.
    pub(crate) fn with_idle_timeout(
        sim: &'s mut Sim,
        channels: &Channels,
        count: usize,
        idle_timeout: Option<Duration>,
    ) -> Self {
        let cores = sim.cores(&SimCoresOptions { cores: count, ..SimCoresOptions::default() });
        let accept = AcceptTopology::Reuseport;
        let config = Arc::new(ServerConfig { accept, idle_timeout, ..ServerConfig::default() });
        for (core, driver) in cores.drivers().into_iter().enumerate() {
            let app = ServerApp::new(Arc::clone(&config), channels.handler(core));
            sim.spawn(Core::new(driver, app, CoreLimits::default()));
        }
        let driver = sim.cores(&SimCoresOptions::default()).drivers().pop().unwrap();
        let clients = sim.spawn(Core::new(driver, Clients::default(), CoreLimits::default()));
        let mut world = Self { sim, cores, clients, count, held: Vec::new() };
        world.listen();
        world
    }

    /// Makes the server listen, also after a drain.
    pub(crate) fn listen(&mut self) {
        let (reply, answers) = channel::<ListenReport>();
        for core in 0..self.count {
            self.cores.send_message(core, CoreMessage::listen(addr(), reply.clone()));
            let listens = || answers.try_iter().any(|(_, listens)| listens.is_ok());
            assert!(self.sim.run_until(PATIENCE, |_| listens()));
        }
    }

    /// Connects a client; the server accepts it before this returns.
    pub(crate) fn connect(&mut self) -> usize {
        let number = {
            let mut core = self.clients.borrow_mut();
            let number = core.app().received.borrow().len();
            core.app().received.borrow_mut().push(Received::default());
            let key = core.cx().insert(Raw, number);
            let options = SocketOptions::default();
            let spec = ConnectSpec { target: addr(), source: SourceAddress::Any, options };
            core.cx().with(key, |conn| conn.connect(spec));
            number
        };
        let connected =
            |clients: &ClientCore| clients.borrow().app().received.borrow()[number].key.is_some();
        assert!(self.sim.run_until(PATIENCE, |_| connected(&self.clients)));
        number
    }

    /// Connects a client and opens a WebSocket, with `headers` beside the usual ones.
    pub(crate) fn open(&mut self, path: &str, headers: &str) -> usize {
        let client = self.connect();
        self.request(client, &upgrade(path, headers));
        match self.next(client) {
            Got::Answer(head, _) if head.starts_with("HTTP/1.1 101 ") => client,
            other => panic!("no WebSocket: {other:?}"),
        }
    }

    /// Sends a request as written; lines end with `\r\n` on the wire.
    pub(crate) fn request(&mut self, client: usize, request: &str) {
        self.send_raw(client, request.replace('\n', "\r\n").as_bytes());
    }

    /// Sends a frame.
    pub(crate) fn send(&mut self, client: usize, opcode: u8, payload: &[u8]) {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend(frame(opcode, payload));
        self.send_raw(client, &bytes);
    }

    fn hold(&mut self, _client: usize, text: &str) {
        self.held.extend(frame(TEXT, text.as_bytes()));
    }

    pub(crate) fn text(&mut self, client: usize, text: &str) {
        self.send(client, TEXT, text.as_bytes());
    }

    pub(crate) fn send_raw(&mut self, client: usize, bytes: &[u8]) {
        self.with(client, |conn| conn.send(bytes));
    }

    /// Closes the connection. The server has not noticed when this returns.
    pub(crate) fn hang_up(&mut self, client: usize) {
        self.with(client, |conn| conn.close());
    }

    /// Closes the connection and lets the server notice.
    pub(crate) fn close(&mut self, client: usize) {
        self.hang_up(client);
        self.wait(Duration::from_millis(100));
        self.clients.borrow().app().received.borrow_mut()[client].queue.clear();
    }

    /// Returns the next item that the client receives; panics if nothing arrives.
    #[track_caller]
    pub(crate) fn next(&mut self, client: usize) -> Got {
        let waiting = |clients: &ClientCore| {
            clients.borrow().app().received.borrow()[client].queue.is_empty()
        };
        self.sim.run_until(PATIENCE, |_| !waiting(&self.clients));
        self.try_next(client).unwrap_or_else(|| panic!("client {client} got nothing"))
    }

    /// Returns the body of the next answer, and the status of its head.
    #[track_caller]
    pub(crate) fn answer(&mut self, client: usize) -> (u16, String) {
        match self.next(client) {
            Got::Answer(head, body) => (head[9..12].parse().unwrap(), body),
            other => panic!("{other:?} is no answer"),
        }
    }

    #[track_caller]
    pub(crate) fn expect(&mut self, client: usize, text: &str) {
        assert_eq!(self.next(client), Got::Text(text.to_owned()));
    }

    /// Returns the items that the client has already received.
    pub(crate) fn try_next(&mut self, client: usize) -> Option<Got> {
        self.clients.borrow().app().received.borrow_mut()[client].take()
    }

    pub(crate) fn wait(&mut self, span: Duration) {
        self.sim.run_for(span);
    }

    /// Returns the counters of all cores together.
    pub(crate) fn counters(&mut self) -> ServerCounters {
        self.report().server
    }

    fn report(&mut self) -> CoreReport {
        let (reply, answers) = channel();
        (0..self.count)
            .for_each(|core| self.cores.send_message(core, CoreMessage::collect(reply.clone())));
        let mut reports = Vec::new();
        self.sim.run_until(PATIENCE, |_| {
            reports.extend(answers.try_iter());
            reports.len() == self.count
        });
        let mut sum = CoreReport::default();
        for report in &reports {
            sum.server.merge(&report.server);
            sum.turns.merge(&report.turns);
        }
        sum
    }

    fn with(&mut self, client: usize, act: impl FnOnce(&mut Conn<'_, SimDriver<()>, Clients>)) {
        let key = self.clients.borrow().app().received.borrow()[client].key;
        self.clients.borrow_mut().cx().with(key.expect("it is connected"), act);
    }
}

/// The panic of a channel is not a panic of the server's core.
impl Drop for World<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.report().turns.panics, 0, "a handler has panicked");
        }
    }
}

/// The upgrade request of a WebSocket.
pub(crate) fn upgrade(path: &str, headers: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\nhost: example.com\nupgrade: websocket\nconnection: Upgrade\n\
        sec-websocket-version: 13\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\n{headers}\n"
    )
}

/// All clients: bytes in, answers and frames out.
#[derive(Default)]
pub(crate) struct Clients {
    received: RefCell<Vec<Received>>,
}

/// The items that arrived at one client.
#[derive(Default)]
pub(crate) struct Received {
    key: Option<Key>,
    bytes: Vec<u8>,
    is_socket: bool,
    /// A text whose frames have not all arrived, and the number of frames so far.
    fragments: (Vec<u8>, usize),
    queue: VecDeque<Got>,
}

impl Received {
    /// Adds bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        while let Some((got, len)) = if self.is_socket { self.frame() } else { self.answer() } {
            if let Got::Answer(head, _) = &got {
                self.is_socket = head.starts_with("HTTP/1.1 101 ");
            }
            let first = self.bytes[0];
            self.bytes.drain(..len);
            match got {
                Got::Fragment(payload) => {
                    assert_eq!(first == 1, self.fragments.1 == 0, "fragments of two messages");
                    self.fragments.0.extend(payload);
                    self.fragments.1 += 1;
                    if first & 0x80 != 0 {
                        let (text, count) = std::mem::take(&mut self.fragments);
                        assert!(count > 1, "a fragment alone");
                        self.queue.push_back(Got::Text(String::from_utf8(text).unwrap()));
                    }
                }
                got => self.queue.push_back(got),
            }
        }
    }

    /// Returns the next item.
    pub(crate) fn take(&mut self) -> Option<Got> {
        self.queue.pop_front()
    }

    fn answer(&self) -> Option<(Got, usize)> {
        let text = String::from_utf8_lossy(&self.bytes);
        let (head, rest) = text.split_once("\r\n\r\n")?;
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
        });
        let length: usize = length.unwrap_or(0);
        let body = rest.get(..length)?;
        Some((Got::Answer(head.to_owned(), body.to_owned()), head.len() + 4 + length))
    }

    fn frame(&self) -> Option<(Got, usize)> {
        let (&first, rest) = self.bytes.split_first()?;
        let (&len, rest) = rest.split_first()?;
        let (len, at) = match len {
            126 => (usize::from(u16::from_be_bytes(*rest.first_chunk()?)), 4),
            127 => (u64::from_be_bytes(*rest.first_chunk()?) as usize, 10),
            len => (usize::from(len), 2),
        };
        let payload = self.bytes.get(at..at + len)?;
        let got = match first {
            0x01 | 0x00 | 0x80 => Got::Fragment(payload.to_vec()),
            0x81 => Got::Text(String::from_utf8(payload.to_vec()).unwrap()),
            0x82 => Got::Binary(payload.to_vec()),
            // Compressed (RFC 7692 section 7.2.2): puts back the end that the sender left out, and
            // adds a last, empty block.
            0xc1 => {
                let mut inflated = String::new();
                let whole = [payload, &[0, 0, 0xff, 0xff, 1, 0, 0, 0xff, 0xff]].concat();
                DeflateDecoder::new(&whole[..]).read_to_string(&mut inflated).unwrap();
                Got::Deflated(inflated)
            }
            0x88 => Got::Close(payload.first_chunk().map(|code| u16::from_be_bytes(*code))),
            other => panic!("a frame that begins with {other:#x}"),
        };
        Some((got, at + len))
    }
}

impl App<SimDriver<()>> for Clients {
    type Session = Raw;
    type State = usize;

    fn opened(&mut self, conn: &mut Conn<'_, SimDriver<()>, Self>) {
        self.received.borrow_mut()[*conn.state()].key = Some(conn.key());
    }

    fn event(&mut self, conn: &mut Conn<'_, SimDriver<()>, Self>, bytes: &[u8]) {
        self.received.borrow_mut()[*conn.state()].push(bytes);
    }

    fn closed(&mut self, conn: &mut Conn<'_, SimDriver<()>, Self>, _: CloseReason) -> AfterClose {
        self.received.borrow_mut()[*conn.state()].queue.push_back(Got::End);
        AfterClose::Free
    }

    fn started(&mut self, _: &mut CoreContext<SimDriver<()>, Self>) {}
}

/// Makes a frame of a client.
pub(crate) fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | opcode];
    match payload.len() {
        len @ ..126 => frame.push(0x80 | len as u8),
        len @ ..0x1_0000 => {
            frame.push(0x80 | 126);
            frame.extend((len as u16).to_be_bytes());
        }
        len => {
            frame.push(0x80 | 127);
            frame.extend((len as u64).to_be_bytes());
        }
    }
    // A mask of zeros changes nothing.
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// A network that splits and delays segments, but loses none.
pub(crate) fn rough(prng: &mut Prng) -> Faults {
    Faults {
        delay_max: Duration::from_millis(5),
        segment_bytes_max: 1 + prng.below(100) as usize,
        partial_send: 0.3,
        message_delay_max: Duration::from_millis(3),
        turn_max: Duration::from_micros(500),
        batch_max: 3,
        spurious: 0.1,
        ..Faults::none()
    }
}

/// Reads `00 ff "text"`: bytes in hex, and text.
fn bytes_of(mut spec: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(first) = spec.trim_start().chars().next() {
        spec = spec.trim_start();
        let (token, rest) = match first {
            '"' => spec[1..].split_once('"').unwrap(),
            _ => spec.split_once(' ').unwrap_or((spec, "")),
        };
        match first {
            '"' => bytes.extend(token.as_bytes()),
            _ => bytes.push(u8::from_str_radix(token, 16).unwrap()),
        }
        spec = rest;
    }
    bytes
}

pub(crate) fn addr() -> SocketAddr {
    "127.0.0.1:7000".parse().unwrap()
}

pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
/// Longer than any expected message takes.
const PATIENCE: Duration = Duration::from_secs(200);
/// Longer than any packet is in flight.
const A_WHILE: Duration = Duration::from_secs(2);
/// The number of worlds in which a transcript runs.
const RUNS: u64 = 5;
