//! Mistakes in the steps of WebSockets.

use super::{user, user_of};

#[test]
fn parameters_of_compression_are_checked() {
    let shown = user_of(
        "ws",
        "  - connect: {deflate: {server_max_window_bits: 16, client_no_context: true}}
  - close
  - connect: {deflate: {client_max_window_bits: 7, server_no_context_takeover: 1}}
  - close
  - connect: {deflate: []}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `server_max_window_bits` must be 8 to 15
 --> test.yaml:5:49
  |
5 |   - connect: {deflate: {server_max_window_bits: 16, client_no_context: true}}
  |                                                 ^^ 16 is not possible

error: unknown key `client_no_context` in `deflate`
 --> test.yaml:5:53
  |
5 |   - connect: {deflate: {server_max_window_bits: 16, client_no_context: true}}
  |                                                     ^^^^^^^^^^^^^^^^^ not known here
  |
  = help: expected one of: `server_no_context_takeover`, `client_no_context_takeover`, `server_max_window_bits`, `client_max_window_bits`

error: `client_max_window_bits` must be true, false or 8 to 15
 --> test.yaml:7:49
  |
7 |   - connect: {deflate: {client_max_window_bits: 7, server_no_context_takeover: 1}}
  |                                                 ^ 7 is not possible

error: unknown `server_no_context_takeover` `1`
 --> test.yaml:7:80
  |
7 |   - connect: {deflate: {client_max_window_bits: 7, server_no_context_takeover: 1}}
  |                                                                                ^ not known here
  |
  = help: expected one of: `true`, `false`

error: `deflate` has a wrong number of offers
 --> test.yaml:9:24
  |
9 |   - connect: {deflate: []}
  |                        ^^ 0 offers; 1 to 4 are possible
"#);
}

#[test]
fn steps_of_another_protocol() {
    let shown = user_of(
        "ws",
        "  - connect
  - join: {topic: lobby}
  - jion: {topic: lobby}
  - close: half
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `protocol: ws` has no step `join`
 --> test.yaml:6:5
  |
6 |   - join: {topic: lobby}
  |     ^^^^ it belongs to `protocol: phoenix`

error: unknown step `jion`
 --> test.yaml:7:5
  |
7 |   - jion: {topic: lobby}
  |     ^^^^ not known here
  |
  = help: expected one of: `connect`, `send`, `expect`, `receive`, `ping`, `pong`, `set`, `get`, `head`, `post`, `put`, `patch`, `delete`, `options`, `wait`, `barrier`, `signal`, `wait_for`, `every`, `repeat`, `transaction`, `foreach`, `if`, `choose`, `stay`, `close`

error: a WebSocket cannot be half-closed
 --> test.yaml:8:12
  |
8 |   - close: half
  |            ^^^^ use `normal` or `reset`; after a close frame nothing is sent or read
"#);
    let shown = user_of(
        "phoenix",
        "  - connect
  - send: hello
",
    );
    insta::assert_snapshot!(shown, @r"
error: `protocol: phoenix` has no step `send`
 --> test.yaml:6:5
  |
6 |   - send: hello
  |     ^^^^ it belongs to the protocols `tcp` and `ws`
  |
  = help: use `push` to send to a channel; it waits for the reply
");
    let shown = user(
        "  - connect: {path: /chat}
  - push: {topic: lobby, event: x}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: unknown key `path` in `connect`
 --> test.yaml:4:15
  |
4 |   - connect: {path: /chat}
  |               ^^^^ not known here
  |
  = help: expected one of: `timeout`, `name`

error: `protocol: tcp` has no step `push`
 --> test.yaml:5:5
  |
5 |   - push: {topic: lobby, event: x}
  |     ^^^^ it belongs to `protocol: phoenix`
"#);
}

#[test]
fn a_connect_that_cannot_be() {
    let shown = user_of(
        "ws",
        "  - connect:
      path: chat
  - close
  - connect: {path: /a b}
  - close
  - connect: {headers: {host: other}}
  - close
  - connect: {headers: {x y: 1}}
  - close
  - connect: {headers: [a]}
  - close
  - connect: {subprotocols: [a b]}
  - close
  - connect: {query: {room: \"${usr.id}\"}}
  - close
  - connect: {deflate: yes, heartbeet: 10s}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `path` must be a path such as /socket/websocket
 --> test.yaml:6:13
  |
6 |       path: chat
  |             ^^^^ must begin with /

error: `path` must be a path such as /socket/websocket
 --> test.yaml:8:23
  |
8 |   - connect: {path: /a b}
  |                       ^ must be printable ASCII; percent-encode everything else, %20 for a space

error: the header `host` cannot be sent
  --> test.yaml:10:25
   |
10 |   - connect: {headers: {host: other}}
   |                         ^^^^ throng sets this header itself

error: the header `x y` cannot be sent
  --> test.yaml:12:25
   |
12 |   - connect: {headers: {x y: 1}}
   |                         ^^^ a name is letters, digits and !#$%&'*+-.^_`|~ (RFC 9110 section 5.1)

error: `headers` must be a mapping such as {origin: http://localhost}
  --> test.yaml:14:24
   |
14 |   - connect: {headers: [a]}
   |                        ^^^ found a list

error: invalid name of a subprotocol
  --> test.yaml:16:30
   |
16 |   - connect: {subprotocols: [a b]}
   |                              ^^^ a name is letters, digits and !#$%&'*+-.^_`|~ (RFC 6455 section 4.1)

error: unknown variable `usr.id`
  --> test.yaml:18:32
   |
18 |   - connect: {query: {room: "${usr.id}"}}
   |                                ^^^^^^ did you mean `user.id`?

error: unknown `deflate` `yes`
  --> test.yaml:20:24
   |
20 |   - connect: {deflate: yes, heartbeet: 10s}
   |                        ^^^ not known here
   |
   = help: expected one of: `true`, `false`

error: unknown key `heartbeet` in `connect`
  --> test.yaml:20:29
   |
20 |   - connect: {deflate: yes, heartbeet: 10s}
   |                             ^^^^^^^^^ not known here
   |
   = help: expected one of: `timeout`, `path`, `query`, `headers`, `subprotocols`, `deflate`, `name`
"#);
    let shown = user_of(
        "phoenix",
        "  - connect: {vsn: 3.0.0}
  - close
  - connect: {heartbeet: 10s}
  - close
  - connect: {heartbeat: 0s}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: unknown `vsn` `3.0.0`
 --> test.yaml:5:20
  |
5 |   - connect: {vsn: 3.0.0}
  |                    ^^^^^ did you mean `1.0.0`?
  |
  = help: expected one of: `1.0.0`, `2.0.0`

error: unknown key `heartbeet` in `connect`
 --> test.yaml:7:15
  |
7 |   - connect: {heartbeet: 10s}
  |               ^^^^^^^^^ did you mean `heartbeat`?
  |
  = help: expected one of: `timeout`, `path`, `query`, `headers`, `subprotocols`, `deflate`, `vsn`, `heartbeat`, `name`

error: `heartbeat` is zero
 --> test.yaml:9:26
  |
9 |   - connect: {heartbeat: 0s}
  |                          ^^ must be more than 0s
"#);
}

#[test]
fn messages_that_cannot_be_sent_or_expected() {
    let shown = user_of(
        "ws",
        "  - connect
  - send: {hex: de ad}
  - send: {binary: xy}
  - send: {text: a, json: {b: c}}
  - send: {json: '{\"a\": }'}
  - send: {json: {a: .inf}}
  - expect: {until: x}
  - expect: {json: {id: \"${uuid()}\"}}
  - expect: {json: '{\"n\": ${counter}}'}
  - expect: {json: {n: {$gt: many, $ltt: 5}, name: {$regex: '(a'}, kind: {$in: open}}}
  - expect: {one_of: [ok], capture: {id: $.user.id}}
  - expect: {text: ok, capture: {user: /id, the name: name}}
  - send: {json: {id: \"${id}\", last: \"${sent.id}\"}}
  - expect: {skip_others: true}
  - expect: {text: a, skip_others: maybe}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `send` needs exactly one payload
 --> test.yaml:6:11
  |
6 |   - send: {hex: de ad}
  |           ^^^^^^^^^^^^ one of `text`, `json`, `binary` and `random`

error: unknown key `hex` in `send`
 --> test.yaml:6:12
  |
6 |   - send: {hex: de ad}
  |            ^^^ not known here
  |
  = help: expected one of: `text`, `json`, `binary`, `random`, `reply`

error: `binary` must be bytes in hexadecimal such as de ad be ef
 --> test.yaml:7:20
  |
7 |   - send: {binary: xy}
  |                    ^ not one of 0-9a-f; a text is written ${'text'}

error: `send` needs exactly one payload
 --> test.yaml:8:11
  |
8 |   - send: {text: a, json: {b: c}}
  |           ^^^^^^^^^^^^^^^^^^^^^^^ one of `text`, `json`, `binary` and `random`

error: `json` is not JSON
 --> test.yaml:9:18
  |
9 |   - send: {json: '{"a": }'}
  |                  ^^^^^^^^^ text that begins with a brace or a bracket must be JSON
  |
  = help: as YAML it needs no quotes: {body: hello}

error: `.inf` is not valid in JSON
  --> test.yaml:10:22
   |
10 |   - send: {json: {a: .inf}}
   |                      ^^^^ JSON has no infinity

error: `expect` needs exactly one pattern
  --> test.yaml:11:13
   |
11 |   - expect: {until: x}
   |             ^^^^^^^^^^ one of `text`, `json`, `binary`, `bytes`, `contains`, `regex` and `one_of`

error: unknown key `until` in `expect`
  --> test.yaml:11:14
   |
11 |   - expect: {until: x}
   |              ^^^^^ not known here
   |
   = help: expected one of: `text`, `json`, `binary`, `bytes`, `contains`, `regex`, `one_of`, `capture`, `skip_others`, `timeout`, `name`

error: `uuid` cannot be expected: each use has another value
  --> test.yaml:12:26
   |
12 |   - expect: {json: {id: "${uuid()}"}}
   |                          ^^^^^^^^^ use `${sent}` or `${sent.member}`, the message that was sent
   |
   = help: `set: {name: ...}` before the `send` keeps a value for both

error: JSON that is written as one text has no variables in an `expect`
  --> test.yaml:13:20
   |
13 |   - expect: {json: '{"n": ${counter}}'}
   |                    ^^^^^^^^^^^^^^^^^^^ write it as YAML: {id: "${user.id}"}
   |
   = help: there, a text that is one variable also matches a number

error: `$gt` compares with a number
  --> test.yaml:14:30
   |
14 |   - expect: {json: {n: {$gt: many, $ltt: 5}, name: {$regex: '(a'}, kind: {$in: open}}}
   |                              ^^^^ for example {n: {$gt: 5}}

error: unknown comparison `$ltt`
  --> test.yaml:14:36
   |
14 |   - expect: {json: {n: {$gt: many, $ltt: 5}, name: {$regex: '(a'}, kind: {$in: open}}}
   |                                    ^^^^ did you mean `$lt`?
   |
   = help: expected one of: `$exists`, `$lt`, `$lte`, `$gt`, `$gte`, `$ne`, `$regex`, `$in`

error: this regular expression cannot be used
  --> test.yaml:14:61
   |
14 |   - expect: {json: {n: {$gt: many, $ltt: 5}, name: {$regex: '(a'}, kind: {$in: open}}}
   |                                                             ^^^^ unclosed group

error: `$in` must be a list such as [open, closed]
  --> test.yaml:14:80
   |
14 |   - expect: {json: {n: {$gt: many, $ltt: 5}, name: {$regex: '(a'}, kind: {$in: open}}}
   |                                                                                ^^^^ found a single value

error: `one_of` needs at least two patterns
  --> test.yaml:15:22
   |
15 |   - expect: {one_of: [ok], capture: {id: $.user.id}}
   |                      ^^^^ add another one

error: a place in JSON is a JSON pointer such as /user/id
  --> test.yaml:15:42
   |
15 |   - expect: {one_of: [ok], capture: {id: $.user.id}}
   |                                          ^^^^^^^^^ write /user/id

error: `user` cannot name a value
  --> test.yaml:16:34
   |
16 |   - expect: {text: ok, capture: {user: /id, the name: name}}
   |                                  ^^^^ a letter, then letters, digits and _; not user, env, sent, counter or probe

error: `the name` cannot name a value
  --> test.yaml:16:45
   |
16 |   - expect: {text: ok, capture: {user: /id, the name: name}}
   |                                             ^^^^^^^^ a letter, then letters, digits and _; not user, env, sent, counter or probe

error: `expect` needs exactly one pattern
  --> test.yaml:18:13
   |
18 |   - expect: {skip_others: true}
   |             ^^^^^^^^^^^^^^^^^^^ one of `text`, `json`, `binary`, `bytes`, `contains`, `regex` and `one_of`

error: unknown `skip_others` `maybe`
  --> test.yaml:19:36
   |
19 |   - expect: {text: a, skip_others: maybe}
   |                                    ^^^^^ not known here
   |
   = help: expected one of: `true`, `false`
"#);
}

#[test]
fn pings_that_cannot_be_sent() {
    let long = "x".repeat(126);
    let shown = user_of(
        "ws",
        &format!(
            "  - connect
  - ping: {{text: a, binary: 01}}
  - ping: {{text: \"${{uuid()}}\"}}
  - pong: {{timeout: 1s}}
  - pong: {long}
"
        ),
    );
    for says in [
        "`ping` needs exactly one payload",
        "`uuid` cannot be expected",
        "unknown key `timeout` in `pong`",
        "at most 125 bytes",
    ] {
        assert!(shown.contains(says), "{says}: {shown}");
    }
    let shown = user_of("ws", "  - ping\n  - connect\n");
    assert!(shown.contains("`ping` needs a connection"), "{shown}");
}
