//! `get`, `head`, `post`, `put`, `patch`, `delete`, `options`: requests, and the connections that
//! carry them.

use crate::user::tests::play::{HTTP, HTTP_CONTINUES, Play, WS, check, check_trace};

/// An answer that keeps the connection.
const OK: &str = "http HTTP/1.1 200 OK|content-length: 2||ok";

#[test]
fn requests_share_a_connection_that_the_server_keeps() {
    check(
        HTTP,
        "[get: /a, get: {path: \"/b?u=${user.id}\", timeout: 1s}, wait: 1s, close, get: /c]",
        &[
            ("0 begin", "begin, connect, time-out 5000, connects_started +1, http_started +1"),
            ("3 opened", "HTTP connected 3, sent GET /a, connected +1"),
            (
                &format!("5 {OK}"),
                "answer 200 5, no deadline, time-out 1005, sent GET /b?u=0, http_started +1",
            ),
            (&format!("7 {OK}"), "answer 200 2, no deadline, until 1007"),
            ("1007 deadline", "late 0, close, no deadline"),
            (
                "1007 closed requested",
                "connect, time-out 6007, connected -1, connects_started +1, http_started +1",
            ),
        ],
    );
}

#[test]
fn a_request_leaves_when_its_connection_is_established() {
    let mut play = Play::new(HTTP, "[get: /a, wait: 1s, get: /b]");
    play.row(&format!("0 begin; 3000 opened; 3005 {OK}; 4005 deadline; 4007 {OK}"));
    assert_eq!(play.sent_ms, [3_000, 4_005]);
}

#[test]
fn a_connection_that_the_server_does_not_keep_is_closed() {
    for head in [
        "HTTP/1.1 200 OK|connection: close|content-length: 2||ok",
        "HTTP/1.0 200 OK|content-length: 2||ok",
    ] {
        check(
            HTTP,
            "[get: /a, get: /b]",
            &[
                ("0 begin; 1 opened", "HTTP connected 1, sent GET /a, connected +1"),
                (&format!("2 http {head}"), "answer 200 2, no deadline, close"),
                (
                    "3 closed requested",
                    "connect, time-out 5003, connected -1, connects_started +1, http_started +1",
                ),
                ("4 opened", "HTTP connected 1, sent GET /b, connected +1"),
            ],
        );
    }
}

#[test]
fn a_raw_value_stays_as_it_is() {
    let steps = "[set: {p: \"/a/b?c=d%20e\", q: \"f=g&h\"}, get: \"${raw(p)}\", \
                 get: \"/x${p}?${raw(q)}\", post: {path: /, form: {i: \"${raw(q)}\"}}]";
    check(
        HTTP,
        steps,
        &[
            ("0 begin; 1 opened", "HTTP connected 1, sent GET /a/b?c=d%20e, connected +1"),
            (
                &format!("2 {OK}"),
                "answer 200 2, no deadline, time-out 5002, \
                 sent GET /x%2Fa%2Fb%3Fc%3Dd%2520e?f=g&h, http_started +1",
            ),
            (
                &format!("3 {OK}"),
                "answer 200 1, no deadline, time-out 5003, sent POST / i=f=g&h, http_started +1",
            ),
        ],
    );
}

#[test]
fn a_value_that_would_break_its_request_is_not_sent() {
    let set = "set: {p: \"a\\nhost: b\"}";
    for request in ["get: \"${raw(p)}\"", "get: {path: /, headers: {x: \"${raw(p)}\"}}"] {
        check(
            HTTP,
            &format!("[{set}, {request}]"),
            &[
                ("0 begin", "begin, connect, time-out 5000, connects_started +1, http_started +1"),
                (
                    "1 opened",
                    "HTTP connected 1, sample, no deadline, error bad_value, no deadline, close, \
                     connected +1, http_failed +1",
                ),
                ("2 closed requested", "end failed, rest, until 959, connected -1"),
            ],
        );
        check(
            HTTP_CONTINUES,
            &format!("[get: /a, {set}, {request}, get: /b]"),
            &[(
                &format!("0 begin; 1 opened; 2 {OK}"),
                "answer 200 2, no deadline, time-out 5002, sample, no deadline, error bad_value, \
                 time-out 5002, sent GET /b, http_failed +1, http_started +2",
            )],
        );
    }
    check_trace(
        HTTP,
        &format!("[{set}, get: {{path: \"/${{raw(p)}}\", timeout: 1s}}]"),
        &["0 begin; 1 opened"],
        &[
            "   0.000000  begins",
            "   0.000000  step 1 set (line 3)",
            "   0.000000  step 2 get (line 3): status 2xx within 1s",
            "   0.001000    TCP is established, after 1.00 ms",
            "   0.001000    not sent: a line break after `/a`",
            "   0.001000    error bad_value",
            "   0.001000    closes the connection",
        ],
    );
}

