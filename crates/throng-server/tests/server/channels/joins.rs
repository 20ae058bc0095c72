//! Joining and leaving, and their effects, row by row.

use super::puppet::check;

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
        a < ["1",null,"puppet:farewell","farewell",{"why":"Left"}]
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
