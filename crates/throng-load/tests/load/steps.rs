//! Steps of users and their counters, over real sockets.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::time::Duration;
use throng_measure::{ErrorKind, Operation};

use throng_load::run::LoadOptions;

use crate::run::{Run, answer_after, run, run_with, server};

const ONE: &str = "load: [{arrivals: {rate: 1/s, for: 1s, spacing: even}}]\n";

/// Asserts that every iteration has ended exactly once, in one way.
fn counters_add_up(run: &Run) {
    let counters = &run.last.counters;
    assert_eq!(
        counters.iterations,
        counters.users_finished + counters.users_failed + counters.users_cut,
        "{counters:?} {:?}",
        run.last.errors
    );
    assert_eq!((counters.connected, counters.users_active), (0, 0));
}

#[test]
fn answers_to_messages_in_a_row_count_from_the_first_of_them() {
    let target = server(|mut stream| {
        stream.read_exact(&mut [0; 4]).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        stream.write_all(b"okok").unwrap();
    });
    let run =
        run(target, &format!("{ONE}user: [connect, send: hi, send: ho, expect: ok, expect: ok]"));
    assert_eq!(
        (run.times[Operation::Message].count(), run.last.counters.messages_answered),
        (2, 2)
    );
    assert!(
        run.times[Operation::Message].percentile(1.0) >= 100_000,
        "{}",
        run.times[Operation::Message].percentile(1.0)
    );
    counters_add_up(&run);
}

#[test]
fn a_message_in_two_parts_counts_from_the_first_and_the_next_one_from_itself() {
    let target = server(|mut stream| {
        while stream.read_exact(&mut [0; 4]).is_ok() {
            std::thread::sleep(Duration::from_millis(300));
            stream.write_all(b"ok").unwrap();
        }
    });
    let steps = "user: [connect, repeat: {times: 3, do: [send: hi, send: ho, expect: ok]}]";
    let run = run(target, &format!("{ONE}{steps}"));
    assert_eq!(run.times[Operation::Message].count(), 3);
    assert!(run.times[Operation::Message].percentile(1.0) >= 300_000);
    // One after the other, they took no longer than the run. Counted from the first message, they
    // would have taken twice that.
    let all: u64 = run.times[Operation::Message].iter().map(|(us, n)| us * u64::from(n)).sum();
    assert!(u128::from(all) < run.took.as_micros() + 10_000, "{all} us of {:?}", run.took);
}

#[test]
fn an_answer_that_came_while_the_user_thought_counts_until_it_came() {
    let target = server(|stream| answer_after(stream, Duration::from_millis(20)));
    let run = run(target, &format!("{ONE}user: [connect, send: hi, wait: 3s, expect: ok]"));
    let us = run.times[Operation::Message].percentile(50.0);
    assert!((20_000..3_000_000).contains(&us), "{us} us");
}

#[test]
fn data_of_an_earlier_connection_is_not_for_the_next() {
    let target = server(|mut stream| {
        let _ = stream.write_all(b"AB");
        let _ = stream.read(&mut [0; 10]);
    });
    let steps = "user: [connect, repeat: {times: 3, do: [expect: A, wait: 50ms, close, connect]}]";
    let run = run(target, &format!("{ONE}{steps}"));
    assert_eq!((run.last.errors.total(), run.last.counters.messages_answered), (0, 3));
    counters_add_up(&run);
}

#[test]
fn a_message_larger_than_any_buffer_arrives_whole() {
    let target = server(|mut stream| {
        // The server reads late, so that the message does not fit into the kernel's buffers either.
        std::thread::sleep(Duration::from_millis(300));
        let mut left = 16usize << 20;
        let mut buffer = vec![0; 1 << 16];
        while left > 0 {
            left -= stream.read(&mut buffer).unwrap().min(left);
        }
        stream.write_all(b"ok").unwrap();
    });
    // Many messages in a row, too: a user waits until the server has accepted what it sent.
    for send in ["send: {random: 16MiB}", "repeat: {times: 256, do: [send: {random: 64KiB}]}"] {
        let run = run(
            target,
            &format!("{ONE}user: [connect, {send}, {{expect: {{text: ok, timeout: 60s}}}}, close]"),
        );
        assert_eq!(run.last.errors.total(), 0, "{send}: {:?}", run.last.errors);
        assert_eq!(run.last.counters.users_finished, 1, "{send}");
    }
}

#[test]
fn after_a_half_close_what_comes_is_read_and_a_wait_is_whole() {
    let target = server(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(b"bye").unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
    });
    let run = run(
        target,
        &format!(
            "{ONE}user: [connect, send: hi, close: half, wait: 700ms, expect: bye, wait: 1s, close]"
        ),
    );
    assert_eq!(run.last.errors.total(), 0, "{:?}", run.last.errors);
    assert_eq!(run.last.counters.users_finished, 1);
    assert!(run.took > Duration::from_millis(1_700), "{:?}", run.took);
}

#[test]
fn a_lost_connection_does_not_cut_a_wait_short() {
    let target = server(drop);
    let run = run(
        target,
        &format!(
            "{ONE}user: [connect, wait: 1s, close, connect, wait: 500ms, close]\non_error: continue"
        ),
    );
    let counters = &run.last.counters;
    assert_eq!(counters.connects_ok, 2, "the step behind the wait is not skipped");
    assert!(run.took > Duration::from_millis(1_500), "{:?}", run.took);
    assert_eq!((counters.users_failed, counters.users_finished), (1, 0));
    counters_add_up(&run);
}

