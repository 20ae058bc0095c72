//! The chat on virtual time.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use throng_base::wheel::TICK;
use throng_driver::{ConnectSpec, SocketClose, SocketOptions, SourceAddress};
use throng_engine::{Core, CoreLimits};
use throng_measure::ServerCounters;
use throng_server::kinds::Chat;
use throng_server::{CheckOrigin, CoreMessage, ListenReport, ServerApp, ServerConfig};
use throng_server::{WebSocketOptions, WebSockets};
use throng_sim::{
    Faults, PeerSocket, Sim, SimCores, SimCoresOptions, SimDriver, SimPeers, check, check_over_all,
};

use crate::wire;

type Never = std::convert::Infallible;
type ChatDriver = SimDriver<CoreMessage<Never>>;
type ChatCore = Rc<RefCell<Core<ChatDriver, ServerApp<WebSockets<Chat>, ChatDriver>>>>;

struct World<'a> {
    sim: &'a mut Sim,
    cores: SimCores<CoreMessage<Never>>,
    running: Vec<ChatCore>,
    driver: SimPeers,
}

/// A client, and the bytes that it has received and not yet read.
struct Client {
    fd: PeerSocket,
    received: Vec<u8>,
    has_ended: bool,
}

impl<'a> World<'a> {
    fn new(sim: &'a mut Sim, cores: usize) -> Self {
        Self::with(sim, cores, WebSocketOptions::default())
    }

    fn with(sim: &'a mut Sim, cores: usize, chat: WebSocketOptions) -> Self {
        let cores = sim.cores(&SimCoresOptions { cores, ..SimCoresOptions::default() });
        let config = Arc::new(ServerConfig { backlog: 100_000, ..ServerConfig::default() });
        let running: Vec<_> = cores
            .drivers()
            .into_iter()
            .map(|driver| {
                let app = ServerApp::new(Arc::clone(&config), Chat::handler(chat.clone()));
                sim.spawn(Core::new(driver, app, CoreLimits::default()))
            })
            .collect();
        for core in 0..running.len() {
            let (reply, answers) = channel::<ListenReport>();
            cores.send_message(core, CoreMessage::listen(addr(), reply));
            assert!(sim.run_until(SHORTLY, |_| answers.try_recv().is_ok()));
        }
        let driver = sim.peers();
        Self { sim, cores, running, driver }
    }

    fn connect(&mut self) -> Client {
        let spec = ConnectSpec {
            target: addr(),
            source: SourceAddress::Any,
            options: SocketOptions::default(),
        };
        let fd = self.driver.open(self.sim, &spec).unwrap();
        Client { fd, received: Vec::new(), has_ended: false }
    }

    fn send(&mut self, client: &Client, bytes: &[u8]) {
        assert_eq!(self.driver.send(&client.fd, bytes), Ok(bytes.len()));
    }

    fn receive(&mut self, client: &mut Client) {
        let mut buffer = [0; 4_096];
        loop {
            match self.driver.recv(&client.fd, &mut buffer) {
                Ok(0) => return client.has_ended = true,
                Ok(count) => client.received.extend(&buffer[..count]),
                Err(_) => return,
            }
        }
    }

    fn run_for(&mut self, span: Duration) {
        self.sim.run_for(span);
    }

    /// Connects and upgrades; returns how long it took.
    fn join(&mut self) -> (Client, Duration) {
        let begin = self.sim.now();
        let mut client = self.connect();
        self.run_for(Duration::from_millis(1));
        self.send(&client, wire::HANDSHAKE.as_bytes());
        while self.sim.now().since(begin) < SHORTLY {
            self.run_for(Duration::from_millis(1));
            self.receive(&mut client);
            if let Some(head) = wire::take_head(&mut client.received) {
                assert!(head.contains(wire::ACCEPT), "{head}");
                return (client, self.sim.now().since(begin));
            }
        }
        panic!("not upgraded within {SHORTLY:?}");
    }

    /// Lets `clients[0]` send a message, which all must receive.
    fn chat(&mut self, clients: &mut [Client], said: &[u8]) {
        self.send(&clients[0], &wire::text(said));
        self.run_for(Duration::from_millis(20));
        for client in clients {
            self.receive(client);
            assert_eq!(wire::take(&mut client.received), Some((1, said.to_vec())));
        }
    }

    fn counters(&mut self) -> ServerCounters {
        let (reply, answers) = channel();
        self.cores.send_message(0, CoreMessage::collect(reply));
        self.run_for(SHORTLY);
        answers.recv().unwrap().server
    }

    fn open(&self) -> usize {
        self.running.iter().map(|core| core.borrow_mut().cx().len()).sum()
    }
}

