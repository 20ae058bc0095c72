//! Members that do not read.

use std::time::Duration;

use throng_measure::ServerCounters;
use throng_server::pubsub::{Policy, TopicRules};
use throng_sim::{Faults, check_over_all};

use super::world::World;

const PUBLISHED: usize = 200;
const FRAME_BYTES: usize = 508;

/// Publishes to three members, one of which does not read until everything was published. Returns
/// what that member received, and the counters.
fn check_slow(policy: Policy, judge: impl Fn(&[u8], bool, &ServerCounters)) {
    check_over_all(8, |sim| {
        sim.set_faults(Faults {
            window_bytes_min: 3_000,
            window_bytes_max: 3_000,
            delay_max: Duration::from_millis(2),
            partial_send: 0.3,
            ..Faults::none()
        });
        let rules = TopicRules { policy, queue_bytes_max: 10_000, ..TopicRules::default() };
        let mut world = World::new(sim, 2, 64, rules);
        for peer in 0..4 {
            world.connect();
            world.say(peer, b'j', 0, 0);
        }
        world.until("all have joined", |world| world.peers.iter().all(|peer| peer.told.len() == 1));
        let slow = 3;
        world.peers[slow].reads = false;
        for number in 0..PUBLISHED {
            world.say_long(0, b'p', 0, number, FRAME_BYTES - 8);
            // The others keep up.
            world.until("the readers have received all", |world| {
                world.peers[..3].iter().all(|peer| peer.messages(0).len() == number + 1)
            });
        }
        world.run_for(Duration::from_millis(100));
        world.peers[slow].reads = true;
        world.run_for(Duration::from_secs(1));
        // A member that is still connected and reads again receives new publications.
        world.say_long(0, b'p', 0, PUBLISHED, FRAME_BYTES - 8);
        world.run_for(Duration::from_secs(1));
        let all: Vec<u8> = (0..=PUBLISHED).map(|number| number as u8).collect();
        for peer in 0..3 {
            assert_eq!(world.peers[peer].numbers(0), all);
        }
        let counters = world.counters();
        let has_ended = world.peers[slow].has_ended();
        judge(&world.peers[slow].numbers(0), has_ended, &counters);
    });
}

/// Returns how many publications reached the slow member, by the counters.
fn told_by(counters: &ServerCounters) -> u64 {
    let lost = counters.dropped_newest + counters.dropped_oldest + counters.replaced;
    PUBLISHED as u64 + 1 - lost
}

fn is_run(numbers: &[u8]) -> bool {
    numbers.windows(2).all(|pair| pair[0] + 1 == pair[1])
}

/// The frames that the two windows and the queue hold.
const HELD_MAX: usize = (3_000 + 3_000 + 10_000) / FRAME_BYTES + 2;

#[test]
fn drop_newest_keeps_what_was_there_and_refuses_what_comes() {
    check_slow(Policy::DropNewest, |numbers, has_ended, counters| {
        assert!(!has_ended);
        let (last, before) = numbers.split_last().unwrap();
        assert!(usize::from(*last) == PUBLISHED, "it receives again: {numbers:?}");
        assert!(is_run(before) && before[0] == 0 && before.len() <= HELD_MAX, "{numbers:?}");
        assert!(before.len() >= 10_000 / FRAME_BYTES, "the queue was used: {numbers:?}");
        assert_eq!(numbers.len() as u64, told_by(counters));
        assert!(counters.dropped_newest > 0);
        assert_eq!((counters.dropped_oldest, counters.replaced, counters.slow_closed), (0, 0, 0));
    });
}

#[test]
fn drop_oldest_keeps_what_is_new() {
    check_slow(Policy::DropOldest, |numbers, has_ended, counters| {
        assert!(!has_ended);
        let gap = numbers.windows(2).position(|pair| pair[0] + 1 != pair[1]).unwrap();
        let (old, new) = numbers.split_at(gap + 1);
        assert!(is_run(old) && is_run(new) && old[0] == 0, "{numbers:?}");
        assert_eq!(usize::from(*new.last().unwrap()), PUBLISHED);
        assert!(new.len() + 1 > 10_000 / FRAME_BYTES && numbers.len() <= HELD_MAX, "{numbers:?}");
        assert_eq!(numbers.len() as u64, told_by(counters));
        assert!(counters.dropped_oldest > 0);
        assert_eq!((counters.dropped_newest, counters.replaced, counters.slow_closed), (0, 0, 0));
    });
}

#[test]
fn keep_latest_keeps_one() {
    check_slow(Policy::KeepLatest, |numbers, has_ended, counters| {
        assert!(!has_ended);
        // The frames in the windows, the last one before it read again, and the later ones.
        let [before @ .., last, after] = numbers else { panic!("{numbers:?}") };
        assert!(is_run(before) && before.len() <= 6_000 / FRAME_BYTES + 2, "{numbers:?}");
        assert_eq!((usize::from(*last), usize::from(*after)), (PUBLISHED - 1, PUBLISHED));
        assert_eq!(numbers.len() as u64, told_by(counters));
        assert!(counters.replaced > 0);
        let others = (counters.dropped_newest, counters.dropped_oldest, counters.slow_closed);
        assert_eq!(others, (0, 0, 0));
    });
}

#[test]
fn close_closes() {
    check_slow(Policy::Close, |numbers, has_ended, counters| {
        assert!(has_ended);
        assert!(is_run(numbers) && numbers.len() <= HELD_MAX, "{numbers:?}");
        assert_eq!((counters.slow_closed, counters.open, counters.memberships), (1, 3, 3));
        assert_eq!(told_by(counters), PUBLISHED as u64 + 1, "nothing is dropped without a word");
    });
}

#[test]
fn answers_keep_their_place_among_the_frames_of_a_slow_member() {
    check_over_all(8, |sim| {
        sim.set_faults(Faults {
            window_bytes_min: 50,
            window_bytes_max: 400,
            partial_send: 0.5,
            ..Faults::none()
        });
        let mut world = World::new(sim, 1, 64, TopicRules::default());
        for peer in 0..2 {
            world.connect();
            world.say(peer, b'j', 0, 0);
        }
        world.until("all have joined", |world| world.peers.iter().all(|peer| peer.told.len() == 1));
        let mut prng = world.sim.prng();
        let mut published = 0;
        for asked in 0..100 {
            world.say(1, b'a', 2, asked);
            for _ in 0..prng.below(3) {
                world.say_long(0, b'p', 0, published, prng.below(200) as usize);
                published += 1;
            }
            world.peers[1].reads = prng.below(3) > 0;
            world.run_for(Duration::from_millis(prng.below(3)));
        }
        world.peers[1].reads = true;
        world.until("all has come", |world| world.peers[1].told.len() == 1 + 100 + published);
        let answers: Vec<u8> = world.peers[1]
            .told
            .iter()
            .filter(|frame| frame.letter == b'a')
            .map(|frame| frame.number)
            .collect();
        assert_eq!(answers, (0..100).collect::<Vec<u8>>());
        let all: Vec<u8> = (0..published).map(|number| number as u8).collect();
        assert_eq!(world.peers[1].numbers(0), all);
    });
}
