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
fn bytes_in_hexadecimal_have_variables_between_them() {
    let set = "set: {id: \"user ${user.id}\", key: AP/+, hex: 7f 00, n: \"770\"}";
    let message = "10 ${varint(length(id) + 120)} ${'MQ'} ${u16(length(id))}${id} ${u8(9)} \
                   ${u16(n, 'le')} ${u32(1)} ${from_hex(hex)} ${from_base64('QUI=')}";
    let sent = "\u{10}\u{7e}MQ\0\u{6}user 0\t\u{2}\u{3}\0\0\0\u{1}\u{7f}\0AB";
    check(
        TCP,
        &format!("[connect, {set}, send: {{hex: \"{message}\"}}, stay]"),
        &[(
            "0 begin; 1 opened",
            &format!(
                "connected 1, no deadline, sent {} bytes, connected +1, messages_sent +1",
                sent.len()
            ),
        )],
    );
    let mut play = Play::new(TCP, &format!("[connect, {set}, send: {{hex: \"{message}\"}}, stay]"));
    play.row("0 begin; 1 opened");
    assert_eq!(play.last_sent, sent);
}

#[test]
fn a_number_of_many_bits_has_several_bytes() {
    for (value, sent) in [
        ("varint(0)", "00"),
        ("varint(127)", "7f"),
        ("varint(128)", "80 01"),
        ("varint(268435455)", "ff ff ff 7f"),
        ("u64(258)", "00 00 00 00 00 00 01 02"),
        ("u32(258, 'le')", "02 01 00 00"),
        ("u8(255)", "ff"),
    ] {
        let steps = format!(
            "[connect, send: {{binary: \"${{{value}}}\"}}, expect: {{binary: {sent}}}, \
             expect: {{binary: \"${{{value}}}\"}}, stay]"
        );
        let mut play = Play::new(WS, &steps);
        play.row("0 begin; 1 opened; 2 upgraded");
        assert_eq!(
            play.row(&format!("3 binary {sent}")),
            "answered 1, no deadline, time-out 5003, messages_expected +1"
        );
        assert_eq!(play.row(&format!("4 binary {sent}")), "answered 1, no deadline");
    }
}

#[test]
fn a_value_that_has_no_bytes_is_not_sent() {
    let set = "set: {n: \"256\", text: x, hex: 0g, odd: \"000\", key: \"!\"}";
    for (value, fault) in [
        ("u8(n)", "a number that does not fit into `u8`"),
        ("u16(0 - 1)", "a number that does not fit into `u16`"),
        ("u32(text)", "a value that is no whole number"),
        ("varint(0 - 1)", "a number that does not fit into `varint`"),
        ("from_hex(hex)", "a value of `from_hex` that is not hexadecimal"),
        ("from_hex(odd)", "a value of `from_hex` that is not hexadecimal"),
        ("from_base64(key)", "a value of `from_base64` that is not Base64"),
    ] {
        let user = format!("[connect, {set}, send: {{hex: \"00 ${{{value}}}\"}}, stay]");
        check(
            TCP,
            &user,
            &[(
                "0 begin; 1 opened",
                "connected 1, no deadline, sample, error bad_value, no deadline, close, \
                 connected +1",
            )],
        );
        let said = format!("   0.001000    not sent: {fault}");
        let lines = Play::traced(TCP, &user, &["0 begin; 1 opened"]);
        assert!(lines.contains(&said), "{lines:#?}");
    }
}

#[test]
fn an_empty_message_is_a_message() {
    for message in ["\"\"", "{text: \"\"}", "{binary: \"\"}"] {
        check(
            WS,
            &format!("[connect, send: {message}, expect: \"\", stay]"),
            &[
                ("0 begin; 1 opened", "TCP connected 1, sent the upgrade, upgrades_started +1"),
                (
                    "2 upgraded",
                    "connected 2, no deadline, time-out 5002, sent a frame, connected +1, \
                     messages_expected +1, messages_sent +1",
                ),
                ("3 text ", "answered 1, no deadline"),
            ],
        );
    }
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
