//! Diagnostics of each kind of mistake, as shown on the screen.

use crate::scenario::Scenario;

mod channels;
mod cues;
mod flow;
mod habits;
mod http;
mod limits;
mod load;
mod names;
mod on_message;
mod probe;
mod setup;
mod sizes;
mod steps;
mod tls;
mod websocket;

/// Returns all mistakes of a whole file.
fn whole(source: &str) -> String {
    Scenario::parse(source, "test.yaml").expect_err(source).render(false)
}

/// Returns all mistakes of a load, written as YAML.
fn load(phases: &str) -> String {
    whole(&format!("target: tcp://h:1\nuser: [connect]\nload:\n{phases}"))
}

/// Returns all mistakes of a WebSocket user of `protocol`, written as YAML.
fn user_of(protocol: &str, steps: &str) -> String {
    whole(&format!(
        "target: ws://h:1/s\nprotocol: {protocol}\nload: [ramp: {{to: 1, over: 1s}}]\nuser:\n\
         {steps}"
    ))
}

/// Returns all mistakes of a user, written as YAML.
fn user(steps: &str) -> String {
    whole(&format!("target: tcp://h:1\nload: [ramp: {{to: 1, over: 1s}}]\nuser:\n{steps}"))
}

#[test]
fn an_empty_file() {
    let shown = whole("");
    insta::assert_snapshot!(shown, @r#"
error: the scenario is empty
 --> test.yaml:1:1
  |
1 |
  | ^ `target`, `load` and `user` belong here
"#);
}

#[test]
fn a_variable_without_quotes_between_braces() {
    let shown = user("  - connect\n  - send: {text: hi ${user.id}}\n  - close\n");
    insta::assert_snapshot!(shown, @r#"
error: a variable without quotes between braces or brackets
 --> test.yaml:5:21
  |
5 |   - send: {text: hi ${user.id}}
  |                     ^^^^^^^^^^ its `{` begins a mapping
  |
  = help: put the whole text in quotes: "hi ${user.id}"
"#);
    let shown = user_of("ws", "  - connect\n  - send: {json: {type: hi, id: ${user.id}}}\n");
    insta::assert_snapshot!(shown, @r#"
error: a variable without quotes between braces or brackets
 --> test.yaml:6:33
  |
6 |   - send: {json: {type: hi, id: ${user.id}}}
  |                                 ^^^^^^^^^^ its `{` begins a mapping
  |
  = help: put the whole text in quotes: "${user.id}"
"#);
}

#[test]
fn the_quotes_go_around_the_whole_text_of_a_variable() {
    for (step, advice) in [
        ("send: {text: hi ${user.id} there}", r#"quotes: "hi ${user.id} there""#),
        ("send: {json: [${user.id}-${user.id}, 1]}", r#"quotes: "${user.id}-${user.id}""#),
        ("send: {text: a ${user.id} b, then: c}", r#"quotes: "a ${user.id} b""#),
        ("send: {text: hi ${user.id}", r#"quotes: "hi ${user.id}""#),
    ] {
        let shown = user_of("ws", &format!("  - connect\n  - {step}\n"));
        let help = shown.lines().find(|line| line.contains("= help"));
        assert!(help.is_some_and(|help| help.ends_with(advice)), "{step}: {shown}");
    }
    let shown = user("  - connect\n  - send: {text: say ${user.id} \"hi\"}\n");
    assert!(shown.lines().any(|line| line.ends_with("put the whole text in quotes")), "{shown}");
}

#[test]
fn an_item_that_is_indented_otherwise() {
    let shown = user("  - connect\n - send: hi\n");
    insta::assert_snapshot!(shown, @r#"
error: the indentation differs from that of the item above
 --> test.yaml:5:2
  |
5 |  - send: hi
  |  ^ 1 blank before this `-`, 2 blanks before the other
  |
  = help: items of one list begin in one column
"#);
}

#[test]
fn a_key_of_another_tool() {
    let shown = user("  - connect\n  - sleep: 1s\n");
    insta::assert_snapshot!(shown, @r#"
error: unknown step `sleep`
 --> test.yaml:5:5
  |
5 |   - sleep: 1s
  |     ^^^^^ did you mean `wait`?
  |
  = help: expected one of: `connect`, `send`, `expect`, `receive`, `set`, `wait`, `barrier`, `signal`, `wait_for`, `every`, `repeat`, `transaction`, `foreach`, `if`, `choose`, `stay`, `close`
"#);
    let shown = load("  - ramp: {users: 10, duration: 1s}\n");
    insta::assert_snapshot!(shown, @r#"
error: unknown key `users` in `ramp`
 --> test.yaml:4:12
  |
4 |   - ramp: {users: 10, duration: 1s}
  |            ^^^^^ did you mean `to`?
  |
  = help: expected one of: `to`, `over`, `curve`

error: unknown key `duration` in `ramp`
 --> test.yaml:4:23
  |
4 |   - ramp: {users: 10, duration: 1s}
  |                       ^^^^^^^^ did you mean `over`?
  |
  = help: expected one of: `to`, `over`, `curve`
"#);
}

#[test]
fn text_that_is_not_yaml() {
    let shown = whole(
        "target: tcp://h:1
load: [ramp: {to: 1, over: 1s}
user: [connect]
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `[` is not closed
 --> test.yaml:2:7
  |
2 | load: [ramp: {to: 1, over: 1s}
  |       ^ a `]` is missing
"#);
    let shown = whole(
        "target: \"tcp://h:1
",
    );
    insta::assert_snapshot!(shown, @r#"
error: a quote is not closed
 --> test.yaml:1:9
  |
1 | target: "tcp://h:1
  |         ^ " is missing at the end of the text
"#);
}

#[test]
fn a_key_that_is_written_twice() {
    let shown = whole(
        "target: tcp://h:1
target: tcp://h:2
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `target` is written twice
 --> test.yaml:2:1
  |
2 | target: tcp://h:2
  | ^^^^^^ the second one
  |
  = help: each key may appear once in a mapping
"#);
}

#[test]
fn a_typo_in_a_key() {
    let shown = whole(
        "taget: tcp://h:1
load: [ramp: {to: 1, over: 1s}]
user: [connect]
",
    );
    insta::assert_snapshot!(shown, @r#"
error: unknown key `taget` in a scenario
 --> test.yaml:1:1
  |
1 | taget: tcp://h:1
  | ^^^^^ did you mean `target`?
  |
  = help: expected one of: `target`, `protocol`, `tls`, `data`, `load`, `limits`, `setup`, `user`, `users`, `on_error`, `on_message`, `teardown`, `probe`, `thresholds`, `params`, `lab`
"#);
}

#[test]
fn missing_keys() {
    let shown = whole(
        "thresholds: []
",
    );
    insta::assert_snapshot!(shown, @r#"
error: a scenario has no `target`
 --> test.yaml:1:1
  |
1 | thresholds: []
  | ^^^^^^^^^^^^^^ `target` is missing, for example `target: tcp://127.0.0.1:5555`

error: a scenario has no `load`
 --> test.yaml:1:1
  |
1 | thresholds: []
  | ^^^^^^^^^^^^^^ `load` is missing, for example `load: [{ramp: {to: 100, over: 10s}}]`

error: a scenario has no `user`
 --> test.yaml:1:1
  |
1 | thresholds: []
  | ^^^^^^^^^^^^^^ `user` is missing, for example `user: [connect, wait: 1s, close]`
"#);
}

#[test]
fn a_wrong_target() {
    let shown = whole(
        "target: tcp://127.0.0.1
load: [ramp: {to: 1, over: 1s}]
user: [connect]
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `target` must be a URL such as tcp://127.0.0.1:5555 or ws://127.0.0.1:4000/socket/websocket
 --> test.yaml:1:15
  |
1 | target: tcp://127.0.0.1
  |               ^^^^^^^^^ the port is missing: tcp://host:port
"#);
    let shown = whole(
        "target: wsx://127.0.0.1:4000/socket
protocol: phoenx
load: [ramp: {to: 1, over: 1s}]
user: [connect]
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `target` must be a URL such as tcp://127.0.0.1:5555 or ws://127.0.0.1:4000/socket/websocket
 --> test.yaml:1:9
  |
1 | target: wsx://127.0.0.1:4000/socket
  |         ^^^^^^ unknown scheme `wsx://`; use `tcp://`, `tls://`, `ws://`, `wss://`, `http://` or `https://`

error: unknown protocol `phoenx`
 --> test.yaml:2:11
  |
2 | protocol: phoenx
  |           ^^^^^^ did you mean `phoenix`?
  |
  = help: expected one of: `tcp`, `ws`, `websocket`, `phoenix`, `http`
"#);
    let shown = whole(
        "target: tcp://127.0.0.1:4000
protocol: phoenix
load: [ramp: {to: 1, over: 1s}]
user: [connect, join: {topic: lobby}, stay]
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `protocol: phoenix` does not work with tcp://127.0.0.1:4000
 --> test.yaml:2:11
  |
2 | protocol: phoenix
  |           ^^^^^^^ its targets begin with `ws://`
"#);
}

#[test]
fn classes_that_are_wrong() {
    let shown = whole(
        "target: tcp://h:1
load: [ramp: {to: 1, over: 1s}]
on_error: stop
users:
  a: {weight: 0, user: [connect]}
  b: {wieght: 2, on_error: retry}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `on_error` belongs in each class of `users`
 --> test.yaml:3:1
  |
3 | on_error: stop
  | ^^^^^^^^ move it there

error: a class of weight 0 has no users
 --> test.yaml:5:15
  |
5 |   a: {weight: 0, user: [connect]}
  |               ^ at least 1

error: the class `b` has no `user`
 --> test.yaml:6:6
  |
6 |   b: {wieght: 2, on_error: retry}
  |      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ `user` is missing, for example `user: [connect, wait: 1s, close]`

error: unknown key `wieght` in the class `b`
 --> test.yaml:6:7
  |
6 |   b: {wieght: 2, on_error: retry}
  |       ^^^^^^ did you mean `weight`?
  |
  = help: expected one of: `weight`, `load`, `user`, `on_error`, `on_message`

error: unknown `on_error` `retry`
 --> test.yaml:6:28
  |
6 |   b: {wieght: 2, on_error: retry}
  |                            ^^^^^ not known here
  |
  = help: expected one of: `restart`, `stop`, `continue`
"#);
    let shown = whole(
        "target: tcp://h:1
load: [ramp: {to: 1, over: 1s}]
user: [connect]
users: {a: {user: [connect]}}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: a scenario has either `user` or `users`
 --> test.yaml:4:1
  |
4 | users: {a: {user: [connect]}}
  | ^^^^^ this is the second one
  |
  = help: `user` is one class of users; `users` is a mapping of named classes
"#);
    let shown = whole(
        "target: tcp://h:1
load: [ramp: {to: 1, over: 1s}]
users: {}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `users` has no class
 --> test.yaml:3:8
  |
3 | users: {}
  |        ^^ add at least one
"#);
}

#[test]
fn a_threshold_that_cannot_be_judged() {
    let shown = whole(
        "target: tcp://h:1
load: [ramp: {to: 1, over: 1s}]
user: [connect]
thresholds:
  - conect.p99 < 100ms
  - connect.p99 < 100
  - connect.p99
  - [1]
",
    );
    insta::assert_snapshot!(shown, @r#"
error: invalid threshold: unknown measurement `conect.p99`
 --> test.yaml:5:5
  |
5 |   - conect.p99 < 100ms
  |     ^^^^^^^^^^ did you mean `connect.p99`?

error: invalid threshold: the unit is missing
 --> test.yaml:6:19
  |
6 |   - connect.p99 < 100
  |                   ^^^ expected a duration such as 250ms, 15m or 1h30m

error: invalid threshold: the comparison is missing
 --> test.yaml:7:16
  |
7 |   - connect.p99
  |                ^ expected one of <, <=, ==, >=, >

error: a threshold must be a comparison such as connect.p99 < 100ms
 --> test.yaml:8:5
  |
8 |   - [1]
  |     ^^^ found a list
"#);
}

#[test]
fn a_mistake_behind_an_anchor() {
    let shown = whole(
        "target: tcp://h:1
load: [ramp: {to: 1, over: 1s}]
users:
  a: {user: &steps [connect, wait: 1x]}
  b: {user: *steps}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `wait` must be a duration with an optional spread, such as 1s or 1s ±10%
 --> test.yaml:4:37
  |
4 |   a: {user: &steps [connect, wait: 1x]}
  |                                     ^ `x` is not a unit here
"#);
}

#[test]
fn mistakes_are_in_the_order_of_the_file_and_coloured_on_demand() {
    let source = "target: tcp://h:0\nload: []\nuser: [conect]\n";
    let mistakes = Scenario::parse(source, "test.yaml").unwrap_err();
    let starts: Vec<_> = mistakes.iter().map(|mistake| mistake.span.start).collect();
    assert_eq!(starts.len(), 3);
    assert!(starts.is_sorted());
    assert!(mistakes.render(true).contains("\u{1b}["));
    assert!(!mistakes.render(false).contains('\u{1b}'));
    assert_eq!(mistakes.to_string(), mistakes.render(false));
}
