//! `if`, `choose`, `foreach` and `repeat: {while}`.

use super::play::{TCP, WS, check};

#[test]
fn one_of_two_lists_runs_by_the_condition() {
    for (condition, sent) in [("${user.id} == 0", "yes"), ("${user.id} > 0", "no")] {
        check(
            TCP,
            &format!(
                "[connect, if: {{condition: \"{condition}\", do: [send: \"yes\"], else: \
                 [send: \"no\"]}}, expect: ok, stay]"
            ),
            &[
                (
                    "0 begin; 1 opened",
                    &format!(
                        "connected 1, no deadline, time-out 5001, sent {sent}, connected +1, \
                         messages_expected +1, messages_sent +1"
                    ),
                ),
                ("3 bytes ok", "answered 2, no deadline"),
            ],
        );
    }
}

#[test]
fn an_if_without_else_is_skipped() {
    check(
        TCP,
        "[connect, if: {condition: \"${user.id}\", do: [send: a, expect: b]}, send: c, expect: d, \
         stay]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, time-out 5001, sent c, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("3 bytes d", "answered 2, no deadline"),
        ],
    );
}

#[test]
fn a_loop_goes_on_while_its_condition_holds() {
    check(
        WS,
        "[connect, set: {left: 2}, repeat: {while: \"${left} > 0\", do: [send: next, expect: \
         {json: {}, capture: {left: /left}}]}, close]",
        &[
            (
                "0 begin; 1 opened; 2 upgraded",
                "connected 2, no deadline, time-out 5002, sent a frame, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            (
                "3 text {\"left\":1}",
                "answered 1, no deadline, time-out 5003, sent a frame, messages_expected +1, \
                 messages_sent +1",
            ),
            ("5 text {\"left\":0}", "answered 2, no deadline, sent a close frame"),
        ],
    );
}

#[test]
fn each_value_of_a_list_has_its_turn() {
    check(
        TCP,
        "[connect, foreach: {name: room, in: [a, \"b${user.id}\"], do: [send: \"${room}\", \
         expect: \"<${room}>\"]}, stay]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, time-out 5001, sent a, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            (
                "3 bytes <a>",
                "answered 2, no deadline, time-out 5003, sent b0, messages_expected +1, \
                 messages_sent +1",
            ),
            ("5 bytes <b0>", "answered 2, no deadline"),
        ],
    );
}

#[test]
fn one_of_the_lists_is_chosen() {
    check(
        TCP,
        "[connect, choose: [{weight: 1000000, do: [send: a]}, {do: [send: b]}], expect: A, stay]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, time-out 5001, sent a, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("3 bytes A", "answered 2, no deadline"),
        ],
    );
}
