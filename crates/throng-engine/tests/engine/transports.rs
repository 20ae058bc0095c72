//! The stage of the handshake, and what a transport does with peers that break its rules.

use std::time::Duration;

use throng_driver::{Errno, SocketClose};
use throng_engine::{CloseReason, CoreLimits, TransportCounters};
use throng_proto::TransportError;
use throng_sim::{Faults, PeerSocket, Sim, SimPeers, ToyTransport, check};

use crate::scripted::{Callback, Raws, RunningCore, dial, spawn, to_server};

type Server = RunningCore<throng_proto::Raw, false>;

/// Starts a server over the toy that sends back what it receives, and peers of it.
fn start(sim: &mut Sim, limits: CoreLimits) -> (Server, SimPeers) {
    sim.set_transport(ToyTransport::factory());
    let echo = Raws::<false>::new(|conn, callback| {
        if let Callback::Event(bytes) = callback {
            conn.send(bytes);
        }
    });
    (spawn(sim, echo.with_listener(), limits), sim.peers())
}

/// Connects a peer and runs the world until its transport is open.
fn open_peer(sim: &mut Sim, peers: &mut SimPeers) -> PeerSocket {
    let peer = peers.connect(&to_server()).unwrap();
    for _ in 0..100 {
        sim.run_for(Duration::from_millis(1));
        if peers.send(&peer, b"hi").is_ok() {
            sim.run_for(Duration::from_millis(10));
            let mut echo = [0; 10];
            assert_eq!((peers.recv(&peer, &mut echo), &echo[..2]), (Ok(2), &b"hi"[..]));
            return peer;
        }
    }
    panic!("the transport does not open");
}

fn counters(server: &Server) -> TransportCounters {
    server.borrow_mut().cx().transport_counters()
}

fn failed(error: TransportError) -> Callback {
    Callback::Closed(CloseReason::TransportFailed(error))
}

#[test]
fn the_app_learns_of_a_connection_when_its_transport_is_open() {
    check(5, |sim| {
        let delay = Duration::from_millis(10);
        sim.set_faults(Faults { delay_min: delay, delay_max: delay, ..Faults::none() });
        let (server, _) = start(sim, CoreLimits::default());
        let client = spawn(sim, Raws::<true>::new(|_, _| ()), CoreLimits::default());
        let begin = sim.now();
        dial(&client, 7);
        sim.run_for(Duration::from_millis(35));
        assert!(client.borrow().app().log.is_empty(), "TCP is established, the transport is not");
        assert_eq!(
            counters(&server),
            TransportCounters { handshakes: 1, under_way: 1, ..TransportCounters::default() }
        );
        sim.run_for(Duration::from_millis(35));
        // A round trip of TCP, one of the toy.
        let opened_after = client.borrow().app().log[0].at.since(begin);
        assert!(opened_after >= 4 * delay && opened_after < 5 * delay, "{opened_after:?}");
        let opened_after = server.borrow().app().log[0].at.since(begin);
        assert!(opened_after >= 5 * delay && opened_after < 6 * delay, "{opened_after:?}");
        assert_eq!(
            counters(&server),
            TransportCounters { handshakes: 1, opened: 1, ..TransportCounters::default() }
        );
    });
}

#[test]
fn a_peer_that_ends_its_handshake_asks_and_finishes_in_one_flight_is_served() {
    for request in [&b"hi"[..], b""] {
        check(5, |sim| {
            let delay = Duration::from_millis(10);
            sim.set_faults(Faults { delay_min: delay, delay_max: delay, ..Faults::none() });
            let (server, mut peers) = start(sim, CoreLimits::default());
            let peer = peers.connect(&to_server()).unwrap();
            while peers.send(&peer, request) == Err(Errno::AGAIN) {
                sim.run_for(delay);
            }
            peers.finish(&peer).unwrap();
            sim.run_for(3 * delay);
            let event = Callback::Event(request.to_vec());
            let mut expected = vec![Callback::Opened, event, Callback::Finished];
            expected.retain(|callback| *callback != Callback::Event(Vec::new()));
            assert_eq!(server.borrow().app().callbacks(), expected);
            assert_eq!(counters(&server).opened, 1);
            peers.close(peer, SocketClose::Finish);
        });
    }
}

