//! The application of `throng serve channels`, row by row.

use throng_server::channels::demo;

use super::world::transcript;

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
