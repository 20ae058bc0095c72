//! The simulation behaves like Linux: the same script on both drivers gives the same results and
//! events.

use std::fmt::{Debug, Write};
use std::sync::Arc;
use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{
    ConnectSpec, CoresOptions, Driver, Errno, Interest, ListenSpec, Ready, SocketClose,
    SocketOptions, SourceAddress, Token,
};
use throng_sim::{Sim, SimCoresOptions};

/// Both sockets of one connection in one core, and a log of all results.
struct Stage<'a, D: Driver> {
    driver: D,
    /// Waits until bytes in transit have arrived.
    settle: Box<dyn FnMut() + 'a>,
    listener: Option<D::Fd>,
    ends: [Option<D::Fd>; 2],
    log: String,
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

impl<'a, D: Driver> Stage<'a, D> {
    fn new(mut driver: D, settle: impl FnMut() + 'a) -> Self {
        let addr = "127.0.0.1:0".parse().unwrap();
        let options = SocketOptions::default();
        let spec = ListenSpec { addr, backlog: 8, reuseport: false, options };
        let listener = driver.listen(&spec).unwrap();
        driver.watch(&listener, 0).unwrap();
        let settle = Box::new(settle);
        Self { driver, settle, listener: Some(listener), ends: [None, None], log: String::new() }
    }

    fn log_result(&mut self, what: &str, answer: impl Debug) {
        writeln!(self.log, "{what}: {answer:?}").unwrap();
    }

    fn connect(&mut self) {
        let listener = self.listener.as_ref().unwrap();
        let target = self.driver.local_addr(listener).unwrap();
        let options = SocketOptions { arrival_stamps: true, ..SocketOptions::default() };
        let fd = self
            .driver
            .connect(&ConnectSpec { target, source: SourceAddress::Any, options })
            .unwrap();
        self.driver.register(&fd, token(CLIENT), Interest::ReadWrite).unwrap();
        self.ends[CLIENT] = Some(fd);
    }

    /// Connects and accepts.
    fn open(&mut self) {
        self.connect();
        self.events("connected");
        let listener = self.listener.as_ref().unwrap();
        let fd = self.driver.accept(listener).unwrap();
        let again = self.driver.accept(listener).err();
        self.log_result("second accept", again);
        self.driver.register(&fd, token(SERVER), Interest::ReadWrite).unwrap();
        self.ends[SERVER] = Some(fd);
        self.events("accepted");
    }

    /// Logs the events of both sockets, after everything has arrived.
    fn events(&mut self, when: &str) {
        let mut told = [Ready::default(); 2];
        let mut accepts = false;
        for _ in 0..3 {
            (self.settle)();
            let mut events = Vec::new();
            self.driver.wait(Instant::ZERO, &mut events);
            for event in events {
                accepts |= event.token.as_listener().is_some();
                if let Some(key) = event.token.as_connection() {
                    let ready = &mut told[key.index() as usize];
                    ready.readable |= event.ready.readable;
                    ready.writable |= event.ready.writable;
                    ready.finished |= event.ready.finished;
                    ready.error |= event.ready.error;
                }
            }
        }
        let told = told.map(|ready| {
            let flags = [
                (ready.readable, "readable"),
                (ready.writable, "writable"),
                (ready.finished, "finished"),
                (ready.error, "error"),
            ];
            flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect::<Vec<_>>()
        });
        self.log_result(&format!("events, {when} (client, server, listener)"), (told, accepts));
    }

    fn send(&mut self, end: usize, bytes: &[u8]) {
        let sent = self.driver.send(self.ends[end].as_ref().unwrap(), bytes);
        self.log_result(&format!("send {end}"), sent);
    }

    fn recv(&mut self, end: usize) {
        let mut buffer = [0; 100];
        let received = self.driver.recv(self.ends[end].as_ref().unwrap(), &mut buffer);
        self.log_result(&format!("recv {end}"), received.map(|count| buffer[..count].to_vec()));
    }

    /// Receives bytes long after they arrived between two moments, and logs whether their stamp is
    /// right.
    fn recv_late(&mut self, end: usize, sent_at: Instant, seen_at: Instant) {
        let mut buffer = [0; 100];
        (self.settle)();
        let fd = self.ends[end].as_ref().unwrap();
        let received = self.driver.recv_stamped(fd, &mut buffer);
        let known = received.map(|(count, at)| {
            let at = at.expect("the socket asks for stamps");
            (count, sent_at <= at && at <= seen_at)
        });
        self.log_result(&format!("recv {end} late, (bytes, arrived in time)"), known);
    }

    fn error(&mut self, end: usize) {
        let error = self.driver.error(self.ends[end].as_ref().unwrap());
        self.log_result(&format!("error {end}"), error);
    }

