//! Keys, reused places of the table, and callbacks that panic.

use std::time::Duration;

use throng_base::Key;
use throng_driver::{ConnectSpec, SocketClose};
use throng_engine::{CloseReason, CoreLimits};
use throng_proto::Raw;
use throng_sim::{Faults, SimCoresOptions, check, check_over_all};

use crate::scripted::{Callback, CoreCallback, Raws, dial, spawn, spawn_on, to_server};

/// Returns an app that sends back the bytes that it receives.
fn echo() -> Raws<false> {
    Raws::new(|conn, callback| match callback {
        Callback::Event(bytes) => conn.send(bytes),
        Callback::Finished => conn.close(),
        _ => {}
    })
    .with_listener()
}

#[test]
fn a_stale_event_does_not_reach_the_new_entry_of_its_place() {
    check_over_all(20, |sim| {
        // A busy core gets wake-ups and events of sockets in one batch.
        sim.set_faults(Faults { turn_max: Duration::from_micros(300), ..Faults::none() });
        spawn(sim, echo(), CoreLimits::default());
        let mut prng = sim.prng();
        // Users connect again after their connection closes. A wake-up closes connections.
        let app = Raws::<true>::new(|conn, callback| match callback {
            Callback::Opened => {
                let sent = conn.send_now(b"hello");
                assert_eq!(sent.taken, 5, "the connection was reported open and is not");
            }
            Callback::Closed(CloseReason::Requested) => conn.connect(to_server()),
            Callback::Event(_) | Callback::Drained => {}
            other => panic!("{other:?}"),
        })
        .keep_entries()
        .on_core(move |cx, callback| {
            if callback == CoreCallback::Woken {
                for key in cx.keys() {
                    if prng.below(2) == 0 {
                        cx.close(key, SocketClose::Reset);
                    }
                }
            }
        });
        let cores = sim.cores(&SimCoresOptions::default());
        let client = spawn_on(sim, &cores, vec![app], CoreLimits::default()).remove(0);
        (0..10).for_each(|id| {
            dial(&client, id);
        });
        let mut prng = sim.prng();
        for _ in 0..300 {
            cores.wake(0);
            sim.run_for(Duration::from_nanos(prng.below(300_000)));
        }
        sim.run_for(Duration::from_secs(1));
        assert_eq!(client.borrow_mut().cx().counters().panics, 0);
        let core = client.borrow();
        assert!(core.app().count(|callback| *callback == Callback::Opened) > 100);
        let open = sim.sockets() - 1;
        assert_eq!(open, 20, "ten connections, both ends of each");
    });
}

/// Runs a server that panics in the callback that `when` selects, for connection 3, and checks that
/// only this connection ends.
fn panics(when: fn(&Callback) -> bool) {
    check_over_all(3, move |sim| {
        let server = Raws::<false>::new(move |conn, callback| {
            assert!(*conn.state() != 3 || !when(callback), "panic of the test");
            match callback {
                Callback::Opened => {
                    conn.set_deadline(throng_engine::Deadline::Exact(
                        conn.now() + Duration::from_millis(10),
                    ));
                }
                Callback::Event(bytes) => conn.send(bytes),
                Callback::Finished => conn.close(),
                _ => {}
            }
        });
        let server = spawn(sim, server.with_listener(), CoreLimits::default());
        let client = Raws::<true>::new(|conn, callback| match callback {
            Callback::Opened => {
                conn.send(b"hello");
                conn.set_deadline(throng_engine::Deadline::Exact(
                    conn.now() + Duration::from_secs(1),
                ));
            }
            Callback::Deadline | Callback::Finished => conn.close(),
            _ => {}
        });
        let client = spawn(sim, client, CoreLimits::default());
        (0..10).for_each(|id| {
            dial(&client, id);
        });
        sim.run_for(Duration::from_secs(10));
        let counters = server.borrow_mut().cx().counters();
        assert_eq!((counters.panics, counters.slots, counters.pending_bytes), (1, 0, 0));
        let core = server.borrow();
        for id in 0..10 {
            let callback = core.app().callbacks_of(id);
            let closes =
                callback.iter().filter(|callback| matches!(callback, Callback::Closed(_))).count();
            assert_eq!(closes, 1);
            if id != 3 {
                assert_eq!(core.app().bytes_of(id), b"hello");
            }
        }
        assert_eq!(sim.dropped_sockets(), 0);
        assert_eq!(sim.files(), 1);
    });
}

