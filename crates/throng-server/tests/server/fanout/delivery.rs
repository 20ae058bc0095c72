//! The deliveries that each member receives while others join, leave and publish.

use std::collections::BTreeMap;
use std::time::Duration;

use throng_base::Prng;
use throng_server::pubsub::TopicRules;
use throng_sim::{Faults, check_over_all};

use super::world::{Frame, World};

const PEERS: usize = 12;
const CORES: usize = 3;

/// Lets all peers join topic 0 and stay there, while they join and leave the other topics and
/// publish at random.
fn crowd(world: &mut World<'_>, prng: &mut Prng) -> BTreeMap<usize, usize> {
    for peer in 0..PEERS {
        world.connect();
        // Some of them intercept.
        world.say(peer, if peer % 4 == 3 { b'i' } else { b'j' }, 0, 0);
    }
    world.until("all have joined", |world| {
        world.peers.iter().all(|peer| peer.told.len() == 1 || peer.has_ended())
    });
    let mut published: BTreeMap<usize, usize> = BTreeMap::new();
    for _ in 0..400 {
        let peer = prng.below(PEERS as u64) as usize;
        let topic = prng.below(3) as u8;
        let is_common = topic == 0;
        match prng.below(6) {
            0 | 1 if !is_common => {
                world.say(peer, b'l', topic, 0);
                world.say(peer, if peer % 4 == 3 { b'i' } else { b'j' }, topic, 0);
            }
            2 if !is_common => world.say(peer, b'l', topic, 0),
            _ => {
                // Numbers increase over all topics, so that gaps in a single topic are expected in
                // the random ones.
                let number = published.entry(peer).or_default();
                world.say_long(peer, b'p', 0, *number, prng.below(900) as usize);
                *number += 1;
                if !is_common {
                    world.say(peer, b'e', topic, 0);
                }
            }
        }
        if prng.below(4) == 0 {
            world.run_for(Duration::from_micros(prng.below(4_000)));
        }
    }
    published
}

/// Returns the publications of the common topic in the order in which every member must receive
/// them: each publisher's in order.
fn check_common(world: &World<'_>, peer: usize, published: &BTreeMap<usize, usize>) {
    let mut told: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for (from, number) in world.peers[peer].messages(0) {
        told.entry(usize::from(from)).or_default().push(number);
    }
    for (from, &count) in published {
        let all: Vec<u8> = (0..count).map(|number| number as u8).collect();
        assert_eq!(told.get(from), Some(&all), "to {peer} from {from}");
    }
}

#[test]
fn every_member_gets_every_publication_once_and_in_order() {
    check_over_all(12, |sim| {
        sim.set_faults(Faults { window_bytes_min: 2_000, ..Faults::rough() });
        let mut prng = sim.prng();
        let mut world = World::new(sim, CORES, 64, TopicRules::default());
        let published = crowd(&mut world, &mut prng);
        let all: usize = published.values().sum();
        world.until("all were told everything", |world| {
            world.peers.iter().all(|peer| peer.messages(0).len() >= all)
        });
        world.run_for(Duration::from_secs(2));
        for peer in 0..PEERS {
            check_common(&world, peer, &published);
            // No peer received what it excepted itself from, or what it was not a member for.
            let mut is_member = [false; 3];
            for &Frame { letter, topic, from, .. } in &world.peers[peer].told {
                match letter {
                    b'j' | b'i' => is_member[usize::from(topic)] = true,
                    b'l' => is_member[usize::from(topic)] = false,
                    _ => {
                        assert!(is_member[usize::from(topic)], "{peer} in {topic}");
                        assert!(topic == 0 || usize::from(from) != peer, "its own");
                    }
                }
            }
        }
        let counters = world.counters();
        let sum = published.len() * CORES;
        assert!(counters.published as usize >= all && sum > 0);
        assert_eq!(counters.publishes_received, counters.published * (CORES as u64 - 1));
        assert_eq!((counters.publishes_dropped, counters.slow_closed), (0, 0));
        let told: usize = world
            .peers
            .iter()
            .map(|peer| peer.told.iter().filter(|frame| b"mM".contains(&frame.letter)).count())
            .sum();
        assert_eq!(counters.fanned_out + counters.intercepted, told as u64);
    });
}

#[test]
fn a_connection_that_is_reset_leaves_its_topics_and_the_others_miss_nothing() {
    check_over_all(12, |sim| {
        sim.set_faults(Faults {
            window_bytes_min: 2_000,
            cut: 0.4,
            no_memory: 0.001,
            ..Faults::rough()
        });
        let mut prng = sim.prng();
        let mut world = World::new(sim, CORES, 64, TopicRules::default());
        crowd(&mut world, &mut prng);
        for peer in (0..PEERS).filter(|peer| peer % 3 == 0) {
            world.hang_up(peer);
        }
        world.run_for(Duration::from_secs(10));
        // A publisher whose connection was reset published less than it sent: its last publications
        // reach all members or none.
        let live: Vec<usize> = (0..PEERS).filter(|&peer| !world.peers[peer].has_ended()).collect();
        for pair in live.windows(2) {
            let by_publisher = |peer: usize| {
                let mut told: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
                for (from, number) in world.peers[peer].messages(0) {
                    told.entry(from).or_default().push(number);
                }
                told
            };
            assert_eq!(by_publisher(pair[0]), by_publisher(pair[1]), "{pair:?}");
        }
        for peer in 0..PEERS {
            world.hang_up(peer);
        }
        world.run_for(Duration::from_secs(200));
        let counters = world.counters();
        assert_eq!((counters.open, counters.memberships, counters.topics), (0, 0, 0));
    });
}

#[test]
fn a_broadcast_delays_a_reply_by_a_few_turns_at_most() {
    check_over_all(5, |sim| {
        let turn_max = Duration::from_millis(1);
        sim.set_faults(Faults { turn_max, ..Faults::none() });
        let mut world = World::new(sim, 1, 64, TopicRules::default());
        const MEMBERS: usize = 3_000;
        for peer in 0..MEMBERS {
            world.connect();
            world.say(peer, b'j', 0, 0);
        }
        world.until("all have joined", |world| world.peers.iter().all(|peer| peer.told.len() == 1));
        let asker = world.connect();
        world.say(asker, b'a', 1, 0);
        world.until("it is connected", |world| world.peers[asker].told.len() == 1);
        world.say(0, b'p', 0, 1);
        let told = |world: &World<'_>| {
            world.peers.iter().filter(|peer| !peer.messages(0).is_empty()).count()
        };
        world.until("the broadcast has begun", |world| told(world) > 0);
        world.say(asker, b'a', 1, 1);
        let asked_at = world.sim.now();
        world.until("it is answered", |world| world.peers[asker].told.len() == 2);
        let took = world.sim.now().since(asked_at);
        let told = told(&world);
        assert!(took <= 8 * turn_max, "{took:?}");
        assert!(told < MEMBERS / 2, "the broadcast was over already: {told}");
        world.until("all have received all", |world| {
            world.peers[..MEMBERS].iter().all(|peer| peer.numbers(0) == [1])
        });
    });
}
