//! `ping` and `pong`: control frames of a WebSocket.

use crate::user::tests::play::{PHOENIX, Play, WS, check};

const WS_CONTINUES: &str = "target: ws://h:1/\non_error: continue";
const BEGIN: &str = "0 begin; 1 opened; 2 upgraded";

#[test]
fn a_ping_waits_for_its_own_pong() {
    check(
        WS,
        "[connect, ping: {text: \"a${user.id}\", timeout: 1s, name: rtt}, ping: \"\", stay]",
        &[
            (BEGIN, "connected 2, no deadline, time-out 1002, sent a ping, connected +1"),
            ("3 pong a1", ""),
            ("4 text a0", "messages_unasked +1"),
            ("5 pong a0", "pong 3, step 0 3, no deadline, time-out 5005, sent a ping"),
            ("6 pong a0", ""),
            ("7 pong ", "pong 2, no deadline"),
            ("8 pong ", ""),
        ],
    );
}

#[test]
fn a_ping_without_a_payload_has_another_one_each_time() {
    for head in [WS, PHOENIX] {
        let mut play = Play::new(head, "[connect, ping, ping, stay]");
        play.row(BEGIN);
        // The moment at which the first ping was due.
        let pong = "pong-hex 00 00 00 00 00 1e 84 80";
        let answered = play.row(&format!("9 {pong}"));
        assert!(answered.starts_with("pong 7, ") && answered.contains("sent a ping"), "{answered}");
        assert_eq!(play.row(&format!("10 {pong}")), "");
        assert_eq!(play.row("11 pong "), "");
    }
}

#[test]
fn a_ping_without_a_pong_is_an_error_and_counts_for_its_name() {
    check(
        WS,
        "[connect, ping: {name: rtt}, stay]",
        &[
            (BEGIN, "connected 2, no deadline, time-out 5002, sent a ping, connected +1"),
            (
                "5002 deadline",
                "error ping_timeout, step 0 failed, step 0 unanswered 5000, no deadline, close, \
                 sent a close frame",
            ),
        ],
    );
    check(
        WS_CONTINUES,
        "[connect, send: x, ping, expect: y, stay]",
        &[
            (
                BEGIN,
                "connected 2, no deadline, time-out 5002, sent a frame, connected +1, \
                 messages_sent +1",
            ),
            (
                "5002 deadline",
                "error ping_timeout, no deadline, time-out 10002, messages_expected +1",
            ),
            ("5003 text y", "answered 5001, no deadline"),
        ],
    );
    check(
        WS,
        "[connect, ping: {name: rtt}, stay]",
        &[(&format!("{BEGIN}; 3 stop"), "step 0 cut, step 0 unanswered 1, end cut")],
    );
}

#[test]
fn a_pong_is_sent_without_a_wait() {
    check(
        WS,
        "[connect, pong, pong: {binary: 01}, stay]",
        &[(BEGIN, "connected 2, no deadline, sent a pong, connected +1")],
    );
}

#[test]
fn a_payload_that_is_too_long_is_not_sent() {
    let long = "x".repeat(126);
    for step in ["ping", "pong"] {
        check(
            WS,
            &format!("[connect, set: {{p: {long}}}, {step}: \"${{p}}\", stay]"),
            &[(
                BEGIN,
                "connected 2, no deadline, sample, error bad_value, no deadline, close, \
                 sent a close frame, connected +1",
            )],
        );
    }
}
