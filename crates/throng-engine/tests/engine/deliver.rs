//! Delivery of shared frames.

use std::time::Duration;

use throng_base::Key;
use throng_driver::{Errno, SocketClose, Sockets};
use throng_engine::{CloseReason, CoreLimits, DeliveryOutcome, QueueOutcome};
use throng_pubsub::{Frames, Lane, Policy};
use throng_sim::{Faults, SimCoresOptions, check, check_over_all};

use crate::scripted::{Callback, Raws, dial, spawn, to_server};

fn lane(policy: Policy) -> Lane {
    Lane { id: 1, policy, queue_bytes_max: 1_000 }
}

fn frames(byte: u8, count: usize) -> Frames {
    Frames::one(vec![byte; count].into())
}

#[test]
fn a_fast_peer_gets_all_frames_at_once_and_no_other_connection_gets_any() {
    check(5, |sim| {
        let server =
            spawn(sim, Raws::<false>::new(|_, _| ()).with_listener(), CoreLimits::default());
        let client = spawn(sim, Raws::<true>::new(|_, _| ()), CoreLimits::default());
        let connecting = dial(&client, 7);
        let deliver =
            |key| client.borrow_mut().cx().deliver(key, &frames(1, 10), 0..1, &lane(Policy::Close));
        assert_eq!(
            deliver(connecting),
            DeliveryOutcome::Gone,
            "the connection is not established yet"
        );
        sim.run_for(Duration::from_millis(10));
        let key = server.borrow_mut().cx().keys()[0];
        let several = Frames::join([&b"one"[..], b"two", b"three"]);
        let mut core = server.borrow_mut();
        let cx = core.cx();
        assert_eq!(cx.deliver(key, &several, 1..3, &lane(Policy::Close)), DeliveryOutcome::Sent);
        assert_eq!(cx.counters().bytes_sent, 8);
        let missing = Key::new(77, 0);
        assert_eq!(
            cx.deliver(missing, &several, 0..3, &lane(Policy::Close)),
            DeliveryOutcome::Gone
        );
        drop(core);
        sim.run_for(Duration::from_millis(10));
        assert_eq!(client.borrow().app().bytes_of(7), b"twothree");
    });
}

#[test]
fn the_policy_decides_once_for_a_slow_peer_and_the_counters_add_up() {
    check(10, |sim| {
        sim.set_faults(Faults {
            window_bytes_min: 200,
            window_bytes_max: 500,
            partial_send: 0.5,
            ..Faults::none()
        });
        let server =
            spawn(sim, Raws::<false>::new(|_, _| ()).with_listener(), CoreLimits::default());
        let mut driver = sim.cores::<()>(&SimCoresOptions::default()).drivers().remove(0);
        let peer = driver.connect(&to_server()).unwrap();
        sim.run_for(Duration::from_millis(10));
        let key = server.borrow_mut().cx().keys()[0];
        let mut all = QueueOutcome::default();
        for number in 0..40 {
            let mut core = server.borrow_mut();
            let frames = frames(number, 100);
            match core.cx().deliver(key, &frames, 0..1, &lane(Policy::DropOldest)) {
                DeliveryOutcome::Sent => {}
                DeliveryOutcome::Queued(queued) => {
                    all.queued += queued.queued;
                    all.dropped_oldest += queued.dropped_oldest;
                    assert_eq!(
                        (queued.dropped_newest, queued.replaced, queued.closes),
                        (0, 0, false)
                    );
                }
                DeliveryOutcome::Gone => panic!("the connection is open"),
            }
            assert!(core.cx().counters().pending_bytes <= 1_100);
        }
        assert!(all.dropped_oldest > 15, "{all:?}");
        // The connection's own bytes keep their place behind the frames.
        server.borrow_mut().cx().with(key, |conn| conn.send(&[99; 50]));
        let mut received = Vec::new();
        for _ in 0..200 {
            sim.run_for(Duration::from_millis(1));
            let mut buffer = [0; 1_000];
            if let Ok(count) = driver.recv(&peer, &mut buffer) {
                received.extend(&buffer[..count]);
            }
        }
        let own = received.split_off(received.len() - 50);
        assert_eq!(own, [99; 50]);
        assert_eq!(received.len(), (40 - all.dropped_oldest) * 100);
        let numbers: Vec<u8> = received.chunks(100).map(|frame| frame[0]).collect();
        assert!(received.chunks(100).all(|frame| frame.iter().all(|byte| *byte == frame[0])));
        assert!(numbers.is_sorted_by(|a, b| a < b) && numbers.last() == Some(&39), "{numbers:?}");
        let core = server.borrow_mut().cx().counters();
        assert_eq!((core.pending_bytes, core.pending_overflows), (0, 0));
        driver.close(peer, SocketClose::Reset);
    });
}

