//! Deadlines of entries, and of the core.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use throng_base::wheel::TICK;
use throng_base::{Instant, Prng};
use throng_driver::Sockets;
use throng_engine::{CoreLimits, Deadline};
use throng_proto::Raw;
use throng_sim::{Faults, Sim, SimCoresOptions, check};

use crate::scripted::{Callback, CoreCallback, Raws, Scripted, spawn, spawn_on, to_server};

/// Deadline of each entry, as the app set it.
type Deadlines = Rc<RefCell<BTreeMap<u32, Deadline>>>;

/// Returns a random deadline: microseconds to seconds ahead, in the past, or none.
fn random_deadline(prng: &mut Prng, now: Instant) -> Deadline {
    let reach = [1_000, 10_000_000, 40_000_000, 5_000_000_000][prng.below(4) as usize];
    let at =
        (now + Duration::from_nanos(prng.below(reach))).saturating_sub(Duration::from_nanos(500));
    match prng.below(5) {
        0 => Deadline::Never,
        1 | 2 => Deadline::Coarse(at),
        _ => Deadline::Exact(at),
    }
}

fn deadlines_fire_on_time(sim: &mut Sim) {
    let wanted = Deadlines::default();
    let (mut prng, mut other) = (sim.prng(), sim.prng());
    let (mine, theirs) = (Rc::clone(&wanted), Rc::clone(&wanted));
    let app = Raws::<false>::new(move |conn, callback| {
        if *callback != Callback::Deadline {
            return;
        }
        let (id, now) = (*conn.state(), conn.clock());
        match mine.borrow_mut().remove(&id) {
            Some(Deadline::Exact(at)) => assert!(now == at, "{id}: {at:?}, not {now:?}"),
            Some(Deadline::Coarse(at)) => {
                assert!(at <= now && now <= at + TICK, "{id}: {at:?}, not {now:?}");
            }
            none => panic!("{id} was called at {now:?}, its deadline was {none:?}"),
        }
        // A deadline in the past fires at once, like one that is due now.
        let next = not_before(random_deadline(&mut prng, now), now);
        if next != Deadline::Never {
            mine.borrow_mut().insert(id, next);
            conn.set_deadline(next);
        }
    })
    .on_core(move |cx, callback| {
        if callback != CoreCallback::Message(0) {
            return;
        }
        let (now, keys) = (cx.now(), cx.keys());
        let key = keys[other.below(keys.len() as u64) as usize];
        let id = *cx.state(key).unwrap();
        let next = not_before(random_deadline(&mut other, now), now);
        cx.with(key, |conn| conn.set_deadline(next));
        match next {
            Deadline::Never => theirs.borrow_mut().remove(&id),
            next => theirs.borrow_mut().insert(id, next),
        };
    });
    let cores = sim.cores(&SimCoresOptions::default());
    let core = spawn_on(sim, &cores, vec![app], CoreLimits::default()).remove(0);
    for id in 0..50 {
        core.borrow_mut().cx().insert(Raw, id);
    }
    let mut prng = sim.prng();
    for _ in 0..500 {
        cores.send_message(0, 0);
        sim.run_for(Duration::from_nanos(prng.below(20_000_000)));
    }
    sim.run_for(Duration::from_secs(1));
    let (now, wanted) = (sim.now(), wanted.borrow());
    let late = wanted.values().filter(|wanted| wanted.moment() + TICK < now).count();
    assert_eq!(late, 0, "all due deadlines fired");
    assert!(core.borrow().app().log.len() > 100);
}

fn not_before(deadline: Deadline, now: Instant) -> Deadline {
    match deadline {
        Deadline::Never => Deadline::Never,
        Deadline::Coarse(at) => Deadline::Coarse(at.max(now)),
        Deadline::Exact(at) => Deadline::Exact(at.max(now)),
    }
}

#[test]
fn exact_deadlines_are_called_at_their_moment_coarse_ones_within_a_tick_cancelled_ones_never() {
    check(40, deadlines_fire_on_time);
}

