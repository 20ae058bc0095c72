//! What is measured, over real sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::run::{answer_after, run, server, server_on};

#[test]
fn arrivals_connect_ask_and_leave() {
    let target = server(|stream| answer_after(stream, Duration::ZERO));
    let run = run(
        target,
        "load: [{arrivals: {rate: 200/s, for: 2s, spacing: even}}]\nuser: [connect, {send: hi}, {expect: ok}, close]\n",
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
    assert_eq!((run.connect.count(), run.message.count()), (400, 400));
}

#[test]
fn closed_users_begin_again_until_the_ramp_comes_down() {
    let target = server(|stream| answer_after(stream, Duration::ZERO));
    let run = run(
        target,
        "load: [{ramp: {to: 20, over: 500ms}}, {hold: {for: 1s}}, {ramp: {to: 0, over: 500ms}}]\nuser: [connect, {wait: 100ms ±10%}, close]\n",
    );
    let counters = &run.last.counters;
    assert_eq!((counters.users_started, counters.connected, counters.users_failed), (20, 0, 0));
    // Twenty users for a second and a half of full load, at most eleven times a second each.
    assert!((40..=450).contains(&counters.iterations), "{counters:?}");
}

#[test]
fn a_known_delay_is_measured_as_it_is() {
    // Neighbours on the machine make any answer late, so the best of a few runs counts; none may be too early.
    // What the generator adds is small beside what a plain client of the same server sees at the same time.
    fn check(delay_ms: u64, serve: fn(TcpStream)) {
        let asked = delay_ms as f64 * 1_000.0;
        let mut seen = Vec::new();
        for _ in 0..4 {
            let target = server(serve);
            let run = run(
                target,
                "load: [{arrivals: {rate: 4/s, for: 1s, spacing: even}}, {hold: {for: 2s}}]\nuser: [connect, {every: {rate: 5/s, for: 2s, do: [{send: hi}, {expect: ok}]}}, close]\n",
            );
            let p50 = run.message.percentile(50.0) as f64;
            assert!(p50 >= asked, "{p50} us for {delay_ms} ms");
            seen.push(p50);
            let plain = plain_p50_us(target);
            if p50 <= asked * 1.02 + 200.0 + 3.0 * (plain - asked) {
                return;
            }
        }
        panic!("{seen:?} us for {delay_ms} ms");
    }
    check(0, |stream| answer_after(stream, Duration::ZERO));
    check(1, |stream| answer_after(stream, Duration::from_millis(1)));
    check(10, |stream| answer_after(stream, Duration::from_millis(10)));
    check(100, |stream| answer_after(stream, Duration::from_millis(100)));
}

/// What a client of the standard library sees at the median, in microseconds.
fn plain_p50_us(target: SocketAddr) -> f64 {
    let mut stream = TcpStream::connect(target).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut took: Vec<_> = (0..15)
        .map(|_| {
            // Paced as the users of the run: what sleeps is woken late.
            std::thread::sleep(Duration::from_millis(50));
            let begun = Instant::now();
            stream.write_all(b"hi").unwrap();
            stream.read_exact(&mut [0; 2]).unwrap();
            begun.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    took.sort_by(f64::total_cmp);
    took[took.len() / 2]
}

#[test]
fn a_refused_connect_is_counted_by_errno() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    drop(listener);
    let run = run(
        target,
        "load: [{arrivals: {rate: 50/s, for: 1s, spacing: even}}]\nuser: [connect, close]\non_error: stop\n",
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
            "load: [{{arrivals: {{rate: 10/s, for: 1s, spacing: even}}}}]\nuser: [connect, {{send: hi}}, {{expect: {{text: ok, timeout: {timeout}}}}}, close]\non_error: stop\n"
        )
    };
    assert_eq!(run(wrong, &rest("60s")).last.errors.get("expect_mismatch"), 10);
    let silent = server(|mut stream| while let Ok(1..) = stream.read(&mut [0; 100]) {});
    assert_eq!(run(silent, &rest("300ms")).last.errors.get("expect_timeout"), 10);
    let closing = server(drop);
    let lost = run(closing, &rest("60s")).last.errors;
    assert_eq!(lost.get("closed_by_peer") + lost.get("reset_by_peer"), 10, "{lost:?}");
}

#[test]
fn a_stall_of_a_second_shows_in_the_slowest_answers() {
    // All connections share one lock, which is held for a second once.
    static STALL: std::sync::RwLock<()> = std::sync::RwLock::new(());
    let target = server(|mut stream| {
        while let Ok(1..) = stream.read(&mut [0; 100]) {
            drop(STALL.read());
            if stream.write_all(b"ok").is_err() {
                return;
            }
        }
    });
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(1_500));
        let _held = STALL.write();
        std::thread::sleep(Duration::from_secs(1));
    });
    let run = run(
        target,
        "load: [{arrivals: {rate: 20/s, for: 500ms, spacing: even}}, {hold: {for: 4s}}]\nuser: [connect, {every: {rate: 50/s, for: 4s, do: [{send: hi}, {expect: ok}]}}, close]\n",
    );
    // Had every user waited for its answer before the next message was due, only ten would show the stall.
    let stalled =
        run.message.iter().filter(|(us, _)| *us > 100_000).map(|(_, n)| u64::from(n)).sum::<u64>();
    assert!(run.message.percentile(99.9) > 900_000, "p99.9 {} us", run.message.percentile(99.9));
    assert!(stalled > 300, "{stalled} of {} show it", run.message.count());
}

#[test]
fn who_waits_for_an_answer_when_the_run_ends_is_counted_with_the_longest_wait() {
    // The third answer and all that follow would come long after the run.
    let target = server(|mut stream| {
        let mut bytes = [0; 64];
        for _ in 0..2 {
            if stream.read(&mut bytes).unwrap_or(0) == 0 || stream.write_all(b"ok").is_err() {
                return;
            }
        }
        std::thread::sleep(Duration::from_secs(6));
    });
    let run = run(
        target,
        "load: [{ramp: {to: 10, over: 100ms}}, {hold: {for: 2s}}]\nuser: [connect, {every: {rate: 10/s, do: [{send: hi}, {expect: ok}]}}]\n",
    );
    let counters = &run.last.counters;
    assert_eq!((counters.messages_answered, counters.users_waiting), (20, 10), "{counters:?}");
    assert!(counters.users_waiting_us_most > 1_000_000, "{counters:?}");
    assert!(run.message.max() < 1_000_000, "no answer ended the waits");
    assert_eq!((counters.messages_waiting, counters.users_cut), (10, 10), "{counters:?}");
    assert_eq!(run.unanswered.message.count(), 10 + counters.turns_waiting);
    assert!(run.unanswered.message.max() > 1_000_000, "{counters:?}");
}

#[test]
fn an_ipv6_target_is_loaded_as_well() {
    let listener = TcpListener::bind("[::1]:0").expect("this machine has IPv6 on loopback");
    let target = server_on(listener, |stream| answer_after(stream, Duration::ZERO));
    let run = run(
        target,
        "load: [{arrivals: {rate: 50/s, for: 1s, spacing: even}}]\nuser: [connect, {send: hi}, {expect: ok}, close]\n",
    );
    assert_eq!((run.last.counters.users_finished, run.message.count()), (50, 50));
}
