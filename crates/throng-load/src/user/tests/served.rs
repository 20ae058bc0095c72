//! Connections on which the server has answered, and waits that are given up on these and others.

use super::play::{HTTP, HTTP_CONTINUES, Play, TCP, WS};

/// Plays rows, and checks the counters after each: connections served, time-outs on others, and on
/// these.
#[track_caller]
fn check(head: &str, user: &str, rows: &[(&str, [u64; 3])]) {
    let mut play = Play::new(head, user);
    for (input, expected) in rows {
        play.row(input);
        let counters = &play.counters;
        let counted = [counters.served, counters.timeouts_unserved, counters.timeouts_served];
        assert_eq!(counted, *expected, "{user}: {input}");
    }
}

const OK: &str = "http HTTP/1.1 200 OK|content-length: 2||ok";

#[test]
fn a_connection_is_served_from_its_first_answer_to_its_end() {
    check(
        TCP,
        "[connect, send: hi, expect: ho, send: hi, expect: {text: ho, timeout: 1s}, stay]",
        &[
            ("0 begin; 1 opened", [0, 0, 0]),
            ("2 bytes ho", [1, 0, 0]),
            ("1002 deadline", [1, 0, 1]),
            ("1003 closed requested", [0, 0, 1]),
        ],
    );
}

#[test]
fn a_wait_on_a_connection_without_an_answer_is_one_of_an_unserved_connection() {
    check(
        TCP,
        "[connect, send: hi, expect: {text: ho, timeout: 1s}, stay]",
        &[("0 begin; 1 opened; 1001 deadline", [0, 1, 0]), ("1002 closed requested", [0, 1, 0])],
    );
    let upgrade = "[connect: {timeout: 1s}, stay]";
    check(WS, upgrade, &[("0 begin; 1 opened; 1000 deadline", [0, 1, 0])]);
    // TCP has not connected.
    check(WS, upgrade, &[("0 begin; 1000 deadline", [0, 0, 0])]);
    check(HTTP, "[get: {path: /, timeout: 1s}]", &[("0 begin; 1000 deadline", [0, 0, 0])]);
}

#[test]
fn a_wrong_answer_is_one_and_an_upgrade_is_none() {
    let user = "[connect, send: hi, expect: ho, stay]";
    check(TCP, user, &[("0 begin; 1 opened; 2 bytes no", [1, 0, 0])]);
    check(WS, user, &[("0 begin; 1 opened; 2 upgraded", [0, 0, 0]), ("3 text ho", [1, 0, 0])]);
}

#[test]
fn a_new_connection_for_a_request_is_served_anew() {
    check(
        HTTP_CONTINUES,
        "[get: /a, get: {path: /b, timeout: 1s}, get: {path: /c, timeout: 1s}, stay]",
        &[
            (&format!("0 begin; 1 opened; 2 {OK}"), [1, 0, 0]),
            ("1002 deadline", [1, 0, 1]),
            ("1003 closed requested", [0, 0, 1]),
            ("1004 opened; 2003 deadline", [0, 1, 1]),
        ],
    );
}

#[test]
fn a_connection_that_the_server_closes_before_its_first_answer_is_counted() {
    let check = |head: &str, user: &str, inputs: &[&str], expected: u64| {
        let mut play = Play::new(head, user);
        for input in inputs {
            play.row(input);
        }
        assert_eq!(play.counters.closed_unserved, expected, "{user}: {inputs:?}");
    };
    let asks = "[connect, send: hi, expect: ho, send: hi, expect: ho]";
    check(TCP, asks, &["0 begin; 1 opened; 2 closed finished"], 1);
    check(TCP, asks, &["0 begin; 1 opened; 2 closed reset"], 1);
    check(TCP, asks, &["0 begin; 1 opened; 2 bytes ho; 3 closed finished"], 0);
    check(WS, "[connect, stay]", &["0 begin; 1 opened; 2 closed finished"], 1);
    check(WS, "[connect, stay]", &["0 begin; 1 closed refused"], 0);
    // The user itself closes.
    check(WS, "[connect, stay]", &["0 begin; 1 opened; 2 closed requested"], 0);
    check(HTTP, "[get: /]", &["0 begin; 1 opened; 2 closed finished"], 1);
}
