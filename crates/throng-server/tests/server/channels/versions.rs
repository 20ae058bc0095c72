//! V1, and binary messages, row by row.

use super::puppet::check;

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
fn v1_receives_no_bytes_and_a_push_of_bytes_to_it_is_the_channels_fault() {
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
