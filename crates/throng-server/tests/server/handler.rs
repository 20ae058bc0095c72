//! The operations of a handler, on real sockets.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::*;
use throng_measure::RunEventKind;
use throng_server::{
    AcceptTopology, Connection, ConnectionId, DisconnectReason, Handler, Raw, RunningServer,
    SendOutcome, ServerOptions, kinds,
};

/// A handler that executes the first byte of a packet as a command, and reports.
struct Puppet(Sender<Told>);

#[derive(Debug, PartialEq)]
enum Told {
    Open(ConnectionId),
    Sent(SendOutcome),
    Message(u32),
    Timeout,
    Drained,
    Ended(DisconnectReason),
}

impl Handler for Puppet {
    type Session = Raw;
    type State = ();
    type Message = (Option<ConnectionId>, u32);

    fn open(&mut self, conn: &mut Connection<'_, Self>) {
        let _ = self.0.send(Told::Open(conn.id()));
    }

    fn event(&mut self, conn: &mut Connection<'_, Self>, bytes: &[u8]) {
        match bytes[0] {
            b'f' => {
                let sent = conn.send_now(&[b'x'; 64 << 10]);
                let _ = self.0.send(Told::Sent(sent));
            }
            b'F' => conn.send(&vec![b'x'; 8 << 20]),
            b'p' => panic!("as asked (this is the test's)"),
            b't' => conn.set_timeout(Duration::from_millis(50)),
            b'c' => conn.close(),
            b'r' => conn.reset(),
            b'a' => {
                let text = format!("{:?}", (conn.peer_addr().unwrap(), conn.local_addr().unwrap()));
                conn.send(text.as_bytes());
            }
            _ => conn.send(b"ok"),
        }
    }

    fn message(&mut self, conn: &mut Connection<'_, Self>, (to, n): Self::Message) {
        match to {
            Some(to) => conn.send_message(to, (None, n + 1)).unwrap(),
            None if n == 64 => conn.send(&vec![b'x'; 64 << 20]),
            None if n == 666 => panic!("as asked (this is the test's)"),
            None => {
                let _ = self.0.send(Told::Message(n));
                conn.send(b"ok");
            }
        }
    }

    fn timeout(&mut self, conn: &mut Connection<'_, Self>) {
        let _ = self.0.send(Told::Timeout);
        conn.send(b"ok");
    }

    fn drained(&mut self, _conn: &mut Connection<'_, Self>) {
        let _ = self.0.send(Told::Drained);
    }

    fn close(&mut self, _conn: &mut Connection<'_, Self>, why: DisconnectReason) {
        let _ = self.0.send(Told::Ended(why));
    }
}

fn puppets(options: ServerOptions) -> (RunningServer<Puppet>, std::sync::mpsc::Receiver<Told>) {
    let (tell, told) = channel();
    (RunningServer::start(options, move |_| Puppet(tell.clone())).unwrap(), told)
}

#[test]
fn send_now_says_what_the_kernel_has_taken() {
    let options =
        ServerOptions { sndbuf_bytes: Some(64 << 10), ..options(AcceptTopology::Reuseport, 1) };
    let (server, told) = puppets(options);
    let mut client = connect(server.addr());
    let (mut taken, mut pending) = (0, 0);
    assert!(matches!(told.recv_timeout(PATIENCE), Ok(Told::Open(_))));
    // The peer does not read: after some time the kernel takes no more.
    while pending == 0 {
        client.write_all(b"f").unwrap();
        let Ok(Told::Sent(sent)) = told.recv_timeout(PATIENCE) else { panic!("not sent") };
        assert_eq!(sent.taken + sent.pending, 64 << 10);
        (taken, pending) = (taken + sent.taken, sent.pending);
    }
    assert_eq!(snapshot(&server).core.pending_bytes, pending as u64);
    assert_eq!(snapshot(&server).core.bytes_sent, taken as u64);
    // The peer reads: everything arrives.
    client.read_exact(&mut vec![0; taken + pending]).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok(Told::Drained));
    assert_eq!(snapshot(&server).core.pending_bytes, 0);
    client.write_all(b"?").unwrap();
    read_ok(&mut client);
}

