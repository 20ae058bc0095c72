//! Accepting on real sockets: every topology, every limit.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::support::*;
use throng_measure::RunEventKind;
use throng_server::{AcceptTopology, RunningServer, ServerOptions, kinds};

#[test]
fn every_topology_accepts_on_many_cores() {
    for accept in TOPOLOGIES {
        let server = RunningServer::start(options(accept, 4), |_| kinds::Ok).unwrap();
        let mut clients: Vec<TcpStream> = (0..200).map(|_| connect(server.addr())).collect();
        clients.iter_mut().for_each(ask);
        let counted = snapshot(&server);
        assert_eq!(counted.counters.accepted, 200, "{accept}");
        assert_eq!(counted.counters.messages_sent, 200, "{accept}");
        assert_eq!(counted.open_per_core.iter().sum::<u64>(), 200, "{accept}");
        match accept {
            // The one registry assigns cores in turn.
            AcceptTopology::Dispatch => assert_eq!(counted.open_per_core, [50; 4]),
            AcceptTopology::Reuseport => {
                assert!(counted.open_per_core.iter().all(|&open| open > 10))
            }
            // The core that wakes first accepts; nothing is promised.
            AcceptTopology::Shared => {}
        }
        drop(clients);
        assert!(server.wait_until(|open| open == 0, PATIENCE), "{accept}");
        let counters = snapshot(&server).counters;
        assert_eq!((counters.closed, counters.open), (200, 0), "{accept}");
        assert!(server.stop(), "{accept}: no core has panicked");
    }
}

#[test]
fn ipv6_is_listened_on() {
    for accept in TOPOLOGIES {
        let options = ServerOptions { listen: "[::1]:0".parse().unwrap(), ..options(accept, 2) };
        let server = RunningServer::start(options, |_| kinds::Ok).unwrap();
        assert!(server.addr().is_ipv6());
        ask(&mut connect(server.addr()));
    }
}

#[test]
fn connections_max_is_reached_and_left_again_under_churn_and_never_exceeded() {
    const MAX: u64 = 40;
    for accept in TOPOLOGIES {
        let options = ServerOptions { connections_max: Some(MAX as usize), ..options(accept, 3) };
        let server = RunningServer::start(options, |_| Counting).unwrap();
        let served = AtomicU64::new(0);
        let mut first: Vec<_> = (0..MAX).map(|_| connect(server.addr())).collect();
        first.iter_mut().for_each(ask);
        std::thread::scope(|scope| {
            // Twice as many clients as there are permits, each connecting again and again. All of
            // them are served only if every returned permit wakes a waiting core, whichever core
            // that is.
            let clients: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..40 {
                            served.fetch_add(serve_all(&server, 10), SeqCst);
                        }
                    })
                })
                .collect();
            // The limit is reached in any order of events: the others connect while these are open.
            eventually(accept.name(), || snapshot(&server).counters.pauses_max > 0);
            drop(first);
            for client in clients {
                client.join().unwrap();
            }
        });
        assert_eq!(served.load(SeqCst), 8 * 40 * 10, "{accept}");
        assert!(MOST_OPEN.load(SeqCst) <= MAX, "{accept}: {} were open", MOST_OPEN.load(SeqCst));
        assert_eq!(MOST_OPEN.swap(0, SeqCst), MAX, "{accept}: the limit was never reached");
        assert!(server.wait_until(|open| open == 0, PATIENCE), "{accept}");
        let events = server.events();
        let reached = |kind: &RunEventKind| {
            matches!(kind, RunEventKind::ConnectionsMaxReached { connections_max: MAX })
        };
        assert!(events.iter().any(|event| reached(&event.kind)), "{accept}: {events:?}");
        assert!(server.stop());
    }
}

