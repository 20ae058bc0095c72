//! Requests that are sent again, on another connection or to another port, and those that are not.

use crate::user::tests::play::{HTTP, check};

/// An answer that keeps the connection.
const OK: &str = "http HTTP/1.1 200 OK|content-length: 2||ok";

#[test]
fn a_request_that_got_no_answer_on_an_old_connection_is_sent_again() {
    let begin = format!("0 begin; 1 opened; 2 {OK}");
    for end in ["3 closed reset", "3 fin; 3 closed finished"] {
        check(
            HTTP,
            "[get: /a, put: {path: \"/b/${counter}/${random(1, 9)}\", body: x}]",
            &[
                (
                    &begin,
                    "answer 200 2, no deadline, time-out 5002, sent PUT /b/0/5 x, http_started +1",
                ),
                (end, "connect, time-out 5002, connected -1, connects_started +1, http_retried +1"),
                ("4 opened", "HTTP connected 1, sent PUT /b/0/5 x, connected +1"),
                (
                    "5 closed reset",
                    "error reset_by_peer, lost, end failed, rest, until 962, connected -1, \
                     http_failed +1",
                ),
            ],
        );
    }
}

#[test]
fn a_request_that_tries_another_port_keeps_its_time_out() {
    check(
        HTTP,
        "[get: /a, get: /b]",
        &[
            (
                "0 ports 2; 0 begin",
                "begin, connect, time-out 5000, connects_started +1, http_started +1",
            ),
            ("1000 closed port-taken", "connect, time-out 5000"),
            ("2000 closed port-taken", "connect, time-out 5000"),
            ("3000 opened", "HTTP connected 3000, sent GET /a, connected +1"),
            (
                &format!("3001 {OK}"),
                "answer 200 3001, no deadline, time-out 8001, sent GET /b, \
              http_started +1",
            ),
            (
                "3002 closed reset",
                "connect, time-out 8001, connected -1, connects_started +1, http_retried +1",
            ),
            ("4000 closed port-taken", "connect, time-out 8001"),
            ("4001 closed port-taken", "connect, time-out 8001"),
            ("4003 opened", "HTTP connected 2, sent GET /b, connected +1"),
            (
                "4004 http HTTP/1.1 200 OK|connection: close|content-length: 2||ok",
                "answer 200 1003, no deadline, close",
            ),
            (
                "4005 closed requested",
                "end finished, begin, connect, time-out 9005, connected -1, connects_started +1, \
                 http_started +1",
            ),
            ("4006 closed port-taken", "connect, time-out 9005"),
        ],
    );
}

#[test]
fn a_retry_repeats_its_own_request_and_not_the_values_of_an_earlier_one() {
    let begin = format!("0 begin; 1 opened; 2 {OK}");
    check(
        HTTP,
        "[get: \"/${counter}\", get: \"/${counter}\", get: /b, get: \"/${counter}\"]",
        &[
            (&begin, "answer 200 2, no deadline, time-out 5002, sent GET /1, http_started +1"),
            (
                &format!("3 {OK}"),
                "answer 200 1, no deadline, time-out 5003, sent GET /b, http_started +1",
            ),
            (
                "4 closed reset",
                "connect, time-out 5003, connected -1, connects_started +1, http_retried +1",
            ),
            ("5 opened", "HTTP connected 1, sent GET /b, connected +1"),
            (
                &format!("6 {OK}"),
                "answer 200 3, no deadline, time-out 5006, sent GET /2, http_started +1",
            ),
        ],
    );
}

#[test]
fn a_post_is_never_sent_again_and_neither_is_a_request_with_a_part_of_its_answer() {
    let begin = format!("0 begin; 1 opened; 2 {OK}");
    for (method, part, fin) in [
        ("post", "", "close finished"),
        ("patch", "", "close finished"),
        ("get", "3 http HTTP/1.1 2; ", "close finished"),
    ] {
        let noted = if part.is_empty() { ("", "") } else { ("sample, ", ", http_incomplete +1") };
        let sent = format!("sent {} /b", method.to_uppercase());
        check(
            HTTP,
            &format!("[get: /a, {method}: /b]"),
            &[
                (
                    &begin,
                    &format!("answer 200 2, no deadline, time-out 5002, {sent}, http_started +1"),
                ),
                (&format!("{part}3 fin"), fin),
                (
                    "3 closed finished",
                    &format!(
                        "{}error http_closed, lost, end failed, rest, until 1007, connected -1, \
                         http_failed +1{}",
                        noted.0, noted.1
                    ),
                ),
            ],
        );
    }
}

#[test]
fn a_request_of_each_safe_method_is_sent_again() {
    for (step, method) in [("get", "GET"), ("head", "HEAD"), ("options", "OPTIONS")] {
        check(
            HTTP,
            &format!("[get: /a, {step}: /b]"),
            &[
                (&format!("0 begin; 1 opened; 2 {OK}; 3 closed reset"), AGAIN),
                ("4 opened", &format!("HTTP connected 1, sent {method} /b, connected +1")),
            ],
        );
    }
}

/// The actions of a request that is sent again.
const AGAIN: &str = "connect, time-out 5002, connected -1, connects_started +1, http_retried +1";
