//! Clients whose input is much more work than its bytes do not keep another client of their core
//! from its answer: the real server and real WebSockets, on virtual time. The tests assert work
//! done, never time.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use flate2::{Compress, Compression, FlushCompress};
use throng_base::Instant;
use throng_driver::{ConnectSpec, SocketClose, SocketOptions, Sockets, SourceAddress};
use throng_engine::{Core, CoreLimits};
use throng_proto::websocket::{ServerEvent, WebSocketServer};
use throng_server::{
    Connection, ConnectionId, CoreMessage, Handler, ListenReport, ServerApp, ServerConfig,
};
use throng_sim::{Faults, Sim, SimCoresOptions, SimDriver, SimFd, check};

type Never = std::convert::Infallible;

/// A handler that answers every message with `ok`, and notes its client and the time.
#[derive(Clone, Default)]
struct Answerer {
    served: Rc<RefCell<Vec<Served>>>,
}

/// A message or a ping that the server has processed.
#[derive(Clone, Copy)]
struct Served {
    at: Instant,
    by: ConnectionId,
    /// True for the question of the client that waits for its answer.
    is_question: bool,
}

impl Handler for Answerer {
    type Session = WebSocketServer;
    type State = ();
    type Message = Never;

    fn event(&mut self, conn: &mut Connection<'_, Self>, event: ServerEvent<'_>) {
        let (at, by) = (conn.now(), conn.id());
        let (session, out) = conn.session();
        let is_question = match event {
            ServerEvent::Request(request) => {
                let upgrade = session.check_upgrade(&request).unwrap();
                session.accept(&upgrade, None, &[], true, out);
                return;
            }
            ServerEvent::Text(text) => {
                session.text("ok", None, out);
                text == QUESTION
            }
            ServerEvent::Binary(_) => {
                session.text("ok", None, out);
                false
            }
            ServerEvent::Ping(_) => false,
            other => panic!("{other:?}"),
        };
        self.served.borrow_mut().push(Served { at, by, is_question });
    }
}

/// The messages that a hostile client sends at once.
struct Flood {
    bytes: Vec<u8>,
    /// The number of messages.
    messages: usize,
    /// The work of each, as the limits count it: its bytes, 1 KiB, and what it inflates to.
    message_work_bytes: usize,
}

impl Flood {
    fn of(frame: &[u8], messages: usize, inflated: usize) -> Self {
        let message_work_bytes = frame.len() + (1 << 10) + inflated;
        Self { bytes: frame.repeat(messages), messages, message_work_bytes }
    }

    /// Returns how many messages of `hostile` such clients may be served at most before another
    /// client's question that arrives at the same time.
    ///
    /// Each of them has a share of the work when its bytes arrive, and another one when it waits in
    /// front of the other client. A message may begin with one byte of the share left.
    fn served_most(&self, hostile: usize) -> usize {
        let share = CoreLimits::default().connection_work_bytes_max / self.message_work_bytes + 1;
        2 * share * hostile
    }
}

/// Lets `hostile` clients send `flood` and one other client a question, all at the same time.
/// Returns how many messages of the floods are served before the question.
fn served_before(sim: &mut Sim, limits: CoreLimits, flood: &Flood, hostile: usize) -> usize {
    sim.set_faults(Faults {
        segment_bytes_max: WINDOW_BYTES,
        window_bytes_min: WINDOW_BYTES,
        window_bytes_max: WINDOW_BYTES,
        ..Faults::none()
    });
    let answerer = Answerer::default();
    let cores = sim.cores::<CoreMessage<Never>>(&SimCoresOptions::default());
    let app = ServerApp::new(Arc::new(ServerConfig::default()), answerer.clone());
    sim.spawn(Core::new(cores.drivers().remove(0), app, limits));
    let (reply, answers) = channel::<ListenReport>();
    cores.send_message(0, CoreMessage::listen(addr(), reply));
    assert!(sim.run_until(A_MOMENT, |_| answers.try_recv().is_ok()));

    let mut driver = sim.cores::<()>(&SimCoresOptions::default()).drivers().remove(0);
    let clients: Vec<SimFd> = (0..=hostile).map(|_| open(sim, &mut driver)).collect();
    let question = frame(0x81, QUESTION.as_bytes());
    for (number, client) in clients.iter().enumerate() {
        let bytes = if number < hostile { &flood.bytes } else { &question };
        assert_eq!(driver.send(client, bytes), Ok(bytes.len()), "it fits into the window");
    }
    sim.run_for(Duration::from_secs(10));

    let served = answerer.served.borrow();
    let place = served.iter().position(|one| one.is_question).expect("the question is answered");
    let asker = served[place].by;
    let floods = served.iter().filter(|one| one.by != asker).count();
    assert_eq!(floods, hostile * flood.messages, "hostile clients are served, too");
    // Only messages that had arrived by then can have been served before.
    let before = served[..place].iter().filter(|one| one.at == served[place].at).count();
    assert_eq!(before, place, "all of it arrives at one moment");
    clients.into_iter().for_each(|client| driver.close(client, SocketClose::Reset));
    before
}

