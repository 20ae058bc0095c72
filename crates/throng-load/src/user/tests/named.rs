//! Steps with a name, and transactions.

use super::play::{PHOENIX, TCP, WS, check};

#[test]
fn a_step_with_a_name_is_recorded_for_its_kind_and_for_its_name() {
    check(
        TCP,
        "[connect: {name: login}, send: x, expect: {text: y, name: greeting}, stay]",
        &[
            (
                "0 begin; 5 opened",
                "connected 5, step 0 5, no deadline, time-out 5005, sent x, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("12 bytes y", "answered 7, step 1 7, no deadline"),
        ],
    );
}

#[test]
fn what_becomes_of_a_step_is_counted_for_its_name() {
    let user = "[connect: {name: login}, send: x, expect: {text: y, name: greeting}, stay]";
    let begun = "0 begin; 0 opened";
    check(
        TCP,
        user,
        &[(
            &format!("{begun}; 9 bytes z"),
            "sample, error expect_mismatch, step 1 failed, no deadline, close, \
             messages_failed +1",
        )],
    );
    check(
        TCP,
        user,
        &[(
            &format!("{begun}; 5000 deadline"),
            "sample, error expect_timeout, step 1 failed, unanswered 5000, \
             step 1 unanswered 5000, no deadline, close, messages_failed +1",
        )],
    );
    check(
        TCP,
        user,
        &[(
            &format!("{begun}; 700 stop"),
            "step 1 cut, unanswered 700, step 1 unanswered 700, end cut, messages_waiting +1",
        )],
    );
    check(
        TCP,
        user,
        &[(
            "0 begin; 3 closed refused",
            "refused, step 0 failed, connect failed ECONNREFUSED, end failed, rest, until 1007",
        )],
    );
    check(
        &format!("{TCP}\non_error: continue"),
        user,
        &[(
            "0 begin; 3 closed refused",
            "refused, step 0 failed, connect failed ECONNREFUSED, error not_connected, \
             step 1 failed, no deadline, messages_expected +1, messages_failed +1",
        )],
    );
}

#[test]
fn messages_and_requests_have_names_too() {
    check(
        WS,
        "[connect: {name: login}, expect: {text: b, skip_others: true, name: greeting}, stay]",
        &[
            ("0 begin; 2 opened", "TCP connected 2, sent the upgrade, upgrades_started +1"),
            (
                "5 upgraded",
                "connected 5, step 0 5, no deadline, time-out 5005, connected +1, \
                 messages_expected +1",
            ),
            ("6 text a", "skipped, messages_unasked +1"),
            ("9 text b", "answered 4, step 1 4, no deadline"),
        ],
    );
    check(
        PHOENIX,
        "[connect, join: {topic: a, name: enter}, push: {topic: a, event: e, name: ask}, \
         push: {topic: a, event: e, name: ask}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 10002, sent a frame, connected +1, \
                 joins_started +1",
            ),
            (
                "5 reply 1 ok",
                "replied 3, joined, step 0 3, no deadline, time-out 10005, sent a frame, \
                 pushes_sent +1",
            ),
            (
                "9 reply 2 ok",
                "replied 4, pushed, step 1 4, no deadline, time-out 10009, sent a frame, \
                 pushes_sent +1",
            ),
            (
                "10 reply 3 error",
                "sample, replied 1, error push_refused, step 1 failed, no deadline, close, sent \
                 a close frame, pushes_failed +1",
            ),
        ],
    );
}

#[test]
fn a_receive_with_a_name_has_the_time_that_it_waited() {
    let user = "[connect, receive: {text: hi, timeout: 1s, name: hello}, wait: 10ms, \
                receive: {text: ho, name: more}, stay]";
    let begun =
        ("0 begin; 2 opened; 5 upgraded", "connected 5, no deadline, time-out 1005, connected +1");
    check(
        WS,
        user,
        &[
            begun,
            ("9 text hi", "step 0 4, no deadline, until 19"),
            ("12 text ho; 19 deadline", "late 0, step 1 unmeasured, no deadline"),
        ],
    );
    check(
        WS,
        user,
        &[
            begun,
            (
                "1005 deadline",
                "sample, error expect_timeout, step 0 failed, step 0 unanswered 1000, \
                 no deadline, close, sent a close frame",
            ),
        ],
    );
    check(WS, user, &[begun, ("705 stop", "step 0 cut, step 0 unanswered 700, end cut")]);
}

