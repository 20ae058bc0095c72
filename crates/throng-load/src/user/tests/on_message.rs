//! Rules of `on_message`: what a user sends beside its steps.

use super::play::{PHOENIX, Play, WS, check, check_trace};
use throng_measure::ErrorKind;

const PING: &str = "target: ws://h:1/\non_message: [{text: '2', do: [send: '3']}]";
const BEGUN: &str = "0 begin; 0 opened; 0 upgraded";

#[test]
fn a_rule_answers_in_every_step() {
    for (user, before) in [
        ("[connect, wait: 10s, close]", BEGUN.to_owned()),
        ("[connect, stay]", BEGUN.to_owned()),
        ("[connect, send: hi, expect: ho, stay]", BEGUN.to_owned()),
        (
            "[connect, every: {period: 5s, do: [send: hi, expect: ho]}]",
            format!("{BEGUN}; 1 text ho"),
        ),
        ("[connect, barrier: {name: all, users: 2}, stay]", BEGUN.to_owned()),
    ] {
        let mut play = Play::new(PING, user);
        let row = play.row(&format!("{before}; 7 text 2"));
        assert_eq!(row, "sent a frame, rules_matched +1, rules_sent +1", "{user}");
        assert_eq!(play.counters.messages_unasked, 0, "{user}");
    }
}

