//! Fairness: the work of one connection does not delay the other connections of its core.

use std::time::Duration;

use throng_base::Instant;
use throng_driver::{SocketClose, Sockets};
use throng_engine::{CloseReason, CoreLimits, Deadline};
use throng_proto::{Input, Session};
use throng_sim::{Faults, Sim, SimCoresOptions, SimDriver, SimFd, check};

use crate::scripted::{Callback, Scripted, spawn, to_server};

/// Protocol in which each byte is a message that costs as much as `COST` bytes of input.
#[derive(Default)]
struct Costly<const COST: usize>;

impl<const COST: usize> Session for Costly<COST> {
    type Event<'a> = &'a [u8];
    type Scratch = ();

    fn next<'a, 'i: 'a>(
        &mut self,
        _now: Instant,
        input: &mut Input<'i>,
        _scratch: &'a mut (),
        _out: &mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        if input.is_empty() {
            return None;
        }
        input.charge(COST);
        Some(input.take(1))
    }
}

/// Connects a client for each of `sends`, in order. Then all of them send their bytes at one
/// moment.
fn clients(sim: &mut Sim, sends: &[&[u8]]) -> (SimDriver<()>, Vec<SimFd>) {
    let mut driver = sim.cores::<()>(&SimCoresOptions::default()).drivers().remove(0);
    let mut sockets = Vec::new();
    for _ in sends {
        sockets.push(driver.connect(&to_server()).unwrap());
        sim.run_for(Duration::from_millis(10));
    }
    for (socket, bytes) in sockets.iter().zip(sends) {
        assert_eq!(driver.send(socket, bytes), Ok(bytes.len()));
    }
    (driver, sockets)
}

/// Sends `flood` messages on connection 0 and one on connection 1. Checks that the server serves no
/// more than a share of the flood in the turn of the single message.
#[track_caller]
fn check_share<const COST: usize>(flood: usize, limits: CoreLimits) {
    check(5, move |sim| {
        sim.set_faults(Faults { segment_bytes_max: 1 << 20, ..Faults::none() });
        let server = Scripted::<Costly<COST>, false>::new(|_, _| ());
        let server = spawn(sim, server.with_listener(), limits);
        let flood = vec![b'f'; flood];
        let (mut driver, sockets) = clients(sim, &[&flood, b"1"]);
        sim.run_for(Duration::from_secs(10));
        let core = server.borrow();
        let app = core.app();
        let events = |id| {
            let log = app.log.iter().enumerate();
            log.filter(move |(_, entry)| {
                entry.id == id && matches!(entry.callback, Callback::Event(_))
            })
        };
        let (place, single) = events(1).next().expect("the single message");
        let arrived = events(0).filter(|(before, entry)| {
            // Only messages that had arrived at that moment can be served before.
            *before < place && entry.at == single.at
        });
        let before = arrived.count();
        let share = limits.connection_work_bytes_max / (COST + 1_024 + 1);
        // An event may begin when one byte of the share is left; a turn may serve a connection
        // twice.
        assert!(before <= 2 * (share + 1), "{before} messages, the share is {share}");
        assert_eq!(app.bytes_of(0), flood);
        for socket in sockets {
            driver.close(socket, SocketClose::Finish);
        }
    });
}

#[test]
fn a_flood_of_small_messages_leaves_others_their_turn() {
    check_share::<0>(50_000, CoreLimits::default());
}

#[test]
fn work_that_a_session_charges_counts_like_bytes() {
    check_share::<{ 1 << 20 }>(2_000, CoreLimits::default());
    let limits = CoreLimits { connection_work_bytes_max: 16 << 20, ..CoreLimits::default() };
    check_share::<{ 1 << 20 }>(2_000, limits);
}

#[test]
fn a_turn_has_a_share_for_all_connections_together() {
    check(5, |sim| {
        sim.set_faults(Faults { segment_bytes_max: 1 << 20, ..Faults::none() });
        let limits = CoreLimits { turn_work_bytes_max: 64 << 10, ..CoreLimits::default() };
        let server = Scripted::<Costly<0>, false>::new(|_, _| ());
        let server = spawn(sim, server.with_listener(), limits);
        let floods = vec![vec![b'f'; 3_000]; 30];
        let sends: Vec<&[u8]> = floods.iter().map(Vec::as_slice).collect();
        let (mut driver, sockets) = clients(sim, &sends);
        sim.run_for(Duration::from_secs(10));
        let mut core = server.borrow_mut();
        for id in 0..30 {
            assert_eq!(core.app().bytes_of(id).len(), 3_000);
        }
        let counters = core.cx().counters();
        // Each message is a kilobyte of work, and a turn has at most two budgets of 64 KiB.
        assert!(counters.turns >= 90_000 / (2 * 65), "{counters:?}");
        assert!(counters.reads_deferred > 0);
        for socket in sockets {
            driver.close(socket, SocketClose::Finish);
        }
    });
}