#[test]
fn the_policy_close_and_a_broken_socket_end_a_connection_once() {
    check(5, |sim| {
        sim.set_faults(Faults {
            window_bytes_min: 1_000,
            window_bytes_max: 1_000,
            ..Faults::none()
        });
        let server =
            spawn(sim, Raws::<false>::new(|_, _| ()).with_listener(), CoreLimits::default());
        let mut driver = sim.cores::<()>(&SimCoresOptions::default()).drivers().remove(0);
        let slow = driver.connect(&to_server()).unwrap();
        sim.run_for(Duration::from_millis(10));
        let key = server.borrow_mut().cx().keys()[0];
        let deliver = |key| {
            let mut core = server.borrow_mut();
            core.cx().deliver(key, &frames(1, 900), 0..1, &lane(Policy::Close))
        };
        let mut closes = 0;
        for _ in 0..8 {
            if let DeliveryOutcome::Queued(queued) = deliver(key) {
                closes += usize::from(queued.closes);
            }
        }
        assert_eq!(closes, 1);
        assert_eq!(deliver(key), DeliveryOutcome::Gone);
        sim.run_for(Duration::from_millis(10));
        let callback = server.borrow().app().callbacks();
        assert_eq!(callback, [Callback::Opened, Callback::Closed(CloseReason::Overflow)]);
        let error = (0..9).find_map(|_| driver.recv(&slow, &mut [0; 1_000]).err());
        assert_eq!(error, Some(Errno::CONN_RESET));

        let broken = driver.connect(&to_server()).unwrap();
        sim.run_for(Duration::from_millis(10));
        let key = server.borrow_mut().cx().keys()[0];
        driver.close(broken, SocketClose::Reset);
        sim.run_for(Duration::from_millis(10));
        assert_eq!(deliver(key), DeliveryOutcome::Gone);
        let core = server.borrow_mut().cx().counters();
        assert_eq!((core.slots, core.pending_bytes), (0, 0));
        driver.close(slow, SocketClose::Reset);
    });
}

#[test]
fn a_frame_larger_than_the_limit_is_delivered_whole() {
    for policy in [Policy::DropNewest, Policy::DropOldest, Policy::KeepLatest, Policy::Close] {
        check_over_all(5, |sim| {
            sim.set_faults(Faults {
                window_bytes_min: 200,
                window_bytes_max: 500,
                partial_send: 0.5,
                ..Faults::none()
            });
            let limits = CoreLimits { pending_bytes_max: 2_000, ..CoreLimits::default() };
            let server = spawn(sim, Raws::<false>::new(|_, _| ()).with_listener(), limits);
            let client = spawn(sim, Raws::<true>::new(|_, _| ()), CoreLimits::default());
            dial(&client, 7);
            sim.run_for(Duration::from_millis(10));
            let key = server.borrow_mut().cx().keys()[0];
            let deliver = |byte| {
                let mut core = server.borrow_mut();
                core.cx().deliver(key, &frames(byte, 9_000), 0..1, &lane(policy))
            };
            let DeliveryOutcome::Queued(first) = deliver(1) else {
                panic!("the kernel took the frame at once")
            };
            assert_eq!((first.queued, first.closes), (1, false));
            if policy == Policy::DropNewest {
                let DeliveryOutcome::Queued(second) = deliver(2) else {
                    panic!("the kernel took the frame at once")
                };
                assert_eq!((second.dropped_newest, second.closes), (1, false));
            }
            sim.run_for(Duration::from_secs(4));
            assert!(client.borrow().app().bytes_of(7) == [1; 9_000]);
            let core = server.borrow_mut().cx().counters();
            assert_eq!((core.slots, core.pending_overflows, core.pending_bytes), (1, 0, 0));
        });
    }
}