#[test]
fn a_user_that_continues_after_errors_fails_once_an_iteration_and_rests_after_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    drop(listener);
    let run = run(
        target,
        "load: [{ramp: {to: 2, over: 1s}}, {hold: {for: 2s}}]\n\
         user: [connect, send: hi, expect: ok, close]\non_error: continue\n",
    );
    let counters = &run.last.counters;
    assert!((2..=8).contains(&counters.iterations), "{counters:?}");
    assert_eq!((counters.users_failed, counters.users_finished), (counters.iterations, 0));
    assert_eq!(run.last.errors.get(ErrorKind::NotConnected), 2 * counters.iterations);
    counters_add_up(&run);
}

#[test]
fn each_policy_counts_a_missing_answer_once_an_iteration() {
    let silent = server(|mut stream| while let Ok(1..) = stream.read(&mut [0; 100]) {});
    for policy in ["stop", "continue", "restart"] {
        let run = run(
            silent,
            &format!(
                "load: [{{ramp: {{to: 4, over: 100ms}}}}, {{hold: {{for: 4s}}}}]\n\
                 user: [connect, send: hi, {{expect: {{text: ok, timeout: 200ms}}}}, close]\n\
                 on_error: {policy}\n"
            ),
        );
        let counters = &run.last.counters;
        // An iteration takes at least 1.1 s, including the rest after it.
        let iterations = if policy == "stop" { 4..=4 } else { 5..=20 };
        assert!(iterations.contains(&counters.iterations), "{policy}: {counters:?}");
        let timeouts = run.last.errors.get(ErrorKind::ExpectTimeout);
        assert_eq!(counters.users_failed, timeouts, "{policy}");
        assert_eq!(run.last.errors.total(), timeouts, "{policy}: {:?}", run.last.errors);
        counters_add_up(&run);
    }
}

#[test]
fn turns_that_are_late_are_started_and_counted() {
    let target = server(|stream| answer_after(stream, Duration::from_millis(300)));
    let run = run(
        target,
        &format!(
            "{ONE}user: [connect, every: {{period: 100ms, for: 1s, do: [send: hi, expect: ok]}}]"
        ),
    );
    let counters = &run.last.counters;
    assert_eq!((counters.turns_intended, counters.turns_started), (10, 10));
    // Turn 9 was due after 0.9 s and answered after 3 s.
    assert!(
        run.times[Operation::Message].percentile(100.0) >= 2_050_000,
        "{}",
        run.times[Operation::Message].percentile(100.0)
    );
}

#[test]
fn counters_count_the_messages_of_one_user() {
    let target = server(|mut stream| {
        let mut text = [0; 8];
        stream.read_exact(&mut text).unwrap();
        stream.write_all(if &text == b"0 0:1 1:" { b"ok" } else { b"no" }).unwrap();
    });
    let run = run(
        target,
        &format!(
            "{ONE}user: [connect, repeat: {{times: 2, do: [send: '${{counter}} ${{counter}}:']}}, \
             expect: ok]"
        ),
    );
    assert_eq!(run.last.errors.total(), 0, "{:?}", run.last.errors);
}

#[test]
fn a_socket_that_is_connected_to_itself_is_no_server() {
    let free = |port: &u16| TcpListener::bind(("127.9.9.8", *port)).is_ok();
    let port = (20_000..30_000).find(free).unwrap();
    let options = LoadOptions {
        cores: Some(1),
        sources: vec!["127.9.9.8".parse().unwrap()],
        source_ports: Some(port..=port),
        ..LoadOptions::default()
    };
    // No server listens, and the only source port is the target's: each connect connects to itself.
    let target = format!("127.9.9.8:{port}").parse().unwrap();
    for policy in ["stop", "continue"] {
        let run = run_with(
            target,
            &format!("{ONE}user: [connect, send: hi, expect: hi, close]\non_error: {policy}\n"),
            &options,
        );
        let counters = &run.last.counters;
        assert_eq!(run.last.connect_failed.get(ErrorKind::SelfConnected), 1, "{:?}", run.last);
        assert_eq!((counters.connects_ok, counters.connects_failed), (0, 1), "{counters:?}");
        assert_eq!((counters.messages_answered, run.times[Operation::Connect].count()), (0, 0));
        counters_add_up(&run);
        // It left no TIME-WAIT: a server can listen on the port at once.
        drop(TcpListener::bind(target).unwrap());
    }
}

#[test]
fn taken_ports_are_skipped_and_named_when_none_is_left() {
    let target = server(|stream| answer_after(stream, Duration::ZERO));
    // Two of the eight ports are taken. Six are left for six users, and none for a seventh.
    let low = (20_000..30_000)
        .step_by(8)
        .find(|&low| (low..low + 8).all(|port| TcpListener::bind(("127.9.9.9", port)).is_ok()))
        .unwrap();
    let _taken: Vec<_> =
        [low, low + 3].map(|port| TcpListener::bind(("127.9.9.9", port)).unwrap()).into();
    let options = LoadOptions {
        cores: Some(1),
        sources: vec!["127.9.9.9".parse().unwrap()],
        source_ports: Some(low..=low + 7),
        ..LoadOptions::default()
    };
    for (users, failed) in [(6, 0), (7, 1)] {
        let run = run_with(
            target,
            &format!(
                "load: [{{arrivals: {{rate: {users}/s, for: 1s, spacing: even}}}}]\n\
                 user: [connect, wait: 4s, close: reset]\non_error: stop\n"
            ),
            &options,
        );
        let counters = &run.last.counters;
        assert_eq!((counters.connects_started, counters.connects_ok), (users, users - failed));
        assert_eq!(counters.connects_failed, failed, "{:?}", run.last.connect_failed);
        assert_eq!(run.last.connect_failed.get("EADDRINUSE"), failed);
        counters_add_up(&run);
    }
}
