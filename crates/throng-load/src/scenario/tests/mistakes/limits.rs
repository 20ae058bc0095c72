//! Mistakes in the limits of a scenario.

use super::whole;
use crate::scenario::Scenario;

/// Returns all mistakes of limits, written as YAML.
fn limits(limits: &str) -> String {
    whole(&format!(
        "target: tcp://h:1\nload: [ramp: {{to: 1, over: 1s}}]\nuser: [connect]\nlimits: {limits}\n"
    ))
}

#[test]
fn limits_that_limit_nothing() {
    insta::assert_snapshot!(limits("{}"), @r#"
error: `limits` has no limit
 --> test.yaml:4:9
  |
4 | limits: {}
  |         ^^ for example `all: {send: 5000/s}`
"#);
    insta::assert_snapshot!(limits("{all: {send: 0/s}}"), @r#"
error: a limit of 0 would stop all users
 --> test.yaml:4:22
  |
4 | limits: {all: {send: 0/s}}
  |                      ^^^ must be more than 0
"#);
}

#[test]
fn rates_that_are_wrong() {
    let shown = limits("\n  all: {send: 5000, connect: 10G/s}\n  user: {send: 10/min}");
    insta::assert_snapshot!(shown, @r#"
error: `send` must be a rate such as 1000/s, 5k/s or 600/m
 --> test.yaml:5:19
  |
5 |   all: {send: 5000, connect: 10G/s}
  |                   ^ the unit is missing

error: this rate is too high
 --> test.yaml:5:30
  |
5 |   all: {send: 5000, connect: 10G/s}
  |                              ^^^^^ at most 1G/s

error: `send` must be a rate such as 1000/s, 5k/s or 600/m
 --> test.yaml:6:19
  |
6 |   user: {send: 10/min}
  |                   ^^^ did you mean `m`?
"#);
}

#[test]
fn keys_that_are_unknown() {
    let shown = limits("\n  al: {send: 5/s}\n  user: {sent: 5/s}");
    insta::assert_snapshot!(shown, @r#"
error: unknown key `al` in `limits`
 --> test.yaml:5:3
  |
5 |   al: {send: 5/s}
  |   ^^ did you mean `all`?
  |
  = help: expected one of: `user`, `all`, `held_bytes_max`

error: unknown key `sent` in limits of each user
 --> test.yaml:6:10
  |
6 |   user: {sent: 5/s}
  |          ^^^^ did you mean `send`?
  |
  = help: expected one of: `send`, `connect`, `request`
"#);
    insta::assert_snapshot!(limits("{all: 5000/s, user: [1/s]}"), @r#"
error: limits of all users must say what they limit
 --> test.yaml:4:15
  |
4 | limits: {all: 5000/s, user: [1/s]}
  |               ^^^^^^ for example `all: {send: 5000/s}`

error: limits of each user must be a mapping with `send`, `connect`, `request`
 --> test.yaml:4:29
  |
4 | limits: {all: 5000/s, user: [1/s]}
  |                             ^^^^^ found a list
"#);
    insta::assert_snapshot!(limits("5000/s"), @r#"
error: `limits` must be a mapping with `user`, `all`, `held_bytes_max`
 --> test.yaml:4:9
  |
4 | limits: 5000/s
  |         ^^^^^^ found a single value
"#);
}

#[test]
fn a_limit_of_what_the_protocol_does_not_have() {
    let shown = whole(
        "target: http://h:1
load: [ramp: {to: 1, over: 1s}]
limits: {all: {connect: 5/s, request: 5/s}, user: {send: 1/s}}
user: [get: /]
",
    );
    insta::assert_snapshot!(shown, @r#"
error: users of `protocol: http` do nothing that `connect` limits
 --> test.yaml:3:16
  |
3 | limits: {all: {connect: 5/s, request: 5/s}, user: {send: 1/s}}
  |                ^^^^^^^ they have limits of `request`

error: users of `protocol: http` do nothing that `send` limits
 --> test.yaml:3:52
  |
3 | limits: {all: {connect: 5/s, request: 5/s}, user: {send: 1/s}}
  |                                                    ^^^^ they have limits of `request`
"#);
    let shown = whole(
        "target: tcp://h:1
load: [ramp: {to: 1, over: 1s}]
limits: {user: {request: 1/s}}
user: [connect]
",
    );
    insta::assert_snapshot!(shown, @r#"
error: users of `protocol: tcp` do nothing that `request` limits
 --> test.yaml:3:17
  |
3 | limits: {user: {request: 1/s}}
  |                 ^^^^^^^ they have limits of `send` and `connect`
"#);
}

#[test]
fn memory_that_is_too_small_for_anything() {
    insta::assert_snapshot!(limits("{held_bytes_max: 63KiB}"), @r"
error: `held_bytes_max` is too small
 --> test.yaml:4:26
  |
4 | limits: {held_bytes_max: 63KiB}
  |                          ^^^^^ at least 64KiB for each core
");
}

#[test]
fn limits_that_no_step_obeys() {
    insta::assert_snapshot!(limits("{all: {send: 5/s, connect: 5/s}}"), @r"
error: no step does what `send` limits
 --> test.yaml:4:16
  |
4 | limits: {all: {send: 5/s, connect: 5/s}}
  |                ^^^^ take it out, or add such a step
");
}

#[test]
fn limits_that_only_a_step_of_setup_or_a_step_left_out_obeys() {
    let head = "target: tcp://h:1\nload: [ramp: {to: 1, over: 1s}]\n\
                limits: {all: {send: 5/s}}\nparams: {senders: 0}\n";
    for users in [
        "user: [connect]\nsetup: [connect, send: a]",
        "user: [connect]\nteardown: [connect, send: a]",
        "user: [connect, {send: a, when: senders > 0}]",
        "users:\n  idle: {user: [connect]}\n  \
         sends: {user: [connect, send: a], when: senders > 0}",
    ] {
        let text = format!("{head}{users}\n");
        assert!(Scenario::parse(&text, "test.yaml").is_ok(), "{}", whole(&text));
    }
    let idle = format!("{head}user: [connect]\nsetup: [connect]\nteardown: [connect]\n");
    assert!(whole(&idle).contains("no step does what `send` limits"));
}