#[test]
fn a_peer_that_never_reads_is_reset_at_the_limit() {
    let options =
        ServerOptions { sndbuf_bytes: Some(64 << 10), ..options(AcceptTopology::Reuseport, 1) };
    let (server, told) = puppets(options);
    let mut client = connect(server.addr());
    let Ok(Told::Open(id)) = told.recv_timeout(PATIENCE) else { panic!("not open") };
    // One call may send a peer that has read everything eight times as much as may wait.
    client.write_all(b"F").unwrap();
    eventually("much waits", || snapshot(&server).core.pending_bytes > 1 << 20);
    assert_eq!((snapshot(&server).core.pending_overflows, server.open()), (0, 1));
    server.handle().send_message(id, (None, 64)).unwrap();
    let overflow = Told::Ended(DisconnectReason::Overflow);
    eventually("the reset", || told.try_iter().any(|told| told == overflow));
    assert_eq!(snapshot(&server).core.pending_overflows, 1);
    assert_eq!(snapshot(&server).core.pending_bytes, 0);
    drop(client);
}

#[test]
fn one_call_may_not_send_whatever_it_wants_to_a_peer_that_does_not_read() {
    let (server, told) = puppets(options(AcceptTopology::Reuseport, 1));
    let _client = connect(server.addr());
    let Ok(Told::Open(id)) = told.recv_timeout(PATIENCE) else { panic!("not open") };
    server.handle().send_message(id, (None, 64)).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok(Told::Ended(DisconnectReason::Overflow)));
    assert_eq!(snapshot(&server).core.pending_overflows, 1);
}

// `simulated.rs` has one that talks, on virtual time.
#[test]
fn an_idle_connection_is_closed_after_the_timeout() {
    let idle = Duration::from_millis(500);
    let options =
        ServerOptions { idle_timeout: Some(idle), ..options(AcceptTopology::Reuseport, 2) };
    let (server, told) = puppets(options);
    let begun = Instant::now();
    let mut client = connect(server.addr());
    assert!(is_closed_by_peer(&mut client));
    assert!(begun.elapsed() >= idle);
    eventually("the handler receives", || {
        told.try_iter().any(|told| told == Told::Ended(DisconnectReason::Idle))
    });
    assert_eq!(snapshot(&server).counters.idle_timeouts, 1);
}

#[test]
fn a_timeout_comes_once_and_does_not_disturb_the_idle_timeout() {
    let idle = Duration::from_secs(2);
    let options =
        ServerOptions { idle_timeout: Some(idle), ..options(AcceptTopology::Reuseport, 1) };
    let (server, told) = puppets(options);
    let mut client = connect(server.addr());
    client.write_all(b"t").unwrap();
    read_ok(&mut client);
    assert!(is_closed_by_peer(&mut client));
    let heard: Vec<_> = (0..3).map(|_| told.recv_timeout(PATIENCE).unwrap()).skip(1).collect();
    assert_eq!(heard, [Told::Timeout, Told::Ended(DisconnectReason::Idle)]);
    drop(server);
    assert_eq!(told.iter().next(), None, "nothing came twice");
}

#[test]
fn a_message_reaches_a_connection_from_any_thread_and_from_any_core() {
    let (server, told) = puppets(options(AcceptTopology::Dispatch, 2));
    let mut clients = [connect(server.addr()), connect(server.addr())];
    let mut ids = Vec::new();
    while ids.len() < 2 {
        match told.recv_timeout(PATIENCE) {
            Ok(Told::Open(id)) => ids.push(id),
            other => panic!("{other:?}"),
        }
    }
    assert_ne!(ids[0].core(), ids[1].core(), "one on each core");
    let sender = server.handle();
    std::thread::spawn(move || {
        sender.send_message(ids[0], (None, 7)).unwrap();
        // To the first, which sends it to the second, on the other core.
        sender.send_message(ids[0], (Some(ids[1]), 10)).unwrap();
        sender.send_message(ids[0], (Some(ids[0]), 20)).unwrap();
    })
    .join()
    .unwrap();
    let mut heard: Vec<_> = (0..3).map(|_| told.recv_timeout(PATIENCE).unwrap()).collect();
    heard.sort_by_key(|told| if let Told::Message(n) = told { *n } else { 0 });
    assert_eq!(heard, [Told::Message(7), Told::Message(11), Told::Message(21)]);
    // Two answers went to one client and one to the other client.
    clients.iter_mut().for_each(read_ok);
}

