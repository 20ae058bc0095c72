//! The table of events and what follows from them, row by row.

use throng_server::channels::demo;

use crate::puppet::puppets;
use crate::world::transcript;

#[track_caller]
fn check(text: &str) {
    transcript(&puppets(), text);
}

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
fn a_join_is_answered_with_what_the_channel_says() {
    check(
        r#"
        a > ["1","1","puppet:a","phx_join",{}]
        a < ["1","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > ["2","2","puppet:welcome","phx_join",{}]
        a < ["2","2","puppet:welcome","phx_reply",{"status":"ok","response":{"id":7}}]
        a > ["3","4","puppet:b","phx_join",{"hello":[1, 2]}]
        a < ["3","4","puppet:b","phx_reply",{"status":"ok","response":{"hello":[1, 2]}}]
        a > ["5","5","exact","phx_join",{}]
        a < ["5","5","exact","phx_reply",{"status":"ok","response":{}}]
        "#,
    );
}

#[test]
fn a_channel_may_send_once_it_has_joined() {
    check(
        r#"
        a > ["1","1","puppet:greeting","phx_join",{}]
        a < ["1","1","puppet:greeting","phx_reply",{"status":"ok","response":{}}]
        a < ["1",null,"puppet:greeting","greeting",{}]
        "#,
    );
}

#[test]
fn a_refused_join_says_why() {
    check(
        r#"
        a > ["1","1","puppet:no","phx_join",{}]
        a < ["1","1","puppet:no","phx_reply",{"status":"error","response":{"reason":"unauthorized"}}]
        a > ["2","2","puppet:no-more","phx_join",{}]
        a < ["2","2","puppet:no-more","phx_reply",{"status":"error","response":{"left":0}}]
        a > ["1","3","puppet:no","ask",{}]
        a < [null,"3","puppet:no","phx_reply",{"status":"error","response":{"reason":"unmatched topic"}}]
        "#,
    );
}

#[test]
fn a_join_that_no_pattern_takes_is_unmatched() {
    check(
        r#"
        a > ["1","1","exactly","phx_join",{}]
        a < [null,"1","exactly","phx_reply",{"status":"error","response":{"reason":"unmatched topic"}}]
        a > ["2","2","","phx_join",{}]
        a < [null,"2","","phx_reply",{"status":"error","response":{"reason":"unmatched topic"}}]
        v1 > {"topic":"exactly","event":"phx_join","payload":{},"ref":"1"}
        v1 < {"topic":"exactly","event":"phx_reply","payload":{"status":"error","response":{"reason":"unmatched topic"}},"ref":"1"}
        "#,
    );
}

#[test]
fn a_panic_in_join_is_a_crashed_join() {
    check(
        r#"
        a > ["1","1","puppet:panic","phx_join",{}]
        a < ["1","1","puppet:panic","phx_reply",{"status":"error","response":{"reason":"join crashed"}}]
        a > ["2","2","puppet:a","phx_join",{}]
        a < ["2","2","puppet:a","phx_reply",{"status":"ok","response":{}}]
        "#,
    );
}

#[test]
fn the_101st_join_is_one_too_many() {
    let mut text = String::new();
    for n in 0..100 {
        text += &format!(
            r#"
            a > ["{n}","{n}","puppet:{n}","phx_join",{{}}]
            a < ["{n}","{n}","puppet:{n}","phx_reply",{{"status":"ok","response":{{}}}}]"#
        );
    }
    text += r#"
        a > ["100","100","puppet:100","phx_join",{}]
        a < ["100","100","puppet:100","phx_reply",{"status":"error","response":{"reason":"too many channels joined"}}]
        a > ["50","101","puppet:50","ask",{"still":"there"}]
        a < ["50","101","puppet:50","phx_reply",{"status":"ok","response":{"still":"there"}}]
        a > ["102","102","puppet:7","phx_join",{}]
        a < ["102","102","puppet:7","phx_reply",{"status":"ok","response":{}}]
        a < ["7","7","puppet:7","phx_close",{}]
        a > ["99","103","puppet:99","phx_leave",{}]
        a < ["99","103","puppet:99","phx_reply",{"status":"ok","response":{}}]
        a < ["99","99","puppet:99","phx_close",{}]
        a > ["104","104","puppet:100","phx_join",{}]
        a < ["104","104","puppet:100","phx_reply",{"status":"ok","response":{}}]
        "#;
    check(&text);
}

#[test]
fn a_second_join_is_answered_before_the_first_channel_closes() {
    check(
        r#"
        a > ["1","1","puppet:a","phx_join",{}]
        a < ["1","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > ["2","2","puppet:a","phx_join",{"hello":1}]
        a < ["2","2","puppet:a","phx_reply",{"status":"ok","response":{"hello":1}}]
        a < ["1","1","puppet:a","phx_close",{}]
        a > ["1","3","puppet:a","ask",{}]
        a > ["2","4","puppet:a","ask",{}]
        a < ["2","4","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > ["2","5","puppet:a","all",{"once":1}]
        a < [null,null,"puppet:a","said",{"once":1}]
        "#,
    );
}

#[test]
fn what_the_replaced_channel_says_last_comes_before_its_close() {
    check(
        r#"
        a > ["1","1","puppet:farewell","phx_join",{}]
        a < ["1","1","puppet:farewell","phx_reply",{"status":"ok","response":{}}]
        a > ["2","2","puppet:farewell","phx_join",{}]
        a < ["2","2","puppet:farewell","phx_reply",{"status":"ok","response":{}}]
        a < ["1",null,"puppet:farewell","farewell",{"why":"Duplicate"}]
        a < ["1","1","puppet:farewell","phx_close",{}]
        "#,
    );
}

#[test]
fn a_leave_is_answered_then_the_channel_closes_then_it_says_farewell() {
    check(
        r#"
        a > ["1","1","puppet:farewell","phx_join",{}]
        a < ["1","1","puppet:farewell","phx_reply",{"status":"ok","response":{}}]
        a > ["1","2","puppet:farewell","phx_leave",{}]
        a < ["1","2","puppet:farewell","phx_reply",{"status":"ok","response":{}}]
        a < ["1","1","puppet:farewell","phx_close",{}]
        a < ["1",null,"puppet:farewell","farewell",{"why":"Asked"}]
        a > ["1","3","puppet:farewell","ask",{}]
        a < [null,"3","puppet:farewell","phx_reply",{"status":"error","response":{"reason":"unmatched topic"}}]
        "#,
    );
}

#[test]
fn a_leave_without_a_join_ref_counts_and_one_with_a_stale_one_does_not() {
    check(
        r#"
        a > ["1","1","puppet:a","phx_join",{}]
        a < ["1","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > ["0","2","puppet:a","phx_leave",{}]
        a > ["1","3","puppet:a","ask",{}]
        a < ["1","3","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > [null,"4","puppet:a","phx_leave",{}]
        a < ["1","4","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a < ["1","1","puppet:a","phx_close",{}]
        "#,
    );
}

#[test]
fn to_leave_what_was_never_joined_is_ok() {
    check(
        r#"
        a > ["1","2","puppet:a","phx_leave",{}]
        a < ["1","2","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > [null,"3","nowhere","phx_leave",{}]
        a < [null,"3","nowhere","phx_reply",{"status":"ok","response":{}}]
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

#[test]
fn a_broadcast_reaches_everyone_in_his_own_version() {
    check(
        r#"
        a > ["1","1","puppet:a","phx_join",{}]
        a < ["1","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        b > ["1","1","puppet:a","phx_join",{}]
        b < ["1","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        c > ["1","1","puppet:c","phx_join",{}]
        c < ["1","1","puppet:c","phx_reply",{"status":"ok","response":{}}]
        v1 > {"topic":"puppet:a","event":"phx_join","payload":{},"ref":"1"}
        v1 < {"topic":"puppet:a","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":"1"}
        a > ["1","2","puppet:a","all",{"n":1}]
        a < [null,null,"puppet:a","said",{"n":1}]
        b < [null,null,"puppet:a","said",{"n":1}]
        v1 < {"topic":"puppet:a","event":"said","payload":{"n":1},"ref":null}
        v1 > {"topic":"puppet:a","event":"others","payload":{"n":2},"ref":"2"}
        a < [null,null,"puppet:a","said",{"n":2}]
        b < [null,null,"puppet:a","said",{"n":2}]
        a > ["1","3","puppet:a","elsewhere",{"n":3}]
        wait 1s
        b > ["2","2","puppet:b","phx_join",{}]
        b < ["2","2","puppet:b","phx_reply",{"status":"ok","response":{}}]
        b > ["1","3","puppet:a","elsewhere",{"n":4}]
        b < [null,null,"puppet:b","said",{"n":4}]
        a > ["1","4","puppet:a","elsewhere",{"n":5}]
        b < [null,null,"puppet:b","said",{"n":5}]
        "#,
    );
}

#[test]
fn an_intercepted_event_is_what_the_channel_makes_of_it() {
    check(
        r#"
        a > ["1","1","puppet:a","phx_join",{}]
        a < ["1","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        b > ["9","1","puppet:a","phx_join",{}]
        b < ["9","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a > ["1","2","puppet:a","filtered",{"n":1}]
        a < ["1",null,"puppet:a","filtered",{"n":1}]
        b < ["9",null,"puppet:a","filtered",{"n":1}]
        a > ["1","3","puppet:a","filtered",{"n":"secret"}]
        a > ["1","4","puppet:a","all",{"n":"secret"}]
        a < [null,null,"puppet:a","said",{"n":"secret"}]
        b < [null,null,"puppet:a","said",{"n":"secret"}]
        "#,
    );
}

#[test]
fn one_who_has_left_hears_nothing_more() {
    check(
        r#"
        a > ["1","1","puppet:b","phx_join",{}]
        a < ["1","1","puppet:b","phx_reply",{"status":"ok","response":{}}]
        b > ["1","1","puppet:b","phx_join",{}]
        b < ["1","1","puppet:b","phx_reply",{"status":"ok","response":{}}]
        a >+ ["1","2","puppet:b","all",{"n":1}]
        a > ["1","3","puppet:b","phx_leave",{}]
        a < [null,null,"puppet:b","said",{"n":1}]
        a < ["1","3","puppet:b","phx_reply",{"status":"ok","response":{}}]
        a < ["1","1","puppet:b","phx_close",{}]
        b < [null,null,"puppet:b","said",{"n":1}]
        a > ["4","4","puppet:b","phx_join",{}]
        a < ["4","4","puppet:b","phx_reply",{"status":"ok","response":{}}]
        b > ["1","3","puppet:b","phx_leave",{}]
        b < ["1","3","puppet:b","phx_reply",{"status":"ok","response":{}}]
        b < ["1","1","puppet:b","phx_close",{}]
        c > ["1","1","puppet:heard","phx_join",{}]
        c < ["1","1","puppet:heard","phx_reply",{"status":"ok","response":{}}]
        c close
        a < [null,null,"puppet:b","left",{"why":"Closed"}]
        "#,
    );
}

#[test]
fn v1_speaks_in_objects_and_needs_no_join_ref() {
    check(
        r#"
        v1 > {"topic":"puppet:greeting","event":"phx_join","payload":{},"ref":"1"}
        v1 < {"topic":"puppet:greeting","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":"1"}
        v1 < {"topic":"puppet:greeting","event":"greeting","payload":{},"ref":null}
        v1 > {"ref":"2","payload":{"a":[]},"event":"ask","topic":"puppet:greeting"}
        v1 < {"topic":"puppet:greeting","event":"phx_reply","payload":{"status":"ok","response":{"a":[]}},"ref":"2"}
        v1 > {"topic":"puppet:greeting","event":"ask","payload":{},"ref":"3","join_ref":"0"}
        v1 > {"topic":"puppet:greeting","event":"phx_join","payload":{},"ref":"4"}
        v1 < {"topic":"puppet:greeting","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":"4"}
        v1 < {"topic":"puppet:greeting","event":"phx_close","payload":{},"ref":"1"}
        v1 < {"topic":"puppet:greeting","event":"greeting","payload":{},"ref":null}
        v1 > {"topic":"puppet:greeting","event":"panic","payload":{},"ref":"5"}
        v1 < {"topic":"puppet:greeting","event":"phx_error","payload":{"reason":"channel_crash"},"ref":"4"}
        "#,
    );
}

#[test]
fn v1_is_json_in_a_binary_frame_too() {
    check(
        r#"
        v1 >> 7b "" 22 "topic" 22 3a 22 "phoenix" 22 2c 22 "event" 22 3a 22 "heartbeat" 22 2c 22 "payload" 22 3a 7b 7d 2c 22 "ref" 22 3a 31 7d
        v1 < {"topic":"phoenix","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":"1"}
        "#,
    );
}

#[test]
fn bytes_are_answered_pushed_and_broadcast_as_bytes() {
    check(
        r#"
        a > ["1","1","puppet:a","phx_join",{}]
        a < ["1","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        b > ["7","1","puppet:a","phx_join",{}]
        b < ["7","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a >> 00 01 01 08 03 "1" "2" "puppet:a" "ask" 65 00 ff
        a << 01 01 01 08 02 "1" "2" "puppet:a" "ok" 65 00 ff
        a >> 00 01 01 08 04 "1" "3" "puppet:a" "push" 65
        a << 00 01 08 06 "1" "puppet:a" "pushed" 65
        a >> 00 00 01 08 03 "4" "puppet:a" "all" 65 66
        a << 02 08 04 "puppet:a" "said" 65 66
        b << 02 08 04 "puppet:a" "said" 65 66
        a >> 00 01 01 08 03 "0" "5" "puppet:a" "ask" 65
        a >> 00 01 01 08 05 "1" "6" "puppet:a" "later" 65
        a > ["1","7","puppet:a","now",{}]
        a < ["1","6","puppet:a","phx_reply",{"status":"ok","response":{"late":true}}]
        "#,
    );
}

#[test]
fn v1_hears_no_bytes_and_a_push_of_bytes_to_it_is_the_channels_fault() {
    check(
        r#"
        v1 > {"topic":"puppet:a","event":"phx_join","payload":{},"ref":"1"}
        v1 < {"topic":"puppet:a","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":"1"}
        a > ["1","1","puppet:a","phx_join",{}]
        a < ["1","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        a >> 00 01 01 08 03 "1" "2" "puppet:a" "all" 65
        a << 02 08 04 "puppet:a" "said" 65
        a > ["1","3","puppet:a","all",{"then":1}]
        a < [null,null,"puppet:a","said",{"then":1}]
        v1 < {"topic":"puppet:a","event":"said","payload":{"then":1},"ref":null}
        "#,
    );
}

#[test]
fn the_demo_does_what_it_is_there_for() {
    transcript(
        &demo(),
        r#"
        a > ["1","1","rooms:lobby","phx_join",{"user":"a"}]
        a < ["1","1","rooms:lobby","phx_reply",{"status":"ok","response":{}}]
        b > ["1","1","rooms:lobby","phx_join",{}]
        b < ["1","1","rooms:lobby","phx_reply",{"status":"ok","response":{}}]
        a > ["1","2","rooms:lobby","new_msg",{"body":"hello"}]
        a < [null,null,"rooms:lobby","new_msg",{"body":"hello"}]
        a < ["1","2","rooms:lobby","phx_reply",{"status":"ok","response":{}}]
        b < [null,null,"rooms:lobby","new_msg",{"body":"hello"}]
        b > ["1","2","rooms:lobby","new:msg",{}]
        b < [null,null,"rooms:lobby","new:msg",{}]
        b < ["1","2","rooms:lobby","phx_reply",{"status":"ok","response":{}}]
        a < [null,null,"rooms:lobby","new:msg",{}]
        a > ["1","3","rooms:lobby","echo",{"x":1}]
        a < ["1","3","rooms:lobby","phx_reply",{"status":"ok","response":{"x":1}}]
        a >> 00 01 01 0b 04 "1" "4" "rooms:lobby" "echo" 65
        a << 01 01 01 0b 02 "1" "4" "rooms:lobby" "ok" 65
        a > ["1","5","rooms:lobby","push_me",{"x":2}]
        a < ["1",null,"rooms:lobby","pushed",{"x":2}]
        a > ["1","6","rooms:lobby","error",{}]
        a < ["1","6","rooms:lobby","phx_reply",{"status":"error","response":{"reason":"asked"}}]
        a > ["7","7","private:1","phx_join",{}]
        a < ["7","7","private:1","phx_reply",{"status":"error","response":{"reason":"unauthorized"}}]
        a > ["1","8","rooms:lobby","stop",{}]
        a < ["1","1","rooms:lobby","phx_close",{}]
        b > ["1","9","rooms:lobby","crash",{}]
        b < ["1","1","rooms:lobby","phx_error",{"reason":"channel_crash"}]
        "#,
    );
}
