//! `limits`: a user waits for its turn.

use super::play::{PHOENIX, TCP, check};

#[test]
fn a_limit_of_all_users_spaces_their_messages() {
    check(
        &format!("{TCP}\nlimits: {{all: {{send: 10/s}}}}"),
        "[connect, send: a, send: b, expect: c, stay]",
        &[
            (
                "0 begin; 5 opened",
                "connected 5, no deadline, turn 5, turn 105, until 105, sent a, \
                 connected +1, messages_sent +1",
            ),
            (
                "101 deadline",
                "late 0, time-out 5101, sent b, messages_expected +1, messages_sent +1",
            ),
            ("105 bytes c", "answered 100, no deadline"),
        ],
    );
}

#[test]
fn a_limit_of_a_user_spaces_its_own_messages_and_connects() {
    check(
        &format!("{TCP}\nlimits: {{user: {{send: 10/s, connect: 1/s}}}}"),
        "[connect, send: a, expect: b, send: c, close]",
        &[
            ("0 begin", "begin, turn 0, connect, time-out 5000, connects_started +1"),
            (
                "5 opened",
                "connected 5, no deadline, turn 5, time-out 5005, sent a, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("9 bytes b", "answered 4, no deadline, turn 105, until 105"),
            ("105 deadline", "late 0, close, no deadline, sent c, messages_sent +1"),
            ("106 closed requested", "end finished, begin, turn 1000, until 1000, connected -1"),
            ("1000 deadline", "late 0, connect, time-out 6000, connects_started +1"),
        ],
    );
}

#[test]
fn a_user_obeys_its_own_limit_first() {
    check(
        &format!("{TCP}\nlimits: {{all: {{send: 20/s}}, user: {{send: 10/s}}}}"),
        "[connect, send: a, send: b, stay]",
        &[
            (
                "0 begin; 5 opened",
                "connected 5, no deadline, turn 5, turn 105, until 105, sent a, \
                 connected +1, messages_sent +1",
            ),
            ("105 deadline", "late 0, turn 105, no deadline, sent b, messages_sent +1"),
        ],
    );
}

#[test]
fn a_push_is_a_message_of_a_limit() {
    check(
        &format!("{PHOENIX}\nlimits: {{all: {{send: 1/s}}}}"),
        "[connect, join: {topic: a}, push: {topic: a, event: b}, push: {topic: a, event: b}]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded; 3 reply 1 ok",
                "replied 1, joined, no deadline, turn 3, time-out 10003, sent a frame, \
                 pushes_sent +1",
            ),
            ("4 reply 2 ok", "replied 1, pushed, no deadline, turn 1003, until 1003"),
            ("1003 deadline", "late 0, time-out 11003, sent a frame, pushes_sent +1"),
        ],
    );
}

#[test]
fn a_limit_slows_the_turns_of_a_paced_loop() {
    // Turns are due each 10 ms; the limit allows one each 100 ms. None is missed.
    check(
        &format!("{TCP}\nlimits: {{user: {{send: 10/s}}}}"),
        "[connect, every: {period: 10ms, do: [send: a, expect: b]}]",
        &[
            (
                "0 begin; 5 opened",
                "connected 5, no deadline, turns due 1, turn 5, time-out 5005, sent a, \
                 connected +1, messages_expected +1, messages_sent +1, turns_started +1",
            ),
            ("9 bytes b", "answered 4, no deadline, until 15"),
            ("15 deadline", "late 0, turns due 1, turn 105, until 105, turns_started +1"),
            (
                "105 deadline",
                "late 0, time-out 5105, sent a, messages_expected +1, messages_sent +1",
            ),
            ("109 bytes b", "answered 4, no deadline, until 115"),
            ("115 deadline", "late 0, turns due 1, turn 205, until 205, turns_started +1"),
            ("150 stop", "turns due 0, missed 0, end cut"),
        ],
    );
}
