//! `join`, `push`, `leave`, and heartbeats.

use crate::user::tests::play::{PHOENIX, check};
use throng_measure::ErrorKind;

#[test]
fn a_join_is_answered_and_counts() {
    check(
        PHOENIX,
        "[connect, join: {topic: a}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 10002, sent a frame, connected +1, \
                 joins_started +1",
            ),
            ("5 reply 1 ok", "replied 3, joined, no deadline"),
        ],
    );
}

#[test]
fn a_refused_join_leaves_no_channel() {
    check(
        PHOENIX,
        "[connect, join: {topic: a}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 10002, sent a frame, connected +1, \
                 joins_started +1",
            ),
            (
                "5 reply 1 error",
                "sample, replied 3, error join_refused, no deadline, close, sent a close frame, \
                 joins_failed +1",
            ),
            ("5 closed requested", "end failed, rest, until 978, connected -1"),
        ],
    );
}

#[test]
fn a_reply_that_does_not_come_is_a_time_out() {
    check(
        PHOENIX,
        "[connect, join: {topic: a, timeout: 1s}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 1002, sent a frame, connected +1, \
                 joins_started +1",
            ),
            (
                "1002 deadline",
                "error join_timeout, unanswered 1000, no deadline, close, sent a close frame, \
                 joins_failed +1",
            ),
        ],
    );
}

#[test]
fn a_reply_is_known_by_its_ref() {
    check(
        PHOENIX,
        "[connect, join: {topic: a}, push: {topic: a, event: e}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 10002, sent a frame, connected +1, \
                 joins_started +1",
            ),
            (
                "3 reply 1 ok",
                "replied 1, joined, no deadline, time-out 10003, sent a frame, pushes_sent +1",
            ),
            ("4 reply 1 ok", ""),
            ("5 reply 2 ok", "replied 2, pushed, no deadline"),
        ],
    );
}

#[test]
fn a_push_without_a_reply_does_not_wait() {
    check(
        PHOENIX,
        "[connect, join: {topic: a}, push: {topic: a, event: e, reply: false}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 10002, sent a frame, connected +1, \
                 joins_started +1",
            ),
            (
                "3 reply 1 ok",
                "replied 1, joined, no deadline, sent a frame, pushes_sent +1, \
                 pushes_without_reply +1",
            ),
        ],
    );
}

#[test]
fn a_channel_that_the_user_has_left_is_gone() {
    check(
        PHOENIX,
        "[connect, join: {topic: a}, leave: {topic: a}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 10002, sent a frame, connected +1, \
                 joins_started +1",
            ),
            (
                "3 reply 1 ok",
                "replied 1, joined, no deadline, channels lost 1, time-out 10003, sent a frame",
            ),
            ("4 reply 2 ok", "replied 1, no deadline"),
        ],
    );
}

#[test]
fn a_channel_that_crashes_is_an_error() {
    check(
        PHOENIX,
        "[connect, join: {topic: a}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 10002, sent a frame, connected +1, \
                 joins_started +1",
            ),
            ("3 reply 1 ok", "replied 1, joined, no deadline"),
            (
                "9 channel-end [\"1\",\"1\",\"a\",\"phx_error\",{}]",
                "channels lost 1, error channel_error, no deadline, close, sent a close frame",
            ),
            ("9 closed requested", "end failed, rest, until 982, connected -1"),
        ],
    );
}

/// Plays each frame to a user that waits for the answer to its push in the channel `a`, joined
/// with ref 1 on a server of this version.
#[track_caller]
fn check_end(frame: &str, actions: &str) {
    let before = [
        (
            "0 begin; 1 opened; 2 upgraded",
            "connected 2, no deadline, time-out 10002, sent a frame, connected +1, \
             joins_started +1",
        ),
        (
            "3 reply 1 ok",
            "replied 1, joined, no deadline, time-out 10003, sent a frame, pushes_sent +1",
        ),
    ];
    let end = format!("9 channel-end {frame}");
    let steps = "[connect, join: {topic: a}, push: {topic: a, event: e}, stay]";
    check(PHOENIX, steps, &[before[0], before[1], (&end, actions)]);
}

#[test]
fn a_channel_ends_whatever_the_ref_and_a_push_with_it() {
    for (event, error) in [
        ("phx_error", ErrorKind::ChannelError.name()),
        ("phx_close", ErrorKind::ChannelClosed.name()),
    ] {
        let actions = format!(
            "channels lost 1, error {error}, no deadline, close, sent a close frame, \
             pushes_failed +1"
        );
        for refs in ["\"1\",\"1\"", "\"1\",null", "null,null", "null,\"1\"", "null,\"2\"", "\"\",2"]
        {
            check_end(&format!("[{refs},\"a\",\"{event}\",{{}}]"), &actions);
        }
        for rest in [",\"ref\":null", "", ",\"ref\":\"2\"", ",\"join_ref\":\"1\",\"ref\":\"0\""] {
            let head = format!("\"topic\":\"a\",\"event\":\"{event}\",\"payload\":{{}}");
            check_end(&format!("{{{head}{rest}}}"), &actions);
        }
        for other in ["\"2\",null,\"a\"", "null,null,\"b\"", "1,null,\"a\"", "\"1\",null,\"b\""] {
            check_end(&format!("[{other},\"{event}\",{{}}]"), "");
        }
    }
}