#[test]
fn a_flood_arrives_whole_and_in_order_under_all_faults() {
    check(20, |sim| {
        sim.set_faults(Faults::rough());
        let limits = CoreLimits {
            connection_work_bytes_max: 3 << 10,
            receive_bytes: 512,
            ..CoreLimits::default()
        };
        let server = Scripted::<Costly<0>, false>::new(|_, _| ());
        let server = spawn(sim, server.with_listener(), limits);
        let client = Scripted::<throng_proto::Raw, true>::new(|conn, callback| {
            if *callback == Callback::Opened {
                let bytes: Vec<u8> = (0..20_000u32).map(|n| (n % 251) as u8).collect();
                conn.send(&bytes);
                conn.close();
            }
        });
        let client =
            spawn(sim, client, CoreLimits { drain_timeout: Duration::from_secs(60), ..limits });
        crate::scripted::dial(&client, 0);
        sim.run_for(Duration::from_secs(120));
        let core = server.borrow();
        let expected: Vec<u8> = (0..20_000u32).map(|n| (n % 251) as u8).collect();
        let bytes = core.app().bytes_of(0);
        assert_eq!(bytes, expected[..bytes.len()]);
        let callback = core.app().callbacks_of(0);
        if client.borrow().app().callbacks_of(0).last()
            == Some(&Callback::Closed(CloseReason::Requested))
        {
            // The end arrives after all bytes that were sent before it.
            assert!(callback.contains(&Callback::Finished) <= (bytes.len() == expected.len()));
        }
    });
}

#[test]
fn a_connection_whose_input_waits_is_not_timed_out() {
    check(5, |sim| {
        sim.set_faults(Faults { segment_bytes_max: 1 << 20, ..Faults::none() });
        let limits = CoreLimits { connection_work_bytes_max: 1_024, ..CoreLimits::default() };
        let timeout = Duration::from_millis(50);
        let server = Scripted::<Costly<0>, false>::new(move |conn, callback| match callback {
            Callback::Opened | Callback::Event(_) => {
                conn.set_deadline(Deadline::Coarse(conn.now() + timeout));
            }
            Callback::Deadline => conn.reset(),
            _ => {}
        });
        let server = spawn(sim, server.with_listener(), limits);
        let (mut driver, sockets) = clients(sim, &[&[b'f'; 5_000]]);
        sim.run_for(Duration::from_secs(10));
        let core = server.borrow();
        let callback = core.app().callbacks_of(0);
        let deadline =
            callback.iter().position(|callback| *callback == Callback::Deadline).unwrap();
        let events =
            callback[..deadline].iter().filter(|callback| matches!(callback, Callback::Event(_)));
        assert_eq!(events.count(), 5_000);
        for socket in sockets {
            driver.close(socket, SocketClose::Finish);
        }
    });
}

#[test]
fn waiting_input_is_dropped_with_its_connection() {
    check(5, |sim| {
        sim.set_faults(Faults { segment_bytes_max: 1 << 20, ..Faults::none() });
        let limits = CoreLimits { connection_work_bytes_max: 10 << 10, ..CoreLimits::default() };
        let mut messages = 0;
        let server = Scripted::<Costly<0>, false>::new(move |conn, callback| {
            if let Callback::Event(_) = callback {
                messages += 1;
                if messages == 25 {
                    conn.reset();
                }
            }
        });
        let server = spawn(sim, server.with_listener(), limits);
        let (mut driver, sockets) = clients(sim, &[&[b'f'; 5_000]]);
        sim.run_for(Duration::from_secs(10));
        let core = server.borrow();
        assert_eq!(core.app().bytes_of(0).len(), 25, "no event follows the close");
        for socket in sockets {
            driver.close(socket, SocketClose::Finish);
        }
    });
}