#[test]
fn a_handshake_that_takes_too_long_closes_the_connection() {
    check(5, |sim| {
        let (server, mut peers) = start(sim, CoreLimits::default());
        let silent = peers.connect(&to_server()).unwrap();
        let slow = peers.connect(&to_server()).unwrap();
        sim.run_for(Duration::from_millis(10));
        // It begins the handshake and does not end it.
        assert_eq!(peers.send(&slow, b""), Err(Errno::AGAIN));
        sim.run_for(CoreLimits::default().handshake_timeout - Duration::from_millis(20));
        assert_eq!(counters(&server).under_way, 1, "the silent one has not begun");
        assert!(server.borrow().app().log.is_empty());
        sim.run_for(Duration::from_secs(1));
        let closed = Callback::Closed(CloseReason::HandshakeTimeout);
        assert_eq!(server.borrow().app().callbacks(), [closed.clone(), closed]);
        let expected =
            TransportCounters { handshakes: 1, handshake_timeouts: 2, ..Default::default() };
        assert_eq!(counters(&server), expected);
        assert_eq!(peers.recv(&silent, &mut [0; 9]), Ok(0));
        peers.close(silent, SocketClose::Finish);
        peers.close(slow, SocketClose::Finish);
    });
}

#[test]
fn a_peer_that_speaks_plain_is_closed_with_a_reason_and_hears_it() {
    check(5, |sim| {
        let (server, mut peers) = start(sim, CoreLimits::default());
        let before = peers.connect(&to_server()).unwrap();
        let behind = open_peer(sim, &mut peers);
        for peer in [&before, &behind] {
            assert_eq!(peers.send_raw(peer, b"GET / HTTP/1.1\r\n\r\n"), Ok(18));
        }
        sim.run_for(Duration::from_millis(10));
        for peer in [before, behind] {
            assert_alert(&mut peers, &peer);
            peers.close(peer, SocketClose::Finish);
        }
        sim.run_for(Duration::from_millis(10));
        let app = server.borrow();
        let closed = failed(ToyTransport::UNKNOWN_RECORD);
        let hi = Callback::Event(b"hi".to_vec());
        let of_both = [0, 1].map(|id| app.app().callbacks_of(id));
        assert!(of_both.contains(&vec![closed.clone()]), "{of_both:?}");
        assert!(of_both.contains(&vec![Callback::Opened, hi, closed]), "{of_both:?}");
        drop(app);
        assert_eq!((counters(&server).failures, counters(&server).linger_limits), (2, 0));
    });
}

/// Asserts that an alert has arrived, and FIN behind it.
#[track_caller]
fn assert_alert(peers: &mut SimPeers, peer: &PeerSocket) {
    let mut alert = [0; 100];
    let received = peers.recv_raw(peer, &mut alert);
    let expected = (Ok(ToyTransport::HEADER_BYTES), ToyTransport::ALERT_BYTE);
    assert_eq!((received, alert[0]), expected);
    assert_eq!(peers.recv_raw(peer, &mut alert), Ok(0));
}

#[test]
fn an_alert_reaches_a_peer_that_has_sent_more_and_goes_on_sending() {
    check(20, |sim| {
        let (server, mut peers) = start(sim, CoreLimits::default());
        let before = peers.connect(&to_server()).unwrap();
        let behind = open_peer(sim, &mut peers);
        for peer in [before, behind] {
            // The first bytes of them are no record.
            for _ in 0..20 {
                let _ = peers.send_raw(&peer, &[b'x'; 3_000]);
                sim.run_for(Duration::from_millis(2));
            }
            sim.run_for(Duration::from_millis(10));
            assert_alert(&mut peers, &peer);
            peers.close(peer, SocketClose::Finish);
        }
        sim.run_for(Duration::from_millis(10));
        let counters = counters(&server);
        assert_eq!((counters.failures, counters.under_way, counters.linger_limits), (2, 0, 0));
        assert_eq!(server.borrow_mut().cx().counters().pending_bytes, 0);
    });
}