#[test]
fn a_message_to_a_connection_that_has_ended_is_lost_and_nothing_else() {
    let (server, told) = puppets(options(AcceptTopology::Reuseport, 1));
    let mut client = connect(server.addr());
    let Ok(Told::Open(id)) = told.recv_timeout(PATIENCE) else { panic!("not opened") };
    client.write_all(b"c").unwrap();
    assert!(is_closed_by_peer(&mut client));
    assert_eq!(told.recv_timeout(PATIENCE), Ok(Told::Ended(DisconnectReason::Local)));
    // The next connection has the same place in the table.
    let mut next = connect(server.addr());
    ask(&mut next);
    server.handle().send_message(id, (None, 1)).unwrap();
    ask(&mut next);
    let heard: Vec<_> = told.try_iter().skip(1).collect();
    assert_eq!(heard, []);
}

#[test]
fn a_full_mailbox_refuses_messages_and_gives_them_back() {
    /// A handler that blocks while the lock is held.
    struct Deaf(Sender<ConnectionId>, Arc<Mutex<()>>);
    impl Handler for Deaf {
        type Session = Raw;
        type State = ();
        type Message = u32;
        fn open(&mut self, conn: &mut Connection<'_, Self>) {
            let _ = self.0.send(conn.id());
            drop(self.1.lock());
        }
        fn event(&mut self, _conn: &mut Connection<'_, Self>, _bytes: &[u8]) {}
    }
    let (tell, told) = channel();
    let options = ServerOptions { mailbox_max: 3, ..options(AcceptTopology::Reuseport, 1) };
    let is_deaf = Arc::new(Mutex::new(()));
    let deafness = Arc::clone(&is_deaf);
    let server =
        RunningServer::start(options, move |_| Deaf(tell.clone(), Arc::clone(&deafness))).unwrap();
    let held = is_deaf.lock().unwrap();
    let _client = connect(server.addr());
    let id = told.recv_timeout(PATIENCE).unwrap();
    let refused: Vec<_> =
        (0..5).filter_map(|n| server.handle().send_message(id, n).err()).collect();
    drop(held);
    assert_eq!(refused, [3, 4]);
}

#[test]
fn a_panic_ends_its_connection_and_frees_its_permit() {
    for accept in TOPOLOGIES {
        let options = ServerOptions { connections_max: Some(3), ..options(accept, 2) };
        let (server, told) = puppets(options);
        let mut stays = connect(server.addr());
        ask(&mut stays);
        for _ in 0..10 {
            let mut client = connect(server.addr());
            ask(&mut client);
            client.write_all(b"p").unwrap();
            assert!(is_closed_by_peer(&mut client));
        }
        ask(&mut stays);
        let by_panic = || {
            told.try_iter().filter(|told| *told == Told::Ended(DisconnectReason::Panicked)).count()
        };
        let mut panics = 0;
        eventually("ten panics", || {
            panics += by_panic();
            panics == 10
        });
        assert!(server.wait_until(|open| open == 1, PATIENCE));
        let counted = snapshot(&server);
        assert_eq!((counted.core.panics, counted.counters.closed), (10, 10), "{accept}");
        assert!(
            server
                .events()
                .iter()
                .any(|event| matches!(event.kind, RunEventKind::HandlerPanicked { .. }))
        );
        assert!(server.stop(), "no core has panicked");
    }
}

#[test]
fn a_panic_about_a_message_ends_its_connection_only() {
    let (server, told) = puppets(options(AcceptTopology::Reuseport, 1));
    let mut client = connect(server.addr());
    let Ok(Told::Open(id)) = told.recv_timeout(PATIENCE) else { panic!("not opened") };
    server.handle().send_message(id, (None, 666)).unwrap();
    assert!(is_closed_by_peer(&mut client));
    ask(&mut connect(server.addr()));
    assert!(server.stop(), "no core has panicked");
}

#[test]
fn what_panics_as_it_is_made_or_dropped_ends_no_core() {
    /// A state that panics when the second one is made, and when a marked one is dropped.
    #[derive(Debug)]
    struct Touchy(bool);
    static MADE: AtomicUsize = AtomicUsize::new(0);
    impl Default for Touchy {
        fn default() -> Self {
            assert_ne!(MADE.fetch_add(1, SeqCst), 1, "as asked (this is the test's)");
            Self(false)
        }
    }
    impl Drop for Touchy {
        fn drop(&mut self) {
            assert!(!self.0, "as asked (this is the test's)");
        }
    }
    struct Fragile(Sender<ConnectionId>);
    impl Handler for Fragile {
        type Session = Raw;
        type State = Touchy;
        type Message = Touchy;
        fn open(&mut self, conn: &mut Connection<'_, Self>) {
            let _ = self.0.send(conn.id());
        }
        fn event(&mut self, conn: &mut Connection<'_, Self>, bytes: &[u8]) {
            conn.state().0 = bytes == b"!";
            conn.send(b"ok");
        }
    }

    let (tell, told) = channel();
    let options =
        ServerOptions { connections_max: Some(1), ..options(AcceptTopology::Reuseport, 1) };
    let server = RunningServer::start(options, move |_| Fragile(tell.clone())).unwrap();
    let mut client = connect(server.addr());
    client.write_all(b"!").unwrap();
    read_ok(&mut client);
    drop(client);
    assert!(server.wait_until(|open| open == 0, PATIENCE));
    assert!(is_turned_away(server.addr()), "its state could not be made");
    // The only permit was returned both times.
    let mut client = connect(server.addr());
    ask(&mut client);
    let gone = told.recv_timeout(PATIENCE).unwrap();
    server.handle().send_message(gone, Touchy(true)).unwrap();
    ask(&mut client);
    eventually("three panics", || snapshot(&server).core.panics == 3);
    assert_eq!(snapshot(&server).counters.closed, 2);
    assert!(server.stop(), "no core has panicked");
}

#[test]
#[should_panic = "a handler could not be made"]
fn a_server_whose_handler_cannot_be_made_does_not_start() {
    let _ = RunningServer::start(options(AcceptTopology::Reuseport, 2), |core| {
        assert_eq!(core, 0, "as asked (this is the test's)");
        kinds::Ok
    });
}

#[test]
fn a_connection_knows_its_addresses() {
    let (server, _told) = puppets(options(AcceptTopology::Reuseport, 1));
    let mut client = connect(server.addr());
    client.write_all(b"a").unwrap();
    let expected = format!("{:?}", (client.local_addr().unwrap(), server.addr()));
    let mut answer = vec![0; expected.len()];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(String::from_utf8(answer).unwrap(), expected);
}

#[test]
fn a_reset_is_a_reset() {
    let (server, told) = puppets(options(AcceptTopology::Reuseport, 1));
    let mut client = connect(server.addr());
    client.write_all(b"r").unwrap();
    let error = client.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert!(matches!(told.recv_timeout(PATIENCE), Ok(Told::Open(_))));
    assert_eq!(told.recv_timeout(PATIENCE), Ok(Told::Ended(DisconnectReason::Local)));
    drop(server);
}

#[test]
fn pongs_follow_pings_however_they_are_cut() {
    let server =
        RunningServer::start(options(AcceptTopology::Reuseport, 1), |_| kinds::PingPong).unwrap();
    let mut client = connect(server.addr());
    for part in [&b"Pi"[..], b"ngPing", b"P", b"ing"] {
        client.write_all(part).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut answer = [0; 12];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"PongPongPong");
    client.write_all(b"Pink").unwrap();
    assert!(is_closed_by_peer(&mut client));
}

#[test]
fn an_echo_returns_and_a_hold_keeps_silent() {
    let echo =
        RunningServer::start(options(AcceptTopology::Reuseport, 1), |_| kinds::Echo).unwrap();
    let mut client = connect(echo.addr());
    client.write_all(b"hello").unwrap();
    let mut answer = [0; 5];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"hello");

    let hold =
        RunningServer::start(options(AcceptTopology::Reuseport, 1), |_| kinds::Hold).unwrap();
    let mut client = connect(hold.addr());
    client.write_all(b"hello").unwrap();
    assert!(!is_answered(&mut client));
    assert_eq!(snapshot(&hold).counters.messages_received, 1);
}
