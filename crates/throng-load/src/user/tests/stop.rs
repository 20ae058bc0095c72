//! Users that are stopped.

use super::play::{TCP, WS, check};

#[test]
fn a_user_that_waits_for_an_answer_is_cut_off() {
    check(
        TCP,
        "[connect, send: hi, expect: ho, stay]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, time-out 5001, sent hi, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("9 stop", "unanswered 8, end cut, messages_waiting +1"),
            ("9 leave", "close"),
            ("9 closed requested", "remove, connected -1"),
        ],
    );
}

#[test]
fn a_user_that_stays_has_finished() {
    check(
        TCP,
        "[connect, stay]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, connected +1"),
            ("9 stop", "end finished"),
            ("9 leave", "close"),
            ("9 closed requested", "remove, connected -1"),
        ],
    );
}

#[test]
fn a_user_between_two_turns_of_an_endless_loop_has_finished() {
    check(
        TCP,
        "[connect, every: {period: 10ms, do: [send: x]}]",
        &[
            (
                "0 begin; 0 opened",
                "connected 0, no deadline, turns due 1, until 10, sent x, connected +1, \
                 messages_sent +1, turns_started +1",
            ),
            ("9 stop", "turns due 0, missed 0, end finished"),
            ("9 leave", "close"),
        ],
    );
}

#[test]
fn turns_that_came_due_while_a_user_waited_are_missed() {
    check(
        TCP,
        "[connect, every: {period: 10ms, do: [send: x, expect: y]}]",
        &[
            (
                "0 begin; 0 opened",
                "connected 0, no deadline, turns due 1, time-out 5000, sent x, connected +1, \
                 messages_expected +1, messages_sent +1, turns_started +1",
            ),
            ("35 stop", "unanswered 35, turns due 3, missed 3, end cut, messages_waiting +1"),
        ],
    );
}

#[test]
fn a_user_is_stopped_once() {
    check(
        TCP,
        "[connect, stay]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, connected +1"),
            ("9 leave", "end finished, close"),
            ("9 leave", ""),
            ("9 stop", ""),
            ("9 closed requested", "remove, connected -1"),
        ],
    );
}

#[test]
fn a_user_without_a_connection_leaves_at_once() {
    check(
        TCP,
        "[wait: 10ms, connect, stay]",
        &[("0 begin", "begin, until 10"), ("5 leave", "end cut, remove")],
    );
}

#[test]
fn a_user_that_rests_leaves_without_being_counted() {
    check(
        TCP,
        "[connect, stay]",
        &[
            ("0 begin", "begin, connect, time-out 5000, connects_started +1"),
            (
                "1 closed refused",
                "refused, connect failed ECONNREFUSED, end failed, rest, until 1005",
            ),
            ("5 leave", "rest over, remove"),
        ],
    );
}

#[test]
fn a_start_is_cancelled_when_all_users_leave() {
    check(TCP, "[connect, stay]", &[("0 cancel", "begin, end cut, remove")]);
}

#[test]
fn a_stopped_user_still_reads_until_it_leaves() {
    check(
        WS,
        "[connect, stay]",
        &[
            ("0 begin; 1 opened; 2 upgraded", "connected 2, no deadline, connected +1"),
            ("9 stop", "end finished"),
            ("10 text hi", "messages_unasked +1"),
            ("11 peer-closed 1000", "close"),
            ("11 closed requested", "remove, connected -1"),
        ],
    );
}

#[test]
fn users_that_close_by_a_reset_leave_by_a_reset() {
    check(
        TCP,
        "[connect, wait: 60s, close: reset]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, until 60001, connected +1"),
            ("9 leave", "end cut, reset"),
            ("9 closed requested", "remove, connected -1"),
        ],
    );
}
