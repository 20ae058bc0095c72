//! Mistakes in HTTP requests.

use super::{Scenario, user_of, whole};

fn http(steps: &str) -> String {
    whole(&format!("target: http://h:1\nload: [ramp: {{to: 1, over: 1s}}]\nuser:\n{steps}"))
}

#[test]
fn a_path_that_is_all_in_a_variable_is_refused_with_a_way_out() {
    let shown = http(
        "  - post: {path: /items, capture: {loc: {header: location}}}
  - get: \"${loc}\"
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `path` must be a path such as /login
 --> test.yaml:5:10
  |
5 |   - get: "${loc}"
  |          ^^^^^^^^ must begin with /
  |
  = help: the value is percent-encoded, a `/` too; if it is a whole path, write ${raw(loc)}: it stays as it is
"#);
}

#[test]
fn a_request_after_a_connect() {
    let shown = user_of(
        "ws",
        "  - get: /a
  - connect
  - get: /b
",
    );
    insta::assert_snapshot!(shown, @r"
error: `get` cannot stand here: the user is connected
 --> test.yaml:7:5
  |
7 |   - get: /b
  |     ^^^^^^^ a user has one connection at a time; move it before `connect`, or add `close` before it
");
}

#[test]
fn options_of_a_request() {
    let shown = http(
        "  - get: items
  - get: {headers: {}}
  - post: {path: /a b}
  - post: {path: /, json: {}, form: {a: b}}
  - post: {path: /, headers: {Content-Length: 3}}
  - put: {path: /, boddy: x}
",
    );
    insta::assert_snapshot!(shown, @r"
error: `path` must be a path such as /login
 --> test.yaml:4:10
  |
4 |   - get: items
  |          ^^^^^ must begin with /

error: `get` has no `path`
 --> test.yaml:5:10
  |
5 |   - get: {headers: {}}
  |          ^^^^^^^^^^^^^ `path` is missing, for example `path: /login`

error: `path` must be a path such as /login
 --> test.yaml:6:20
  |
6 |   - post: {path: /a b}
  |                    ^ must be printable ASCII; percent-encode everything else, %20 for a space

error: a request has one body
 --> test.yaml:7:31
  |
7 |   - post: {path: /, json: {}, form: {a: b}}
  |                               ^^^^ there is `json` already

error: the header `Content-Length` cannot be sent
 --> test.yaml:8:31
  |
8 |   - post: {path: /, headers: {Content-Length: 3}}
  |                               ^^^^^^^^^^^^^^ throng sets this header itself

error: unknown key `boddy` in `put`
 --> test.yaml:9:20
  |
9 |   - put: {path: /, boddy: x}
  |                    ^^^^^ did you mean `body`?
  |
  = help: expected one of: `path`, `headers`, `body`, `json`, `form`, `expect`, `capture`, `timeout`, `name`
");
}

#[test]
fn what_a_request_expects() {
    let shown = http(
        "  - get: {path: /, expect: 99}
  - get: {path: /, expect: [200, 6xx]}
  - get: {path: /, expect: []}
  - get: {path: /, expect: {status: ok}}
  - get: {path: /, expect: {}}
  - get: {path: /, expect: {text: a, json: {}}}
  - get: {path: /, capture: {a: {header: x, json: /a}}}
",
    );
    insta::assert_snapshot!(shown, @r"
error: `status` must be an HTTP status such as 200 or 2xx
 --> test.yaml:4:28
  |
4 |   - get: {path: /, expect: 99}
  |                            ^^ 200 to 599, or 2xx, 3xx, 4xx or 5xx

error: `status` must be an HTTP status such as 200 or 2xx
 --> test.yaml:5:34
  |
5 |   - get: {path: /, expect: [200, 6xx]}
  |                                  ^^^ 200 to 599, or 2xx, 3xx, 4xx or 5xx

error: no status is expected
 --> test.yaml:6:28
  |
6 |   - get: {path: /, expect: []}
  |                            ^^ add at least one

error: `status` must be an HTTP status such as 200 or 2xx
 --> test.yaml:7:37
  |
7 |   - get: {path: /, expect: {status: ok}}
  |                                     ^^ 200 to 599, or 2xx, 3xx, 4xx or 5xx

error: `expect` of a request needs exactly one pattern
 --> test.yaml:8:28
  |
8 |   - get: {path: /, expect: {}}
  |                            ^^ one of `text`, `json`, `binary`, `bytes`, `contains`, `regex` and `one_of`

error: `expect` of a request needs exactly one pattern
 --> test.yaml:9:28
  |
9 |   - get: {path: /, expect: {text: a, json: {}}}
  |                            ^^^^^^^^^^^^^^^^^^^ one of `text`, `json`, `binary`, `bytes`, `contains`, `regex` and `one_of`

error: unknown key `json` in a capture of a header
  --> test.yaml:10:45
   |
10 |   - get: {path: /, capture: {a: {header: x, json: /a}}}
   |                                             ^^^^ not known here
   |
   = help: expected one of: `header`, `regex`
");
}

#[test]
fn steps_of_sockets_and_a_path_in_the_target() {
    let shown = http("  - connect\n  - send: a\n");
    insta::assert_snapshot!(shown, @r"
error: `protocol: http` has no step `connect`
 --> test.yaml:4:5
  |
4 |   - connect
  |     ^^^^^^^ it belongs to the protocols `tcp`, `ws` and `phoenix`
  |
  = help: leave it out: the first request opens the connection

error: `protocol: http` has no step `send`
 --> test.yaml:5:5
  |
5 |   - send: a
  |     ^^^^ it belongs to the protocols `tcp` and `ws`
  |
  = help: send a request, for example `post: {path: /, body: hello}`
");
    let shown = whole(
        "target: http://h:1/login
load: [ramp: {to: 1, over: 1s}]
user: [get: /]
",
    );
    insta::assert_snapshot!(shown, @r"
error: `target` must be a URL such as tcp://127.0.0.1:5555 or ws://127.0.0.1:4000/socket/websocket
 --> test.yaml:1:19
  |
1 | target: http://h:1/login
  |                   ^^^^^^ each step has its own path: `get: /login`; leave this one out
");
    let shown = super::user("  - get: /\n");
    insta::assert_snapshot!(shown, @r"
error: `protocol: tcp` has no step `get`
 --> test.yaml:4:5
  |
4 |   - get: /
  |     ^^^ it belongs to the protocols `ws`, `phoenix` and `http`
");
}

#[test]
fn a_capture_of_a_header_with_another_key_and_two_unknown_variables() {
    insta::assert_snapshot!(http("  - get: {path: /, capture: {a: {headers: etag}}}\n"), @r"
error: unknown key `headers` in a capture of a header
 --> test.yaml:4:34
  |
4 |   - get: {path: /, capture: {a: {headers: etag}}}
  |                                  ^^^^^^^ did you mean `header`?
  |
  = help: expected one of: `header`, `regex`
");
    insta::assert_snapshot!(http("  - get: /a?x=${aa}&y=${bb}\n"), @r"
error: unknown variable `aa`
 --> test.yaml:4:17
  |
4 |   - get: /a?x=${aa}&y=${bb}
  |                 ^^ use user.id, counter, env.NAME, random(a,b), choice(a,b), uuid(), time(), base64(x), json(x), sha256(x), raw(x), length(x), what `set`, `capture` and `data` store, or arithmetic such as user.id % 50; a plain `${` is written `$${`

error: unknown variable `bb`
 --> test.yaml:4:25
  |
4 |   - get: /a?x=${aa}&y=${bb}
  |                         ^^ use user.id, counter, env.NAME, random(a,b), choice(a,b), uuid(), time(), base64(x), json(x), sha256(x), raw(x), length(x), what `set`, `capture` and `data` store, or arithmetic such as user.id % 50; a plain `${` is written `$${`
");
}

#[test]
fn a_host_that_is_empty_or_there_already() {
    let shown = http(
        "  - get: {path: /, headers: {host: ''}}
  - get: {path: /, headers: {host: a, Host: b}}
",
    );
    insta::assert_snapshot!(shown, @r"
error: the header `host` is empty
 --> test.yaml:4:36
  |
4 |   - get: {path: /, headers: {host: ''}}
  |                                    ^^ write a name such as www.example.com, or leave `host` out for the target's

error: the header `host` is there already
 --> test.yaml:5:39
  |
5 |   - get: {path: /, headers: {host: a, Host: b}}
  |                                       ^^^^ a request has one host: leave one of the two out
");
}

#[test]
fn the_body_of_an_answer_to_head_and_a_misspelled_status() {
    let shown = http(
        "  - head: {path: /, expect: {text: a}}
  - head: {path: /, capture: {a: /a}}
  - get: {path: /, capture: {a: statu, b: /status, c: /statu}}
",
    );
    insta::assert_snapshot!(shown, @r"
error: the answer to a `head` has no body
 --> test.yaml:4:29
  |
4 |   - head: {path: /, expect: {text: a}}
  |                             ^^^^^^^^^ look at its `status` or a `header`, or use `get`

error: the answer to a `head` has no body
 --> test.yaml:5:34
  |
5 |   - head: {path: /, capture: {a: /a}}
  |                                  ^^ look at its `status` or a `header`, or use `get`

error: a request has nothing to capture at `statu`
 --> test.yaml:6:33
  |
6 |   - get: {path: /, capture: {a: statu, b: /status, c: /statu}}
  |                                 ^^^^^ did you mean `status`?
");
}

#[test]
fn a_fragment_in_a_path() {
    let shown = http(
        "  - get: /a#b
  - post: {path: \"/a?b=${user.id}#c\", body: x}
  - get: /a%23b
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `path` must be a path such as /login
 --> test.yaml:4:12
  |
4 |   - get: /a#b
  |            ^^ a fragment is never sent: remove `#` and what follows it, or write %23 for the character

error: `path` must be a path such as /login
 --> test.yaml:5:34
  |
5 |   - post: {path: "/a?b=${user.id}#c", body: x}
  |                                  ^^ a fragment is never sent: remove `#` and what follows it, or write %23 for the character
"#);
}

#[test]
fn a_threshold_on_messages_that_nothing_sends() {
    let check = |steps: &str, threshold: &str, parts: &[&str]| {
        let read = Scenario::parse(
            &format!(
                "target: http://h:1\nload: [ramp: {{to: 1, over: 1s}}]\nuser: [{steps}]\n\
                 thresholds: [\"{threshold}\"]\n"
            ),
            "test.yaml",
        );
        assert_eq!(read.is_err(), !parts.is_empty(), "{steps}: {threshold}");
        let shown = read.map_or_else(|mistakes| mistakes.render(false), |_| String::new());
        parts.iter().for_each(|part| assert!(shown.contains(part), "{part}: {shown}"));
    };
    let parts = ["no run measures `message.p99`", "write `http.p99`"];
    check("get: /", "message.p99 < 10ms", &parts);
    check("get: /", "http.p99 < 10ms", &[]);
}
