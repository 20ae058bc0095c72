//! A server of topics in a simulated world, and peers that a test controls.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use throng_driver::{ConnectSpec, Errno, SocketClose, SocketOptions, SourceAddress};
use throng_engine::{Core, CoreLimits};
use throng_measure::{Merge, ServerCounters};
use throng_proto::Raw;
use throng_server::pubsub::{Dialect, Membership, Publication, Rulebook, Subscription, TopicRules};
use throng_server::{
    Connection, CoreMessage, Handler, InterceptAction, ListenReport, ServerApp, ServerConfig,
};
use throng_sim::{FaultyDriver, PeerSocket, Sim, SimCores, SimCoresOptions, SimDriver, SimPeers};

type Never = std::convert::Infallible;
type ServerDriver = FaultyDriver<SimDriver<CoreMessage<Never>>>;
type ServerCore = Rc<RefCell<Core<ServerDriver, ServerApp<Rooms, ServerDriver>>>>;

/// The number of topics.
pub(crate) const TOPICS: usize = 3;
/// Bytes of a frame or a command without its payload.
const HEAD: usize = 8;

/// A command of a peer, and a frame that it receives: a letter, a topic, two bytes of its own, and
/// the length of the payload.
///
/// `j`oin, `i`ntercepting join, `l`eave, `p`ublish, publish a thousand times as `h`eavy a
/// publication, publish to all `e`xcept itself, `a`sk. The server acknowledges all but `p`, `h` and
/// `e` by sending them back, and delivers `p` as `m`, and to interceptors as `M`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) letter: u8,
    pub(crate) topic: u8,
    /// The peer that published it.
    pub(crate) from: u8,
    /// Its number among the publications of that peer, modulo 256.
    pub(crate) number: u8,
    /// Bytes of the payload.
    pub(crate) bytes: usize,
}

impl Frame {
    pub(crate) fn new(letter: u8, topic: u8, from: usize, number: usize) -> Self {
        Self { letter, topic, from: from as u8, number: number as u8, bytes: 0 }
    }

    pub(crate) fn append(&self, out: &mut Vec<u8>) {
        out.extend([self.letter, self.topic, self.from, self.number]);
        out.extend((self.bytes as u32).to_le_bytes());
        out.resize(out.len() + self.bytes, b'.');
    }

    /// Takes the first whole frame of `bytes`.
    pub(crate) fn take(bytes: &mut Vec<u8>) -> Option<Self> {
        let head: [u8; HEAD] = bytes.get(..HEAD)?.try_into().unwrap();
        let [letter, topic, from, number, length @ ..] = head;
        let length = u32::from_le_bytes(length) as usize;
        if bytes.len() < HEAD + length {
            return None;
        }
        bytes.drain(..HEAD + length);
        Some(Self { letter, topic, from, number, bytes: length })
    }
}

/// A server of topics.
pub(crate) struct Rooms {
    rules: TopicRules,
}

#[derive(Default)]
pub(crate) struct State {
    received: Vec<u8>,
    memberships: [Option<Membership>; TOPICS],
}

impl Handler for Rooms {
    type Session = Raw;
    type State = State;
    type Message = Never;

    fn topics(&self) -> Rulebook {
        Rulebook::all(self.rules)
    }

    fn event(&mut self, conn: &mut Connection<'_, Self>, bytes: &[u8]) {
        conn.state().received.extend_from_slice(bytes);
        while let Some(frame) = Frame::take(&mut conn.state().received) {
            let (topic, me) = (usize::from(frame.topic), conn.id());
            let name = format!("topic {topic}");
            match frame.letter {
                b'j' | b'i' => {
                    let dialect = Dialect::new(frame.from % 3);
                    let intercepts = frame.letter == b'i';
                    let subscription = Subscription { dialect, intercepts, tag: topic as u16 };
                    let membership = conn.subscribe(&name, subscription);
                    conn.state().memberships[topic] = Some(membership);
                }
                b'l' => {
                    if let Some(membership) = conn.state().memberships[topic].take() {
                        conn.unsubscribe(membership);
                    }
                }
                letter @ (b'p' | b'h' | b'e') => {
                    let weight = frame.bytes * if letter == b'h' { 1_000 } else { 1 };
                    let publication = Publication::new(name, frame).with_body_bytes(weight);
                    conn.publish(publication, (letter == b'e').then_some(me));
                    continue;
                }
                b'a' => {}
                other => panic!("{other}"),
            }
            let mut answer = Vec::new();
            Frame { bytes: 0, ..frame }.append(&mut answer);
            conn.send(&answer);
        }
    }

    fn render(&mut self, publication: &Publication, _dialect: Dialect, out: &mut Vec<u8>) {
        let frame: &Frame = publication.body().unwrap();
        Frame { letter: b'm', ..frame.clone() }.append(out);
    }

    fn delivery(
        &mut self,
        conn: &mut Connection<'_, Self>,
        publication: &Publication,
        tag: u16,
    ) -> InterceptAction {
        let frame: &Frame = publication.body().unwrap();
        assert_eq!(u16::from(frame.topic), tag);
        let mut told = Vec::new();
        Frame { letter: b'M', ..frame.clone() }.append(&mut told);
        conn.send(&told);
        InterceptAction::Handled
    }
}

/// The world.
pub(crate) struct World<'a> {
    pub(crate) sim: &'a mut Sim,
    cores: SimCores<CoreMessage<Never>>,
    running: Vec<ServerCore>,
    driver: SimPeers,
    pub(crate) peers: Vec<Peer>,
}

