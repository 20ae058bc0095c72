//! The lines of a user that is watched.

use super::play::{PHOENIX, TCP, WS, check_trace};

#[test]
fn a_wrong_answer_names_what_differs() {
    check_trace(
        WS,
        "[connect, send: {json: {type: hi}}, expect: {json: {type: hello, id: 5}}]",
        &["0 begin", "1 opened", "2 upgraded", "9 text {\"type\":\"hello\",\"id\":0}"],
        &[
            "   0.000000  begins",
            "   0.000000  step 1 connect (line 3): within 5s",
            "   0.001000    TCP is established, after 1.00 ms",
            "   0.001000    > GET / HTTP/1.1",
            "   0.001000    > host: h:1",
            "   0.001000    > upgrade: websocket",
            "   0.001000    > connection: Upgrade",
            "   0.001000    > sec-websocket-key: ***",
            "   0.001000    > sec-websocket-version: 13",
            "   0.002000    ok: connected, after 2.00 ms",
            "   0.002000  step 2 send (line 3)",
            "   0.002000    > text, 13 bytes: `{\"type\":\"hi\"}`",
            "   0.002000  step 3 expect (line 3): JSON with `{\"type\":\"hello\",\"id\":5}` \
             within 5s",
            "   0.009000    < text, 23 bytes: `{\"type\":\"hello\",\"id\":0}`",
            "   0.009000    no match: `id` is `0`, expected `5`",
            "   0.009000    error expect_mismatch",
            "   0.009000    > close frame with 1000",
            "   0.009000    closes the connection",
        ],
    );
}

#[test]
fn what_is_skipped_kept_and_discarded_is_said_until_the_time_out() {
    check_trace(
        TCP,
        "[connect, send: a, expect: {text: abc, timeout: 1s}, wait: 2s, expect: b]",
        &["0 begin", "1 opened", "5 bytes ab", "6 bytes cb", "2006 deadline"],
        &[
            "   0.000000  begins",
            "   0.000000  step 1 connect (line 3): within 5s",
            "   0.001000    ok: connected, after 1.00 ms",
            "   0.001000  step 2 send (line 3)",
            "   0.001000    > 1 byte: `a`",
            "   0.001000  step 3 expect (line 3): `abc` within 1s",
            "   0.005000    < 2 bytes: `ab`",
            "   0.006000    < 2 bytes: `cb`",
            "   0.006000    ok: matches, after 5.00 ms",
            "   0.006000    kept for the next expect: no step waits for it yet",
            "   0.006000  step 4 wait (line 3)",
            "   0.006000    waits 2.00 s",
            "   2.006000  step 5 expect (line 3): `b` within 5s",
            "   2.006000    ok: matches",
            "   2.006000  end of the steps",
            "   2.006000    closes the connection",
        ],
    );
    check_trace(
        WS,
        "[connect, expect: {json: {type: a}, skip_others: true, timeout: 1s}]",
        &["0 begin", "1 opened", "2 upgraded", "3 text {\"type\":\"b\"}", "1002 deadline"],
        &[
            "   0.000000  begins",
            "   0.000000  step 1 connect (line 3): within 5s",
            "   0.001000    TCP is established, after 1.00 ms",
            "   0.001000    > GET / HTTP/1.1",
            "   0.001000    > host: h:1",
            "   0.001000    > upgrade: websocket",
            "   0.001000    > connection: Upgrade",
            "   0.001000    > sec-websocket-key: ***",
            "   0.001000    > sec-websocket-version: 13",
            "   0.002000    ok: connected, after 2.00 ms",
            "   0.002000  step 2 expect (line 3): JSON with `{\"type\":\"a\"}` within 1s, other \
             messages may come before it",
            "   0.003000    < text, 12 bytes: `{\"type\":\"b\"}`",
            "   0.003000    skipped: `type` is `\"b\"`, expected `\"a\"`",
            "   1.002000    time-out: no match came; expected JSON with `{\"type\":\"a\"}` \
             within 1s",
            "   1.002000    error expect_timeout",
            "   1.002000    > close frame with 1000",
            "   1.002000    closes the connection",
        ],
    );
}

#[test]
fn a_connect_that_fails_says_how() {
    check_trace(
        TCP,
        "[connect]",
        &["0 begin", "1 closed refused"],
        &[
            "   0.000000  begins",
            "   0.000000  step 1 connect (line 3): within 5s",
            "   0.001000    error ECONNREFUSED: expected a TCP connection, received a \
             reset: no process listens on that port (ECONNREFUSED)",
            "   0.001000  failed",
            "   0.001000  rests, and begins again",
            "   0.001000    waits 1.00 s",
        ],
    );
    check_trace(
        PHOENIX,
        "[connect: {query: {token: abc}}]",
        &["0 begin", "1 opened", "2 refused 401"],
        &[
            "   0.000000  begins",
            "   0.000000  step 1 connect (line 4): within 5s",
            "   0.001000    TCP is established, after 1.00 ms",
            "   0.001000    > GET /?token=***&vsn=2.0.0 HTTP/1.1",
            "   0.001000    > host: h:1",
            "   0.001000    > upgrade: websocket",
            "   0.001000    > connection: Upgrade",
            "   0.001000    > sec-websocket-key: ***",
            "   0.001000    > sec-websocket-version: 13",
            "   0.002000    < HTTP/1.1 401 Unauthorized",
            "   0.002000    error http_401: expected 101 Switching Protocols, received status 401",
            "   0.002000    closes the connection",
        ],
    );
}