/// Opens `count` connections at a time and closes each one as soon as it is served. Returns how
/// many were served.
fn serve_all<H: throng_server::Handler>(server: &RunningServer<H>, count: usize) -> u64 {
    let mut streams: Vec<_> = (0..count).map(|_| connect(server.addr())).collect();
    for stream in &mut streams {
        stream.write_all(b"?").unwrap();
        stream.set_nonblocking(true).unwrap();
    }
    let mut served = 0;
    let deadline = Instant::now() + PATIENCE;
    while !streams.is_empty() && Instant::now() < deadline {
        let before = streams.len();
        streams.retain_mut(|stream| !matches!(stream.read(&mut [0; 2]), Ok(2)));
        served += (before - streams.len()) as u64;
        if before == streams.len() {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    served
}

/// Returns the number of connections open over all cores, as the handlers count it.
static OPEN: AtomicU64 = AtomicU64::new(0);
static MOST_OPEN: AtomicU64 = AtomicU64::new(0);

struct Counting;

impl throng_server::Handler for Counting {
    type Session = throng_server::Raw;
    type State = ();
    type Message = std::convert::Infallible;

    fn open(&mut self, _conn: &mut throng_server::Connection<'_, Self>) {
        MOST_OPEN.fetch_max(OPEN.fetch_add(1, SeqCst) + 1, SeqCst);
    }

    fn event(&mut self, conn: &mut throng_server::Connection<'_, Self>, _bytes: &[u8]) {
        conn.send(b"ok");
    }

    fn close(
        &mut self,
        _conn: &mut throng_server::Connection<'_, Self>,
        _why: throng_server::DisconnectReason,
    ) {
        OPEN.fetch_sub(1, SeqCst);
    }
}

#[test]
fn a_waiting_connect_is_served_when_any_core_frees_a_place() {
    for accept in TOPOLOGIES {
        let options = ServerOptions { connections_max: Some(8), ..options(accept, 4) };
        let server = RunningServer::start(options, |_| kinds::Ok).unwrap();
        let mut open: Vec<TcpStream> = (0..8).map(|_| connect(server.addr())).collect();
        open.iter_mut().for_each(ask);
        let mut waiting: Vec<TcpStream> = (0..8).map(|_| connect(server.addr())).collect();
        for stream in &mut waiting {
            stream.write_all(b"?").unwrap();
        }
        assert!(!is_answered(&mut waiting[0]), "{accept}");
        open.iter_mut().for_each(ask);
        // For each connection that closes, one waiting connection is accepted: the kernel chooses
        // which, and in the end none remains.
        for left in (0..8).rev() {
            drop(open.pop());
            eventually("one more is accepted", || server.snapshot().counters.accepted == 16 - left);
        }
        waiting.iter_mut().for_each(read_ok);
        drop(waiting);
        assert!(server.wait_until(|open| open == 0, PATIENCE), "{accept}");
    }
}

#[test]
fn accepting_goes_on_after_a_storm_of_connects_that_are_gone_already() {
    for accept in TOPOLOGIES {
        let server = RunningServer::start(options(accept, 2), |_| kinds::Ok).unwrap();
        for _ in 0..300 {
            drop(connect(server.addr()));
        }
        ask(&mut connect(server.addr()));
        assert!(server.wait_until(|open| open == 0, PATIENCE), "{accept}");
    }
}

#[test]
fn a_registrys_mailbox_is_measured() {
    let server = RunningServer::start(options(AcceptTopology::Dispatch, 2), |_| kinds::Ok).unwrap();
    let clients: Vec<_> = (0..50).map(|_| connect(server.addr())).collect();
    assert!(server.wait_until(|open| open == 50, PATIENCE));
    drop(clients);
    // Other calls that count connections take no maxima away from the snapshot.
    assert!(server.wait_until(|open| open == 0, PATIENCE));
    assert_eq!(server.open(), 0);
    let first = snapshot(&server);
    assert!(first.counters.registry_mailbox_most >= 1);
    assert!(first.core.turn_us_most > 0);
    assert_eq!(snapshot(&server).counters.registry_mailbox_most, 0, "nothing came since");
}