#[test]
fn the_end_of_an_idle_connection_is_no_error() {
    for end in
        ["fin; 3 closed finished", "closed reset", "http HTTP/1.1 408 x||; 3 closed requested"]
    {
        check(
            HTTP,
            "[get: /a, wait: 10ms, get: /b]",
            &[
                (&format!("0 begin; 1 opened; 2 {OK}; 3 {end}"), "until 12, connected -1"),
                (
                    "12 deadline",
                    "late 0, connect, time-out 5012, connects_started +1, http_started +1",
                ),
            ],
        );
    }
}

#[test]
fn the_answer_to_a_head_has_no_body_and_keeps_its_connection() {
    let head = "http HTTP/1.1 200 OK|content-length: 100||";
    check(
        HTTP,
        "[head: {path: /a, capture: {s: status, n: {header: content-length}}}, \
         get: \"/${s}/${n}\"]",
        &[(
            &format!("0 begin; 1 opened; 2 {head}"),
            "answer 200 2, no deadline, time-out 5002, sent GET /200/100, http_started +1",
        )],
    );
}

#[test]
fn a_status_is_kept_whether_it_is_expected_or_not() {
    let steps = |expect| {
        format!(
            "[get: {{path: /a, expect: {expect}, capture: {{s: status}}}}, \
             if: {{condition: \"${{s}} == 429\", do: [wait: 1s]}}, get: \"/${{s}}\"]"
        )
    };
    let limited = "0 begin; 1 opened; 2 http HTTP/1.1 429 Slow|content-length: 0||";
    check(
        HTTP,
        &steps("[2xx, 429]"),
        &[
            (limited, "answer 429 2, no deadline, until 1002"),
            ("1002 deadline", "late 0, time-out 6002, sent GET /429, http_started +1"),
        ],
    );
    check(
        HTTP,
        &steps("[2xx, 429]"),
        &[(
            &format!("0 begin; 1 opened; 2 {OK}"),
            "answer 200 2, no deadline, time-out 5002, sent GET /200, http_started +1",
        )],
    );
    check(
        HTTP_CONTINUES,
        &steps("200"),
        &[(
            limited,
            "wrong answer 429 2, sample, no deadline, error http_status, until 1002, \
             http_failed +1",
        )],
    );
}

#[test]
fn a_host_of_its_own_replaces_the_targets() {
    check_trace(
        HTTP,
        "[get: {path: /a, headers: {x: \"1\", Host: \"${user.id}.example\"}}, stay]",
        &["0 begin", "1 opened"],
        &[
            "   0.000000  begins",
            "   0.000000  step 1 get (line 3): status 2xx within 5s",
            "   0.001000    TCP is established, after 1.00 ms",
            "   0.001000    > GET /a HTTP/1.1",
            "   0.001000    > host: 0.example",
            "   0.001000    > user-agent: throng",
            "   0.001000    > x: 1",
        ],
    );
}

#[test]
fn user_and_password_of_the_target_are_sent_and_not_shown() {
    check_trace(
        "target: http://user:pw@h:1",
        "[get: \"/a?b=pw\", get: {path: /c, headers: {Authorization: Bearer x}}]",
        &["0 begin; 1 opened", &format!("2 {OK}")],
        &[
            "   0.000000  begins",
            "   0.000000  step 1 get (line 3): status 2xx within 5s",
            "   0.001000    TCP is established, after 1.00 ms",
            "   0.001000    > GET /a?b=*** HTTP/1.1",
            "   0.001000    > host: h:1",
            "   0.001000    > user-agent: throng",
            "   0.001000    > authorization: ***",
            "   0.002000    < HTTP/1.1 200 OK",
            "   0.002000    < content-length: 2",
            "   0.002000    < 2 bytes: `ok`",
            "   0.002000    ok: status 200, after 2.00 ms",
            "   0.002000  step 2 get (line 3): status 2xx within 5s",
            "   0.002000    > GET /c HTTP/1.1",
            "   0.002000    > host: h:1",
            "   0.002000    > user-agent: throng",
            "   0.002000    > Authorization: ***",
        ],
    );
    let mut play = Play::new("target: http://user:pw@h:1", "[get: /a]");
    play.row("0 begin; 1 opened");
    assert!(play.last_sent.contains("authorization: Basic dXNlcjpwdw==\r\n"), "{}", play.last_sent);
    let mut play = Play::new("target: ws://user:pw@h:1/", "[connect, stay]");
    play.row("0 begin; 1 opened");
    assert!(play.last_sent.contains("authorization: Basic dXNlcjpwdw==\r\n"), "{}", play.last_sent);
}