#[test]
fn the_steps_go_on_as_if_nothing_had_come() {
    check(
        PING,
        "[connect, send: 'a ${counter}', expect: 'b ${counter}', send: 'c ${counter}', stay]",
        &[
            (
                BEGUN,
                "connected 0, no deadline, time-out 5000, sent a frame, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            ("3 text 2", "sent a frame, rules_matched +1, rules_sent +1"),
            // Its latency is that from the message of the step.
            ("8 text b 0", "answered 8, no deadline, sent a frame, messages_sent +1"),
        ],
    );
}

#[test]
fn no_step_sees_what_a_rule_takes() {
    let user = "[connect, receive: welcome, stay]";
    let mismatch = Play::new(WS, user).row(&format!("{BEGUN}; 5 text 2"));
    assert!(mismatch.contains(ErrorKind::ExpectMismatch.name()), "{mismatch}");
    // Without `do`, the message is only taken.
    let taken = format!("{WS}\non_message: [{{text: '2'}}]");
    assert_eq!(Play::new(&taken, user).row(&format!("{BEGUN}; 5 text 2")), "rules_matched +1");
    let others = Play::new(&taken, user).row(&format!("{BEGUN}; 5 text 2; 6 text welcome"));
    assert_eq!(others, "no deadline");
}

#[test]
fn the_first_rule_that_fits_takes_the_message() {
    let rules = "on_message: [{json: {type: ping}, do: [send: {json: {type: pong}}, send: again]}, \
                 {json: {type: {$exists: true}}}]";
    let mut play = Play::new(&format!("{WS}\n{rules}"), "[connect, stay]");
    let row = play.row(&format!("{BEGUN}; 5 text {{\"type\":\"ping\"}}"));
    assert_eq!(row, "sent a frame, rules_matched +1, rules_sent +2");
    assert_eq!(play.row("6 text {\"type\":\"note\"}"), "rules_matched +1");
    assert_eq!(play.row("7 text {\"kind\":\"note\"}"), "messages_unasked +1");
}

#[test]
fn a_rule_keeps_parts_of_its_message_and_decides_by_them() {
    let head = "target: ws://h:1/\non_message:\n\
        - {json: {type: token}, capture: {token: /value}}\n\
        - {json: {type: ask}, capture: {id: /id}, \
           do: [if: {condition: \"'${id}' == '7'\", do: [send: 'to ${id}: ${token}']}]}\n";
    let user = "[connect, set: {token: none}, stay]";
    let mut play = Play::new(head, user);
    let token = r#"5 text {"type":"token","value":"t1"}"#;
    play.row(&format!("{BEGUN}; {token}; 6 text {{\"type\":\"ask\",\"id\":8}}"));
    assert_eq!(play.counters.rules_sent, 0, "its condition does not hold");
    check_trace(
        head,
        user,
        &[BEGUN, token, r#"6 text {"type":"ask","id":7}"#],
        &[
            "   0.000000  begins",
            "   0.000000  step 1 connect (line 7): within 5s",
            "   0.000000    TCP is established, after 0 µs",
            "   0.000000    > GET / HTTP/1.1",
            "   0.000000    > host: h:1",
            "   0.000000    > upgrade: websocket",
            "   0.000000    > connection: Upgrade",
            "   0.000000    > sec-websocket-key: ***",
            "   0.000000    > sec-websocket-version: 13",
            "   0.000000    ok: connected, after 0 µs",
            "   0.000000  step 2 set (line 7)",
            "   0.000000  step 3 stay (line 7)",
            "   0.005000    < text, 29 bytes: `{\"type\":\"token\",\"value\":\"t1\"}`",
            "   0.006000    < text, 21 bytes: `{\"type\":\"ask\",\"id\":7}`",
            "   0.006000  step on_message[2].1 if (line 4): '${id}' == '7'",
            "   0.006000  step on_message[2].1.1 send (line 4)",
            "   0.006000    > text, 8 bytes: `to 7: t1`",
        ],
    );
}

#[test]
fn a_server_that_does_not_read_gets_no_more() {
    let mut play = Play::new(PING, "[connect, send: hi, stay]");
    let row = play.row(&format!("{BEGUN}; 1 blocked; 2 text 2"));
    assert_eq!(row, "rules_blocked +1, rules_matched +1");
    assert_eq!(play.row("3 drained; 4 text 2"), "sent a frame, rules_matched +1, rules_sent +1");
}

#[test]
fn a_user_that_closes_or_is_stopped_answers_no_more() {
    for end in ["3 stop", "3 leave"] {
        let mut play = Play::new(PING, "[connect, stay]");
        play.row(&format!("{BEGUN}; {end}; 4 text 2"));
        assert_eq!(play.counters.rules_sent, 0, "{end}");
    }
    let mut play = Play::new(PING, "[connect, close]");
    play.row(&format!("{BEGUN}; 4 text 2"));
    assert_eq!(play.counters.rules_sent, 0);
}

/// Rules of a user of channels: an event is answered with an event that waits for no reply.
fn asks() -> String {
    let answer = "push: {topic: a, event: say, payload: {id: '${id}'}}";
    format!(
        "{PHOENIX}\non_message: [{{topic: a, event: ask, capture: {{id: /id}}, do: [{answer}]}}, \
         {{topic: a, event: noise}}]"
    )
}

const JOINED: &str = "0 begin; 1 opened; 2 upgraded; 3 reply 1 ok";

#[test]
fn an_event_of_a_channel_is_answered_whatever_the_user_waits_for() {
    let ask = r#"5 text [null,null,"a","ask",{"id":7}]"#;
    for steps in [
        "stay",
        "wait: 10s, close",
        "push: {topic: a, event: e}, stay",
        "receive: {topic: a, event: news}, stay",
    ] {
        let mut play = Play::new(&asks(), &format!("[connect, join: {{topic: a}}, {steps}]"));
        play.row(JOINED);
        let row = play.row(ask);
        assert_eq!(row, "sent a frame, rules_matched +1, rules_sent +1", "{steps}");
        let own = u64::from(steps.starts_with("push"));
        assert_eq!((play.counters.pushes_sent, play.counters.messages_unasked), (own, 0));
        // The reply to what a rule pushes answers no step.
        let reply = if steps.starts_with("push") { "6 reply 3 ok" } else { "6 reply 2 ok" };
        assert_eq!(play.row(reply), "", "{steps}");
    }
}

#[test]
fn an_event_that_no_rule_takes_costs_a_user_of_channels_nothing() {
    let mut play = Play::new(&asks(), "[connect, join: {topic: a}, stay]");
    play.row(JOINED);
    assert_eq!(play.row(r#"5 text [null,null,"a","noise",{}]"#), "rules_matched +1");
    assert_eq!(play.row(r#"6 text [null,null,"a","other",{}]"#), "");
    assert_eq!(play.row(r#"7 text [null,null,"b","ask",{}]"#), "", "of another topic");
}

#[test]
fn a_channel_that_the_user_has_left_gets_no_answer() {
    let mut play = Play::new(&asks(), "[connect, join: {topic: a}, leave: {topic: a}, stay]");
    play.row(JOINED);
    let row = play.row(r#"5 text [null,null,"a","ask",{"id":7}]"#);
    assert_eq!(row, "rules_blocked +1, rules_matched +1");
}
