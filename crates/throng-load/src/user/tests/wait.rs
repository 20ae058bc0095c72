//! `wait`, `stay` and loops.

use super::play::{TCP, check};

#[test]
fn a_wait_counts_from_the_end_of_the_step_before() {
    check(
        TCP,
        "[connect, wait: 10ms, wait: 10ms, stay]",
        &[
            ("0 begin; 5 opened", "connected 5, no deadline, until 15, connected +1"),
            ("18 deadline", "late 3, until 25"),
            ("25 deadline", "late 0, no deadline"),
        ],
    );
}

#[test]
fn turns_of_every_begin_by_the_clock() {
    check(
        TCP,
        "[connect, every: {period: 10ms, for: 25ms, do: [send: x]}, stay]",
        &[
            (
                "0 begin; 5 opened",
                "connected 5, no deadline, turns due 1, until 15, sent x, connected +1, \
                 messages_sent +1, turns_started +1",
            ),
            (
                "15 deadline",
                "late 0, turns due 1, until 25, sent x, messages_sent +1, turns_started +1",
            ),
            (
                "26 deadline",
                "late 1, turns due 1, no deadline, sent x, messages_sent +1, turns_started +1",
            ),
        ],
    );
}

#[test]
fn a_late_user_catches_up_and_every_turn_counts() {
    check(
        TCP,
        "[connect, every: {period: 10ms, do: [send: x, expect: y]}]",
        &[
            (
                "0 begin; 0 opened",
                "connected 0, no deadline, turns due 1, time-out 5000, sent x, connected +1, \
                 messages_expected +1, messages_sent +1, turns_started +1",
            ),
            (
                "35 bytes y",
                "answered 35, no deadline, turns due 3, time-out 5035, sent x, \
                 messages_expected +1, messages_sent +1, turns_started +1",
            ),
            (
                "36 bytes y",
                "answered 26, no deadline, turns due 0, time-out 5036, sent x, \
                 messages_expected +1, messages_sent +1, turns_started +1",
            ),
            (
                "37 bytes y",
                "answered 17, no deadline, turns due 0, time-out 5037, sent x, \
                 messages_expected +1, messages_sent +1, turns_started +1",
            ),
        ],
    );
}

#[test]
fn repeat_runs_its_turns_without_a_pause() {
    check(
        TCP,
        "[connect, repeat: {times: 3, do: [send: x, expect: y]}, stay]",
        &[
            (
                "0 begin; 0 opened",
                "connected 0, no deadline, time-out 5000, sent x, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            (
                "1 bytes y",
                "answered 1, no deadline, time-out 5001, sent x, messages_expected +1, \
                 messages_sent +1",
            ),
            (
                "2 bytes y",
                "answered 1, no deadline, time-out 5002, sent x, messages_expected +1, \
                 messages_sent +1",
            ),
            ("3 bytes y", "answered 1, no deadline"),
        ],
    );
}

#[test]
fn a_loop_for_a_time_ends_after_it() {
    check(
        TCP,
        "[connect, repeat: {for: 5ms, do: [send: x, expect: y]}, stay]",
        &[
            (
                "0 begin; 0 opened",
                "connected 0, no deadline, time-out 5000, sent x, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            (
                "4 bytes y",
                "answered 4, no deadline, time-out 5004, sent x, messages_expected +1, \
                 messages_sent +1",
            ),
            ("6 bytes y", "answered 2, no deadline"),
        ],
    );
}

#[test]
fn an_endless_loop_ends_with_the_schedule() {
    check(
        TCP,
        "[connect, every: {period: 10ms, do: [send: x]}]",
        &[
            (
                "0 open-model; 0 begin; 0 opened",
                "connected 0, no deadline, turns due 1, until 10, sent x, connected +1, \
                 messages_sent +1, turns_started +1",
            ),
            ("5 schedule-over; 10 deadline", "late 0, close, no deadline"),
            ("10 closed requested", "end finished, remove, connected -1"),
        ],
    );
}

#[test]
fn a_user_that_stays_ends_after_the_schedule() {
    check(
        TCP,
        "[connect, wait: 10ms, stay]",
        &[
            ("0 open-model; 0 begin; 0 opened", "connected 0, no deadline, until 10, connected +1"),
            ("5 schedule-over; 10 deadline", "late 0, close, no deadline"),
            ("10 closed requested", "end finished, remove, connected -1"),
        ],
    );
}