#[test]
fn a_user_that_is_watched_says_which_cookies_it_drops() {
    check_trace(
        HTTP,
        "[get: /a, stay]",
        &[
            "0 begin; 1 opened",
            "2 http HTTP/1.1 200 OK|set-cookie: s=abc;Secure;Path=/|set-cookie: abc|\
             set-cookie: t=abc;Max-Age=0|set-cookie: u=abc;HttpOnly|set-cookie: u=;Max-Age=0|\
             content-length: 0||",
        ],
        &[
            "   0.000000  begins",
            "   0.000000  step 1 get (line 3): status 2xx within 5s",
            "   0.001000    TCP is established, after 1.00 ms",
            "   0.001000    > GET /a HTTP/1.1",
            "   0.001000    > host: h:1",
            "   0.001000    > user-agent: throng",
            "   0.002000    < HTTP/1.1 200 OK",
            "   0.002000    < set-cookie: s=***; Secure; Path=/",
            "   0.002000    < set-cookie: ***",
            "   0.002000    < set-cookie: t=***; Max-Age=0",
            "   0.002000    < set-cookie: u=***; HttpOnly",
            "   0.002000    < set-cookie: u=***; Max-Age=0",
            "   0.002000    < content-length: 0",
            "   0.002000    cookie `s` dropped: it is Secure, and the connection is plain HTTP",
            "   0.002000    cookie dropped: it does not begin with name=value",
            "   0.002000    cookie `t` dropped: it has expired",
            "   0.002000    cookie `u` deleted: it has expired",
            "   0.002000    ok: status 200, after 2.00 ms",
            "   0.002000  step 2 stay (line 3)",
        ],
    );
}

#[test]
fn a_user_owns_a_jar_once_it_keeps_a_cookie() {
    for (cookie, keeps) in [("a=1", true), ("a=1;Secure", false), ("a", false)] {
        let mut play = Play::new(HTTP, "[get: /a, stay]");
        let answer = format!("http HTTP/1.1 200 OK|set-cookie: {cookie}|content-length: 0||");
        play.row(&format!("0 begin; 1 opened; 2 {answer}"));
        assert_eq!(play.remembers_requests(), keeps, "{cookie}");
    }
}

#[test]
fn a_body_may_last_until_the_server_closes() {
    check(
        HTTP,
        "[get: {path: /a, expect: {text: abc}}, stay]",
        &[
            ("0 begin; 1 opened; 2 http HTTP/1.1 200 OK||ab; 3 http c", ""),
            ("4 fin", "answer 200 4, no deadline, close"),
            ("4 closed requested", "no deadline, connected -1"),
        ],
    );
}

#[test]
fn an_answer_must_be_as_expected() {
    let request = "{path: /a, expect: {status: [200, 3xx], json: {ok: true}}, \
                   capture: {t: /t, h: {header: x-h}}}";
    for (answer, expected) in [
        ("HTTP/1.1 200 OK|x-h: 1|content-length: 17||{\"ok\":true,\"t\":1}", "answer 200 2"),
        (
            "HTTP/1.1 404 No|content-length: 0||",
            "wrong answer 404 2, sample, no deadline, error http_status",
        ),
        (
            "HTTP/1.1 302 Go|location: /x|content-length: 2||{}",
            "wrong answer 302 2, sample, no deadline, error http_mismatch",
        ),
        (
            "HTTP/1.1 200 OK|content-length: 17||{\"ok\":true,\"t\":1}",
            "wrong answer 200 2, sample, no deadline, error http_mismatch",
        ),
        ("ICY 200 OK||", "sample, no deadline, error http_violation"),
        ("HTTP/1.1 200 OK|content-length: 9999999||", "sample, no deadline, error http_too_large"),
    ] {
        let after = if expected.starts_with("answer") {
            ", no deadline"
        } else {
            ", no deadline, close, http_failed +1"
        };
        check(
            HTTP,
            &format!("[get: {request}, stay]"),
            &[
                ("0 begin; 1 opened", "HTTP connected 1, sent GET /a, connected +1"),
                (&format!("2 http {answer}"), &format!("{expected}{after}")),
            ],
        );
    }
}

#[test]
fn an_answer_that_takes_too_long_fails_its_request() {
    check(
        HTTP,
        "[get: {path: /a, timeout: 1s, name: slow}, stay]",
        &[
            ("0 begin; 1 opened", "HTTP connected 1, sent GET /a, connected +1"),
            (
                "1000 deadline",
                "no deadline, error http_timeout, step 0 failed, unanswered 1000, \
                 step 0 unanswered 1000, no deadline, close, http_failed +1",
            ),
        ],
    );
}

