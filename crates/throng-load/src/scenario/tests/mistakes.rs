//! What each kind of mistake looks like to the person who made it.

use crate::scenario::Scenario;

/// All mistakes of a whole file.
fn whole(source: &str) -> String {
    Scenario::parse(source, "test.yaml").expect_err(source).render(false)
}

/// All mistakes of a load, written as YAML.
fn load(phases: &str) -> String {
    whole(&format!("target: tcp://h:1\nuser: [connect]\nload:\n{phases}"))
}

/// All mistakes of a user, written as YAML.
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
fn text_that_is_not_yaml() {
    let shown = whole(
        "target: tcp://h:1
load: [ramp: {to: 1, over: 1s}
user: [connect]
",
    );
    insta::assert_snapshot!(shown, @r#"
error: this is not YAML
 --> test.yaml:3:1
  |
3 | user: [connect]
  | ^ while parsing a flow mapping, did not find expected ',' or '}'
"#);
    let shown = whole(
        "target: \"tcp://h:1
",
    );
    insta::assert_snapshot!(shown, @r#"
error: this is not YAML
 --> test.yaml:1:20
  |
1 | target: "tcp://h:1
  |                   ^ invalid indentation in multiline quoted scalar
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
  = help: known here: `target`, `protocol`, `load`, `user`, `users`, `on_error`, `probe`, `thresholds`
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
error: `target` is a URL such as tcp://127.0.0.1:5555 or tcp://[::1]:5555
 --> test.yaml:1:15
  |
1 | target: tcp://127.0.0.1
  |               ^^^^^^^^^ the port is missing: tcp://host:port
"#);
    let shown = whole(
        "target: ws://127.0.0.1:4000/socket
protocol: phoenix
load: [ramp: {to: 1, over: 1s}]
user: [connect]
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `target` is a URL such as tcp://127.0.0.1:5555 or tcp://[::1]:5555
 --> test.yaml:1:9
  |
1 | target: ws://127.0.0.1:4000/socket
  |         ^^^^^ `ws://` is not in this version; `tcp://` is

error: `protocol: phoenix` is not in this version
 --> test.yaml:2:11
  |
2 | protocol: phoenix
  |           ^^^^^^^ leave it out; `tcp://` speaks plain TCP
"#);
}

#[test]
fn what_is_not_in_this_version() {
    let shown = whole(
        "target: tcp://h:1
load: [ramp: {to: 1, over: 1s}]
user: [connect, join: {topic: lobby}]
probe: [{every: 10s}]
",
    );
    insta::assert_snapshot!(shown, @r#"
error: the step `join` is not in this version
 --> test.yaml:3:17
  |
3 | user: [connect, join: {topic: lobby}]
  |                 ^^^^ it belongs to `protocol: phoenix`

error: `probe` is not in this version
 --> test.yaml:4:1
  |
4 | probe: [{every: 10s}]
  | ^^^^^ leave it out
"#);
}

#[test]
fn a_wrong_unit() {
    let shown = load(
        "  - ramp: {to: 100K, over: 15min}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `to` is a whole number such as 250, 1_000, 100k or 2.5M
 --> test.yaml:4:19
  |
4 |   - ramp: {to: 100K, over: 15min}
  |                   ^ did you mean `k`?

error: `over` is a duration such as 250ms, 15m or 1h30m
 --> test.yaml:4:30
  |
4 |   - ramp: {to: 100K, over: 15min}
  |                              ^^^ did you mean `m`?
"#);
    let shown = load(
        "  - ramp: {to: 100, over: 15}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `over` is a duration such as 250ms, 15m or 1h30m
 --> test.yaml:4:27
  |
4 |   - ramp: {to: 100, over: 15}
  |                           ^^ the unit is missing
"#);
}

#[test]
fn an_unknown_phase_and_an_unknown_key_in_one() {
    let shown = load(
        "  - rmap: {to: 1, over: 1s}
  - hold: {form: 1m}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: unknown key `rmap` in a load phase
 --> test.yaml:4:5
  |
4 |   - rmap: {to: 1, over: 1s}
  |     ^^^^ did you mean `ramp`?
  |
  = help: known here: `ramp`, `hold`, `arrivals`

error: unknown key `form` in `hold`
 --> test.yaml:5:12
  |
5 |   - hold: {form: 1m}
  |            ^^^^ did you mean `for`?
  |
  = help: known here: `for`
"#);
}

#[test]
fn phases_that_are_impossible() {
    let shown = load(
        "  - ramp: {to: 5G, over: 0s}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: more users than there can be
 --> test.yaml:4:16
  |
4 |   - ramp: {to: 5G, over: 0s}
  |                ^^ at most 4294967295

error: `over` is longer than nothing
 --> test.yaml:4:26
  |
4 |   - ramp: {to: 5G, over: 0s}
  |                          ^^ more than 0s
"#);
    let shown = load(
        "  - hold: {for: 1m}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: the load begins with `hold`, and there is nobody to hold
 --> test.yaml:4:5
  |
4 |   - hold: {for: 1m}
  |     ^^^^^^^^^^^^^^^ `ramp` or `arrivals` comes first
"#);
    let shown = load(
        "  - ramp: {to: 100, over: 1m}
  - ramp: {to: 100, over: 1m}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: there are 100 users already
 --> test.yaml:5:5
  |
5 |   - ramp: {to: 100, over: 1m}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^ a ramp goes to another number; did you mean `hold`?
"#);
}

#[test]
fn arrivals_that_are_impossible() {
    let shown = load(
        "  - arrivals: {rate: 0/s, for: 1m}
  - arrivals: {rate: {from: 0/s, to: 0/s}, for: 0s}
  - arrivals: {rate: 2G/s, for: 1s, most: 0, spacing: evn}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: nothing ever happens at this rate
 --> test.yaml:4:22
  |
4 |   - arrivals: {rate: 0/s, for: 1m}
  |                      ^^^ more than 0

error: nobody would ever arrive
 --> test.yaml:5:22
  |
5 |   - arrivals: {rate: {from: 0/s, to: 0/s}, for: 0s}
  |                      ^^^^^^^^^^^^^^^^^^^^ one of the two is more than 0

error: `for` is longer than nothing
 --> test.yaml:5:49
  |
5 |   - arrivals: {rate: {from: 0/s, to: 0/s}, for: 0s}
  |                                                 ^^ more than 0s

error: this rate is too high
 --> test.yaml:6:22
  |
6 |   - arrivals: {rate: 2G/s, for: 1s, most: 0, spacing: evn}
  |                      ^^^^ at most 1G/s

error: nobody would arrive
 --> test.yaml:6:43
  |
6 |   - arrivals: {rate: 2G/s, for: 1s, most: 0, spacing: evn}
  |                                           ^ at least 1

error: unknown `spacing` `evn`
 --> test.yaml:6:55
  |
6 |   - arrivals: {rate: 2G/s, for: 1s, most: 0, spacing: evn}
  |                                                       ^^^ did you mean `even`?
  |
  = help: known here: `poisson`, `even`
"#);
}

#[test]
fn two_models_in_one_load() {
    let shown = load(
        "  - ramp: {to: 100, over: 1m}
  - arrivals: {rate: 100/s, for: 1m}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `arrivals` cannot follow `ramp` or `hold`
 --> test.yaml:5:5
  |
5 |   - arrivals: {rate: 100/s, for: 1m}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ this is the other model
  |
  = help: a load is either closed (`ramp`: a set number of users, each begins again) or open (`arrivals`: users come by the clock, once each); `hold` goes with both
"#);
    let shown = load(
        "  - arrivals: {rate: 100/s, for: 1m}
  - ramp: {to: 0, over: 1m}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `ramp` cannot follow `arrivals`
 --> test.yaml:5:5
  |
5 |   - ramp: {to: 0, over: 1m}
  |     ^^^^^^^^^^^^^^^^^^^^^^^ this is the other model
  |
  = help: a load is either closed (`ramp`: a set number of users, each begins again) or open (`arrivals`: users come by the clock, once each); `hold` goes with both
"#);
}

#[test]
fn two_phases_in_one_item() {
    let shown = load(
        "  - ramp: {to: 100, over: 1m}
    hold: {for: 1m}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: each phase is an item of its own
 --> test.yaml:5:5
  |
5 |     hold: {for: 1m}
  |     ^^^^ begin this one with `- `
"#);
}

#[test]
fn an_unknown_step() {
    let shown = user(
        "  - conect
  - wiat: 1s
  - subscribe: news
",
    );
    insta::assert_snapshot!(shown, @r#"
error: unknown step `conect`
 --> test.yaml:4:5
  |
4 |   - conect
  |     ^^^^^^ did you mean `connect`?
  |
  = help: known here: `connect`, `send`, `expect`, `wait`, `every`, `repeat`, `stay`, `close`

error: unknown step `wiat`
 --> test.yaml:5:5
  |
5 |   - wiat: 1s
  |     ^^^^ did you mean `wait`?
  |
  = help: known here: `connect`, `send`, `expect`, `wait`, `every`, `repeat`, `stay`, `close`

error: unknown step `subscribe`
 --> test.yaml:6:5
  |
6 |   - subscribe: news
  |     ^^^^^^^^^ not known here
  |
  = help: known here: `connect`, `send`, `expect`, `wait`, `every`, `repeat`, `stay`, `close`
"#);
}

#[test]
fn two_steps_in_one_item() {
    let shown = user(
        "  - connect
  - expect: ok
    timeout: 1s
  - send: a
    close: reset
",
    );
    insta::assert_snapshot!(shown, @r#"
error: each step is an item of its own
 --> test.yaml:6:5
  |
6 |     timeout: 1s
  |     ^^^^^^^ if `timeout` is about the step, put it inside: {..., timeout: ...}

error: each step is an item of its own
 --> test.yaml:8:5
  |
8 |     close: reset
  |     ^^^^^ begin this one with `- `
"#);
}

#[test]
fn a_step_without_what_it_needs() {
    let shown = user(
        "  - connect
  - send
  - expect:
  - wait
  - stay: 1m
  - close: rest
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `send` does not say what
 --> test.yaml:5:5
  |
5 |   - send
  |     ^^^^ for example `send: hello`

error: `expect` does not say what
 --> test.yaml:6:5
  |
6 |   - expect:
  |     ^^^^^^ for example `expect: ok`

error: `wait` does not say what
 --> test.yaml:7:5
  |
7 |   - wait
  |     ^^^^ for example `wait: 1s ±10%`

error: `stay` takes nothing
 --> test.yaml:8:11
  |
8 |   - stay: 1m
  |           ^^ leave this out
  |
  = help: to stay for a time, write `wait: 1m`

error: unknown way to close `rest`
 --> test.yaml:9:12
  |
9 |   - close: rest
  |            ^^^^ did you mean `reset`?
  |
  = help: known here: `normal`, `reset`, `half`
"#);
}

#[test]
fn an_empty_user() {
    let shown = user(
        "  []
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `user` has no steps
 --> test.yaml:4:3
  |
4 |   []
  |   ^^ at least one belongs here
"#);
    let shown = user(
        "  connect
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `user` is a list of steps such as `- connect`
 --> test.yaml:4:3
  |
4 |   connect
  |   ^^^^^^^ found a single value
"#);
}

#[test]
fn a_bad_template() {
    let shown = user(
        "  - connect
  - send: hello ${user.ip} and ${random(6,1)}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: unknown variable `user.ip`
 --> test.yaml:5:19
  |
5 |   - send: hello ${user.ip} and ${random(6,1)}
  |                   ^^^^^^^ did you mean `user.id`?
"#);
    let shown = user(
        "  - connect
  - send: \"hello ${counter\\n\"
  - expect: ${counter}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: a variable is not closed
 --> test.yaml:5:11
  |
5 |   - send: "hello ${counter\n"
  |           ^^^^^^^^^^^^^^^^^^^ `}` is missing; a plain `${` is written `$${`

error: `expect` knows no variables
 --> test.yaml:6:13
  |
6 |   - expect: ${counter}
  |             ^^^^^^^^^^ a plain `${` is written `$${`
  |
  = help: where the answer varies, wait for `{bytes: n}` or `{until: text}`
"#);
}

#[test]
fn bytes_that_are_none() {
    let shown = user(
        "  - connect
  - send: {hex: de a}
  - send: {hex: xy}
  - send: {random: 0}
  - expect: {bytes: 0}
  - expect: \"\"
  - expect: {text: a, bytes: 1}
  - send: {random: 2GiB}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `hex` is bytes in hexadecimal such as de ad be ef
 --> test.yaml:5:20
  |
5 |   - send: {hex: de a}
  |                    ^ half a byte

error: `hex` is bytes in hexadecimal such as de ad be ef
 --> test.yaml:6:17
  |
6 |   - send: {hex: xy}
  |                 ^ not one of 0-9a-f

error: `random` is 0 bytes
 --> test.yaml:7:20
  |
7 |   - send: {random: 0}
  |                    ^ at least 1

error: `bytes` is 0 bytes
 --> test.yaml:8:21
  |
8 |   - expect: {bytes: 0}
  |                     ^ at least 1

error: nothing is expected
 --> test.yaml:9:13
  |
9 |   - expect: ""
  |             ^^ at least one byte

error: `expect` waits for one thing
  --> test.yaml:10:13
   |
10 |   - expect: {text: a, bytes: 1}
   |             ^^^^^^^^^^^^^^^^^^^ one of `text`, `hex`, `bytes` and `until`

error: `random` is too large
  --> test.yaml:11:20
   |
11 |   - send: {random: 2GiB}
   |                    ^^^^ at most 1GiB
"#);
}

#[test]
fn a_jitter_beyond_all() {
    let shown = user(
        "  - wait: 1s ±101%
  - wait: 1s ±10
",
    );
    insta::assert_snapshot!(shown, @r#"
error: a wait cannot vary by more than itself
 --> test.yaml:4:11
  |
4 |   - wait: 1s ±101%
  |           ^^^^^^^^ at most ±100%

error: `wait` is a duration with an optional spread, such as 1s or 1s ±10%
 --> test.yaml:5:15
  |
5 |   - wait: 1s ±10
  |               ^^ the unit is missing
"#);
}

#[test]
fn every_with_too_little_and_too_much() {
    let shown = user(
        "  - connect
  - every: {do: [send: a]}
  - every: {period: 1s, rate: 1/s, do: [send: a]}
  - every: {rate: 1/s}
  - repeat: {do: []}
  - repeat: {times: 0, do: [send: a]}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `every` does not say how often
 --> test.yaml:5:5
  |
5 |   - every: {do: [send: a]}
  |     ^^^^^ `period` or `rate` is missing, for example `period: 1s`

error: `every` has both `period` and `rate`
 --> test.yaml:6:25
  |
6 |   - every: {period: 1s, rate: 1/s, do: [send: a]}
  |                         ^^^^ one of them says when turns are due

error: `every` has no `do`
 --> test.yaml:7:12
  |
7 |   - every: {rate: 1/s}
  |            ^^^^^^^^^^^ `do` is missing, for example `do: [send: ping]`

error: `repeat` does not say how often
 --> test.yaml:8:5
  |
8 |   - repeat: {do: []}
  |     ^^^^^^ `times` or `for` is missing, for example `times: 10`

error: `do` has no steps
 --> test.yaml:8:18
  |
8 |   - repeat: {do: []}
  |                  ^^ at least one belongs here

error: nothing would be repeated
 --> test.yaml:9:21
  |
9 |   - repeat: {times: 0, do: [send: a]}
  |                     ^ at least 1
"#);
}

#[test]
fn loops_too_deep() {
    let shown = user(
        "  - connect
  - repeat: {times: 2, do: [repeat: {times: 2, do: [repeat: {times: 2, do: [repeat: {times: 2, do: [
      every: {period: 1s, do: [send: a]}]}]}]}]}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: loops are nested more than 4 deep
 --> test.yaml:6:7
  |
6 |       every: {period: 1s, do: [send: a]}]}]}]}]}
  |       ^^^^^ this one is too deep
"#);
}

#[test]
fn a_step_without_a_connection() {
    let shown = user(
        "  - send: a
  - expect: b
  - close
  - close
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `send` has nothing to send on
 --> test.yaml:4:5
  |
4 |   - send: a
  |     ^^^^^^^ there is no connection here; `connect` comes first

error: `close` has nothing to close
 --> test.yaml:7:5
  |
7 |   - close
  |     ^^^^^ there is no connection here; `connect` comes first
"#);
    let shown = user(
        "  - connect
  - close: half
  - send: a
  - expect: b
  - connect
",
    );
    insta::assert_snapshot!(shown, @r#"
error: nothing more can be sent
 --> test.yaml:6:5
  |
6 |   - send: a
  |     ^^^^^^^ `close: half` has ended the sending

error: there is a connection already
 --> test.yaml:8:5
  |
8 |   - connect
  |     ^^^^^^^ `close` comes first
"#);
}

#[test]
fn a_step_after_the_end() {
    let shown = user(
        "  - connect
  - stay
  - close
",
    );
    insta::assert_snapshot!(shown, @r#"
error: this step is never reached
 --> test.yaml:6:5
  |
6 |   - close
  |     ^^^^^ the step before it goes on until the run ends
"#);
    let shown = user(
        "  - connect
  - every: {period: 1s, do: [send: a]}
  - close
",
    );
    insta::assert_snapshot!(shown, @r#"
error: this step is never reached
 --> test.yaml:6:5
  |
6 |   - close
  |     ^^^^^ the step before it goes on until the run ends
"#);
}

#[test]
fn a_loop_whose_second_turn_fails() {
    let shown = user(
        "  - repeat:
      times: 2
      do:
        - connect
        - send: a
",
    );
    insta::assert_snapshot!(shown, @r#"
error: there is a connection already
 --> test.yaml:7:11
  |
7 |         - connect
  |           ^^^^^^^ `close` comes first
  |
  = help: this is so from the second turn of the loop on
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
error: `on_error` belongs into each class of `users`
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
  = help: known here: `weight`, `user`, `on_error`

error: unknown `on_error` `retry`
 --> test.yaml:6:28
  |
6 |   b: {wieght: 2, on_error: retry}
  |                            ^^^^^ not known here
  |
  = help: known here: `restart`, `stop`, `continue`
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
  | ^^^^^ here is the second of them
  |
  = help: `user` is one class of users; `users` are several with a name each
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
  |        ^^ at least one belongs here
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
error: a threshold cannot be judged: nothing called `conect.p99` is measured
 --> test.yaml:5:5
  |
5 |   - conect.p99 < 100ms
  |     ^^^^^^^^^^ did you mean `connect.p99`?

error: a threshold cannot be judged: the unit is missing
 --> test.yaml:6:19
  |
6 |   - connect.p99 < 100
  |                   ^^^ expected a duration such as 250ms, 15m or 1h30m

error: a threshold cannot be judged: the comparison is missing
 --> test.yaml:7:16
  |
7 |   - connect.p99
  |                ^ expected one of <, <=, ==, >=, >

error: a threshold is a comparison such as connect.p99 < 100ms
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
error: `wait` is a duration with an optional spread, such as 1s or 1s ±10%
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
