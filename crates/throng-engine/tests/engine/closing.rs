//! The end of connections.

use std::time::Duration;

use throng_base::Prng;
use throng_base::wheel::TICK;
use throng_driver::{Errno, SocketClose, Sockets};
use throng_engine::{CloseReason, CoreLimits, Deadline};
use throng_sim::{Faults, Sim, SimCoresOptions, SimFd, check, check_over_all};

use crate::scripted::{Callback, LogEntry, Raws, dial, spawn, to_server};

/// Returns more bytes than any window takes at once.
fn a_lot() -> Vec<u8> {
    let mut bytes = vec![0; 400_000];
    Prng::new(1).fill(&mut bytes);
    bytes
}

/// Returns faults with small windows, so that sends block, and no delays that make a run long.
fn narrow() -> Faults {
    Faults { window_bytes_min: 1_000, window_bytes_max: 9_000, ..Faults::none() }
}

fn is_closed(callback: &Callback) -> bool {
    matches!(callback, Callback::Closed(_))
}

/// Returns an app that receives, and closes when the peer has finished.
fn listener() -> Raws<false> {
    Raws::new(|conn, callback| {
        if *callback == Callback::Finished {
            conn.close();
        }
    })
    .with_listener()
}

#[test]
fn a_close_delivers_the_queued_bytes() {
    check_over_all(10, |sim| {
        sim.set_faults(narrow());
        let server = spawn(sim, listener(), CoreLimits::default());
        let client = Raws::<true>::new(|conn, callback| {
            if *callback == Callback::Opened {
                conn.send(&a_lot());
                conn.close();
            }
        });
        let client = spawn(sim, client, CoreLimits::default());
        dial(&client, 0);
        sim.run_for(Duration::from_secs(4));
        assert_eq!(server.borrow().app().bytes_of(0), a_lot());
        assert_eq!(
            client.borrow().app().callbacks_of(0),
            [Callback::Opened, Callback::Closed(CloseReason::Requested)]
        );
        assert_eq!(client.borrow_mut().cx().counters().pending_bytes, 0);
    });
}

#[test]
fn a_finish_follows_the_queued_bytes() {
    check_over_all(10, |sim| {
        sim.set_faults(narrow());
        let server = spawn(sim, listener(), CoreLimits::default());
        let client = Raws::<true>::new(|conn, callback| match callback {
            Callback::Opened => {
                conn.send(&a_lot());
                conn.finish();
            }
            Callback::Finished => conn.close_because(CloseReason::Finished),
            _ => {}
        });
        let client = spawn(sim, client, CoreLimits::default());
        dial(&client, 0);
        sim.run_for(Duration::from_secs(4));
        assert_eq!(server.borrow().app().bytes_of(0), a_lot());
        let callback = client.borrow().app().callbacks_of(0);
        let closed = Callback::Closed(CloseReason::Finished);
        assert_eq!(callback, [Callback::Opened, Callback::Drained, Callback::Finished, closed]);
    });
}

#[test]
fn the_peers_finish_is_reported_once() {
    check_over_all(10, |sim| {
        sim.set_faults(Faults { spurious: 0.5, ..narrow() });
        // Sends for a long time after the client has finished, so that many events report the end
        // again.
        let server = Raws::<false>::new(|conn, callback| {
            if *callback == Callback::Finished {
                conn.send(&a_lot());
                conn.close();
            }
        });
        let client = Raws::<true>::new(|conn, callback| match callback {
            Callback::Opened => conn.finish(),
            Callback::Finished => {
                conn.set_deadline(Deadline::Exact(conn.now() + Duration::from_secs(1)))
            }
            Callback::Deadline => conn.close(),
            _ => {}
        });
        let server = spawn(sim, server.with_listener(), CoreLimits::default());
        let client = spawn(sim, client, CoreLimits::default());
        dial(&client, 0);
        sim.run_for(Duration::from_secs(10));
        assert_eq!(client.borrow().app().bytes_of(0), a_lot());
        for core in [client.borrow().app().callbacks_of(0), server.borrow().app().callbacks_of(0)] {
            let ends = core.iter().filter(|callback| **callback == Callback::Finished).count();
            assert_eq!((ends, core.iter().filter(|callback| is_closed(callback)).count()), (1, 1));
        }
    });
}