/// Connects and opens a WebSocket that may send compressed messages.
fn open(sim: &mut Sim, driver: &mut SimDriver<()>) -> SimFd {
    let (source, options) = (SourceAddress::Any, SocketOptions::default());
    let client = driver.connect(&ConnectSpec { target: addr(), source, options }).unwrap();
    sim.run_for(A_MOMENT);
    assert_eq!(driver.send(&client, UPGRADE.as_bytes()), Ok(UPGRADE.len()));
    sim.run_for(A_MOMENT);
    let mut answer = [0; 1_000];
    let count = driver.recv(&client, &mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer[..count]);
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    assert!(answer.to_lowercase().contains("permessage-deflate"), "{answer}");
    client
}

/// Checks that a flood leaves another client its turn, and that without a budget it would not.
#[track_caller]
fn check_flood(flood: &Flood) {
    for hostile in [1, 5] {
        let most = flood.served_most(hostile);
        let all = hostile * flood.messages;
        assert!(most < all / 2, "a flood of {all} tells nothing when {most} may be served");
        check(SEEDS, |sim| {
            let before = served_before(sim, CoreLimits::default(), flood, hostile);
            assert!(before <= most, "{before} messages of {hostile} came first, of at most {most}");
        });
        let endless = CoreLimits {
            connection_work_bytes_max: usize::MAX,
            turn_work_bytes_max: usize::MAX,
            ..CoreLimits::default()
        };
        // If the seed lets the question arrive first, it is served in time without a budget, too.
        let mut worlds = (0..4 * SEEDS).map(Sim::new);
        let is_starved =
            worlds.any(|mut sim| served_before(&mut sim, endless, flood, hostile) > most);
        assert!(is_starved, "without a budget, the flood comes first");
    }
}

#[test]
fn messages_that_inflate_to_the_limit_leave_others_their_turn() {
    let inflated = throng_proto::websocket::WebSocketLimits::default().message_bytes_max;
    // A new value each 97 bytes: they inflate 70-fold, less than `inflate_ratio_max`.
    let value = |at: u32| (at / 97).wrapping_mul(2_654_435_761).to_be_bytes()[0];
    let payload = deflated(&(0..inflated as u32).map(value).collect::<Vec<_>>());
    assert!(payload.len() < inflated / 50, "{} bytes", payload.len());
    check_flood(&Flood::of(&frame(0xc2, &payload), 20, inflated));
}

#[test]
fn one_byte_messages_leave_others_their_turn() {
    check_flood(&Flood::of(&frame(0x81, b"x"), 10_000, 0));
}

#[test]
fn one_byte_pings_leave_others_their_turn() {
    check_flood(&Flood::of(&frame(0x89, b"x"), 10_000, 0));
}

#[test]
fn messages_in_one_byte_fragments_leave_others_their_turn() {
    let middle = frame(0x00, b"x").repeat(1_000);
    let message = [frame(0x01, b"x"), middle, frame(0x80, b"x")].concat();
    check_flood(&Flood::of(&message, 200, 0));
}

/// Makes a frame of a client; a mask of zeros changes nothing.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        short @ ..126 => frame.push(0x80 | short as u8),
        long => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(long).unwrap().to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// Returns a compressed payload (RFC 7692 section 7.2.1), without its last four bytes.
fn deflated(payload: &[u8]) -> Vec<u8> {
    let mut compress = Compress::new(Compression::best(), false);
    let mut out = Vec::with_capacity(payload.len());
    compress.compress_vec(payload, &mut out, FlushCompress::Sync).unwrap();
    assert_eq!(compress.total_in(), payload.len() as u64);
    assert!(out.ends_with(&[0, 0, 0xff, 0xff]));
    out.truncate(out.len() - 4);
    out
}

fn addr() -> SocketAddr {
    "127.0.0.1:7000".parse().unwrap()
}

/// The seeds. Each has another order in which the core learns of its clients.
const SEEDS: u64 = 8;
const QUESTION: &str = "are you there?";
const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n";
/// A delay after which all of a flood has arrived.
const WINDOW_BYTES: usize = 2 << 20;
/// Longer than any packet is in flight.
const A_MOMENT: Duration = Duration::from_millis(10);
