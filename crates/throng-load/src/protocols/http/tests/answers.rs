//! HTTP answers that no request asked for, that come too early, or only in part.

use throng_base::Instant;

use crate::user::tests::play::{HTTP, HTTP_CONTINUES, Play, check, check_trace};

/// An answer that keeps the connection.
const OK: &str = "http HTTP/1.1 200 OK|content-length: 2||ok";

#[test]
fn bytes_behind_an_answer_are_an_error_of_their_own() {
    let two = format!("0 begin; 1 opened; 2 {OK}{}", OK.trim_start_matches("http "));
    let error = "answer 200 2, sample, no deadline, error http_unasked, no deadline, close";
    let again = "connect, time-out 5003, connected -1, connects_started +1, http_started +1";
    for (head, after) in
        [(HTTP, "end failed, rest, until 960, connected -1"), (HTTP_CONTINUES, again)]
    {
        check(head, "[get: /a, get: /b]", &[(&two, error), ("3 closed requested", after)]);
    }
    // A wrong answer is an error beside it.
    check(
        HTTP,
        "[get: /a]",
        &[(
            "0 begin; 1 opened; 2 http HTTP/1.1 500 x|content-length: 2||okok",
            "wrong answer 500 2, sample, error http_unasked, sample, no deadline, \
             error http_status, no deadline, close, http_failed +1",
        )],
    );
}

#[test]
fn an_answer_without_a_request_is_an_error_of_its_own() {
    let begin = format!("0 begin; 1 opened; 2 {OK}; 3 {OK}");
    for (head, error, after) in [
        (
            HTTP,
            "sample, error http_unasked, no deadline, close",
            "end failed, rest, until 960, connected -1",
        ),
        (HTTP_CONTINUES, "sample, error http_unasked, close", "until 12, connected -1"),
    ] {
        let rows = [(&*begin, error), ("3 closed requested", after)];
        check(head, "[get: /a, wait: 10ms, get: /b]", &rows);
    }
}

#[test]
fn an_answer_that_arrived_before_its_request_is_none() {
    for (arrival, status, expected) in [
        ("9", 200, "answer 200 10, no deadline, until 30"),
        ("8", 200, "sample, no deadline, error http_unasked, no deadline, close, http_failed +1"),
        // The server has closed the connection before, so the request may be sent again.
        ("8", 408, "close finished"),
    ] {
        check(
            HTTP,
            "[get: /a, wait: 8ms, get: /b, wait: 10ms, get: /c]",
            &[
                (
                    &format!("0 begin; 1 opened; 2 {OK}; 10 deadline"),
                    "late 0, time-out 5010, sent GET /b, http_started +1",
                ),
                (
                    &format!("20 http-of-{arrival} HTTP/1.1 {status} x|content-length: 0||"),
                    expected,
                ),
            ],
        );
    }
}

#[test]
fn a_408_before_the_end_of_an_idle_connection_is_no_error() {
    check(
        HTTP,
        "[get: /a, get: /b]",
        &[
            (
                &format!("0 begin; 1 opened; 2 {OK}HTTP/1.1 408 Request Timeout||"),
                "answer 200 2, no deadline, close",
            ),
            (
                "3 closed requested",
                "connect, time-out 5003, connected -1, connects_started +1, http_started +1",
            ),
        ],
    );
    check_trace(
        HTTP,
        "[get: /a, wait: 10ms, get: /b]",
        &["0 begin", "1 opened", &format!("2 {OK}"), "3 http HTTP/1.1 408 x||"],
        &[
            "   0.000000  begins",
            "   0.000000  step 1 get (line 3): status 2xx within 5s",
            "   0.001000    TCP is established, after 1.00 ms",
            "   0.001000    > GET /a HTTP/1.1",
            "   0.001000    > host: h:1",
            "   0.001000    > user-agent: throng",
            "   0.002000    < HTTP/1.1 200 OK",
            "   0.002000    < content-length: 2",
            "   0.002000    < 2 bytes: `ok`",
            "   0.002000    ok: status 200, after 2.00 ms",
            "   0.002000  step 2 wait (line 3)",
            "   0.002000    waits 10.0 ms",
            "   0.003000    status 408: the server ends an idle connection",
            "   0.003000    closes the connection",
        ],
    );
}

#[test]
fn a_408_whose_first_line_arrives_in_two_parts_is_no_error() {
    for (behind, expected) in [
        ("HTTP/1.1 4", "answer 200 2, no deadline, close"),
        ("HTTP/1.0 408", "answer 200 2, no deadline, close"),
        ("HTTP/1.1 ", "answer 200 2, sample, no deadline, error http_unasked, no deadline, close"),
        (
            "HTTP/1.1 41",
            "answer 200 2, sample, no deadline, error http_unasked, no deadline, close",
        ),
    ] {
        check(
            HTTP,
            "[get: /a, get: /b]",
            &[(&format!("0 begin; 1 opened; 2 {OK}{behind}"), expected)],
        );
    }
}

#[test]
fn a_part_counts_once_though_the_close_after_the_servers_fin_fails() {
    for reason in ["overflow", "reset"] {
        let mut play = Play::new(HTTP, "[post: {path: /a, body: xyz}]");
        let begin = "0 begin; 1 opened; 1 blocked; 2 http HTTP/1.1 2; 3 fin";
        assert_eq!(play.row(begin), "close finished");
        let ended = play.row(&format!("4 closed {reason}"));
        assert!(ended.contains("http_failed +1, http_incomplete +1"), "{reason}: {ended}");
    }
}