#[test]
fn a_half_closed_connection_that_fails_is_closed() {
    check_over_all(10, |sim| {
        // The client finishes, and resets a second later; the server only listens.
        let server =
            spawn(sim, Raws::<false>::new(|_, _| ()).with_listener(), CoreLimits::default());
        let client = Raws::<true>::new(|conn, callback| match callback {
            Callback::Opened => {
                conn.finish();
                conn.set_deadline(Deadline::Exact(conn.now() + Duration::from_secs(1)));
            }
            Callback::Deadline => conn.reset(),
            _ => {}
        });
        let client = spawn(sim, client, CoreLimits::default());
        dial(&client, 0);
        sim.run_for(Duration::from_secs(10));
        let failed = Callback::Closed(CloseReason::Failed(Errno::PIPE));
        assert_eq!(
            server.borrow().app().callbacks_of(0),
            [Callback::Opened, Callback::Finished, failed]
        );
    });
}

#[test]
fn a_close_that_waits_is_not_hurried_by_another() {
    check_over_all(10, |sim| {
        sim.set_faults(narrow());
        let server = spawn(sim, listener(), CoreLimits::default());
        let client = Raws::<true>::new(|conn, callback| match callback {
            Callback::Opened => {
                conn.send(&a_lot());
                conn.close();
            }
            // Every request now is too late.
            _ => {
                conn.send(b"too late");
                conn.set_deadline(Deadline::Never);
                conn.close();
            }
        });
        let client = spawn(sim, client, CoreLimits::default());
        let key = dial(&client, 0);
        sim.run_for(Duration::from_millis(1));
        {
            let mut core = client.borrow_mut();
            let cx = core.cx();
            assert!(cx.counters().pending_bytes > 0);
            cx.notify(key);
            cx.close(key, SocketClose::Finish);
            cx.with(key, |conn| {
                conn.send(b"too late");
                conn.set_deadline(Deadline::Never);
                conn.close();
            });
        }
        sim.run_for(Duration::from_secs(4));
        assert_eq!(server.borrow().app().bytes_of(0), a_lot());
        let closed = Callback::Closed(CloseReason::Requested);
        assert_eq!(client.borrow().app().callbacks_of(0), [Callback::Opened, closed]);
    });
}

#[test]
fn a_close_that_waits_keeps_its_reason() {
    check_over_all(5, |sim| {
        sim.set_faults(narrow());
        let server = Raws::<true>::new(|conn, callback| match callback {
            Callback::Opened => conn.send(&a_lot()),
            Callback::Finished => conn.close_because(CloseReason::Finished),
            _ => {}
        });
        let server = spawn(sim, server.with_listener(), CoreLimits::default());
        let client = Raws::<true>::new(|conn, callback| match callback {
            Callback::Opened => conn.finish(),
            Callback::Finished => conn.close(),
            _ => {}
        });
        let client = spawn(sim, client, CoreLimits::default());
        dial(&client, 0);
        sim.run_for(Duration::from_secs(4));
        assert_eq!(client.borrow().app().bytes_of(0), a_lot());
        let closed = Callback::Closed(CloseReason::Finished);
        assert_eq!(
            server.borrow().app().callbacks_of(0),
            [Callback::Opened, Callback::Finished, closed]
        );
    });
}

/// Connects a peer that never receives, like a stopped program.
fn silent_peer(sim: &mut Sim) -> SimFd {
    let mut driver = sim.cores::<()>(&SimCoresOptions::default()).drivers().remove(0);
    driver.connect(&to_server()).unwrap()
}

#[test]
fn a_close_that_the_peer_does_not_take_is_a_reset_after_the_drain_timeout() {
    check(5, |sim| {
        sim.set_faults(narrow());
        let server = Raws::<false>::new(|conn, callback| {
            if *callback == Callback::Opened {
                conn.send(&a_lot());
                conn.close();
            }
        });
        let server = spawn(sim, server.with_listener(), CoreLimits::default());
        let peer = silent_peer(sim);
        let begin = sim.now();
        sim.run_for(Duration::from_secs(20));
        let core = server.borrow();
        let [LogEntry { callback: Callback::Opened, .. }, LogEntry { callback, at, .. }] =
            &core.app().log[..]
        else {
            panic!("{:?}", core.app().log)
        };
        assert_eq!(*callback, Callback::Closed(CloseReason::Overflow));
        let took = at.since(begin);
        let drain_timeout = CoreLimits::default().drain_timeout;
        assert!(drain_timeout <= took && took <= drain_timeout + 2 * TICK, "{took:?}");
        drop(core);
        assert_eq!(server.borrow_mut().cx().counters().pending_bytes, 0);
        drop(peer);
    });
}

