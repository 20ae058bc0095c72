//! Users wait for one another, over all cores.

use std::time::Duration;

use throng_load::generator::ErrorKind;
use throng_measure::{LoadCounters, Operation};
use throng_server::AcceptTopology;
use throng_sim::{Faults, Sim, check_over_all};

use super::pair::{Pair, Shape};

fn start(sim: &mut Sim, scenario: &str) -> Pair {
    let shape = Shape { load_cores: vec![3], ..Shape::default() };
    Pair::start(sim, AcceptTopology::Reuseport, shape, scenario)
}

#[test]
fn a_barrier_lets_groups_go_that_are_exactly_as_large_as_it_says() {
    check_over_all(10, |sim| {
        // A user comes every half second.
        let scenario = "
load: [{ramp: {to: 23, over: 11500ms}}, {hold: {for: 5s}}]
user: [connect, {barrier: {name: start, users: 5}}, {send: hi}, {expect: hi}, stay]
";
        let pair = start(sim, scenario);
        for _ in 0..28 {
            sim.run_for(Duration::from_millis(500));
            let load = pair.load_counters();
            let groups = load.connects_ok / 5;
            assert_eq!(load.messages_answered, groups * 5, "{load:?}");
            assert_eq!(load.cue_waiting, load.connects_ok % 5, "{load:?}");
        }
        let load = pair.load_counters();
        assert_eq!((load.connects_ok, load.messages_answered), (23, 20));
        // The last of a group waits for none.
        assert_eq!(load.cue_waits, 23 - 4);
        // Users of a group waited for 2, 1.5, 1, 0.5 seconds, and their latencies do not say so.
        let waited_s = load.cue_waits_us as f64 / 1e6;
        assert!((19.0..21.0).contains(&waited_s), "{waited_s}");
        let latency_us =
            pair.core_stats().iter().map(|stats| stats.times[Operation::Message].max()).max();
        assert!(latency_us < Some(100_000), "{latency_us:?}");
        pair.finish(sim, Duration::from_secs(60));
        // Those of the last group, which was never complete.
        assert_eq!(pair.load_counters().cue_waiting, 3);
        let [start] = pair.cues()[..] else { panic!() };
        assert_eq!((start.opened, start.waits, start.waiting, start.waiting_most), (4, 19, 3, 4));
    });
}

#[test]
fn a_barrier_that_never_opens_is_told_with_the_users_that_came() {
    check_over_all(10, |sim| {
        let scenario = "
load: [{ramp: {to: 12, over: 1s}}, {hold: {for: 9s}}]
users:
  fails:
    user: [connect, {expect: {text: b, timeout: 1s}}, {barrier: {name: go, users: 12}}]
    on_error: stop
  waits: {weight: 11, user: [connect, {barrier: {name: go, users: 12}}, {send: hi}, stay]}
";
        let pair = start(sim, scenario);
        pair.finish(sim, Duration::from_secs(60));
        let load = pair.load_counters();
        assert_eq!((load.cue_waits, load.cue_waiting, load.cue_waits_us), (11, 11, 0));
        let [go] = pair.cues()[..] else { panic!() };
        assert_eq!((go.opened, go.waits, go.waiting, go.waiting_most), (0, 11, 11, 11));
        assert!((9_000_000..10_500_000).contains(&go.wait_us_most), "{go:?}");
    });
}

#[test]
fn a_signal_that_never_comes_is_told_with_the_users_that_waited() {
    check_over_all(10, |sim| {
        let scenario = "
load: [{ramp: {to: 8, over: 1s}}, {hold: {for: 4s}}]
users:
  leader: {user: [connect, {wait: 1h}, {signal: go}, stay]}
  follower: {weight: 3, user: [connect, {wait_for: go}, {send: hi}, {expect: hi}, stay]}
";
        let pair = start(sim, scenario);
        pair.finish(sim, Duration::from_secs(60));
        let [go] = pair.cues()[..] else { panic!() };
        assert_eq!((go.opened, go.waits, go.waiting, go.waiting_most), (0, 6, 6, 0));
        assert!((4_000_000..5_500_000).contains(&go.wait_us_most), "{go:?}");
    });
}

