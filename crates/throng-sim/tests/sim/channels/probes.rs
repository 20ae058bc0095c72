//! Missing, duplicate and reordered deliveries: the probes find each of them, and no other.

use std::collections::BTreeMap;
use std::time::Duration;

use throng_measure::{Merge, Operation, ProbeCounters};
use throng_sim::{Faults, check, check_over_all};

use super::server::{Deliver, Script};
use super::world::World;

/// Scenario of sixty users who stay, and a probe every ten seconds.
const STAY: &str = "
load: [{arrivals: {rate: 30/s, for: 2s, spacing: even}}, {hold: {for: 1m}}]
user: [connect, join: {topic: \"rooms:lobby\", payload: {user: \"${user.id}\"}}, stay]
probe: [{every: 10s, timeout: 15s, broadcast: {topic: \"rooms:lobby\", event: new_msg, \
    payload: {body: hi}}}]
";

const LIMIT: Duration = Duration::from_secs(300);

fn of(probes: &[&ProbeCounters], get: fn(&ProbeCounters) -> u64) -> Vec<u64> {
    probes.iter().map(|probe| get(probe)).collect()
}

fn sum(probes: &BTreeMap<u32, ProbeCounters>) -> ProbeCounters {
    probes.values().fold(ProbeCounters::default(), |mut sum, probe| {
        sum.merge(probe);
        sum
    })
}

#[test]
fn every_user_gets_every_probe_under_all_network_faults() {
    check_over_all(10, |sim| {
        sim.set_faults(Faults { syn_loss: 0.0, ..Faults::rough() });
        let world = World::start(sim, Script::default(), STAY);
        let totals = world.finish(sim, LIMIT);
        assert_eq!(totals.errors.total(), 0, "{totals:?}");
        let probes: Vec<_> = totals.probes.values().collect();
        assert_eq!(of(&probes, |probe| probe.sent), [1; 6], "{totals:?}");
        assert_eq!(of(&probes, |probe| probe.delivered), [60; 6], "{totals:?}");
        assert_eq!(totals.times[Operation::Broadcast].count(), 360);
        assert_eq!(totals.counters.joins_ok, 60);
        assert_eq!(totals.times[Operation::Connect].count(), 60);
        assert!(
            totals.times[Operation::Tcp].percentile(50.0)
                <= totals.times[Operation::Connect].percentile(50.0)
        );
    });
}

#[test]
fn the_planted_faults_are_found_and_no_others() {
    let script = || Script {
        deliver: |number, user| match (number, user) {
            (1, 0..7) => Deliver::Never,
            (2, 5..15) => Deliver::Twice,
            (3, 20..24) | (4, 30) => Deliver::BehindNext,
            (5, 30) => Deliver::Never,
            _ => Deliver::Once,
        },
        ..Script::default()
    };
    check_over_all(10, |sim| {
        sim.set_faults(Faults { syn_loss: 0.0, ..Faults::rough() });
        let world = World::start(sim, script(), STAY);
        let totals = world.finish(sim, LIMIT);
        let probes: Vec<_> = totals.probes.values().collect();
        assert_eq!(of(&probes, |probe| probe.expected), [60; 6], "{totals:?}");
        assert_eq!(of(&probes, |probe| probe.missing), [7, 0, 0, 0, 1, 0], "{totals:?}");
        assert_eq!(of(&probes, |probe| probe.duplicates), [0, 10, 0, 0, 0, 0], "{totals:?}");
        // The deliveries of probe 3 arrive behind probe 4. That of probe 4 arrives with probe 5,
        // which itself is lost.
        assert_eq!(of(&probes, |probe| probe.out_of_order), [0, 0, 4, 0, 0, 0], "{totals:?}");
        assert_eq!(of(&probes, |probe| probe.delivered), [53, 60, 60, 60, 59, 60]);
        assert_eq!(of(&probes, |probe| probe.left + probe.late + probe.unexpected), [0; 6]);
    });
}

#[test]
fn users_who_join_and_leave_are_neither_missing_nor_awaited() {
    let talk = "
load: [{ramp: {to: 40, over: 5s}}, {hold: {for: 40s}}, {ramp: {to: 0, over: 5s}}]
users:
  visitor:
    weight: 3
    user:
      - connect
      - join: {topic: \"rooms:lobby\", payload: {user: \"${user.id}\"}}
      - push: {topic: \"rooms:lobby\", event: echo}
      - wait: 2s ±90%
      - leave: {topic: \"rooms:lobby\"}
      - close
  elsewhere: {user: [connect, join: {topic: \"rooms:other\"}, stay]}
probe: [{every: 500ms, timeout: 5s, broadcast: {topic: \"rooms:lobby\", event: new_msg}}]
";
    check_over_all(10, |sim| {
        sim.set_faults(Faults { syn_loss: 0.0, ..Faults::rough() });
        let world = World::start(sim, Script::default(), talk);
        let totals = world.finish(sim, LIMIT);
        assert_eq!(totals.errors.total(), 0, "{totals:?}");
        let sum = sum(&totals.probes);
        assert_eq!(
            (sum.missing, sum.late, sum.duplicates, sum.out_of_order),
            (0, 0, 0, 0),
            "{sum:?}"
        );
        assert_eq!(sum.intended, sum.sent + sum.skipped, "{sum:?}");
        assert!(sum.delivered > 1_000 && sum.sent > 60, "{sum:?}");
    });
}

#[test]
fn a_probe_outlives_its_sender_and_one_without_subscribers_is_skipped() {
    let short = "
load: [{arrivals: {rate: 10/s, for: 1s, spacing: even}}, {hold: {for: 25s}}]
user: [connect, join: {topic: \"rooms:lobby\", payload: {user: \"${user.id}\"}}, wait: 12s, \
    leave: {topic: \"rooms:lobby\"}, wait: 10s, close]
probe: [{every: 5s, broadcast: {topic: \"rooms:lobby\", event: new_msg}}]
";
    check_over_all(5, |sim| {
        let world = World::start(sim, Script::default(), short);
        let totals = world.finish(sim, LIMIT);
        let probes: Vec<_> = totals.probes.values().collect();
        assert_eq!(of(&probes, |probe| probe.sent), [1, 1, 0, 0, 0], "{totals:?}");
        assert_eq!(of(&probes, |probe| probe.skipped), [0, 0, 1, 1, 1], "{totals:?}");
        assert_eq!(of(&probes, |probe| probe.delivered), [10, 10, 0, 0, 0], "{totals:?}");
        assert_eq!(totals.errors.total(), 0, "{totals:?}");
    });
}

#[test]
fn a_user_that_waits_for_its_close_to_be_answered_leaves_the_probe_to_another() {
    // A delay of a second in each direction: at 10 s the leaving users have sent their close, and
    // have no answer yet.
    let far = "
load: [{arrivals: {rate: 1000/s, for: 20ms, spacing: even}}, {hold: {for: 15s}}]
users:
  leaver:
    weight: 9
    user: [connect, join: {topic: \"rooms:lobby\"}, wait: 3500ms, close]
  stayer: {user: [connect, join: {topic: \"rooms:lobby\"}, stay]}
probe: [{every: 10s, broadcast: {topic: \"rooms:lobby\", event: new_msg}}]
";
    check(5, |sim| {
        let second = Duration::from_secs(1);
        sim.set_faults(Faults { delay_min: second, delay_max: second, ..Faults::default() });
        let world = World::start(sim, Script::default(), far);
        let totals = world.finish(sim, LIMIT);
        let probe = &totals.probes[&1];
        assert_eq!((probe.expected, probe.sent, probe.skipped), (20, 1, 0), "{probe:?}");
        assert_eq!((probe.delivered, probe.left), (2, 18), "{probe:?}");
    });
}

#[test]
fn probes_that_follow_one_another_within_milliseconds_are_all_sent() {
    let fast = "
load: [{arrivals: {rate: 10/s, for: 1s, spacing: even}}, {hold: {for: 2s}}]
user: [connect, join: {topic: \"rooms:lobby\", payload: {user: \"${user.id}\"}}, stay]
probe: [{every: 10ms, timeout: 1s, broadcast: {topic: \"rooms:lobby\", event: new_msg}}]
";
    check_over_all(5, |sim| {
        let world = World::start(sim, Script::default(), fast);
        let totals = world.finish(sim, LIMIT);
        let sum = sum(&totals.probes);
        assert_eq!((sum.missing, sum.late), (0, 0), "{sum:?}");
        assert_eq!(sum.intended, sum.sent + sum.skipped, "{sum:?}");
        assert!(sum.sent > 200, "{sum:?}");
    });
}

#[test]
fn a_probe_at_the_end_of_the_run_is_sent_or_skipped_and_not_both() {
    let fast = "
load: [{arrivals: {rate: 30/s, for: 1s, spacing: even}}, {hold: {for: 1m}}]
user: [connect, join: {topic: \"rooms:lobby\", payload: {user: \"${user.id}\"}}, stay]
probe: [{every: 7ms, broadcast: {topic: \"rooms:lobby\", event: new_msg}}]
";
    check_over_all(20, |sim| {
        let mail_delay_max = Duration::from_millis(2);
        sim.set_faults(Faults { message_delay_max: mail_delay_max, ..Faults::none() });
        let world = World::start(sim, Script::default(), fast);
        sim.run_for(Duration::from_millis(3_000 + sim.seed() % 7));
        world.ramp_down();
        let sum = sum(&world.finish(sim, LIMIT).probes);
        assert_eq!(sum.intended, sum.sent + sum.skipped, "{sum:?}");
        assert_eq!((sum.missing, sum.late), (0, 0), "{sum:?}");
    });
}

#[test]
fn rooms_by_template_get_the_probe_of_their_own_room_only() {
    let rooms = "
load: [{arrivals: {rate: 40/s, for: 1s, spacing: even}}, {hold: {for: 10s}}]
user: [connect: {vsn: 1.0.0}, join: {topic: \"rooms:${user.id % 4}\", \
    payload: {user: \"${user.id}\"}}, join: {topic: \"rooms:all\"}, stay]
probe: [{every: 5s, broadcast: {topic: \"rooms:3\", event: new_msg}}]
";
    check_over_all(5, |sim| {
        let world = World::start(sim, Script::default(), rooms);
        let totals = world.finish(sim, LIMIT);
        let probes: Vec<_> = totals.probes.values().collect();
        assert_eq!(of(&probes, |probe| probe.expected), [10, 10], "{totals:?}");
        assert_eq!(of(&probes, |probe| probe.delivered), [10, 10], "{totals:?}");
        assert_eq!((totals.counters.joins_ok, totals.errors.total()), (80, 0), "{totals:?}");
    });
}
