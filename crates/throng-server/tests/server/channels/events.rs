//! Events of a channel, from its client and from other channels, row by row.

use super::puppet::check;

#[test]
fn a_heartbeat_is_answered() {
    check(
        r#"
        a > [null,"1","phoenix","heartbeat",{}]
        a < [null,"1","phoenix","phx_reply",{"status":"ok","response":{}}]
        v1 > {"topic":"phoenix","event":"heartbeat","payload":{},"ref":"1"}
        v1 < {"topic":"phoenix","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":"1"}
        "#,
    );
}

#[test]
fn another_event_on_the_topic_phoenix_finds_no_channel() {
    check(
        r#"
        a > [null,"1","phoenix","ping",{}]
        a < [null,"1","phoenix","phx_reply",{"status":"error","response":{"reason":"unmatched topic"}}]
        "#,
    );
}

#[test]
fn an_event_reaches_its_channel_with_its_join_ref_or_without_any() {
    check(
        r#"
        a > ["1","1","puppet:a","phx_join",{}]
        a < ["1","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > ["1","2","puppet:a","ask",{"n":1}]
        a < ["1","2","puppet:a","phx_reply",{"status":"ok","response":{"n":1}}]
        a > [null,"3","puppet:a","ask",[1,{"deep":null}]]
        a < ["1","3","puppet:a","phx_reply",{"status":"ok","response":[1,{"deep":null}]}]
        a > ["1","4","puppet:a","ask_oddly",{}]
        a < ["1","4","puppet:a","phx_reply",{"status":"so-so","response":{}}]
        a > ["1","5","puppet:a","unknown",{}]
        a > ["0","6","puppet:a","ask",{}]
        a > ["1",null,"puppet:a","ask",{}]
        a < ["1",null,"puppet:a","phx_reply",{"status":"ok","response":{}}]
        "#,
    );
}

#[test]
fn an_event_for_a_topic_that_is_not_joined_is_unmatched() {
    check(
        r#"
        a > ["1","1","puppet:a","ask",{}]
        a < [null,"1","puppet:a","phx_reply",{"status":"error","response":{"reason":"unmatched topic"}}]
        "#,
    );
}

#[test]
fn a_channel_pushes_before_it_replies_if_it_does_so_in_that_order() {
    check(
        r#"
        a > ["1","1","puppet:a","phx_join",{}]
        a < ["1","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > ["1","2","puppet:a","push_then_reply",{"n":1}]
        a < ["1",null,"puppet:a","pushed",{"n":1}]
        a < ["1","2","puppet:a","phx_reply",{"status":"ok","response":{}}]
        "#,
    );
}

#[test]
fn a_panic_in_an_event_ends_that_channel_only() {
    check(
        r#"
        a > ["1","1","puppet:farewell","phx_join",{}]
        a < ["1","1","puppet:farewell","phx_reply",{"status":"ok","response":{}}]
        a > ["2","2","puppet:b","phx_join",{}]
        a < ["2","2","puppet:b","phx_reply",{"status":"ok","response":{}}]
        a > ["1","3","puppet:farewell","panic",{}]
        a < ["1","1","puppet:farewell","phx_error",{"reason":"channel_crash"}]
        a > ["1","4","puppet:farewell","ask",{}]
        a < [null,"4","puppet:farewell","phx_reply",{"status":"error","response":{"reason":"unmatched topic"}}]
        a > ["2","5","puppet:b","ask",{}]
        a < ["2","5","puppet:b","phx_reply",{"status":"ok","response":{}}]
        "#,
    );
}

#[test]
fn a_panic_about_a_message_from_elsewhere_crashes_the_channel_too() {
    check(
        r#"
        a > ["1","1","puppet:a","phx_join",{}]
        a < ["1","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > ["1","2","puppet:a","crash_later",{}]
        a < ["1","1","puppet:a","phx_error",{"reason":"channel_crash"}]
        a > ["3","3","puppet:a","phx_join",{}]
        a < ["3","3","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > ["3","4","puppet:a","endless",{}]
        a < ["3","3","puppet:a","phx_error",{"reason":"channel_crash"}]
        a > ["5","5","puppet:a","phx_join",{}]
        a < ["5","5","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > ["5","6","puppet:a","now",{}]
        "#,
    );
}

#[test]
fn what_is_pushed_or_broadcast_must_be_an_object() {
    check(
        r#"
        a > ["1","1","puppet:a","phx_join",{}]
        a < ["1","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > ["1","2","puppet:a","push",[]]
        a < ["1","1","puppet:a","phx_error",{"reason":"channel_crash"}]
        a > ["3","3","puppet:a","phx_join",{}]
        a < ["3","3","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > ["3","4","puppet:a","all","text"]
        a < ["3","3","puppet:a","phx_error",{"reason":"channel_crash"}]
        "#,
    );
}

#[test]
fn a_channel_that_stops_closes() {
    check(
        r#"
        a > ["1","1","puppet:farewell","phx_join",{}]
        a < ["1","1","puppet:farewell","phx_reply",{"status":"ok","response":{}}]
        a > ["1","2","puppet:farewell","stop",{}]
        a < ["1","1","puppet:farewell","phx_close",{}]
        a < ["1",null,"puppet:farewell","farewell",{"why":"Stopped"}]
        a > ["3","3","puppet:a","phx_join",{}]
        a < ["3","3","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > ["3","4","puppet:a","stop_and_reply",{}]
        a < ["3","4","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a < ["3","3","puppet:a","phx_close",{}]
        "#,
    );
}

#[test]
fn a_reply_may_come_later() {
    check(
        r#"
        a > ["1","1","puppet:a","phx_join",{}]
        a < ["1","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > ["1","2","puppet:a","later",{}]
        a > ["1","a longer ref than usual","puppet:a","later",{}]
        a > ["1","4","puppet:a","ask",{}]
        a < ["1","4","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > ["1","5","puppet:a","now",{}]
        a < ["1","2","puppet:a","phx_reply",{"status":"ok","response":{"late":true}}]
        a < ["1","a longer ref than usual","puppet:a","phx_reply",{"status":"ok","response":{"late":true}}]
        a > ["1","6","puppet:a","later",{}]
        a > ["1","7","puppet:a","to_address",{}]
        a < ["1","6","puppet:a","phx_reply",{"status":"ok","response":{"late":true}}]
        "#,
    );
}
