//! `expect`: answers, and what is none.

use super::play::{Play, TCP, WS, check};

#[test]
fn an_answer_counts_from_its_message() {
    check(
        TCP,
        "[connect, wait: 10ms, send: hi, expect: ho, stay]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, until 11, connected +1"),
            (
                "12 deadline",
                "late 1, time-out 5012, sent hi, messages_expected +1, messages_sent +1",
            ),
            ("20 bytes ho", "answered 9, no deadline"),
        ],
    );
}

#[test]
fn an_answer_may_arrive_in_pieces() {
    check(
        TCP,
        "[connect, send: hi, expect: hello, stay]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, time-out 5001, sent hi, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("2 bytes he", ""),
            ("3 bytes llo", "answered 2, no deadline"),
        ],
    );
}

#[test]
fn an_answer_that_is_too_late_is_a_time_out() {
    check(
        TCP,
        "[connect, send: hi, expect: {text: ho, timeout: 1s}, stay]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, time-out 1001, sent hi, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            (
                "1001 deadline",
                "sample, error expect_timeout, unanswered 1000, no deadline, close, \
                 messages_failed +1",
            ),
            ("1001 closed requested", "end failed, rest, until 1958, connected -1"),
        ],
    );
}

#[test]
fn another_answer_is_a_mismatch() {
    check(
        TCP,
        "[connect, send: hi, expect: ho, stay]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, time-out 5001, sent hi, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("2 bytes no", "sample, error expect_mismatch, no deadline, close, messages_failed +1"),
            ("2 closed requested", "end failed, rest, until 959, connected -1"),
        ],
    );
}

#[test]
fn bytes_that_arrive_early_are_the_answer_of_the_next_expect() {
    check(
        TCP,
        "[connect, wait: 10ms, expect: ho, stay]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, until 11, connected +1"),
            ("5 bytes ho", ""),
            (
                "11 deadline",
                "late 0, time-out 5011, answered unmeasured, no deadline, messages_expected +1",
            ),
        ],
    );
}

#[test]
fn bytes_that_nothing_expects_are_unasked() {
    check(
        TCP,
        "[connect, send: hi, stay]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, sent hi, connected +1, messages_sent +1",
            ),
            ("5 bytes ho", "messages_unasked +1"),
        ],
    );
}

#[test]
fn a_greeting_before_the_first_send_makes_no_answer_doubtful() {
    let sends = "late 0, time-out 5011, sent hi, messages_expected +1, messages_sent +1";
    check(
        TCP,
        "[connect, wait: 10ms, send: hi, expect: {until: ';'}, wait: 10ms, send: hi, expect: \
         {until: ';'}, stay]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, until 11, connected +1"),
            ("5 bytes 220;", "messages_unasked +1"),
            ("11 deadline", sends),
            ("12 bytes ho;", "answered 1, no deadline, until 22"),
            // What comes unasked later is no greeting.
            ("15 bytes 221;", "messages_unasked +1"),
            ("22 deadline", &sends.replace("5011", "5022")),
            ("23 bytes ho;", "answered 1, no deadline, answers_doubtful +1"),
        ],
    );
}

#[test]
fn a_greeting_that_is_taken_for_the_first_answer_makes_that_one_doubtful_and_no_other() {
    let sends =
        |at| format!("late 0, time-out {at}, sent hi, messages_expected +1, messages_sent +1");
    let turn = "send: hi, expect: {until: ';'}, wait: 10ms";
    check(
        TCP,
        &format!("[connect, {turn}, {turn}, {turn}, stay]"),
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, time-out 5001, sent hi, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("2 bytes 220;", "answered 1, no deadline, until 12"),
            ("5 bytes ho;", "answers_after_greeting +1, answers_doubtful +1, messages_unasked +1"),
            ("12 deadline", &sends(5_012)),
            ("14 bytes ho;", "answered 2, no deadline, until 24"),
            // A second one is no greeting.
            ("15 bytes ho;", "messages_unasked +1"),
            ("24 deadline", &sends(5_024)),
            ("25 bytes ho;", "answered 1, no deadline, until 35, answers_doubtful +1"),
        ],
    );
}

#[test]
fn a_greeting_that_a_receive_takes_makes_no_answer_doubtful() {
    check(
        TCP,
        "[connect, receive: {until: ';'}, send: hi, expect: {until: ';'}, stay]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, time-out 5001, connected +1"),
            (
                "2 bytes 220;",
                "no deadline, time-out 5002, sent hi, messages_expected +1, messages_sent +1",
            ),
            ("5 bytes ho;", "answered 3, no deadline"),
        ],
    );
}

#[test]
fn what_follows_an_answer_belongs_to_the_next_one() {
    check(
        TCP,
        "[connect, expect: a, expect: b, stay]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, time-out 5001, connected +1, messages_expected +1",
            ),
            (
                "5 bytes ab",
                "answered 4, no deadline, time-out 5005, answered 0, no deadline, \
                 messages_expected +1",
            ),
        ],
    );
}

#[test]
fn a_message_that_does_not_match_is_skipped_where_the_step_says_so() {
    check(
        WS,
        "[connect, send: hi, expect: {text: ho, skip_others: true}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 5002, sent a frame, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("3 text no", "skipped, messages_unasked +1"),
            ("4 text ho", "answered 2, no deadline"),
        ],
    );
}