#[test]
fn ten_thousand_unfinished_handshakes_keep_no_client_out() {
    check(2, |sim| {
        sim.set_faults(Faults { turn_max: Duration::from_micros(100), ..Faults::none() });
        let mut world = World::new(sim, 2);
        let mut silent: Vec<_> = (0..SILENT).map(|_| world.connect()).collect();
        world.run_for(Duration::from_secs(1));
        for (number, client) in silent.iter().enumerate() {
            // Half of them have sent a part of the request, the others nothing.
            if number % 2 == 0 {
                world.send(client, &wire::HANDSHAKE.as_bytes()[..number % 100 + 1]);
            }
        }
        world.run_for(Duration::from_secs(1));
        assert_eq!(world.open(), SILENT);
        let mut users = Vec::new();
        for _ in 0..4 {
            let (client, took) = world.join();
            assert!(took <= Duration::from_millis(10), "{took:?}");
            users.push(client);
        }
        world.chat(&mut users, b"can you hear me?");

        // Their time counts from the connect or from the first byte: 10 s, and one more for those
        // that sent later.
        world.run_for(Duration::from_secs(9) + 2 * TICK + SHORTLY);
        assert_eq!(world.open(), users.len());
        for (number, client) in silent.iter_mut().enumerate() {
            world.receive(client);
            assert!(client.has_ended, "{number}");
            let answer = String::from_utf8_lossy(&client.received);
            assert_eq!(answer.starts_with("HTTP/1.1 408 "), number % 2 == 0, "{number}: {answer}");
        }
        world.chat(&mut users, b"still here");
        for client in users.into_iter().chain(silent) {
            world.driver.close(client.fd, SocketClose::Finish);
        }
        world.run_for(SHORTLY);
        assert_eq!(world.open(), 0);
    });
}

#[test]
fn a_message_behind_the_handshake_is_received() {
    check_over_all(10, |sim| {
        sim.set_faults(Faults { segment_bytes_max: 40, ..Faults::none() });
        let mut world = World::new(sim, 1);
        let mut client = world.connect();
        world.run_for(Duration::from_millis(1));
        let bytes = [wire::HANDSHAKE.as_bytes(), &wire::text(b"first"), &wire::text(b"second")];
        world.send(&client, &bytes.concat());
        world.run_for(SHORTLY);
        world.receive(&mut client);
        assert!(wire::take_head(&mut client.received).unwrap().contains(wire::ACCEPT));
        for said in [&b"first"[..], b"second"] {
            assert_eq!(wire::take(&mut client.received), Some((1, said.to_vec())));
        }
        assert!(client.received.is_empty());
        world.driver.close(client.fd, SocketClose::Reset);
    });
}

#[test]
fn a_client_that_breaks_the_rules_gets_a_close_frame_and_the_others_stay() {
    check_over_all(5, |sim| {
        let mut world = World::new(sim, 1);
        let mut users = vec![world.join().0, world.join().0];
        let (mut rude, _) = world.join();
        // A frame without a mask.
        world.send(&rude, &[0x81, 0x01, b'x']);
        world.run_for(SHORTLY);
        world.receive(&mut rude);
        let (opcode, payload) = wire::take(&mut rude.received).unwrap();
        assert_eq!((opcode, u16::from_be_bytes([payload[0], payload[1]])), (8, 1002));
        assert!(rude.has_ended);
        world.chat(&mut users, b"who was that?");
        // It has received the close frame, and has five seconds to close.
        world.run_for(Duration::from_secs(4));
        assert_eq!(world.open(), 3);
        world.run_for(Duration::from_secs(1));
        assert_eq!(world.open(), 2);
        for client in users.into_iter().chain([rude]) {
            world.driver.close(client.fd, SocketClose::Finish);
        }
    });
}

