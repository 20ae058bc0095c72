//! Cores that are slower than the publications of other cores.

use std::time::Duration;

use throng_server::pubsub::{Policy, TopicRules};
use throng_sim::{Faults, check_over_all};

use super::world::World;

/// A world of two cores with a member each, and a mailbox of two messages.
fn with_two_cores(world: &mut World<'_>) -> (usize, usize) {
    // Reuseport spreads connections: with enough of them, each core has one.
    for peer in 0..16 {
        world.connect();
        world.say(peer, b'j', 0, 0);
    }
    world.until("all have joined", |world| world.peers.iter().all(|peer| peer.told.len() == 1));
    assert_eq!(world.counters().topics, 2, "both cores have members");
    (0, 15)
}

#[test]
fn a_full_mailbox_delays_publications_and_loses_none() {
    check_over_all(10, |sim| {
        sim.set_faults(Faults {
            message_delay_max: Duration::from_millis(20),
            stall: 0.2,
            turn_max: Duration::from_millis(1),
            ..Faults::none()
        });
        let mut world = World::new(sim, 2, 2, TopicRules::default());
        with_two_cores(&mut world);
        const EACH: usize = 200;
        for number in 0..EACH {
            world.say(0, b'p', 0, number);
            world.say(1, b'p', 0, number);
        }
        world.until("all is delivered", |world| {
            world.peers.iter().all(|peer| peer.messages(0).len() == 2 * EACH)
        });
        let expected: Vec<u8> = (0..EACH).map(|number| number as u8).collect();
        for peer in &world.peers {
            for publisher in 0..2 {
                let told = peer.messages(0).into_iter().filter(|(from, _)| *from == publisher);
                assert_eq!(told.map(|(_, number)| number).collect::<Vec<_>>(), expected);
            }
        }
        assert_eq!(world.counters().publishes_dropped, 0);
    });
}

#[test]
fn what_does_not_fit_falls_under_the_policy_and_is_counted() {
    for policy in [Policy::DropNewest, Policy::DropOldest] {
        check_over_all(3, |sim| {
            // The other core takes two messages in half a second: the publisher's outbox fills.
            sim.set_faults(Faults {
                message_delay_max: Duration::from_millis(500),
                ..Faults::none()
            });
            let rules =
                TopicRules { policy, backlog_bytes_max: usize::MAX, ..TopicRules::default() };
            let mut world = World::new(sim, 2, 2, rules);
            with_two_cores(&mut world);
            const EACH: usize = 60;
            for number in 0..EACH {
                world.say_long(0, b'h', 0, number, 400);
            }
            let done = |world: &mut World<'_>| {
                let counters = world.counters();
                let lost = counters.publishes_dropped;
                counters.publishes_received + lost == EACH as u64
            };
            world.until("everything was received or dropped", done);
            world.run_for(Duration::from_secs(5));
            let counters = world.counters();
            assert!(counters.publishes_dropped > 0 && counters.publishes_received > 30);
            let all: Vec<u8> = (0..EACH as u8).collect();
            let (near, far): (Vec<_>, Vec<_>) =
                world.peers.iter().partition(|peer| peer.numbers(0) == all);
            assert!(!near.is_empty() && !far.is_empty());
            for peer in far {
                let numbers = peer.numbers(0);
                assert_eq!(numbers.len() as u64, counters.publishes_received);
                assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
                let has_last = numbers.contains(&(EACH as u8 - 1));
                assert_eq!(has_last, policy == Policy::DropOldest, "{policy}: {numbers:?}");
            }
        });
    }
}