    fn finish(&mut self, end: usize) {
        let finished = self.driver.finish(self.ends[end].as_ref().unwrap());
        self.log_result(&format!("finish {end}"), finished);
    }

    fn close(&mut self, end: usize, how: SocketClose) {
        let fd = self.ends[end].take().unwrap();
        self.driver.close(fd, how);
    }

    /// Sends until the socket takes no more. The number of bytes depends on the machine.
    fn fill(&mut self, end: usize) {
        let mut rounds = 0;
        loop {
            (self.settle)();
            match self.driver.send(self.ends[end].as_ref().unwrap(), &[7; 100_000]) {
                Ok(_) => rounds = 0,
                Err(Errno::AGAIN) if rounds < 3 => rounds += 1,
                Err(errno) => return self.log_result(&format!("filled {end}"), errno),
            }
        }
    }

    /// Receives until nothing is left.
    fn empty(&mut self, end: usize) {
        let mut buffer = vec![0; 100_000];
        loop {
            (self.settle)();
            match self.driver.recv(self.ends[end].as_ref().unwrap(), &mut buffer) {
                Ok(1..) => {}
                other => return self.log_result(&format!("emptied {end}"), other),
            }
        }
    }

    fn end(mut self) -> String {
        for fd in self.ends.into_iter().chain([self.listener]).flatten() {
            self.driver.close(fd, SocketClose::Reset);
        }
        self.log
    }
}

fn token(end: usize) -> Token {
    Token::connection(Key::new(end as u32, 0))
}

/// Script that runs on any driver.
trait Script: Send + Sync + 'static {
    fn run<D: Driver>(&self, stage: &mut Stage<'_, D>);
}

fn same_on_both(script: impl Script) {
    let script = Arc::new(script);
    let mut sim = Sim::new(1);
    let driver = sim.cores::<()>(&SimCoresOptions::default()).drivers().remove(0);
    let mut stage = Stage::new(driver, || sim.run_for(Duration::from_millis(1)));
    script.run(&mut stage);
    let simulated = stage.end();

    // On an idle machine bytes arrive at once. Only a busy machine needs the longer waits.
    let mut linux = String::new();
    for settle in [3, 30, 300, 3_000].map(Duration::from_millis) {
        linux = on_linux(Arc::clone(&script), settle);
        if linux == simulated {
            return;
        }
    }
    assert_eq!(simulated, linux, "left: the simulation; right: Linux");
}

fn on_linux(script: Arc<impl Script>, settle: Duration) -> String {
    let (log, linux) = std::sync::mpsc::channel();
    let options = CoresOptions { name: "linux", private_fds: false, ..CoresOptions::default() };
    let mut cores = throng_driver::spawn::<(), _>(&options, move |driver| {
        let mut stage = Stage::new(driver, move || std::thread::sleep(settle));
        script.run(&mut stage);
        log.send(stage.end()).unwrap();
    })
    .unwrap();
    assert!(cores.join(), "the script failed on Linux");
    linux.recv().unwrap()
}

