//! `close` and the end of a program.

use super::play::{TCP, WS, check};

#[test]
fn a_close_waits_for_the_end_of_the_connection() {
    check(
        TCP,
        "[connect, close, wait: 1s]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, close, no deadline, connected +1"),
            ("2 closed requested", "until 1002, connected -1"),
        ],
    );
}

#[test]
fn a_reset_discards_the_connection() {
    check(
        TCP,
        "[connect, close: reset, wait: 1s]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, reset, no deadline, connected +1"),
            ("1 closed requested", "until 1001, connected -1"),
        ],
    );
}

#[test]
fn a_websocket_is_closed_by_a_close_frame() {
    check(
        WS,
        "[connect, close, wait: 1s]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, sent a close frame, connected +1",
            ),
            ("3 peer-closed 1000", "close"),
            ("3 closed requested", "until 1003, connected -1"),
        ],
    );
}

#[test]
fn after_a_half_close_the_servers_end_is_expected() {
    check(
        TCP,
        "[connect, close: half, wait: 10ms, stay]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, half-close, until 11, connected +1"),
            ("5 fin", "close finished"),
            ("5 closed finished", "until 11, connected -1"),
            ("11 deadline", "late 0, no deadline"),
        ],
    );
}

#[test]
fn after_a_half_close_an_answer_is_still_expected() {
    check(
        TCP,
        "[connect, send: hi, close: half, expect: ho, stay]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, half-close, time-out 5001, sent hi, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("5 fin", "close finished"),
            (
                "5 closed finished",
                "error closed_by_peer, lost, end failed, rest, until 1009, connected -1, \
                 messages_failed +1",
            ),
        ],
    );
}

#[test]
fn a_half_close_waits_until_all_is_sent() {
    check(
        TCP,
        "[connect, wait: 1ms, close: half, expect: ho, stay]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, until 2, connected +1"),
            ("1 blocked; 2 deadline", "late 0, no deadline"),
            ("9 drained", "half-close, time-out 5009, messages_expected +1"),
        ],
    );
}

#[test]
fn the_end_of_a_program_closes_and_begins_again() {
    check(
        TCP,
        "[connect, send: hi]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, close, no deadline, sent hi, connected +1, \
                 messages_sent +1",
            ),
            (
                "2 closed requested",
                "end finished, begin, connect, time-out 5002, connected -1, connects_started +1",
            ),
        ],
    );
}

#[test]
fn in_the_open_model_a_user_leaves_after_its_program() {
    check(
        TCP,
        "[connect, send: hi]",
        &[
            (
                "0 open-model; 0 begin; 1 opened",
                "connected 1, no deadline, close, no deadline, sent hi, connected +1, \
                 messages_sent +1",
            ),
            ("2 closed requested", "end finished, remove, connected -1"),
        ],
    );
}

#[test]
fn a_fin_while_the_user_yields_comes_after_its_next_step() {
    check(
        TCP,
        "[connect, repeat: {times: 70, do: [send: x]}, expect: y, stay]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, until 1, sent 32 bytes, connected +1, messages_sent +32",
            ),
            ("1 fin", "until 1, close finished, sent 32 bytes, messages_sent +32"),
        ],
    );
}