#[test]
fn a_refused_connect_fails_its_request() {
    check(
        HTTP,
        "[get: /a, stay]",
        &[
            ("0 begin", "begin, connect, time-out 5000, connects_started +1, http_started +1"),
            (
                "1 closed refused",
                "refused, connect failed ECONNREFUSED, end failed, rest, until 1005, \
                 http_failed +1",
            ),
        ],
    );
}

#[test]
fn a_user_that_is_stopped_counts_its_request_as_waiting() {
    check(
        HTTP,
        "[get: /a, stay]",
        &[
            ("0 begin; 1 opened", "HTTP connected 1, sent GET /a, connected +1"),
            ("5 stop", "unanswered 5, end cut, http_waiting +1"),
        ],
    );
}

#[test]
fn a_user_that_is_stopped_while_it_connects_counts_the_connect_as_one_of_its_request() {
    check(
        HTTP,
        "[get: /a, stay]",
        &[
            ("0 begin", "begin, connect, time-out 5000, connects_started +1, http_started +1"),
            (
                "5 stop",
                "unanswered 5, end cut, connects_waiting +1, http_connects_waiting +1, \
                 http_waiting +1",
            ),
        ],
    );
}

#[test]
fn a_login_gives_the_upgrade_its_token_and_its_cookie() {
    let login = "post: {path: /login, form: {user: \"a b\"}, capture: {token: {json: /token}}}";
    check(
        WS,
        &format!("[{login}, connect: {{query: {{t: \"${{token}}\"}}}}, stay]"),
        &[
            ("0 begin; 1 opened", "HTTP connected 1, sent POST /login user=a%20b, connected +1"),
            (
                "2 http HTTP/1.1 200 OK|set-cookie: a=b|content-length: 13||{\"token\":\"t\"}",
                "answer 200 2, no deadline, close",
            ),
            ("3 closed requested", "connect, time-out 5003, connected -1, connects_started +1"),
            ("4 opened", "TCP connected 2, sent the upgrade, upgrades_started +1"),
            ("5 upgraded", "connected 3, no deadline, connected +1"),
        ],
    );
}

#[test]
fn cookies_are_sent_until_the_program_begins_again() {
    check(
        HTTP,
        "[get: /a, get: /b]",
        &[
            (
                "0 begin; 1 opened; 2 http HTTP/1.1 200 OK|set-cookie: a=b|content-length: 0||",
                "answer 200 2, no deadline, time-out 5002, sent GET /b with a=b, http_started +1",
            ),
            (&format!("3 {OK}"), "answer 200 1, no deadline, close, no deadline"),
            (
                "4 closed requested",
                "end finished, begin, connect, time-out 5004, connected -1, connects_started +1, \
                 http_started +1",
            ),
            ("5 opened", "HTTP connected 1, sent GET /a, connected +1"),
        ],
    );
}

#[test]
fn a_user_that_is_watched_shows_its_requests() {
    check_trace(
        HTTP,
        "[post: {path: /login, body: hi}, stay]",
        &[
            "0 begin",
            "1 opened",
            "2 http HTTP/1.1 302 Found|location: /x|set-cookie: s=1|content-length: 0||",
        ],
        &[
            "   0.000000  begins",
            "   0.000000  step 1 post (line 3): status 2xx within 5s",
            "   0.001000    TCP is established, after 1.00 ms",
            "   0.001000    > POST /login HTTP/1.1",
            "   0.001000    > host: h:1",
            "   0.001000    > content-length: 2",
            "   0.001000    > user-agent: throng",
            "   0.001000    > content-type: text/plain; charset=utf-8",
            "   0.001000    > 2 bytes: `hi`",
            "   0.002000    < HTTP/1.1 302 Found",
            "   0.002000    < location: /x",
            "   0.002000    < set-cookie: s=***",
            "   0.002000    < content-length: 0",
            "   0.002000    no match: expected status 2xx, received \
             `HTTP/1.1 302\\r\\nlocation: /x`",
            "   0.002000    error http_status",
            "   0.002000    closes the connection",
        ],
    );
}

#[test]
fn a_request_whose_connection_must_close_first_keeps_its_intended_moment() {
    let login = "post: {path: /login, body: a}";
    check(
        WS,
        &format!("[{login}, connect, stay]"),
        &[
            (&format!("0 begin; 1 opened; 2 {OK}"), "answer 200 2, no deadline, close"),
            ("9 closed requested", "connect, time-out 5009, connected -1, connects_started +1"),
            ("10 opened", "TCP connected 8, sent the upgrade, upgrades_started +1"),
        ],
    );
}
