//! The clients that receive a broadcast, row by row.

use super::puppet::check;

#[test]
fn a_broadcast_reaches_every_client_in_its_own_version() {
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
fn a_client_that_has_left_receives_nothing_more() {
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
