//! Measurements over real sockets.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use throng_measure::{ErrorKind, Operation};

use crate::run::{answer_after, run, server, server_on};

#[test]
fn arrivals_connect_ask_and_leave() {
    let target = server(|stream| answer_after(stream, Duration::ZERO));
    let run = run(
        target,
        "load: [{arrivals: {rate: 200/s, for: 2s, spacing: even}}]\n\
         user: [connect, {send: hi}, {expect: ok}, close]\n",
    );
    let counters = &run.last.counters;
    assert_eq!(
        (counters.users_intended, counters.users_started, counters.users_finished),
        (400, 400, 400)
    );
    assert_eq!(
        (counters.connects_ok, counters.messages_sent, counters.messages_answered),
        (400, 400, 400)
    );
    assert_eq!((counters.connected, counters.users_active, counters.users_failed), (0, 0, 0));
    assert_eq!(
        (run.times[Operation::Connect].count(), run.times[Operation::Message].count()),
        (400, 400)
    );
}

#[test]
fn closed_users_begin_again_until_the_ramp_comes_down() {
    let target = server(|stream| answer_after(stream, Duration::ZERO));
    let run = run(
        target,
        "load: [{ramp: {to: 20, over: 500ms}}, {hold: {for: 1s}}, {ramp: {to: 0, over: 500ms}}]\n\
         user: [connect, {wait: 100ms ±10%}, close]\n",
    );
    let counters = &run.last.counters;
    assert_eq!((counters.users_started, counters.connected, counters.users_failed), (20, 0, 0));
    // Twenty users for a second and a half of full load, at most eleven times a second each.
    assert!((40..=450).contains(&counters.iterations), "{counters:?}");
}

/// The delay that the machine adds varies; `throng-sim` shows on virtual time that the generator
/// adds nothing.
#[test]
fn no_answer_is_measured_as_faster_than_it_was() {
    fn check(delay_ms: u64, serve: fn(TcpStream)) {
        let run = run(
            server(serve),
            "load: [{arrivals: {rate: 4/s, for: 1s, spacing: even}}, {hold: {for: 1s}}]\n\
             user: [connect, {every: {rate: 5/s, for: 1s, do: [{send: hi}, {expect: ok}]}}, \
             close]\n",
        );
        assert_eq!(run.times[Operation::Message].count(), 20);
        let least = run.times[Operation::Message].percentile(0.0);
        assert!(least >= 1_000 * delay_ms, "{least} us for {delay_ms} ms");
    }
    check(1, |stream| answer_after(stream, Duration::from_millis(1)));
    check(10, |stream| answer_after(stream, Duration::from_millis(10)));
    check(100, |stream| answer_after(stream, Duration::from_millis(100)));
}

#[test]
fn a_refused_connect_is_counted_by_errno() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    drop(listener);
    let run = run(
        target,
        "load: [{arrivals: {rate: 50/s, for: 1s, spacing: even}}]\nuser: [connect, close]\n\
         on_error: stop\n",
    );
    assert_eq!(run.last.connect_failed.get("ECONNREFUSED"), 50);
    assert_eq!(run.last.counters.users_failed, 50);
}

#[test]
fn a_wrong_answer_and_a_missing_one_are_different_errors() {
    let wrong = server(|mut stream| {
        let _ = stream.read(&mut [0; 100]);
        let _ = stream.write_all(b"no");
        // It stays open until the client closes.
        while let Ok(1..) = stream.read(&mut [0; 100]) {}
    });
    let rest = |timeout: &str| {
        format!(
            "load: [{{arrivals: {{rate: 10/s, for: 1s, spacing: even}}}}]\n\
             user: [connect, {{send: hi}}, {{expect: {{text: ok, timeout: {timeout}}}}}, close]\n\
             on_error: stop\n"
        )
    };
    assert_eq!(run(wrong, &rest("60s")).last.errors.get(ErrorKind::ExpectMismatch), 10);
    let silent = server(|mut stream| while let Ok(1..) = stream.read(&mut [0; 100]) {});
    assert_eq!(run(silent, &rest("300ms")).last.errors.get(ErrorKind::ExpectTimeout), 10);
    let closing = server(drop);
    let lost = run(closing, &rest("60s")).last.errors;
    assert_eq!(
        lost.get(ErrorKind::ClosedByPeer.name()) + lost.get(ErrorKind::ResetByPeer.name()),
        10,
        "{lost:?}"
    );
}

