//! Messages between cores, and the order of effects.

use std::time::Duration;

use throng_driver::{MessagePriority, SocketClose};
use throng_engine::{CloseReason, CoreLimits};
use throng_proto::Raw;
use throng_sim::{Faults, Sim, SimCoresOptions, check};

use crate::scripted::{Callback, CoreCallback, Raws, spawn_on};

/// Runs two cores. The first sends the second `count` messages of each priority, some in every
/// turn. Returns the messages that the second received, and how many were dropped.
fn exchange(sim: &mut Sim, count: u64, mailbox_max: usize) -> (Vec<u64>, u64) {
    let options = SimCoresOptions { cores: 2, mailbox_max, ..SimCoresOptions::default() };
    let cores = sim.cores(&options);
    let mut prng = sim.prng();
    let mut next = 0;
    let sender = Raws::<false>::new(|_, _| ()).on_core(move |cx, callback| {
        if callback != CoreCallback::Message(0) {
            return;
        }
        for _ in 0..prng.between(1, 50) {
            if next < count {
                let _ = cx.send_message(1, 2 * next, MessagePriority::Control);
                let _ = cx.send_message(1, 2 * next + 1, MessagePriority::Bulk);
                next += 1;
            }
        }
        if next < count {
            cx.send_message(0, 0, MessagePriority::Control).unwrap();
        }
    });
    let running =
        spawn_on(sim, &cores, vec![sender, Raws::<false>::new(|_, _| ())], CoreLimits::default());
    cores.send_message(0, 0);
    sim.run_for(Duration::from_secs(60));
    let received: Vec<u64> = running[1]
        .borrow()
        .app()
        .core_log
        .iter()
        .filter_map(|(_, callback)| match callback {
            CoreCallback::Message(message) => Some(*message),
            _ => None,
        })
        .collect();
    let counters = running[1].borrow_mut().cx().counters();
    assert_eq!(counters.mail_received, received.len() as u64);
    let dropped = running[0].borrow_mut().cx().counters().mail_dropped;
    (received, dropped)
}

#[test]
fn messages_arrive_once_and_in_order() {
    check(20, |sim| {
        sim.set_faults(Faults::rough());
        let (received, dropped) = exchange(sim, 2_000, usize::MAX);
        assert_eq!(dropped, 0);
        assert!(received.iter().copied().eq(0..4_000));
    });
}

#[test]
fn a_full_mailbox_drops_and_counts_bulk_messages_and_keeps_control_messages() {
    check(20, |sim| {
        sim.set_faults(Faults::rough());
        let (received, dropped) = exchange(sim, 2_000, 20);
        assert!(dropped > 0, "the mailbox was never full");
        assert_eq!(received.len() as u64 + dropped, 4_000);
        let control = received.iter().filter(|message| *message % 2 == 0);
        assert!(control.copied().eq((0..4_000).step_by(2)));
        assert!(received.is_sorted());
    });
}

#[test]
fn a_wake_up_is_never_lost() {
    check(20, |sim| {
        sim.set_faults(Faults::rough());
        let cores = sim.cores(&SimCoresOptions::default());
        let app = Raws::<false>::new(|_, _| ());
        let core = spawn_on(sim, &cores, vec![app], CoreLimits::default()).remove(0);
        let mut prng = sim.prng();
        for _ in 0..200 {
            let before = core.borrow().app().core_log.len();
            cores.wake(0);
            sim.run_for(Duration::from_nanos(prng.below(100_000_000) + 60_000_000));
            let core = core.borrow();
            assert!(
                core.app().core_log[before..]
                    .iter()
                    .any(|(_, callback)| *callback == CoreCallback::Woken)
            );
        }
    });
}

#[test]
fn effects_run_in_the_order_of_the_requests_and_never_inside_a_callback() {
    check(3, |sim| {
        let cores = sim.cores(&SimCoresOptions::default());
        let app = Raws::<false>::new(|_, _| ()).on_core(|cx, callback| {
            if callback != CoreCallback::Message(0) {
                return;
            }
            let keys: Vec<_> = (0..4).map(|id| cx.insert(Raw, id)).collect();
            cx.notify(keys[2]);
            cx.close(keys[0], SocketClose::Finish);
            cx.notify(keys[1]);
            // The entry is closed by then.
            cx.notify(keys[0]);
            cx.close(keys[0], SocketClose::Reset);
            cx.notify(keys[3]);
            assert_eq!(cx.len(), 4);
        });
        let core = spawn_on(sim, &cores, vec![app], CoreLimits::default()).remove(0);
        cores.send_message(0, 0);
        sim.run_for(Duration::from_secs(1));
        let core = core.borrow();
        let callback: Vec<_> =
            core.app().log.iter().map(|entry| (entry.id, &entry.callback)).collect();
        let closed = Callback::Closed(CloseReason::Requested);
        // The close is reported after the effects that were requested before it.
        let expected = [
            (2, &Callback::Notified),
            (1, &Callback::Notified),
            (3, &Callback::Notified),
            (0, &closed),
        ];
        assert_eq!(callback, expected);
    });
}