#[test]
fn a_deadline_in_the_past_fires_at_once() {
    check(1, |sim| {
        let core = spawn(sim, Raws::<false>::new(|_, _| ()), CoreLimits::default());
        let now = sim.now();
        for (id, past) in [0, 1, 20].into_iter().enumerate() {
            let mut core = core.borrow_mut();
            let key = core.cx().insert(Raw, id as u32);
            let at = now.saturating_sub(Duration::from_secs(past));
            core.cx().with(key, |conn| conn.set_deadline(Deadline::Exact(at)));
        }
        sim.run_for(Duration::from_secs(1));
        let core = core.borrow();
        assert_eq!(core.app().log.len(), 3);
        assert!(core.app().log.iter().all(|entry| entry.at == now));
    });
}

#[test]
fn neither_a_removed_entry_nor_its_successor_is_called() {
    check(10, |sim| {
        let core = spawn(sim, Raws::<false>::new(|_, _| ()), CoreLimits::default());
        let mut prng = sim.prng();
        for id in 0..200 {
            let mut core = core.borrow_mut();
            let cx = core.cx();
            let key = cx.insert(Raw, id);
            let at = cx.now() + Duration::from_nanos(prng.below(30_000_000));
            let deadline =
                if prng.below(2) == 0 { Deadline::Exact(at) } else { Deadline::Coarse(at) };
            cx.with(key, |conn| conn.set_deadline(deadline));
            cx.remove(key);
            // Takes the same place, without a deadline.
            cx.insert(Raw, id + 1_000);
            drop(core);
            sim.run_for(Duration::from_nanos(prng.below(3_000_000)));
        }
        sim.run_for(Duration::from_secs(1));
        assert_eq!(core.borrow().app().callbacks(), []);
    });
}

#[test]
fn more_timers_than_a_turn_takes_are_all_called_at_their_moment() {
    check(3, |sim| {
        let core = spawn(sim, Raws::<false>::new(|_, _| ()), CoreLimits::default());
        let at = sim.now() + Duration::from_millis(100);
        for id in 0..1_000 {
            let mut core = core.borrow_mut();
            let key = core.cx().insert(Raw, id);
            core.cx().with(key, |conn| conn.set_deadline(Deadline::Exact(at)));
        }
        sim.run_for(Duration::from_secs(1));
        let core = core.borrow();
        assert_eq!(core.app().log.len(), 1_000);
        assert!(core.app().log.iter().all(|entry| entry.at == at));
    });
}

#[test]
fn a_time_out_does_not_fire_before_input_that_was_sent_in_time() {
    check(10, |sim| {
        // One event a turn, and slow turns: bytes wait far longer than the time-out before the core
        // reads them.
        let turn_max = Duration::from_millis(20);
        sim.set_faults(Faults { turn_max, batch_max: 1, ..Faults::none() });
        let server = Scripted::<Raw, false>::new(move |conn, callback| match callback {
            Callback::Opened => conn.set_deadline(Deadline::Coarse(conn.now() + 5 * turn_max)),
            Callback::Event(_) => conn.set_deadline(Deadline::Never),
            _ => {}
        });
        let server = spawn(sim, server.with_listener(), CoreLimits::default());
        let mut driver = sim.cores::<()>(&SimCoresOptions::default()).drivers().remove(0);
        let peers: Vec<_> = (0..40).map(|_| driver.connect(&to_server()).unwrap()).collect();
        sim.run_for(Duration::from_millis(1));
        for peer in &peers {
            assert_eq!(driver.send(peer, b"x"), Ok(1));
        }
        sim.run_for(Duration::from_secs(5));
        let core = server.borrow();
        assert_eq!(core.app().count(|callback| matches!(callback, Callback::Event(_))), 40);
        assert_eq!(core.app().count(|callback| *callback == Callback::Deadline), 0);
        peers.into_iter().for_each(|peer| driver.close(peer, Default::default()));
    });
}
