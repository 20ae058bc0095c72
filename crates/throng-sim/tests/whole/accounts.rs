//! What both ends counted agrees, whatever happened between them.

use std::time::Duration;

use throng_server::AcceptTopology;
use throng_sim::{Faults, Sim, check};

use crate::pair::{Pair, Shape};

/// 60 users who come and go for five seconds, each with three questions.
const TALK: &str = "
load: [{ramp: {to: 60, over: 1s}}, {hold: {for: 4s}}, {ramp: {to: 0, over: 1s}}]
user:
  - connect
  - repeat: {times: 3, do: [{send: 'user ${user.id} asks?'}, {expect: {until: '?'}}, {wait: 100ms ±50%}]}
  - close
";

/// Arrivals with three questions each; all of them end by themselves.
const ASK: &str = "
load: [{arrivals: {rate: 100/s, for: 4s}}]
user:
  - connect
  - repeat: {times: 3, do: [{send: 'user ${user.id} asks?'}, {expect: {until: '?'}}, {wait: 100ms ±50%}]}
  - close
";

/// Arrivals that send much at once and take it back.
const BULK: &str = "
load: [{arrivals: {rate: 50/s, for: 3s}}]
user: [connect, {send: {random: 20KiB}}, {expect: {bytes: 20480, timeout: 60s}}, close]
";

/// A network without losses, so slow and narrow that everything happens in pieces.
fn rough() -> Faults {
    Faults { syn_loss: 0.0, window_bytes_min: 500, ..Faults::rough() }
}

fn any_accept(sim: &mut Sim) -> AcceptTopology {
    [AcceptTopology::Reuseport, AcceptTopology::Shared, AcceptTopology::Dispatch]
        [sim.prng().below(3) as usize]
}

/// Everything is closed, given back, and told once.
fn books_are_closed(sim: &mut Sim, pair: &Pair) {
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
    assert_eq!(pair.server.permits().in_use(), 0, "every permit came back");
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

/// Who closes by a reset leaves by one too, so that no port stays in TIME-WAIT.
#[test]
fn users_that_the_end_finds_leave_as_they_close() {
    for (close, expected) in [("close: reset", 40), ("close", 0)] {
        check(10, |sim| {
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
    books_are_closed(sim, &pair);
    let load = pair.load_counters();
    assert_eq!((pair.errors(), load.users_failed), (0, 0), "{accept:?} {:?}", pair.slates());
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
fn both_ends_agree_on_a_calm_network() {
    check(6, |sim| without_an_error(sim, Faults::none(), ASK));
}

#[test]
fn both_ends_agree_on_a_rough_network() {
    check(15, |sim| without_an_error(sim, rough(), ASK));
}

#[test]
fn what_is_sent_in_bulk_comes_back_on_a_rough_network() {
    check(8, |sim| without_an_error(sim, rough(), BULK));
}

#[test]
fn both_ends_close_their_books_on_a_hostile_network() {
    check(30, |sim| {
        sim.set_faults(Faults::hostile());
        let accept = any_accept(sim);
        let pair = Pair::start(sim, accept, Shape::default(), TALK);
        pair.finish(sim, Duration::from_secs(300));
        books_are_closed(sim, &pair);
        assert!(pair.errors() > 0, "nothing went wrong");
        assert!(pair.load_counters().users_finished > 50, "{:?}", pair.load_counters());
    });
}

#[test]
fn a_server_that_is_suspended_and_resumed_serves_again() {
    check(15, |sim| {
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
        books_are_closed(sim, &pair);
    });
}