#[test]
fn a_peer_that_does_not_close_after_an_alert_is_bounded_in_time_and_bytes() {
    check(5, |sim| {
        let (server, mut peers) = start(sim, CoreLimits::default());
        let [silent, loud] = [(); 2].map(|()| peers.connect(&to_server()).unwrap());
        sim.run_for(Duration::from_millis(10));
        let begin = sim.now();
        assert_eq!(peers.send_raw(&silent, b"no record"), Ok(9));
        let failed = |server: &Server| counters(server).failures;
        while failed(&server) == 0 {
            let _ = peers.send_raw(&loud, &[b'x'; 10_000]);
            sim.run_for(Duration::from_millis(1));
        }
        let timeout = CoreLimits::default().linger_timeout;
        assert!(sim.now().since(begin) < timeout, "256 KiB are enough");
        assert_eq!(counters(&server).linger_limits, 1);
        sim.run_for((begin + timeout + Duration::from_secs(1)).since(sim.now()));
        assert_eq!((failed(&server), counters(&server).linger_limits), (2, 2));
        peers.close(silent, SocketClose::Finish);
        peers.close(loud, SocketClose::Finish);
    });
}

#[test]
fn a_record_that_arrives_twice_or_changed_closes_the_connection() {
    check(5, |sim| {
        let (server, mut peers) = start(sim, CoreLimits::default());
        for (id, error) in [ToyTransport::OUT_OF_ORDER, ToyTransport::TOO_LONG].iter().enumerate() {
            let peer = open_peer(sim, &mut peers);
            let mut record = peers.seal(&peer, b"one");
            peers.send_raw(&peer, &record).unwrap();
            if *error == ToyTransport::TOO_LONG {
                record = peers.seal(&peer, b"two");
                record[5] = 0xFF;
            }
            peers.send_raw(&peer, &record).unwrap();
            sim.run_for(Duration::from_millis(10));
            peers.close(peer, SocketClose::Reset);
            sim.run_for(Duration::from_millis(10));
            // What arrived before is read.
            let app = server.borrow();
            assert_eq!(app.app().bytes_of(id as u32), b"hione");
            assert_eq!(app.app().callbacks_of(id as u32).last(), Some(&failed(*error)));
        }
    });
}

#[test]
fn a_record_that_never_ends_is_bounded_in_time() {
    check(5, |sim| {
        let (server, mut peers) = start(sim, CoreLimits::default());
        let (slow, quick) = (open_peer(sim, &mut peers), open_peer(sim, &mut peers));
        let begin = sim.now();
        let record = peers.seal(&slow, &[7; 900]);
        // One byte at a time does not extend the time.
        for (sent, byte) in record.iter().enumerate() {
            let _ = peers.send_raw(&slow, &[*byte]);
            // Another peer's records all end, and the next one begins in the same read.
            let whole = peers.seal(&quick, &[sent as u8; 10]);
            let (left, right) = whole.split_at(sent % whole.len());
            peers.send_raw(&quick, left).unwrap();
            sim.run_for(Duration::from_millis(25));
            peers.send_raw(&quick, right).unwrap();
        }
        sim.run_for(Duration::from_millis(10));
        let app = server.borrow();
        let closed = app
            .app()
            .log
            .iter()
            .find(|entry| entry.callback == failed(TransportError::RecordTimeout));
        let closed = closed.expect("the slow record ends its connection");
        let took = closed.at.since(begin);
        let timeout = CoreLimits::default().record_timeout;
        assert!(timeout <= took && took <= timeout + Duration::from_secs(2), "{took:?}");
        assert_eq!((closed.id, app.app().bytes_of(1).len()), (0, 2 + 10 * record.len()));
        drop(app);
        let counters = counters(&server);
        assert_eq!((counters.record_timeouts, counters.part_bytes), (1, 0));
        peers.close(slow, SocketClose::Reset);
        peers.close(quick, SocketClose::Reset);
    });
}