#[test]
fn users_that_come_before_a_signal_wait_and_later_ones_do_not() {
    check_over_all(10, |sim| {
        let scenario = "
load: [{ramp: {to: 40, over: 8s}}, {hold: {for: 5s}}]
users:
  leader: {user: [connect, {wait: 4s}, {signal: go}, stay]}
  follower: {weight: 3, user: [connect, {wait_for: go}, {send: hi}, {expect: hi}, stay]}
";
        let pair = start(sim, scenario);
        sim.run_for(Duration::from_millis(3_900));
        let load = pair.load_counters();
        assert_eq!((load.messages_sent, load.cue_waits), (0, load.cue_waiting));
        assert!(load.cue_waiting > 5, "{load:?}");
        sim.run_for(Duration::from_secs(6));
        let load = pair.load_counters();
        assert_eq!((load.messages_answered, load.cue_waiting), (30, 0));
        assert!(load.cue_waits < 30, "those that come later do not wait: {load:?}");
        pair.finish(sim, Duration::from_secs(60));
        assert_eq!(pair.errors(), 0);
    });
}

#[test]
fn a_wait_that_takes_too_long_is_an_error_of_its_own() {
    check_over_all(10, |sim| {
        let scenario = "
load: [{ramp: {to: 5, over: 10s}}, {hold: {for: 5s}}]
user: [connect, {barrier: {name: start, users: 5, timeout: 1s}}, {send: hi}, stay]
on_error: stop
";
        let pair = start(sim, scenario);
        pair.finish(sim, Duration::from_secs(60));
        let load = pair.load_counters();
        let errors: u64 = pair
            .core_stats()
            .iter()
            .map(|stats| stats.errors[ErrorKind::CueTimeout as usize])
            .sum();
        assert_eq!((errors, load.users_failed, load.messages_sent), (5, 5, 0), "{load:?}");
        assert_eq!((load.cue_waits, load.cue_waiting), (5, 0));
    });
}

#[test]
fn users_that_are_stopped_while_they_wait_are_not_waited_for() {
    check_over_all(10, |sim| {
        let scenario = "
load:
  - ramp: {to: 6, over: 600ms}
  - hold: {for: 1400ms}
  - ramp: {to: 3, over: 300ms}
  - hold: {for: 1700ms}
  - ramp: {to: 6, over: 600ms}
  - hold: {for: 1400ms}
  - ramp: {to: 8, over: 200ms}
  - hold: {for: 1800ms}
user: [connect, {barrier: {name: start, users: 7}}, {send: hi}, {expect: hi}, stay]
";
        let pair = start(sim, scenario);
        for (waiting, answered) in [(6, 0), (3, 0), (6, 0), (1, 7)] {
            sim.run_for(Duration::from_secs(2));
            let load = pair.load_counters();
            assert_eq!((load.cue_waiting, load.messages_answered), (waiting, answered), "{load:?}");
        }
        pair.finish(sim, Duration::from_secs(60));
        let load = pair.load_counters();
        // Three were stopped while the run went on, and the last one by its end.
        assert_eq!((load.cue_waiting, load.users_cut, pair.errors()), (1, 4, 0), "{load:?}");
    });
}

/// Runs users that meet again and again while others come and leave, and connections break.
fn crowd(sim: &mut Sim) -> LoadCounters {
    sim.set_faults(Faults::rough());
    let scenario = "
load: [{ramp: {to: 30, over: 1s}}, {hold: {for: 20s}}, {ramp: {to: 0, over: 1s}}]
user:
  - connect: {timeout: 60s}
  - repeat:
      times: 5
      do:
        - barrier: {name: meet, users: 4, timeout: 3s}
        - send: hello
        - expect: {text: hello, timeout: 60s}
        - wait: 100ms ±50%
  - close: reset
";
    let pair = start(sim, scenario);
    pair.finish(sim, Duration::from_secs(600));
    for core in &pair.load_cores {
        let counters = core.borrow_mut().cx().counters();
        assert_eq!((counters.slots, counters.panics), (0, 0));
    }
    pair.load_counters()
}

#[test]
fn a_barrier_never_stands_still_while_enough_users_come() {
    check_over_all(20, |sim| {
        let load = crowd(sim);
        assert_eq!(load.cue_waiting, 0, "{load:?}");
        assert!(load.messages_answered > 300, "{load:?}");
    });
}

#[test]
fn a_run_with_waits_is_repeated_by_its_seed() {
    for seed in 0..3 {
        assert_eq!(crowd(&mut Sim::new(seed)), crowd(&mut Sim::new(seed)));
    }
}
