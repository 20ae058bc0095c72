//! How connections end.

use std::time::Duration;

use throng_base::Prng;
use throng_base::wheel::TICK;
use throng_driver::{Driver, Errno, SocketClose};
use throng_engine::{CloseReason, CoreLimits, Deadline};
use throng_sim::{Faults, Sim, SimCoresOptions, SimFd, check};

use crate::scripted::{Callback, LogEntry, Raws, dial, spawn, to_server};

/// So much that no window takes it at once.
fn a_lot() -> Vec<u8> {
    let mut bytes = vec![0; 400_000];
    Prng::new(1).fill(&mut bytes);
    bytes
}

/// Small windows, so that sends block, and no delays that make a run long.
fn narrow() -> Faults {
    Faults { window_bytes_min: 1_000, window_bytes_max: 9_000, ..Faults::none() }
}

fn is_closed(callback: &Callback) -> bool {
    matches!(callback, Callback::Closed(_))
}

/// Receives, and closes once the other end has finished.
fn listener() -> Raws<false> {
    Raws::new(|conn, callback| {
        if *callback == Callback::Finished {
            conn.close();
        }
    })
    .with_listener()
}

#[test]
fn a_close_delivers_what_waits() {
    check(10, |sim| {
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
fn a_finish_follows_what_waits() {
    check(10, |sim| {
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
fn the_end_of_the_other_side_is_told_once() {
    check(10, |sim| {
        sim.set_faults(Faults { spurious: 0.5, ..narrow() });
        // Goes on sending for long after the client has finished, so that many events tell the end
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
    check(10, |sim| {
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
    check(10, |sim| {
        sim.set_faults(narrow());
        let server = spawn(sim, listener(), CoreLimits::default());
        let client = Raws::<true>::new(|conn, callback| match callback {
            Callback::Opened => {
                conn.send(&a_lot());
                conn.close();
            }
            // Whatever is asked for now comes too late.
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
    check(5, |sim| {
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

/// Takes nothing: a program that is stopped, or that is busy for ever.
fn deaf_peer(sim: &mut Sim) -> SimFd {
    let mut driver = sim.cores::<()>(&SimCoresOptions::default()).drivers().remove(0);
    driver.connect(&to_server()).unwrap()
}

#[test]
fn a_close_that_nobody_takes_is_a_reset_after_the_drain_timeout() {
    check(5, |sim| {
        sim.set_faults(narrow());
        let server = Raws::<false>::new(|conn, callback| {
            if *callback == Callback::Opened {
                conn.send(&a_lot());
                conn.close();
            }
        });
        let server = spawn(sim, server.with_listener(), CoreLimits::default());
        let peer = deaf_peer(sim);
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
fn who_does_not_read_is_not_read_and_closed_when_too_much_waits() {
    check(5, |sim| {
        sim.set_faults(narrow());
        // Answers everything tenfold; the client asks for as much as it is let, and reads nothing.
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
        assert_eq!((core.slots, core.pending_overflows), (1, 0), "it is paused, not closed");
        // One receive's answers at the most, beside what the windows hold.
        assert!(core.pending_bytes <= 10_000, "{}", core.pending_bytes);
        assert!(core.bytes_received <= 30_000, "{}", core.bytes_received);

        // What is sent without being asked for has its limit.
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
fn what_one_callback_sends_while_nothing_waits_is_delivered_however_much_it_is() {
    check(10, |sim| {
        sim.set_faults(narrow());
        // Answers are larger than what may wait; the client asks several times in one segment.
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

        // Behind what waits there is room for so much as there always is.
        let peer = deaf_peer(sim);
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