#[test]
fn a_panic_when_opened_ends_one_connection() {
    panics(|callback| *callback == Callback::Opened);
}

#[test]
fn a_panic_in_an_event_ends_one_connection() {
    panics(|callback| matches!(callback, Callback::Event(_)));
}

#[test]
fn a_panic_at_a_deadline_ends_one_connection() {
    panics(|callback| *callback == Callback::Deadline);
}

#[test]
fn a_panic_when_finished_ends_one_connection() {
    panics(|callback| *callback == Callback::Finished);
}

#[test]
fn a_panic_when_closed_leaves_nothing_behind() {
    panics(|callback| matches!(callback, Callback::Closed(_)));
}

#[test]
fn a_panic_from_outside_its_callbacks_ends_one_connection() {
    check_over_all(1, |sim| {
        let core = spawn(sim, Raws::<false>::new(|_, _| ()), CoreLimits::default());
        {
            let mut core = core.borrow_mut();
            let cx = core.cx();
            let key = cx.insert(Raw, 0);
            cx.insert(Raw, 1);
            let done = cx.with(key, |_| panic!("panic of the test"));
            assert_eq!(done, None::<()>);
        }
        sim.run_for(Duration::from_secs(1));
        let counters = core.borrow_mut().cx().counters();
        assert_eq!((counters.panics, counters.slots), (1, 1));
        let closed = Callback::Closed(CloseReason::Panicked);
        assert_eq!(core.borrow().app().callbacks_of(0), [closed]);
    });
}

#[test]
fn a_socket_that_cannot_be_watched_leaves_no_entry() {
    check(3, |sim| {
        let server = {
            sim.set_faults(Faults { no_watch: 1.0, ..Faults::none() });
            spawn(sim, echo(), CoreLimits::default())
        };
        sim.set_faults(Faults::none());
        let client = Raws::<true>::new(|conn, callback| {
            if *callback == Callback::Finished {
                conn.close();
            }
        });
        let client = spawn(sim, client, CoreLimits::default());
        dial(&client, 0);
        sim.run_for(Duration::from_secs(1));
        assert_eq!(server.borrow().app().refused, 1);
        assert_eq!(server.borrow().app().log, []);
        assert!(server.borrow_mut().cx().is_empty());
        let closed = Callback::Closed(CloseReason::Requested);
        assert_eq!(
            client.borrow().app().callbacks_of(0),
            [Callback::Opened, Callback::Finished, closed]
        );
        assert_eq!(sim.files(), 1);
    });
}

/// Returns a connect that fails at once if another one has taken its port.
fn from_one_port() -> ConnectSpec {
    let mut spec = to_server();
    spec.source = throng_driver::SourceAddress::Explicit("127.0.0.1:9".parse().unwrap());
    spec
}

#[test]
fn a_connect_that_fails_at_once_is_reported_once_and_before_any_other_callback() {
    check_over_all(5, |sim| {
        spawn(sim, echo(), CoreLimits::default());
        // The first connect takes the port, and the second fails. A notification is between the
        // failure and its report.
        let app = Raws::<true>::new(|conn, callback| match callback {
            Callback::Notified => conn.connect(to_server()),
            Callback::Opened => conn.send(b"hello"),
            _ => {}
        })
        .on_core(|cx, callback| {
            if callback == CoreCallback::Message(0) {
                let keys: Vec<Key> = (0..2).map(|id| cx.insert(Raw, id)).collect();
                cx.with(keys[0], |conn| conn.connect(from_one_port()));
                cx.notify(keys[1]);
                cx.with(keys[1], |conn| conn.connect(from_one_port()));
            }
        });
        let cores = sim.cores(&SimCoresOptions::default());
        let client = spawn_on(sim, &cores, vec![app], CoreLimits::default()).remove(0);
        cores.send_message(0, 0);
        sim.run_for(Duration::from_secs(1));
        let core = client.borrow();
        let failed = CloseReason::ConnectFailed(throng_driver::Errno::ADDR_NOT_AVAILABLE);
        assert_eq!(core.app().callbacks_of(1), [Callback::Closed(failed)]);
        assert_eq!(core.app().bytes_of(0), b"hello");
        assert_eq!(sim.dropped_sockets(), 0);
    });
}
