//! Which answer belongs to which question: variables in `expect`, captures, and `receive`.

use super::play::{TCP, WS, check};

#[test]
fn a_message_that_nothing_answers_delays_no_answer() {
    check(
        TCP,
        "[connect, send: login, wait: 10ms, repeat: {times: 2, do: [send: a, expect: A, \
         wait: 100ms]}, stay]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, until 11, sent login, connected +1, messages_sent +1",
            ),
            (
                "11 deadline",
                "late 0, time-out 5011, sent a, messages_expected +1, messages_sent +1",
            ),
            ("14 bytes A", "answered 3, no deadline, until 114"),
            (
                "114 deadline",
                "late 0, time-out 5114, sent a, messages_expected +1, messages_sent +1",
            ),
            ("119 bytes A", "answered 5, no deadline, until 219"),
        ],
    );
}

#[test]
fn an_answer_is_known_by_what_was_sent() {
    check(
        WS,
        "[connect, repeat: {times: 2, do: [send: {json: {body: \"no ${counter}\"}}, expect: \
         {json: {body: \"${sent.body}\"}, skip_others: true}]}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 5002, sent a frame, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("3 text {\"body\":\"no 1\"}", "skipped, messages_unasked +1"),
            (
                "4 text {\"body\":\"no 0\"}",
                "answered 2, no deadline, time-out 5004, sent a frame, messages_expected +1, \
                 messages_sent +1",
            ),
            ("5 text {\"body\":\"no 0\"}", "skipped, messages_unasked +1"),
            ("9 text {\"body\":\"no 1\"}", "answered 5, no deadline"),
        ],
    );
}

#[test]
fn a_late_answer_is_told_from_the_next_one_by_its_text() {
    check(
        &format!("{WS}\non_error: continue"),
        "[connect, repeat: {times: 2, do: [send: \"q${counter}\", expect: {text: \
         \"a${counter}\", timeout: 10ms}]}, stay]",
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
            // The late answer is no mismatch, and the first match is the answer.
            ("14 text a0", "messages_unasked +1"),
            ("16 text a1", "answered 4, no deadline"),
        ],
    );
}

#[test]
fn a_duplicate_of_an_answer_makes_the_next_one_no_doubtful() {
    check(
        WS,
        "[connect, repeat: {times: 2, do: [send: \"q${counter}\", expect: \"a${counter}\", \
         wait: 10ms]}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 5002, sent a frame, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("3 text a0", "answered 1, no deadline, until 13"),
            ("4 text a0", "messages_unasked +1"),
            (
                "13 deadline",
                "late 0, time-out 5013, sent a frame, messages_expected +1, messages_sent +1",
            ),
            ("14 text a1", "answered 1, no deadline, until 24"),
        ],
    );
}

#[test]
fn a_capture_is_a_variable_of_later_steps() {
    check(
        WS,
        "[connect, receive: {json: {type: hello}, capture: {id: /user/id}}, send: \"I am ${id}\", \
         expect: {text: \"hello ${id}\"}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 5002, connected +1",
            ),
            (
                "3 text {\"type\":\"hello\",\"user\":{\"id\":77}}",
                "no deadline, time-out 5003, sent a frame, messages_expected +1, messages_sent +1",
            ),
            ("5 text hello 77", "answered 2, no deadline"),
        ],
    );
}

#[test]
fn a_message_without_what_is_captured_does_not_match() {
    check(
        WS,
        "[connect, send: hi, expect: {json: {type: hello}, capture: {id: /id}}, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 5002, sent a frame, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            (
                "3 text {\"type\":\"hello\"}",
                "sample, error expect_mismatch, no deadline, close, sent a close frame, \
                 messages_failed +1",
            ),
        ],
    );
}

#[test]
fn what_comes_unasked_is_received_whether_it_came_before_or_after() {
    check(
        WS,
        "[connect, wait: 10ms, send: hi, receive: {text: news}, expect: {text: ho}, wait: 5ms, \
         receive: {text: more, skip_others: true}, stay]",
        &[
            ("0 begin; 1 opened; 2 upgraded", "connected 2, no deadline, until 12, connected +1"),
            // It came before the message was sent, and is kept for the `receive`.
            ("5 text news", ""),
            (
                "12 deadline",
                "late 0, no deadline, time-out 5012, sent a frame, \
                 messages_expected +1, messages_sent +1",
            ),
            ("20 text ho", "answered 8, no deadline, until 25"),
            ("25 deadline", "late 0, time-out 5025"),
            ("30 text no", "skipped, messages_unasked +1"),
            ("40 text more", "no deadline"),
        ],
    );
}

