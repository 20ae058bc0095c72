//! Runs that are controlled by hand.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use throng_load::run::RunningLoad;
use throng_measure::LoadCounters;

use crate::run::{RUN_TIMEOUT, run_controlled, server};

/// Starts a server that reads and never answers.
fn silent_server() -> SocketAddr {
    server(|mut stream| while let Ok(1..) = stream.read(&mut [0; 100]) {})
}

/// Waits until `condition` and returns the counters.
fn wait_until(load: &mut RunningLoad, condition: impl Fn(&LoadCounters) -> bool) -> LoadCounters {
    let begun = Instant::now();
    loop {
        let counters = load.snapshot().counters;
        if condition(&counters) {
            return counters;
        }
        assert!(begun.elapsed() < RUN_TIMEOUT, "{counters:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn users_that_are_added_and_stopped_by_hand_are_counted_once() {
    let load = "load: [{ramp: {to: 10, over: 100ms}}, {hold: {for: 1h}}]\nuser: [connect, stay]";
    let last = run_controlled(silent_server(), load, |load| {
        wait_until(load, |counters| counters.connected == 10);
        load.add_users(15);
        let counters = wait_until(load, |counters| counters.connected == 25);
        assert_eq!((counters.users_intended, counters.users_started), (25, 25));
        // Twice in a row: no user is counted twice.
        load.stop_users(5);
        load.stop_users(5);
        let counters = wait_until(load, |counters| counters.connected <= 15);
        assert_eq!((counters.connected, counters.users_active), (15, 15));
        // The cores do not have equally many: what one lacks, another stops.
        load.stop_users(15);
        let counters = wait_until(load, |counters| counters.connected == 0);
        assert_eq!(counters.users_active, 0);
        load.ramp_down();
    });
    let counters = last.counters;
    assert_eq!(
        (counters.users_started, counters.users_finished, counters.users_failed),
        (25, 25, 0)
    );
}

#[test]
fn a_pause_holds_the_schedule_and_a_resume_goes_on_with_it() {
    let load = "load: [{arrivals: {rate: 20/s, for: 5s, spacing: even}}]\nuser: [connect, close]";
    let mut paused_us = 0;
    let last = run_controlled(silent_server(), load, |load| {
        wait_until(load, |counters| counters.users_started >= 20);
        load.pause();
        // The cores receive the message at different moments and finish their present work.
        let mut paused = load.snapshot().counters;
        let begun = Instant::now();
        let mut unchanged_since = begun;
        while unchanged_since.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(50));
            let later = load.snapshot().counters;
            let of = |counters: &LoadCounters| (counters.users_intended, counters.users_started);
            if of(&later) != of(&paused) {
                (paused, unchanged_since) = (later, Instant::now());
            }
            assert!(begun.elapsed() < RUN_TIMEOUT, "no user is due in a pause: {paused:?}");
        }
        assert!(paused.users_intended < 100, "the pause came before the end");
        assert!(load.snapshot().paused);
        load.resume();
        assert!(!load.snapshot().paused);
        paused_us = begun.elapsed().as_micros() as u64;
    });
    let counters = last.counters;
    assert_eq!((counters.users_intended, counters.users_started), (100, 100));
    assert!(last.lag.is_empty() || last.lag.percentile(100.0) < paused_us, "a pause is no lag");
}

#[test]
fn a_user_that_waits_when_a_run_is_ended_twice_is_counted_once() {
    let load = "load: [{ramp: {to: 50, over: 100ms}}, {hold: {for: 1h}}]\n\
        user: [connect, expect: {text: never, timeout: 1h}]";
    let last = run_controlled(silent_server(), load, |load| {
        wait_until(load, |counters| counters.connected == 50);
        load.ramp_down();
        load.ramp_down();
    });
    assert_eq!(last.counters.users_waiting, 50);
}

#[test]
fn a_ramp_down_ends_all_users_whatever_they_do() {
    // A listener whose connections nothing accepts: connects beyond its queue stay undecided.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    let load = concat!(
        "load: [{arrivals: {rate: 200/s, for: 30m}}]\n",
        "users:\n",
        "  a: {user: [connect, {expect: {text: never, timeout: 1h}}]}\n",
        "  b: {user: [connect, wait: 1h]}\n",
        "  c: {user: [connect, {every: {period: 10ms, do: [send: x]}}]}\n",
        "  d: {user: [repeat: {for: 1h, do: [connect, close]}], on_error: continue}\n",
    );
    let begun = Instant::now();
    let last = run_controlled(target, load, |load| {
        std::thread::sleep(Duration::from_secs(1));
        load.ramp_down();
    });
    assert!(begun.elapsed() < RUN_TIMEOUT, "the run waits for no user");
    let counters = &last.counters;
    assert_eq!((counters.connected, counters.users_active), (0, 0));
    let ends = counters.users_finished + counters.users_failed + counters.users_cut;
    assert_eq!(counters.iterations, ends);
    let ends = counters.connects_ok + counters.connects_failed + counters.connects_waiting;
    assert_eq!(counters.connects_started, ends, "{counters:?}");
    assert!(counters.connects_waiting > 0, "some connects were undecided");
    assert_eq!(last.classes.len(), 4);
}