#[test]
fn an_interim_answer_is_no_part_of_the_answer() {
    for (came, is_part) in [
        ("HTTP/1.1 102 Processing||", false),
        ("HTTP/1.1 102 Processing||HTTP/1.1 2", true),
        ("HTTP/1.1 200 OK|content-length: 9||", true),
    ] {
        let mut play = Play::new(HTTP, "[get: {path: /a, timeout: 1s}]");
        let late = play.row(&format!("0 begin; 1 opened; 2 http {came}; 1001 deadline"));
        assert!(late.contains("sample") && late.contains("http_failed +1"), "{came}: {late}");
        assert_eq!(late.contains("http_incomplete +1"), is_part, "{came}: {late}");
    }
}

#[test]
fn a_cookie_that_cannot_be_sent_back_as_it_came_is_not_stored() {
    let mut play = Play::new(HTTP, "[get: /a, get: /b]");
    play.row("0 begin; 1 opened");
    let answer = b"HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nset-cookie: sid=Jos\xe9\r\n\
        content-length: 0\r\n\r\n";
    let sent = play.received(Instant::from_nanos(2_000_000), answer.to_vec());
    assert!(sent.contains("sent GET /b with a=1, "), "{sent}");
}

#[test]
fn an_answer_before_the_whole_request_ends_the_connection() {
    let answer = "0 begin; 1 opened; 1 blocked; 2 http HTTP/1.1 413 x|content-length: 0||";
    check(
        HTTP,
        "[post: {path: /a, body: xyz, expect: 413}, get: /b]",
        &[
            (answer, "answer 413 2, no deadline, reset"),
            (
                "3 closed requested",
                "connect, time-out 5003, connected -1, connects_started +1, http_started +1",
            ),
        ],
    );
    let error = "wrong answer 413 2, sample, no deadline, error http_status, no deadline, reset, \
                 http_failed +1";
    for head in [HTTP, HTTP_CONTINUES] {
        check(head, "[post: {path: /a, body: xyz}, get: /b]", &[(answer, error)]);
    }
}

#[test]
fn an_incomplete_answer_is_shown_as_far_as_it_came() {
    for (answer, received) in [
        (
            "HTTP/1.1 200 OK|content-length: 100||0123456789",
            &[
                "< HTTP/1.1 200 OK",
                "< content-length: 100",
                "< 10 bytes: `0123456789`",
                "no match: received only `HTTP/1.1 200`, 10 of 100 bytes of the body",
            ][..],
        ),
        (
            "HTTP/1.1 200 OK|transfer-encoding: chunked||5|hel",
            &[
                "< HTTP/1.1 200 OK",
                "< transfer-encoding: chunked",
                "< 3 bytes: `hel`",
                "no match: received only `HTTP/1.1 200`, 3 bytes of the body, and not its end",
            ],
        ),
        (
            "HTTP/1.1 200 OK|set-cookie: s=1|",
            &[
                "< HTTP/1.1 200 OK",
                "< set-cookie: s=***",
                "no match: received only `HTTP/1.1 200 OK\\r\\nset-cookie: s=***`, and not the end \
                 of the head",
            ],
        ),
        (
            "HTTP/1.1 100 Continue||",
            &["no match: received only an interim answer (1xx), and no other"],
        ),
        (
            "HTTP/1.1 100 Continue||HTTP/1.1 100 Continue||HTTP/1.1",
            &[
                "< HTTP/1.1",
                "no match: received only 2 interim answers (1xx), then `HTTP/1.1`, and not the \
                 end of the head",
            ],
        ),
    ] {
        let before = [
            "   0.000000  begins",
            "   0.000000  step 1 get (line 3): status 2xx within 1s",
            "   0.001000    TCP is established, after 1.00 ms",
            "   0.001000    > GET /a HTTP/1.1",
            "   0.001000    > host: h:1",
            "   0.001000    > user-agent: throng",
        ];
        let error = [
            "error http_timeout: expected status 2xx within 1s, received no complete answer",
            "closes the connection",
        ];
        let after = received.iter().chain(&error).map(|line| format!("   1.001000    {line}"));
        let lines: Vec<_> = before.into_iter().map(str::to_owned).chain(after).collect();
        check_trace(
            HTTP,
            "[get: {path: /a, timeout: 1s}, stay]",
            &["0 begin", "1 opened", &format!("2 http {answer}"), "1001 deadline"],
            &lines.iter().map(String::as_str).collect::<Vec<_>>(),
        );
    }
}

#[test]
fn the_length_of_a_body_is_shown_although_only_its_beginning_is_kept() {
    let body = "x".repeat(1_500);
    check_trace(
        HTTP,
        "[get: /a, stay]",
        &["0 begin; 1 opened", &format!("2 http HTTP/1.1 200 OK|content-length: 1500||{body}")],
        &[
            "   0.000000  begins",
            "   0.000000  step 1 get (line 3): status 2xx within 5s",
            "   0.001000    TCP is established, after 1.00 ms",
            "   0.001000    > GET /a HTTP/1.1",
            "   0.001000    > host: h:1",
            "   0.001000    > user-agent: throng",
            "   0.002000    < HTTP/1.1 200 OK",
            "   0.002000    < content-length: 1500",
            &format!(
                "   0.002000    < 1500 bytes; the first 1024: `{}`… (1024 bytes)",
                &body[..200]
            ),
            "   0.002000    ok: status 200, after 2.00 ms",
            "   0.002000  step 2 stay (line 3)",
        ],
    );
}
