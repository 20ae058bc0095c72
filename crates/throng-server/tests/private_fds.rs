//! Handlers that use an fd opened elsewhere, while every core has an fd table of its own.

mod support;

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};

use support::*;
use throng_server::{
    AcceptTopology, Connection, Handler, Raw, RunningServer, ServerHandle, ServerOptions, kinds,
};

/// A handler that writes to logs that it has captured, and answers `ok`.
struct Logging {
    logs: Arc<Vec<File>>,
    failures: Arc<AtomicU64>,
}

impl Handler for Logging {
    type Session = Raw;
    type State = ();
    type Message = std::convert::Infallible;

    fn event(&mut self, conn: &mut Connection<'_, Self>, _bytes: &[u8]) {
        for log in &*self.logs {
            let mut copy = log.try_clone();
            let copied = copy.as_mut().is_ok_and(|copy| copy.write_all(b"secret").is_ok());
            if let Err(error) = (&*log).write_all(b"secret") {
                assert_eq!(error.raw_os_error(), Some(EBADF));
                assert!(!copied);
                self.failures.fetch_add(1, SeqCst);
            }
        }
        conn.send(b"ok");
    }
}

const EBADF: i32 = 9;
/// More logs than a private table has spare places, and enough clients for all of their numbers.
const LOGS: usize = 40;
const CLIENTS: usize = 200;

/// The bytes in the handlers' logs, the number of failed writes, and the bytes that the clients
/// received beside their answers.
fn run(accept: AcceptTopology, private_fds: bool) -> (Vec<u8>, u64, Vec<u8>) {
    let (mut read, write): (Vec<_>, Vec<_>) = (0..LOGS).map(|_| std::io::pipe().unwrap()).unzip();
    let logs: Vec<File> = write.into_iter().map(|write| File::from(OwnedFd::from(write))).collect();
    let failures = Arc::<AtomicU64>::default();
    let make = {
        let (logs, failures) = (Arc::new(logs), Arc::clone(&failures));
        move |_| Logging { logs: Arc::clone(&logs), failures: Arc::clone(&failures) }
    };
    let options = ServerOptions { private_fds, ..options(accept, 2) };
    let server = RunningServer::start(options, make).unwrap();
    let mut clients: Vec<TcpStream> = (0..CLIENTS).map(|_| connect(server.addr())).collect();
    clients.iter_mut().for_each(|client| client.write_all(b"?").unwrap());
    clients.iter_mut().for_each(read_ok);
    drop(server);
    let mut besides = Vec::new();
    for mut client in clients {
        // A server that stops resets connections with unread bytes.
        let _ = client.read_to_end(&mut besides);
    }
    let mut logged = Vec::new();
    if !private_fds {
        read.iter_mut().for_each(|log| _ = log.read_to_end(&mut logged).unwrap());
    }
    (logged, failures.load(SeqCst), besides)
}

#[test]
fn no_client_gets_what_a_handler_writes_to_an_fd_that_it_captured() {
    for accept in TOPOLOGIES {
        let (_, failures, besides) = run(accept, true);
        assert_eq!(String::from_utf8_lossy(&besides), "", "{accept}");
        assert_eq!(failures, (LOGS * CLIENTS) as u64, "{accept}: every write fails, loudly");
    }
}

#[test]
fn with_one_table_for_all_a_captured_fd_works() {
    assert!(!ServerOptions::default().private_fds, "a library's default is the safe one");
    let (logged, failures, besides) = run(AcceptTopology::Reuseport, false);
    assert_eq!((failures, besides.len()), (0, 0));
    let whole = 2 * LOGS * CLIENTS * b"secret".len();
    assert_eq!(logged.len(), whole, "each log gets each line twice");
}

/// A handler that publishes through another server's handle, and reports the outcome.
struct Relaying {
    to: ServerHandle<throng_server::WebSockets<kinds::Chat>>,
    told: Sender<Option<String>>,
}

impl Handler for Relaying {
    type Session = Raw;
    type State = ();
    type Message = std::convert::Infallible;

    fn event(&mut self, conn: &mut Connection<'_, Self>, _bytes: &[u8]) {
        let publish = || drop(self.to.publish(throng_server::pubsub::Publication::new("room", ())));
        let panicked = catch_unwind(AssertUnwindSafe(publish)).err();
        let said = panicked.map(|panic| panic.downcast::<&str>().unwrap().to_string());
        self.told.send(said).unwrap();
        conn.send(b"ok");
    }
}

#[test]
fn a_handle_to_a_server_elsewhere_panics_on_a_core_with_a_table_of_its_own() {
    for (private_fds, works) in [(false, true), (true, false)] {
        let chat = RunningServer::start(options(AcceptTopology::Reuseport, 1), |_| {
            kinds::Chat::handler(throng_server::WebSocketOptions::default())
        });
        let chat = chat.unwrap();
        let (tell, told) = channel();
        let to = chat.handle();
        let options = ServerOptions { private_fds, ..options(AcceptTopology::Reuseport, 1) };
        let relay =
            RunningServer::start(options, move |_| Relaying { to: to.clone(), told: tell.clone() });
        let relay = relay.unwrap();
        let mut client = connect(relay.addr());
        ask(&mut client);
        match told.recv().unwrap() {
            None => assert!(works),
            Some(said) => assert!(!works && said.contains("private_fds: false"), "{said}"),
        }
        drop(relay);
        assert_eq!(chat.counts().len(), 1, "the chat goes on");
    }
}