#[test]
fn a_transaction_lasts_from_its_first_intended_moment_to_the_end_of_its_last_step() {
    check(
        TCP,
        "[connect, wait: 10ms, transaction: {name: shop, do: [send: a, expect: b, wait: 20ms, \
         send: c, expect: {text: d, name: pay}]}, stay]",
        &[
            ("0 begin; 0 opened", "connected 0, no deadline, until 10, connected +1"),
            // It wakes up late: the transaction began when the wait was due to end.
            (
                "13 deadline",
                "late 3, time-out 5013, sent a, messages_expected +1, messages_sent +1",
            ),
            ("15 bytes b", "answered 5, no deadline, until 35"),
            (
                "35 deadline",
                "late 0, time-out 5035, sent c, messages_expected +1, messages_sent +1",
            ),
            ("42 bytes d", "answered 7, step 1 7, no deadline, step 0 32, no deadline"),
        ],
    );
}

#[test]
fn a_transaction_in_a_loop_counts_from_when_its_turn_was_due() {
    check(
        TCP,
        "[connect, every: {period: 10ms, for: 30ms, do: [transaction: {name: shop, do: \
         [send: x, expect: y]}]}, stay]",
        &[
            (
                "0 begin; 0 opened",
                "connected 0, no deadline, turns due 1, time-out 5000, sent x, connected +1, \
                 messages_expected +1, messages_sent +1, turns_started +1",
            ),
            (
                "17 bytes y",
                "answered 17, no deadline, step 0 17, turns due 1, time-out 5017, sent x, \
                 messages_expected +1, messages_sent +1, turns_started +1",
            ),
            ("18 bytes y", "answered 8, no deadline, step 0 8, until 20"),
        ],
    );
}

#[test]
fn transactions_nest_and_an_error_fails_all_that_are_open() {
    let user = "[connect, transaction: {name: outer, do: [send: a, \
                transaction: {name: inner, do: [expect: b]}, send: c, expect: d]}, stay]";
    check(
        TCP,
        user,
        &[
            (
                "0 begin; 0 opened; 4 bytes b",
                "answered 4, no deadline, step 1 4, time-out 5004, sent c, messages_expected +1, \
                 messages_sent +1",
            ),
            ("9 bytes d", "answered 5, no deadline, step 0 9, no deadline"),
        ],
    );
    check(
        TCP,
        user,
        &[(
            "0 begin; 0 opened; 4 bytes z",
            "sample, error expect_mismatch, step 0 failed, step 1 failed, no deadline, close, \
             messages_failed +1",
        )],
    );
    check(
        TCP,
        user,
        &[
            (
                "0 begin; 0 opened; 4 bytes b; 5004 deadline",
                "sample, error expect_timeout, step 0 failed, step 0 unanswered 5004, \
                 unanswered 5000, no deadline, close, messages_failed +1",
            ),
            ("5005 closed requested", "end failed, rest, until 5962, connected -1"),
        ],
    );
    check(
        TCP,
        user,
        &[
            (
                "0 begin; 0 opened; 4 bytes b; 6 stop",
                "unanswered 2, step 0 cut, step 0 unanswered 6, end cut, messages_waiting +1",
            ),
            ("7 leave", "close"),
        ],
    );
}

#[test]
fn a_user_that_goes_on_after_an_error_does_not_end_the_transaction_well() {
    check(
        &format!("{TCP}\non_error: continue"),
        "[connect, repeat: {times: 2, do: [transaction: {name: shop, do: \
         [send: a, expect: b, send: c, expect: d]}]}, stay]",
        &[
            (
                "0 begin; 0 opened; 3 bytes z",
                "sample, error expect_mismatch, step 0 failed, time-out 5003, sent c, \
                 messages_expected +1, messages_failed +1, messages_sent +1",
            ),
            (
                "5 bytes d",
                "answered 2, no deadline, time-out 5005, sent a, messages_expected +1, \
                 messages_sent +1",
            ),
            ("8 bytes b; 11 bytes d", "answered 3, no deadline, step 0 6, no deadline"),
        ],
    );
}

#[test]
fn a_connection_that_is_lost_between_two_steps_fails_the_transaction() {
    check(
        TCP,
        "[connect, transaction: {name: shop, do: [wait: 1s, send: a]}, stay]",
        &[(
            "0 begin; 0 opened; 300 closed finished",
            "error closed_by_peer, lost, step 0 failed, end failed, rest, until 1304, connected -1",
        )],
    );
    // One that has ended does not fail any more.
    check(
        TCP,
        "[connect, transaction: {name: shop, do: [send: a]}, stay]",
        &[
            (
                "0 begin; 0 opened",
                "connected 0, no deadline, step 0 0, no deadline, sent a, connected +1, \
                 messages_sent +1",
            ),
            (
                "300 closed finished",
                "error closed_by_peer, lost, end failed, rest, until 1304, connected -1",
            ),
        ],
    );
}