macro_rules! scripts {
    ($($name:ident: |$stage:ident| $body:block)*) => { $(
        #[test]
        fn $name() {
            struct This;
            impl Script for This {
                fn run<D: Driver>(&self, $stage: &mut Stage<'_, D>) $body
            }
            same_on_both(This);
        }
    )* };
}

scripts! {
    bytes_and_the_end: |stage| {
        stage.open();
        stage.recv(SERVER);
        stage.send(CLIENT, b"hello");
        stage.events("sent");
        stage.events("nothing new");
        stage.recv(SERVER);
        stage.recv(SERVER);
        stage.send(SERVER, b"hi");
        stage.events("answered");
        stage.recv(CLIENT);
        stage.close(CLIENT, SocketClose::Finish);
        stage.events("closed");
        stage.recv(SERVER);
        stage.recv(SERVER);
        stage.error(SERVER);
    }

    a_late_receive_knows_when_the_bytes_arrived: |stage| {
        stage.open();
        let rtt = stage.driver.handshake_rtt(stage.ends[CLIENT].as_ref().unwrap());
        stage.log_result("a handshake takes time", rtt.is_some_and(|rtt| rtt > Duration::ZERO));
        for answer in [&b"first"[..], b"second"] {
            let sent_at = stage.driver.now();
            stage.send(SERVER, answer);
            stage.events("answered");
            let seen_at = stage.driver.now();
            stage.recv_late(CLIENT, sent_at, seen_at);
        }
    }

    a_socket_without_stamps_receives_none: |stage| {
        stage.open();
        stage.send(CLIENT, b"hello");
        stage.events("sent");
        let mut buffer = [0; 100];
        let received = stage.driver.recv_stamped(stage.ends[SERVER].as_ref().unwrap(), &mut buffer);
        stage.log_result("recv", received);
    }

    a_refused_connect: |stage| {
        stage.open();
        stage.close(CLIENT, SocketClose::Finish);
        stage.close(SERVER, SocketClose::Finish);
        let listener = stage.listener.take().unwrap();
        let target = stage.driver.local_addr(&listener).unwrap();
        stage.driver.close(listener, SocketClose::Finish);
        let options = SocketOptions::default();
        let fd = stage.driver.connect(&ConnectSpec { target, source: SourceAddress::Any, options }).unwrap();
        stage.driver.register(&fd, token(CLIENT), Interest::ReadWrite).unwrap();
        stage.ends[CLIENT] = Some(fd);
        stage.events("refused");
        stage.error(CLIENT);
        stage.error(CLIENT);
        stage.recv(CLIENT);
        stage.send(CLIENT, b"x");
    }

    a_reset: |stage| {
        stage.open();
        stage.close(CLIENT, SocketClose::Reset);
        stage.events("reset");
        stage.recv(SERVER);
        stage.recv(SERVER);
        stage.send(SERVER, b"x");
        stage.error(SERVER);
    }

    what_arrived_is_readable_after_a_reset: |stage| {
        stage.open();
        stage.send(CLIENT, b"hello");
        stage.events("sent");
        stage.close(CLIENT, SocketClose::Reset);
        stage.events("reset");
        stage.recv(SERVER);
        stage.recv(SERVER);
        stage.recv(SERVER);
    }

    a_close_with_unread_bytes_is_a_reset: |stage| {
        stage.open();
        stage.send(SERVER, b"unread");
        stage.send(CLIENT, b"hello");
        stage.events("sent");
        stage.close(CLIENT, SocketClose::Finish);
        stage.events("closed");
        stage.recv(SERVER);
        stage.recv(SERVER);
        stage.recv(SERVER);
    }

    bytes_for_a_closed_end_are_answered_by_a_reset: |stage| {
        stage.open();
        stage.close(CLIENT, SocketClose::Finish);
        stage.events("closed");
        stage.recv(SERVER);
        stage.send(SERVER, b"anybody?");
        stage.events("answered");
        stage.send(SERVER, b"anybody?");
        stage.send(SERVER, b"anybody?");
        stage.recv(SERVER);
        stage.error(SERVER);
    }

    half_closed: |stage| {
        stage.open();
        stage.send(CLIENT, b"question");
        stage.finish(CLIENT);
        stage.events("finished");
        stage.recv(SERVER);
        stage.recv(SERVER);
        stage.send(CLIENT, b"more");
        stage.send(SERVER, b"answer");
        stage.events("answered");
        stage.recv(CLIENT);
        stage.finish(SERVER);
        stage.events("both finished");
        stage.recv(CLIENT);
        stage.recv(SERVER);
        stage.error(CLIENT);
        stage.error(SERVER);
    }

    a_reset_after_the_end: |stage| {
        stage.open();
        stage.finish(CLIENT);
        stage.events("finished");
        stage.recv(SERVER);
        stage.close(CLIENT, SocketClose::Reset);
        stage.events("reset");
        stage.recv(SERVER);
        stage.error(SERVER);
        stage.error(SERVER);
        stage.send(SERVER, b"x");
    }

    a_full_window_and_room_again: |stage| {
        stage.open();
        stage.fill(CLIENT);
        stage.events("full");
        stage.empty(SERVER);
        stage.events("empty");
        stage.send(CLIENT, b"room");
        stage.events("sent");
        stage.recv(SERVER);
    }

    a_listener_is_told_again_and_again: |stage| {
        stage.connect();
        stage.events("waits");
        stage.events("still waits");
        let listener = stage.listener.take().unwrap();
        stage.driver.unwatch(&listener).unwrap();
        stage.events("not watched");
        stage.driver.watch(&listener, 0).unwrap();
        stage.events("watched");
        // Connections in the queue of a closed listener are reset.
        stage.driver.close(listener, SocketClose::Finish);
        stage.events("closed");
        stage.recv(CLIENT);
    }

    registering_again_tells_again: |stage| {
        stage.open();
        stage.send(CLIENT, b"hello");
        stage.events("sent");
        stage.events("nothing new");
        let fd = stage.ends[SERVER].take().unwrap();
        stage.driver.reregister(&fd, token(SERVER), Interest::Read).unwrap();
        stage.ends[SERVER] = Some(fd);
        stage.events("registered for reading");
        let fd = stage.ends[SERVER].take().unwrap();
        stage.driver.reregister(&fd, token(SERVER), Interest::ReadWrite).unwrap();
        stage.ends[SERVER] = Some(fd);
        stage.events("registered for both");
    }
}