#[test]
fn a_message_that_does_not_match_is_a_mismatch() {
    check(
        WS,
        "[connect, send: hi, expect: {text: ho, skip_others: false}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 5002, sent a frame, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            (
                "3 text no",
                "sample, error expect_mismatch, no deadline, close, sent a close frame, \
                 messages_failed +1",
            ),
        ],
    );
}

#[test]
fn messages_that_are_sent_ahead_are_answered_from_their_own_moment() {
    check(
        TCP,
        "[connect, send: a, expect: A, send: b, wait: 5ms, send: c, expect: B, expect: C, stay]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, time-out 5001, sent a, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("2 bytes A", "answered 1, no deadline, until 7, sent b, messages_sent +1"),
            ("7 deadline", "late 0, time-out 5007, sent c, messages_expected +1, messages_sent +1"),
            ("10 bytes B", "answered 8, no deadline, time-out 5010, messages_expected +1"),
            ("20 bytes C", "answered 18, no deadline"),
        ],
    );
}

#[test]
fn an_answer_after_its_time_out_is_not_the_next_answer() {
    check(
        &format!("{WS}\non_error: continue"),
        "[connect, send: a, expect: {text: A, timeout: 10ms}, send: b, expect: {text: A, \
         timeout: 10ms}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 12, sent a frame, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            (
                "12 deadline",
                "sample, error expect_timeout, unanswered 10, time-out 22, sent a frame, \
                 messages_expected +1, messages_failed +1, messages_sent +1",
            ),
            ("14 text A", "messages_unasked +1"),
            ("16 text A", "answered 4, no deadline"),
        ],
    );
}

#[test]
fn too_many_bytes_before_an_expect_end_the_connection() {
    check(
        TCP,
        "[connect, wait: 10ms, expect: ho, stay]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, until 11, connected +1"),
            ("5 flood 70000", "error inbox_overflow, no deadline, close"),
            ("5 closed requested", "end failed, rest, until 962, connected -1"),
        ],
    );
}

#[test]
fn an_answer_stays_while_messages_that_its_expect_skips_fill_the_inbox() {
    // The `expect` that comes next skips others, whatever a later one does.
    let steps = "[connect, send: a, wait: 10ms, expect: {text: a, skip_others: true}, expect: b]";
    let floods = ["3 flood-text 60000", "4 flood-text 60000", "5 flood-text 60000"];
    for (answer_at, unasked) in [(0, 2), (3, 3)] {
        let mut play = Play::new(WS, steps);
        play.row("0 begin; 1 opened; 2 upgraded");
        let mut rows = floods.to_vec();
        rows.insert(answer_at, if answer_at == 0 { "2 text a" } else { "6 text a" });
        rows.iter().for_each(|row| _ = play.row(row));
        let ended = play.row("12 deadline");
        assert!(ended.contains("answered"), "{ended}");
        assert_eq!(play.counters.messages_unasked, unasked);
    }
}

#[test]
fn a_message_from_before_the_question_does_not_keep_the_answer_out_of_a_full_inbox() {
    let steps = "[connect, wait: 10ms, send: a, receive: r, wait: 20ms, \
                 expect: {text: a, skip_others: true}, stay]";
    let mut play = Play::new(WS, steps);
    for row in [
        "0 begin; 1 opened; 2 upgraded",
        "3 text r",
        "4 text a",
        "12 deadline",
        "13 flood-text 65535",
        "14 text a",
    ] {
        play.row(row);
    }
    let ended = play.row("32 deadline");
    assert!(ended.contains("answered"), "{ended}");
    assert_eq!(play.counters.messages_unasked, 2);
}

#[test]
fn a_late_answer_does_not_keep_the_next_one_out_of_a_full_inbox() {
    let steps = "[connect, send: a, expect: {text: A, timeout: 10ms}, send: b, wait: 10ms, \
                 expect: {text: A, skip_others: true}, stay]";
    let mut play = Play::new(&format!("{WS}\non_error: continue"), steps);
    for row in [
        "0 begin; 1 opened; 2 upgraded",
        "12 deadline",
        "13 text A",
        "14 flood-text 65535",
        "15 text A",
    ] {
        play.row(row);
    }
    let ended = play.row("22 deadline");
    assert!(ended.contains("answered"), "{ended}");
    assert_eq!(play.counters.messages_unasked, 2);
}

#[test]
fn a_discarded_message_does_not_keep_the_answer_of_the_next_turn_out_of_a_full_inbox() {
    // Two answers are outstanding, so the inbox stays when its messages are discarded.
    let steps = "[connect, set: {last: 0}, repeat: {times: 3, do: [send: \"q${counter}\", expect: \
                 {json: {n: \"${counter}\"}, capture: {last: /last}, timeout: 100ms}, wait: 10ms, \
                 if: {condition: \"${last} == 1\", \
                 do: [expect: {text: \"b${counter}\", skip_others: true}]}]}, stay]";
    let mut play = Play::new(&format!("{WS}\non_error: continue"), steps);
    for row in [
        "0 begin; 1 opened; 2 upgraded",
        "102 deadline",
        "112 deadline",
        "212 deadline",
        "213 text b1",
        "214 flood-text 65535",
        "222 deadline",
        "223 text {\"n\":\"2\",\"last\":1}",
        "224 flood-text 65535",
        "225 text b2",
    ] {
        play.row(row);
    }
    let ended = play.row("233 deadline");
    assert!(ended.contains("answered"), "{ended}");
}
