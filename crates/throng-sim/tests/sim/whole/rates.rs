//! The scenario's own limits hold, over all cores.

use std::time::Duration;
use throng_measure::Operation;

use throng_load::program::Program;
use throng_load::scenario::Scenario;
use throng_server::AcceptTopology;
use throng_sim::{Sim, check_over_all};

use super::pair::{Pair, Shape};

fn start(sim: &mut Sim, scenario: &str) -> Pair {
    let shape = Shape { load_cores: vec![3], ..Shape::default() };
    Pair::start(sim, AcceptTopology::Reuseport, shape, scenario)
}

/// Users that send as fast as the server answers.
const EAGER: &str = "
load: [{ramp: {to: 60, over: 1s}}, {hold: {for: 60s}}]
user:
  - connect
  - repeat: {for: 1h, do: [{send: hi}, {expect: hi}]}
";

#[test]
fn all_users_together_keep_a_rate_to_within_one_percent() {
    check_over_all(5, |sim| {
        let pair = start(sim, &format!("limits: {{all: {{send: 1000/s}}}}\n{EAGER}"));
        sim.run_for(Duration::from_secs(2));
        let (mut before, mut most) = (pair.load_counters().messages_sent, 0);
        let first = before;
        for _ in 0..500 {
            sim.run_for(Duration::from_millis(100));
            let now = pair.load_counters().messages_sent;
            most = most.max(now - before);
            before = now;
        }
        let sent = before - first;
        assert!((49_500..=50_500).contains(&sent), "{sent} in 50 s");
        assert!(most <= 105, "a burst: {most} in 100 ms");
        let limits: Vec<_> = pair.core_stats().iter().map(|stats| stats.limits[0]).collect();
        let (steps, held) =
            limits.iter().fold((0, 0), |sum, it| (sum.0 + it.steps, sum.1 + it.held));
        assert!(held * 10 > steps * 9, "nearly all waited: {held} of {steps}");
        // A user waits for 60 ms in its turn, and the latency has none of it.
        let latency_us =
            pair.core_stats().iter().map(|stats| stats.times[Operation::Message].max()).max();
        assert!(latency_us < Some(40_000), "{latency_us:?}");
    });
}

#[test]
fn each_user_keeps_its_own_rate() {
    check_over_all(5, |sim| {
        let pair = start(sim, &format!("limits: {{user: {{send: 10/s}}}}\n{EAGER}"));
        sim.run_for(Duration::from_secs(2));
        let before = pair.load_counters().messages_sent;
        sim.run_for(Duration::from_secs(50));
        let sent = pair.load_counters().messages_sent - before;
        assert!((29_700..=30_300).contains(&sent), "{sent} of 60 users in 50 s");
    });
}

#[test]
fn connects_keep_their_rate() {
    check_over_all(5, |sim| {
        let scenario = "
limits: {all: {connect: 50/s}}
load: [{ramp: {to: 60, over: 1s}}, {hold: {for: 60s}}]
user: [connect, {close: reset}]
";
        let pair = start(sim, scenario);
        sim.run_for(Duration::from_secs(2));
        let before = pair.load_counters().connects_started;
        sim.run_for(Duration::from_secs(50));
        let connects = pair.load_counters().connects_started - before;
        assert!((2_475..=2_525).contains(&connects), "{connects} in 50 s");
    });
}

#[test]
fn a_scenario_without_limits_has_no_op_for_them() {
    let compile = |limits: &str| {
        let text = format!("target: tcp://h:1\n{limits}{EAGER}");
        let scenario = Scenario::parse(&text, "test").unwrap_or_else(|wrong| panic!("{wrong}"));
        Program::compile(&scenario).ops().len()
    };
    let without = compile("");
    assert_eq!(compile("limits: {all: {send: 1/s}}"), without + 1);
    assert_eq!(compile("limits: {all: {send: 1/s}, user: {send: 1/s, connect: 1/s}}"), without + 3);
    // Connect, the loop's two ops, send, expect, the end.
    assert_eq!(without, 6);
}