#[test]
fn a_user_that_continues_after_a_crash_has_no_channel() {
    check(
        &format!("{PHOENIX}\non_error: continue"),
        "[connect, join: {topic: a}, wait: 10ms, push: {topic: a, event: e}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 10002, sent a frame, connected +1, \
                 joins_started +1",
            ),
            ("3 reply 1 ok", "replied 1, joined, no deadline, until 13"),
            (
                "9 channel-end [\"1\",\"1\",\"a\",\"phx_error\",{}]",
                "channels lost 1, error channel_error",
            ),
            ("13 deadline", "late 0, error not_joined, no deadline"),
        ],
    );
}

#[test]
fn a_heartbeat_without_an_answer_ends_the_connection() {
    check(
        PHOENIX,
        "[connect, stay]",
        &[
            ("0 begin; 1 opened; 2 upgraded", "connected 2, no deadline, connected +1"),
            ("30000 heartbeat", "sent a frame, heartbeats_sent +1"),
            ("30001 reply 1 ok", "heartbeats_answered +1"),
            ("60000 heartbeat", "sent a frame, heartbeats_sent +1"),
            (
                "90000 heartbeat",
                "error heartbeat_timeout, close, sent a close frame, heartbeats_missed +1",
            ),
            ("90000 closed requested", "end failed, rest, until 90949, connected -1"),
        ],
    );
}

#[test]
fn a_message_of_another_protocol_ends_the_connection() {
    check(
        PHOENIX,
        "[connect, stay]",
        &[
            ("0 begin; 1 opened; 2 upgraded", "connected 2, no deadline, connected +1"),
            ("3 bad hello", "sample, error bad_message, close, sent a close frame"),
            ("3 closed requested", "end failed, rest, until 938, connected -1"),
        ],
    );
}

#[test]
fn a_response_is_compared_and_captured() {
    check(
        PHOENIX,
        "[connect, join: {topic: a, capture: {id: /id}}, push: {topic: a, event: e, payload: {n: \
         \"${id}\"}, expect: {n: {$gt: 5}, of: \"${sent.n}\"}}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 10002, sent a frame, connected +1, \
                 joins_started +1",
            ),
            (
                "5 reply 1 ok {\"id\":\"seven\"}",
                "replied 3, joined, no deadline, time-out 10005, sent a frame, pushes_sent +1",
            ),
            ("7 reply 2 ok {\"n\":6,\"of\":\"seven\"}", "replied 2, pushed, no deadline"),
        ],
    );
}

#[test]
fn another_response_is_a_mismatch() {
    check(
        PHOENIX,
        "[connect, join: {topic: a, expect: {id: 7}}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 10002, sent a frame, connected +1, \
                 joins_started +1",
            ),
            (
                "5 reply 1 ok {\"id\":8}",
                "replied 3, sample, error expect_mismatch, no deadline, close, sent a close frame, \
                 joins_failed +1",
            ),
        ],
    );
}

/// A frame of version 2 with an event of the server.
fn event(topic: &str, event: &str, payload: &str) -> String {
    format!("text [null,null,\"{topic}\",\"{event}\",{payload}]")
}

#[test]
fn a_receive_takes_an_event_that_came_before_it_or_comes_later() {
    let steps = "[connect, join: {topic: a}, receive: {topic: a, event: hi, capture: {n: /n}}, \
                 push: {topic: a, event: e, payload: {n: \"${n}\"}}, receive: {topic: a, event: \
                 told, payload: {n: \"${sent.n}\"}}, stay]";
    let [other, hi, wrong, told] = [
        event("b", "hi", "{\"n\":1}"),
        event("a", "hi", "{\"n\":2}"),
        event("a", "told", "{\"n\":\"1\"}"),
        event("a", "told", "{\"n\":\"2\",\"more\":true}"),
    ];
    check(
        PHOENIX,
        steps,
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 10002, sent a frame, connected +1, \
                 joins_started +1",
            ),
            (&format!("3 {other}"), ""),
            (&format!("4 {hi}"), ""),
            (
                "5 reply 1 ok",
                "replied 3, joined, no deadline, skipped kept, no deadline, time-out 10005, \
                 sent a frame, messages_unasked +1, pushes_sent +1",
            ),
            ("6 reply 2 ok", "replied 1, pushed, no deadline, time-out 10006"),
            (&format!("7 {wrong}"), "skipped, messages_unasked +1"),
            (&format!("8 {told}"), "no deadline"),
        ],
    );
}

#[test]
fn an_event_that_does_not_come_is_a_time_out() {
    check(
        PHOENIX,
        "[connect, join: {topic: a}, receive: {topic: a, event: hi, timeout: 1s}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 10002, sent a frame, connected +1, \
                 joins_started +1",
            ),
            ("5 reply 1 ok", "replied 3, joined, no deadline, time-out 1005"),
            (
                "1005 deadline",
                "sample, error expect_timeout, no deadline, close, sent a close frame",
            ),
        ],
    );
}
