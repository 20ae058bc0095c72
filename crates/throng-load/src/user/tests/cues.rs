//! `barrier`, `signal` and `wait_for`.

use super::play::{PHOENIX, TCP, check};

#[test]
fn a_user_waits_at_a_barrier_until_all_have_come() {
    check(
        TCP,
        "[connect, barrier: {name: start, users: 3}, send: a, stay]",
        &[
            (
                "0 begin; 5 opened",
                "connected 5, no deadline, connected +1, cue_waiting +1, cue_waits +1",
            ),
            ("8 another-comes", ""),
            ("20 another-comes", "late 0, no deadline, waited 15, sent a, messages_sent +1"),
        ],
    );
}

#[test]
fn the_last_user_to_come_does_not_wait() {
    check(
        TCP,
        "[connect, barrier: {name: start, users: 2}, send: a, stay]",
        &[
            ("0 another-comes", ""),
            (
                "0 begin; 5 opened",
                "connected 5, no deadline, opens, no deadline, sent a, connected +1, \
                 messages_sent +1",
            ),
        ],
    );
}

#[test]
fn a_latency_counts_from_the_moment_at_which_the_barrier_opened() {
    check(
        TCP,
        "[barrier: {name: start, users: 2}, connect]",
        &[
            ("0 begin", "begin, no deadline, cue_waiting +1, cue_waits +1"),
            (
                "50 another-comes",
                "late 0, no deadline, connect, time-out 5050, waited 50, connects_started +1",
            ),
            ("53 opened", "connected 3, no deadline, close, no deadline, connected +1"),
        ],
    );
}

#[test]
fn a_signal_lets_users_go_on_that_come_before_it_and_after_it() {
    let user = "[connect, wait_for: go, send: a, wait_for: go, send: b, signal: go, stay]";
    check(
        TCP,
        user,
        &[
            (
                "0 begin; 5 opened",
                "connected 5, no deadline, connected +1, cue_waiting +1, cue_waits +1",
            ),
            ("9 signal", "late 0, no deadline, waited 4, sent ab, messages_sent +2"),
        ],
    );
    check(
        TCP,
        "[connect, send: a, expect: b, wait_for: go, send: c, expect: d, signal: go]",
        &[
            (
                "0 begin; 2 signal; 5 opened",
                "connected 5, no deadline, time-out 5005, sent a, \
              connected +1, messages_expected +1, messages_sent +1",
            ),
            (
                "7 bytes b",
                "answered 2, no deadline, time-out 5007, sent c, \
              messages_expected +1, messages_sent +1",
            ),
            ("10 bytes d", "answered 3, no deadline, close, no deadline"),
        ],
    );
}

#[test]
fn a_wait_that_takes_too_long_is_an_error() {
    let barrier = "barrier: {name: start, users: 2, timeout: 1s}";
    check(
        TCP,
        &format!("[connect, {barrier}, send: a]"),
        &[
            (
                "0 begin; 5 opened",
                "connected 5, no deadline, time-out 1005, connected +1, cue_waiting +1, \
                 cue_waits +1",
            ),
            ("1006 deadline", "error cue_timeout, no deadline, close, waited 1001"),
            ("1007 closed requested", "end failed, rest, until 1964, connected -1"),
            // It is no longer on the list: two others open the barrier without it.
            ("1010 another-comes", ""),
            ("1020 another-comes", ""),
        ],
    );
    check(
        TCP,
        &format!("[{barrier}, connect]"),
        &[
            ("0 begin", "begin, time-out 1000, cue_waiting +1, cue_waits +1"),
            ("1000 deadline", "error cue_timeout, end failed, rest, until 2004, waited 1000"),
        ],
    );
}

#[test]
fn a_user_goes_on_after_a_time_out_and_keeps_its_answer() {
    check(
        TCP,
        "[connect, send: a, wait_for: {name: go, timeout: 1s}, expect: b, signal: go]\n\
         on_error: continue",
        &[
            (
                "0 begin; 5 opened",
                "connected 5, no deadline, time-out 1005, sent a, connected +1, cue_waiting +1, \
                 cue_waits +1, messages_sent +1",
            ),
            ("7 bytes b", ""),
            (
                "1005 deadline",
                "error cue_timeout, no deadline, time-out 6005, answered 1000, no deadline, \
                 opens, close, no deadline, waited 1000, messages_expected +1",
            ),
        ],
    );
}

#[test]
fn a_time_out_that_comes_after_the_barrier_has_opened_is_none() {
    check(
        TCP,
        "[barrier: {name: start, users: 2, timeout: 1s}, connect]",
        &[
            ("0 begin", "begin, time-out 1000, cue_waiting +1, cue_waits +1"),
            ("999 another-core-opens", ""),
            ("1000 deadline", ""),
            (
                "1001 another-core-tells",
                "late 2, no deadline, connect, time-out 6001, waited 1001, connects_started +1",
            ),
        ],
    );
}

#[test]
fn a_user_that_leaves_is_taken_off_the_barrier() {
    let user = "[connect, barrier: {name: start, users: 2}, send: a]";
    let comes = (
        "0 begin; 5 opened",
        "connected 5, no deadline, connected +1, cue_waiting +1, cue_waits +1",
    );
    // The next user finds the barrier closed.
    check(
        TCP,
        user,
        &[
            comes,
            ("9 leave", "end cut, close, waited 4"),
            ("10 another-comes", ""),
            ("10 another-comes", ""),
        ],
    );
    check(
        TCP,
        user,
        &[
            comes,
            (
                "9 closed reset",
                "error reset_by_peer, lost, end failed, rest, until 1013, waited 4, connected -1",
            ),
        ],
    );
    check(TCP, user, &[comes, ("9 stop", "end cut, cut off after 4")]);
}

#[test]
fn a_user_that_loses_its_connection_may_wait_on() {
    check(
        TCP,
        "[connect, barrier: {name: start, users: 2, timeout: 9s}, send: a]\non_error: continue",
        &[
            (
                "0 begin; 5 opened",
                "connected 5, no deadline, time-out 9005, connected +1, cue_waiting +1, \
                 cue_waits +1",
            ),
            ("9 closed reset", "error reset_by_peer, lost, time-out 9005, connected -1"),
            (
                "20 another-comes",
                "late 0, no deadline, error not_connected, end failed, rest, until 1024, waited 15",
            ),
        ],
    );
}

#[test]
fn messages_that_come_during_a_wait_are_kept() {
    check(
        TCP,
        "[connect, send: a, barrier: {name: start, users: 2}, expect: b]",
        &[
            (
                "0 begin; 5 opened",
                "connected 5, no deadline, sent a, connected +1, \
              cue_waiting +1, cue_waits +1, messages_sent +1",
            ),
            ("8 bytes b", ""),
            (
                "20 another-comes",
                "late 0, no deadline, time-out 5020, answered 15, no deadline, close, no deadline, \
                 waited 15, messages_expected +1",
            ),
        ],
    );
}

#[test]
fn a_heartbeat_that_is_missed_ends_the_wait() {
    check(
        PHOENIX,
        "[connect, barrier: {name: start, users: 2}, stay]",
        &[
            (
                "0 begin; 5 opened; 6 upgraded",
                "connected 6, no deadline, connected +1, cue_waiting +1, cue_waits +1",
            ),
            (
                "40 heartbeat; 80 heartbeat",
                "error heartbeat_timeout, close, sent a close frame, heartbeats_missed +1",
            ),
            ("81 closed requested", "end failed, rest, until 1054, waited 75, connected -1"),
        ],
    );
}