#[test]
fn a_peer_that_does_not_read_is_not_read_and_closed_when_too_much_waits() {
    check(5, |sim| {
        sim.set_faults(narrow());
        // Answers each request with ten times its bytes. The client sends as much as it can, and
        // reads nothing.
        let server = Raws::<false>::new(|conn, callback| {
            if let Callback::Event(bytes) = callback {
                conn.send(&bytes.repeat(10));
            }
        });
        let limits = CoreLimits { receive_bytes: 1_000, ..CoreLimits::default() };
        let server = spawn(sim, server.with_listener(), limits);
        let mut driver = sim.cores::<()>(&SimCoresOptions::default()).drivers().remove(0);
        let peer = driver.connect(&to_server()).unwrap();
        for _ in 0..1_000 {
            let _ = driver.send(&peer, &[7; 3_000]);
            sim.run_for(Duration::from_millis(1));
        }
        let core = server.borrow_mut().cx().counters();
        assert_eq!(
            (core.slots, core.pending_overflows),
            (1, 0),
            "the connection is paused, not closed"
        );
        // At most the answers to one receive, beside the bytes in the windows.
        assert!(core.pending_bytes <= 10_000, "{}", core.pending_bytes);
        assert!(core.bytes_received <= 30_000, "{}", core.bytes_received);

        // Bytes without a request have a limit.
        let key = server.borrow_mut().cx().keys()[0];
        server.borrow_mut().cx().with(key, |conn| conn.send(&vec![0; limits.pending_bytes_max]));
        sim.run_for(Duration::from_millis(1));
        let core = server.borrow_mut().cx().counters();
        assert_eq!((core.slots, core.pending_overflows, core.pending_bytes), (0, 1, 0));
        let callback = server.borrow().app().callbacks();
        assert_eq!(callback.last(), Some(&Callback::Closed(CloseReason::Overflow)));
        drop(peer);
    });
}

#[test]
fn bytes_of_one_callback_into_an_empty_queue_are_delivered_beyond_the_limit() {
    check(10, |sim| {
        sim.set_faults(narrow());
        // The answers are larger than the limit of waiting bytes.
        let server = Raws::<false>::new(|conn, callback| match callback {
            Callback::Opened => {
                conn.send_now(&a_lot()[..200_000]);
                conn.send(&a_lot()[200_000..]);
            }
            Callback::Event(bytes) => conn.send(bytes),
            _ => {}
        });
        let limits = CoreLimits { pending_bytes_max: 50_000, ..CoreLimits::default() };
        let server = spawn(sim, server.with_listener(), limits);
        let client = Raws::<true>::new(|conn, callback| {
            if *callback == Callback::Opened {
                conn.send(b"and this");
            }
        });
        let client = spawn(sim, client, CoreLimits::default());
        dial(&client, 0);
        sim.run_for(Duration::from_secs(4));
        let mut want = a_lot();
        want.extend(b"and this");
        assert!(client.borrow().app().bytes_of(0) == want);
        let core = server.borrow_mut().cx().counters();
        assert_eq!((core.slots, core.pending_overflows, core.pending_bytes), (1, 0, 0));

        // The limit for bytes behind the queue is the usual one.
        let peer = silent_peer(sim);
        sim.run_for(Duration::from_millis(10));
        let key = *server.borrow_mut().cx().keys().last().unwrap();
        let mut core = server.borrow_mut();
        core.cx().with(key, |conn| conn.send(&[0; 50_000]));
        assert_eq!(core.cx().counters().pending_overflows, 0);
        core.cx().with(key, |conn| conn.send(b"."));
        assert_eq!(core.cx().counters().pending_overflows, 1);
        drop((core, peer));
    });
}