/// A client: a socket, and the frames that it has received.
pub(crate) struct Peer {
    fd: Option<PeerSocket>,
    to_send: Vec<u8>,
    received: Vec<u8>,
    /// True if it receives.
    pub(crate) reads: bool,
    pub(crate) told: Vec<Frame>,
}

impl Peer {
    pub(crate) fn has_ended(&self) -> bool {
        self.fd.is_none()
    }

    /// Returns the publications that it has received in one topic, as (from, number).
    pub(crate) fn messages(&self, topic: u8) -> Vec<(u8, u8)> {
        let of_topic = |frame: &&Frame| b"mM".contains(&frame.letter) && frame.topic == topic;
        self.told.iter().filter(of_topic).map(|frame| (frame.from, frame.number)).collect()
    }

    pub(crate) fn numbers(&self, topic: u8) -> Vec<u8> {
        self.messages(topic).into_iter().map(|(_, number)| number).collect()
    }
}

impl<'a> World<'a> {
    pub(crate) fn new(
        sim: &'a mut Sim,
        cores: usize,
        mailbox_max: usize,
        rules: TopicRules,
    ) -> Self {
        let options = SimCoresOptions { cores, mailbox_max, ..SimCoresOptions::default() };
        let cores = sim.cores(&options);
        let config = Arc::new(ServerConfig { backlog: 100_000, ..ServerConfig::default() });
        let mut running = Vec::new();
        for driver in cores.drivers() {
            let driver = FaultyDriver::new(driver, sim.faults(), sim.prng());
            let app = ServerApp::new(Arc::clone(&config), Rooms { rules });
            running.push(sim.spawn(Core::new(driver, app, CoreLimits::default())));
        }
        let driver = sim.peers();
        let mut world = Self { sim, cores, running, driver, peers: Vec::new() };
        let (reply, answers) = channel::<ListenReport>();
        for core in 0..world.running.len() {
            world.cores.send_message(core, CoreMessage::listen(addr(), reply.clone()));
            let mut listens = false;
            world.until("it listens", |_| {
                listens |= answers.try_iter().any(|(_, answer)| answer.is_ok());
                listens
            });
        }
        world
    }

    /// Connects a peer.
    pub(crate) fn connect(&mut self) -> usize {
        let spec = ConnectSpec {
            target: addr(),
            source: SourceAddress::Any,
            options: SocketOptions::default(),
        };
        let fd = Some(self.driver.connect(&spec).unwrap());
        let (to_send, received, told) = Default::default();
        self.peers.push(Peer { fd, to_send, received, reads: true, told });
        self.peers.len() - 1
    }

    /// Lets a peer send a command as soon as it can.
    pub(crate) fn say(&mut self, peer: usize, letter: u8, topic: u8, number: usize) {
        self.say_long(peer, letter, topic, number, 0);
    }

    pub(crate) fn say_long(
        &mut self,
        peer: usize,
        letter: u8,
        topic: u8,
        number: usize,
        bytes: usize,
    ) {
        let frame = Frame { bytes, ..Frame::new(letter, topic, peer, number) };
        frame.append(&mut self.peers[peer].to_send);
    }

    /// Lets a peer close its connection.
    pub(crate) fn hang_up(&mut self, peer: usize) {
        if let Some(fd) = self.peers[peer].fd.take() {
            self.driver.close(fd, SocketClose::Finish);
        }
    }

    /// Advances the world.
    pub(crate) fn run_for(&mut self, span: Duration) {
        for _ in 0..span.as_micros().div_ceil(STEP.as_micros()) {
            self.step();
        }
    }

    /// Advances the world until a condition holds, which must happen.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        for _ in 0..STEPS_MAX {
            if is_so(self) {
                return;
            }
            self.step();
        }
        panic!("not within {STEPS_MAX} steps: {what}");
    }

    fn step(&mut self) {
        self.sim.run_for(STEP);
        self.pump();
    }

    /// Returns the counters of all cores together.
    pub(crate) fn counters(&mut self) -> ServerCounters {
        let (reply, answers) = channel();
        (0..self.running.len())
            .for_each(|core| self.cores.send_message(core, CoreMessage::collect(reply.clone())));
        let (mut sum, mut left) = (ServerCounters::default(), self.running.len());
        self.until("the cores answer", |_| {
            for report in answers.try_iter() {
                sum.merge(&report.server);
                left -= 1;
            }
            left == 0
        });
        sum
    }

    fn pump(&mut self) {
        let Self { driver, peers, .. } = self;
        for peer in peers {
            let Some(fd) = &peer.fd else { continue };
            if !peer.to_send.is_empty()
                && let Ok(taken) = driver.send(fd, &peer.to_send)
            {
                peer.to_send.drain(..taken);
            }
            if !peer.reads {
                continue;
            }
            let has_ended = loop {
                let mut buffer = [0; 4_096];
                match driver.recv(fd, &mut buffer) {
                    Ok(0) => break true,
                    Ok(count) => peer.received.extend(&buffer[..count]),
                    Err(Errno::AGAIN | Errno::NOT_CONNECTED) => break false,
                    Err(_) => break true,
                }
            };
            peer.told.extend(std::iter::from_fn(|| Frame::take(&mut peer.received)));
            if has_ended && let Some(fd) = peer.fd.take() {
                driver.close(fd, SocketClose::Finish);
            }
        }
    }
}

fn addr() -> SocketAddr {
    "127.0.0.1:7000".parse().unwrap()
}

/// The interval at which the peers receive.
const STEP: Duration = Duration::from_millis(1);
/// Longer than anything takes.
const STEPS_MAX: usize = 900_000;
