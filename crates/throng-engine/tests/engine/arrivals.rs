//! When bytes arrived, as an app is told, however late its core is.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::SocketOptions;
use throng_engine::{Arrival, CoreLimits};
use throng_proto::Raw;
use throng_sim::{Faults, Sim, SimCoresOptions, check};

use crate::scripted::{Callback, Raws, RunningCore, Scripted, spawn, spawn_on, to_server};

/// One way through the simulated network.
const DELAY: Duration = Duration::from_micros(50);

/// What a client measured of one answer.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    sent_at: Instant,
    seen_at: Instant,
    arrival: Arrival,
}

type Measurements = Rc<RefCell<Vec<Measurement>>>;

/// A core that is late by up to 20 ms, whose clients each ask an echo server a hundred times.
fn late_clients(sim: &mut Sim, clients: u32) -> (RunningCore<Raw, true>, Measurements) {
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
            Callback::Opened => conn.want_arrival(true),
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
fn an_arrival_is_when_the_bytes_came_and_not_when_a_late_core_read_them() {
    check(5, |sim| {
        let (_client, measured) = late_clients(sim, 3);
        let measured = measured.borrow();
        assert_eq!(measured.len(), 300);
        for one in measured.iter() {
            let at = one.sent_at + 2 * DELAY;
            assert_eq!(one.arrival, Arrival::Stamped { at, weight: 1 });
        }
        let late = measured.iter().map(|one| one.seen_at.since(one.sent_at)).max();
        assert!(late > Some(Duration::from_millis(10)), "the core was late: {late:?}");
    });
}

#[test]
fn a_busy_core_asks_for_a_sample_whose_weights_add_up() {
    check(3, |sim| {
        let (_client, measured) = late_clients(sim, 100);
        let (mut weights, mut sampled) = (0, 0);
        for one in measured.borrow().iter() {
            match one.arrival {
                Arrival::Stamped { at, weight } => {
                    // Segments that leave at one moment arrive one after the other.
                    assert!(at.since(one.sent_at + 2 * DELAY) < Duration::from_micros(1));
                    weights += weight;
                }
                Arrival::NotSampled => sampled += 1,
                Arrival::Unknown { .. } => panic!("the kernel knows: {one:?}"),
            }
        }
        let answers = measured.borrow().len() as u32;
        assert_eq!(answers, 10_000);
        assert!(weights.abs_diff(answers) < 64, "{weights} of {answers}");
        assert!(sampled > 0, "so many a second are too many to ask for all");
    });
}

#[test]
fn a_kernel_that_does_not_say_is_unknown() {
    check(3, |sim| {
        sim.set_faults(Faults { no_stamp: 1.0, ..Faults::none() });
        let (_client, measured) = late_clients(sim, 3);
        assert_eq!(measured.borrow().len(), 300);
        for one in measured.borrow().iter() {
            assert_eq!(one.arrival, Arrival::UNKNOWN);
        }
    });
}

#[test]
fn the_handshake_takes_a_round_trip_however_late_the_core_is() {
    check(3, |sim| {
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
        assert_eq!(*rtts.borrow(), [Arrival::Stamped { at, weight: 1 }; 10]);
    });
}