#[test]
fn what_came_before_the_question_answers_nothing_behind_a_receive() {
    check(
        WS,
        "[connect, wait: 10ms, send: hi, receive: news, expect: {text: ho}, stay]",
        &[
            ("0 begin; 1 opened; 2 upgraded", "connected 2, no deadline, until 12, connected +1"),
            ("5 text news", ""),
            ("6 text ho", ""),
            (
                "12 deadline",
                "late 0, no deadline, time-out 5012, sent a frame, \
                 messages_expected +1, messages_sent +1, messages_unasked +1",
            ),
            ("20 text ho", "answered 8, no deadline"),
        ],
    );
}

#[test]
fn a_receive_that_nothing_fits_ends_in_its_time_out() {
    check(
        TCP,
        "[connect, receive: {text: hi, timeout: 1s}, stay]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, time-out 1001, connected +1"),
            ("1001 deadline", "sample, error expect_timeout, no deadline, close"),
        ],
    );
}

#[test]
fn values_are_set_and_forgotten_with_the_iteration() {
    check(
        TCP,
        "[set: {a: \"${user.id + 1}\", b: \"<${a}>\"}, connect, send: \"${b} \", \
         expect: \"${b}${sent}\", close]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, time-out 5001, sent <1> , connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("2 bytes <1><1> ", "answered 1, no deadline, close, no deadline"),
        ],
    );
}

#[test]
fn a_probe_of_bytes_takes_a_late_answer_for_none() {
    check(
        &format!("{TCP}\non_error: continue"),
        "[connect, send: a, expect: {until: \"${user.id}\\n\", timeout: 10ms}, stay]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, time-out 11, sent a, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("2 bytes xx", ""),
            ("3 bytes yy0", ""),
            ("4 bytes \n", "answered 3, no deadline"),
        ],
    );
}

#[test]
fn an_answer_that_comes_while_its_user_thinks_is_kept() {
    check(
        WS,
        "[connect, send: hi, wait: 100ms, expect: ho, stay]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, until 102, sent a frame, connected +1, messages_sent +1",
            ),
            ("20 text ho", ""),
            ("102 deadline", "late 0, answered 100, no deadline, messages_expected +1"),
        ],
    );
}

#[test]
fn a_part_of_an_answer_on_a_stream_is_kept() {
    let connected = "connected 1, no deadline, time-out 5001, sent join, connected +1, \
                     messages_expected +1, messages_sent +1";
    let steps = "[connect, send: join, expect: {until: \"\\n\", capture: {room: {regex: \
                 'room (\\d+)'}}}, send: \"in ${room} \", expect: {until: \"\\n\", \
                 capture: {n: /n}}, send: \"${n} \", stay]";
    // In one piece, in several, and with the next answer behind it.
    for pieces in [&["ok room 17\n"][..], &["ok ro", "om 1", "7\n"]] {
        let (last, first) = pieces.split_last().unwrap();
        let mut inputs = vec![("0 begin; 1 opened".to_owned(), connected)];
        inputs.extend(first.iter().map(|piece| (format!("2 bytes {piece}"), "")));
        inputs.push((
            format!("2 bytes {last}"),
            "answered 1, no deadline, time-out 5002, sent in 17 , messages_expected +1, \
             messages_sent +1",
        ));
        inputs.push((
            "3 bytes {\"n\": 5}\n".to_owned(),
            "answered 1, no deadline, sent 5 , messages_sent +1",
        ));
        let inputs: Vec<_> = inputs.iter().map(|(input, then)| (&**input, *then)).collect();
        check(TCP, steps, &inputs);
    }
}

#[test]
fn an_answer_on_a_stream_without_the_part_to_keep_is_a_mismatch() {
    check(
        TCP,
        "[connect, send: join, expect: {until: \"\\n\", capture: {room: {regex: 'room (\\d+)'}}}, \
         stay]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, time-out 5001, sent join, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("2 bytes sorry,", ""),
            (
                "3 bytes  full\n",
                "sample, error expect_mismatch, no deadline, close, messages_failed +1",
            ),
        ],
    );
}