#[test]
fn a_connection_that_the_server_closes_is_reported_with_its_idle_time_and_its_age() {
    let target = server(|mut stream| {
        // It answers one message after 100 ms, and closes 200 ms after that.
        let _ = stream.read(&mut [0; 100]);
        std::thread::sleep(Duration::from_millis(100));
        let _ = stream.write_all(b"ok");
        std::thread::sleep(Duration::from_millis(200));
    });
    let run = run(
        target,
        "load: [{arrivals: {rate: 10/s, for: 1s, spacing: even}}]\n\
         user: [connect, {send: hi}, {expect: ok}, {wait: 60s}]\non_error: stop\n",
    );
    assert_eq!(run.last.errors.get(ErrorKind::ClosedByPeer), 10);
    assert_eq!(run.early_closes.len(), 10);
    for close in &run.early_closes {
        assert_eq!(close.error, ErrorKind::ClosedByPeer.name());
        // Whole milliseconds of two clocks may differ by one.
        assert!(close.idle_ms >= 150 && close.open_ms >= close.idle_ms + 50, "{close:?}");
    }
}

#[test]
fn a_stall_of_a_second_shows_in_the_slowest_answers() {
    // All connections share one lock. It is held for a second once, while all of them are active.
    static STALL: RwLock<()> = RwLock::new(());
    static ANSWERS: AtomicU64 = AtomicU64::new(0);
    let target = server(|mut stream| {
        while let Ok(1..) = stream.read(&mut [0; 100]) {
            drop(STALL.read());
            ANSWERS.fetch_add(1, Relaxed);
            if stream.write_all(b"ok").is_err() {
                return;
            }
        }
    });
    std::thread::spawn(|| {
        while ANSWERS.load(Relaxed) < 100 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _held = STALL.write();
        std::thread::sleep(Duration::from_secs(1));
    });
    let run = run(
        target,
        "load: [{arrivals: {rate: 20/s, for: 500ms, spacing: even}}, {hold: {for: 4s}}]\n\
         user: [connect, {every: {rate: 50/s, for: 4s, do: [{send: hi}, {expect: ok}]}}, close]\n",
    );
    // If every user waited for its answer before the next message was due, only ten answers would
    // show the stall.
    let stalled = run.times[Operation::Message]
        .iter()
        .filter(|(us, _)| *us > 100_000)
        .map(|(_, n)| u64::from(n))
        .sum::<u64>();
    assert!(
        run.times[Operation::Message].percentile(99.9) > 900_000,
        "p99.9 {} us",
        run.times[Operation::Message].percentile(99.9)
    );
    assert!(stalled > 300, "{stalled} of {} show it", run.times[Operation::Message].count());
}

#[test]
fn users_that_wait_for_an_answer_when_the_run_ends_are_counted_with_the_longest_wait() {
    // The third answer and all later ones never come.
    let target = server(|mut stream| {
        let mut bytes = [0; 64];
        for _ in 0..2 {
            if stream.read(&mut bytes).unwrap_or(0) == 0 || stream.write_all(b"ok").is_err() {
                return;
            }
        }
        while let Ok(1..) = stream.read(&mut bytes) {}
    });
    let run = run(
        target,
        "load: [{ramp: {to: 10, over: 100ms}}, {hold: {for: 4s}}]\n\
         user: [connect, {every: {rate: 10/s, do: [{send: hi}, {expect: ok}]}}]\n",
    );
    let counters = &run.last.counters;
    assert_eq!((counters.messages_answered, counters.users_waiting), (20, 10), "{counters:?}");
    let waited_us = counters.users_waiting_us_most;
    assert!(waited_us > 1_000_000, "{counters:?}");
    assert!(
        run.times[Operation::Message].count() == 20
            && run.times[Operation::Message].max() < waited_us,
        "no answer ended the waits"
    );
    assert_eq!((counters.messages_waiting, counters.users_cut), (10, 10), "{counters:?}");
    assert_eq!(run.times.unanswered[Operation::Message].count(), 10 + counters.turns_waiting);
    assert!(run.times.unanswered[Operation::Message].max() > 1_000_000, "{counters:?}");
}

#[test]
fn an_ipv6_target_is_loaded_as_well() {
    let listener = TcpListener::bind("[::1]:0").expect("this machine has IPv6 on loopback");
    let target = server_on(listener, |stream| answer_after(stream, Duration::ZERO));
    let run = run(
        target,
        "load: [{arrivals: {rate: 50/s, for: 1s, spacing: even}}]\n\
         user: [connect, {send: hi}, {expect: ok}, close]\n",
    );
    assert_eq!((run.last.counters.users_finished, run.times[Operation::Message].count()), (50, 50));
}
