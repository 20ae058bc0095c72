//! Arrival times that apps receive, even if their core is late.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::SocketOptions;
use throng_engine::{Arrival, CoreLimits};
use throng_proto::Raw;
use throng_sim::{Faults, Sim, SimCoresOptions, check, check_over_all};

use crate::scripted::{Callback, Raws, RunningCore, Scripted, spawn, spawn_on, to_server};

/// Delay of one direction of the simulated network.
const DELAY: Duration = Duration::from_micros(50);

/// Measurement of one answer by a client.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    sent_at: Instant,
    seen_at: Instant,
    arrival: Arrival,
}

type Measurements = Rc<RefCell<Vec<Measurement>>>;

/// Runs a core that is late by up to 20 ms, whose clients each send a hundred requests to an echo
/// server.
fn late_clients(sim: &mut Sim, times_arrivals: bool) -> (RunningCore<Raw, true>, Measurements) {
    let clients = 3;
    let server: Raws<false> = Scripted::new(|conn, callback| {
        if let Callback::Event(bytes) = callback {
            conn.send(bytes);
        }
    });
    spawn(sim, server.with_listener(), CoreLimits::default());
    let measured = Measurements::default();
    let log = Rc::clone(&measured);
    let mut sent_at = vec![Instant::ZERO; clients as usize];
    let mut asked = vec![0; clients as usize];
    let client: Raws<true> = Scripted::new(move |conn, callback| {
        let id = *conn.state() as usize;
        match callback {
            Callback::Opened => {}
            Callback::Event(_) => {
                let (sent_at, seen_at) = (sent_at[id], conn.clock());
                let arrival = conn.arrival();
                log.borrow_mut().push(Measurement { sent_at, seen_at, arrival });
            }
            _ => return,
        }
        if asked[id] < 100 {
            asked[id] += 1;
            sent_at[id] = conn.clock();
            conn.send(b"?");
        }
    });
    let client = if times_arrivals { client.timing_arrivals() } else { client };
    let turn_max = Duration::from_millis(20);
    let cores = sim.cores(&SimCoresOptions { turn_max, ..SimCoresOptions::default() });
    let client = spawn_on(sim, &cores, vec![client], CoreLimits::default()).remove(0);
    for id in 0..clients {
        let mut core = client.borrow_mut();
        let key = core.cx().insert(Raw, id);
        let mut spec = to_server();
        spec.options = SocketOptions { arrival_stamps: true, ..spec.options };
        core.cx().with(key, |conn| conn.connect(spec));
    }
    sim.run_for(Duration::from_secs(30));
    (client, measured)
}

#[test]
fn an_arrival_is_the_time_of_the_bytes_and_not_of_the_late_read() {
    check(5, |sim| {
        let (_client, measured) = late_clients(sim, true);
        let measured = measured.borrow();
        assert_eq!(measured.len(), 300);
        for one in measured.iter() {
            let at = one.sent_at + 2 * DELAY;
            assert_eq!(one.arrival, Arrival::At(at));
        }
        let late = measured.iter().map(|one| one.seen_at.since(one.sent_at)).max();
        assert!(late > Some(Duration::from_millis(10)), "the core was late: {late:?}");
    });
}

#[test]
fn an_arrival_that_the_app_does_not_want_is_unknown() {
    check_over_all(3, |sim| {
        let (_client, measured) = late_clients(sim, false);
        assert_eq!(measured.borrow().len(), 300);
        assert!(measured.borrow().iter().all(|one| one.arrival == Arrival::Unknown));
    });
}

#[test]
fn an_arrival_without_a_stamp_is_unknown() {
    check_over_all(3, |sim| {
        sim.set_faults(Faults { no_stamp: 1.0, ..Faults::none() });
        let (_client, measured) = late_clients(sim, true);
        assert_eq!(measured.borrow().len(), 300);
        for one in measured.borrow().iter() {
            assert_eq!(one.arrival, Arrival::Unknown);
        }
    });
}

#[test]
fn the_handshake_takes_a_round_trip_even_if_the_core_is_late() {
    check_over_all(3, |sim| {
        let rtts = Rc::new(RefCell::new(Vec::new()));
        let server: Raws<false> = Scripted::new(|_, _| ());
        spawn(sim, server.with_listener(), CoreLimits::default());
        let log = Rc::clone(&rtts);
        let client: Raws<true> = Scripted::new(move |conn, callback| {
            if *callback == Callback::Opened {
                let dialed_at = Instant::from_nanos(1_000);
                log.borrow_mut().push(conn.handshake_arrival(dialed_at));
            }
        });
        let turn_max = Duration::from_millis(20);
        let cores = sim.cores(&SimCoresOptions { turn_max, ..SimCoresOptions::default() });
        let client = spawn_on(sim, &cores, vec![client], CoreLimits::default()).remove(0);
        for id in 0..10 {
            crate::scripted::dial(&client, id);
            sim.run_for(Duration::from_millis(30));
        }
        let at = Instant::from_nanos(1_000) + 2 * DELAY;
        assert_eq!(*rtts.borrow(), [Arrival::At(at); 10]);
    });
}
