//! The counters of server and generator agree, under all faults.

use std::time::Duration;

use throng_server::AcceptTopology;
use throng_sim::{Faults, Sim, check_over_all};

use super::pair::{Pair, Shape};

/// Scenario of 60 users who connect and disconnect for five seconds, each with three requests.
const TALK: &str = "
load: [{ramp: {to: 60, over: 1s}}, {hold: {for: 4s}}, {ramp: {to: 0, over: 1s}}]
user:
  - connect
  - repeat: {times: 3, do: [{send: 'user ${user.id} asks?'}, {expect: {until: '?'}}, \
      {wait: 100ms ±50%}]}
  - close
";

/// Scenario of arrivals with three requests each, which all finish.
const ASK: &str = "
load: [{arrivals: {rate: 100/s, for: 4s}}]
user:
  - connect
  - repeat: {times: 3, do: [{send: 'user ${user.id} asks?'}, {expect: {until: '?'}}, \
      {wait: 100ms ±50%}]}
  - close
";

/// Scenario of arrivals that send many bytes at once and receive them back.
const BULK: &str = "
load: [{arrivals: {rate: 50/s, for: 3s}}]
user: [connect, {send: {random: 20KiB}}, {expect: {bytes: 20480, timeout: 60s}}, close]
";

/// Returns a network without losses that is slow and has small windows, so all transfers are
/// partial.
fn rough() -> Faults {
    Faults { syn_loss: 0.0, window_bytes_min: 500, ..Faults::rough() }
}

fn any_accept(sim: &mut Sim) -> AcceptTopology {
    [AcceptTopology::Reuseport, AcceptTopology::Shared, AcceptTopology::Dispatch]
        [sim.prng().below(3) as usize]
}

/// Asserts that all sockets are closed, all permits are free, and all counters agree.
fn check_accounts(sim: &mut Sim, pair: &Pair) {
    let load = pair.load_counters();
    assert_eq!(load.users_active, 0);
    assert_eq!(load.connected, 0);
    assert!(load.users_started <= load.iterations, "{load:?}");
    let ends = load.users_finished + load.users_failed + load.users_cut;
    assert_eq!(load.iterations, ends, "{load:?}");
    let ends = load.connects_ok + load.connects_failed + load.connects_waiting;
    assert_eq!(load.connects_started, ends, "{load:?}");
    let ends = load.messages_answered + load.messages_failed + load.messages_waiting;
    assert_eq!(load.messages_expected, ends, "{load:?}");
    let server = pair.server_counters(sim);
    assert_eq!((server.open, server.accepted), (0, server.closed));
    assert_eq!(pair.server.permits().in_use(), 0, "every permit is free again");
    for core in &pair.server_cores {
        let counters = core.borrow_mut().cx().counters();
        assert_eq!((counters.slots, counters.pending_bytes, counters.panics), (0, 0, 0));
    }
    for core in &pair.load_cores {
        let counters = core.borrow_mut().cx().counters();
        assert_eq!((counters.slots, counters.pending_bytes, counters.panics), (0, 0, 0));
    }
    assert_eq!(sim.dropped_sockets(), 0);
}

/// Users who close by a reset also leave by a reset at the end, so that no port stays in TIME-WAIT.
#[test]
fn users_at_the_end_of_the_run_leave_as_they_close() {
    for (close, expected) in [("close: reset", 40), ("close", 0)] {
        check_over_all(10, |sim| {
            let scenario = format!(
                "\nload: [{{ramp: {{to: 40, over: 1s}}}}, {{hold: {{for: 1s}}}}]\n\
                 user: [connect, {{wait: 60s}}, {close}]\n"
            );
            let pair = Pair::start(sim, AcceptTopology::Shared, Shape::default(), &scenario);
            pair.finish(sim, Duration::from_secs(60));
            assert_eq!(pair.server_counters(sim).resets, expected, "{close}");
        });
    }
}

fn without_an_error(sim: &mut Sim, faults: Faults, scenario: &str) {
    sim.set_faults(faults);
    let accept = any_accept(sim);
    let pair = Pair::start(sim, accept, Shape::default(), scenario);
    pair.finish(sim, Duration::from_secs(300));
    check_accounts(sim, &pair);
    let load = pair.load_counters();
    assert_eq!((pair.errors(), load.users_failed), (0, 0), "{accept:?} {:?}", pair.core_stats());
    assert!(load.users_finished >= 100, "{load:?}");
    let server = pair.server_counters(sim);
    assert_eq!(
        (load.users_finished, load.connects_ok),
        (load.users_started, load.connects_started)
    );
    assert_eq!(server.accepted, load.connects_ok);
    assert_eq!(load.messages_sent, load.messages_answered);
}

#[test]
fn server_and_generator_agree_on_a_calm_network() {
    check_over_all(6, |sim| without_an_error(sim, Faults::none(), ASK));
}

#[test]
fn server_and_generator_agree_on_a_rough_network() {
    check_over_all(15, |sim| without_an_error(sim, rough(), ASK));
}

#[test]
fn bulk_bytes_come_back_on_a_rough_network() {
    check_over_all(8, |sim| without_an_error(sim, rough(), BULK));
}

#[test]
fn accounts_close_on_a_hostile_network() {
    check_over_all(30, |sim| {
        sim.set_faults(Faults::hostile());
        let accept = any_accept(sim);
        let pair = Pair::start(sim, accept, Shape::default(), TALK);
        pair.finish(sim, Duration::from_secs(300));
        check_accounts(sim, &pair);
        assert!(pair.errors() > 0, "there was no fault");
        assert!(pair.load_counters().users_finished > 50, "{:?}", pair.load_counters());
    });
}

#[test]
fn a_server_that_is_suspended_and_resumed_serves_again() {
    check_over_all(15, |sim| {
        sim.set_faults(rough());
        let accept = any_accept(sim);
        let pair = Pair::start(sim, accept, Shape::default(), TALK);
        for _ in 0..2 {
            sim.run_for(Duration::from_millis(1_000));
            pair.suspend(sim);
            let accepted = pair.server_counters(sim).accepted;
            sim.run_for(Duration::from_millis(400));
            assert_eq!(pair.server_counters(sim).accepted, accepted, "{accept:?} still accepts");
            pair.listen(sim);
            sim.run_for(Duration::from_millis(1_500));
            assert!(pair.server_counters(sim).accepted > accepted, "{accept:?} accepts no more");
        }
        pair.finish(sim, Duration::from_secs(300));
        check_accounts(sim, &pair);
    });
}