#[test]
fn a_client_that_is_idle_for_too_long_gets_a_close_frame_whatever_the_others_send() {
    check_over_all(5, |sim| {
        let idle_timeout = Some(Duration::from_secs(10));
        let mut world =
            World::with(sim, 1, WebSocketOptions { idle_timeout, ..WebSocketOptions::default() });
        let mut users = vec![world.join().0, world.join().0];
        for _ in 0..3 {
            world.run_for(Duration::from_secs(3));
            world.chat(&mut users, b"are you there?");
        }
        let mut silent = users.pop().unwrap();
        // A pong without a ping.
        world.send(&silent, &[0x8a, 0x80, 0, 0, 0, 0]);
        for _ in 0..3 {
            world.run_for(Duration::from_secs(3));
            world.chat(&mut users, b"are you there?");
            world.receive(&mut silent);
            assert_eq!(wire::take(&mut silent.received), Some((1, b"are you there?".to_vec())));
        }
        assert_eq!(wire::take(&mut silent.received), None, "the pong was published");
        world.run_for(Duration::from_secs(2));
        world.chat(&mut users, b"where is he?");
        world.receive(&mut silent);
        let (opcode, payload) = wire::take(&mut silent.received).unwrap();
        assert_eq!((opcode, u16::from_be_bytes([payload[0], payload[1]])), (8, 1002));
        assert!(silent.received.is_empty() && !silent.has_ended, "it may answer");
        world.send(&silent, &[0x88, 0x82, 0, 0, 0, 0, 3, 0xea]);
        world.run_for(SHORTLY);
        world.receive(&mut silent);
        assert!(silent.has_ended);
        assert_eq!(world.open(), 1);
        assert_eq!(world.counters().idle_timeouts, 1);
        for client in users.into_iter().chain([silent]) {
            world.driver.close(client.fd, SocketClose::Finish);
        }
    });
}

/// Returns the status of the answer to one request, on a connection of its own.
fn status(world: &mut World<'_>, request: &str) -> u16 {
    let mut client = world.connect();
    world.run_for(Duration::from_millis(1));
    world.send(&client, request.as_bytes());
    world.run_for(SHORTLY);
    world.receive(&mut client);
    let head = wire::take_head(&mut client.received).expect("it is answered");
    world.driver.close(client.fd, SocketClose::Finish);
    head[9..12].parse().unwrap()
}

#[test]
fn pages_of_other_sites_may_not_listen() {
    check_over_all(2, |sim| {
        let named = WebSocketOptions {
            host: Some("chat.example".to_owned()),
            ..WebSocketOptions::default()
        };
        let off =
            WebSocketOptions { check_origin: CheckOrigin::Off, ..WebSocketOptions::default() };
        for (options, host, origin, expected) in [
            (&WebSocketOptions::default(), "127.0.0.1:7000", "http://127.0.0.1:7000", 101),
            (&WebSocketOptions::default(), "localhost:7000", "http://localhost:7000", 101),
            (&WebSocketOptions::default(), "[::1]:7000", "http://[::1]:7000", 101),
            (&WebSocketOptions::default(), "127.0.0.1:7000", "http://evil.example", 403),
            // A rebound name.
            (&WebSocketOptions::default(), "evil.example", "http://evil.example", 403),
            (&named, "evil.example", "http://evil.example", 403),
            (&named, "127.0.0.1:7000", "http://127.0.0.1:7000", 403),
            (&named, "10.0.0.7:7000", "https://chat.example", 101),
            (&off, "evil.example", "http://evil.example", 101),
        ] {
            let mut sim = Sim::new(sim.seed());
            let mut world = World::with(&mut sim, 1, options.clone());
            let headers = format!("Host: {host}\r\nOrigin: {origin}");
            let request = wire::HANDSHAKE.replace("Host: chat", &headers);
            assert_eq!(status(&mut world, &request), expected, "{host} {origin}");
            assert_eq!(world.counters().connects_refused, u64::from(expected == 403));
        }
    });
}

#[test]
fn what_is_too_large_or_never_ends_is_refused_and_counted() {
    check_over_all(3, |sim| {
        let mut world = World::new(sim, 1);
        let post = "POST / HTTP/1.1\r\nHost: chat\r\nContent-Length: 1\r\n\r\n";
        assert_eq!(status(&mut world, post), 413);
        let (mut slow, mut loud) = (world.join().0, world.join().0);
        // The header of a frame of more than a megabyte, and the start of one that never ends.
        world.send(&loud, &[0x81, 0xff, 0, 0, 0, 0, 0, 16, 0, 1, 0, 0, 0, 0]);
        world.send(&slow, &wire::text(b"hello")[..8]);
        world.run_for(Duration::from_secs(61));
        for (client, code) in [(&mut loud, 1009), (&mut slow, 1008)] {
            world.receive(client);
            let (opcode, payload) = wire::take(&mut client.received).unwrap();
            assert_eq!((opcode, u16::from_be_bytes([payload[0], payload[1]])), (8, code));
        }
        let counters = world.counters();
        assert_eq!((counters.requests_too_large, counters.messages_too_large), (1, 1));
        assert_eq!(counters.message_timeouts, 1);
        for client in [slow, loud] {
            world.driver.close(client.fd, SocketClose::Finish);
        }
    });
}

fn addr() -> SocketAddr {
    "127.0.0.1:7000".parse().unwrap()
}

const SILENT: usize = 10_000;
/// Longer than anything takes that does not wait for a timeout.
const SHORTLY: Duration = Duration::from_millis(500);
