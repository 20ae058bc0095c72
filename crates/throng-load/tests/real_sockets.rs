//! The generator against plain servers of the standard library, over real sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use throng_load::run::{Load, LoadOptions, LoadPlan};
use throng_load::scenario::Scenario;
use throng_report::{Histogram, LoadInterval};

/// What a whole run has measured.
struct Run {
    last: LoadInterval,
    connect: Histogram,
    message: Histogram,
}

/// A server whose every connection is a thread that runs `serve`.
fn server(serve: fn(TcpStream)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            stream.set_nodelay(true).unwrap();
            std::thread::spawn(move || serve(stream));
        }
    });
    addr
}

fn run(target: SocketAddr, rest: &str) -> Run {
    let scenario = Scenario::parse(&format!("target: tcp://{target}\n{rest}"), "test").unwrap();
    let plan = LoadPlan::new(&scenario, &LoadOptions { cores: Some(2), ..LoadOptions::default() })
        .unwrap();
    let mut load = Load::start(plan).unwrap();
    let (mut connect, mut message) = (Histogram::new(), Histogram::new());
    let begun = Instant::now();
    let last = loop {
        std::thread::sleep(Duration::from_millis(50));
        let interval = load.snapshot();
        connect.merge(&interval.connect);
        message.merge(&interval.message);
        if load.is_finished() {
            break interval;
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", interval.counters);
    };
    assert!(load.join());
    Run { last, connect, message }
}

fn answer_after(mut stream: TcpStream, delay: Duration) {
    let mut buffer = [0; 4096];
    while let Ok(1..) = stream.read(&mut buffer) {
        // Sleeping is late; the last stretch is spun, so that the delay is known.
        let due = Instant::now() + delay;
        if let Some(most) = delay.checked_sub(Duration::from_millis(2)) {
            std::thread::sleep(most);
        }
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        if stream.write_all(b"ok").is_err() {
            return;
        }
    }
}

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
    // Twenty users for a second and a half of full load, ten times a second each.
    assert!((200..=320).contains(&counters.iterations), "{counters:?}");
}

#[test]
fn a_known_delay_is_measured_as_it_is() {
    // Neighbours on the machine make any answer late, so the best of a few runs counts; none may be too early.
    fn check(delay_ms: u64, serve: fn(TcpStream)) {
        let asked = delay_ms as f64 * 1_000.0;
        let mut seen = Vec::new();
        for _ in 0..4 {
            let run = run(
                server(serve),
                "load: [{arrivals: {rate: 4/s, for: 1s, spacing: even}}, {hold: {for: 2s}}]\nuser: [connect, {every: {rate: 5/s, for: 2s, do: [{send: hi}, {expect: ok}]}}, close]\n",
            );
            let p50 = run.message.percentile(50.0) as f64;
            assert!(p50 >= asked, "{p50} us for {delay_ms} ms");
            seen.push(p50);
            if p50 <= asked * 1.02 + 200.0 {
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
        std::thread::sleep(Duration::from_secs(5));
    });
    let rest = "load: [{arrivals: {rate: 10/s, for: 1s, spacing: even}}]\nuser: [connect, {send: hi}, {expect: {text: ok, timeout: 300ms}}, close]\non_error: stop\n";
    assert_eq!(run(wrong, rest).last.errors.get("expect_mismatch"), 10);
    let silent = server(|mut stream| while let Ok(1..) = stream.read(&mut [0; 100]) {});
    assert_eq!(run(silent, rest).last.errors.get("expect_timeout"), 10);
    let closing = server(drop);
    let lost = run(closing, rest).last.errors;
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
