//! `send`: what leaves, and when the user has to wait.

use super::play::{Play, TCP, WS, check};

#[test]
fn messages_leave_before_the_next_wait() {
    check(
        TCP,
        "[connect, send: hi, send: ho, stay]",
        &[(
            "0 begin; 1 opened",
            "connected 1, no deadline, sent hiho, connected +1, messages_sent +2",
        )],
    );
}

#[test]
fn a_large_output_is_handed_over_at_once() {
    check(
        TCP,
        "[connect, send: {random: 300KiB}, send: hi, stay]",
        &[(
            "0 begin; 1 opened",
            "connected 1, no deadline, sent 307200 bytes, connected +1, messages_sent +1, \
             flush, no deadline, sent hi, messages_sent +1",
        )],
    );
}

#[test]
fn large_messages_do_not_fill_a_turn() {
    let steps = "[connect, repeat: {times: 9, do: [send: {random: 300KiB}]}, send: hi, stay]";
    let four = "sent 307200 bytes, messages_sent +1, flush, ".repeat(3);
    let turn = |begin: &str, end: &str| format!("{begin}{four}sent 307200 bytes, {end}");
    let mut play = Play::new(TCP, steps);
    let first = play.row("0 begin; 1 opened");
    assert!(first.ends_with("flush, until 1"), "{first}");
    assert_eq!(play.counters.messages_sent, 4);
    assert_eq!(play.row("1 deadline"), turn("", "messages_sent +1, flush, until 1"));
    assert!(play.row("1 deadline").ends_with("sent hi, messages_sent +1"));
    assert_eq!(play.counters.messages_sent, 10);
}

#[test]
fn a_user_waits_while_the_server_does_not_accept_its_bytes() {
    check(
        TCP,
        "[connect, wait: 1ms, send: hi, stay]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, until 2, connected +1"),
            ("1 blocked; 2 deadline", "late 0, no deadline"),
            ("5 drained", "no deadline, sent hi, messages_sent +1"),
        ],
    );
}

#[test]
fn a_user_that_never_waits_yields_to_the_others() {
    check(
        TCP,
        "[connect, repeat: {times: 100, do: [send: x]}, stay]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, until 1, sent 32 bytes, connected +1, messages_sent +32",
            ),
            ("1 deadline", "until 1, sent 32 bytes, messages_sent +32"),
            ("1 deadline", "until 1, sent 32 bytes, messages_sent +32"),
            ("1 deadline", "no deadline, sent xxxx, messages_sent +4"),
            ("1 deadline", ""),
        ],
    );
}

#[test]
fn a_message_on_a_websocket_is_a_frame() {
    check(
        WS,
        r#"[connect, send: hi, send: {binary: "00ff"}, send: {random: 9}, stay]"#,
        &[(
            "0 begin; 1 opened; 2 upgraded",
            "connected 2, no deadline, sent a frame, connected +1, messages_sent +3",
        )],
    );
}

#[test]
fn a_send_without_a_connection_is_skipped() {
    check(
        &format!("{TCP}\non_error: continue"),
        "[connect, wait: 1s, send: hi, stay]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, until 1001, connected +1"),
            ("5 closed finished", "error closed_by_peer, lost, until 1001, connected -1"),
            ("1001 deadline", "late 0, error not_connected, no deadline"),
        ],
    );
}
