//! The simulation behaves like Linux: the same script on both drivers gives the same results and
//! events.

use std::fmt::{Debug, Write};
use std::sync::Arc;
use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{
    ConnectSpec, CoresOptions, Epoll, Errno, Interest, ListenSpec, Listeners, Ready, SocketClose,
    SocketOptions, SourceAddress, Token,
};
use throng_sim::{Sim, SimCoresOptions};

/// Both sockets of one connection in one core, and a log of all results.
struct ScriptRun<'a, D: Listeners> {
    driver: D,
    /// Waits until bytes in transit have arrived.
    settle: Box<dyn FnMut() + 'a>,
    listener: Option<D::Fd>,
    ends: [Option<D::Fd>; 2],
    log: String,
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

impl<'a, D: Listeners> ScriptRun<'a, D> {
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
    fn run<D: Listeners>(&self, run: &mut ScriptRun<'_, D>);
}

fn same_on_both(script: impl Script) {
    let script = Arc::new(script);
    let mut sim = Sim::new(1);
    let driver = sim.cores::<()>(&SimCoresOptions::default()).drivers().remove(0);
    let mut run = ScriptRun::new(driver, || sim.run_for(Duration::from_millis(1)));
    script.run(&mut run);
    let simulated = run.end();

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
    let mut cores = throng_driver::spawn::<(), _>(&options, Epoll, move |driver| {
        let mut run = ScriptRun::new(driver, move || std::thread::sleep(settle));
        script.run(&mut run);
        log.send(run.end()).unwrap();
    })
    .unwrap();
    assert!(cores.join(), "the script failed on Linux");
    linux.recv().unwrap()
}

macro_rules! scripts {
    ($($name:ident: |$run:ident| $body:block)*) => { $(
        #[test]
        fn $name() {
            struct This;
            impl Script for This {
                fn run<D: Listeners>(&self, $run: &mut ScriptRun<'_, D>) $body
            }
            same_on_both(This);
        }
    )* };
}

scripts! {
    bytes_and_the_end: |run| {
        run.open();
        run.recv(SERVER);
        run.send(CLIENT, b"hello");
        run.events("sent");
        run.events("nothing new");
        run.recv(SERVER);
        run.recv(SERVER);
        run.send(SERVER, b"hi");
        run.events("answered");
        run.recv(CLIENT);
        run.close(CLIENT, SocketClose::Finish);
        run.events("closed");
        run.recv(SERVER);
        run.recv(SERVER);
        run.error(SERVER);
    }

    a_late_receive_knows_when_the_bytes_arrived: |run| {
        run.open();
        let rtt = run.driver.handshake_rtt(run.ends[CLIENT].as_ref().unwrap());
        run.log_result("a handshake takes time", rtt.is_some_and(|rtt| rtt > Duration::ZERO));
        for answer in [&b"first"[..], b"second"] {
            let sent_at = run.driver.now();
            run.send(SERVER, answer);
            run.events("answered");
            let seen_at = run.driver.now();
            run.recv_late(CLIENT, sent_at, seen_at);
        }
    }

    a_socket_without_stamps_receives_none: |run| {
        run.open();
        run.send(CLIENT, b"hello");
        run.events("sent");
        let mut buffer = [0; 100];
        let received = run.driver.recv_stamped(run.ends[SERVER].as_ref().unwrap(), &mut buffer);
        run.log_result("recv", received);
    }

    a_refused_connect: |run| {
        run.open();
        run.close(CLIENT, SocketClose::Finish);
        run.close(SERVER, SocketClose::Finish);
        let listener = run.listener.take().unwrap();
        let target = run.driver.local_addr(&listener).unwrap();
        run.driver.close(listener, SocketClose::Finish);
        let options = SocketOptions::default();
        let spec = ConnectSpec { target, source: SourceAddress::Any, options };
        let fd = run.driver.connect(&spec).unwrap();
        run.driver.register(&fd, token(CLIENT), Interest::ReadWrite).unwrap();
        run.ends[CLIENT] = Some(fd);
        run.events("refused");
        run.error(CLIENT);
        run.error(CLIENT);
        run.recv(CLIENT);
        run.send(CLIENT, b"x");
    }

    a_reset: |run| {
        run.open();
        run.close(CLIENT, SocketClose::Reset);
        run.events("reset");
        run.recv(SERVER);
        run.recv(SERVER);
        run.send(SERVER, b"x");
        run.error(SERVER);
    }

    what_arrived_is_readable_after_a_reset: |run| {
        run.open();
        run.send(CLIENT, b"hello");
        run.events("sent");
        run.close(CLIENT, SocketClose::Reset);
        run.events("reset");
        run.recv(SERVER);
        run.recv(SERVER);
        run.recv(SERVER);
    }

    a_close_with_unread_bytes_is_a_reset: |run| {
        run.open();
        run.send(SERVER, b"unread");
        run.send(CLIENT, b"hello");
        run.events("sent");
        run.close(CLIENT, SocketClose::Finish);
        run.events("closed");
        run.recv(SERVER);
        run.recv(SERVER);
        run.recv(SERVER);
    }

    bytes_for_a_closed_end_are_answered_by_a_reset: |run| {
        run.open();
        run.close(CLIENT, SocketClose::Finish);
        run.events("closed");
        run.recv(SERVER);
        run.send(SERVER, b"hello?");
        run.events("answered");
        run.send(SERVER, b"hello?");
        run.send(SERVER, b"hello?");
        run.recv(SERVER);
        run.error(SERVER);
    }

    half_closed: |run| {
        run.open();
        run.send(CLIENT, b"question");
        run.finish(CLIENT);
        run.events("finished");
        run.recv(SERVER);
        run.recv(SERVER);
        run.send(CLIENT, b"more");
        run.send(SERVER, b"answer");
        run.events("answered");
        run.recv(CLIENT);
        run.finish(SERVER);
        run.events("both finished");
        run.recv(CLIENT);
        run.recv(SERVER);
        run.error(CLIENT);
        run.error(SERVER);
    }

    a_reset_after_the_end: |run| {
        run.open();
        run.finish(CLIENT);
        run.events("finished");
        run.recv(SERVER);
        run.close(CLIENT, SocketClose::Reset);
        run.events("reset");
        run.recv(SERVER);
        run.error(SERVER);
        run.error(SERVER);
        run.send(SERVER, b"x");
    }

    a_full_window_and_room_again: |run| {
        run.open();
        run.fill(CLIENT);
        run.events("full");
        run.empty(SERVER);
        run.events("empty");
        run.send(CLIENT, b"room");
        run.events("sent");
        run.recv(SERVER);
    }

    a_listener_is_told_again_and_again: |run| {
        run.connect();
        run.events("waits");
        run.events("still waits");
        let listener = run.listener.take().unwrap();
        run.driver.unwatch(&listener).unwrap();
        run.events("not watched");
        run.driver.watch(&listener, 0).unwrap();
        run.events("watched");
        // Connections in the queue of a closed listener are reset.
        run.driver.close(listener, SocketClose::Finish);
        run.events("closed");
        run.recv(CLIENT);
    }

    registering_again_tells_again: |run| {
        run.open();
        run.send(CLIENT, b"hello");
        run.events("sent");
        run.events("nothing new");
        let fd = run.ends[SERVER].take().unwrap();
        run.driver.reregister(&fd, token(SERVER), Interest::Read).unwrap();
        run.ends[SERVER] = Some(fd);
        run.events("registered for reading");
        let fd = run.ends[SERVER].take().unwrap();
        run.driver.reregister(&fd, token(SERVER), Interest::ReadWrite).unwrap();
        run.ends[SERVER] = Some(fd);
        run.events("registered for both");
    }
}