#[test]
fn parts_of_records_are_bounded_in_memory() {
    check(3, |sim| {
        let limits = CoreLimits { record_parts_bytes_max: 10_000, ..CoreLimits::default() };
        let (server, mut peers) = start(sim, limits);
        let all: Vec<_> = (0..40).map(|_| open_peer(sim, &mut peers)).collect();
        for peer in &all {
            let record = peers.seal(peer, &[7; 900]);
            peers.send_raw(peer, &record[..800]).unwrap();
            sim.run_for(Duration::from_millis(1));
            assert!(counters(&server).part_bytes <= limits.record_parts_bytes_max);
        }
        let refused = failed(TransportError::RecordsHeld);
        let closed = server.borrow().app().count(|callback| *callback == refused);
        assert!((25..40).contains(&closed), "{closed}");
        assert_eq!(counters(&server).part_bytes, (40 - closed) * 800);
        for peer in all {
            peers.close(peer, SocketClose::Reset);
        }
        sim.run_for(Duration::from_millis(10));
        assert_eq!(counters(&server).part_bytes, 0);
    });
}

#[test]
fn handshakes_beyond_the_limit_wait_for_a_place() {
    check(5, |sim| {
        let limits = CoreLimits { handshakes_max: 3, ..CoreLimits::default() };
        let (server, mut peers) = start(sim, limits);
        let slow: Vec<_> = (0..3).map(|_| peers.connect(&to_server()).unwrap()).collect();
        sim.run_for(Duration::from_millis(10));
        for peer in &slow {
            assert_eq!(peers.send(peer, b""), Err(Errno::AGAIN));
        }
        sim.run_for(Duration::from_secs(9));
        let client = spawn(sim, Raws::<true>::new(|_, _| ()), CoreLimits::default());
        (0..10).for_each(|id| {
            dial(&client, id);
        });
        sim.run_for(Duration::from_millis(500));
        assert_eq!((counters(&server).under_way, counters(&server).opened), (3, 0));
        sim.run_for(Duration::from_secs(5));
        let opened = client.borrow().app().count(|callback| *callback == Callback::Opened);
        assert_eq!((opened, counters(&server).opened), (10, 10));
        slow.into_iter().for_each(|peer| peers.close(peer, SocketClose::Reset));
    });
}

#[test]
fn a_turn_has_work_for_a_few_handshakes_alone() {
    check(5, |sim| {
        let work_bytes_max = CoreLimits::default().handshake_work_bytes_max;
        let of_turn = work_bytes_max / ToyTransport::HELLO_WORK_BYTES;
        sim.set_transport(ToyTransport::factory());
        let mut before = 0;
        let server = Raws::<false>::new(|_, _| ()).with_listener().on_core(move |cx, _| {
            let now = cx.transport_counters().handshakes;
            assert!(now - before <= of_turn as u64, "{} in a turn", now - before);
            before = now;
        });
        // All clients greet it before its first turn.
        sim.set_faults(Faults { turn_max: Duration::from_millis(5), ..Faults::none() });
        let server = spawn(sim, server, CoreLimits::default());
        let client = spawn(
            sim,
            Raws::<true>::new(|_, _| ()),
            CoreLimits { handshake_work_bytes_max: usize::MAX, ..CoreLimits::default() },
        );
        (0..100).for_each(|id| {
            dial(&client, id);
        });
        sim.run_for(Duration::from_secs(3));
        assert_eq!(counters(&server).opened, 100);
    });
}
